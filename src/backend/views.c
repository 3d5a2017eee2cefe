#include "backend/views.h"

#include "backend/device.h"
#include "core/error.h"
#include "core/memory.h"

#include <stdlib.h>

struct axis {
    size_t count;
    ptrdiff_t stride;
};

/* The axes of the grid, then the channels. */
static struct axis axis_of(const dcrf_view *view, const dcrf_grid *grid, size_t i) {
    return i < DCRF_MAX_AXES ? (struct axis){grid->size[i], view->stride[i]}
                             : (struct axis){view->channels, view->channel_stride};
}

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
        axes[i] = axis_of(view, grid, i);
        if (axes[i].count == 1)
            axes[i].stride = 0;
        else if (axes[i].stride < 0)
            axes[i].stride = -axes[i].stride;
    }
    qsort(axes, DCRF_MAX_AXES + 1, sizeof *axes, compare_axes);
    for (size_t i = 0; i <= DCRF_MAX_AXES; i++) {
        if (axes[i].count > 1 && (size_t)axes[i].stride != step)
            return false;
        step *= axes[i].count;
    }
    return true;
}

/* Device threads read whole elements. */
static bool is_aligned(const dcrf_view *view) {
    size_t bits = (size_t)(uintptr_t)view->data | (size_t)view->channel_stride;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        bits |= (size_t)view->stride[axis];
    return bits % dcrf_type_bytes(view->type) == 0;
}

dcrf_status dcrf_views_check(const dcrf_workspace *workspace, const dcrf_view *view,
                             const dcrf_grid *grid, const char *what, dcrf_error *error) {
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    size_t index;
    if (!device)
        return DCRF_OK;
    TRY(device->backend->arrays->find(view->data, &index, error));
    if (index == SIZE_MAX)
        return is_contiguous(view, grid)
                   ? DCRF_OK
                   : dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                               "%s must be contiguous, in any order of its axes, to go to a device",
                               what);
    if (index != device->index)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "%s is on cuda:%zu, and the work is done on %s", what, index,
                         device->name);
    return is_aligned(view)
               ? DCRF_OK
               : dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s is not aligned to its elements", what);
}

dcrf_status dcrf_views_fetch_image(const dcrf_workspace *workspace, const dcrf_grid *grid,
                                   dcrf_view *view, void **copy, dcrf_error *error) {
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    size_t index = SIZE_MAX, bytes = dcrf_type_bytes(view->type);
    ptrdiff_t lowest = 0; /* with negative strides, the memory begins before view->data */
    if (device)
        TRY(device->backend->arrays->find(view->data, &index, error));
    if (index == SIZE_MAX)
        return DCRF_OK;
    if (!is_contiguous(view, grid))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the image of an exact operator must be contiguous on the device");
    for (size_t i = 0; i <= DCRF_MAX_AXES; i++) {
        const struct axis axis = axis_of(view, grid, i);
        lowest += axis.stride < 0 ? axis.stride * (ptrdiff_t)(axis.count - 1) : 0;
        bytes *= axis.count;
    }
    *copy = dcrf_allocate(bytes, 1);
    if (!*copy)
        return dcrf_fail_memory(error, "an image");
    const void *from = (const char *)view->data + lowest;
    view->data = (const char *)*copy - lowest;
    return device->backend->arrays->copy(device->opened, *copy, from, bytes, error);
}

dcrf_status dcrf_views_wait(const dcrf_workspace *workspace, void *stream, dcrf_error *error) {
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    return device && stream ? device->backend->arrays->wait_for(device->opened, stream, error)
                            : DCRF_OK;
}
