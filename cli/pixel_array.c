#include "pixel_array.h"

#include "io/nifti.h"

#include <stdlib.h>
#include <string.h>

dcrf_grid image_grid(const cli_image *image) {
    if (!image_is_volume(image))
        return dcrf_grid_2d(image->width, image->height);
    dcrf_grid grid = dcrf_grid_3d(image->width, image->height, image->depth);
    for (size_t axis = 0; axis < 3; axis++)
        grid.spacing[axis] = image->spacing_mm[axis];
    return grid;
}

/* ---- .npy ----------------------------------------------------------------------------------- */

/* Do the extents of the image stand in the array from `first` on, in this order or reversed? */
static bool shape_has(const npy_array *npy, size_t first, const cli_image *image, bool reversed) {
    size_t shape[3];
    const size_t axes = image_shape(image, shape);
    for (size_t i = 0; i < axes; i++)
        if (first + i >= npy->axes || npy->shape[first + i] != shape[reversed ? axes - 1 - i : i])
            return false;
    return true;
}

dcrf_view image_view(const cli_image *image) {
    const dcrf_grid grid = image_grid(image);
    return dcrf_view_interleaved(image->colours, DCRF_F32, &grid, image->channels);
}

static bool wrong_shape(const npy_array *npy, const char *path, const cli_image *image,
                        cli_problem *problem) {
    char text[NPY_TEXT_BYTES], size_text[IMAGE_TEXT_BYTES], extents[IMAGE_TEXT_BYTES];
    if (image_is_volume(image))
        snprintf(extents, sizeof extents, "%zu, %zu, %zu", image->depth, image->height,
                 image->width);
    else
        snprintf(extents, sizeof extents, "%zu, %zu", image->height, image->width);
    const bool reversed = shape_has(npy, 0, image, true) || shape_has(npy, 1, image, true);
    return bad_input(problem, path, "has the shape %s; the image of %s needs (%s, C) or (C, %s)%s",
                     npy_shape_text(npy, text), image_size_text(image, size_text), extents, extents,
                     !reversed                ? ""
                     : image_is_volume(image) ? "; its axes seem to be reversed"
                                              : "; width and height seem to be swapped");
}

/* Decide how the array lies over the image. */
static bool find_layout(const npy_array *npy, const char *path, const cli_image *image,
                        array_layout *layout, cli_problem *problem) {
    size_t shape[3];
    const size_t axes = image_shape(image, shape);
    const bool with_channels = npy->axes == axes + 1;
    const bool hwc = with_channels && shape_has(npy, 0, image, false);
    const bool chw = with_channels && shape_has(npy, 1, image, false);
    char text[NPY_TEXT_BYTES];
    if (npy->axes == axes && shape_has(npy, 0, image, false))
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

static bool array_from_npy(const char *path, const cli_image *image, array_layout layout,
                           pixel_array *array, cli_problem *problem) {
    npy_array npy;
    if (!npy_parse(array->bytes.data, array->bytes.size, path, &npy, problem) ||
        !find_layout(&npy, path, image, &layout, problem))
        return false;
    array->values = npy_floats_in_place(&npy);
    if (!array->values) {
        if (!npy_to_floats(&npy, path, &array->own_values, problem))
            return false;
        array->values = array->own_values;
        file_free(&array->bytes);
    }
    const dcrf_grid grid = image_grid(image);
    array->channel_axis = npy.axes == grid.axes + 1;
    const size_t channels = !array->channel_axis   ? 1
                            : layout == LAYOUT_CHW ? npy.shape[0]
                                                   : npy.shape[npy.axes - 1];
    array->view = layout == LAYOUT_CHW
                      ? dcrf_view_planar(array->values, DCRF_F32, &grid, channels)
                      : dcrf_view_interleaved(array->values, DCRF_F32, &grid, channels);
    array->axes = npy.axes;
    memcpy(array->shape, npy.shape, sizeof array->shape);
    array->integers = npy_holds_integers(&npy);
    return true;
}

/* ---- NIfTI ---------------------------------------------------------------------------------- */

static bool array_from_volume(const nifti_volume *volume, const char *path, const cli_image *image,
                              pixel_array *array, cli_problem *problem) {
    const dcrf_grid grid = image_grid(image);
    char text[NIFTI_TEXT_BYTES], image_text[IMAGE_TEXT_BYTES];
    if (volume->size[0] != image->width || volume->size[1] != image->height ||
        volume->size[2] != image->depth || !image_is_volume(image))
        return bad_input(problem, path, "is %s and the image %s; they must agree",
                         nifti_size_text(volume, text), image_size_text(image, image_text));
    if (!nifti_to_floats(volume, path, &array->own_values, problem))
        return false;
    array->values = array->own_values;
    array->view = dcrf_view_planar(array->values, DCRF_F32, &grid, volume->channels);
    array->channel_axis = volume->channels > 1;
    array->axes = 0;
    if (array->channel_axis)
        array->shape[array->axes++] = volume->channels;
    array->axes += image_shape(image, array->shape + array->axes);
    array->integers = nifti_holds_integers(volume);
    return true;
}

static bool array_from_nifti(const char *path, const cli_image *image, pixel_array *array,
                             cli_problem *problem) {
    nifti_volume volume;
    if (!nifti_parse(array->bytes.data, array->bytes.size, path, &volume, problem))
        return false;
    const bool done = array_from_volume(&volume, path, image, array, problem);
    nifti_free(&volume);
    file_free(&array->bytes);
    return done;
}

/* ---- both ----------------------------------------------------------------------------------- */

bool pixel_array_read(const char *path, const cli_image *image, array_layout layout,
                      pixel_array *array, cli_problem *problem) {
    *array = (pixel_array){0};
    if (!file_map(path, &array->bytes, problem))
        return false;
    const bool done = nifti_recognize(array->bytes.data, array->bytes.size)
                          ? array_from_nifti(path, image, array, problem)
                          : array_from_npy(path, image, layout, array, problem);
    if (!done)
        pixel_array_free(array);
    return done;
}

void pixel_array_free(pixel_array *array) {
    free(array->own_values);
    array->own_values = NULL;
    array->values = NULL;
    file_free(&array->bytes);
}

size_t pixel_array_count(const pixel_array *array) {
    size_t count = 1;
    for (size_t axis = 0; axis < array->axes; axis++)
        count *= array->shape[axis];
    return count;
}

float *pixel_array_own(pixel_array *array) {
    if (!array->own_values) {
        const size_t bytes = pixel_array_count(array) * sizeof *array->values;
        array->own_values = malloc(bytes);
        if (!array->own_values)
            return NULL;
        memcpy(array->own_values, array->values, bytes);
        array->values = array->own_values;
        array->view.data = array->own_values;
        file_free(&array->bytes);
    }
    return array->own_values;
}
