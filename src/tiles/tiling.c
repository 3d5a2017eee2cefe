/* Cutting a grid into tiles.
 *
 * Along an axis of n variables, tile k of c has the variables from n k / c to n (k + 1) / c, and
 * its window has `overlap` more on each side, clipped to the grid. c is the smallest number for
 * which no window is longer than requested: ceil(n / c) + 2 overlap <= window. */
#include "core/error.h"
#include "core/memory.h"
#include "model/view.h"

#include <dcrf/tiles.h>
#include <math.h>

void dcrf_tiling_overlap(const dcrf_grid *grid, const dcrf_kernel *kernels, size_t count,
                         double sigmas, size_t overlap[DCRF_MAX_AXES]) {
    for (size_t axis = 0; overlap && axis < DCRF_MAX_AXES; axis++) {
        double widest = 0;
        for (size_t k = 0; grid && kernels && axis < grid->axes && k < count; k++)
            if (kernels[k].kind != DCRF_KERNEL_FEATURES)
                widest = fmax(widest, kernels[k].sigma[axis] / grid->spacing[axis]);
        /* The overlap is at most the size of the grid. */
        overlap[axis] =
            grid ? (size_t)fmin(ceil(fmax(sigmas, 0) * widest), (double)grid->size[axis]) : 0;
    }
}

static dcrf_status cut_axis(dcrf_tiling *tiling, size_t axis, size_t window, size_t overlap,
                            dcrf_error *error) {
    const size_t size = tiling->grid.size[axis];
    tiling->count[axis] = 1;
    tiling->overlap[axis] = overlap;
    if (window == 0 || window >= size)
        return DCRF_OK;
    if (overlap >= window || window - overlap <= overlap)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "windows of %zu along axis %zu have no room for an overlap of %zu on both "
                         "sides",
                         window, axis, overlap);
    const size_t inner = window - 2 * overlap;
    tiling->count[axis] = (size - 1) / inner + 1;
    return DCRF_OK;
}

dcrf_status dcrf_tiling_make(dcrf_tiling *tiling, const dcrf_grid *grid,
                             const size_t window[DCRF_MAX_AXES],
                             const size_t overlap[DCRF_MAX_AXES], dcrf_error *error) {
    size_t variables;
    if (!tiling || !grid || !window || !overlap)
        return dcrf_fail_null(error, "the tiling, the grid, the window or the overlap");
    dcrf_tiling made = {.grid = *grid};
    dcrf_status status = dcrf_grid_check(grid, &variables, error);
    for (size_t axis = 0; status >= 0 && axis < DCRF_MAX_AXES; axis++)
        status = cut_axis(&made, axis, window[axis], overlap[axis], error);
    if (status >= 0)
        *tiling = made;
    return status;
}

size_t dcrf_tiling_count(const dcrf_tiling *tiling) {
    return tiling ? tiling->count[0] * tiling->count[1] * tiling->count[2] : 0;
}

/* floor(size * k / count) without overflow. */
static size_t boundary(size_t size, size_t k, size_t count) {
    return size / count * k + size % count * k / count;
}

dcrf_tile dcrf_tiling_tile(const dcrf_tiling *tiling, size_t index) {
    dcrf_tile tile = {.index = index};
    size_t rest = index;
    for (size_t axis = 0; tiling && axis < DCRF_MAX_AXES; axis++) {
        const size_t count = tiling->count[axis], size = tiling->grid.size[axis];
        const size_t overlap = tiling->overlap[axis], k = rest % count;
        const size_t begin = boundary(size, k, count), end = boundary(size, k + 1, count);
        const size_t before = begin < overlap ? begin : overlap;
        const size_t behind = size - end < overlap ? size - end : overlap;
        rest /= count;
        tile.first[axis] = begin - before;
        tile.size[axis] = before + (end - begin) + behind;
        tile.inner_first[axis] = before;
        tile.inner_size[axis] = end - begin;
    }
    return tile;
}

dcrf_grid dcrf_tiling_window(const dcrf_tiling *tiling, const dcrf_tile *tile) {
    dcrf_grid grid = {0};
    if (!tiling || !tile)
        return grid;
    grid = tiling->grid;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        grid.size[axis] = tile->size[axis];
    return grid;
}

size_t dcrf_tiling_largest(const dcrf_tiling *tiling) {
    size_t largest = 0;
    for (size_t index = 0; index < dcrf_tiling_count(tiling); index++) {
        const dcrf_tile tile = dcrf_tiling_tile(tiling, index);
        const size_t variables = tile.size[0] * tile.size[1] * tile.size[2];
        largest = variables > largest ? variables : largest;
    }
    return largest;
}
