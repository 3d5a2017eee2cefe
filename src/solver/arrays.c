/* Mean field from arrays to arrays: dcrf/arrays.h. On a device by one call of its library, here by
 * the method that a solver has. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/device.h"
#include "model/model.h"
#include "model/view.h"
#include "round/round.h"
#include "solver/method.h"

#include <dcrf/arrays.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 48

void dcrf_arrays_defaults(dcrf_arrays *arrays) {
    if (arrays)
        *arrays = (dcrf_arrays){.unary_kind = DCRF_UNARY_ENERGIES,
                                .operator_kind = DCRF_OPERATOR_FAST,
                                .iterations = DCRF_DEFAULT_MF_ITERATIONS};
}

/* ---- checks --------------------------------------------------------------------------------- */

static dcrf_status check_result(const dcrf_view *view, size_t channels, bool is_type_right,
                                const char *what, const char *types, dcrf_error *error) {
    if (!view->data)
        return DCRF_OK;
    if (!is_type_right)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s must be an array of %s", what, types);
    if (view->channels != channels)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "%s has %zu channels; %zu are needed", what,
                         view->channels, channels);
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

static dcrf_status check_image(const dcrf_kernel *kernel, size_t m, char name[NAME_BYTES],
                               dcrf_error *error) {
    snprintf(name, NAME_BYTES, "the image of kernel %zu", m);
    return kernel->kind == DCRF_KERNEL_SPATIAL ? DCRF_OK
                                               : dcrf_view_check(&kernel->channels, name, error);
}

/* ---- here ----------------------------------------------------------------------------------- */

struct here {
    float *energies;
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
    here->energies = dcrf_allocate(variables, labels * sizeof *here->energies);
    if (!here->energies)
        return dcrf_fail_memory(error, "the unary energies");
    status = dcrf_unary_energies(&arrays->unary, grid, arrays->unary_kind, 1, grid, NULL,
                                 here->energies, error);
    const dcrf_view view = dcrf_view_interleaved(here->energies, DCRF_F32, grid, labels);
    if (status == DCRF_OK)
        status = dcrf_model_set_unary(here->model, &view, error);
    for (size_t m = 0; m < arrays->kernel_count && status == DCRF_OK; m++)
        status = dcrf_model_add_kernel(here->model, &arrays->kernels[m], error);
    return status;
}

static char *element(const dcrf_view *view, const dcrf_grid *grid, size_t variable) {
    size_t position[DCRF_MAX_AXES];
    dcrf_grid_position(grid, variable, position);
    char *at = (char *)(uintptr_t)view->data; /* results are written */
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        at += (ptrdiff_t)position[axis] * view->stride[axis];
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

static dcrf_status write_results(const struct here *here, const dcrf_arrays *arrays,
                                 dcrf_workspace *workspace, dcrf_error *error) {
    const dcrf_model *model = here->model;
    const struct dcrf_marginals rows = {dcrf_mean_field.marginals(here->state), model->variables,
                                        model->labels, model->stride};
    const dcrf_view *out = &arrays->marginals;
    for (size_t a = 0; out->data && a < model->variables; a++) {
        char *at = element(out, &arrays->grid, a);
        for (size_t i = 0; i < model->labels; i++)
            memcpy(at + (ptrdiff_t)i * out->channel_stride, &rows.values[a * model->stride + i],
                   sizeof(float));
    }
    if (!arrays->labels.data)
        return DCRF_OK;
    uint16_t *labels = dcrf_allocate(model->variables, sizeof *labels);
    if (!labels)
        return dcrf_fail_memory(error, "labels");
    dcrf_round_largest(&rows, dcrf_workspace_pool(workspace), labels);
    for (size_t a = 0; a < model->variables; a++)
        write_label(element(&arrays->labels, &arrays->grid, a), arrays->labels.type, labels[a]);
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

/* ---- on a device ---------------------------------------------------------------------------- */

struct axis {
    size_t count;
    ptrdiff_t stride;
};

static int compare_axes(const void *one, const void *other) {
    const ptrdiff_t a = ((const struct axis *)one)->stride;
    const ptrdiff_t b = ((const struct axis *)other)->stride;
    return (a > b) - (a < b);
}

/* Do the elements follow each other without gaps and without meeting? */
static bool is_contiguous(const dcrf_view *view, const dcrf_grid *grid) {
    struct axis axes[DCRF_MAX_AXES + 1];
    size_t step = dcrf_type_bytes(view->type);
    for (size_t i = 0; i <= DCRF_MAX_AXES; i++) {
        const ptrdiff_t stride = i < DCRF_MAX_AXES ? view->stride[i] : view->channel_stride;
        const size_t count = i < DCRF_MAX_AXES ? grid->size[i] : view->channels;
        axes[i] = (struct axis){count, count == 1 ? 0 : stride < 0 ? -stride : stride};
    }
    qsort(axes, DCRF_MAX_AXES + 1, sizeof *axes, compare_axes);
    for (size_t i = 0; i <= DCRF_MAX_AXES; i++) {
        if (axes[i].count > 1 && (size_t)axes[i].stride != step)
            return false;
        step *= axes[i].count;
    }
    return true;
}

static dcrf_status check_place(const struct dcrf_device *device, const dcrf_view *view,
                               const dcrf_grid *grid, const char *what, bool *is_there,
                               dcrf_error *error) {
    size_t index;
    const dcrf_status status = device->backend->arrays.find(view->data, &index, error);
    if (status < 0)
        return status;
    *is_there = index != SIZE_MAX;
    if (*is_there && index != device->index)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "%s is on cuda:%zu, and the work is done on %s", what, index,
                         device->name);
    if (*is_there && dcrf_type_bytes(view->type) > 1) {
        /* Threads of a device read whole elements. */
        const size_t bytes = dcrf_type_bytes(view->type);
        size_t bits = (size_t)(uintptr_t)view->data | (size_t)view->channel_stride;
        for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
            bits |= (size_t)view->stride[axis];
        if (bits % bytes != 0)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s is not aligned to its elements", what);
    }
    if (!*is_there && !is_contiguous(view, grid))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "%s must be contiguous, in any order of its axes, to go to a device",
                         what);
    return DCRF_OK;
}

/* An image of the device's, here: for operators that are planned with the host's help. */
static dcrf_status bring_image(const struct dcrf_device *device, const dcrf_grid *grid,
                               dcrf_view *view, void **copy, dcrf_error *error) {
    size_t bytes = dcrf_type_bytes(view->type) * view->channels;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        bytes *= grid->size[axis];
    if (!is_contiguous(view, grid))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the image of an exact operator must be contiguous on the device");
    *copy = dcrf_allocate(bytes, 1);
    if (!*copy)
        return dcrf_fail_memory(error, "an image");
    /* Axes that run backwards begin at their end. */
    ptrdiff_t lowest = 0;
    for (size_t i = 0; i <= DCRF_MAX_AXES; i++) {
        const ptrdiff_t stride = i < DCRF_MAX_AXES ? view->stride[i] : view->channel_stride;
        const size_t count = i < DCRF_MAX_AXES ? grid->size[i] : view->channels;
        lowest += stride < 0 ? stride * (ptrdiff_t)(count - 1) : 0;
    }
    const dcrf_status status = device->backend->arrays.copy(
        device->opened, *copy, (const char *)view->data + lowest, bytes, error);
    view->data = (const char *)*copy - lowest;
    return status;
}

static dcrf_status plan_kernel(dcrf_operator **op, const struct dcrf_device *device,
                               const dcrf_arrays *arrays, size_t m, dcrf_workspace *workspace,
                               dcrf_error *error) {
    dcrf_kernel kernel = arrays->kernels[m];
    const bool is_exact = arrays->operator_kind == DCRF_OPERATOR_EXACT;
    char name[NAME_BYTES];
    bool is_there = false;
    void *copy = NULL;
    struct dcrf_features features;
    dcrf_status status = check_image(&kernel, m, name, error);
    if (status == DCRF_OK && kernel.kind != DCRF_KERNEL_SPATIAL)
        status = check_place(device, &kernel.channels, &arrays->grid, name, &is_there, error);
    if (status == DCRF_OK && is_exact && is_there)
        status = bring_image(device, &arrays->grid, &kernel.channels, &copy, error);
    if (status == DCRF_OK)
        status = is_exact ? dcrf_features_new(&features, &arrays->grid, &kernel, error)
                          : dcrf_features_describe(&features, &arrays->grid, &kernel, error);
    if (status == DCRF_OK) {
        status = dcrf_operator_build(op, &features, kernel.normalization, arrays->operator_kind,
                                     workspace, error);
        dcrf_features_clear(&features);
    }
    dcrf_release(copy);
    return status;
}

/* The results, with the first wrong number as an error. */
static dcrf_status run_device(const struct dcrf_device *device, const dcrf_arrays *arrays,
                              const struct dcrf_backend_run *run, dcrf_error *error) {
    size_t wrong = SIZE_MAX;
    char where[DCRF_PLACE_BYTES];
    const dcrf_status status =
        device->backend->arrays.mean_field(device->opened, run, &wrong, error);
    if (status < 0 || wrong == SIZE_MAX)
        return status;
    dcrf_place_text(&arrays->grid, wrong / run->labels, where);
    if (arrays->unary_kind == DCRF_UNARY_PROBABILITIES)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the unary holds a number at %s, label %zu, that is not a probability",
                         where, wrong % run->labels);
    return dcrf_fail(error, DCRF_ERROR_NOT_FINITE,
                     "the unary holds a number at %s, label %zu, that is not finite", where,
                     wrong % run->labels);
}

static dcrf_status run_there(dcrf_workspace *workspace, const struct dcrf_device *device,
                             const dcrf_arrays *arrays, size_t variables, dcrf_error *error) {
    dcrf_operator *operators[DCRF_ARRAYS_KERNELS] = {NULL};
    double weights[DCRF_ARRAYS_KERNELS];
    struct dcrf_backend_run run = {.grid = &arrays->grid,
                                   .variables = variables,
                                   .labels = arrays->unary.channels,
                                   .stride = dcrf_padded(arrays->unary.channels),
                                   .unary = arrays->unary,
                                   .kind = arrays->unary_kind,
                                   .operators = operators,
                                   .weights = weights,
                                   .iterations = arrays->iterations,
                                   .marginals = arrays->marginals,
                                   .labels_out = arrays->labels};
    bool is_there;
    dcrf_status status =
        check_place(device, &arrays->unary, &arrays->grid, "the unary", &is_there, error);
    if (status == DCRF_OK && arrays->marginals.data)
        status = check_place(device, &arrays->marginals, &arrays->grid, "the array for marginals",
                             &is_there, error);
    if (status == DCRF_OK && arrays->labels.data)
        status = check_place(device, &arrays->labels, &arrays->grid, "the array for labels",
                             &is_there, error);
    if (status == DCRF_OK && arrays->stream)
        status = device->backend->arrays.wait_for(device->opened, arrays->stream, error);
    for (size_t m = 0; m < arrays->kernel_count && status == DCRF_OK; m++) {
        if (arrays->kernels[m].weight == 0)
            continue;
        weights[run.kernel_count] = arrays->kernels[m].weight;
        status = plan_kernel(&operators[run.kernel_count], device, arrays, m, workspace, error);
        run.kernel_count += status == DCRF_OK;
    }
    if (status == DCRF_OK)
        status = run_device(device, arrays, &run, error);
    for (size_t m = 0; m < run.kernel_count; m++)
        dcrf_operator_free(&operators[m]);
    return status;
}

dcrf_status dcrf_mean_field_arrays(dcrf_workspace *workspace, const dcrf_arrays *arrays,
                                   dcrf_error *error) {
    if (!workspace || !arrays)
        return dcrf_fail_null(error, "the workspace or the arrays");
    size_t variables;
    char name[NAME_BYTES];
    dcrf_status status = check_arrays(arrays, &variables, error);
    for (size_t m = 0; m < arrays->kernel_count && status == DCRF_OK; m++)
        status = check_image(&arrays->kernels[m], m, name, error);
    if (status < 0)
        return status;
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    return device ? run_there(workspace, device, arrays, variables, error)
                  : run_here(workspace, arrays, variables, error);
}
