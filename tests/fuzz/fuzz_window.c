/* Fuzz target: the readers of windows, against those of whole files.
 *
 * The first bytes say what file is made of the rest (or that the rest is the file), what it is read
 * as, and which window; then
 *
 *   a file that is read whole is read by windows, with the same numbers in each, and one that is
 *   refused whole is refused (but for what only the readers of windows refuse);
 *   a file that is cut after it was opened gives a problem or the same numbers. */
#include "check.h"
#include "io/file.h"
#include "io/picture.h"
#include "large/inputs.h"
#include "made_file.h"
#include "memory_file.h"
#include "target.h"

#include <math.h>

enum { SIDE_MAX = 40, LABELS_MAX = 4 };

/* What the first bytes of an input mean. */
typedef struct instructions {
    uint8_t format;
    uint8_t use;
    uint8_t width, height; /* less one */
    uint8_t kind;          /* of the format: depth, type, ... */
    uint8_t detail;        /* of the format: interlacing, rows of a strip, layout, ... */
    uint8_t is_cut;        /* by so many bytes after it was opened */
    uint8_t option;        /* of the reader: --layout, or --prior-unknown */
    uint8_t window[4];     /* x, y, width, height */
} instructions;

enum { FORMAT_AS_IT_IS, FORMAT_PNG, FORMAT_TIFF, FORMAT_PNM, FORMAT_NPY, FORMATS };
enum { USE_COLOURS, USE_MAP, USE_ARRAY, USES };

static made_file made;
static made_file image;

/* ---- the file ------------------------------------------------------------------------------- */

static bool make_png_of(const instructions *in, size_t width, size_t height, const uint8_t *fill,
                        size_t size) {
    static uint8_t rows[(SIDE_MAX + 1) * (1 + 8 * SIDE_MAX)];
    const uint8_t palette[3] = {in->detail, in->kind, 7};
    const size_t kind = in->kind % MADE_PNG_KINDS, row = made_png_row_bytes(kind, width);
    const bool interlaced = in->detail % 2 != 0;
    for (size_t i = 0; i < row * height; i++)
        rows[i] = i % row == 0 && !interlaced ? fill[i % size] % 5 : fill[i % size];
    /* Interlaced rows are others, and have more filters: what is behind is not looked at. */
    return make_png(&made, kind, width, height, interlaced, palette, rows, row * height);
}

static bool make_npy_of(const instructions *in, size_t width, size_t height, const uint8_t *fill,
                        size_t size) {
    static const struct {
        char type[4];
        uint8_t bytes;
    } types[] = {{"|b1", 1}, {"|u1", 1}, {"|i1", 1}, {"<u2", 2}, {">u2", 2}, {"<i2", 2},
                 {"<i4", 4}, {">i4", 4}, {"<u4", 4}, {"<i8", 8}, {">u8", 8}, {"<f2", 2},
                 {"<f4", 4}, {">f4", 4}, {"<f8", 8}, {">f8", 8}};
    const size_t which = in->kind % (sizeof types / sizeof types[0]);
    const size_t labels = in->detail / 16u % LABELS_MAX + 1;
    const size_t shapes[][4] = {{height, width},
                                {height, width, labels},
                                {labels, height, width},
                                {1, height, width, labels},
                                {1, labels, height, width}};
    static const size_t axes[] = {2, 3, 3, 4, 4};
    /* Labels are rarely met in random bytes: a map has small numbers. */
    const size_t shape = in->use % USES == USE_MAP && in->detail % 2 ? 0 : in->detail % 5u;
    return make_npy(&made, types[which].type, types[which].bytes, in->kind >= 240, shapes[shape],
                    axes[shape], fill, size);
}

static bool make_file(const instructions *in, const uint8_t *fill, size_t size) {
    const size_t width = in->width % SIDE_MAX + 1u, height = in->height % SIDE_MAX + 1u;
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
        return make_npy_of(in, width, height, fill, size);
    default:
        if (size > MADE_BYTES_MAX)
            return false;
        memcpy(made.data, fill, size);
        made.size = size;
        return true;
    }
}

/* ---- the window ----------------------------------------------------------------------------- */

static raster_window window_in(const instructions *in, size_t width, size_t height) {
    const size_t size[] = {width, height};
    raster_window window = {{0, 0, 0}, {1, 1, 1}};
    for (size_t axis = 0; axis < 2; axis++) {
        window.first[axis] = in->window[axis] % size[axis];
        window.size[axis] = in->window[axis + 2] % (size[axis] - window.first[axis]) + 1;
    }
    return window;
}

/* The whole, the channels of a pixel next to each other, and what a window has of it. */
typedef struct whole {
    size_t width;
    size_t channels;
    const float *numbers;
} whole;

static float whole_at(const whole *w, const raster_window *window, size_t i) {
    const size_t channel = i % w->channels, pixel = i / w->channels;
    const size_t x = window->first[0] + pixel % window->size[0];
    const size_t y = window->first[1] + pixel / window->size[0];
    return w->numbers[(y * w->width + x) * w->channels + channel];
}

static bool is_same(float a, float b) {
    return a == b || (isnan(a) && isnan(b));
}

static float *room_for(const raster_window *window, size_t channels) {
    float *room = malloc(window->size[0] * window->size[1] * channels * sizeof *room);
    fuzz_check(room != NULL);
    return room;
}

/* Cut what windows are read from; what was read before stays right. */
static void cut_file(const instructions *in) {
    if (in->is_cut > 0)
        memory_file(0, made.data, made.size - (in->is_cut < made.size ? in->is_cut : made.size));
}

/* ---- pictures ------------------------------------------------------------------------------- */

static void check_picture(const instructions *in, const char *path, picture_purpose purpose) {
    cli_problem problem = {0, ""}, whole_problem = {0, ""};
    picture decoded;
    raster windows;
    /* Small files may announce pictures that take long. */
    if (!picture_decode(made.data, made.size, PICTURE_MEASURED, path, &decoded, &problem) ||
        decoded.width * decoded.height > (size_t)1 << 20)
        return;
    const bool is_whole =
        picture_decode(made.data, made.size, purpose, path, &decoded, &whole_problem);
    const bool done = raster_from_picture(path, purpose, NULL, &windows, &problem);
    fuzz_check(done == is_whole);
    if (!done) {
        fuzz_check_refused(&problem);
        fuzz_check(strcmp(problem.text, whole_problem.text) == 0);
        return;
    }
    const size_t count = decoded.width * decoded.height * decoded.channels;
    float *numbers = malloc(count * sizeof *numbers);
    fuzz_check(numbers != NULL);
    for (size_t i = 0; i < count; i++)
        numbers[i] = purpose == PICTURE_AS_COLOURS
                         ? (float)(decoded.samples[i] * 255.0 / decoded.largest)
                         : (float)decoded.samples[i];
    const whole w = {decoded.width, decoded.channels, numbers};
    const raster_window window = window_in(in, decoded.width, decoded.height);
    fuzz_check(windows.size[0] == decoded.width && windows.size[1] == decoded.height &&
               windows.channels == decoded.channels);
    float *found = room_for(&window, w.channels);
    cut_file(in);
    if (raster_read(&windows, &window, found, &problem)) {
        for (size_t i = 0; i < window.size[0] * window.size[1] * w.channels; i++)
            /* Two ways to the scale of 255, which differ by their rounding. */
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

/* Can windows not do what whole arrays can? */
static bool is_for_whole_only(const char *path, const cli_image *size) {
    npy_array npy;
    cli_problem ignored;
    file_bytes bytes;
    if (!file_map(path, &bytes, &ignored))
        return true;
    bool only = false;
    if (npy_parse(bytes.data, bytes.size, path, &npy, &ignored)) {
        bool is_of_size = false;
        for (size_t axis = 0; axis + 1 < npy.axes; axis++)
            is_of_size = is_of_size ||
                         (npy.shape[axis] == size->height && npy.shape[axis + 1] == size->width);
        only = npy.fortran_order || !is_of_size;
    }
    file_free(&bytes);
    return only;
}

/* An array over the image as a whole, interleaved; to be freed. */
static float *interleaved(const pixel_array *array) {
    const dcrf_view *view = &array->view;
    const size_t width = array->grid.size[0], height = array->grid.size[1];
    float *numbers = malloc(width * height * view->channels * sizeof *numbers);
    fuzz_check(numbers != NULL);
    for (size_t i = 0; i < width * height * view->channels; i++) {
        const size_t channel = i % view->channels, pixel = i / view->channels;
        const char *at = (const char *)view->data + (ptrdiff_t)(pixel % width) * view->stride[0] +
                         (ptrdiff_t)(pixel / width) * view->stride[1] +
                         (ptrdiff_t)channel * view->channel_stride;
        memcpy(&numbers[i], at, sizeof numbers[i]);
    }
    return numbers;
}

static bool has_only_finite(const whole *w, const raster_window *window) {
    for (size_t i = 0; i < window->size[0] * window->size[1] * w->channels; i++)
        if (!isfinite(whole_at(w, window, i)))
            return false;
    return true;
}

static void check_window(const instructions *in, const large_inputs *inputs, const whole *w) {
    const raster_window window = window_in(in, inputs->image.width, inputs->image.height);
    const bool is_map = in->use % USES == USE_MAP;
    cli_problem problem = {0, ""};
    float *found = room_for(&window, w->channels);
    fuzz_check(inputs->labels == w->channels);
    cut_file(in);
    if (is_map ? large_inputs_energies(inputs, &window, found, &problem)
               : large_inputs_numbers(inputs, &window, found, &problem)) {
        for (size_t i = 0; i < window.size[0] * window.size[1] * w->channels; i++)
            fuzz_check(is_same(found[i], whole_at(w, &window, i)));
    } else {
        fuzz_check(in->is_cut > 0 || !has_only_finite(w, &window));
        fuzz_check_refused(&problem);
    }
    free(found);
}

static void check_numbers(const instructions *in, const char *path) {
    const bool is_map = in->use % USES == USE_MAP;
    const cli_image size = {.width = in->width % SIDE_MAX + 1u,
                            .height = in->height % SIDE_MAX + 1u,
                            .depth = 1,
                            .channels = IMAGE_CHANNELS};
    model_options options = {.cliques_source = "none"};
    unary_options *unary = &options.unary;
    *(is_map ? &unary->prior_file : &unary->array_file) = path;
    unary->kind = DCRF_UNARY_ENERGIES;
    unary->layout = is_map ? LAYOUT_AUTO : in->option % 3;
    unary->confidence = 0.9;
    unary->prior_unknown = (unknown_value){.kind = in->option % 2 ? UNKNOWN_NUMBER : UNKNOWN_AUTO,
                                           .value = in->option / 2 - 3};
    /* A map may have many labels, and each of them takes an energy at every pixel. */
    unary->label_count = size.width * size.height <= 16 ? 0 : 8;
    cli_problem problem = {0, ""}, whole_problem = {0, ""};
    large_inputs inputs;
    pixel_array array = {0};
    unary_facts facts = {.kind = DCRF_UNARY_AUTO};
    const bool is_whole = is_map ? unary_from_prior(unary, &size, &array, &facts, &whole_problem)
                                 : pixel_array_read(path, &size, (array_layout)unary->layout,
                                                    ARRAY_MAY_BE_SMALLER, &array, &whole_problem) &&
                                       unary_check_array(unary, &array, &whole_problem);
    if (is_map)
        array.grid = image_grid(&size);
    static const uint8_t black = 0;
    fuzz_check(make_pnm(&image, 6, size.width, size.height, UINT8_MAX, &black, 1));
    const char *image_path = memory_file(1, image.data, image.size);
    const bool done =
        image_path && large_inputs_open(&options, image_path, NULL, &inputs, &problem);
    if (done) {
        fuzz_check(is_whole);
        float *numbers = interleaved(&array);
        check_window(in, &inputs, &(whole){size.width, array.view.channels, numbers});
        free(numbers);
        large_inputs_close(&inputs);
    } else if (image_path) {
        fuzz_check_refused(&problem);
        fuzz_check(!is_whole || is_for_whole_only(path, &size));
    }
    pixel_array_free(&array);
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
