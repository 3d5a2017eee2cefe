/* For research: single operators, the ordered filter, variants of the LP.
 * dcrf/dcrf.h does not include this header, and its contents may change in any version.
 * Blocks: see dcrf/grid.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_EXPERIMENTAL_H
#define DCRF_EXPERIMENTAL_H

#include <dcrf/energy.h>
#include <dcrf/solver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operators ------------------------------------------------------------------------------ */

/* The matrix K of one kernel, with its normalization but without its weight; see dcrf/plan.h.
 * Immutable; threads may share it. */
typedef struct dcrf_operator dcrf_operator;

/* Which matrix to apply. The exact and grid operators are symmetric, so all three are the same. On
 * the lattice a one-way blur is not symmetric; the model uses the symmetrized operator. */
typedef enum dcrf_direction {
    DCRF_SYMMETRIC = 0, /* the model's operator */
    DCRF_FORWARD,       /* the one-way blur */
    DCRF_ADJOINT        /* the transpose of DCRF_FORWARD */
} dcrf_direction;
/* "symmetric", "forward", "adjoint". */
DCRF_API const char *dcrf_direction_name(dcrf_direction direction);
DCRF_API int dcrf_direction_from_name(const char *name, dcrf_direction *direction);

/* The operator of one kernel over a grid. */
DCRF_API dcrf_status dcrf_operator_new(dcrf_operator **op, const dcrf_grid *grid,
                                       const dcrf_kernel *kernel, dcrf_operator_kind kind,
                                       dcrf_workspace *workspace, dcrf_error *error);
DCRF_API void dcrf_operator_free(dcrf_operator **op);

DCRF_API dcrf_operator_kind dcrf_operator_kind_of(const dcrf_operator *op);
DCRF_API size_t dcrf_operator_variables(const dcrf_operator *op);
DCRF_API size_t dcrf_operator_bytes(const dcrf_operator *op);    /* memory held by the operator */
DCRF_API size_t dcrf_operator_vertices(const dcrf_operator *op); /* lattice only; otherwise 0 */

/* The lattices of `pictures` pictures as one operator, from features on the workspace's device: one
 * row of `dimension` floats per variable, already divided by the sigmas, the pictures one after the
 * other and equally large. It is normalized symmetrically, or with is_symmetric = 0 neither
 * normalized nor calibrated. With is_waiting = 0 the host does not wait for the device; memory is
 * then taken for as many vertices as there could be, dcrf_operator_vertices says how many those
 * are, and features that are not finite or too large for a lattice give NaN instead of an error. */
DCRF_API dcrf_status dcrf_operator_new_on_device(dcrf_operator **op, const float *features,
                                                 size_t variables, size_t dimension,
                                                 size_t pictures, int is_symmetric, int is_waiting,
                                                 dcrf_workspace *workspace, dcrf_error *error);

/* Results go to arrays of `count` floats. Fewer than needed are an error, and nothing is written.
 *
 * out = K in, for a block of channels; it needs variables x stride floats. `in` and `out` must not
 * overlap. An operator on a device also takes two blocks there: the call returns when its work is
 * queued. The same holds for the diagonal. */
DCRF_API dcrf_status dcrf_operator_apply(const dcrf_operator *op, dcrf_workspace *workspace,
                                         dcrf_direction direction, const float *in, float *out,
                                         size_t count, size_t channels, size_t stride,
                                         dcrf_error *error);

/* The diagonal of the symmetric operator, and its row sums K 1: one float per variable. */
DCRF_API dcrf_status dcrf_operator_diagonal(const dcrf_operator *op, dcrf_workspace *workspace,
                                            float *diagonal, size_t count, dcrf_error *error);
DCRF_API dcrf_status dcrf_operator_row_sums(const dcrf_operator *op, dcrf_workspace *workspace,
                                            float *row_sums, size_t count, dcrf_error *error);

/* ---- the ordered filter --------------------------------------------------------------------- */

/* The maximum number of bins. */
#define DCRF_MAX_BINS 256

/* How values are compared. If `table` is NULL, the count - 1 ascending thresholds `levels` divide
 * values into `count` bins, and F(y_a, y_b) is the sign of bin(y_b) - bin(y_a). Otherwise `levels`
 * are `count` ascending nodes and table[h * count + k] = F(levels[h], levels[k]). F is interpolated
 * linearly in both arguments and constant beyond the first and last node. The table must be
 * antisymmetric: F(u, v) = -F(v, u). */
typedef struct dcrf_levels {
    size_t count;
    const float *levels;
    const float *table;
} dcrf_levels;

/* out_a = sum_b K_ab F(y_a, y_b), with the symmetric operator, for a block of channels. Each
 * channel is filtered separately, so any stride of at least `channels` is valid, and the last row
 * of `out`, an array of `count` floats, needs no padding. */
DCRF_API dcrf_status dcrf_operator_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                                           const dcrf_levels *levels, const float *y, float *out,
                                           size_t count, size_t channels, size_t stride,
                                           dcrf_error *error);

/* The operator of a plan's kernel; the plan owns it. */
DCRF_API const dcrf_operator *dcrf_plan_operator(const dcrf_plan *plan, size_t kernel);

/* The mean row sum of a plan's kernel before its normalization: the number of variables that one is
 * joined to, itself included, weighted by how strongly. */
DCRF_API dcrf_status dcrf_plan_reach(const dcrf_plan *plan, size_t kernel,
                                     dcrf_workspace *workspace, double *reach, dcrf_error *error);

/* ---- variants of the LP (dcrf_settings.lp) -------------------------------------------------- */

/* How the LP relaxation measures disagreement within a clique. */
typedef enum dcrf_clique_form {
    DCRF_CLIQUE_MIN = 0, /* C_p (1 - sum_i min_a y_ai): never below the other */
    DCRF_CLIQUE_SPREAD   /* C_p max_i (max_a y_ai - min_a y_ai): as in the paper */
} dcrf_clique_form;
/* "min", "spread". */
DCRF_API const char *dcrf_clique_form_name(dcrf_clique_form form);
DCRF_API int dcrf_clique_form_from_name(const char *name, dcrf_clique_form *form);

/* How the LP is solved. */
typedef enum dcrf_lp_schedule {
    DCRF_LP_SCHEDULE_HUBER = 0, /* Huber continuation with acceleration */
    DCRF_LP_SCHEDULE_PROXIMAL,  /* proximal steps, each by dual Frank-Wolfe with exact steps */
    DCRF_LP_SCHEDULE_PAPER      /* proximal steps as printed in the paper: the dual restarts at
                                 * zero, step sizes are conservative and a clique moves one label.
                                 * For the paper's cliques, set clique_form = DCRF_CLIQUE_SPREAD. */
} dcrf_lp_schedule;
/* "huber", "proximal", "paper". */
DCRF_API const char *dcrf_lp_schedule_name(dcrf_lp_schedule schedule);
DCRF_API int dcrf_lp_schedule_from_name(const char *name, dcrf_lp_schedule *schedule);

#define DCRF_DEFAULT_LP_CLIQUE_FORM DCRF_CLIQUE_MIN
#define DCRF_DEFAULT_LP_SCHEDULE DCRF_LP_SCHEDULE_HUBER

#ifdef __cplusplus
}
#endif
#endif
