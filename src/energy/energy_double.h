/* The errors of energies: dcrf_energy_in_double, and what is known of those in float. */
#ifndef DCRF_ENERGY_ENERGY_DOUBLE_H
#define DCRF_ENERGY_ENERGY_DOUBLE_H

#include "filter/plan.h"

#include <dcrf/energy.h>

/* How far the energy of a labelling can be from what dcrf_energy_of_labels says, without another
 * pass over the pairs; Potts compatibilities only. `row_sums`: those of all kernels with their
 * weights, in total. */
double dcrf_energy_error_of_floats(const dcrf_plan *plan, const uint16_t *labels,
                                   const dcrf_energy *energy, double row_sums);

#endif
