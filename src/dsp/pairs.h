/* All pairs of two tiles of variables: the inner loops of the exact operator.
 *
 * A tile is DCRF_TILE variables. Their values come in planes of DCRF_TILE numbers, one per feature
 * or channel. The kernel values of two tiles a and b are a square matrix, row by row,
 *
 *   kernel[b * DCRF_TILE + a] = scale_a scale_b exp(-|f_a - f_b|^2 / 2)
 *                             = scale_a scale_b 2^-(sum_g weight_g sum_{i in g} (f_ai - f_bi)^2)
 *
 * where g are groups of features with the same sigma. The features are the caller's numbers, not
 * divided by sigma: the difference of two floats is rounded relative to itself, and that of two
 * pixel values is exact, while dividing and rounding the features first would cause a larger error
 * than everything else. In units u = 2^-24 (float) or 2^-53 (double) the relative error of a kernel
 * value is at most
 *
 *   DCRF_PAIR_ROUNDINGS + x (features + groups + 6),  x = |f_a - f_b|^2 / 2
 *
 * to first order: a feature's difference has one rounding, which counts twice in the square, and
 * the square has one; then there are at most features + groups sums, the weight and the product
 * with it; 2^-y turns an error of y into a relative one. The power itself, with the fraction of y
 * exact, has the error of its polynomial (5e-9 in float) and the roundings of its last steps; then
 * come the scales. Values below 2^-126 come out as up to 2^-126. */
#ifndef DCRF_DSP_PAIRS_H
#define DCRF_DSP_PAIRS_H

#include <dcrf/model.h>
#include <stddef.h>

#define DCRF_TILE 32
#define DCRF_PAIR_ROUNDINGS 5

/* The groups of features; the features of a group are consecutive. */
struct dcrf_metric {
    size_t features;
    size_t groups;
    size_t size[DCRF_MAX_FEATURES];
    double weight[DCRF_MAX_FEATURES];
};

/* The most tiles on side a of dcrf_pair_line. */
#define DCRF_LINE_TILES 4

/* The loops for one type of numbers. */
#define DCRF_DECLARE_PAIRS(real, loops, clipped_line)                                              \
    /* out[a] += sum_b kernel F and out_b[b] -= sum_a kernel F, F = clip(y_b - y_a) to [-1, 1], */ \
    /* over some tiles a and one tile b, `channels` planes of each. out_b = NULL: not wanted. */   \
    struct clipped_line {                                                                          \
        size_t tiles, channels;                                                                    \
        const real *kernel[DCRF_LINE_TILES], *y[DCRF_LINE_TILES];                                  \
        real *out[DCRF_LINE_TILES];                                                                \
        const real *y_b;                                                                           \
        real *out_b;                                                                               \
    };                                                                                             \
    struct loops {                                                                                 \
        /* The kernel values of two tiles; scales = NULL: 1. */                                    \
        void (*values)(const struct dcrf_metric *metric, const real *a, const real *b,             \
                       const real *scale_a, const real *scale_b, real *kernel);                    \
        /* out[c * TILE + a] += sum_b kernel[b * TILE + a] in[c * TILE + b]. */                    \
        void (*product)(const real *kernel, const real *in, real *out, size_t channels);           \
        void (*transpose)(const real *kernel, real *transposed);                                   \
        void (*line)(const struct clipped_line *line);                                             \
        /* out_a[a] = sum_b K_ab weight_b[b] and out_b[b] = sum_a K_ab weight_a[a], no scales. */  \
        void (*sums)(const struct dcrf_metric *metric, const real *a, const real *b,               \
                     const real *weight_a, const real *weight_b, real *out_a, real *out_b);        \
        /* *sum += sum_ab scale_a scale_b K_ab [label a != label b]; labels are small integers. */ \
        void (*disagreement)(const struct dcrf_metric *metric, const real *a, const real *b,       \
                             const real *scale_a, const real *scale_b, const real *labels_a,       \
                             const real *labels_b, double *sum);                                   \
    }

DCRF_DECLARE_PAIRS(float, dcrf_pairs, dcrf_pair_line);
DCRF_DECLARE_PAIRS(double, dcrf_pairs_double, dcrf_pair_line_double);

#endif
