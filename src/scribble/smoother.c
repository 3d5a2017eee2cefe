#include "scribble/field.h"

#include "core/error.h"
#include "energy/update.h"

#include <dcrf/labelling.h>

dcrf_status dcrf_field_init(struct dcrf_field *field, const dcrf_grid *grid, size_t labels,
                            const dcrf_kernel *kernels, size_t kernel_count,
                            dcrf_workspace *workspace, dcrf_error *error) {
    const size_t stride = dcrf_padded(labels), row = stride * sizeof(float);
    *field = (struct dcrf_field){.workspace = workspace,
                                 .variables = grid->size[0] * grid->size[1] * grid->size[2],
                                 .labels = labels,
                                 .stride = stride};
    TRY(dcrf_model_new(&field->model, grid, labels, error));
    for (size_t k = 0; k < kernel_count; k++)
        TRY(dcrf_model_add_kernel(field->model, &kernels[k], error));
    TRY(dcrf_plan_new(&field->plan, field->model, DCRF_OPERATOR_FAST, workspace, error));
    TRY(dcrf_coupling_new(&field->coupling, field->plan, workspace, error));
    field->unary = dcrf_own_zero(&field->owned, field->variables, row);
    field->message = dcrf_own_zero(&field->owned, field->variables, row);
    field->q = dcrf_own_zero(&field->owned, field->variables, row);
    return field->owned.is_short ? dcrf_fail_memory(error, "mean field") : DCRF_OK;
}

void dcrf_field_clear(struct dcrf_field *field) {
    dcrf_coupling_free(&field->coupling);
    dcrf_plan_free(&field->plan);
    dcrf_model_free(&field->model);
    dcrf_disown(&field->owned);
}

dcrf_status dcrf_field_run(const struct dcrf_field *field, size_t iterations, dcrf_error *error) {
    struct dcrf_softmax softmax = {.labels = field->labels,
                                   .stride = field->stride,
                                   .unary = field->unary,
                                   .message = field->message,
                                   .diagonal = field->coupling->groups[0].diagonal,
                                   .factor = 0,
                                   .q = field->q,
                                   .next = field->q};
    dcrf_pool *pool = dcrf_workspace_pool(field->workspace);
    dcrf_update_rows(&softmax, pool, field->variables, NULL);
    softmax.factor = -2;
    for (size_t step = 0; step < iterations; step++) {
        TRY(dcrf_coupling_sum(field->coupling, 0, field->q, field->message, field->labels,
                              field->stride, error));
        dcrf_update_rows(&softmax, pool, field->variables, NULL);
    }
    return DCRF_OK;
}

size_t dcrf_field_likeliest(const struct dcrf_field *field, size_t variable) {
    uint16_t best;
    dcrf_label_by_marginals(field->q + variable * field->stride, 1, field->labels, field->stride,
                            &best);
    return best;
}
