/* The inner loops for WebAssembly's vectors of 128 bits. */
#define DSP_LANES 4
#define DSP_FILL dcrf_dsp_fill_vectors
#include "dsp/dsp.h"

void dcrf_dsp_fill_vectors(struct dcrf_dsp *dsp);
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

void dcrf_dsp_fill_simd128(struct dcrf_dsp *dsp) {
    dcrf_dsp_fill_vectors(dsp);
    dsp->convolve = convolve_rowwise;
    dsp->scatter = scatter_fours;
}
