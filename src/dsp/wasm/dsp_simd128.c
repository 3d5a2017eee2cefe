/* The inner loops for WebAssembly's vectors of 128 bits. */
#define DSP_LANES 4
#include "dsp/dsp_vector.h"
#include "dsp/plain.h"

/* One row of the output at a time. The windows of dsp_convolve.h rotate through many registers,
 * which a browser's compiler keeps in memory instead: thirty times slower. */
static void convolve_row(const struct dcrf_convolve *c, size_t q) {
    float *out = c->out + q * c->out_step;
    for (size_t at = 0; at < c->floats; at += DSP_LANES) {
        const size_t from = c->in_offset + at;
        const float *const *before = c->in + c->radius + q, *const *after = before;
        wide_vector sum = c->tap[0] * load_wide(*before + from);
        for (size_t k = 1; k <= c->radius; k++) {
            before--, after++;
            sum += c->tap[k] * (load_wide(*before + from) + load_wide(*after + from));
        }
        sum *= c->factor;
        if (c->accumulate)
            sum += load_wide(out + at);
        store_wide(out + at, sum);
    }
}

static void convolve_rowwise(const struct dcrf_convolve *c) {
    for (size_t q = 0; q < c->rows; q++)
        convolve_row(c, q);
}

/* If every variable is its own run, rows of all lengths go four floats at a time: one copy of each
 * loop. Nothing on a page has other runs. */
static void splat_corner(const struct dcrf_runs *runs, size_t variable, size_t e) {
    const float *in = runs->variables + variable * runs->stride;
    float *out = runs->vertices + runs->vertex[e] * runs->width;
    for (size_t at = 0; at < runs->width; at += DSP_LANES)
        store_wide(out + at, load_wide(out + at) + runs->weight[e] * load_wide(in + at));
}

static bool has_fours(const struct dcrf_runs *runs) {
    return !runs->first && runs->width % DSP_LANES == 0;
}

static void splat_fours(const struct dcrf_runs *runs, size_t begin, size_t end) {
    if (!has_fours(runs)) {
        dcrf_plain_splat_runs(runs, begin, end);
        return;
    }
    for (size_t a = begin; a < end; a++)
        for (size_t k = 0; k < runs->corners; k++)
            splat_corner(runs, a, a * runs->corners + k);
}

static void slice_fours(const struct dcrf_runs *runs, size_t begin, size_t end) {
    if (!has_fours(runs)) {
        dcrf_plain_slice_runs(runs, begin, end);
        return;
    }
    for (size_t a = begin; a < end; a++)
        for (size_t at = 0; at < runs->width; at += DSP_LANES) {
            float *out = runs->variables + a * runs->stride + at;
            wide_vector sum = {0};
            for (size_t e = a * runs->corners; e < (a + 1) * runs->corners; e++)
                sum += runs->weight[e] *
                       load_wide(runs->vertices + runs->vertex[e] * runs->width + at);
            sum *= runs->factor;
            store_wide(out, runs->accumulate ? load_wide(out) + sum : sum);
        }
}

#define DSP_TABLE dcrf_dsp_simd128
#define DSP_CPU DCRF_CPU_SIMD128
#define DSP_CONVOLVE convolve_rowwise
#define DSP_SPLAT_RUNS splat_fours
#define DSP_SLICE_RUNS slice_fours
/* Module size matters; only tests call this, and plain C will do. */
#define DSP_SHARED_SOFTMAX dcrf_plain_shared_softmax
#include "dsp/dsp_table.h"
