/* Derivatives with respect to the sigmas of a lattice's channels, by finite differences of
 * operators:
 *
 *   dL/dln sigma = sum_{a != b} A_ab dK_ab/dln sigma,
 *   dK/dln sigma = (K(sigma r) - K(sigma / r)) / (2 ln r).
 *
 * A lattice is not a Gaussian: with its values k_ab, the formula dk_ab = k_ab (f_a - f_b)^2 dln
 * sigma gave a tenth of the true derivative with respect to a colour's sigma on a drawn photograph
 * (tests/unit/test_gradient.c); and its own derivative jumps when a point moves to another simplex.
 * A difference with r = 1.2 is smooth, includes the normalization, and costs two lattices and two
 * filters per step and sigma. */
#include "core/error.h"
#include "core/owned.h"
#include "energy/pair_gradient.h"

#include <math.h>

#define RATIO 1.2

struct products {
    const dcrf_model *model;
    const struct dcrf_model_kernel *kernel;
    const float *q, *e, *filtered, *diagonal;
};

/* e . mu F = mu e . F, F = filtered - diagonal q */
static double sum_products(void *context, size_t begin, size_t end) {
    const struct products *p = context;
    const size_t labels = p->model->labels, stride = p->model->stride;
    double total = 0;
    for (size_t a = begin; a < end; a++)
        total += dcrf_pair_row(p->kernel, labels, p->e + a * stride, p->q + a * stride,
                               p->filtered + a * stride, p->diagonal[a], 0, NULL);
    return total;
}

dcrf_status dcrf_pair_products(const dcrf_plan *plan, dcrf_workspace *workspace, size_t kernel,
                               const dcrf_operator *op, const float *diagonal,
                               const struct dcrf_pair_step *steps, size_t count, float *filtered,
                               double *sum, dcrf_error *error) {
    const dcrf_model *model = plan->model;
    double total = 0;
    for (size_t t = 0; t < count; t++) {
        TRY(dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, steps[t].q, filtered,
                                model->variables * model->stride, model->labels, model->stride,
                                error));
        struct products products = {.model = model,
                                    .kernel = &model->kernels[kernel],
                                    .q = steps[t].q,
                                    .e = steps[t].e,
                                    .filtered = filtered,
                                    .diagonal = diagonal};
        total += steps[t].factor * dcrf_parallel_sum(dcrf_workspace_pool(workspace),
                                                     model->variables, sum_products, &products);
    }
    *sum = total;
    return DCRF_OK;
}

/* The sum of products with the sigmas of features `first` to `end` - 1 multiplied by `ratio`. */
static dcrf_status stretched_products(const dcrf_plan *plan, dcrf_workspace *workspace,
                                      size_t kernel, size_t first, size_t end, double ratio,
                                      const struct dcrf_pair_step *steps, size_t count,
                                      float *filtered, double *sum, dcrf_error *error) {
    const struct dcrf_model_kernel *k = &plan->model->kernels[kernel];
    struct dcrf_features features = k->features; /* the channels stay the model's */
    DCRF_AT_END(dcrf_operator_free) dcrf_operator *op = NULL;
    DCRF_SCOPED float *diagonal = dcrf_allocate(features.variables, sizeof *diagonal);
    if (!diagonal)
        return dcrf_fail_memory(error, "derivatives");
    for (size_t c = first; c < end; c++)
        features.channel_factor[c - features.axes] /= ratio;
    TRY(dcrf_operator_build(&op, &features, k->normalization, DCRF_OPERATOR_LATTICE, workspace,
                            error));
    TRY(dcrf_operator_diagonal(op, workspace, diagonal, op->variables, error));
    return dcrf_pair_products(plan, workspace, kernel, op, diagonal, steps, count, filtered, sum,
                              error);
}

dcrf_status dcrf_sigma_differences(const dcrf_plan *plan, dcrf_workspace *workspace, size_t kernel,
                                   const struct dcrf_pair_step *steps, size_t count, bool is_shared,
                                   float *filtered, double *sigma, dcrf_error *error) {
    const struct dcrf_model_kernel *k = &plan->model->kernels[kernel];
    const size_t dimension = k->features.dimension;
    for (size_t c = k->features.axes; c < dimension; c = is_shared ? dimension : c + 1) {
        const size_t end = is_shared ? dimension : c + 1;
        double wide, narrow;
        TRY(stretched_products(plan, workspace, kernel, c, end, RATIO, steps, count, filtered,
                               &wide, error));
        TRY(stretched_products(plan, workspace, kernel, c, end, 1 / RATIO, steps, count, filtered,
                               &narrow, error));
        sigma[c] =
            k->weight * (wide - narrow) / (2 * log(RATIO)) / dcrf_features_sigma(&k->features, c);
    }
    return DCRF_OK;
}
