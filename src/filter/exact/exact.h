/* The exact operator: the Gaussian sum itself,
 *
 *   (K v)_a = s_a sum_b exp(-|f_a - f_b|^2 / 2) s_b v_b
 *
 * over all pairs of variables except those too far apart to matter. A k-d tree over the features
 * orders the variables so that neighbours are close together (exact_order.c); DCRF_TILE variables
 * form a tile, BLOCK_TILES tiles a block. Pairs of tiles are omitted as long as the omitted sum
 * stays below a given fraction of every row sum (exact_near.c); dcrf_exact_left_out bounds that
 * sum. Pairs of blocks are processed in rounds in which no block occurs twice, so each kernel value
 * is computed once, for both variables, and the result does not depend on the number of threads
 * (exact_sweep.h). */
#ifndef DCRF_FILTER_EXACT_EXACT_H
#define DCRF_FILTER_EXACT_EXACT_H

#include "core/owned.h"
#include "dsp/dsp.h"
#include "filter/operator.h"

/* The fraction of every row sum that may be omitted, in float and in double. */
#define DCRF_EXACT_LEFT_OUT 0x1p-22
#define DCRF_EXACT_LEFT_OUT_DOUBLE 0x1p-34
/* Relative error of values and sums in double, not counting omitted pairs. */
#define DCRF_EXACT_ERROR_DOUBLE 0x1p-40

/* Tiles per block: the pairs of tiles of two blocks are the bits of one 64-bit word. */
#define BLOCK_TILES 8

/* Maximum number of channels processed together. */
#define MOST_CHANNELS 32

/* The pairs of tiles that are kept: one word per pair of blocks i <= j, with bit BLOCK_TILES *
 * (tile of i) + (tile of j). */
struct dcrf_exact_near {
    uint64_t *words;
    size_t pairs_of_tiles; /* their number, a measure of the cost */
};

struct dcrf_exact {
    dcrf_operator base;
    struct dcrf_metric metric;
    size_t tiles, blocks;
    uint32_t *order; /* place -> variable; beyond the end, the last variable repeated */
    /* The features as planes, tile by tile, and the scale of each place (zero beyond the end), both
     * in double and rounded to float. */
    double *features, *scale;
    float *features_single, *scale_single;
    double rounded_features; /* upper bound on |f - (float)f|, in units of sigma */
    bool has_exact_squares;  /* sums of squared differences of float features are exact */
    /* Bounding boxes of the tiles: low and high of feature i at box[(2 i + side) * tiles + tile],
     * in units in which the kernel is 2^-distance^2. */
    double *box;
    uint16_t *limit; /* one per tile: exact_near.c */
    /* The pairs kept in float and in double. */
    struct dcrf_exact_near near, near_double;
    double *row_sums;     /* one per place, without the scales */
    double row_sum_error; /* relative error of row_sums */
    bool is_normalized;
    double least_row_sum; /* a lower bound */
    struct dcrf_owned owned;
};

static inline const struct dcrf_exact *dcrf_exact_of(const dcrf_operator *op) {
    return (const struct dcrf_exact *)op;
}

static inline size_t dcrf_exact_word(const struct dcrf_exact *op, size_t i, size_t j) {
    return i * op->blocks - i * (i + 1) / 2 + j;
}

/* Index of feature k of a place in the planes. */
static inline size_t dcrf_exact_at(const struct dcrf_exact *op, size_t place, size_t k) {
    return (place / DCRF_TILE * op->metric.features + k) * DCRF_TILE + place % DCRF_TILE;
}

/* Allocate an operator; and, once order and features are filled in, compute everything else. */
dcrf_status dcrf_exact_allocate(struct dcrf_exact **op, size_t variables,
                                const struct dcrf_metric *metric, dcrf_error *error);
dcrf_status dcrf_exact_measure_tiles(struct dcrf_exact *op, dcrf_workspace *workspace,
                                     dcrf_error *error);

/* The operator of the variables with kept[a] != 0 (at least one), in their order. */
dcrf_status dcrf_exact_part(const dcrf_operator *whole, const uint8_t *kept,
                            dcrf_workspace *workspace, dcrf_operator **out, dcrf_error *error);

/* Order the variables, whose features are given in rows of `dimension` floats. */
dcrf_status dcrf_exact_order(const float *rows, size_t variables, size_t dimension, uint32_t *order,
                             dcrf_workspace *workspace, dcrf_error *error);

/* Find the pairs to keep in double, from the boxes; and a lower bound on the squared distance
 * between the boxes of two tiles. */
dcrf_status dcrf_exact_find_near(struct dcrf_exact *op, dcrf_workspace *workspace,
                                 dcrf_error *error);
double dcrf_exact_nearest(const struct dcrf_exact *op, size_t one, size_t other);

/* Compute the row sums, and from them the pairs to keep in float. `steps`: for each bit of the
 * words, the step (dcrf_exact_step) of the most that two tiles contribute to any of each other's
 * rows. */
dcrf_status dcrf_exact_measure(struct dcrf_exact *op, dcrf_workspace *workspace, dcrf_error *error);
dcrf_status dcrf_exact_refine(struct dcrf_exact *op, const uint8_t *steps,
                              dcrf_workspace *workspace, dcrf_error *error);
uint8_t dcrf_exact_step(double sum);

/* left_out[a] >= sum of K_ab over the omitted pairs, in float and in double. */
dcrf_status dcrf_exact_left_out(const dcrf_operator *op, dcrf_workspace *workspace, bool in_double,
                                double *left_out, dcrf_error *error);
/* sums[a] = sum of K_ab over the pairs kept in double only, summed in float. */
dcrf_status dcrf_exact_sum_difference(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                      double *sums, dcrf_error *error);

/* Number of roundings in a kernel value exp(-exponent) (dsp/pairs.h). */
double dcrf_exact_value_roundings(const struct dcrf_exact *op, double exponent);

/* Omit nothing, for tests. Call before the operator is shared. */
void dcrf_exact_keep_all(dcrf_operator *op);

/* Call task(context, i, j, worker) for all pairs of blocks i <= j, such that concurrent calls never
 * share a block and the calls for a given block always come in the same order. Fails if
 * interrupted. */
typedef void (*dcrf_block_task)(void *context, size_t i, size_t j, size_t worker);
dcrf_status dcrf_exact_rounds(const struct dcrf_exact *op, dcrf_workspace *workspace,
                              dcrf_block_task task, void *context, dcrf_error *error);

/* out = factor s K s in (or +=), rows of floats; and in double. */
dcrf_status dcrf_exact_apply(const dcrf_operator *op, dcrf_workspace *workspace,
                             const struct dcrf_application *application, dcrf_error *error);
dcrf_status dcrf_exact_apply_double(const dcrf_operator *op, dcrf_workspace *workspace,
                                    const double *in, double *out, size_t channels,
                                    dcrf_error *error);

/* *sum = sum_ab K_ab [x_a != x_b], in float or in double. */
dcrf_status dcrf_exact_disagreement(const dcrf_operator *op, dcrf_workspace *workspace,
                                    const uint16_t *labels, bool in_double, double *sum,
                                    dcrf_error *error);

/* The ordered filter with bins, and with the clipped line. */
dcrf_status dcrf_exact_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                               const struct dcrf_ordered *ordered, dcrf_error *error);
dcrf_status dcrf_exact_line(const dcrf_operator *op, dcrf_workspace *workspace,
                            const struct dcrf_line *line, dcrf_error *error);
dcrf_status dcrf_exact_line_double(const dcrf_operator *op, dcrf_workspace *workspace,
                                   const struct dcrf_line *line, double *out, dcrf_error *error);

#endif
