/* The exact operator: the Gaussian sum itself,
 *
 *   (K v)_a = s_a sum_b exp(-|f_a - f_b|^2 / 2) s_b v_b
 *
 * over all pairs of variables but those that are too far apart to matter. A k-d tree over the
 * features puts the variables in an order in which neighbours are together (exact_order.c);
 * DCRF_TILE of them are a tile, BLOCK_TILES tiles a block. Pairs of tiles are left out where the
 * sum over all that is left out stays below a given part of every row sum (exact_near.c), and what
 * it is at most can be asked. Pairs of blocks are worked on in rounds in which no block comes
 * twice, so each pair of variables is computed once, for both, by any number of threads and with
 * one result (exact_sweep.h). */
#ifndef DCRF_FILTER_EXACT_EXACT_H
#define DCRF_FILTER_EXACT_EXACT_H

#include "dsp/dsp.h"
#include "filter/operator.h"

/* What may be left out, of every row sum: in float, and in double. */
#define DCRF_EXACT_LEFT_OUT 0x1p-22
#define DCRF_EXACT_LEFT_OUT_DOUBLE 0x1p-34
/* Values and sums in double, relative, but for what is left out. */
#define DCRF_EXACT_ERROR_DOUBLE 0x1p-40

/* Tiles to a block: the pairs of tiles of two blocks are the bits of one word. */
#define BLOCK_TILES 8

/* Channels that go through the pairs together. */
#define MOST_CHANNELS 32

/* Which pairs of tiles count. One word for each pair of blocks i <= j, bit BLOCK_TILES * (tile of
 * i)
 * + (tile of j). */
struct dcrf_exact_near {
    uint64_t *words;
    size_t pairs_of_tiles; /* how many: for those who ask what it costs */
};

struct dcrf_exact {
    dcrf_operator base;
    struct dcrf_metric metric;
    size_t tiles, blocks;
    uint32_t *order; /* place -> variable; the last variable again beyond the end */
    /* Planes of the features, tile after tile, each as a double and rounded to float; and the
     * scales of the places, zero beyond the end. */
    double *features, *scale;
    float *features_single, *scale_single;
    double rounded_features; /* |f - its float|, in units of sigma, at most */
    bool has_exact_squares;  /* sums of squares of float features are not rounded */
    /* The tiles' boxes: low and high of feature i at box[(2 i + side) * tiles + tile], in units in
     * which the kernel is 2^-distance^2. */
    double *box;
    uint16_t *limit; /* of each tile: exact_near.c */
    /* Which pairs count in float, and in double. */
    struct dcrf_exact_near near, near_double;
    double *row_sums;     /* one a place, without the scales */
    double row_sum_error; /* of them, relative */
    bool is_normalized;
    double least_row_sum; /* a lower bound */
};

static inline size_t dcrf_exact_word(const struct dcrf_exact *op, size_t i, size_t j) {
    return i * op->blocks - i * (i + 1) / 2 + j;
}

/* Where feature k of a place stands in the planes. */
static inline size_t dcrf_exact_at(const struct dcrf_exact *op, size_t place, size_t k) {
    return (place / DCRF_TILE * op->metric.features + k) * DCRF_TILE + place % DCRF_TILE;
}

/* Memory for an operator; and, when order and features are there, all that follows from them. */
dcrf_status dcrf_exact_allocate(struct dcrf_exact **op, size_t variables,
                                const struct dcrf_metric *metric, dcrf_error *error);
dcrf_status dcrf_exact_measure_tiles(struct dcrf_exact *op, dcrf_workspace *workspace,
                                     dcrf_error *error);

/* The operator of the variables with kept[a] != 0 (at least one), in their order. */
dcrf_status dcrf_exact_part(const struct dcrf_exact *whole, const uint8_t *kept,
                            dcrf_workspace *workspace, dcrf_operator **out, dcrf_error *error);

/* Order the variables, whose features stand in rows of `dimension` floats. */
dcrf_status dcrf_exact_order(const float *rows, size_t variables, size_t dimension, uint32_t *order,
                             dcrf_workspace *workspace, dcrf_error *error);

/* Which pairs count in double, from the boxes; and the squared distance of two boxes, at most. */
dcrf_status dcrf_exact_find_near(struct dcrf_exact *op, dcrf_workspace *workspace,
                                 dcrf_error *error);
double dcrf_exact_nearest(const struct dcrf_exact *op, size_t one, size_t other);

/* The row sums, and then which pairs count in float: with the step of what two tiles give a row of
 * each other at most, for each bit of the words. */
dcrf_status dcrf_exact_measure(struct dcrf_exact *op, dcrf_workspace *workspace, dcrf_error *error);
dcrf_status dcrf_exact_refine(struct dcrf_exact *op, const uint8_t *steps,
                              dcrf_workspace *workspace, dcrf_error *error);
uint8_t dcrf_exact_step(double sum);

/* left_out[a] >= sum of K_ab over the pairs that are left out, in float and in double. */
dcrf_status dcrf_exact_left_out(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                double *left_out, dcrf_error *error);
dcrf_status dcrf_exact_left_out_double(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                       double *left_out, dcrf_error *error);
/* sums[a] = sum of K_ab over the pairs that count in double alone, in float. */
dcrf_status dcrf_exact_sum_difference(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                      double *sums, dcrf_error *error);

/* The roundings of a kernel value that is exp(-exponent) (dsp/pairs.h). */
double dcrf_exact_value_roundings(const struct dcrf_exact *op, double exponent);

/* Leave nothing out, for the tests. Before the operator is shared. */
void dcrf_exact_keep_all(dcrf_operator *op);

/* Call task(context, i, j, worker) for all pairs of blocks i <= j, such that no two calls that run
 * at the same time share a block and that the calls with one block have one order. Fails where the
 * workspace's user wants an end. */
typedef void (*dcrf_block_task)(void *context, size_t i, size_t j, size_t worker);
dcrf_status dcrf_exact_rounds(const struct dcrf_exact *op, dcrf_workspace *workspace,
                              dcrf_block_task task, void *context, dcrf_error *error);

/* out = factor s K s in (or +=), rows of floats; and in double. */
dcrf_status dcrf_exact_apply(const struct dcrf_exact *op, dcrf_workspace *workspace,
                             const struct dcrf_application *application, dcrf_error *error);
dcrf_status dcrf_exact_apply_double(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                    const double *in, double *out, size_t channels,
                                    dcrf_error *error);

/* *sum = sum_ab K_ab [x_a != x_b], in float or in double. */
dcrf_status dcrf_exact_disagreement(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                    const uint16_t *labels, bool in_double, double *sum,
                                    dcrf_error *error);

/* The ordered filter with bins, and with the clipped line. */
dcrf_status dcrf_exact_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                               const struct dcrf_ordered *ordered, dcrf_error *error);
dcrf_status dcrf_exact_line(const struct dcrf_exact *op, dcrf_workspace *workspace,
                            const struct dcrf_line *line, dcrf_error *error);
dcrf_status dcrf_exact_line_double(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                   const struct dcrf_line *line, double *out, dcrf_error *error);

#endif
