/* From marginals to labellings, at random. */
#ifndef DCRF_ROUND_ROUND_H
#define DCRF_ROUND_ROUND_H

#include "core/rng.h"
#include "energy/labelling.h"

/* Threshold rounding (Kleinberg and Tardos 2002): draw a label i and a threshold t, both uniform,
 * and assign i to every unlabelled variable with y_ai >= t; repeat until all are labelled. A
 * variable takes label i with probability y_ai, and variables with similar rows tend to take the
 * same label.
 *
 * If labels are ordered, a single threshold t is shared by all variables: each takes the first
 * label at which the cumulative sum of its entries, in that order, reaches t. Variables with
 * similar rows then take labels that are near each other: the expected |x_a - x_b| is the distance
 * of the rows. */
struct dcrf_thresholds;

/* Memory for the draws of a model with this many labels; NULL if out of memory. `order`: the labels
 * in order, which must outlive the result, or NULL. */
struct dcrf_thresholds *dcrf_thresholds_new(size_t labels, const uint16_t *order);
void dcrf_thresholds_free(struct dcrf_thresholds *thresholds);

/* Collect the statistics of the marginals that the draws need. */
void dcrf_thresholds_observe(struct dcrf_thresholds *thresholds,
                             const struct dcrf_marginals *marginals);

/* Draw one labelling. The marginals must be those last observed. */
void dcrf_round_threshold(struct dcrf_thresholds *thresholds,
                          const struct dcrf_marginals *marginals, dcrf_pool *pool, dcrf_rng *rng,
                          uint16_t *labels);

/* The labelling of one given threshold in (0, 1]; for ordered labels. */
void dcrf_round_in_order(const struct dcrf_thresholds *thresholds,
                         const struct dcrf_marginals *marginals, dcrf_pool *pool, double threshold,
                         uint16_t *labels);

#endif
