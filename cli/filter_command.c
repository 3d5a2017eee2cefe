/* dcrf filter: the kernels of a model as the linear operators that they are. */
#include "command.h"
#include "io/npy.h"
#include "io/output.h"
#include "model_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct filter_settings {
    const char *image_file;
    const char *input_file; /* NULL: none */
    const char *output_file;
    bool row_sums;
    bool diagonal;
    int layout; /* array_layout */
    kernel_options kernels;
} filter_settings;

/* A run: what is filtered and what comes out, as blocks of the library. */
typedef struct filtering {
    const filter_settings *settings;
    cli_image image;
    pixel_array input; /* channels: 1 for row sums and the diagonal */
    dcrf_workspace *workspace;
    size_t pixels;
    size_t channels;
    size_t stride;   /* floats from one pixel of a block to the next */
    float *block;    /* the input */
    float *filtered; /* by one kernel */
    double *sum;     /* over the kernels, without padding */
    float *output;   /* in the layout of the input */
} filtering;

static bool check_settings(const filter_settings *settings, cli_problem *problem) {
    const int wanted = (settings->input_file != NULL) + settings->row_sums + settings->diagonal;
    if (wanted != 1)
        return bad_input(problem, "filter", "give exactly one of --input, --row-sums, --diagonal");
    if (!settings->kernels.spatial.on && !settings->kernels.bilateral.on)
        return bad_input(problem, "filter", "both kernels are none; give --spatial or --bilateral");
    return output_check(settings->output_file, problem);
}

static bool read_input(filtering *f, cli_problem *problem) {
    const filter_settings *settings = f->settings;
    if (!image_read(settings->image_file, &f->image, problem))
        return false;
    f->pixels = f->image.width * f->image.height;
    f->channels = 1;
    if (!settings->input_file)
        return true;
    if (!pixel_array_read(settings->input_file, &f->image, (array_layout)settings->layout,
                          &f->input, problem))
        return false;
    f->channels = f->input.view.channels;
    return true;
}

static bool take_memory(filtering *f, cli_problem *problem) {
    dcrf_error error;
    f->stride = dcrf_padded(f->channels);
    if (f->channels > SIZE_MAX / f->pixels / sizeof *f->sum ||
        f->stride > SIZE_MAX / f->pixels / sizeof *f->block)
        return out_of_memory(problem, "filter");
    f->block = calloc(f->pixels, f->stride * sizeof *f->block);
    f->filtered = calloc(f->pixels, f->stride * sizeof *f->filtered);
    f->sum = calloc(f->pixels, f->channels * sizeof *f->sum);
    f->output = calloc(f->pixels, f->channels * sizeof *f->output);
    if (!f->block || !f->filtered || !f->sum || !f->output)
        return out_of_memory(problem, "filter");
    return dcrf_workspace_new(&f->workspace, f->settings->kernels.threads, &error) >= 0 ||
           library_problem(problem, "--threads", &error);
}

/* Where channel c of a pixel lies in an array of the input's layout, in floats. */
static size_t place_of(const filtering *f, size_t pixel, size_t c) {
    if (!f->settings->input_file)
        return pixel;
    const size_t step = (size_t)f->input.view.stride[0] / sizeof(float);
    const size_t channel_step = (size_t)f->input.view.channel_stride / sizeof(float);
    return pixel * step + c * channel_step;
}

static bool fill_block(filtering *f, cli_problem *problem) {
    if (!f->settings->input_file)
        return true;
    for (size_t pixel = 0; pixel < f->pixels; pixel++)
        for (size_t c = 0; c < f->channels; c++) {
            const float value = f->input.values[place_of(f, pixel, c)];
            if (!isfinite(value))
                return bad_input(problem, f->settings->input_file,
                                 "holds %g at x = %zu, y = %zu, channel %zu; replace it",
                                 (double)value, pixel % f->image.width, pixel / f->image.width, c);
            f->block[pixel * f->stride + c] = value;
        }
    return true;
}

static dcrf_status apply(filtering *f, const dcrf_operator *op, dcrf_error *error) {
    if (f->settings->row_sums)
        return dcrf_operator_row_sums(op, f->workspace, f->filtered, error);
    if (f->settings->diagonal)
        return dcrf_operator_diagonal(op, f->workspace, f->filtered, error);
    return dcrf_operator_apply(op, f->workspace, DCRF_SYMMETRIC, f->block, f->filtered, f->channels,
                               f->stride, error);
}

static void add_weighted(filtering *f, double weight) {
    /* Row sums and diagonals come as one float a pixel, blocks with padding. */
    const size_t stride = f->settings->input_file ? f->stride : 1;
    for (size_t pixel = 0; pixel < f->pixels; pixel++)
        for (size_t c = 0; c < f->channels; c++)
            f->sum[pixel * f->channels + c] += weight * (double)f->filtered[pixel * stride + c];
}

static bool apply_kernels(filtering *f, cli_problem *problem) {
    dcrf_error error;
    dcrf_kernel kernels[KERNELS_MAX];
    const dcrf_grid grid = image_grid(&f->image);
    const size_t count = kernels_from_options(&f->settings->kernels, &f->image, kernels);
    for (size_t k = 0; k < count; k++) {
        dcrf_operator *op = NULL;
        dcrf_status status = dcrf_operator_new(
            &op, &grid, &kernels[k], (dcrf_operator_kind)f->settings->kernels.operator_kind,
            f->workspace, &error);
        if (status >= 0)
            status = apply(f, op, &error);
        dcrf_operator_free(&op);
        if (status < 0)
            return library_problem(problem, f->settings->image_file, &error);
        add_weighted(f, kernels[k].weight);
    }
    for (size_t pixel = 0; pixel < f->pixels; pixel++)
        for (size_t c = 0; c < f->channels; c++)
            f->output[place_of(f, pixel, c)] = (float)f->sum[pixel * f->channels + c];
    return true;
}

static bool write_output(const filtering *f, cli_problem *problem) {
    cli_outputs outputs = {.count = 0};
    FILE *stream;
    const size_t image_shape[] = {f->image.height, f->image.width};
    if (output_begin(&outputs, f->settings->output_file, &stream, problem)) {
        if (f->settings->input_file)
            npy_write_floats(stream, f->input.shape, f->input.axes, f->output);
        else
            npy_write_floats(stream, image_shape, 2, f->output);
        return outputs_commit(&outputs, problem);
    }
    outputs_discard(&outputs);
    return false;
}

static bool run_filter(const void *given, cli_problem *problem) {
    filtering f = {.settings = given};
    const bool done = check_settings(f.settings, problem) && read_input(&f, problem) &&
                      take_memory(&f, problem) && fill_block(&f, problem) &&
                      apply_kernels(&f, problem) && write_output(&f, problem);
    free(f.block);
    free(f.filtered);
    free(f.sum);
    free(f.output);
    dcrf_workspace_free(&f.workspace);
    pixel_array_free(&f.input);
    image_free(&f.image);
    return done;
}

static const cli_option operands[] = {
    {.name = "IMAGE",
     .parse = parse_text,
     .offset = offsetof(filter_settings, image_file),
     .help = "the photograph, a PNG"},
    {0},
};

static const cli_option options[] = {
    {"input", 0, "X.npy", NULL, false, parse_text, offsetof(filter_settings, input_file),
     "the field to filter: (H, W), (H, W, C) or (C, H, W)"},
    {"row-sums", 0, NULL, NULL, false, parse_switch, offsetof(filter_settings, row_sums),
     "instead of --input: the row sums of the weighted operators"},
    {"diagonal", 0, NULL, NULL, false, parse_switch, offsetof(filter_settings, diagonal),
     "instead of --input: the diagonal of the weighted operators"},
    {"output", 'o', "Y.npy", NULL, true, parse_text, offsetof(filter_settings, output_file),
     "where the result goes: float32, in the shape of the input"},
    {"layout", 0, "auto|hwc|chw", "auto", false, parse_choice, offsetof(filter_settings, layout),
     "order of the input's axes where its shape fits both"},
    {0},
};

static const option_group groups[] = {
    {"Input and output", options, 0},
    {"Kernels", kernel_option_table, offsetof(filter_settings, kernels)},
    {0},
};

const cli_command filter_command = {
    {"filter", operands, groups},
    "apply the kernels of a model to an array",
    "Writes the sum over the kernels of W K x, where x is the input, K the kernel's operator over "
    "the image with its normalization, and W its weight. The diagonal of K is included. Switch a "
    "kernel off with none to get the other alone, and give it the weight 1 to get K itself.",
    sizeof(filter_settings),
    run_filter,
};
