/* The energy of a labelling.
 *
 * All pairwise terms go through the operators of the plan: a plan of kind DCRF_OPERATOR_EXACT gives
 * the exact sums, any other the sums of its fast operators.
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
    double pairwise; /* of all kernels together */
    double cliques;
} dcrf_energy;

/* The energy of a labelling (one label a variable). `pairwise_of_kernel` may be NULL or has room
 * for one value a kernel. */
DCRF_API dcrf_status dcrf_energy_of_labels(const dcrf_plan *plan, dcrf_workspace *workspace,
                                           const uint16_t *labels, dcrf_energy *energy,
                                           double *pairwise_of_kernel, dcrf_error *error);

/* What the energy of a labelling is at most: summed up in double, and the total rounded up by all
 * that this can be off from the energy of the operators' own matrices, or for DCRF_OPERATOR_EXACT
 * from that of the formula (dcrf/model.h), with the features as they were given. It is the number
 * that solvers and certificates report of a labelling; its parts are not rounded up. Where a kernel
 * that counts has a compatibility that is negative somewhere or not zero on its diagonal, it is
 * what dcrf_energy_of_labels says. */
DCRF_API dcrf_status dcrf_energy_at_most(const dcrf_plan *plan, dcrf_workspace *workspace,
                                         const uint16_t *labels, dcrf_energy *energy,
                                         double *pairwise_of_kernel, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
