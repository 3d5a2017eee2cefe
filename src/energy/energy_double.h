/* The energy of a labelling as good as it gets, and how good that is. */
#ifndef DCRF_ENERGY_ENERGY_DOUBLE_H
#define DCRF_ENERGY_ENERGY_DOUBLE_H

#include "filter/plan.h"

#include <dcrf/energy.h>

/* By the operators in double; Potts compatibilities only. *error_of: how far it can be from the
 * energy of the operators' own matrices, or of the kernels' formula where the operators are those
 * of the formula, with what they leave out. */
dcrf_status dcrf_energy_in_double(const dcrf_plan *plan, dcrf_workspace *workspace,
                                  const uint16_t *labels, dcrf_energy *energy, double *error_of,
                                  dcrf_error *error);

#endif
