/* Fuzz target: readers of windows, against readers of whole files.
 *
 * The first bytes select the file made of the rest (or that the rest is the file), how it is read,
 * and the window; then
 *
 *   a file that can be read whole can be read by windows, with the same numbers in each, and one
 *   that is refused whole is refused (except for what only the window readers refuse);
 *   a file that is truncated after it was opened gives a problem or the same numbers. */
#include "check.h"
#include "io/picture.h"
#include "large/inputs.h"
#include "made_file.h"
#include "memory_file.h"
#include "target.h"

#include <math.h>

enum { SIDE_MAX = 40, DEPTH_MAX = 4, LABELS_MAX = 4 };

/* What the first bytes of an input mean. */
typedef struct instructions {
    uint8_t format;
    uint8_t use;
    uint8_t size[3];   /* minus one */
    uint8_t kind;      /* depends on the format: depth, type, ... */
    uint8_t detail;    /* depends on the format: interlacing, rows per strip, layout, ... */
    uint8_t is_cut;    /* bytes cut off after opening */
    uint8_t option;    /* reader option: --layout or --prior-unknown */
    uint8_t window[6]; /* position and size */
} instructions;

enum { FORMAT_AS_IT_IS, FORMAT_PNG, FORMAT_TIFF, FORMAT_PNM, FORMAT_NPY, FORMAT_NIFTI, FORMATS };
/* Volumes have a third axis. */
enum { USE_COLOURS, USE_MAP, USE_ARRAY, USE_MAP_OF_VOLUME, USE_ARRAY_OF_VOLUME, USES };

static made_file made;
static made_file made_image;

static bool is_of_volume(const instructions *in) {
    return in->use % USES >= USE_MAP_OF_VOLUME;
}

static bool is_map(const instructions *in) {
    return in->use % USES == USE_MAP || in->use % USES == USE_MAP_OF_VOLUME;
}

static void size_of(const instructions *in, size_t size[3]) {
    size[0] = in->size[0] % SIDE_MAX + 1u;
    size[1] = in->size[1] % SIDE_MAX + 1u;
    size[2] = is_of_volume(in) ? in->size[2] % DEPTH_MAX + 1u : 1;
}

/* ---- the file ------------------------------------------------------------------------------- */

static bool make_png_of(const instructions *in, size_t width, size_t height, const uint8_t *fill,
                        size_t size) {
    static uint8_t rows[(SIDE_MAX + 1) * (1 + 8 * SIDE_MAX)];
    const uint8_t palette[3] = {in->detail, in->kind, 7};
    const size_t kind = in->kind % MADE_PNG_KINDS, row = made_png_row_bytes(kind, width);
    const bool interlaced = in->detail % 2 != 0;
    for (size_t i = 0; i < row * height; i++)
        rows[i] = i % row == 0 && !interlaced ? fill[i % size] % 5 : fill[i % size];
    /* Interlaced rows differ and have more filter bytes; data beyond them is ignored. */
    return make_png(&made, kind, width, height, interlaced, palette, rows, row * height);
}

static size_t labels_of(const instructions *in) {
    return in->detail / 16u % LABELS_MAX + 1;
}

/* The axes of the image; the label axis is absent, last or first; there may be a batch axis of
 * one. */
static bool make_npy_of(const instructions *in, const size_t size[3], const uint8_t *fill,
                        size_t fill_size) {
    static const struct {
        char type[4];
        uint8_t bytes;
    } types[] = {{"|b1", 1}, {"|u1", 1}, {"|i1", 1}, {"<u2", 2}, {">u2", 2}, {"<i2", 2},
                 {"<i4", 4}, {">i4", 4}, {"<u4", 4}, {"<i8", 8}, {">u8", 8}, {"<f2", 2},
                 {"<f4", 4}, {">f4", 4}, {"<f8", 8}, {">f8", 8}};
    const size_t which = in->kind % (sizeof types / sizeof types[0]);
    const size_t layout = is_map(in) && in->detail % 2 ? 0 : in->detail % 5u;
    size_t shape[NPY_MAX_AXES], axes = 0;
    if (layout >= 3)
        shape[axes++] = 1;
    if (layout == 2 || layout == 4)
        shape[axes++] = labels_of(in);
    for (size_t axis = is_of_volume(in) ? 3 : 2; axis-- > 0;) /* possibly half the size */
        shape[axes++] = in->detail >= 128 ? (size[axis] + 1) / 2 : size[axis];
    if (layout == 1 || layout == 3)
        shape[axes++] = labels_of(in);
    return make_npy(&made, types[which].type, types[which].bytes, in->kind >= 240, shape, axes,
                    fill, fill_size);
}

static bool make_file(const instructions *in, const uint8_t *fill, size_t size) {
    size_t sizes[3];
    size_of(in, sizes);
    const size_t width = sizes[0], height = sizes[1];
    if (size == 0)
        return false;
    switch (in->format % FORMATS) {
    case FORMAT_PNG:
        return make_png_of(in, width, height, fill, size);
    case FORMAT_TIFF:
        return make_tiff(&made, width, height, in->kind % 2 ? 3 : 1, in->kind % 4 < 2 ? 8 : 16,
                         in->detail % 12u, fill, size);
    case FORMAT_PNM:
        return make_pnm(&made, in->kind % 6u + 1, width, height,
                        in->detail % 3 == 0   ? UINT8_MAX
                        : in->detail % 3 == 1 ? UINT16_MAX
                                              : in->detail + 1u,
                        fill, size);
    case FORMAT_NPY:
        return make_npy_of(in, sizes, fill, size);
    case FORMAT_NIFTI:
        return make_nifti(&made, sizes, is_map(in) ? 1 : labels_of(in), (size_t)1 << in->kind % 3,
                          fill, size);
    default:
        if (size > MADE_BYTES_MAX)
            return false;
        memcpy(made.data, fill, size);
        made.size = size;
        return true;
    }
}

/* ---- the window ----------------------------------------------------------------------------- */

static raster_window window_in(const instructions *in, const size_t size[3]) {
    raster_window window;
    for (size_t axis = 0; axis < 3; axis++) {
        window.first[axis] = in->window[axis] % size[axis];
        window.size[axis] = in->window[axis + 3] % (size[axis] - window.first[axis]) + 1;
    }
    return window;
}

static size_t pixels_of(const raster_window *window) {
    return window->size[0] * window->size[1] * window->size[2];
}

/* The whole image, interleaved, and the part of it that a window covers. */
typedef struct whole {
    size_t size[3];
    size_t channels;
    const float *numbers;
} whole;

static float whole_at(const whole *w, const raster_window *window, size_t i) {
    const size_t channel = i % w->channels, pixel = i / w->channels;
    const size_t x = window->first[0] + pixel % window->size[0];
    const size_t y = window->first[1] + pixel / window->size[0] % window->size[1];
    const size_t z = window->first[2] + pixel / window->size[0] / window->size[1];
    return w->numbers[((z * w->size[1] + y) * w->size[0] + x) * w->channels + channel];
}

static bool is_same(float a, float b) {
    return a == b || (isnan(a) && isnan(b));
}

static float *room_for(const raster_window *window, size_t channels) {
    float *room = malloc(pixels_of(window) * channels * sizeof *room);
    fuzz_check(room != NULL);
    return room;
}

/* Truncate the file that windows are read from; what was read before stays valid. */
static void cut_file(const instructions *in) {
    if (in->is_cut > 0)
        memory_file(0, made.data, made.size - (in->is_cut < made.size ? in->is_cut : made.size));
}

/* ---- pictures ------------------------------------------------------------------------------- */

static sample_scale scale_of(const picture *decoded) {
    sample_range *range = sample_range_matters(decoded) ? sample_range_new() : NULL;
    if (range)
        sample_range_add(range, decoded, decoded->samples, decoded->width * decoded->height);
    const sample_scale scale = sample_scale_of(range, decoded);
    free(range);
    return scale;
}

static void check_picture(const instructions *in, const char *path, picture_purpose purpose) {
    cli_problem problem = {0, ""}, whole_problem = {0, ""};
    picture decoded;
    raster windows;
    /* Small files may announce pictures that take long to decode. */
    if (!picture_decode(made.data, made.size, PICTURE_MEASURED, path, &decoded, &problem) ||
        decoded.width * decoded.height > (size_t)1 << 20)
        return;
    const bool is_whole =
        picture_decode(made.data, made.size, purpose, path, &decoded, &whole_problem);
    const bool done = raster_from_picture(path, purpose, NULL, &windows, &problem);
    fuzz_check(done == is_whole);
    if (!done) {
        fuzz_check_refused(&problem);
        /* As numbers a file can have two faults: colours, which are met row by row, and damage
         * below them, which is met first if the file is decoded whole. */
        fuzz_check(purpose == PICTURE_AS_NUMBERS || strcmp(problem.text, whole_problem.text) == 0);
        return;
    }
    const size_t count = decoded.width * decoded.height * decoded.channels;
    float *numbers = malloc(count * sizeof *numbers);
    fuzz_check(numbers != NULL);
    const sample_scale scale =
        purpose == PICTURE_AS_COLOURS ? scale_of(&decoded) : (sample_scale){.factor = 1};
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)((decoded.samples[i] - scale.zero) * scale.factor);
    const whole w = {{decoded.width, decoded.height, 1}, decoded.channels, numbers};
    const raster_window window = window_in(in, w.size);
    fuzz_check(windows.size[0] == decoded.width && windows.size[1] == decoded.height &&
               windows.channels == decoded.channels);
    float *found = room_for(&window, w.channels);
    cut_file(in);
    if (raster_read(&windows, &window, found, &problem)) {
        for (size_t i = 0; i < pixels_of(&window) * w.channels; i++)
            /* Two ways of scaling to 255 differ by rounding. */
            fuzz_check(fabsf(found[i] - whole_at(&w, &window, i)) <= 255 * 0x1p-23f);
    } else {
        fuzz_check(in->is_cut > 0);
        fuzz_check_refused(&problem);
    }
    free(found);
    free(numbers);
    raster_close(&windows);
    picture_free(&decoded);
}

/* ---- maps and arrays ------------------------------------------------------------------------ */

/* Windows cannot be read from such a file. */
static bool is_in_fortran_order(void) {
    npy_array npy;
    cli_problem ignored;
    return npy_parse(made.data, made.size, "input", &npy, &ignored) && npy.fortran_order;
}

/* An array over the whole image, interleaved; free it. */
static float *interleaved(const pixel_array *array, const size_t size[3]) {
    const dcrf_view *view = &array->view;
    const size_t count = size[0] * size[1] * size[2] * view->channels;
    float *numbers = malloc(count * sizeof *numbers);
    fuzz_check(numbers != NULL);
    for (size_t i = 0; i < count; i++) {
        const size_t channel = i % view->channels, pixel = i / view->channels;
        const size_t place[3] = {pixel % size[0], pixel / size[0] % size[1],
                                 pixel / size[0] / size[1]};
        const char *at = (const char *)view->data + (ptrdiff_t)channel * view->channel_stride;
        for (size_t axis = 0; axis < 3; axis++)
            at += (ptrdiff_t)place[axis] * view->stride[axis];
        memcpy(&numbers[i], at, sizeof numbers[i]);
    }
    return numbers;
}

static bool has_only_finite(const whole *w, const raster_window *window) {
    for (size_t i = 0; i < pixels_of(window) * w->channels; i++)
        if (!isfinite(whole_at(w, window, i)))
            return false;
    return true;
}

static void check_window(const instructions *in, const large_inputs *inputs, const whole *w) {
    const raster_window window = window_in(in, w->size);
    cli_problem problem = {0, ""};
    float *found = room_for(&window, w->channels);
    fuzz_check(inputs->labels == w->channels);
    cut_file(in);
    if (is_map(in) ? large_inputs_energies(inputs, &window, found, &problem)
                   : large_inputs_numbers(inputs, &window, found, &problem)) {
        for (size_t i = 0; i < pixels_of(&window) * w->channels; i++)
            fuzz_check(is_same(found[i], whole_at(w, &window, i)));
    } else {
        fuzz_check(in->is_cut > 0 || !has_only_finite(w, &window));
        fuzz_check_refused(&problem);
    }
    free(found);
}

static const char *make_image(const instructions *in, const size_t size[3]) {
    static const uint8_t black = 0;
    const bool is_made = is_of_volume(in)
                             ? make_nifti(&made_image, size, 1, 1, &black, 1)
                             : make_pnm(&made_image, 6, size[0], size[1], UINT8_MAX, &black, 1);
    fuzz_check(is_made);
    return memory_file(1, made_image.data, made_image.size);
}

static void use_options(const instructions *in, const char *path, size_t pixels,
                        unary_options *unary) {
    *(is_map(in) ? &unary->prior_file : &unary->array_file) = path;
    unary->kind = DCRF_UNARY_ENERGIES;
    unary->layout = is_map(in) ? LAYOUT_AUTO : in->option % 3;
    unary->confidence = 0.9;
    unary->prior_unknown = (unknown_value){.kind = in->option % 2 ? UNKNOWN_NUMBER : UNKNOWN_AUTO,
                                           .value = in->option / 2 - 3};
    /* A map may have many labels, each of which needs an energy per pixel. */
    unary->label_count = pixels <= 16 ? 0 : 8;
}

static void check_numbers(const instructions *in, const char *path) {
    size_t size[3];
    model_options options = {.cliques_source = "none"};
    const unary_options *unary = &options.unary;
    cli_problem problem = {0, ""}, whole_problem = {0, ""};
    size_of(in, size);
    use_options(in, path, size[0] * size[1] * size[2], &options.unary);
    large_inputs inputs;
    cli_image image;
    pixel_array array = {0};
    unary_facts facts = {.kind = DCRF_UNARY_AUTO};
    const char *image_path = make_image(in, size);
    fuzz_check(image_path && image_read(image_path, &image, &problem));
    const bool is_whole = is_map(in)
                              ? unary_from_prior(unary, &image, &array, &facts, &whole_problem)
                              : pixel_array_read(path, &image, (array_layout)unary->layout,
                                                 ARRAY_MAY_BE_SMALLER, &array, &whole_problem) &&
                                    unary_check_array(unary, &array, &whole_problem);
    const bool is_of_size =
        is_map(in) || memcmp(array.grid.size, size, sizeof array.grid.size) == 0;
    if (large_inputs_open(&options, image_path, NULL, &inputs, &problem)) {
        fuzz_check(is_whole && is_of_size);
        float *numbers = interleaved(&array, size);
        const whole w = {{size[0], size[1], size[2]}, array.view.channels, numbers};
        check_window(in, &inputs, &w);
        free(numbers);
        large_inputs_close(&inputs);
    } else {
        fuzz_check_refused(&problem);
        fuzz_check(!is_whole || !is_of_size || is_in_fortran_order());
    }
    pixel_array_free(&array);
    image_free(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    instructions in;
    if (size <= sizeof in)
        return 0;
    memcpy(&in, data, sizeof in);
    if (!make_file(&in, data + sizeof in, size - sizeof in))
        return 0;
    const char *path = memory_file(0, made.data, made.size);
    if (!path)
        return 0;
    if (in.use % USES != USE_COLOURS) {
        check_numbers(&in, path);
    } else if (picture_recognize(made.data, made.size)) {
        check_picture(&in, path, PICTURE_AS_COLOURS);
        path = memory_file(0, made.data, made.size);
        check_picture(&in, path, PICTURE_AS_NUMBERS);
    }
    return 0;
}
