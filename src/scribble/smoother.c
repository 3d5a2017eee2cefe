#include "scribble/smoother.h"

#include "core/error.h"
#include "energy/labelling.h"
#include "energy/update.h"

dcrf_status dcrf_smoother_init(struct dcrf_smoother *smoother, const dcrf_grid *grid, size_t labels,
                               const dcrf_kernel *kernels, size_t kernel_count,
                               dcrf_workspace *workspace, dcrf_error *error) {
    const size_t stride = dcrf_padded(labels), row = stride * sizeof(float);
    *smoother = (struct dcrf_smoother){.workspace = workspace,
                                       .variables = grid->size[0] * grid->size[1] * grid->size[2],
                                       .labels = labels,
                                       .stride = stride};
    TRY(dcrf_model_new(&smoother->model, grid, labels, error));
    for (size_t k = 0; k < kernel_count; k++)
        TRY(dcrf_model_add_kernel(smoother->model, &kernels[k], error));
    TRY(dcrf_plan_new(&smoother->plan, smoother->model, DCRF_OPERATOR_FAST, workspace, error));
    TRY(dcrf_coupling_new(&smoother->coupling, smoother->plan, workspace, error));
    smoother->unary = dcrf_own_zero(&smoother->owned, smoother->variables, row);
    smoother->message = dcrf_own_zero(&smoother->owned, smoother->variables, row);
    smoother->q = dcrf_own_zero(&smoother->owned, smoother->variables, row);
    return smoother->owned.is_short ? dcrf_fail_memory(error, "mean field") : DCRF_OK;
}

void dcrf_smoother_clear(struct dcrf_smoother *smoother) {
    dcrf_coupling_free(&smoother->coupling);
    dcrf_plan_free(&smoother->plan);
    dcrf_model_free(&smoother->model);
    dcrf_disown(&smoother->owned);
}

dcrf_status dcrf_smoother_run(const struct dcrf_smoother *smoother, size_t iterations,
                              dcrf_error *error) {
    const struct dcrf_update update = {.coupling = smoother->coupling,
                                       .unary = smoother->unary,
                                       .coldness = 1,
                                       .message = smoother->message,
                                       .q = smoother->q,
                                       .next = smoother->q};
    dcrf_update_start(&update, NULL);
    for (size_t step = 0; step < iterations; step++)
        TRY(dcrf_update_step(&update, NULL, error));
    return DCRF_OK;
}

size_t dcrf_smoother_likeliest(const struct dcrf_smoother *smoother, size_t variable) {
    return dcrf_largest_of(smoother->q + variable * smoother->stride, smoother->labels);
}
