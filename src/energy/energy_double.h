/* Energies and how far they can be off: in double, and what is known of those in float. */
#ifndef DCRF_ENERGY_ENERGY_DOUBLE_H
#define DCRF_ENERGY_ENERGY_DOUBLE_H

#include "filter/plan.h"

#include <dcrf/energy.h>

/* dcrf_energy_at_most before it is rounded up, and by how much that is; NaN where a kernel that
 * counts has a compatibility that is no distance. */
dcrf_status dcrf_energy_in_double(const dcrf_plan *plan, dcrf_workspace *workspace,
                                  const uint16_t *labels, dcrf_energy *energy,
                                  double *pairwise_of_kernel, double *error_of, dcrf_error *error);

/* Round the total up by its error, unless that is NaN. */
void dcrf_energy_round_up(dcrf_energy *energy, double error_of);

/* The error of dcrf_energy_in_double of a constant labelling: that of its unaries. */
double dcrf_energy_error_of_constant(const dcrf_model *model, uint16_t label);

/* How far the energy of a labelling can be from what dcrf_energy_of_labels says, without another
 * pass over the pairs; distances only. `row_sums`: those of all kernels with their
 * weights, in total. */
double dcrf_energy_error_of_floats(const dcrf_plan *plan, const uint16_t *labels,
                                   const dcrf_energy *energy, double row_sums);

#endif
