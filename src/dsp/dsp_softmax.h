/* The softmax of long rows for one instruction set: a part of dsp_vector.h, whose vectors of 8 it
 * uses whatever the longest of the set is, because rows are whole eights. Shorter rows are taken
 * eight at a time (dsp_softmax_eights.h). */
#include <float.h>
#include <math.h>

EXPONENTIAL(tail_exponential, tail_vector, tail_integers)

/* Across a vector by halves, which the compilers turn into a few instructions. */
INLINE void halve(tail_vector v, half_vector *low, half_vector *high) {
    *low = LOW_HALF(v);
    *high = HIGH_HALF(v);
}

INLINE float largest_of(tail_vector v) {
    half_vector low, high;
    halve(v, &low, &high);
    const half_integers above = high > low;
    low = (half_vector)(((half_integers)high & above) | ((half_integers)low & ~above));
    const float first = low[0] > low[1] ? low[0] : low[1];
    const float second = low[2] > low[3] ? low[2] : low[3];
    return first > second ? first : second;
}

INLINE float total_of(tail_vector v) {
    half_vector low, high;
    halve(v, &low, &high);
    low += high;
    return (low[0] + low[2]) + (low[1] + low[3]);
}

INLINE double double_total_of(tail_doubles v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* a where the mask is set, b elsewhere */
INLINE tail_vector choose(tail_integers mask, tail_vector a, tail_vector b) {
    return (tail_vector)(((tail_integers)a & mask) | ((tail_integers)b & ~mask));
}

/* Rows of `groups` vectors of 8; `last` masks the labels of the last one. What lies between the
 * passes over a row stays in the cache where the row is short: writing it into the message would
 * send all of it to memory. */
#define SHORT_ROW 512
INLINE void softmax_rows(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums,
                         tail_integers last, size_t groups) {
    const tail_integers all = (tail_integers){0} - 1;
    /* Below every value, and an exponent whose exponential is zero but whose product with it is
     * not NaN. */
    const tail_vector none = (tail_vector){0} - FLT_MAX, nothing = (tail_vector){0} - 100.0f;
    tail_doubles energy = {0}, change = {0}, entropy = {0};
    double logarithms = 0, product = 1;
    float local[SHORT_ROW];
    for (size_t r = begin; r < end; r++) {
        const size_t row = r * s->stride;
        const float diagonal = s->diagonal ? s->diagonal[r] : 0;
        float *between = groups * TAIL_LANES <= SHORT_ROW ? local : s->message + row;
        tail_vector largest = none;
#pragma GCC unroll 4
        for (size_t g = 0; g < groups; g++) {
            const size_t at = row + g * TAIL_LANES;
            const tail_integers mask = g + 1 == groups ? last : all;
            const tail_vector q = load_tail(s->q + at), unary = load_tail(s->unary + at);
            const tail_vector m = load_tail(s->message + at) - diagonal * q;
            const tail_vector term = q * unary + m * (s->all_factor + s->own_factor * q);
            energy += __builtin_convertvector(choose(mask, term, (tail_vector){0}), tail_doubles);
            tail_vector value = -unary - s->factor * m;
            if (s->extra)
                value += load_tail(s->extra + at);
            if (s->logits) {
                value = s->damping * load_tail(s->logits + at) + (1 - s->damping) * value;
                store_tail(s->logits + at, value);
            }
            value = choose(mask, value, none);
            store_tail(between + g * TAIL_LANES, value);
            largest = choose(value > largest, value, largest);
        }
        const float top = largest_of(largest);
        tail_vector sum = {0}, weighted = {0};
#pragma GCC unroll 4
        for (size_t g = 0; g < groups; g++) {
            float *at = between + g * TAIL_LANES;
            tail_vector exponent = load_tail(at) - top;
            exponent = choose(exponent > nothing, exponent, nothing);
            const tail_vector e = tail_exponential(exponent);
            store_tail(at, e);
            sum += e;
            weighted += e * exponent;
        }
        const float total = total_of(sum), scale = 1 / total;
#pragma GCC unroll 4
        for (size_t g = 0; g < groups; g++) {
            const size_t at = row + g * TAIL_LANES;
            const tail_vector updated = scale * load_tail(between + g * TAIL_LANES);
            const tail_vector difference = updated - load_tail(s->q + at);
            const tail_vector size = choose(difference < 0, -difference, difference);
            change += __builtin_convertvector(size, tail_doubles);
            store_tail(s->q + at, updated);
        }
        entropy += __builtin_convertvector(scale * weighted, tail_doubles);
        /* ln(total), of many rows at once: a total lies between 1 and the number of labels. */
        product *= (double)total;
        if (product > 1e200) {
            logarithms += log(product);
            product = 1;
        }
    }
    sums[DCRF_SOFTMAX_ENERGY] += double_total_of(energy);
    sums[DCRF_SOFTMAX_CHANGE] += double_total_of(change);
    sums[DCRF_SOFTMAX_ENTROPY] += double_total_of(entropy) - logarithms - log(product);
}

static void softmax_long(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums) {
    const size_t groups = (s->labels + TAIL_LANES - 1) / TAIL_LANES;
    tail_integers last;
    for (size_t i = 0; i < TAIL_LANES; i++)
        last[i] = (groups - 1) * TAIL_LANES + i < s->labels ? -1 : 0;
    softmax_rows(s, begin, end, sums, last, groups);
}
