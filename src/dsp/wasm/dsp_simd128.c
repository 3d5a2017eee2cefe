/* The inner loops for WebAssembly's vectors of 128 bits. */
#define DSP_LANES 4
#define DSP_FILL dcrf_dsp_fill_vectors
#include "dsp/dsp.h"

void dcrf_dsp_fill_vectors(struct dcrf_dsp *dsp);
#include "dsp/dsp_vector.h"

/* One row of the output after the other. The windows of dsp_vector.h need twelve registers that
 * move, which a browser's compiler keeps in memory instead: thirty times slower. */
static void convolve_row(const struct dcrf_convolve *c, size_t q, float factor) {
    float *out = c->out + q * c->out_step;
    for (size_t at = 0; at < c->width; at += DSP_LANES) {
        const size_t from = c->in_offset + at;
        const float *const *before = c->in + c->radius + q, *const *after = before;
        wide_vector sum = c->tap[0] * load_wide(*before + from);
        for (size_t k = 1; k <= c->radius; k++) {
            before--, after++;
            sum += c->tap[k] * (load_wide(*before + from) + load_wide(*after + from));
        }
        sum *= factor;
        if (c->accumulate)
            sum += load_wide(out + at);
        store_wide(out + at, sum);
    }
}

static void convolve_rowwise(const struct dcrf_convolve *c) {
    for (size_t q = 0; q < c->rows; q++)
        convolve_row(c, q, c->factor * (c->scale ? c->scale[q * c->scale_step] : 1));
}

/* Up to four labels: the rows of dsp_softmax.h in one vector each, half of the work. */
typedef double wide_doubles __attribute__((vector_size(DSP_LANES * 8)));

INLINE wide_vector choose_wide(wide_integers mask, wide_vector a, wide_vector b) {
    return (wide_vector)(((wide_integers)a & mask) | ((wide_integers)b & ~mask));
}

INLINE double wide_total(wide_doubles v) {
    return (v[0] + v[2]) + (v[1] + v[3]);
}

static void softmax_narrow(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums) {
    const wide_integers mask = (wide_integers){0, 1, 2, 3} < (int32_t)s->labels;
    const wide_vector none = (wide_vector){0} - FLT_MAX, nothing = (wide_vector){0} - 100.0f;
    wide_doubles energy = {0}, change = {0}, entropy = {0};
    double logarithms = 0, product = 1;
    for (size_t at = begin * s->stride, r = begin; r < end; r++, at += s->stride) {
        const wide_vector q = load_wide(s->q + at), unary = load_wide(s->unary + at);
        const wide_vector m = load_wide(s->message + at) - (s->diagonal ? s->diagonal[r] : 0) * q;
        const wide_vector term = q * unary + m * (s->all_factor + s->own_factor * q);
        energy += __builtin_convertvector(choose_wide(mask, term, (wide_vector){0}), wide_doubles);
        wide_vector value = -unary - s->factor * m;
        if (s->extra)
            value += load_wide(s->extra + at);
        if (s->logits) {
            value = s->damping * load_wide(s->logits + at) + (1 - s->damping) * value;
            store_wide(s->logits + at, value);
        }
        value = choose_wide(mask, value, none);
        const float first = value[0] > value[1] ? value[0] : value[1];
        const float second = value[2] > value[3] ? value[2] : value[3];
        wide_vector exponent = value - (first > second ? first : second);
        exponent = choose_wide(exponent > nothing, exponent, nothing);
        const wide_vector e = exponential(exponent);
        const float total = (e[0] + e[2]) + (e[1] + e[3]), scale = 1 / total;
        const wide_vector updated = scale * e, difference = updated - q;
        change += __builtin_convertvector(
            choose_wide(mask, choose_wide(difference < 0, -difference, difference),
                        (wide_vector){0}),
            wide_doubles);
        store_wide(s->q + at, updated);
        for (size_t i = DSP_LANES; i < s->stride; i += DSP_LANES)
            store_wide(s->q + at + i, (wide_vector){0});
        entropy += __builtin_convertvector(scale * (e * exponent), wide_doubles);
        product *= (double)total;
        if (product > 1e200) {
            logarithms += log(product);
            product = 1;
        }
    }
    sums[DCRF_SOFTMAX_ENERGY] += wide_total(energy);
    sums[DCRF_SOFTMAX_CHANGE] += wide_total(change);
    sums[DCRF_SOFTMAX_ENTROPY] += wide_total(entropy) - logarithms - log(product);
}

static void softmax_of_any(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums) {
    (s->labels <= DSP_LANES ? softmax_narrow : softmax)(s, begin, end, sums);
}

void dcrf_dsp_fill_simd128(struct dcrf_dsp *dsp) {
    dcrf_dsp_fill_vectors(dsp);
    dsp->convolve = convolve_rowwise;
    dsp->softmax = softmax_of_any;
}
