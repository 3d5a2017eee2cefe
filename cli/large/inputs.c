#include "large/inputs.h"

#include "io/file.h"
#include "io/frames.h"
#include "io/label_map.h"
#include "io/nifti.h"
#include "large/frames.h"
#include "prior/map.h"
#include "prior/traits.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- limitations of tiles ------------------------------------------------------------------- */

bool large_inputs_check(const model_options *options, cli_problem *problem) {
    if (options->unary.scribbles_file)
        return bad_input(problem, "--scribbles",
                         "strokes are looked at in the whole image, which tiles are not; give "
                         "--memory more, or energies with --unary");
    if (strcmp(options->cliques_source, "none") != 0)
        return bad_input(problem, "--cliques",
                         "regions may reach across tiles; give --memory more, or leave them out");
    if (options->unary.prior_confidence_file || options->unary.prior_sure_file)
        return bad_input(problem,
                         options->unary.prior_sure_file ? "--prior-sure" : "--prior-confidence",
                         "is for borders that are refined, which tiles do not do; give --memory "
                         "more, or leave it out");
    if (options->unary.prior_unknown.kind == UNKNOWN_COLOUR)
        return bad_input(problem, "--prior-unknown", "a label map has numbers, not colours");
    return true;
}

/* ---- the image ------------------------------------------------------------------------------ */

/* A volume is read whole: a compressed one is a single stream, and its floats are little
 * compared with a tile's memory. */
static bool open_volume(large_inputs *inputs, cli_problem *problem) {
    if (!image_read(inputs->image_file, &inputs->image, problem))
        return false;
    const cli_image *image = &inputs->image;
    const size_t size[RASTER_AXES] = {image->width, image->height, image->depth};
    raster_from_floats(image->colours, size, image->channels, &inputs->colours);
    return true;
}

static bool open_image(large_inputs *inputs, const char *folder_of, cli_problem *problem) {
    if (path_is_folder(inputs->image_file))
        return large_frames_open(inputs, problem);
    if (!image_measure(inputs->image_file, &inputs->image))
        return open_volume(inputs, problem);
    if (!raster_from_picture(inputs->image_file, PICTURE_AS_COLOURS, folder_of, &inputs->colours,
                             problem))
        return false;
    inputs->image.scale = inputs->colours.scale;
    return image_read_geo(inputs->image_file, &inputs->image, problem);
}

/* ---- arrays --------------------------------------------------------------------------------- */

/* The fields of an array that unary_check_array and unary_resolve_kind use. */
static pixel_array described_array(const array_place *place) {
    pixel_array array = {.grid = place->grid, .channel_axis = place->channel_axis};
    array.view.channels = place->channels;
    array.axes = place->npy.axes;
    memcpy(array.shape, place->npy.shape, sizeof array.shape);
    return array;
}

static bool open_npy_array(large_inputs *inputs, cli_problem *problem) {
    const unary_options *unary = &inputs->options->unary;
    const dcrf_grid grid = image_grid(&inputs->image);
    array_place place;
    char text[IMAGE_TEXT_BYTES];
    if (!pixel_array_place(unary->array_file, &inputs->image, (array_layout)unary->layout,
                           ARRAY_MAY_BE_SMALLER, &place, problem))
        return false;
    const pixel_array array = described_array(&place);
    if (!unary_check_array(unary, &array, problem))
        return false;
    if (memcmp(place.grid.size, grid.size, sizeof grid.size) != 0)
        return bad_input(problem, unary->array_file,
                         "is smaller than the image of %s, and tiles need one of its size; enlarge "
                         "it, or give --memory more",
                         image_size_text(&inputs->image, text));
    inputs->labels = place.channels;
    inputs->holds_integers = npy_holds_integers(&place.npy);
    return raster_from_npy(unary->array_file, &place.npy, place.offset, place.axis, grid.axes,
                           &inputs->numbers, problem);
}

/* A NIfTI array stores one volume after the other. */
static bool open_nifti_array(large_inputs *inputs, cli_problem *problem) {
    const unary_options *unary = &inputs->options->unary;
    const cli_image *image = &inputs->image;
    const size_t size[RASTER_AXES] = {image->width, image->height, image->depth};
    pixel_array array;
    if (!pixel_array_read(unary->array_file, image, (array_layout)unary->layout, ARRAY_OF_THE_SIZE,
                          &array, problem))
        return false;
    if (!unary_check_array(unary, &array, problem)) {
        pixel_array_free(&array);
        return false;
    }
    inputs->labels = array.view.channels;
    inputs->holds_integers = array.integers;
    inputs->own_numbers = array.own_values;
    raster_from_floats(array.own_values, size, inputs->labels, &inputs->numbers);
    inputs->numbers.stride[0] = 1;
    inputs->numbers.stride[1] = size[0];
    inputs->numbers.stride[2] = size[0] * size[1];
    inputs->numbers.channel_stride = image_pixels(image);
    return true;
}

typedef enum file_kind { FILE_PICTURE, FILE_NPY, FILE_NIFTI } file_kind;

/* ---- label maps ----------------------------------------------------------------------------- */

static bool open_map(large_inputs *inputs, const char *folder_of, file_kind kind,
                     cli_problem *problem) {
    const char *file = inputs->options->unary.prior_file;
    const cli_image *image = &inputs->image;
    array_place place;
    if (!label_map_check(file, image, problem))
        return false;
    if (kind == FILE_PICTURE)
        return raster_from_picture(file, PICTURE_AS_MASK, folder_of, &inputs->numbers, problem);
    if (kind == FILE_NPY) {
        const size_t axes = image_grid(image).axes;
        char text[NPY_TEXT_BYTES];
        if (!pixel_array_place(file, image, LAYOUT_AUTO, ARRAY_OF_THE_SIZE, &place, problem))
            return false;
        return npy_holds_integers(&place.npy)
                   ? raster_from_npy(file, &place.npy, place.offset, place.axis, axes,
                                     &inputs->numbers, problem)
                   : bad_input(problem, file,
                               "holds %s where integers are needed; convert it with %s",
                               npy_type_text(&place.npy, text), "array.astype('int32')");
    }
    const size_t size[RASTER_AXES] = {image->width, image->height, image->depth};
    int32_t *numbers;
    if (!label_map_read(file, image, &numbers, problem))
        return false;
    inputs->own_numbers = numbers;
    raster_from_integers(numbers, size, &inputs->numbers);
    return true;
}

/* Inspect the whole map, row by row: the number of labels, and whether it is a mask. */
static bool inspect_map(large_inputs *inputs, cli_problem *problem) {
    const unary_options *unary = &inputs->options->unary;
    const size_t width = inputs->image.width, height = inputs->image.height;
    int32_t *numbers = malloc(width * sizeof *numbers);
    prior_traits traits = {.numbers = {.is_rounded = inputs->is_map_rounded}};
    bool done = numbers || out_of_memory(problem, unary->prior_file);
    for (size_t row = 0; done && row < height * inputs->image.depth; row++) {
        const raster_window window = {{0, row % height, row / height}, {width, 1, 1}};
        done = raster_read_integers(&inputs->numbers, &window, numbers, problem);
        if (done)
            prior_inspect(unary, &inputs->image, numbers, row * width, width, &traits);
    }
    free(numbers);
    prior_keep_palette(unary->prior_file, &inputs->facts);
    inputs->facts.is_left_rough = !(unary->confidence > 0);
    return done &&
           prior_resolve(unary, &inputs->image, &traits, &inputs->labels, &inputs->facts, problem);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* The file is mapped, and unmapped before others are mapped, so that a limit on the address
 * space suffices. */
static bool recognize(const char *path, file_kind *kind, bool *is_rounded, cli_problem *problem) {
    file_bytes bytes;
    if (!file_map(path, &bytes, problem))
        return false;
    *is_rounded =
        picture_recognize(bytes.data, bytes.size) && !picture_keeps_numbers(bytes.data, bytes.size);
    *kind = picture_recognize(bytes.data, bytes.size) ? FILE_PICTURE
            : nifti_recognize(bytes.data, bytes.size) ? FILE_NIFTI
                                                      : FILE_NPY;
    file_free(&bytes);
    return true;
}

static bool open_numbers(large_inputs *inputs, const char *folder_of, cli_problem *problem) {
    const unary_options *unary = &inputs->options->unary;
    file_kind kind;
    if (large_frames_have_energies(inputs))
        return true;
    if (!recognize(unary_file(unary), &kind, &inputs->is_map_rounded, problem))
        return false;
    if (unary->prior_file)
        return open_map(inputs, folder_of, kind, problem) && inspect_map(inputs, problem);
    return kind == FILE_NIFTI ? open_nifti_array(inputs, problem) : open_npy_array(inputs, problem);
}

bool large_inputs_open(const model_options *options, const char *image_file, const char *folder_of,
                       large_inputs *inputs, cli_problem *problem) {
    *inputs = (large_inputs){.options = options,
                             .image_file = image_file,
                             .colours = {.descriptor = -1},
                             .numbers = {.descriptor = -1}};
    const bool done = unary_check_size(&options->unary, image_file, problem) &&
                      open_image(inputs, folder_of, problem) &&
                      (open_numbers(inputs, folder_of, problem) ||
                       problem_of_option(problem, unary_option(&options->unary)));
    if (!done)
        large_inputs_close(inputs);
    return done;
}

void large_inputs_close(large_inputs *inputs) {
    raster_close(&inputs->colours);
    raster_close(&inputs->numbers);
    free(inputs->own_numbers);
    inputs->own_numbers = NULL;
    image_free(&inputs->image);
}

bool large_window_problem(cli_problem *problem, const char *file, const raster_window *window,
                          const dcrf_error *error) {
    library_problem(problem, file, error);
    const size_t used = strlen(problem->text);
    snprintf(problem->text + used, sizeof problem->text - used,
             " (in the window that begins at x = %zu, y = %zu, z = %zu)", window->first[0],
             window->first[1], window->first[2]);
    return false;
}

/* ---- windows -------------------------------------------------------------------------------- */

bool large_inputs_colours(const large_inputs *inputs, const raster_window *window, float *colours,
                          cli_problem *problem) {
    return raster_read(&inputs->colours, window, colours, problem);
}

/* The image pixel at `place` of a window. */
static size_t pixel_of_image(const large_inputs *inputs, const raster_window *window,
                             size_t place) {
    const size_t x = place % window->size[0], row = place / window->size[0];
    const size_t y = row % window->size[1], z = row / window->size[1];
    return ((window->first[2] + z) * inputs->image.height + window->first[1] + y) *
               inputs->image.width +
           window->first[0] + x;
}

bool large_inputs_numbers(const large_inputs *inputs, const raster_window *window, float *numbers,
                          cli_problem *problem) {
    const size_t count = window->size[0] * window->size[1] * window->size[2] * inputs->labels;
    char text[IMAGE_TEXT_BYTES];
    if (!raster_read(&inputs->numbers, window, numbers, problem))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return bad_input(problem, unary_file(&inputs->options->unary),
                             "the unary array holds %g at %s, channel %zu", (double)numbers[i],
                             image_place_text(&inputs->image,
                                              pixel_of_image(inputs, window, i / inputs->labels),
                                              text),
                             i % inputs->labels);
    return true;
}

static bool energies_of_map(const large_inputs *inputs, const raster_window *window,
                            float *energies, cli_problem *problem) {
    const size_t count = window->size[0] * window->size[1] * window->size[2];
    int32_t *numbers = malloc(count * sizeof *numbers);
    const bool done = numbers ? raster_read_integers(&inputs->numbers, window, numbers, problem)
                              : out_of_memory(problem, inputs->options->unary.prior_file);
    if (done)
        prior_energies(&inputs->options->unary, &inputs->facts, numbers, NULL, count,
                       inputs->labels, energies);
    free(numbers);
    return done;
}

bool large_inputs_energies(const large_inputs *inputs, const raster_window *window, float *energies,
                           cli_problem *problem) {
    const unary_options *unary = &inputs->options->unary;
    dcrf_error error;
    if (inputs->are_energies)
        return large_inputs_numbers(inputs, window, energies, problem);
    if (unary->prior_file)
        return energies_of_map(inputs, window, energies, problem);
    if (inputs->kind == DCRF_UNARY_ENERGIES && (unary->scale == 0 || unary->scale == 1))
        return large_inputs_numbers(inputs, window, energies, problem);
    dcrf_grid grid = image_grid(&inputs->image);
    memcpy(grid.size, window->size, sizeof grid.size);
    const size_t count = window->size[0] * window->size[1] * window->size[2];
    float *numbers = malloc(count * inputs->labels * sizeof *numbers);
    const dcrf_view view = dcrf_view_interleaved(numbers, DCRF_F32, &grid, inputs->labels);
    bool done = numbers ? large_inputs_numbers(inputs, window, numbers, problem)
                        : out_of_memory(problem, unary->array_file);
    if (done && dcrf_unary_energies(&view, &grid, inputs->kind, unary->scale, &grid, NULL, energies,
                                    count * inputs->labels, &error) < 0)
        done = large_window_problem(problem, unary->array_file, window, &error);
    free(numbers);
    return done;
}
