/* The plan of a model: its kernels, prepared for fast filtering. Plan once, solve many times.
 *
 * Every kernel of a model is an N x N matrix that is never stored. A plan has an operator for each,
 * of one of three kinds:
 *   exact    the sum itself, O(N^2), without pairs too far apart to matter: at most 2^-22 of a row
 *            sum is omitted;
 *   grid     the separable truncated Gaussian of a spatial kernel: exact except for truncation;
 *   lattice  the permutohedral lattice (Adams, Baek, Davis 2010) for all other kernels, calibrated
 *            so that weights mean what the formula says.
 * Plans are immutable; threads may share them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_PLAN_H
#define DCRF_PLAN_H

#include <dcrf/model.h>
#include <dcrf/workspace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dcrf_operator_kind {
    DCRF_OPERATOR_FAST = 0, /* grid for spatial kernels, lattice for the others */
    DCRF_OPERATOR_EXACT,
    DCRF_OPERATOR_GRID,
    DCRF_OPERATOR_LATTICE
} dcrf_operator_kind;
/* "fast", "exact", "grid", "lattice". */
DCRF_API const char *dcrf_operator_kind_name(dcrf_operator_kind kind);
DCRF_API int dcrf_operator_kind_from_name(const char *name, dcrf_operator_kind *kind);

typedef struct dcrf_plan dcrf_plan;

/* Build the operators of all kernels of a model. Weights and compatibilities are read from the
 * model when the plan is used, so changing them is free. After adding a kernel or changing the
 * origin, every call with the plan fails. If the workspace has a time limit
 * (dcrf_workspace_set_limit) and the model has half a million variables or more, a part of the plan
 * is built first: if the whole would not be ready in time, the call fails early with
 * DCRF_ERROR_INTERRUPTED, and the message says how long it would take. */
DCRF_API dcrf_status dcrf_plan_new(dcrf_plan **plan, const dcrf_model *model,
                                   dcrf_operator_kind kind, dcrf_workspace *workspace,
                                   dcrf_error *error);
DCRF_API void dcrf_plan_free(dcrf_plan **plan);
DCRF_API const dcrf_model *dcrf_plan_model(const dcrf_plan *plan);
DCRF_API size_t dcrf_plan_bytes(const dcrf_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
