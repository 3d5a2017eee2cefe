/* The inner loops for one instruction set, written once with the compilers' vector extension.
 *
 * The including file defines DSP_LANES (4, 8 or 16 floats per vector), is compiled for its
 * instruction set, and includes dsp_table.h after this. A row is `wide` vectors of DSP_LANES and
 * `tail` vectors of 4 floats, fewer than would fill another; two of them are one vector of 8. Both
 * are constants in each copy of a loop, so the sums of a row stay in registers. */
#include "dsp/dsp.h"

#include <dcrf/experimental.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define TAIL_LANES 8
#define HALF_LANES 4

typedef float wide_vector __attribute__((vector_size(DSP_LANES * 4)));
typedef float tail_vector __attribute__((vector_size(TAIL_LANES * 4)));
typedef int32_t wide_integers __attribute__((vector_size(DSP_LANES * 4)));
typedef int32_t tail_integers __attribute__((vector_size(TAIL_LANES * 4)));
typedef double tail_doubles __attribute__((vector_size(TAIL_LANES * 8)));
typedef float half_vector __attribute__((vector_size(HALF_LANES * 4)));
typedef int32_t half_integers __attribute__((vector_size(HALF_LANES * 4)));
typedef double half_doubles __attribute__((vector_size(HALF_LANES * 4)));

#define INLINE static inline __attribute__((always_inline))

/* What has several callers and is not the time of a page: one copy where module size matters. */
#ifdef __wasm__
#define INLINE_UNLESS_SMALL static __attribute__((noinline))
#else
#define INLINE_UNLESS_SMALL INLINE
#endif
/* A function that a table need not use. */
#define OPTIONAL static __attribute__((unused))
/* Before a loop with a small constant count: unrolled, its arrays become registers. Clang does so
 * early enough only if asked to unroll fully. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
/* The same where the count may be variable, about which clang would warn. */
#ifdef __clang__
#define UNROLL_CONSTANT
#else
#define UNROLL_CONSTANT UNROLL
#endif

#define MOST_WIDE (DCRF_DSP_WIDTH / DSP_LANES)

/* Shuffles of vectors of 8, and their halves: in registers if the compiler supports it, else
 * through memory. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define JOIN(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7)
#define LOW_HALF(v) __builtin_shufflevector(v, v, 0, 1, 2, 3)
#define HIGH_HALF(v) __builtin_shufflevector(v, v, 4, 5, 6, 7)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (tail_integers){__VA_ARGS__})
#define JOIN(low, high)                                                                            \
    ((tail_vector){(low)[0], (low)[1], (low)[2], (low)[3], (high)[0], (high)[1], (high)[2],        \
                   (high)[3]})
#define LOW_HALF(v) ((half_vector){(v)[0], (v)[1], (v)[2], (v)[3]})
#define HIGH_HALF(v) ((half_vector){(v)[4], (v)[5], (v)[6], (v)[7]})
#endif

#include "dsp/dsp_fma.h"

/* The caller's rows are aligned to floats only. */
INLINE wide_vector load_wide(const float *at) {
    wide_vector value;
    memcpy(&value, at, sizeof value);
    return value;
}

INLINE tail_vector load_tail(const float *at) {
    tail_vector value;
    memcpy(&value, at, sizeof value);
    return value;
}

INLINE half_vector load_half(const float *at) {
    half_vector value;
    memcpy(&value, at, sizeof value);
    return value;
}

INLINE void store_wide(float *at, wide_vector value) {
    memcpy(at, &value, sizeof value);
}

INLINE void store_tail(float *at, tail_vector value) {
    memcpy(at, &value, sizeof value);
}

INLINE void store_half(float *at, half_vector value) {
    memcpy(at, &value, sizeof value);
}

/* Rows of two floats: one in the lower half of a vector, or two. */
#define PAIR ((size_t)2)

INLINE half_vector load_pairs(const float *low, const float *high) {
    double pair[2] = {0};
    memcpy(&pair[0], low, sizeof pair[0]);
    if (high)
        memcpy(&pair[1], high, sizeof pair[1]);
    return (half_vector)(half_doubles){pair[0], pair[1]};
}

INLINE void store_pair(float *at, half_vector value) {
    const double pair = ((half_doubles)value)[0];
    memcpy(at, &pair, sizeof pair);
}

/* Floats per row. */
INLINE size_t row_floats(size_t wide, size_t tail) {
    return wide * DSP_LANES + tail * HALF_LANES;
}

/* Offset of the last vector of 4, if there is one. */
INLINE size_t half_at(size_t wide, size_t tail) {
    return wide * DSP_LANES + (tail & 2) * HALF_LANES;
}

/* Call body(arguments, wide, tail) with both counts as constants: for rows of 4 floats and of
 * multiples of eight, or for all multiples of four. */
#define WIDTH_CASE(fours, body, ...)                                                               \
    case fours:                                                                                    \
        body(__VA_ARGS__, (fours)*HALF_LANES / DSP_LANES, (fours) % (DSP_LANES / HALF_LANES));     \
        break;
#define EIGHTS_CASES(body, ...)                                                                    \
    WIDTH_CASE(1, body, __VA_ARGS__)                                                               \
    WIDTH_CASE(2, body, __VA_ARGS__)                                                               \
    WIDTH_CASE(4, body, __VA_ARGS__)                                                               \
    WIDTH_CASE(6, body, __VA_ARGS__)                                                               \
    WIDTH_CASE(8, body, __VA_ARGS__)
#define FOR_WIDTH(width, body, ...)                                                                \
    switch ((width) / HALF_LANES) { EIGHTS_CASES(body, __VA_ARGS__) }
#define FOR_FOURS(width, body, ...)                                                                \
    switch ((width) / HALF_LANES) {                                                                \
        EIGHTS_CASES(body, __VA_ARGS__)                                                            \
        WIDTH_CASE(3, body, __VA_ARGS__)                                                           \
        WIDTH_CASE(5, body, __VA_ARGS__)                                                           \
        WIDTH_CASE(7, body, __VA_ARGS__)                                                           \
    }

/* One row of sums. */
struct row {
    wide_vector wide[MOST_WIDE];
    tail_vector tail;
    half_vector half;
};

INLINE void row_zero(struct row *row, size_t wide, size_t tail) {
    UNROLL
    for (size_t i = 0; i < wide; i++)
        row->wide[i] = (wide_vector){0};
    if (tail & 2)
        row->tail = (tail_vector){0};
    if (tail & 1)
        row->half = (half_vector){0};
}

/* row += weight * in */
INLINE void row_add(struct row *row, float weight, const float *in, size_t wide, size_t tail) {
    UNROLL
    for (size_t i = 0; i < wide; i++)
        row->wide[i] = FMA(weight, load_wide(in + i * DSP_LANES), row->wide[i]);
    if (tail & 2)
        row->tail = FMA(weight, load_tail(in + wide * DSP_LANES), row->tail);
    if (tail & 1)
        row->half = FMA(weight, load_half(in + half_at(wide, tail)), row->half);
}

INLINE void row_store(const struct row *row, float *out, size_t wide, size_t tail) {
    UNROLL
    for (size_t i = 0; i < wide; i++)
        store_wide(out + i * DSP_LANES, row->wide[i]);
    if (tail & 2)
        store_tail(out + wide * DSP_LANES, row->tail);
    if (tail & 1)
        store_half(out + half_at(wide, tail), row->half);
}

/* out += row */
INLINE void row_add_to(const struct row *row, float *out, size_t wide, size_t tail) {
    UNROLL
    for (size_t i = 0; i < wide; i++)
        store_wide(out + i * DSP_LANES, row->wide[i] + load_wide(out + i * DSP_LANES));
    if (tail & 2)
        store_tail(out + wide * DSP_LANES, row->tail + load_tail(out + wide * DSP_LANES));
    if (tail & 1)
        store_half(out + half_at(wide, tail), row->half + load_half(out + half_at(wide, tail)));
}

/* out = factor * row, or += that */
INLINE void row_scale_to(struct row *row, float *out, float factor, bool accumulate, size_t wide,
                         size_t tail) {
    UNROLL
    for (size_t i = 0; i < wide; i++)
        row->wide[i] = accumulate ? FMA(factor, row->wide[i], load_wide(out + i * DSP_LANES))
                                  : factor * row->wide[i];
    if (tail & 2)
        row->tail = accumulate ? FMA(factor, row->tail, load_tail(out + wide * DSP_LANES))
                               : factor * row->tail;
    if (tail & 1)
        row->half = accumulate ? FMA(factor, row->half, load_half(out + half_at(wide, tail)))
                               : factor * row->half;
    row_store(row, out, wide, tail);
}

/* row += other */
INLINE void row_join(struct row *row, const struct row *other, size_t wide, size_t tail) {
    UNROLL
    for (size_t i = 0; i < wide; i++)
        row->wide[i] += other->wide[i];
    if (tail & 2)
        row->tail += other->tail;
    if (tail & 1)
        row->half += other->half;
}

/* Prefetch a row that will be read soon: every cache line that it spans, into the second-level
 * cache, far ahead. The first level has few miss buffers: prefetched there, rows of 96 bytes
 * scattered over 64 MB take 15 ns each, this way 5 ns (AMD EPYC of 2022). */
INLINE void ask_for(const float *row, size_t width, bool is_aligned) {
    __builtin_prefetch(row, 0, 2);
    if (width > 24 || (!is_aligned && width > 16)) /* else a row spans two lines */
        __builtin_prefetch(row + 16, 0, 2);
    if (width > TAIL_LANES) /* a row of 8 floats lies in one line */
        __builtin_prefetch(row + width - 1, 0, 2);
}

/* row = centre * in[v] + side * (in[n0] + in[n1]), or += that */
INLINE void row_blur(struct row *row, const float *in, const uint32_t *neighbour, size_t v,
                     const struct dcrf_blur *b, bool adds, size_t wide, size_t tail) {
    const size_t width = row_floats(wide, tail);
    const float *at = in + v * width;
    const float *before = in + neighbour[2 * v] * width;
    const float *after = in + neighbour[2 * v + 1] * width;
    UNROLL
    for (size_t i = 0; i < wide; i++) {
        const wide_vector sides =
            load_wide(before + i * DSP_LANES) + load_wide(after + i * DSP_LANES);
        const wide_vector value = FMA(b->side, sides, b->centre * load_wide(at + i * DSP_LANES));
        row->wide[i] = adds ? row->wide[i] + value : value;
    }
    if (tail & 2) {
        const tail_vector sides =
            load_tail(before + wide * DSP_LANES) + load_tail(after + wide * DSP_LANES);
        const tail_vector value = FMA(b->side, sides, b->centre * load_tail(at + wide * DSP_LANES));
        row->tail = adds ? row->tail + value : value;
    }
    if (tail & 1) {
        const size_t half = half_at(wide, tail);
        const half_vector sides = load_half(before + half) + load_half(after + half);
        const half_vector value = FMA(b->side, sides, b->centre * load_half(at + half));
        row->half = adds ? row->half + value : value;
    }
}

INLINE void blur_rows(const struct dcrf_blur *given, size_t begin, size_t end, size_t wide,
                      size_t tail) {
    const size_t width = row_floats(wide, tail);
    const struct dcrf_blur copy = *given, *b = &copy; /* no store can alias it */
    if (!b->in[1])
        for (size_t v = begin; v < end; v++) {
            struct row sum;
            row_blur(&sum, b->in[0], b->neighbour[0], v, b, false, wide, tail);
            row_store(&sum, b->out + v * width, wide, tail);
        }
    else
        for (size_t v = begin; v < end; v++) {
            struct row sum;
            row_blur(&sum, b->in[0], b->neighbour[0], v, b, false, wide, tail);
            row_blur(&sum, b->in[1], b->neighbour[1], v, b, true, wide, tail);
            row_store(&sum, b->out + v * width, wide, tail);
        }
}

/* Rows of two floats, two at a time. */
INLINE void blur_pairs(const struct dcrf_blur *given, size_t begin, size_t end) {
    const struct dcrf_blur copy = *given, *b = &copy; /* no store can alias it */
    const float *in = b->in[0];
    const uint32_t *n = b->neighbour[0] + 2 * begin;
    size_t v = begin;
    for (; v + 2 <= end; v += 2, n += 4) {
        const half_vector before = load_pairs(in + n[0] * PAIR, in + n[2] * PAIR);
        const half_vector after = load_pairs(in + n[1] * PAIR, in + n[3] * PAIR);
        store_half(b->out + v * PAIR,
                   FMA(b->side, before + after, b->centre * load_half(in + v * PAIR)));
    }
    if (v < end) {
        const half_vector sides =
            load_pairs(in + n[0] * PAIR, NULL) + load_pairs(in + n[1] * PAIR, NULL);
        store_pair(b->out + v * PAIR,
                   FMA(b->side, sides, b->centre * load_pairs(in + v * PAIR, NULL)));
    }
}

static void blur(const struct dcrf_blur *b, size_t begin, size_t end) {
    if (b->width == PAIR)
        blur_pairs(b, begin, end);
    else
        FOR_FOURS(b->width, blur_rows, b, begin, end)
}

INLINE struct row row_load(const float *in, size_t wide, size_t tail) {
    struct row row;
    UNROLL
    for (size_t i = 0; i < wide; i++)
        row.wide[i] = load_wide(in + i * DSP_LANES);
    if (tail & 2)
        row.tail = load_tail(in + wide * DSP_LANES);
    if (tail & 1)
        row.half = load_half(in + half_at(wide, tail));
    return row;
}

/* row += weight * other */
INLINE void row_add_row(struct row *row, float weight, const struct row *other, size_t wide,
                        size_t tail) {
    UNROLL
    for (size_t i = 0; i < wide; i++)
        row->wide[i] = FMA(weight, other->wide[i], row->wide[i]);
    if (tail & 2)
        row->tail = FMA(weight, other->tail, row->tail);
    if (tail & 1)
        row->half = FMA(weight, other->half, row->half);
}

/* row = weight * other */
INLINE void row_times(struct row *row, float weight, const struct row *other, size_t wide,
                      size_t tail) {
    UNROLL
    for (size_t i = 0; i < wide; i++)
        row->wide[i] = weight * other->wide[i];
    if (tail & 2)
        row->tail = weight * other->tail;
    if (tail & 1)
        row->half = weight * other->half;
}

#include "dsp/dsp_runs.h"
#if DSP_LANES == 16
#include "dsp/dsp_ring.h"
#endif

#include "dsp/dsp_convolve.h"

INLINE void scale_row(const struct dcrf_scaling *s, size_t r, size_t wide, size_t tail) {
    struct row row = row_load(s->in + r * s->in_stride, wide, tail);
    row_scale_to(&row, s->out + r * s->out_stride, s->scale ? s->factor * s->scale[r] : s->factor,
                 s->accumulate, wide, tail);
}

INLINE void scale_all(const struct dcrf_scaling *given, size_t rows, size_t wide, size_t tail) {
    const struct dcrf_scaling copy = *given, *s = &copy; /* no store can alias it */
    for (size_t r = 0; r < rows; r++)
        scale_row(s, r, wide, tail);
}

static void scale_rows(const struct dcrf_scaling *s, size_t rows) {
    FOR_WIDTH(s->width, scale_all, s, rows)
}

#include "dsp/dsp_histograms.h"

/* exp(x) for x <= 0: 2^k e^r with |r| <= ln 2 / 2 and e^r by its Taylor polynomial of degree 6,
 * relative error below 1e-7; zero below -87. Adding 1.5 * 2^23 rounds to an integer. */
#define EXPONENTIAL(name, vector, integers)                                                        \
    INLINE vector name(vector x) {                                                                 \
        const integers above = x > (vector){0} - 87.0f;                                            \
        x = (vector)((integers)x & above);                                                         \
        const float magic = 12582912.0f;                                                           \
        const vector shifted = FMA(1.44269504f, x, magic);                                         \
        const vector k = shifted - magic;                                                          \
        const vector r = FMA(2.12194440e-4f, k, FNMA(0.693359375f, k, x));                         \
        vector p = FMA(1.0f / 720, r, 1.0f / 120);                                                 \
        p = FMA(p, r, 1.0f / 24);                                                                  \
        p = FMA(p, r, 1.0f / 6);                                                                   \
        p = FMA(p, r, 0.5f);                                                                       \
        p = FMA(p, r, 1.0f);                                                                       \
        p = FMA(p, r, 1.0f);                                                                       \
        const integers power = ((integers)shifted - (integers)((vector){0} + magic) + 127) << 23;  \
        return (vector)((integers)(p * (vector)power) & above);                                    \
    }
EXPONENTIAL(exponential, wide_vector, wide_integers)

static double gaussian_sum(const float *points, size_t plane, size_t count, size_t dimension,
                           const float *query) {
    /* Float sums of a few thousand terms keep six digits; these are then summed in double. */
    const size_t chunk = 4096;
    double sum = 0;
    for (size_t begin = 0; begin < count; begin += chunk) {
        const size_t end = count - begin < chunk ? count : begin + chunk;
        wide_vector partial = {0};
        for (size_t b = begin; b < end; b += DSP_LANES) {
            wide_vector squared = {0};
            for (size_t i = 0; i < dimension; i++) {
                const wide_vector difference = load_wide(points + i * plane + b) - query[i];
                squared = FMA(difference, difference, squared);
            }
            partial += exponential(-0.5f * squared);
        }
        for (size_t i = 0; i < DSP_LANES; i++)
            sum += (double)partial[i];
    }
    return sum;
}

#include "dsp/dsp_shared_softmax.h"

#include "dsp/dsp_softmax_eights.h"

#include "dsp/dsp_softmax.h"

/* The larger and the smaller of two vectors, which compilers do not derive from comparisons. */
#if defined(__x86_64__)
#if DSP_LANES == 16
#define VECTOR_OF(what, type) _mm512_##what##_##type
#else
#define VECTOR_OF(what, type) _mm256_##what##_##type
#endif
#define LARGER_FLOAT(a, b) ((pair_vector)VECTOR_OF(max, ps)(a, b))
#define SMALLER_FLOAT(a, b) ((pair_vector)VECTOR_OF(min, ps)(a, b))
#define LARGER_DOUBLE(a, b) ((pair_double_vector)VECTOR_OF(max, pd)(a, b))
#define SMALLER_DOUBLE(a, b) ((pair_double_vector)VECTOR_OF(min, pd)(a, b))
#elif defined(__wasm__)
#include <wasm_simd128.h>
#define LARGER_FLOAT(a, b) ((pair_vector)wasm_f32x4_pmax((v128_t)(a), (v128_t)(b)))
#define SMALLER_FLOAT(a, b) ((pair_vector)wasm_f32x4_pmin((v128_t)(a), (v128_t)(b)))
#define LARGER_DOUBLE(a, b) ((pair_double_vector)wasm_f64x2_pmax((v128_t)(a), (v128_t)(b)))
#define SMALLER_DOUBLE(a, b) ((pair_double_vector)wasm_f64x2_pmin((v128_t)(a), (v128_t)(b)))
#else
#define LARGER_FLOAT(a, b) ((pair_vector)vmaxq_f32((float32x4_t)(a), (float32x4_t)(b)))
#define SMALLER_FLOAT(a, b) ((pair_vector)vminq_f32((float32x4_t)(a), (float32x4_t)(b)))
#define LARGER_DOUBLE(a, b) ((pair_double_vector)vmaxq_f64((float64x2_t)(a), (float64x2_t)(b)))
#define SMALLER_DOUBLE(a, b) ((pair_double_vector)vminq_f64((float64x2_t)(a), (float64x2_t)(b)))
#endif

/* (2^f - 1) / f for |f| <= 1/2, interpolated at the Chebyshev points, so that the power of 0 is 1:
 * the relative error of 1 + f q(f) is 5.1e-9 in float. */
#define FLOAT_TERMS                                                                                \
    { 1.5453163e-4f, 1.3390863e-3f, 9.6180826e-3f, 5.5503571e-2f, 2.4022651e-1f, 6.9314719e-1f, 1 }
/* The same with degree 11, good to 8.5e-18. */
#define DOUBLE_TERMS                                                                               \
    {                                                                                              \
        4.4549605981865186e-10, 7.072585949269223e-9, 1.0178062445845774e-7, 1.321544258792169e-6, \
            1.525273382983612e-5, 1.540353044173605e-4, 1.3333558146416936e-3,                     \
            9.618129107606888e-3, 5.55041086648216e-2, 2.4022650695910097e-1,                      \
            6.931471805599453e-1, 1                                                                \
    }

/* Sixteen lanes are slower: masks have to become vectors again, and rows of a window are short. */
#define WINDOW_LANES (DSP_LANES < 8 ? DSP_LANES : 8)
#include "dsp/dsp_window.h"

#define REAL float
#define INTEGER int32_t
#define PAIR_LANES DSP_LANES
#define LINE dcrf_pair_line
#define NAME(function) pair_##function
#define LARGER LARGER_FLOAT
#define SMALLER SMALLER_FLOAT
#define MAGIC 0x1.8p23f
#define MANTISSA_BITS 23
#define POWER_TERMS FLOAT_TERMS
#include "dsp/dsp_pairs.h"
#undef REAL
#undef INTEGER
#undef PAIR_LANES
#undef LINE
#undef NAME
#undef LARGER
#undef SMALLER
#undef MAGIC
#undef MANTISSA_BITS
#undef POWER_TERMS

#define REAL double
#define INTEGER int64_t
#if DSP_LANES == 16
#define PAIR_LANES 8
#elif DSP_LANES == 8
#define PAIR_LANES 4
#else
#define PAIR_LANES 2
#endif
#define LINE dcrf_pair_line_double
#define NAME(function) pair_double_##function
#define LARGER LARGER_DOUBLE
#define SMALLER SMALLER_DOUBLE
#define MAGIC 0x1.8p52
#define MANTISSA_BITS 52
#define POWER_TERMS DOUBLE_TERMS
#include "dsp/dsp_pairs.h"

#include "dsp/dsp_log_sums.h"

#if DSP_LANES > 4
#define EMBED_LANES DSP_LANES
#include "dsp/dsp_embed.h"
#endif
