/* Simple labellings, and the gap between an energy and a bound.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_LABELLING_H
#define DCRF_LABELLING_H

#include <dcrf/energy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `labels` holds `count` elements in the next two calls. Fewer than variables are an error, and
 * nothing is written.
 *
 * Give every variable its label of lowest unary energy, the first if several tie. */
DCRF_API dcrf_status dcrf_label_by_unary(const dcrf_model *model, uint16_t *labels, size_t count,
                                         dcrf_error *error);

/* Give every variable the label of its largest marginal, the first if several tie. `marginals` has
 * `variables` rows of `label_count` floats, with `stride` floats from one row to the next. */
DCRF_API dcrf_status dcrf_label_by_marginals(const float *marginals, size_t variables,
                                             size_t label_count, size_t stride, uint16_t *labels,
                                             size_t count, dcrf_error *error);

/* The best labelling with one label everywhere, and its energy as given by dcrf_energy_at_most. */
DCRF_API dcrf_status dcrf_best_constant(const dcrf_plan *plan, dcrf_workspace *workspace,
                                        uint16_t *label, dcrf_energy *energy, dcrf_error *error);

/* The sum of the lowest unary energies of all variables: a lower bound on the unary energy. */
DCRF_API double dcrf_unary_floor(const dcrf_model *model);

/* (energy - bound) / (energy - unary_floor), where bound is the larger of lower_bound and
 * unary_floor: from 0 (proven optimal) to 1 (nothing proven). Adding a constant to the unary
 * energies of a variable does not change it. NaN if energy or lower_bound is NaN. */
DCRF_API double dcrf_relative_gap(double energy, double lower_bound, double unary_floor);

#ifdef __cplusplus
}
#endif
#endif
