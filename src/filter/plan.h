/* The plan of a model: one operator per kernel, and its diagonal. */
#ifndef DCRF_FILTER_PLAN_H
#define DCRF_FILTER_PLAN_H

#include "core/workspace.h"
#include "filter/operator.h"
#include "model/model.h"

#include <math.h>

struct dcrf_plan_kernel {
    dcrf_operator *op;
    float *diagonal; /* of the symmetric operator, one per variable; without the kernel's weight */
};

struct dcrf_plan {
    const dcrf_model *model; /* a reference is held */
    size_t holders;          /* core/holders.h */
    size_t kernel_revision;  /* the model's when the plan was made */
    size_t kernel_count;     /* number of the model's kernels then */
    struct dcrf_plan_kernel *kernels;
};

/* n_a^-1/2, the scale of a normalized kernel. An operator that does not store it is exact, so k_aa
 * is 1 and K_aa is 1 / n_a; or it is a device's lattice, where this is an estimate. */
static inline double dcrf_plan_scale(const struct dcrf_plan_kernel *kernel, size_t a) {
    return kernel->op->scale ? (double)kernel->op->scale[a] : sqrt((double)kernel->diagonal[a]);
}

/* Add a reference: the plan lives until dcrf_plan_free has been called once more. */
void dcrf_plan_hold(const dcrf_plan *plan);

/* Fails if the time left is too short for building a plan in about `needed_s`. */
dcrf_status dcrf_plan_fits(double needed_s, double left_s, dcrf_error *error);

/* Fails if the model's kernels have changed since the plan was made. */
dcrf_status dcrf_plan_check(const dcrf_plan *plan, dcrf_error *error);

/* Has every machine the same matrices, to the last digit of a double? The exact ones are given by
 * their formula, and lattices are those that the CPU builds; a device's differ by rounding. */
bool dcrf_plan_is_reproducible(const dcrf_plan *plan);

/* Are all its operators exact? */
bool dcrf_plan_is_exact(const dcrf_plan *plan);

/* Kernels whose operators all come from the workspace's source: evaluated in one call. */
#define DCRF_MOST_TOGETHER 16
struct dcrf_together {
    const struct dcrf_operator_source_methods *methods;
    size_t count;
    dcrf_operator *operators[DCRF_MOST_TOGETHER];
    float factors[DCRF_MOST_TOGETHER]; /* the weights */
};

/* Collect the kernels listed (NULL: the first `count`) that have a weight; false if they cannot be
 * evaluated in one call. */
bool dcrf_plan_collect(const dcrf_plan *plan, const dcrf_workspace *workspace,
                       const size_t *kernels, size_t count, struct dcrf_together *together);

/* out = sum of w_m K_m in over the kernels listed (NULL: the first `count`), including the
 * diagonals but not the label compatibilities. `in` and `out` are blocks as in dcrf/grid.h. */
dcrf_status dcrf_plan_sum(const dcrf_plan *plan, dcrf_workspace *workspace, const size_t *kernels,
                          size_t count, const float *in, float *out, size_t channels, size_t stride,
                          dcrf_error *error);

/* The same over all kernels, in double: rows of `channels` doubles. `scratch` is as large as `out`.
 */
dcrf_status dcrf_plan_sum_double(const dcrf_plan *plan, dcrf_workspace *workspace, const double *in,
                                 double *out, double *scratch, size_t channels, dcrf_error *error);

/* out_a -= diagonal_a in_a: turns a sum over all b into one over b != a. */
void dcrf_plan_remove_diagonal(const dcrf_plan *plan, dcrf_workspace *workspace,
                               const float *diagonal, const float *in, float *out, size_t channels,
                               size_t stride);

#endif
