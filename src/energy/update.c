#include "energy/update.h"

#include "core/workspace.h"
#include "dsp/dsp.h"

static void update_rows(void *context, size_t begin, size_t end, double *sums) {
    dcrf_dsp()->softmax(context, begin, end, sums);
}

static void update_only(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    dcrf_dsp()->softmax(context, begin, end, NULL);
}

/* The softmax of all rows by all threads, with its sums if they are wanted (not NULL). */
static void softmax_rows(struct dcrf_softmax *softmax, dcrf_pool *pool, size_t variables,
                         double *sums) {
    if (sums)
        dcrf_parallel_sums(pool, variables, update_rows, softmax, sums, DCRF_SOFTMAX_SUMS);
    else
        dcrf_parallel_rows(pool, variables, update_only, softmax);
}

/* From the message; factor 0: from the unary energies alone. */
static void update_all(const struct dcrf_update *update, float factor, const float *diagonal,
                       double *sums) {
    const struct dcrf_coupling *coupling = update->coupling;
    const dcrf_model *model = coupling->plan->model;
    struct dcrf_softmax softmax = {.labels = model->labels,
                                   .stride = model->stride,
                                   .unary = update->unary,
                                   .message = update->message,
                                   .diagonal = diagonal,
                                   .extra = factor != 0 ? update->extra : NULL,
                                   .factor = factor,
                                   .same_label_factor = coupling->same_label_factor,
                                   .all_factor = coupling->all_factor,
                                   .damping = update->damping,
                                   .logits = update->logits,
                                   .q = update->q,
                                   .next = update->next};
    softmax_rows(&softmax, dcrf_workspace_pool(coupling->workspace), model->variables, sums);
}

void dcrf_update_start(const struct dcrf_update *update, double *sums) {
    update_all(update, 0, NULL, sums);
}

dcrf_status dcrf_update_step(const struct dcrf_update *update, double *sums, dcrf_error *error) {
    const struct dcrf_coupling *coupling = update->coupling;
    const dcrf_model *model = coupling->plan->model;
    const bool is_potts = dcrf_coupling_is_potts(coupling);
    /* For Potts the diagonal is subtracted with the softmax. */
    const dcrf_status status =
        is_potts ? dcrf_coupling_sum(coupling, 0, update->q, update->message, model->labels,
                                     model->stride, error)
                 : dcrf_coupling_field(coupling, update->q, update->message, error);
    if (status == DCRF_OK)
        update_all(update, 2 * coupling->same_label_factor * update->coldness,
                   is_potts ? coupling->groups[0].diagonal : NULL, sums);
    return status;
}
