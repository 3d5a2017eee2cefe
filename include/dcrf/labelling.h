/* Simple labellings, and how far an energy is from a bound.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_LABELLING_H
#define DCRF_LABELLING_H

#include <dcrf/energy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every variable's label of smallest unary, the first among equals. */
DCRF_API void dcrf_label_by_unary(const dcrf_model *model, uint16_t *labels);

/* The label of the largest entry of every row, the first among equals: `variables` rows of
 * `label_count` floats, `stride` apart. */
DCRF_API void dcrf_label_by_marginals(const float *marginals, size_t variables, size_t label_count,
                                      size_t stride, uint16_t *labels);

/* The constant labelling of smallest energy, and that energy, as dcrf_energy_at_most has it. */
DCRF_API dcrf_status dcrf_best_constant(const dcrf_plan *plan, dcrf_workspace *workspace,
                                        uint16_t *label, dcrf_energy *energy, dcrf_error *error);

/* The sum of every variable's smallest unary: what no labelling's unary energy is below. */
DCRF_API double dcrf_unary_floor(const dcrf_model *model);

/* (energy - bound) / (energy - unary_floor), the bound being the larger of lower_bound and
 * unary_floor: between 0 (proven optimal) and 1 (nothing is proven). It does not change when a
 * constant is added to the unaries of a variable. NaN where energy or lower_bound is. */
DCRF_API double dcrf_relative_gap(double energy, double lower_bound, double unary_floor);

#ifdef __cplusplus
}
#endif
#endif
