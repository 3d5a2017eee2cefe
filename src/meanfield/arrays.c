/* Mean field from arrays to arrays: dcrf/mean_field.h. On a device, one call of its library handles
 * all problems that are alike (arrays_device.c); on the CPU, the solver's method is used. */
#include "core/error.h"
#include "core/memory.h"
#include "energy/labelling.h"
#include "meanfield/arrays_device.h"
#include "method/method.h"
#include "model/model.h"
#include "model/view.h"

#include <dcrf/mean_field.h>
#include <stdio.h>
#include <string.h>

void dcrf_arrays_defaults(dcrf_arrays *arrays) {
    if (arrays)
        *arrays = (dcrf_arrays){.unary_kind = DCRF_UNARY_ENERGIES,
                                .operator_kind = DCRF_OPERATOR_FAST,
                                .iterations = DCRF_DEFAULT_MF_ITERATIONS};
}

/* ---- checks --------------------------------------------------------------------------------- */

static dcrf_status check_result(const dcrf_output *output, size_t channels, bool is_type_right,
                                const char *what, const char *types, dcrf_error *error) {
    if (!output->data)
        return DCRF_OK;
    if (!is_type_right)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s must be an array of %s", what, types);
    if (output->channels != channels)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "%s has %zu channels; %zu are needed", what,
                         output->channels, channels);
    return DCRF_OK;
}

static dcrf_status check_arrays(const dcrf_arrays *arrays, size_t *variables, dcrf_error *error) {
    const size_t labels = arrays->unary.channels;
    const dcrf_type type = arrays->labels.type;
    dcrf_status status = dcrf_grid_check(&arrays->grid, variables, error);
    if (status == DCRF_OK)
        status = dcrf_view_check(&arrays->unary, "the unary", error);
    if (status < 0)
        return status;
    if (labels > DCRF_MAX_LABELS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a model has 1 to %d labels, not %zu",
                         DCRF_MAX_LABELS, labels);
    if (arrays->unary_kind < DCRF_UNARY_ENERGIES || arrays->unary_kind > DCRF_UNARY_LOGITS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "energies, probabilities or logits must be said");
    if (arrays->kernel_count > DCRF_ARRAYS_KERNELS || (arrays->kernel_count && !arrays->kernels))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%zu kernels; there may be %d",
                         arrays->kernel_count, DCRF_ARRAYS_KERNELS);
    if (!arrays->marginals.data && !arrays->labels.data)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "neither marginals nor labels are wanted");
    if ((status = check_result(&arrays->marginals, labels, arrays->marginals.type == DCRF_F32,
                               "the array for marginals", "floats", error)) < 0)
        return status;
    return check_result(&arrays->labels, 1,
                        type == DCRF_I32 || type == DCRF_U16 || (type == DCRF_U8 && labels <= 256),
                        "the array for labels",
                        "integers: 32 bits, 16 without a sign, or 8 for at most 256 labels", error);
}

void dcrf_arrays_image_name(size_t kernel, char name[DCRF_ARRAYS_NAME_BYTES]) {
    snprintf(name, DCRF_ARRAYS_NAME_BYTES, "the image of kernel %zu", kernel);
}

static dcrf_status check_images(const dcrf_arrays *arrays, dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    char name[DCRF_ARRAYS_NAME_BYTES];
    for (size_t m = 0; m < arrays->kernel_count && status == DCRF_OK; m++) {
        dcrf_arrays_image_name(m, name);
        if (arrays->kernels[m].kind != DCRF_KERNEL_SPATIAL)
            status = dcrf_view_check(&arrays->kernels[m].channels, name, error);
    }
    return status;
}

/* ---- on the CPU ----------------------------------------------------------------------------- */

struct here {
    float *energies; /* computed from probabilities or logits */
    dcrf_model *model;
    dcrf_plan *plan;
    void *state;
};

static void here_clear(struct here *here) {
    dcrf_mean_field.free(here->state);
    dcrf_plan_free(&here->plan);
    dcrf_model_free(&here->model);
    dcrf_release(here->energies);
}

static dcrf_status make_model(struct here *here, const dcrf_arrays *arrays, size_t variables,
                              dcrf_error *error) {
    const dcrf_grid *grid = &arrays->grid;
    const size_t labels = arrays->unary.channels;
    dcrf_status status = dcrf_model_new(&here->model, grid, labels, error);
    if (status < 0)
        return status;
    dcrf_view view = arrays->unary;
    if (arrays->unary_kind != DCRF_UNARY_ENERGIES) {
        here->energies = dcrf_allocate(variables, labels * sizeof *here->energies);
        if (!here->energies)
            return dcrf_fail_memory(error, "the unary energies");
        status = dcrf_unary_energies(&arrays->unary, grid, arrays->unary_kind, 1, grid, NULL,
                                     here->energies, error);
        view = dcrf_view_interleaved(here->energies, DCRF_F32, grid, labels);
    }
    if (status == DCRF_OK)
        status = dcrf_model_set_unary(here->model, &view, error);
    for (size_t m = 0; m < arrays->kernel_count && status == DCRF_OK; m++)
        status = dcrf_model_add_kernel(here->model, &arrays->kernels[m], error);
    return status;
}

static char *element(const dcrf_output *output, const dcrf_grid *grid, size_t variable) {
    size_t position[DCRF_MAX_AXES];
    dcrf_grid_position(grid, variable, position);
    char *at = output->data;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        at += (ptrdiff_t)position[axis] * output->stride[axis];
    return at;
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

/* Results to be written into the caller's arrays. */
struct results {
    const dcrf_arrays *arrays;
    const struct dcrf_marginals *rows;
    const uint16_t *labels;
};

/* Variables written at a time, label by label, since the array may consist of planes. */
#define WRITTEN_TOGETHER 256

static void write_marginals(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct results *results = context;
    const struct dcrf_marginals *rows = results->rows;
    const dcrf_output *out = &results->arrays->marginals;
    char *at[WRITTEN_TOGETHER];
    for (size_t a = begin; a < end; a++)
        at[a - begin] = element(out, &results->arrays->grid, a);
    for (size_t i = 0; i < rows->labels; i++)
        for (size_t a = begin; a < end; a++)
            memcpy(at[a - begin] + (ptrdiff_t)i * out->channel_stride,
                   &rows->values[a * rows->stride + i], sizeof(float));
}

static void write_labels(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct results *results = context;
    const dcrf_output *out = &results->arrays->labels;
    for (size_t a = begin; a < end; a++)
        write_label(element(out, &results->arrays->grid, a), out->type, results->labels[a]);
}

static dcrf_status write_results(const struct here *here, const dcrf_arrays *arrays,
                                 dcrf_workspace *workspace, dcrf_error *error) {
    const dcrf_model *model = here->model;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    const struct dcrf_marginals rows = {dcrf_mean_field.marginals(here->state), model->variables,
                                        model->labels, model->stride};
    struct results results = {.arrays = arrays, .rows = &rows};
    if (arrays->marginals.data)
        dcrf_parallel_for(pool, model->variables, WRITTEN_TOGETHER, write_marginals, &results);
    if (!arrays->labels.data)
        return DCRF_OK;
    uint16_t *labels = dcrf_allocate(model->variables, sizeof *labels);
    if (!labels)
        return dcrf_fail_memory(error, "labels");
    dcrf_labels_of_marginals(&rows, pool, labels);
    results.labels = labels;
    dcrf_parallel_for(pool, model->variables, WRITTEN_TOGETHER, write_labels, &results);
    dcrf_release(labels);
    return DCRF_OK;
}

static dcrf_status run_here(dcrf_workspace *workspace, const dcrf_arrays *arrays, size_t variables,
                            dcrf_error *error) {
    struct here here = {0};
    const struct dcrf_start nowhere = {0};
    struct dcrf_step_report report;
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.damping = 0;
    dcrf_status status = make_model(&here, arrays, variables, error);
    if (status == DCRF_OK)
        status = dcrf_plan_new(&here.plan, here.model, arrays->operator_kind, workspace, error);
    const struct dcrf_problem problem = {
        .plan = here.plan, .model = here.model, .workspace = workspace, .settings = &settings};
    if (status == DCRF_OK)
        status = dcrf_mean_field.init(&here.state, &problem, error);
    if (status == DCRF_OK)
        status = dcrf_mean_field.start(here.state, &nowhere, error);
    for (size_t k = 0; k < arrays->iterations && status == DCRF_OK; k++)
        status = dcrf_mean_field.step(here.state, &report, error);
    if (status == DCRF_OK)
        status = write_results(&here, arrays, workspace, error);
    here_clear(&here);
    return status;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* The most floats in the marginals of a batch: beyond this, launches are long enough, and memory is
 * limited. And the most pictures: they are an axis of the CUDA grid. */
#define BATCH_FLOATS ((size_t)1 << 24)
#define BATCH_PICTURES 4096

size_t dcrf_arrays_batch(const dcrf_grid *grid, size_t labels) {
    size_t variables;
    if (!grid || dcrf_grid_check(grid, &variables, NULL) < 0 || labels == 0 ||
        labels > DCRF_MAX_LABELS)
        return 0;
    const size_t most = BATCH_FLOATS / dcrf_padded(labels) / variables;
    return most < 1 ? 1 : most < BATCH_PICTURES ? most : BATCH_PICTURES;
}

static bool are_equal(const double *one, const double *other, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (one[i] != other[i])
            return false;
    return true;
}

static bool are_kernels_alike(const dcrf_kernel *one, const dcrf_kernel *other, size_t axes) {
    const bool has_axes = one->kind != DCRF_KERNEL_FEATURES;
    const bool has_image = one->kind != DCRF_KERNEL_SPATIAL;
    if (one->kind != other->kind || one->normalization != other->normalization ||
        one->weight != other->weight || (has_axes && !are_equal(one->sigma, other->sigma, axes)))
        return false;
    return !has_image ||
           (one->channels.channels == other->channels.channels &&
            (one->kind == DCRF_KERNEL_FEATURES ||
             (one->channels.channels <= DCRF_MAX_FEATURES &&
              are_equal(one->channel_sigma, other->channel_sigma, one->channels.channels))));
}

static bool are_results_alike(const dcrf_output *one, const dcrf_output *other) {
    return !one->data == !other->data && (!one->data || one->type == other->type);
}

/* Do the problems differ only in their arrays? */
static bool are_alike(const dcrf_arrays *one, const dcrf_arrays *other) {
    if (one->grid.axes != other->grid.axes ||
        memcmp(one->grid.size, other->grid.size, sizeof one->grid.size) != 0 ||
        !are_equal(one->grid.spacing, other->grid.spacing, one->grid.axes) ||
        one->unary.channels != other->unary.channels || one->unary_kind != other->unary_kind ||
        one->kernel_count != other->kernel_count || one->operator_kind != other->operator_kind ||
        one->iterations != other->iterations ||
        !are_results_alike(&one->marginals, &other->marginals) ||
        !are_results_alike(&one->labels, &other->labels))
        return false;
    for (size_t m = 0; m < one->kernel_count; m++)
        if (!are_kernels_alike(&one->kernels[m], &other->kernels[m], one->grid.axes))
            return false;
    return true;
}

static dcrf_status check_all(const dcrf_arrays *arrays, size_t *variables, dcrf_error *error) {
    const dcrf_status status = check_arrays(arrays, variables, error);
    return status < 0 ? status : check_images(arrays, error);
}

/* The number of leading problems that form one batch: all valid, and alike. */
static size_t choose_batch(const dcrf_arrays *arrays, size_t count) {
    size_t variables, alike = 1;
    if (arrays->operator_kind == DCRF_OPERATOR_EXACT || check_all(arrays, &variables, NULL) < 0)
        return 1;
    const size_t most = dcrf_arrays_batch(&arrays->grid, arrays->unary.channels);
    while (alike < count && check_all(&arrays[alike], &variables, NULL) == DCRF_OK &&
           are_alike(arrays, &arrays[alike]))
        alike++;
    /* Batches of about equal size rather than full ones and a remainder. */
    const size_t batches = (alike + most - 1) / most;
    return (alike + batches - 1) / batches;
}

dcrf_status dcrf_mean_field_arrays(dcrf_workspace *workspace, const dcrf_arrays *arrays,
                                   dcrf_error *error) {
    if (!workspace || !arrays)
        return dcrf_fail_null(error, "the workspace or the arrays");
    DCRF_ENTER(workspace, error);
    size_t variables;
    const dcrf_status status = check_all(arrays, &variables, error);
    if (status < 0)
        return status;
    const struct dcrf_batch one = {workspace, dcrf_workspace_find_device(workspace), arrays, 1,
                                   variables};
    return one.device ? dcrf_arrays_run_on_device(&one, error)
                      : run_here(workspace, arrays, variables, error);
}

dcrf_status dcrf_mean_field_arrays_many(dcrf_workspace *workspace, const dcrf_arrays *arrays,
                                        size_t count, size_t *failed, dcrf_error *error) {
    if (!workspace || !arrays || !failed)
        return dcrf_fail_null(error, "the workspace, the arrays or the place for what failed");
    DCRF_ENTER(workspace, error);
    struct dcrf_batch batch = {.workspace = workspace,
                               .device = dcrf_workspace_find_device(workspace)};
    for (size_t begin = 0; begin < count; begin += batch.count) {
        batch.arrays = arrays + begin;
        batch.count = batch.device ? choose_batch(batch.arrays, count - begin) : 1;
        dcrf_grid_check(&batch.arrays->grid, &batch.variables, NULL);
        if (batch.count > 1 && dcrf_arrays_run_on_device(&batch, NULL) == DCRF_OK)
            continue;
        /* Solve them one by one: this finds the problem at fault, or at least solves the others; a
         * batch also takes more memory and more lattice bits. */
        for (size_t k = begin; k < begin + batch.count; k++) {
            const dcrf_status status = dcrf_mean_field_arrays(workspace, &arrays[k], error);
            *failed = k;
            if (status < 0)
                return status;
        }
    }
    *failed = count;
    return DCRF_OK;
}
