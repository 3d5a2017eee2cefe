#include "model/pixel_array.h"

#include "io/exif.h"
#include "io/nifti.h"
#include "io/npz.h"

#include <dcrf/unary.h>
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

/* An array and its image. */
typedef struct fitting {
    const npy_array *npy;
    size_t first; /* 1: after a leading axis of size 1, a batch of one */
    const char *path;
    const cli_image *image;
    array_fit fit;
} fitting;

static bool is_batch_of_one(const npy_array *npy, const cli_image *image) {
    return npy->axes == image_grid(image).axes + 2 && npy->shape[0] == 1;
}

dcrf_view image_view(const cli_image *image) {
    const dcrf_grid grid = image_grid(image);
    return dcrf_view_interleaved(image->colours, DCRF_F32, &grid, image->channels);
}

/* The grid of the axes from `axis` on, after the batch axis; false: there are too few. */
static bool grid_from(const fitting *f, size_t axis, bool reversed, dcrf_grid *grid) {
    const size_t first = f->first + axis;
    *grid = image_grid(f->image);
    if (f->npy->axes < first + grid->axes)
        return false;
    for (size_t k = 0; k < grid->axes; k++)
        grid->size[k] = f->npy->shape[reversed ? first + k : first + grid->axes - 1 - k];
    return true;
}

/* Do the axes from `axis` on have the shape of the image? */
static bool shape_has(const fitting *f, size_t axis, bool reversed) {
    const dcrf_grid image = image_grid(f->image);
    dcrf_grid grid;
    return grid_from(f, axis, reversed, &grid) &&
           memcmp(grid.size, image.size, sizeof grid.size) == 0;
}

static bool shape_fits(const fitting *f, size_t axis) {
    const dcrf_grid image = image_grid(f->image);
    dcrf_grid grid;
    return f->fit == ARRAY_MAY_BE_SMALLER && grid_from(f, axis, false, &grid) &&
           dcrf_unary_fits(&grid, &image);
}

static bool wrong_shape(const fitting *f, cli_problem *problem) {
    const cli_image *image = f->image;
    const size_t axes = image_grid(image).axes;
    char text[NPY_TEXT_BYTES], size_text[IMAGE_TEXT_BYTES], extents[IMAGE_TEXT_BYTES];
    const fitting behind = {f->npy, 1, f->path, image, f->fit};
    if (f->npy->axes == axes + 2 && (shape_has(&behind, 0, false) || shape_has(&behind, 1, false) ||
                                     shape_fits(&behind, 0) || shape_fits(&behind, 1)))
        return bad_input(problem, f->path,
                         "has the shape %s, a batch of %zu; save one of them: array[0]",
                         npy_shape_text(f->npy, text), f->npy->shape[0]);
    if (image_is_volume(image))
        snprintf(extents, sizeof extents, "%zu, %zu, %zu", image->depth, image->height,
                 image->width);
    else
        snprintf(extents, sizeof extents, "%zu, %zu", image->height, image->width);
    const bool reversed = shape_has(f, 0, true) || shape_has(f, 1, true);
    return bad_input(
        problem, f->path, "has the shape %s; the image of %s needs (%s, C) or (C, %s)%s%s",
        npy_shape_text(f->npy, text), image_size_text(image, size_text), extents, extents,
        f->fit == ARRAY_MAY_BE_SMALLER ? ", or smaller with its proportions" : "",
        !reversed                             ? ""
        : image_is_volume(image)              ? "; its axes seem to be reversed"
        : exif_swaps_axes(image->orientation) ? IMAGE_TURNED_ADVICE
                                              : "; width and height seem to be swapped");
}

/* Determine the layout of the array. */
static bool find_layout(const fitting *f, array_layout *layout, cli_problem *problem) {
    const size_t axes = image_grid(f->image).axes;
    const bool with_channels = f->npy->axes - f->first == axes + 1;
    bool hwc = with_channels && shape_has(f, 0, false);
    bool chw = with_channels && shape_has(f, 1, false);
    char text[NPY_TEXT_BYTES];
    if (f->npy->axes - f->first == axes && shape_has(f, 0, false)) {
        *layout = LAYOUT_HWC;
        return true;
    }
    if (with_channels && !hwc && !chw) {
        hwc = shape_fits(f, 0);
        chw = shape_fits(f, 1);
    }
    if (!hwc && !chw)
        return wrong_shape(f, problem);
    if (*layout == LAYOUT_AUTO && hwc && chw)
        return bad_input(problem, f->path,
                         "has the shape %s, which fits (H, W, C) and (C, H, W); say which with "
                         "--layout hwc or --layout chw",
                         npy_shape_text(f->npy, text));
    if ((*layout == LAYOUT_CHW && !chw) || (*layout == LAYOUT_HWC && !hwc))
        return bad_input(problem, f->path, "has the shape %s, which is not the one of --layout %s",
                         npy_shape_text(f->npy, text), hwc ? "chw" : "hwc");
    if (*layout == LAYOUT_AUTO)
        *layout = hwc ? LAYOUT_HWC : LAYOUT_CHW;
    return true;
}

/* How a .npy maps onto the image, from its header. */
static bool place_npy(const file_bytes *bytes, const char *path, const cli_image *image,
                      array_layout layout, array_fit fit, array_place *place,
                      cli_problem *problem) {
    fitting f = {&place->npy, 0, path, image, fit};
    if (!npy_parse(bytes->data, bytes->size, path, &place->npy, problem))
        return false;
    f.first = is_batch_of_one(&place->npy, image);
    if (!find_layout(&f, &layout, problem))
        return false;
    place->axis = f.first + (layout == LAYOUT_CHW);
    grid_from(&f, layout == LAYOUT_CHW, false, &place->grid);
    place->channel_axis = place->npy.axes - f.first == place->grid.axes + 1;
    place->channels = !place->channel_axis   ? 1
                      : layout == LAYOUT_CHW ? place->npy.shape[f.first]
                                             : place->npy.shape[place->npy.axes - 1];
    place->is_planar = layout == LAYOUT_CHW;
    place->offset = (size_t)(place->npy.elements - bytes->data);
    return true;
}

/* The bytes of a .npy, which may be inside an archive. */
static bool map_array(const char *path, file_bytes *bytes, cli_problem *problem) {
    if (!file_map(path, bytes, problem))
        return false;
    const bool done = npz_unpack(bytes, path, problem);
    if (!done)
        file_free(bytes);
    return done;
}

bool pixel_array_check(const char *path, const cli_image *image, array_layout layout, array_fit fit,
                       cli_problem *problem) {
    array_place place;
    file_bytes bytes;
    if (!file_is_plain(path))
        return true;
    if (!map_array(path, &bytes, problem))
        return false;
    const bool done = !npy_recognize(bytes.data, bytes.size) ||
                      place_npy(&bytes, path, image, layout, fit, &place, problem);
    file_free(&bytes);
    return done;
}

bool pixel_array_place(const char *path, const cli_image *image, array_layout layout, array_fit fit,
                       array_place *place, cli_problem *problem) {
    file_bytes bytes;
    if (!file_map(path, &bytes, problem))
        return false;
    const bool done = !npz_recognize(bytes.data, bytes.size)
                          ? place_npy(&bytes, path, image, layout, fit, place, problem)
                          : bad_input(problem, path,
                                      "is a .npz archive, which cannot be read by windows; save "
                                      "its array with numpy.save");
    file_free(&bytes);
    place->npy.elements = NULL;
    return done;
}

static bool array_from_npy(const char *path, const cli_image *image, array_layout layout,
                           array_fit fit, pixel_array *array, cli_problem *problem) {
    array_place place;
    if (!place_npy(&array->bytes, path, image, layout, fit, &place, problem))
        return false;
    array->values = npy_floats_in_place(&place.npy);
    if (!array->values) {
        if (!npy_to_floats(&place.npy, path, &array->own_values, problem))
            return false;
        array->values = array->own_values;
        file_free(&array->bytes);
    }
    array->grid = place.grid;
    array->channel_axis = place.channel_axis;
    array->view =
        place.is_planar
            ? dcrf_view_planar(array->values, DCRF_F32, &array->grid, place.channels)
            : dcrf_view_interleaved(array->values, DCRF_F32, &array->grid, place.channels);
    array->axes = place.npy.axes;
    memcpy(array->shape, place.npy.shape, sizeof array->shape);
    array->integers = npy_holds_integers(&place.npy);
    return true;
}

/* ---- NIfTI ---------------------------------------------------------------------------------- */

static bool array_from_volume(nifti_volume *volume, const char *path, const cli_image *image,
                              array_fit fit, pixel_array *array, cli_problem *problem) {
    const dcrf_grid image_size = image_grid(image);
    dcrf_grid grid = image_size;
    char text[NIFTI_TEXT_BYTES], image_text[IMAGE_TEXT_BYTES];
    memcpy(grid.size, volume->size, sizeof grid.size);
    const bool fits = fit == ARRAY_MAY_BE_SMALLER
                          ? dcrf_unary_fits(&grid, &image_size) != 0
                          : memcmp(grid.size, image_size.size, sizeof grid.size) == 0;
    if (!image_is_volume(image) || !fits)
        return bad_input(problem, path, "is %s and the image %s; they must agree",
                         nifti_size_text(volume, text), image_size_text(image, image_text));
    if (!nifti_parse_voxels(array->bytes.data, array->bytes.size, path, volume, problem) ||
        !nifti_to_floats(volume, path, &array->own_values, problem))
        return false;
    array->values = array->own_values;
    array->grid = grid;
    array->view = dcrf_view_planar(array->values, DCRF_F32, &grid, volume->channels);
    array->channel_axis = volume->channels > 1;
    array->axes = 0;
    if (array->channel_axis)
        array->shape[array->axes++] = volume->channels;
    for (size_t axis = grid.axes; axis-- > 0;)
        array->shape[array->axes++] = grid.size[axis];
    array->integers = nifti_holds_integers(volume);
    return true;
}

static bool array_from_nifti(const char *path, const cli_image *image, array_fit fit,
                             pixel_array *array, cli_problem *problem) {
    nifti_volume volume;
    if (!nifti_parse_header(array->bytes.data, array->bytes.size, path, &volume, problem))
        return false;
    const bool done = array_from_volume(&volume, path, image, fit, array, problem);
    nifti_free(&volume);
    file_free(&array->bytes);
    return done;
}

/* ---- reading -------------------------------------------------------------------------------- */

bool pixel_array_read(const char *path, const cli_image *image, array_layout layout, array_fit fit,
                      pixel_array *array, cli_problem *problem) {
    *array = (pixel_array){0};
    if (!map_array(path, &array->bytes, problem))
        return false;
    const bool done = nifti_recognize(array->bytes.data, array->bytes.size)
                          ? array_from_nifti(path, image, fit, array, problem)
                          : array_from_npy(path, image, layout, fit, array, problem);
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

void pixel_array_replace(pixel_array *array, const cli_image *image, float *values) {
    const size_t channels = array->view.channels;
    pixel_array_free(array);
    array->grid = image_grid(image);
    array->own_values = values;
    array->values = values;
    array->view = dcrf_view_interleaved(values, DCRF_F32, &array->grid, channels);
    array->channel_axis = true;
    array->axes = image_shape(image, array->shape);
    array->shape[array->axes++] = channels;
}
