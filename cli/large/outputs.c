#include "large/outputs.h"

#include "io/frames.h"
#include "io/nifti.h"
#include "io/npy.h"
#include "io/png_format.h"
#include "io/tiff_write.h"
#include "large/frame_outputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- checks --------------------------------------------------------------------------------- */

bool large_outputs_check(const solve_outputs *options, cli_problem *problem) {
    const struct {
        const char *name;
        bool given;
    } refused[] = {{"--overlay", options->overlay_file != NULL},
                   {"--boundaries", options->boundaries_file != NULL},
                   {"--proof", options->proof_file != NULL},
                   {"--certificate", options->certificate_file != NULL},
                   {"--trace", options->trace_file != NULL},
                   {"--report", options->report_file != NULL},
                   {"--explain", options->explain}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (refused[i].given)
            return bad_input(problem, refused[i].name,
                             "needs the whole image, which is solved in tiles; give --memory more, "
                             "or leave it out");
    return true;
}

/* ---- bands ---------------------------------------------------------------------------------- */

/* An output that is an array over the image. */
typedef enum output_kind {
    OUTPUT_LABELS,
    OUTPUT_CONFIDENCE,
    OUTPUT_MARGINALS,
    OUTPUT_KINDS
} output_kind;

typedef struct output_file {
    const char *path; /* NULL: not requested */
    FILE *stream;
    png_writer *png; /* of a picture, or */
    tiff_writer *tiff;
} output_file;

struct large_outputs {
    const solve_outputs *options;
    const dcrf_tiling *tiling;
    const cli_image *image;
    size_t labels;
    output_file files[OUTPUT_KINDS];
    /* The band: rows of a picture, frames of a video, or all of a volume. */
    size_t band_first; /* its first row */
    size_t band_rows;
    size_t band_first_frame;
    uint16_t *band_labels;
    uint16_t *band_unary; /* for a video: the unary minimum */
    frame_outputs frames;
    float *band_confidence;
    float *band_marginals; /* the labels of a pixel next to each other */
    uint16_t *grey;        /* a row of the confidence picture */
};

/* Tile sizes along an axis differ by at most one. */
static size_t longest_tile(const dcrf_tiling *tiling, size_t axis) {
    return (tiling->grid.size[axis] + tiling->count[axis] - 1) / tiling->count[axis];
}

static size_t band_pixels(const dcrf_tiling *tiling, const cli_image *image) {
    const size_t *size = tiling->grid.size;
    if (image_is_video(image))
        return size[0] * size[1] * longest_tile(tiling, 2);
    return image_is_volume(image) ? size[0] * size[1] * size[2] : size[0] * longest_tile(tiling, 1);
}

/* Of the data to be written, while it is in memory. */
static size_t bytes_per_pixel(const solve_outputs *options, size_t labels) {
    const size_t floats =
        (options->confidence_file ? 1 : 0) + (options->marginals_file ? labels : 0);
    return (options->labels_file ? sizeof(uint16_t) : 0) + floats * sizeof(float);
}

double large_outputs_bytes(const solve_outputs *options, const dcrf_tiling *tiling,
                           const cli_image *image, size_t labels) {
    const size_t of_video = image_is_video(image) ? 2 * sizeof(uint16_t) : 0;
    return (double)band_pixels(tiling, image) *
           (double)(of_video + bytes_per_pixel(options, labels));
}

static bool allocate(large_outputs *o) {
    const size_t pixels = band_pixels(o->tiling, o->image);
    const bool is_video = image_is_video(o->image);
    if (is_video)
        o->band_unary = malloc(pixels * sizeof *o->band_unary);
    if (o->files[OUTPUT_LABELS].path || is_video)
        o->band_labels = malloc(pixels * sizeof *o->band_labels);
    if (o->files[OUTPUT_CONFIDENCE].path)
        o->band_confidence = malloc(pixels * sizeof *o->band_confidence);
    if (o->files[OUTPUT_MARGINALS].path)
        o->band_marginals = malloc(pixels * o->labels * sizeof *o->band_marginals);
    o->grey = malloc(o->image->width * sizeof *o->grey);
    return o->grey && (!is_video || (o->band_unary && o->band_labels)) &&
           (o->band_labels || !o->files[OUTPUT_LABELS].path) &&
           (o->band_confidence || !o->files[OUTPUT_CONFIDENCE].path) &&
           (o->band_marginals || !o->files[OUTPUT_MARGINALS].path);
}

/* ---- files ---------------------------------------------------------------------------------- */

static size_t label_bytes(const large_outputs *o) {
    return o->labels > UINT8_MAX + 1 ? 2 : 1;
}

static bool begin_picture(large_outputs *o, output_kind what, const palette *colours,
                          cli_problem *problem) {
    output_file *file = &o->files[what];
    const bool indexed = what == OUTPUT_LABELS && o->options->label_format == LABELS_INDEXED;
    const png_layout layout = {.width = o->image->width,
                               .height = o->image->height,
                               .channels = 1,
                               .wide = what == OUTPUT_LABELS && label_bytes(o) == 2,
                               .palette = indexed ? colours->rgb : NULL};
    return png_writer_new(&file->png, file->stream, file->path, &layout, problem);
}

static bool begin_tiff(large_outputs *o, output_kind what, const palette *colours,
                       cli_problem *problem) {
    output_file *file = &o->files[what];
    const bool indexed = what == OUTPUT_LABELS && o->options->label_format == LABELS_INDEXED;
    const tiff_layout layout = {.width = o->image->width,
                                .height = o->image->height,
                                .wide = what == OUTPUT_LABELS && label_bytes(o) == 2,
                                .palette = indexed ? colours->rgb : NULL,
                                .geo = o->image->geo};
    return tiff_writer_new(&file->tiff, file->stream, file->path, &layout, problem);
}

static bool begin_file(large_outputs *o, output_kind what, const palette *colours,
                       cli_outputs *files, cli_problem *problem) {
    output_file *file = &o->files[what];
    size_t shape[NPY_MAX_AXES];
    size_t axes = image_shape(o->image, shape);
    if (!file->path || path_names_folder(file->path))
        return true;
    if (!output_begin(files, file->path, &file->stream, problem))
        return false;
    if (is_png_name(file->path))
        return begin_picture(o, what, colours, problem);
    if (is_tiff_name(file->path))
        return begin_tiff(o, what, colours, problem);
    if (nifti_is_name(file->path))
        return true;
    if (what == OUTPUT_MARGINALS)
        shape[axes++] = o->labels;
    npy_write_header(file->stream,
                     what != OUTPUT_LABELS ? "<f4"
                     : label_bytes(o) == 2 ? "<u2"
                                           : "|u1",
                     shape, axes);
    return true;
}

bool large_outputs_new(large_outputs **made, const solve_outputs *options,
                       const dcrf_tiling *tiling, const cli_image *image, size_t labels,
                       const palette *label_colours, const raster *colours, cli_outputs *files,
                       cli_problem *problem) {
    large_outputs *o = *made = calloc(1, sizeof *o);
    if (!o)
        return out_of_memory(problem, "outputs");
    o->options = options;
    o->tiling = tiling;
    o->image = image;
    o->labels = labels;
    o->files[OUTPUT_LABELS].path = options->labels_file;
    o->files[OUTPUT_CONFIDENCE].path = options->confidence_file;
    o->files[OUTPUT_MARGINALS].path = options->marginals_file;
    bool done =
        (allocate(o) && (!image_is_video(image) ||
                         frame_outputs_init(&o->frames, options, image, label_colours, colours))) ||
        out_of_memory(problem, "outputs");
    for (int what = 0; done && what < OUTPUT_KINDS; what++)
        done = begin_file(o, (output_kind)what, label_colours, files, problem);
    if (!done)
        large_outputs_free(made);
    return done;
}

static void output_free(output_file *file) {
    png_writer_free(&file->png);
    tiff_writer_free(&file->tiff);
}

void large_outputs_free(large_outputs **outputs) {
    large_outputs *o = *outputs;
    if (!o)
        return;
    for (int what = 0; what < OUTPUT_KINDS; what++)
        output_free(&o->files[what]);
    frame_outputs_clear(&o->frames);
    free(o->band_labels);
    free(o->band_unary);
    free(o->band_confidence);
    free(o->band_marginals);
    free(o->grey);
    free(o);
    *outputs = NULL;
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool is_picture(const output_file *file) {
    return file->png || file->tiff;
}

static bool write_rows(const output_file *file, const uint16_t *samples, size_t rows,
                       cli_problem *problem) {
    return file->png ? png_writer_rows(file->png, samples, rows, problem)
                     : tiff_writer_rows(file->tiff, samples, rows, problem);
}

static bool end_picture(const output_file *file, cli_problem *problem) {
    return file->png ? png_writer_end(file->png, problem) : tiff_writer_end(file->tiff, problem);
}

static bool write_grey_rows(large_outputs *o, const output_file *file, cli_problem *problem) {
    const size_t width = o->image->width;
    bool done = true;
    for (size_t row = 0; done && row < o->band_rows; row++) {
        for (size_t x = 0; x < width; x++)
            o->grey[x] = (uint16_t)lround(
                255 * fmin(fmax((double)o->band_confidence[row * width + x], 0), 1));
        done = write_rows(file, o->grey, 1, problem);
    }
    return done;
}

/* NIfTI stores one volume after the other. */
static bool write_planes(large_outputs *o, const output_file *file, cli_problem *problem) {
    const size_t voxels = image_pixels(o->image);
    float *planes = malloc(voxels * o->labels * sizeof *planes);
    if (!planes)
        return out_of_memory(problem, file->path);
    for (size_t a = 0; a < voxels; a++)
        for (size_t i = 0; i < o->labels; i++)
            planes[i * voxels + a] = o->band_marginals[a * o->labels + i];
    const bool done = nifti_write_floats(file->stream, file->path, o->image->geometry, planes,
                                         o->labels, problem);
    free(planes);
    return done;
}

static bool write_output(large_outputs *o, output_kind what, size_t pixels, cli_problem *problem) {
    const output_file *file = &o->files[what];
    const bool nifti = file->path && nifti_is_name(file->path);
    if (!file->path || path_names_folder(file->path))
        return true;
    switch (what) {
    case OUTPUT_LABELS:
        if (is_picture(file))
            return write_rows(file, o->band_labels, o->band_rows, problem);
        if (nifti)
            return nifti_write_labels(file->stream, file->path, o->image->geometry, o->band_labels,
                                      problem);
        npy_append_labels(file->stream, o->band_labels, pixels, label_bytes(o));
        return true;
    case OUTPUT_CONFIDENCE:
        if (is_picture(file))
            return write_grey_rows(o, file, problem);
        if (nifti)
            return nifti_write_floats(file->stream, file->path, o->image->geometry,
                                      o->band_confidence, 1, problem);
        npy_append_floats(file->stream, o->band_confidence, pixels);
        return true;
    default:
        if (nifti)
            return write_planes(o, file, problem);
        npy_append_floats(file->stream, o->band_marginals, pixels * o->labels);
        return true;
    }
}

static bool write_band(large_outputs *o, size_t pixels, bool is_last, cli_problem *problem) {
    bool done = true;
    for (int what = 0; done && what < OUTPUT_KINDS; what++)
        done = write_output(o, (output_kind)what, pixels, problem) &&
               (!is_last || !is_picture(&o->files[what]) || end_picture(&o->files[what], problem));
    return done;
}

/* ---- taking tiles --------------------------------------------------------------------------- */

/* Where a row of a tile's inner region goes; NULL: not requested. */
typedef struct output_row {
    uint16_t *labels;
    uint16_t *unary;
    float *confidence;
    float *marginals;
} output_row;

static size_t inner_rows(const dcrf_tile *tile) {
    return tile->inner_size[1] * tile->inner_size[2];
}

/* The index in the window of the first pixel of a row of the inner region. */
static size_t place_in_window(const dcrf_tile *tile, size_t row) {
    const size_t y = row % tile->inner_size[1] + tile->inner_first[1];
    const size_t z = row / tile->inner_size[1] + tile->inner_first[2];
    return (z * tile->size[1] + y) * tile->size[0] + tile->inner_first[0];
}

/* The destination of that row in the band. */
static output_row row_of_band(const large_outputs *o, const dcrf_tile *tile, size_t row) {
    const size_t y = tile->first[1] + tile->inner_first[1] + row % tile->inner_size[1];
    const size_t z = tile->first[2] + tile->inner_first[2] + row / tile->inner_size[1];
    const size_t place =
        ((z - o->band_first_frame) * o->image->height + y - o->band_first) * o->image->width +
        tile->first[0] + tile->inner_first[0];
    return (output_row){o->band_labels ? o->band_labels + place : NULL,
                        o->band_unary ? o->band_unary + place : NULL,
                        o->band_confidence ? o->band_confidence + place : NULL,
                        o->band_marginals ? o->band_marginals + place * o->labels : NULL};
}

static void take_row(const dcrf_tile_result *result, size_t row, size_t label_count,
                     const output_row *to) {
    const size_t from = place_in_window(result->tile, row), count = result->tile->inner_size[0];
    const uint16_t *labels = result->labels + from;
    const float *marginals = result->marginals + from * result->stride;
    if (to->labels)
        memcpy(to->labels, labels, count * sizeof *labels);
    if (to->unary)
        memcpy(to->unary, result->unary_labels + from, count * sizeof *labels);
    for (size_t i = 0; to->confidence && i < count; i++)
        to->confidence[i] = marginals[i * result->stride + labels[i]];
    for (size_t i = 0; to->marginals && i < count; i++)
        memcpy(to->marginals + i * label_count, marginals + i * result->stride,
               label_count * sizeof *marginals);
}

/* The band that a tile belongs to. */
static void begin_tile(large_outputs *o, const dcrf_tile *tile) {
    if (image_is_video(o->image))
        o->band_first_frame = tile->first[2] + tile->inner_first[2];
    if (image_is_volume(o->image))
        return;
    o->band_first = tile->first[1] + tile->inner_first[1];
    o->band_rows = tile->inner_size[1];
}

/* The last tile of its frames completes a band of a video. */
static bool end_frames(large_outputs *o, const dcrf_tile *tile, bool is_last,
                       cli_problem *problem) {
    const size_t frames = tile->inner_size[2];
    return (tile->index + 1) % (o->tiling->count[0] * o->tiling->count[1]) != 0 ||
           (frame_outputs_take(&o->frames, o->band_first_frame, frames, o->band_labels,
                               o->band_unary, problem) &&
            write_band(o, frames * o->image->width * o->image->height, is_last, problem));
}

/* Its last tile completes a band. */
static bool end_tile(large_outputs *o, const dcrf_tile *tile, cli_problem *problem) {
    const bool is_last = tile->index + 1 == dcrf_tiling_count(o->tiling);
    if (image_is_video(o->image))
        return end_frames(o, tile, is_last, problem);
    if (image_is_volume(o->image))
        return !is_last || write_band(o, image_pixels(o->image), true, problem);
    return (tile->index + 1) % o->tiling->count[0] != 0 ||
           write_band(o, o->band_rows * o->image->width, is_last, problem);
}

bool large_outputs_take(large_outputs *o, const dcrf_tile_result *result, cli_problem *problem) {
    const dcrf_tile *tile = result->tile;
    begin_tile(o, tile);
    for (size_t row = 0; row < inner_rows(tile); row++) {
        const output_row to = row_of_band(o, tile, row);
        take_row(result, row, o->labels, &to);
    }
    return end_tile(o, tile, problem);
}

void large_outputs_flicker(const large_outputs *o, flicker *before, flicker *after) {
    *before = o->frames.before;
    *after = o->frames.after;
}

/* ---- through a file ------------------------------------------------------------------------- */

size_t large_outputs_stored_bytes(const solve_outputs *options, const dcrf_tile *tile,
                                  size_t labels) {
    return inner_rows(tile) * tile->inner_size[0] * bytes_per_pixel(options, labels);
}

bool large_outputs_store(const solve_outputs *options, const dcrf_tile_result *result,
                         size_t labels, FILE *stream, cli_problem *problem) {
    const size_t count = result->tile->inner_size[0];
    const output_row row = {
        options->labels_file ? malloc(count * sizeof *row.labels) : NULL, NULL,
        options->confidence_file ? malloc(count * sizeof *row.confidence) : NULL,
        options->marginals_file ? malloc(count * labels * sizeof *row.marginals) : NULL};
    const bool has_room = (row.labels || !options->labels_file) &&
                          (row.confidence || !options->confidence_file) &&
                          (row.marginals || !options->marginals_file);
    for (size_t i = 0; has_room && i < inner_rows(result->tile); i++) {
        take_row(result, i, labels, &row);
        if (row.labels)
            fwrite(row.labels, sizeof *row.labels, count, stream);
        if (row.confidence)
            fwrite(row.confidence, sizeof *row.confidence, count, stream);
        if (row.marginals)
            fwrite(row.marginals, sizeof *row.marginals, count * labels, stream);
    }
    free(row.labels);
    free(row.confidence);
    free(row.marginals);
    return has_room || out_of_memory(problem, "tile");
}

bool large_outputs_load(large_outputs *o, const dcrf_tile *tile, FILE *stream,
                        cli_problem *problem) {
    const size_t count = tile->inner_size[0];
    bool done = true;
    begin_tile(o, tile);
    for (size_t row = 0; done && row < inner_rows(tile); row++) {
        const output_row to = row_of_band(o, tile, row);
        done = (!to.labels || fread(to.labels, sizeof *to.labels, count, stream) == count) &&
               (!to.confidence ||
                fread(to.confidence, sizeof *to.confidence, count, stream) == count) &&
               (!to.marginals || fread(to.marginals, sizeof *to.marginals, count * o->labels,
                                       stream) == count * o->labels);
    }
    return done ? end_tile(o, tile, problem)
                : failure(problem, "tile", "cannot be read back from its temporary file");
}
