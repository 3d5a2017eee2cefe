/* The pairwise term as a quadratic form y' Psi y, shared by the methods and the moves.
 *
 *   (Psi y)_ai = sum_m w_m sum_{b != a} k_m(a, b) sum_j mu_m(i, j) y_bj
 *
 * Kernels with Potts compatibility need no sum over labels: with S = sum_m w_m (K_m - diag) y, (Psi
 * y)_ai = sum_j S_aj - S_ai, and the first part does not depend on i, so it drops out of every
 * comparison between labels. A matrix that is a sum of cuts (model/cuts.h) is applied cut by cut.
 * The field B of y is therefore S if all kernels are Potts and Psi y otherwise, and with the
 * constants `same_label_factor` and `all_factor` of the coupling
 *
 *   (Psi y)_ai = same_label_factor B_ai + all_factor sum_j B_aj,
 *   y' Psi y = sum_ai B_ai (all_factor + same_label_factor y_ai)
 *
 * (the latter if rows of y sum to one). The sum for Potts has no cancellation. */
#ifndef DCRF_ENERGY_COUPLING_H
#define DCRF_ENERGY_COUPLING_H

#include "filter/plan.h"

/* Kernels that share a compatibility: all Potts kernels are group 0 (possibly empty); every other
 * kernel is a separate group. Kernels with weight zero are in none. */
struct dcrf_coupling_group {
    size_t first, count; /* in `kernels` */
    dcrf_compatibility compatibility;
    const float *values;          /* of the compatibility; owned by the model */
    const struct dcrf_cuts *cuts; /* whose sum is the matrix, owned by the model; or NULL */
    float *diagonal;              /* sum of w_m diag(K_m), one per variable */
};

struct dcrf_coupling {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    size_t group_count;
    struct dcrf_coupling_group *groups;
    size_t *kernels;
    float *block;            /* one block of the model's stride; NULL if all kernels are Potts */
    float same_label_factor; /* -1 if all kernels are Potts, else 1 */
    float all_factor;        /* 1 if all kernels are Potts, else 0 */
};

dcrf_status dcrf_coupling_new(struct dcrf_coupling **coupling, const dcrf_plan *plan,
                              dcrf_workspace *workspace, dcrf_error *error);
void dcrf_coupling_free(struct dcrf_coupling **coupling);

bool dcrf_coupling_is_potts(const struct dcrf_coupling *coupling);

/* out = sum of w_m K_m in over the kernels of a group, with (sum) or without (sum_others) the
 * diagonals. */
dcrf_status dcrf_coupling_sum(const struct dcrf_coupling *coupling, size_t group, const float *in,
                              float *out, size_t channels, size_t stride, dcrf_error *error);
dcrf_status dcrf_coupling_sum_others(const struct dcrf_coupling *coupling, size_t group,
                                     const float *in, float *out, size_t channels, size_t stride,
                                     dcrf_error *error);

/* The field B of y: blocks of one channel per label with the model's stride. */
dcrf_status dcrf_coupling_field(const struct dcrf_coupling *coupling, const float *y, float *field,
                                dcrf_error *error);

#endif
