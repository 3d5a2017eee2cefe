/* The energy of a labelling, and the relaxed objectives of a fractional one.
 *
 * All pairwise terms go through the operators of the plan: a plan of kind DCRF_OPERATOR_EXACT gives
 * the exact sums, any other the sums of its fast operators.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_ENERGY_H
#define DCRF_ENERGY_H

#include <dcrf/operator.h>

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

/* The same in double, and how far that can be from the truth: the energy of the operators' own
 * matrices, or for DCRF_OPERATOR_EXACT that of the formula (dcrf/model.h), with the features as
 * they were given. Where a kernel that counts is not Potts, it is what dcrf_energy_of_labels says,
 * and *error_of is NaN. */
DCRF_API dcrf_status dcrf_energy_in_double(const dcrf_plan *plan, dcrf_workspace *workspace,
                                           const uint16_t *labels, dcrf_energy *energy,
                                           double *pairwise_of_kernel, double *error_of,
                                           dcrf_error *error);

/* The QP objective of y, a block of one channel a label. Rows are distributions over labels, which
 * is checked to within 1e-3:
 *   phi'y + sum_m w_m sum_{a != b} k_ab sum_ij mu(i, j) y_ai y_bj + cliques,
 * the clique variables z at their minimum and the constant (M - 1) sum_p C_p subtracted:
 *   sum_p C_p ( sum_i min(1, sum_{a in p} (1 - y_ai)) - (M - 1) ).
 * Equal to the energy where y is integral. */
DCRF_API dcrf_status dcrf_energy_qp(const dcrf_plan *plan, dcrf_workspace *workspace,
                                    const float *y, size_t stride, dcrf_energy *energy,
                                    dcrf_error *error);

/* How the LP relaxation measures disagreement inside a clique. */
typedef enum dcrf_clique_form {
    DCRF_CLIQUE_MIN = 0, /* C_p (1 - sum_i min_a y_ai): never below the other */
    DCRF_CLIQUE_SPREAD   /* C_p max_i (max_a y_ai - min_a y_ai): the paper's */
} dcrf_clique_form;

/* The LP objective of y:
 *   phi'y + sum_m w_m sum_{a < b} k_ab sum_i |y_ai - y_bi| + cliques.
 * Potts only. Values of y are told apart by uniform bins of width 1 / bins on [0, 1] (2 <= bins <=
 * DCRF_MAX_BINS): pairs in one bin count as equal, so the pairwise part is low by at most
 * sum_{a < b} K_ab / bins a label, and exact where y is integral. */
DCRF_API dcrf_status dcrf_energy_lp(const dcrf_plan *plan, dcrf_workspace *workspace,
                                    const float *y, size_t stride, size_t bins,
                                    dcrf_clique_form form, dcrf_energy *energy, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
