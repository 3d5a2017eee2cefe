#include "scribble/field.h"

#include "dsp/dsp.h"

static void update_rows(void *context, size_t begin, size_t end, double *sums) {
    dcrf_dsp()->softmax(context, begin, end, sums);
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
    double sums[DCRF_SOFTMAX_SUMS]; /* unused */
    dcrf_pool *pool = dcrf_workspace_pool(field->workspace);
    dcrf_status status = DCRF_OK;
    dcrf_parallel_sums(pool, field->variables, update_rows, &softmax, sums, DCRF_SOFTMAX_SUMS);
    softmax.factor = -2;
    for (size_t step = 0; step < iterations && status >= 0; step++) {
        status = dcrf_coupling_sum(field->coupling, 0, field->q, field->message, field->labels,
                                   field->stride, error);
        if (status >= 0)
            dcrf_parallel_sums(pool, field->variables, update_rows, &softmax, sums,
                               DCRF_SOFTMAX_SUMS);
    }
    return status;
}

size_t dcrf_field_likeliest(const struct dcrf_field *field, size_t variable) {
    const float *q = field->q + variable * field->stride;
    size_t best = 0;
    for (size_t i = 1; i < field->labels; i++)
        if (q[i] > q[best])
            best = i;
    return best;
}
