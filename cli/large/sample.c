#include "large/sample.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the windows ---------------------------------------------------------------------------- */

/* dcrf_model_measure_strength looks at 128 strips of 64 pixels, and at the next two pixels to the
 * right of and below each: these windows are such strips, stacked vertically, and the measurement
 * uses the first row of each. */
#define WINDOWS 128
#define WINDOW_WIDTH 64
#define WINDOW_HEIGHT 3
/* Rows without information between them, so that pixels of two windows are never compared. */
#define GAP_ROWS 3

/* Window k of the sample: rows are spread evenly, columns by multiples of the golden ratio, so
 * that no periodic pattern of the image is sampled repeatedly. */
static raster_window window_at(const cli_image *image, size_t k) {
    static const double golden = 0.6180339887498949;
    const size_t size[RASTER_AXES] = {image->width, image->height, image->depth};
    const double share[RASTER_AXES] = {fmod((double)(k + 1) * golden, 1),
                                       ((double)k + 0.5) / WINDOWS,
                                       fmod((double)(k + 1) * golden * golden, 1)};
    const size_t wanted[RASTER_AXES] = {WINDOW_WIDTH, WINDOW_HEIGHT, 1};
    raster_window window;
    for (size_t axis = 0; axis < RASTER_AXES; axis++) {
        window.size[axis] = size[axis] < wanted[axis] ? size[axis] : wanted[axis];
        window.first[axis] = (size_t)(share[axis] * (double)(size[axis] - window.size[axis] + 1));
    }
    return window;
}

typedef struct sheet {
    cli_image image; /* the windows stacked vertically, with gaps; owns its colours */
    float *energies;
    size_t step_pixels; /* from one window to the next */
} sheet;

static void sheet_free(sheet *s) {
    free(s->image.colours);
    free(s->energies);
}

static bool sheet_new(const large_inputs *inputs, sheet *s, cli_problem *problem) {
    const raster_window window = window_at(&inputs->image, 0);
    const size_t rows = window.size[1] + GAP_ROWS;
    *s = (sheet){.image = {.width = window.size[0],
                           .height = rows * WINDOWS,
                           .depth = 1,
                           .channels = inputs->colours.channels,
                           .spacing_mm = {1, 1, 1},
                           .frames = inputs->image.frames}, /* time has its own sigma */
                 .step_pixels = window.size[0] * rows};
    const size_t pixels = s->step_pixels * WINDOWS;
    s->image.colours = calloc(pixels, s->image.channels * sizeof *s->image.colours);
    s->energies = calloc(pixels, inputs->labels * sizeof *s->energies);
    return (s->image.colours && s->energies) || out_of_memory(problem, "sample");
}

/* Determine what the numbers of an array are, from all windows of the sample without gaps. */
static bool resolve_kind(large_inputs *inputs, cli_problem *problem) {
    const unary_options *unary = &inputs->options->unary;
    const raster_window first = window_at(&inputs->image, 0);
    const size_t pixels = first.size[0] * first.size[1];
    pixel_array array = {.integers = inputs->holds_integers, .channel_axis = true};
    if (!unary->array_file || inputs->are_energies)
        return true;
    float *numbers = malloc(pixels * WINDOWS * inputs->labels * sizeof *numbers);
    bool done = numbers != NULL || out_of_memory(problem, "sample");
    for (size_t k = 0; done && k < WINDOWS; k++) {
        const raster_window window = window_at(&inputs->image, k);
        done =
            large_inputs_numbers(inputs, &window, numbers + k * pixels * inputs->labels, problem);
    }
    array.grid = dcrf_grid_2d(first.size[0], first.size[1] * WINDOWS);
    array.view = dcrf_view_interleaved(numbers, DCRF_F32, &array.grid, inputs->labels);
    done = done && unary_resolve_kind(unary, &array, &inputs->kind, &inputs->facts, problem);
    free(numbers);
    return done || problem_of_option(problem, "--unary");
}

static bool fill_sheet(const large_inputs *inputs, sheet *s, cli_problem *problem) {
    bool done = true;
    for (size_t k = 0; done && k < WINDOWS; k++) {
        const raster_window window = window_at(&inputs->image, k);
        const size_t first = k * s->step_pixels;
        done =
            large_inputs_colours(inputs, &window, s->image.colours + first * s->image.channels,
                                 problem) &&
            large_inputs_energies(inputs, &window, s->energies + first * inputs->labels, problem);
    }
    return done;
}

/* ---- the strength --------------------------------------------------------------------------- */

static bool build_model(const large_inputs *inputs, const sheet *s, built_model *built,
                        cli_problem *problem) {
    const model_options *options = inputs->options;
    const dcrf_grid grid = dcrf_grid_2d(s->image.width, s->image.height);
    const dcrf_view energies = dcrf_view_interleaved(s->energies, DCRF_F32, &grid, inputs->labels);
    dcrf_error error;
    return (dcrf_model_new(&built->model, &grid, inputs->labels, &error) >= 0 &&
            dcrf_model_set_unary(built->model, &energies, &error) >= 0 &&
            dcrf_model_apply_temperature(built->model, options->strength.temperature, &error) >=
                0) ||
           library_problem(problem, unary_file(&options->unary), &error);
}

bool large_sample_take(large_inputs *inputs, time_frame time, built_model *built,
                       cli_problem *problem) {
    const model_options *options = inputs->options;
    sheet s = {.energies = NULL};
    *built = (built_model){.time = time};
    bool done = model_start_workspace(options, built, problem) && resolve_kind(inputs, problem) &&
                sheet_new(inputs, &s, problem) && fill_sheet(inputs, &s, problem) &&
                build_model(inputs, &s, built, problem) &&
                model_name_classes(options, built, problem);
    built->image = s.image; /* for its colours, while kernels are made */
    built->unary = inputs->facts;
    done = done && model_add_kernels(options, inputs->image_file, built, problem) &&
           model_set_strength(options, built, problem);
    sheet_free(&s);
    built->image = inputs->image;
    for (size_t k = 0; k < built->kernel_count; k++)
        built->kernels[k].channels.data = NULL;
    if (!done) {
        built->image = (cli_image){0};
        model_free(built);
    }
    return done;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Pixels per probe: in smaller windows, more of the window is border, which has more vertices per
 * pixel than the interior. */
#define PROBE_PIXELS 65536
#define PROBES 9

/* Probe k of 9: at the corners, the edges and the centre; in a volume, 9 of these 27 positions. */
static raster_window probe_at(const large_inputs *inputs, size_t k) {
    const size_t size[RASTER_AXES] = {inputs->image.width, inputs->image.height,
                                      inputs->image.depth};
    const size_t axes = inputs->image.depth > 1 ? 3 : 2;
    const size_t side = (size_t)ceil(pow(PROBE_PIXELS, 1 / (double)axes));
    raster_window window;
    size_t rest = k;
    for (size_t axis = 0; axis < RASTER_AXES; axis++) {
        window.size[axis] = size[axis] < side ? size[axis] : side;
        window.first[axis] = (size[axis] - window.size[axis]) * (rest % 3) / 2;
        rest = axis == 1 ? k : rest / 3;
    }
    return window;
}

static bool probe(const large_inputs *inputs, const built_model *built, dcrf_kernel kernel,
                  const raster_window *window, double *vertices, cli_problem *problem) {
    const size_t pixels = window->size[0] * window->size[1] * window->size[2];
    dcrf_grid grid = image_grid(&inputs->image);
    dcrf_operator *op = NULL;
    dcrf_error error;
    memcpy(grid.size, window->size, sizeof grid.size);
    float *colours = malloc(pixels * inputs->colours.channels * sizeof *colours);
    bool done = colours ? large_inputs_colours(inputs, window, colours, problem)
                        : out_of_memory(problem, "sample");
    kernel.channels = dcrf_view_interleaved(colours, DCRF_F32, &grid, inputs->colours.channels);
    if (done && dcrf_operator_new(&op, &grid, &kernel,
                                  (dcrf_operator_kind)inputs->options->kernels.operator_kind,
                                  built->workspace, &error) >= 0)
        *vertices = fmax(*vertices, (double)dcrf_operator_vertices(op) / (double)pixels);
    else if (done && error.status == DCRF_ERROR_INTERRUPTED)
        *vertices = MOST_VERTICES(grid.axes + inputs->colours.channels);
    else if (done)
        done = large_window_problem(problem, inputs->image_file, window, &error);
    dcrf_operator_free(&op);
    free(colours);
    return done;
}

bool large_sample_vertices(const large_inputs *inputs, const built_model *built, double *vertices,
                           cli_problem *problem) {
    bool done = true;
    *vertices = 0;
    for (size_t k = 0; done && k < built->kernel_count * PROBES; k++) {
        const dcrf_kernel *kernel = &built->kernels[k / PROBES];
        const raster_window window = probe_at(inputs, k % PROBES);
        if (kernel->kind == DCRF_KERNEL_BILATERAL)
            done = probe(inputs, built, *kernel, &window, vertices, problem);
    }
    return done;
}
