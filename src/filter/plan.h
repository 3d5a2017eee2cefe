/* The plan of a model: one operator per kernel, and its diagonal. */
#ifndef DCRF_FILTER_PLAN_H
#define DCRF_FILTER_PLAN_H

#include "core/workspace.h"
#include "filter/operator.h"
#include "model/model.h"

struct dcrf_plan_kernel {
    dcrf_operator *op;
    float *diagonal; /* of the symmetric operator, one per variable; without the kernel's weight */
};

struct dcrf_plan {
    const dcrf_model *model; /* held */
    size_t holders;          /* core/holders.h */
    size_t kernel_revision;  /* of the model when the plan was made, */
    size_t kernel_count;     /* and its kernels */
    struct dcrf_plan_kernel *kernels;
};

/* Let the plan live until dcrf_plan_free was called once more. */
void dcrf_plan_hold(const dcrf_plan *plan);

/* Is there the time for a plan that takes about `needed_s`? */
dcrf_status dcrf_plan_fits(double needed_s, double left_s, dcrf_error *error);

/* Is the plan still one of its model's kernels? */
dcrf_status dcrf_plan_check(const dcrf_plan *plan, dcrf_error *error);

/* out = sum of w_m K_m in over the kernels listed (NULL: the first `count`), diagonals included and
 * label compatibilities not. `in` and `out` are blocks as in dcrf/operator.h. */
dcrf_status dcrf_plan_sum(const dcrf_plan *plan, dcrf_workspace *workspace, const size_t *kernels,
                          size_t count, const float *in, float *out, size_t channels, size_t stride,
                          dcrf_error *error);

/* The same over all kernels, in double: rows of `channels` doubles. `scratch` is as large as `out`.
 */
dcrf_status dcrf_plan_sum_double(const dcrf_plan *plan, dcrf_workspace *workspace, const double *in,
                                 double *out, double *scratch, size_t channels, dcrf_error *error);

/* out_a -= diagonal_a in_a: what makes a sum over all b one over b != a. */
void dcrf_plan_remove_diagonal(const dcrf_plan *plan, dcrf_workspace *workspace,
                               const float *diagonal, const float *in, float *out, size_t channels,
                               size_t stride);

#endif
