/* The plan of a model: one operator a kernel, and its diagonal. */
#ifndef DCRF_FILTER_PLAN_H
#define DCRF_FILTER_PLAN_H

#include "core/workspace.h"
#include "filter/operator.h"
#include "model/model.h"

struct dcrf_plan_kernel {
    dcrf_operator *op;
    float *diagonal; /* of the symmetric operator, one a variable; without the kernel's weight */
};

struct dcrf_plan {
    const dcrf_model *model;
    size_t kernel_count; /* of the model when the plan was made */
    struct dcrf_plan_kernel *kernels;
};

/* Does the plan still cover all kernels of its model? */
dcrf_status dcrf_plan_check(const dcrf_plan *plan, dcrf_error *error);

/* out_a = sum_m w_m sum_{b != a} k_m(a, b) in_b: all kernels with their weights, without the
 * diagonal and without the label compatibilities. `in` and `out` are blocks as in dcrf/operator.h.
 */
dcrf_status dcrf_plan_apply(const dcrf_plan *plan, dcrf_workspace *workspace, const float *in,
                            float *out, size_t channels, size_t stride, dcrf_error *error);

#endif
