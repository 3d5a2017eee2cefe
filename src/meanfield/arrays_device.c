/* Mean field from arrays to arrays on a device: dcrf/mean_field.h. Problems that are alike form one
 * batch: their variables are stored one after the other, and every launch covers all of them. */
#include "meanfield/arrays_device.h"

#include "core/error.h"
#include "core/memory.h"
#include "model/model.h"
#include "model/view.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- checks and copies ----------------------------------------------------------------------- */

struct axis {
    size_t count;
    ptrdiff_t stride;
};

static int compare_axes(const void *one, const void *other) {
    const ptrdiff_t a = ((const struct axis *)one)->stride;
    const ptrdiff_t b = ((const struct axis *)other)->stride;
    return (a > b) - (a < b);
}

/* Are the elements stored without gaps or overlap? */
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
                               const dcrf_grid *grid, const char *what, bool *is_on_device,
                               dcrf_error *error) {
    size_t index;
    const dcrf_status status = device->backend->arrays->find(view->data, &index, error);
    if (status < 0)
        return status;
    *is_on_device = index != SIZE_MAX;
    if (*is_on_device && index != device->index)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "%s is on cuda:%zu, and the work is done on %s", what, index,
                         device->name);
    if (*is_on_device && dcrf_type_bytes(view->type) > 1) {
        /* Device threads read whole elements, which must be aligned. */
        const size_t bytes = dcrf_type_bytes(view->type);
        size_t bits = (size_t)(uintptr_t)view->data | (size_t)view->channel_stride;
        for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
            bits |= (size_t)view->stride[axis];
        if (bits % bytes != 0)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s is not aligned to its elements", what);
    }
    if (!*is_on_device && !is_contiguous(view, grid))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "%s must be contiguous, in any order of its axes, to go to a device",
                         what);
    return DCRF_OK;
}

/* Copy an image from the device, for operators that are planned with the host's help. */
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
    /* With negative strides, the memory begins before view->data. */
    ptrdiff_t lowest = 0;
    for (size_t i = 0; i <= DCRF_MAX_AXES; i++) {
        const ptrdiff_t stride = i < DCRF_MAX_AXES ? view->stride[i] : view->channel_stride;
        const size_t count = i < DCRF_MAX_AXES ? grid->size[i] : view->channels;
        lowest += stride < 0 ? stride * (ptrdiff_t)(count - 1) : 0;
    }
    const dcrf_status status = device->backend->arrays->copy(
        device->opened, *copy, (const char *)view->data + lowest, bytes, error);
    view->data = (const char *)*copy - lowest;
    return status;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* The operator of a kernel over the pictures of all problems. */
static dcrf_status plan_kernel(dcrf_operator **op, const struct dcrf_batch *batch, size_t m,
                               dcrf_view *images, dcrf_error *error) {
    const dcrf_grid *grid = &batch->arrays->grid;
    dcrf_kernel kernel = batch->arrays->kernels[m];
    const bool is_exact = batch->arrays->operator_kind == DCRF_OPERATOR_EXACT;
    const bool has_image = kernel.kind != DCRF_KERNEL_SPATIAL;
    char name[DCRF_ARRAYS_NAME_BYTES];
    bool is_on_device = false;
    void *copy = NULL;
    struct dcrf_features features;
    dcrf_status status = DCRF_OK;
    for (size_t p = 0; p < batch->count && has_image && status == DCRF_OK; p++) {
        images[p] = batch->arrays[p].kernels[m].channels;
        dcrf_arrays_image_name(m, name);
        status = check_place(batch->device, &images[p], grid, name, &is_on_device, error);
    }
    if (status == DCRF_OK && is_exact && is_on_device) /* exact: there is only one picture */
        status = bring_image(batch->device, grid, &kernel.channels, &copy, error);
    if (status == DCRF_OK)
        status = is_exact ? dcrf_features_new(&features, grid, &kernel, error)
                          : dcrf_features_describe(&features, grid, &kernel, error);
    if (status == DCRF_OK) {
        features.pictures = batch->count;
        features.variables *= batch->count;
        if (features.given)
            features.given = images;
        status = dcrf_operator_build(op, &features, kernel.normalization,
                                     batch->arrays->operator_kind, batch->workspace, error);
        dcrf_features_clear(&features);
    }
    dcrf_release(copy);
    return status;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Run; the first invalid number is reported as an error. */
static dcrf_status run_device(const struct dcrf_batch *batch, const struct dcrf_backend_run *run,
                              dcrf_error *error) {
    size_t wrong = SIZE_MAX;
    char where[DCRF_PLACE_BYTES];
    const struct dcrf_device *device = batch->device;
    const dcrf_status status =
        device->backend->arrays->mean_field(device->opened, run, &wrong, error);
    if (status < 0 || wrong == SIZE_MAX)
        return status;
    dcrf_place_text(run->grid, wrong / run->labels % run->variables, where);
    if (run->kind == DCRF_UNARY_PROBABILITIES)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the unary holds a number at %s, label %zu, that is not a probability",
                         where, wrong % run->labels);
    return dcrf_fail(error, DCRF_ERROR_NOT_FINITE,
                     "the unary holds a number at %s, label %zu, that is not finite", where,
                     wrong % run->labels);
}

/* The views of a batch: arrays with one view per problem. */
struct views {
    dcrf_view *unary, *marginals, *labels, *images;
};

static dcrf_status gather(const struct dcrf_batch *batch, struct views *views, dcrf_error *error) {
    const struct dcrf_device *device = batch->device;
    dcrf_status status = DCRF_OK;
    bool is_on_device;
    for (size_t p = 0; p < batch->count && status == DCRF_OK; p++) {
        const dcrf_arrays *arrays = &batch->arrays[p];
        const dcrf_grid *grid = &arrays->grid;
        views->unary[p] = arrays->unary;
        views->marginals[p] = dcrf_output_view(&arrays->marginals);
        views->labels[p] = dcrf_output_view(&arrays->labels);
        status = check_place(device, &arrays->unary, grid, "the unary", &is_on_device, error);
        if (status == DCRF_OK && arrays->marginals.data)
            status = check_place(device, &views->marginals[p], grid, "the array for marginals",
                                 &is_on_device, error);
        if (status == DCRF_OK && arrays->labels.data)
            status = check_place(device, &views->labels[p], grid, "the array for labels",
                                 &is_on_device, error);
        if (status == DCRF_OK && arrays->stream)
            status = device->backend->arrays->wait_for(device->opened, arrays->stream, error);
    }
    return status;
}

dcrf_status dcrf_arrays_run_on_device(const struct dcrf_batch *batch, dcrf_error *error) {
    const dcrf_arrays *first = batch->arrays;
    dcrf_operator *operators[DCRF_ARRAYS_KERNELS] = {NULL};
    double weights[DCRF_ARRAYS_KERNELS];
    dcrf_view *memory = dcrf_allocate(batch->count, 4 * sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "the arrays of a batch");
    struct views views = {memory, memory + batch->count, memory + 2 * batch->count,
                          memory + 3 * batch->count};
    struct dcrf_backend_run run = {.grid = &first->grid,
                                   .pictures = batch->count,
                                   .variables = batch->variables,
                                   .labels = first->unary.channels,
                                   .stride = dcrf_padded(first->unary.channels),
                                   .unary = views.unary,
                                   .kind = first->unary_kind,
                                   .operators = operators,
                                   .weights = weights,
                                   .iterations = first->iterations,
                                   .marginals = first->marginals.data ? views.marginals : NULL,
                                   .labels_out = first->labels.data ? views.labels : NULL};
    dcrf_status status = gather(batch, &views, error);
    for (size_t m = 0; m < first->kernel_count && status == DCRF_OK; m++) {
        if (first->kernels[m].weight == 0)
            continue;
        weights[run.kernel_count] = first->kernels[m].weight;
        status = plan_kernel(&operators[run.kernel_count], batch, m, views.images, error);
        run.kernel_count += status == DCRF_OK;
    }
    if (status == DCRF_OK)
        status = run_device(batch, &run, error);
    for (size_t m = 0; m < run.kernel_count; m++)
        dcrf_operator_free(&operators[m]);
    dcrf_release(memory);
    return status;
}
