/* Kernels as linear operators: plan once, apply many times.
 *
 * An operator is the N x N matrix K of one kernel, with its normalization but without its weight,
 * that is never stored. It is immutable and may be shared between threads; a workspace (threads and
 * scratch memory) belongs to one caller at a time, and a call that finds it in use by another
 * thread fails.
 *
 * Three implementations:
 *   exact    the sum itself, O(N^2), but for pairs that are too far apart to matter: at most 2^-22
 *            of a row sum is left out;
 *   grid     the separable truncated Gaussian of a spatial kernel: exact but for its truncation;
 *   lattice  the permutohedral lattice (Adams, Baek, Davis 2010) for everything else, calibrated so
 *            that a weight means what the formula says.
 *
 * A block is an array of one row of floats a variable: row a starts at a * stride, its first
 * `channels` floats count, and stride is at least dcrf_padded(channels) and a multiple of
 * DCRF_NARROW_LANES. What lies in the padding of the output is unspecified; the padding of the
 * input must be finite.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_OPERATOR_H
#define DCRF_OPERATOR_H

#include <dcrf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DCRF_NARROW_LANES 4
#define DCRF_LANES 8

/* DCRF_NARROW_LANES for as many channels or fewer; else `channels` rounded up to a multiple of
 * DCRF_LANES. */
DCRF_API size_t dcrf_padded(size_t channels);

/* ---- workspace ------------------------------------------------------------------------------ */

typedef struct dcrf_workspace dcrf_workspace;

/* threads = 0: one for each core. Results do not depend on the number of threads. */
DCRF_API dcrf_status dcrf_workspace_new(dcrf_workspace **workspace, size_t threads,
                                        dcrf_error *error);
DCRF_API void dcrf_workspace_free(dcrf_workspace **workspace);
DCRF_API size_t dcrf_workspace_threads(const dcrf_workspace *workspace);
DCRF_API size_t dcrf_workspace_bytes(const dcrf_workspace *workspace);

/* Let whatever is done with the workspace end early: `time_limit_s` seconds from now (0: no limit),
 * or when `cancel` (NULL: none) returns something other than 0. It is asked again and again by the
 * thread that makes the call. A run that has a labelling then stops with it (DCRF_STOP_TIME,
 * DCRF_STOP_CANCELLED), besides what its own settings say; a call that has nothing to give fails
 * with DCRF_ERROR_INTERRUPTED, and what it was to write is unspecified. A workspace begins without
 * limits, and two calls of this replace each other. */
DCRF_API void dcrf_workspace_set_limit(dcrf_workspace *workspace, double time_limit_s,
                                       int (*cancel)(void *user), void *cancel_user);

/* ---- operators ------------------------------------------------------------------------------ */

typedef struct dcrf_operator dcrf_operator;

typedef enum dcrf_operator_kind {
    DCRF_OPERATOR_FAST = 0, /* grid for spatial kernels, lattice for the others */
    DCRF_OPERATOR_EXACT,
    DCRF_OPERATOR_GRID,
    DCRF_OPERATOR_LATTICE
} dcrf_operator_kind;

/* Which matrix to apply. The exact and the grid operator are symmetric, so all three are one there;
 * on the lattice a one-way blur is not symmetric, and the model's operator is the symmetrized one.
 */
typedef enum dcrf_direction {
    DCRF_SYMMETRIC = 0, /* the model's operator */
    DCRF_FORWARD,       /* one way through the lattice */
    DCRF_ADJOINT        /* the transpose of DCRF_FORWARD */
} dcrf_direction;

/* The operator of one kernel over a grid. */
DCRF_API dcrf_status dcrf_operator_new(dcrf_operator **op, const dcrf_grid *grid,
                                       const dcrf_kernel *kernel, dcrf_operator_kind kind,
                                       dcrf_workspace *workspace, dcrf_error *error);
DCRF_API void dcrf_operator_free(dcrf_operator **op);

DCRF_API dcrf_operator_kind dcrf_operator_kind_of(const dcrf_operator *op);
DCRF_API size_t dcrf_operator_variables(const dcrf_operator *op);
DCRF_API size_t dcrf_operator_bytes(const dcrf_operator *op);    /* memory held by the plan */
DCRF_API size_t dcrf_operator_vertices(const dcrf_operator *op); /* of the lattice; 0 elsewhere */

/* out = K in, for a block of channels. in and out must not overlap. */
DCRF_API dcrf_status dcrf_operator_apply(const dcrf_operator *op, dcrf_workspace *workspace,
                                         dcrf_direction direction, const float *in, float *out,
                                         size_t channels, size_t stride, dcrf_error *error);

/* The diagonal of the symmetric operator, and its row sums K 1: one float a variable. */
DCRF_API dcrf_status dcrf_operator_diagonal(const dcrf_operator *op, dcrf_workspace *workspace,
                                            float *diagonal, dcrf_error *error);
DCRF_API dcrf_status dcrf_operator_row_sums(const dcrf_operator *op, dcrf_workspace *workspace,
                                            float *row_sums, dcrf_error *error);

/* ---- the ordered filter --------------------------------------------------------------------- */

/* The most bins a level set may have. */
#define DCRF_MAX_BINS 256

/* How values are told apart. `table` = NULL: values are sorted into `count` bins by the count - 1
 * ascending thresholds `levels`, and F(y_a, y_b) is the sign of bin(y_b) - bin(y_a). Otherwise
 * `levels` are `count` ascending nodes and F is given at pairs of nodes, table[h * count + k] =
 * F(levels[h], levels[k]), interpolated linearly in both arguments and constant beyond the first
 * and last node. The table must be antisymmetric, so that F(u, v) = -F(v, u). */
typedef struct dcrf_levels {
    size_t count;
    const float *levels;
    const float *table;
} dcrf_levels;

/* out_a = sum_b K_ab F(y_a, y_b), with the symmetric operator, for a block of channels; each
 * channel is filtered by itself, so any stride of at least `channels` will do. */
DCRF_API dcrf_status dcrf_operator_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                                           const dcrf_levels *levels, const float *y, float *out,
                                           size_t channels, size_t stride, dcrf_error *error);

/* ---- the plan of a model -------------------------------------------------------------------- */

typedef struct dcrf_plan dcrf_plan;

/* The operators of all kernels of a model. Weights and compatibilities are read from the model when
 * the plan is used, so changing them costs nothing; after another kernel or origin every call with
 * the plan fails. */
DCRF_API dcrf_status dcrf_plan_new(dcrf_plan **plan, const dcrf_model *model,
                                   dcrf_operator_kind kind, dcrf_workspace *workspace,
                                   dcrf_error *error);
DCRF_API void dcrf_plan_free(dcrf_plan **plan);
DCRF_API const dcrf_model *dcrf_plan_model(const dcrf_plan *plan);
DCRF_API const dcrf_operator *dcrf_plan_operator(const dcrf_plan *plan, size_t kernel);
DCRF_API size_t dcrf_plan_bytes(const dcrf_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
