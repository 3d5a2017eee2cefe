/* From marginals to labellings. */
#ifndef DCRF_ROUND_ROUND_H
#define DCRF_ROUND_ROUND_H

#include "core/rng.h"
#include "core/threads.h"

#include <stdint.h>

/* Rows of `labels` floats, `stride` apart. */
struct dcrf_marginals {
    const float *values;
    size_t variables;
    size_t labels;
    size_t stride;
};

/* The label of the largest entry of every row, the first among equals. */
void dcrf_round_largest(const struct dcrf_marginals *marginals, dcrf_pool *pool, uint16_t *labels);

/* The block of distributions that a labelling is: one at each variable's label, `stride` apart. */
void dcrf_round_inverse(const uint16_t *labels, size_t variables, size_t stride, float *block);

/* Threshold rounding (Kleinberg and Tardos 2002): draw a label i and a threshold t, both uniform,
 * and give i to every variable without a label that has y_ai >= t; repeat until all have one. A
 * variable takes label i with probability y_ai, and variables with similar rows tend to take the
 * same label.
 *
 * Where labels are ordered, one threshold t is common to all variables: each takes the first label
 * at which its entries, added up in that order, reach t. Variables with similar rows then take
 * labels that are near each other: |x_a - x_b| is on average the distance of the rows. */
struct dcrf_thresholds;

/* Room for the draws of a model with that many labels; NULL when memory is out. `order`: the labels
 * one after the other, which outlives it, or NULL. */
struct dcrf_thresholds *dcrf_thresholds_new(size_t labels, const uint16_t *order);
void dcrf_thresholds_free(struct dcrf_thresholds *thresholds);

/* What the draws need to know of marginals. */
void dcrf_thresholds_observe(struct dcrf_thresholds *thresholds,
                             const struct dcrf_marginals *marginals);

/* One labelling, of the marginals that were looked at last. */
void dcrf_round_threshold(struct dcrf_thresholds *thresholds,
                          const struct dcrf_marginals *marginals, dcrf_pool *pool, dcrf_rng *rng,
                          uint16_t *labels);

#endif
