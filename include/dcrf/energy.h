/* The energy of a labelling.
 *
 * All pairwise terms use the operators of the plan: exact sums for DCRF_OPERATOR_EXACT, otherwise
 * those of the fast operators.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_ENERGY_H
#define DCRF_ENERGY_H

#include <dcrf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrf_energy {
    double total;
    double unary;
    double pairwise; /* all kernels together */
    double cliques;
} dcrf_energy;

/* The energy of a labelling: one label per variable. `pairwise_of_kernel` (may be NULL) receives
 * one value per kernel and holds `count` elements. Fewer than kernels are an error, and nothing is
 * written. */
DCRF_API dcrf_status dcrf_energy_of_labels(const dcrf_plan *plan, dcrf_workspace *workspace,
                                           const uint16_t *labels, dcrf_energy *energy,
                                           double *pairwise_of_kernel, size_t count,
                                           dcrf_error *error);

/* An upper bound on the energy of a labelling: summed in double, with the total rounded up by a
 * bound on the rounding error. It bounds the energy of the plan's operator matrices or, for
 * DCRF_OPERATOR_EXACT, that of the formula (dcrf/model.h) with the features as given. Solvers and
 * certificates report this value. Its parts are not rounded up. If a kernel with nonzero weight has
 * a compatibility with a negative entry or a nonzero diagonal, the result is that of
 * dcrf_energy_of_labels. `pairwise_of_kernel` is as there. */
DCRF_API dcrf_status dcrf_energy_at_most(const dcrf_plan *plan, dcrf_workspace *workspace,
                                         const uint16_t *labels, dcrf_energy *energy,
                                         double *pairwise_of_kernel, size_t count,
                                         dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
