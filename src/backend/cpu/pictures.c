/* Mean field of the caller's arrays on the CPU: the model and plan that the update (mean_field.c)
 * reads are made of the arrays' unaries and of operators, and the marginals go back into arrays. */
#include "backend/cpu/iterate.h"
#include "core/error.h"
#include "core/owned.h"
#include "core/workspace.h"
#include "energy/labelling.h"
#include "model/view.h"

#include <string.h>

struct dcrf_cpu_pictures {
    const struct dcrf_backend_pictures *given;
    dcrf_model model;
    dcrf_plan plan;
    struct dcrf_coupling *coupling;
    struct dcrf_owned owned;
};

void dcrf_cpu_pictures_free(struct dcrf_cpu_pictures *pictures) {
    if (!pictures)
        return;
    dcrf_coupling_free(&pictures->coupling);
    dcrf_disown(&pictures->owned);
    dcrf_release(pictures);
}

/* ---- the model ------------------------------------------------------------------------------ */

static dcrf_status read_unary(const struct dcrf_backend_pictures *given, dcrf_view view,
                              float *rows, dcrf_error *error) {
    DCRF_SCOPED float *energies = NULL; /* computed from probabilities or logits */
    if (given->kind != DCRF_UNARY_ENERGIES) {
        energies = dcrf_allocate(given->variables, given->labels * sizeof *energies);
        if (!energies)
            return dcrf_fail_memory(error, "the unary energies");
        TRY(dcrf_unary_energies(&view, given->grid, given->kind, 1, given->grid, NULL, energies,
                                given->variables * given->labels, error));
        view = dcrf_view_interleaved(energies, DCRF_F32, given->grid, given->labels);
    }
    return dcrf_view_copy_with(&view, given->grid, dcrf_workspace_pool(given->workspace),
                               "the unary array", rows, given->stride, error);
}

static dcrf_status take_kernel(struct dcrf_cpu_pictures *pictures, size_t m, dcrf_error *error) {
    const struct dcrf_backend_pictures *given = pictures->given;
    const dcrf_operator *op = given->operators[m];
    float *diagonal = dcrf_own(&pictures->owned, op->variables, sizeof *diagonal);
    pictures->model.kernels[m] = (struct dcrf_model_kernel){
        .weight = given->weights[m], .compatibility = DCRF_COMPATIBILITY_POTTS};
    pictures->plan.kernels[m] = (struct dcrf_plan_kernel){given->operators[m], diagonal};
    pictures->model.kernel_count = pictures->plan.kernel_count = m + 1;
    return diagonal ? op->methods->diagonal(op, given->workspace, diagonal, error)
                    : dcrf_fail_memory(error, "the diagonal of a kernel");
}

static dcrf_status take_model(struct dcrf_cpu_pictures *pictures, dcrf_error *error) {
    const struct dcrf_backend_pictures *given = pictures->given;
    dcrf_model *model = &pictures->model;
    model->variables = given->count * given->variables;
    model->labels = given->labels;
    model->stride = given->stride;
    model->unary =
        dcrf_own(&pictures->owned, model->variables, model->stride * sizeof *model->unary);
    model->kernels = dcrf_own_zero(&pictures->owned, given->kernel_count, sizeof *model->kernels);
    pictures->plan.model = model;
    pictures->plan.kernels =
        dcrf_own(&pictures->owned, given->kernel_count, sizeof *pictures->plan.kernels);
    if (pictures->owned.is_short)
        return dcrf_fail_memory(error, "mean field of arrays");
    for (size_t p = 0; p < given->count; p++)
        TRY(read_unary(given, given->unary[p], model->unary + p * given->variables * given->stride,
                       error));
    for (size_t m = 0; m < given->kernel_count; m++)
        TRY(take_kernel(pictures, m, error));
    return dcrf_coupling_new(&pictures->coupling, &pictures->plan, given->workspace, error);
}

dcrf_status dcrf_cpu_make_of_pictures(dcrf_backend_iterate **out, dcrf_backend_device *device,
                                      const struct dcrf_backend_pictures *given,
                                      dcrf_error *error) {
    (void)device;
    *out = NULL;
    struct dcrf_cpu_pictures *pictures = dcrf_allocate_zero(1, sizeof *pictures);
    if (!pictures)
        return dcrf_fail_memory(error, "mean field of arrays");
    pictures->given = given;
    dcrf_status status = take_model(pictures, error);
    const struct dcrf_backend_model model = {.coupling = pictures->coupling};
    if (status == DCRF_OK)
        status = dcrf_cpu_mean_field_make(out, &model, DCRF_BACKEND_FOR_MEAN_FIELD, error);
    if (status < 0) {
        dcrf_cpu_pictures_free(pictures);
        return status;
    }
    (*out)->pictures = pictures;
    return DCRF_OK;
}

/* ---- results -------------------------------------------------------------------------------- */

/* Results to be written into the arrays of one picture. */
struct results {
    const dcrf_grid *grid;
    const dcrf_output *out;
    const float *q; /* of the picture's variables, for its marginals */
    size_t stride;
    const uint16_t *labels; /* for its labels */
};

static char *element(const struct results *results, size_t variable) {
    size_t position[DCRF_MAX_AXES];
    dcrf_grid_position(results->grid, variable, position);
    char *at = results->out->data;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        at += (ptrdiff_t)position[axis] * results->out->stride[axis];
    return at;
}

/* Variables written at a time, label by label, since the array may consist of planes. */
#define WRITTEN_TOGETHER 256

static void write_marginals(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct results *results = context;
    char *at[WRITTEN_TOGETHER];
    for (size_t a = begin; a < end; a++)
        at[a - begin] = element(results, a);
    for (size_t i = 0; i < results->out->channels; i++)
        for (size_t a = begin; a < end; a++)
            memcpy(at[a - begin] + (ptrdiff_t)i * results->out->channel_stride,
                   &results->q[a * results->stride + i], sizeof(float));
}

static void write_label(char *at, dcrf_type type, uint16_t label) {
    const int32_t wide = label;
    const uint8_t narrow = (uint8_t)label;
    if (type == DCRF_U8)
        memcpy(at, &narrow, sizeof narrow);
    else if (type == DCRF_U16)
        memcpy(at, &label, sizeof label);
    else
        memcpy(at, &wide, sizeof wide);
}

static void write_labels(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct results *results = context;
    for (size_t a = begin; a < end; a++)
        write_label(element(results, a), results->out->type, results->labels[a]);
}

dcrf_status dcrf_cpu_write_pictures(dcrf_backend_iterate *iterate, size_t *wrong,
                                    dcrf_error *error) {
    const struct dcrf_backend_pictures *given = iterate->pictures->given;
    const size_t n = given->variables;
    struct results results = {.grid = given->grid, .stride = given->stride};
    *wrong = SIZE_MAX; /* found when the iterate was made */
    for (size_t p = 0; given->marginals && p < given->count; p++) {
        results.out = &given->marginals[p];
        results.q = iterate->y + p * n * given->stride;
        dcrf_parallel_for(iterate->pool, n, WRITTEN_TOGETHER, write_marginals, &results);
    }
    if (!given->labels_out)
        return DCRF_OK;
    DCRF_SCOPED uint16_t *labels = dcrf_allocate(given->count * n, sizeof *labels);
    if (!labels)
        return dcrf_fail_memory(error, "labels");
    dcrf_cpu_iterate.labels(iterate, labels, error);
    for (size_t p = 0; p < given->count; p++) {
        results.out = &given->labels_out[p];
        results.labels = labels + p * n;
        dcrf_parallel_for(iterate->pool, n, WRITTEN_TOGETHER, write_labels, &results);
    }
    return DCRF_OK;
}
