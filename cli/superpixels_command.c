/* dcrf superpixels: the regions of an image that can serve as cliques of a model. */
#include "command.h"
#include "io/nifti.h"
#include "io/npy.h"
#include "io/output.h"
#include "io/picture.h"
#include "io/png_format.h"
#include "model/pixel_array.h"
#include "model/superpixels.h"

#include <math.h>
#include <stdlib.h>

/* Choices are stored as their index in the form. */
_Static_assert(DCRF_SUPERPIXEL_MEAN_SHIFT == 0 && DCRF_SUPERPIXEL_SLIC == 1, "meanshift|slic");

typedef struct superpixels_settings {
    const char *image_file;
    const char *regions_file;
    const char *boundaries_file; /* NULL: none */
    int method;                  /* dcrf_superpixel_method */
    size_t min_region_px;        /* 0: the method's default */
    double spatial_bandwidth_px;
    double range_bandwidth;
    double region_size_px;
    double compactness;
    size_t threads;
} superpixels_settings;

typedef struct segmentation {
    const superpixels_settings *settings;
    cli_image image;
    int32_t *regions;
    size_t count;
} segmentation;

static dcrf_superpixel_settings library_settings(const superpixels_settings *settings) {
    dcrf_superpixel_settings result;
    dcrf_superpixel_settings_defaults(&result);
    result.method = (dcrf_superpixel_method)settings->method;
    result.min_region_px = settings->min_region_px;
    result.spatial_bandwidth_px = settings->spatial_bandwidth_px;
    result.range_bandwidth = settings->range_bandwidth;
    result.region_size_px = settings->region_size_px;
    result.compactness = settings->compactness;
    return result;
}

static bool find_regions(segmentation *s, cli_problem *problem) {
    dcrf_error error;
    dcrf_workspace *workspace = NULL;
    const dcrf_superpixel_settings settings = library_settings(s->settings);
    if (dcrf_workspace_new(&workspace, s->settings->threads, &error) < 0)
        return library_problem(problem, "--threads", &error);
    const bool done = superpixels_find(&s->image, s->settings->image_file, &settings, workspace,
                                       &s->regions, &s->count, problem);
    dcrf_workspace_free(&workspace);
    return done;
}

/* ---- output --------------------------------------------------------------------------------- */

/* As 16-bit numbers, for a picture or a volume. */
static bool write_regions_short(const segmentation *s, FILE *stream, cli_problem *problem) {
    const char *file = s->settings->regions_file;
    const size_t pixels = image_pixels(&s->image);
    const bool volume = nifti_is_name(file);
    if (s->count > (size_t)UINT16_MAX + 1)
        return bad_input(problem, file,
                         "a %s can number 65536 regions and there are %zu; write a .npy, or ask "
                         "for larger ones with --min-region",
                         volume ? "NIfTI file" : "PNG", s->count);
    const png_layout layout = {.width = s->image.width, .height = s->image.height, .channels = 1};
    uint16_t *samples = malloc(pixels * sizeof *samples);
    if (!samples)
        return out_of_memory(problem, file);
    for (size_t i = 0; i < pixels; i++)
        samples[i] = (uint16_t)s->regions[i];
    const bool done = volume ? nifti_write_labels(stream, file, s->image.geometry, samples, problem)
                             : png_write(stream, file, samples, layout, problem);
    free(samples);
    return done;
}

static bool write_regions(const segmentation *s, cli_outputs *outputs, cli_problem *problem) {
    const char *file = s->settings->regions_file;
    size_t shape[3];
    const size_t axes = image_shape(&s->image, shape);
    FILE *stream;
    if (!output_begin(outputs, file, &stream, problem))
        return false;
    if (is_png_name(file) || nifti_is_name(file))
        return write_regions_short(s, stream, problem);
    npy_write_integers(stream, shape, axes, s->regions);
    return true;
}

static bool encode_boundaries(const segmentation *s, const uint8_t *boundary, FILE *stream,
                              cli_problem *problem) {
    static const uint16_t line_colour[IMAGE_CHANNELS] = {255, 0, 128};
    const char *file = s->settings->boundaries_file;
    const size_t count = s->image.width * s->image.height * IMAGE_CHANNELS;
    uint16_t *samples = malloc(count * sizeof *samples);
    if (!samples)
        return out_of_memory(problem, file);
    for (size_t i = 0; i < count; i++)
        samples[i] = boundary[i / IMAGE_CHANNELS] ? line_colour[i % IMAGE_CHANNELS]
                                                  : (uint16_t)lroundf(s->image.colours[i]);
    const png_layout layout = {
        .width = s->image.width, .height = s->image.height, .channels = IMAGE_CHANNELS};
    const bool done = png_write(stream, file, samples, layout, problem);
    free(samples);
    return done;
}

/* For a volume: 1 where regions meet. */
static bool write_boundary_volume(const segmentation *s, const uint8_t *boundary, FILE *stream,
                                  cli_problem *problem) {
    const char *file = s->settings->boundaries_file;
    const size_t voxels = image_pixels(&s->image);
    uint16_t *labels = malloc(voxels * sizeof *labels);
    if (!labels)
        return out_of_memory(problem, file);
    for (size_t i = 0; i < voxels; i++)
        labels[i] = boundary[i];
    const bool done = nifti_write_labels(stream, file, s->image.geometry, labels, problem);
    free(labels);
    return done;
}

static bool write_boundaries(const segmentation *s, cli_outputs *outputs, cli_problem *problem) {
    const char *file = s->settings->boundaries_file;
    const dcrf_grid grid = image_grid(&s->image);
    dcrf_error error;
    FILE *stream;
    uint8_t *boundary = malloc(image_pixels(&s->image));
    if (!boundary)
        return out_of_memory(problem, file);
    const bool done = (dcrf_region_boundaries(&grid, s->regions, boundary, image_pixels(&s->image),
                                              &error) >= 0 ||
                       library_problem(problem, file, &error)) &&
                      output_begin(outputs, file, &stream, problem) &&
                      (image_is_volume(&s->image) ? write_boundary_volume : encode_boundaries)(
                          s, boundary, stream, problem);
    free(boundary);
    return done;
}

static bool write_outputs(const segmentation *s, cli_problem *problem) {
    cli_outputs outputs = {.count = 0};
    const bool done = write_regions(s, &outputs, problem) &&
                      (!s->settings->boundaries_file || write_boundaries(s, &outputs, problem)) &&
                      outputs_commit(&outputs, problem);
    outputs_discard(&outputs);
    return done;
}

static bool check_files(const superpixels_settings *settings, cli_problem *problem) {
    const char *boundaries = settings->boundaries_file;
    return output_check(settings->regions_file, problem) &&
           (!boundaries || output_check(boundaries, problem));
}

static bool do_files_fit(const segmentation *s, cli_problem *problem) {
    const char *boundaries = s->settings->boundaries_file;
    return image_fits_file(&s->image, s->settings->regions_file, problem) &&
           image_fits_file(&s->image, boundaries, problem) &&
           (!boundaries || !image_is_volume(&s->image) || nifti_is_name(boundaries) ||
            bad_input(problem, boundaries, "must be a .nii or .nii.gz, as the image is a volume"));
}

static bool run_superpixels(const void *given, cli_problem *problem) {
    const superpixels_settings *settings = given;
    segmentation s = {.settings = settings};
    const bool done =
        check_files(settings, problem) && image_read(settings->image_file, &s.image, problem) &&
        do_files_fit(&s, problem) && find_regions(&s, problem) && write_outputs(&s, problem);
    free(s.regions);
    image_free(&s.image);
    return done;
}

static const cli_option operands[] = {
    {.name = "IMAGE",
     .parse = parse_input,
     .offset = offsetof(superpixels_settings, image_file),
     .help = "the photograph: " PICTURE_FORMATS_TEXT "; or a volume (NIfTI), for slic"},
    {0},
};

static const cli_option files[] = {
    {"output", 'o', "FILE", NULL, true, parse_output, offsetof(superpixels_settings, regions_file),
     "the file for the regions: a grey .png (for a volume a NIfTI) of 8 bits, or 16 bits for more "
     "than 256 regions, or a .npy of int32"},
    {"boundaries", 0, "FILE", NULL, false, parse_output,
     offsetof(superpixels_settings, boundaries_file),
     "also write the image with lines where regions meet, as a .png; for a volume a NIfTI with 1 "
     "there"},
    {0},
};

static const cli_option options[] = {
    {"method", 0, "meanshift|slic", "meanshift", false, parse_choice,
     offsetof(superpixels_settings, method),
     "meanshift: regions of any shape that keep to edges; slic: compact ones, much faster"},
    {"min-region", 0, "PIXELS", "0", false, parse_count,
     offsetof(superpixels_settings, min_region_px),
     "minimum size; smaller regions are merged into the neighbour of most similar colour; 0: 20 "
     "for meanshift, a quarter of the square (in volumes: of the cube) of --region-size for slic"},
    {"spatial-bandwidth", 0, "PIXELS", "8", false, parse_positive_number,
     offsetof(superpixels_settings, spatial_bandwidth_px),
     "meanshift: the radius of its window in the image"},
    {"range-bandwidth", 0, "LUV", "4", false, parse_positive_number,
     offsetof(superpixels_settings, range_bandwidth),
     "meanshift: the radius of its window among the colours, in units of CIE Luv"},
    {"region-size", 0, "PIXELS", "16", false, parse_positive_number,
     offsetof(superpixels_settings, region_size_px),
     "slic: approximate width of regions; in volumes in voxels along the axis of smallest spacing"},
    {"compactness", 0, "M", "10", false, parse_positive_number,
     offsetof(superpixels_settings, compactness),
     "slic: the weight of position against colour; more gives rounder regions"},
    {"threads", 0, "T", "0", false, parse_count, offsetof(superpixels_settings, threads),
     "number of threads; 0: one per core; results do not depend on it"},
    {0},
};

static const option_group groups[] = {
    {"Output", files, 0},
    {"Superpixels", options, 0},
    {0},
};

const cli_command superpixels_command = {
    {"superpixels", operands, groups},
    "cut an image into superpixels",
    "Cuts the image into connected regions of similar colour, by mean shift or SLIC, and writes "
    "the number of every pixel's region, from 0 in the order of their first pixels. Such a file "
    "can be given to --cliques of other commands.",
    sizeof(superpixels_settings),
    run_superpixels,
};
