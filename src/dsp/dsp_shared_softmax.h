/* The shared softmax and the exponential of arrays for one instruction set: a part of dsp_vector.h.
 *
 * Eight rows are processed at once, with one vector of 8 per label: no sum or maximum goes across a
 * vector, and padding costs nothing. Rows of the message and of q are transposed on the way in
 * blocks of four labels; unary energies come as planes. With vectors of 16 the usual updates take
 * sixteen rows at once instead (dsp_shared_sixteens.h). */

EXPONENTIAL(tail_exponential, tail_vector, tail_integers)

/* Reductions across a vector go by halves, which compilers turn into a few instructions. */
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

INLINE tail_vector size_of(tail_vector v) {
    return (tail_vector)((tail_integers)v & INT32_MAX);
}

INLINE tail_vector larger(tail_vector a, tail_vector b) {
#if defined(__x86_64__)
    return (tail_vector)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return choose(a > b, a, b);
#endif
}

INLINE tail_vector smaller(tail_vector a, tail_vector b) {
#if defined(__x86_64__)
    return (tail_vector)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return choose(a < b, a, b);
#endif
}

/* 2^f for |f| <= 1/2 by the polynomial of degree 5 with the least relative error, 7.5e-8. */
#define POWER(f)                                                                                   \
    FMA(FMA(FMA(FMA(FMA(1.3276471e-3f, f, 9.675541e-3f), f, 5.550713e-2f), f, 2.402212e-1f), f,    \
            6.9314694e-1f),                                                                        \
        f, 1.0000001f)
#define TO_BASE_TWO 1.44269504f

/* exp(x) for LOWEST_EXPONENT <= x <= 0: 2^k 2^f, k an integer and |f| <= 1/2. The rounding of
 * log2(e) adds 1.4e-8 |x|, so small values are less exact than with tail_exponential. Zero at the
 * lowest exponent: an infinite energy leaves no probability. Where there is no instruction for it,
 * k is added to the exponent as an integer, taken from the low bits of a float to which it was
 * added; below -87 the result would not be a valid number. */
#if DSP_LANES == 16
#define LOWEST_EXPONENT (-200.0f)
#else
#define LOWEST_EXPONENT (-87.0f)
#endif

INLINE tail_vector clamped_exponential(tail_vector x) {
    const float magic = 12582912.0f;
    const tail_vector shifted = FMA(TO_BASE_TWO, x, magic);
    const tail_vector k = shifted - magic, f = FMA(TO_BASE_TWO, x, -k), p = POWER(f);
#if DSP_LANES == 16
    return (tail_vector)_mm256_scalef_ps((__m256)p, (__m256)k);
#else
    return (tail_vector)(((tail_integers)p + ((tail_integers)shifted << 23)) &
                         (x > LOWEST_EXPONENT));
#endif
}

/* The same for all x <= 0. */
INLINE tail_vector fast_exponential(tail_vector x) {
    return clamped_exponential(larger(x, (tail_vector){0} + LOWEST_EXPONENT));
}

INLINE tail_vector join_halves(const float *low, const float *high) {
    return JOIN(load_half(low), load_half(high));
}

/* Transpose both halves of four vectors, each as a matrix of four by four. */
INLINE void transpose_halves(tail_vector *v) {
    const tail_vector low = SHUFFLE(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
    const tail_vector high = SHUFFLE(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
    const tail_vector next_low = SHUFFLE(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
    const tail_vector next_high = SHUFFLE(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
    v[0] = SHUFFLE(low, next_low, 0, 1, 8, 9, 4, 5, 12, 13);
    v[1] = SHUFFLE(low, next_low, 2, 3, 10, 11, 6, 7, 14, 15);
    v[2] = SHUFFLE(high, next_high, 0, 1, 8, 9, 4, 5, 12, 13);
    v[3] = SHUFFLE(high, next_high, 2, 3, 10, 11, 6, 7, 14, 15);
}

/* Four labels of eight rows as four vectors, and back. */
INLINE void load_eight(const float *rows, size_t stride, tail_vector *label) {
    UNROLL
    for (size_t i = 0; i < HALF_LANES; i++)
        label[i] = join_halves(rows + i * stride, rows + (i + HALF_LANES) * stride);
    transpose_halves(label);
}

INLINE void store_eight(tail_vector *label, float *rows, size_t stride) {
    transpose_halves(label);
    UNROLL
    for (size_t i = 0; i < HALF_LANES; i++) {
        half_vector low, high;
        halve(label[i], &low, &high);
        store_half(rows + i * stride, low);
        store_half(rows + (i + HALF_LANES) * stride, high);
    }
}

INLINE size_t in_fours(size_t labels) {
    return (labels + HALF_LANES - 1) / HALF_LANES * HALF_LANES;
}

/* Prefetch distance for unary energies, in groups of eight variables. */
#define UNARY_AHEAD 4

/* An energy so large that its exponential is zero. */
#define NOTHING_LEFT 2e30f

/* exp(low - value) of all labels, in place; returns the sum. */
INLINE tail_vector exponentials(tail_vector *value, size_t labels, tail_vector low) {
    tail_vector sum[2] = {{0}};
#pragma GCC unroll 4
    for (size_t i = 0; i < labels; i++) {
        value[i] = fast_exponential(low - value[i]);
        sum[i % 2] += value[i];
    }
    return sum[0] + sum[1];
}

/* Properties common to all rows: constants in each copy of the loop. */
struct softmax_kind {
    bool is_plain; /* messages and q are in rows, and the planes of all labels are consecutive */
    bool has_rest;
    bool sums_up; /* there may be a total */
};

INLINE const float *unary_of(const struct dcrf_shared_softmax *s, struct softmax_kind kind,
                             const float *eight, size_t label) {
    return eight + (kind.is_plain ? label * TAIL_LANES : s->plane[label] * s->plane_step);
}

/* The energies unary + message of the rows r .. r + 7, padded to a multiple of four labels; returns
 * the lowest. */
INLINE tail_vector energies(const struct dcrf_shared_softmax *s, size_t r, size_t labels,
                            struct softmax_kind kind, tail_vector *value) {
    const float *message = s->message ? s->message + r * s->message_stride : NULL;
    const float *eight = s->unary + r / TAIL_LANES * s->eight_step;
    const bool has_message = kind.is_plain || message, has_total = kind.sums_up && s->has_total;
    const size_t told = labels - has_total; /* labels whose messages are given */
    tail_vector low = (tail_vector){0} + 1e30f, messages[HALF_LANES] = {{0}};
    if (kind.has_rest)
        low = -load_tail(s->rest + r);
    size_t at = 0;
    for (; at + HALF_LANES <= told; at += HALF_LANES) {
        tail_vector four[HALF_LANES] = {{0}};
        if (has_message)
            load_eight(message + at, s->message_stride, four);
        UNROLL
        for (size_t i = 0; i < HALF_LANES; i++) {
            const float *unary = unary_of(s, kind, eight, at + i);
            if (kind.sums_up) /* four sums: less rounding error */
                messages[i] += four[i];
            four[i] += load_tail(unary);
            low = smaller(four[i], low);
            if (!kind.is_plain || i % 2 == 0) /* a cache line holds two */
                __builtin_prefetch(unary + UNARY_AHEAD * s->eight_step);
        }
        UNROLL
        for (size_t i = 0; i < HALF_LANES; i++)
            value[at + i] = four[i];
    }
    if (at < labels) {
        tail_vector four[HALF_LANES] = {{0}}, last[HALF_LANES];
        if (has_message && at < told)
            load_eight(message + at, s->message_stride, four);
        UNROLL
        for (size_t i = 0; i < HALF_LANES; i++) {
            last[i] = (tail_vector){0} + NOTHING_LEFT;
            if (at + i < told) {
                messages[i] += four[i];
                last[i] = four[i] + load_tail(unary_of(s, kind, eight, at + i));
            }
        }
        if (has_total) {
            const tail_vector sum = (messages[0] + messages[1]) + (messages[2] + messages[3]);
            UNROLL
            for (size_t i = 0; i < HALF_LANES; i++)
                if (at + i == told)
                    last[i] =
                        load_tail(unary_of(s, kind, eight, told)) + (load_tail(s->total + r) - sum);
        }
        UNROLL
        for (size_t i = 0; i < HALF_LANES; i++) {
            low = smaller(last[i], low);
            value[at + i] = last[i];
        }
    }
    if (kind.sums_up && s->total && !has_total)
        store_tail(s->total + r, (messages[0] + messages[1]) + (messages[2] + messages[3]));
    return low;
}

/* The rows r .. r + 7. `value` and `peak` hold one vector per label; the labels are padded to a
 * multiple of four, and the padding has a zero peak. */
INLINE void shared_eight(const struct dcrf_shared_softmax *s, size_t r, size_t labels,
                         struct softmax_kind kind, tail_vector *value, tail_vector *peak,
                         tail_vector *rest_peak) {
    const tail_vector low = energies(s, r, labels, kind, value);
    tail_vector total = exponentials(value, labels, low);
    if (kind.has_rest)
        total += fast_exponential(load_tail(s->rest + r) + low);
    const tail_vector scale = 1 / total;
    for (size_t at = 0; at < labels; at += HALF_LANES) {
        tail_vector four[HALF_LANES];
        UNROLL
        for (size_t i = 0; i < HALF_LANES; i++) {
            four[i] = at + i < labels ? scale * value[at + i] : (tail_vector){0};
            peak[at + i] = larger(four[i], peak[at + i]);
            if (!kind.is_plain && s->q_planes && at + i < labels)
                store_tail(s->q_planes + (at + i) * s->q_plane_step + r, four[i]);
        }
        if (kind.is_plain || s->q)
            store_eight(four, s->q + r * s->stride + at, s->stride);
    }
    if (kind.has_rest) {
        const tail_vector part = scale * fast_exponential(load_tail(s->rest_top + r) + low);
        *rest_peak = larger(part, *rest_peak);
        store_tail(s->shift + r, -low);
        store_tail(s->scale + r, scale);
    }
    for (size_t at = in_fours(labels); s->q && at < s->stride; at += HALF_LANES)
        for (size_t i = 0; i < TAIL_LANES; i++)
            store_half(s->q + (r + i) * s->stride + at, (half_vector){0});
}

/* Do messages have the stride of q, and are unary energies stored label by label? */
INLINE bool is_dense(const struct dcrf_shared_softmax *s) {
    bool is_so = s->plane_step == TAIL_LANES && (!s->message || s->message_stride == s->stride);
    for (size_t i = 0; is_so && i < s->labels; i++)
        is_so = s->plane[i] == i;
    return is_so;
}

/* Is it the usual update? */
INLINE bool is_plain(const struct dcrf_shared_softmax *s) {
    return is_dense(s) && s->message && s->q && !s->q_planes && !s->rest;
}

/* The same for a single row, in scalars: for the rows left after groups of eight. */
static void shared_one(const struct dcrf_shared_softmax *s, size_t r) {
    const float *message = s->message ? s->message + r * s->message_stride : NULL;
    const float *unary = s->unary + r / TAIL_LANES * s->eight_step + r % TAIL_LANES;
    float *value = s->work, total = 0, messages = 0;
    float top = s->rest ? s->rest[r] : -1e30f;
    for (size_t i = 0; i < s->labels; i++) {
        const bool is_left = s->has_total && i + 1 == s->labels;
        const float own = is_left ? s->total[r] - messages : message ? message[i] : 0;
        value[i] = -unary[s->plane[i] * s->plane_step] - own;
        top = value[i] > top ? value[i] : top;
        messages += own;
    }
    if (s->total && !s->has_total)
        s->total[r] = messages;
    for (size_t i = 0; i < s->labels; i++) {
        value[i] = fast_exponential((tail_vector){0} + (value[i] - top))[0];
        total += value[i];
    }
    if (s->rest)
        total += fast_exponential((tail_vector){0} + (s->rest[r] - top))[0];
    const float scale = 1 / total;
    for (size_t i = 0; i < s->labels; i++) {
        value[i] *= scale;
        if (s->peak)
            s->peak[i] = value[i] > s->peak[i] ? value[i] : s->peak[i];
        if (s->q_planes)
            s->q_planes[i * s->q_plane_step + r] = value[i];
    }
    for (size_t i = 0; s->q && i < s->stride; i++)
        s->q[r * s->stride + i] = i < s->labels ? value[i] : 0;
    if (s->rest) {
        const float part = scale * fast_exponential((tail_vector){0} + (s->rest_top[r] - top))[0];
        *s->rest_peak = part > *s->rest_peak ? part : *s->rest_peak;
        s->shift[r] = top;
        s->scale[r] = scale;
    }
}

#if DSP_LANES == 16
#include "dsp/dsp_shared_sixteens.h"
#endif

INLINE void shared_rows(const struct dcrf_shared_softmax *s, size_t rows, size_t labels,
                        bool has_rest, tail_vector *value, tail_vector *peak) {
    const size_t padded = in_fours(labels);
    tail_vector rest_peak = {0};
    size_t r = 0;
    for (size_t i = 0; i < padded; i++)
        peak[i] = (tail_vector){0};
    const struct softmax_kind plain = {true, false, false}, summing = {true, false, true};
    const struct softmax_kind any = {false, has_rest, true};
    if (!has_rest && is_plain(s) && !s->total)
        for (; r + TAIL_LANES <= rows; r += TAIL_LANES)
            shared_eight(s, r, labels, plain, value, peak, &rest_peak);
    else if (!has_rest && is_plain(s))
        for (; r + TAIL_LANES <= rows; r += TAIL_LANES)
            shared_eight(s, r, labels, summing, value, peak, &rest_peak);
    else
        for (; r + TAIL_LANES <= rows; r += TAIL_LANES)
            shared_eight(s, r, labels, any, value, peak, &rest_peak);
    for (size_t i = 0; s->peak && i < labels; i++) {
        const float largest = largest_of(peak[i]);
        s->peak[i] = largest > s->peak[i] ? largest : s->peak[i];
    }
    if (has_rest) {
        const float largest = largest_of(rest_peak);
        *s->rest_peak = largest > *s->rest_peak ? largest : *s->rest_peak;
    }
    for (; r < rows; r++)
        shared_one(s, r);
}

/* With few labels the vectors stay in registers. */
INLINE void shared_few(const struct dcrf_shared_softmax *s, size_t rows, size_t labels,
                       bool has_rest) {
    tail_vector value[HALF_LANES], peak[HALF_LANES];
    shared_rows(s, rows, labels, has_rest, value, peak);
}

OPTIONAL void shared_softmax(const struct dcrf_shared_softmax *given, size_t rows) {
    const struct dcrf_shared_softmax copy = *given, *s = &copy;
    tail_vector *value = (tail_vector *)s->work, *peak = value + in_fours(s->labels);
#if DSP_LANES == 16
    if (is_dense(s) && !s->rest) {
        for (size_t r = shared_sixteens(s, rows); r < rows; r++)
            shared_one(s, r);
        return;
    }
#endif
    switch (s->labels <= HALF_LANES && !s->rest ? s->labels : 0) {
    case 2:
        shared_few(s, rows, 2, false);
        break;
    case 3:
        shared_few(s, rows, 3, false);
        break;
    case 4:
        shared_few(s, rows, 4, false);
        break;
    default:
        if (s->rest)
            shared_rows(s, rows, s->labels, true, value, peak);
        else
            shared_rows(s, rows, s->labels, false, value, peak);
        break;
    }
}

static void negative_exponential(const float *in, const float *shift, const float *scale,
                                 float *out, size_t count) {
    size_t i = 0;
    for (; i + TAIL_LANES <= count; i += TAIL_LANES)
        store_tail(out + i, load_tail(scale + i) *
                                tail_exponential(-load_tail(in + i) - load_tail(shift + i)));
    for (; i < count; i++) {
        const tail_vector x = (tail_vector){0} + (-in[i] - shift[i]);
        out[i] = scale[i] * tail_exponential(x)[0];
    }
}
