/* dcrf filter: the kernels of a model applied as linear operators. */
#include "command.h"
#include "io/nifti.h"
#include "io/npy.h"
#include "io/output.h"
#include "io/png_format.h"
#include "model/model_options.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <stdlib.h>

typedef struct filter_settings {
    const char *image_file;
    const char *input_file; /* NULL: the image itself */
    const char *output_file;
    bool row_sums;
    bool diagonal;
    int layout; /* array_layout */
    kernel_options kernels;
} filter_settings;

/* A run: its input and output as blocks of the library. */
typedef struct filtering {
    const filter_settings *settings;
    cli_image image;
    pixel_array field; /* the input; empty for row sums and the diagonal */
    bool to_picture;   /* a PNG is wanted, which also needs the row sums */
    bool to_volume;    /* a NIfTI file is wanted */
    dcrf_workspace *workspace;
    size_t pixels;
    size_t channels;  /* 1 for row sums and the diagonal */
    size_t stride;    /* floats from one pixel of a block to the next */
    float *block;     /* the field */
    float *filtered;  /* the output of one kernel */
    double *sum;      /* over the kernels, without padding */
    double *row_sums; /* over the kernels, for a picture */
} filtering;

static bool filters_a_field(const filtering *f) {
    return !f->settings->row_sums && !f->settings->diagonal;
}

static bool check_settings(const filtering *f, cli_problem *problem) {
    const filter_settings *settings = f->settings;
    if ((settings->input_file != NULL) + settings->row_sums + settings->diagonal > 1)
        return bad_input(problem, "filter", "give only one of --input, --row-sums, --diagonal");
    if (!settings->kernels.spatial.on && !settings->kernels.bilateral.on)
        return bad_input(problem, "filter", "both kernels are none; give --spatial or --bilateral");
    if (f->to_picture && !filters_a_field(f))
        return bad_input(problem, settings->output_file,
                         "row sums and diagonals are numbers, not colours; give a .npy");
    return output_check(settings->output_file, problem);
}

/* The colours as a field; the image still owns them. */
static pixel_array field_of_image(const cli_image *image) {
    const dcrf_grid grid = image_grid(image);
    pixel_array field = {.values = image->colours, .channel_axis = true};
    field.view = dcrf_view_interleaved(image->colours, DCRF_F32, &grid, image->channels);
    field.axes = image_shape(image, field.shape);
    field.shape[field.axes++] = image->channels;
    return field;
}

static bool read_field(filtering *f, cli_problem *problem) {
    const filter_settings *settings = f->settings;
    if (!image_read(settings->image_file, &f->image, problem))
        return false;
    if (f->to_picture && image_is_volume(&f->image))
        return bad_input(problem, settings->output_file,
                         "a volume makes no picture; give a .nii, .nii.gz or .npy");
    if (f->to_volume && !image_is_volume(&f->image))
        return bad_input(problem, settings->output_file,
                         "a picture makes no volume; give a .png or .npy");
    f->pixels = image_pixels(&f->image);
    f->channels = 1;
    if (!filters_a_field(f))
        return true;
    if (!settings->input_file)
        f->field = field_of_image(&f->image);
    else if (!pixel_array_read(settings->input_file, &f->image, (array_layout)settings->layout,
                               ARRAY_OF_THE_SIZE, &f->field, problem))
        return false;
    f->channels = f->field.view.channels;
    if (f->to_picture && f->channels != 1 && f->channels != 3)
        return bad_input(problem, settings->output_file,
                         "a picture has 1 or 3 channels and the input has %zu; give a .npy",
                         f->channels);
    return true;
}

static bool take_memory(filtering *f, cli_problem *problem) {
    f->stride = dcrf_padded(f->channels);
    if (f->stride > SIZE_MAX / f->pixels / sizeof *f->sum)
        return out_of_memory(problem, "filter");
    f->block = calloc(f->pixels, f->stride * sizeof *f->block);
    f->filtered = calloc(f->pixels, f->stride * sizeof *f->filtered);
    f->sum = calloc(f->pixels, f->channels * sizeof *f->sum);
    f->row_sums = calloc(f->pixels, sizeof *f->row_sums);
    if (!f->block || !f->filtered || !f->sum || !f->row_sums)
        return out_of_memory(problem, "filter");
    return workspace_start(&f->workspace, f->settings->kernels.threads, f->settings->kernels.device,
                           problem);
}

/* The offset, in floats, of channel c of a pixel in an array with the field's layout. */
static size_t place_of(const filtering *f, size_t pixel, size_t c) {
    if (!filters_a_field(f))
        return pixel;
    const size_t step = (size_t)f->field.view.stride[0] / sizeof(float);
    const size_t channel_step = (size_t)f->field.view.channel_stride / sizeof(float);
    return pixel * step + c * channel_step;
}

static bool fill_block(filtering *f, cli_problem *problem) {
    char text[IMAGE_TEXT_BYTES];
    for (size_t pixel = 0; filters_a_field(f) && pixel < f->pixels; pixel++)
        for (size_t c = 0; c < f->channels; c++) {
            const float value = f->field.values[place_of(f, pixel, c)];
            if (!isfinite(value))
                return bad_input(problem, f->settings->input_file,
                                 "holds %g at %s, channel %zu; replace it", (double)value,
                                 image_place_text(&f->image, pixel, text), c);
            f->block[pixel * f->stride + c] = value;
        }
    return true;
}

/* sum += weight * filtered, whose pixels are `stride` floats apart. */
static void add_weighted(const filtering *f, double weight, size_t stride, size_t channels,
                         double *sum) {
    for (size_t pixel = 0; pixel < f->pixels; pixel++)
        for (size_t c = 0; c < channels; c++)
            sum[pixel * channels + c] += weight * (double)f->filtered[pixel * stride + c];
}

static dcrf_status apply_operator(filtering *f, const dcrf_operator *op, double weight,
                                  dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    if (f->settings->diagonal) {
        status = dcrf_operator_diagonal(op, f->workspace, f->filtered, f->pixels, error);
        add_weighted(f, weight, 1, 1, f->sum);
    }
    if (status >= 0 && (f->settings->row_sums || f->to_picture)) {
        status = dcrf_operator_row_sums(op, f->workspace, f->filtered, f->pixels, error);
        add_weighted(f, weight, 1, 1, f->to_picture ? f->row_sums : f->sum);
    }
    if (status >= 0 && filters_a_field(f)) {
        status = dcrf_operator_apply(op, f->workspace, DCRF_SYMMETRIC, f->block, f->filtered,
                                     f->pixels * f->stride, f->channels, f->stride, error);
        add_weighted(f, weight, f->stride, f->channels, f->sum);
    }
    return status;
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
            status = apply_operator(f, op, kernels[k].weight, &error);
        dcrf_operator_free(&op);
        if (status < 0)
            return library_problem(problem, f->settings->image_file, &error);
    }
    return true;
}

/* The weighted means, on the scale of the field, as 8-bit samples. */
static bool write_picture(const filtering *f, FILE *stream, cli_problem *problem) {
    const char *file = f->settings->output_file;
    const size_t count = f->pixels * f->channels;
    uint16_t *samples = malloc(count * sizeof *samples);
    if (!samples)
        return out_of_memory(problem, file);
    for (size_t i = 0; i < count; i++) {
        const double mean = f->sum[i] / f->row_sums[i / f->channels];
        samples[i] = mean >= 255 ? 255 : mean > 0 ? (uint16_t)lround(mean) : 0;
    }
    const png_layout layout = {
        .width = f->image.width, .height = f->image.height, .channels = f->channels};
    const bool done = png_write(stream, file, samples, layout, problem);
    free(samples);
    return done;
}

static bool write_array(const filtering *f, FILE *stream, cli_problem *problem) {
    size_t shape[3];
    const size_t axes = image_shape(&f->image, shape);
    float *values = malloc(f->pixels * f->channels * sizeof *values);
    if (!values)
        return out_of_memory(problem, f->settings->output_file);
    for (size_t pixel = 0; pixel < f->pixels; pixel++)
        for (size_t c = 0; c < f->channels; c++)
            values[place_of(f, pixel, c)] = (float)f->sum[pixel * f->channels + c];
    if (filters_a_field(f))
        npy_write_floats(stream, f->field.shape, f->field.axes, values);
    else
        npy_write_floats(stream, shape, axes, values);
    free(values);
    return true;
}

/* The fourth axis holds the channels. */
static bool write_volume(const filtering *f, FILE *stream, cli_problem *problem) {
    const char *file = f->settings->output_file;
    float *values = malloc(f->pixels * f->channels * sizeof *values);
    if (!values)
        return out_of_memory(problem, file);
    for (size_t pixel = 0; pixel < f->pixels; pixel++)
        for (size_t c = 0; c < f->channels; c++)
            values[c * f->pixels + pixel] = (float)f->sum[pixel * f->channels + c];
    const bool done =
        nifti_write_floats(stream, file, f->image.geometry, values, f->channels, problem);
    free(values);
    return done;
}

static bool write_output(const filtering *f, cli_problem *problem) {
    cli_outputs outputs = {.count = 0};
    FILE *stream;
    const bool done = output_begin(&outputs, f->settings->output_file, &stream, problem) &&
                      (f->to_picture  ? write_picture
                       : f->to_volume ? write_volume
                                      : write_array)(f, stream, problem) &&
                      outputs_commit(&outputs, problem);
    outputs_discard(&outputs);
    return done;
}

static bool run_filter(const void *given, cli_problem *problem) {
    const filter_settings *settings = given;
    filtering f = {.settings = settings,
                   .to_picture = is_png_name(settings->output_file),
                   .to_volume = nifti_is_name(settings->output_file)};
    const bool done = check_settings(&f, problem) && read_field(&f, problem) &&
                      take_memory(&f, problem) && fill_block(&f, problem) &&
                      apply_kernels(&f, problem) && write_output(&f, problem);
    free(f.block);
    free(f.filtered);
    free(f.sum);
    free(f.row_sums);
    dcrf_workspace_free(&f.workspace);
    pixel_array_free(&f.field);
    image_free(&f.image);
    return done;
}

static const cli_option operands[] = {
    {.name = "IMAGE",
     .parse = parse_input,
     .offset = offsetof(filter_settings, image_file),
     .help = IMAGE_OPERAND_HELP},
    {0},
};

static const cli_option options[] = {
    {"input", 0, "FILE", NULL, false, parse_input, offsetof(filter_settings, input_file),
     "the field to filter, a .npy: (H, W), (H, W, C) or (C, H, W); for a volume also a NIfTI; by "
     "default the image itself"},
    {"row-sums", 0, NULL, NULL, false, parse_switch, offsetof(filter_settings, row_sums),
     "write the row sums of the weighted operators instead"},
    {"diagonal", 0, NULL, NULL, false, parse_switch, offsetof(filter_settings, diagonal),
     "write the diagonal of the weighted operators instead"},
    {"output", 'o', "FILE", NULL, true, parse_output, offsetof(filter_settings, output_file),
     "where the result goes: a .npy of float32 in the shape of the input, a .png, or for a volume "
     "a "
     ".nii or .nii.gz"},
    {"layout", 0, "auto|hwc|chw", "auto", false, parse_choice, offsetof(filter_settings, layout),
     "order of the input's axes if its shape is ambiguous"},
    {0},
};

static const option_group groups[] = {
    {"Input and output", options, 0},
    {"Kernels", kernel_option_table, offsetof(filter_settings, kernels)},
    {"Device", device_option_table, offsetof(filter_settings, kernels)},
    {0},
};

const cli_command filter_command = {
    {"filter", operands, groups},
    "apply the kernels of a model to an image or an array",
    "Writes the sum over the kernels of W K x, where x is the input, K the kernel's operator over "
    "the image with its normalization, and W its weight. The diagonal of K is included. Switch a "
    "kernel off with none to get the other alone, and give it the weight 1 to get K itself.\n"
    "\n"
    "Where the output is a .png, every pixel of the sum is divided by the sum of its weights (the "
    "row sums), which makes it a mean of the input around the pixel: a smoothed picture.",
    sizeof(filter_settings),
    run_filter,
};
