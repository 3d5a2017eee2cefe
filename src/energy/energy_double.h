/* Energies in double with error bounds, and error bounds for those in float. */
#ifndef DCRF_ENERGY_ENERGY_DOUBLE_H
#define DCRF_ENERGY_ENERGY_DOUBLE_H

#include "energy/columns.h"
#include "filter/plan.h"

#include <dcrf/energy.h>

/* dcrf_energy_at_most before rounding up, and the error bound that it is rounded up by; NaN if a
 * kernel with nonzero weight has a compatibility that is not a distance. */
dcrf_status dcrf_energy_in_double(const dcrf_plan *plan, dcrf_workspace *workspace,
                                  const uint16_t *labels, dcrf_energy *energy,
                                  double *pairwise_of_kernel, size_t count, double *error_of,
                                  dcrf_error *error);

/* Add the error bound to the total, unless it is NaN. */
void dcrf_energy_round_up(dcrf_energy *energy, double error_of);

/* The error bound of dcrf_energy_in_double for a constant labelling, which is that of its unaries.
 */
double dcrf_energy_error_of_constant(const dcrf_model *model, dcrf_workspace *workspace,
                                     uint16_t label);

/* A bound on the error of dcrf_energy_of_labels, without another pass over the pairs; for
 * compatibilities that are distances only. `row_sums`: the total of the weighted row sums of all
 * kernels. */
double dcrf_energy_error_of_floats(const dcrf_plan *plan, dcrf_workspace *workspace,
                                   const uint16_t *labels, const dcrf_energy *energy,
                                   double row_sums);

/* What the columns leave out of a labelling's energy: the pairs, with mu minus the distance of the
 * cuts in place of mu. */
dcrf_status dcrf_energy_left_out(const dcrf_plan *plan, dcrf_workspace *workspace,
                                 const struct dcrf_columns *columns, const uint16_t *labels,
                                 double *energy, dcrf_error *error);

#endif
