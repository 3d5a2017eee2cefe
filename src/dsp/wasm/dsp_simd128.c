/* The inner loops for WebAssembly's vectors of 128 bits. */
#define DSP_LANES 4
#include "dsp/dsp_vector.h"

/* One row of the output after the other. The windows of dsp_vector.h need many registers that
 * move, which a browser's compiler keeps in memory instead: thirty times slower. */
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

/* Four floats after the other, for rows of all lengths: one copy of the loop instead of one for
 * each. */
static void scatter_fours(const struct dcrf_scatter *s, size_t begin, size_t end) {
    for (size_t r = begin; r < end; r++)
        for (size_t e = r * s->entries; e < (r + 1) * s->entries; e++) {
            const float *in = s->in + r * s->in_stride;
            float *out = s->out + s->index[e] * s->width;
            for (size_t at = 0; at < s->width; at += DSP_LANES)
                store_wide(out + at, load_wide(out + at) + s->weight[e] * load_wide(in + at));
        }
}

#define DSP_TABLE dcrf_dsp_simd128
#define DSP_CPU DCRF_CPU_SIMD128
#define DSP_CONVOLVE convolve_rowwise
#define DSP_SCATTER scatter_fours
/* The bytes of a module count; these are called by tests, and plain C will do. */
#define DSP_SHARED_SOFTMAX dcrf_plain_shared_softmax
#define DSP_SPLAT_RUNS dcrf_plain_splat_runs
#define DSP_SLICE_RUNS dcrf_plain_slice_runs
#define DSP_SPLAT_PARTS dcrf_plain_splat_parts
#include "dsp/dsp_table.h"
