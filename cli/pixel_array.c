#include "pixel_array.h"

#include "io/file.h"
#include "io/npy.h"

#include <stdlib.h>
#include <string.h>

dcrf_grid image_grid(const cli_image *image) {
    return dcrf_grid_2d(image->width, image->height);
}

dcrf_view image_view(const cli_image *image) {
    const dcrf_grid grid = image_grid(image);
    return dcrf_view_interleaved(image->colours, DCRF_F32, &grid, IMAGE_CHANNELS);
}

static bool wrong_shape(const npy_array *npy, const char *path, const cli_image *image,
                        cli_problem *problem) {
    char text[NPY_TEXT_BYTES];
    const size_t w = image->width, h = image->height;
    const bool transposed =
        w != h && ((npy->shape[0] == w && npy->shape[1] == h) ||
                   (npy->axes == 3 && npy->shape[1] == w && npy->shape[2] == h));
    return bad_input(problem, path,
                     "has the shape %s; the image of %zu x %zu pixels needs (%zu, %zu, C) or (C, "
                     "%zu, %zu)%s",
                     npy_shape_text(npy, text), w, h, h, w, h, w,
                     transposed ? "; width and height seem to be swapped" : "");
}

/* Decide how the array lies over the image. */
static bool find_layout(const npy_array *npy, const char *path, const cli_image *image,
                        array_layout *layout, cli_problem *problem) {
    const size_t w = image->width, h = image->height;
    const bool hwc = npy->axes == 3 && npy->shape[0] == h && npy->shape[1] == w;
    const bool chw = npy->axes == 3 && npy->shape[1] == h && npy->shape[2] == w;
    char text[NPY_TEXT_BYTES];
    if (npy->axes == 2 && npy->shape[0] == h && npy->shape[1] == w)
        *layout = LAYOUT_HWC;
    else if (*layout == LAYOUT_AUTO && hwc && chw)
        return bad_input(problem, path,
                         "has the shape %s, which fits (H, W, C) and (C, H, W); say which with "
                         "--layout hwc or --layout chw",
                         npy_shape_text(npy, text));
    else if (hwc && *layout != LAYOUT_CHW)
        *layout = LAYOUT_HWC;
    else if (chw && *layout != LAYOUT_HWC)
        *layout = LAYOUT_CHW;
    else if (hwc || chw)
        return bad_input(problem, path, "has the shape %s, which is not the one of --layout %s",
                         npy_shape_text(npy, text), hwc ? "chw" : "hwc");
    else
        return wrong_shape(npy, path, image, problem);
    return true;
}

static bool array_from_npy(const file_bytes *bytes, const char *path, const cli_image *image,
                           array_layout layout, pixel_array *array, cli_problem *problem) {
    npy_array npy;
    if (!npy_parse(bytes->data, bytes->size, path, &npy, problem) ||
        !find_layout(&npy, path, image, &layout, problem) ||
        !npy_to_floats(&npy, path, &array->values, problem))
        return false;
    const dcrf_grid grid = image_grid(image);
    const size_t channels = npy.axes == 2 ? 1 : layout == LAYOUT_CHW ? npy.shape[0] : npy.shape[2];
    array->view = layout == LAYOUT_CHW
                      ? dcrf_view_planar(array->values, DCRF_F32, &grid, channels)
                      : dcrf_view_interleaved(array->values, DCRF_F32, &grid, channels);
    array->axes = npy.axes;
    memcpy(array->shape, npy.shape, sizeof array->shape);
    array->integers = npy_holds_integers(&npy);
    return true;
}

bool pixel_array_read(const char *path, const cli_image *image, array_layout layout,
                      pixel_array *array, cli_problem *problem) {
    file_bytes bytes;
    *array = (pixel_array){0};
    if (!file_read(path, &bytes, problem))
        return false;
    const bool done = array_from_npy(&bytes, path, image, layout, array, problem);
    file_free(&bytes);
    return done;
}

void pixel_array_free(pixel_array *array) {
    free(array->values);
    array->values = NULL;
}
