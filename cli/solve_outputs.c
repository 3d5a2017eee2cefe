#include "solve_outputs.h"

#include "interrupt.h"
#include "io/frames.h"
#include "io/json.h"
#include "io/nifti.h"
#include "io/npy.h"
#include "io/output.h"
#include "io/png_format.h"
#include "io/tiff_write.h"
#include "report/html_report.h"
#include "report/pictures.h"
#include "report/solution_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const cli_option solve_output_table[] = {
    {"output", 'o', "FILE", NULL, false, parse_output, offsetof(solve_outputs, labels_file),
     "the labelling: a PNG or TIFF (see --label-format; a TIFF has the georeference of its image), "
     "a .npy of integers, for a volume a NIfTI file (.nii, .nii.gz), for frames a folder"},
    {"label-format", 0, "indexed|grey", "indexed", false, parse_choice,
     offsetof(solve_outputs, label_format),
     "how a PNG or TIFF stores labels: indexed, as indices into the palette; or grey, as grey "
     "values, for programs that replace indices by colours, such as OpenCV"},
    {"overlay", 0, "FILE.png", NULL, false, parse_output, offsetof(solve_outputs, overlay_file),
     "the image with the labels' colours laid over it"},
    {"boundaries", 0, "FILE.png", NULL, false, parse_output,
     offsetof(solve_outputs, boundaries_file), "the image with lines where labels meet"},
    {"confidence-map", 0, "FILE", NULL, false, parse_output,
     offsetof(solve_outputs, confidence_file),
     "the marginal of the chosen label at every pixel: a grey PNG or TIFF, white is sure, a .npy, "
     "or for "
     "a volume a NIfTI file"},
    {"proof", 0, "FILE", NULL, false, parse_output, offsetof(solve_outputs, proof_file),
     "prove as many pixels as possible and write which: a PNG, grey where every optimal labelling "
     "has the label and coloured where two (orange), three (red) or more labels (purple) are left; "
     "or the number of labels left, in a .npy or, for a volume, a NIfTI file; lp only"},
    {"certificate", 0, "FILE", NULL, false, parse_output, offsetof(solve_outputs, certificate_file),
     "the same proof in a form that dcrf verify and others can check; lp only"},
    {"marginals", 0, "FILE", NULL, false, parse_output, offsetof(solve_outputs, marginals_file),
     "the method's last distributions: a .npy of the shape (H, W, labels), or for a volume a "
     "NIfTI file"},
    {"palette", 0, "FILE", NULL, false, parse_input, offsetof(solve_outputs, palette_file),
     "colours of the labels, one per line: #rrggbb or R G B, optionally with a name; or settings "
     "saved by the page; the default suits colour-blind readers"},
    {"trace", 0, "FILE.csv", NULL, false, parse_output, offsetof(solve_outputs, trace_file),
     "time, objective, energies and bound of every candidate, iteration and later stage"},
    {"json", 0, "FILE|-", NULL, false, parse_output, offsetof(solve_outputs, json_file),
     "the result and its settings as JSON; - writes it to the standard output, instead of the "
     "summary"},
    {"report", 0, "FILE.html", NULL, false, parse_output, offsetof(solve_outputs, report_file),
     "a page to look at: pictures to compare, energy against time, settings"},
    {"explain", 0, NULL, NULL, false, parse_switch, offsetof(solve_outputs, explain),
     "also print what the settings mean for this image"},
    {0},
};

const cli_option *const no_part_of_settings[] = {solve_output_table, feedback_option_table, NULL};

/* ---- checks --------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *ending) {
    const size_t length = strlen(text), ending_length = strlen(ending);
    return length >= ending_length && strcmp(text + length - ending_length, ending) == 0;
}

/* File formats, as a set of flags. */
enum { PNG = 1, NPY = 2, NIFTI = 4, TIFF = 8, ANY = 16, FOLDER = 32 };

static int format_of(const char *file) {
    return is_png_name(file)         ? PNG
           : ends_with(file, ".npy") ? NPY
           : nifti_is_name(file)     ? NIFTI
           : is_tiff_name(file)      ? TIFF
           : path_names_folder(file) ? FOLDER
                                     : 0;
}

/* The name's ending must give the format if there is a choice, or if it could be a mistake. */
static bool check_one(const char *file, int formats, cli_problem *problem) {
    if (!file)
        return true;
    if (formats != ANY && !output_is_standard(file) && !(format_of(file) & formats))
        return bad_input(problem, file, "its name has to end in %s%s%s%s",
                         formats & PNG ? ".png" : "", formats & TIFF ? ", .tif" : "",
                         formats == PNG  ? ""
                         : formats & PNG ? ", .npy"
                                         : ".npy",
                         formats & NIFTI ? ", .nii or .nii.gz" : "");
    return format_of(file) == FOLDER || output_check(file, problem);
}

#define OUTPUT_FILES 10

static void list_files(const solve_outputs *outputs, const char *files[OUTPUT_FILES]) {
    const char *const all[OUTPUT_FILES] = {outputs->labels_file,     outputs->overlay_file,
                                           outputs->boundaries_file, outputs->confidence_file,
                                           outputs->proof_file,      outputs->certificate_file,
                                           outputs->marginals_file,  outputs->trace_file,
                                           outputs->json_file,       outputs->report_file};
    memcpy(files, all, sizeof all);
}

bool solve_outputs_check(const solve_outputs *outputs, cli_problem *problem) {
    return check_one(outputs->labels_file, PNG | TIFF | NPY | NIFTI | FOLDER, problem) &&
           check_one(outputs->overlay_file, PNG | FOLDER, problem) &&
           check_one(outputs->boundaries_file, PNG, problem) &&
           check_one(outputs->confidence_file, PNG | TIFF | NPY | NIFTI, problem) &&
           check_one(outputs->proof_file, PNG | NPY | NIFTI, problem) &&
           check_one(outputs->certificate_file, ANY, problem) &&
           check_one(outputs->marginals_file, NPY | NIFTI, problem) &&
           check_one(outputs->trace_file, ANY, problem) &&
           check_one(outputs->json_file, ANY, problem) &&
           check_one(outputs->report_file, ANY, problem);
}

bool solve_outputs_fit(const solve_outputs *outputs, const cli_image *image, cli_problem *problem) {
    const bool is_overlay_folder =
        outputs->overlay_file && path_names_folder(outputs->overlay_file);
    if (is_overlay_folder && !image_is_video(image))
        return image_fits_file(image, outputs->overlay_file, problem);
    return image_fits_file(image, outputs->labels_file, problem) &&
           image_fits_file(image, outputs->confidence_file, problem) &&
           image_fits_file(image, outputs->proof_file, problem) &&
           image_fits_file(image, outputs->marginals_file, problem);
}

_Static_assert(LABELS_INDEXED == 0 && LABELS_GREY == 1, "indexed|grey");

/* A label map with a palette keeps its colours. */
static void take_colours_of_map(const built_model *built, palette *colours) {
    const size_t count = built->unary.palette_count;
    const bool is_mask = built->unary.map_kind != DCRF_MASK_LABELS;
    if (is_mask && count == PALETTE_COLOURS) {
        memcpy(colours->rgb[0], built->unary.palette[0], sizeof colours->rgb[0]);
        memcpy(colours->rgb[1], built->unary.palette[PALETTE_COLOURS - 1], sizeof colours->rgb[1]);
    } else if (!is_mask) {
        memcpy(colours->rgb, built->unary.palette, count * sizeof colours->rgb[0]);
    }
}

bool solve_outputs_colours(const solve_outputs *outputs, built_model *built, palette *colours,
                           cli_problem *problem) {
    class_names names = {0};
    if (!palette_default(colours, problem))
        return false;
    if (!outputs->palette_file)
        take_colours_of_map(built, colours);
    if (outputs->palette_file && !palette_read(outputs->palette_file, colours, &names, problem))
        return problem_of_option(problem, "--palette");
    /* Palettes often name more colours than there are labels. */
    while (names.count > dcrf_model_labels(built->model))
        free(names.lines[--names.count]);
    if (built->classes.count == 0)
        built->classes = names;
    else
        lines_free(&names);
    return true;
}

bool solve_outputs_take_stdout(const solve_outputs *outputs) {
    const char *files[OUTPUT_FILES];
    list_files(outputs, files);
    for (size_t i = 0; i < OUTPUT_FILES; i++)
        if (files[i] && output_is_standard(files[i]))
            return true;
    return false;
}

/* ---- writing -------------------------------------------------------------------------------- */

typedef struct writing {
    const solve_outputs *outputs;
    const solve_results *results;
    bool is_hurried; /* compress pictures fast rather than well */
    cli_outputs files;
    scene shown;
    char *world_file; /* its name */
    cli_problem *problem;
} writing;

/* Integers, in the element order of the format. */
static bool write_label_numbers(const char *file, FILE *stream, const writing *w,
                                const uint16_t *numbers) {
    const cli_image *image = &w->results->built->image;
    if (format_of(file) == NIFTI)
        return nifti_write_labels(stream, file, image->geometry, numbers, w->problem);
    size_t shape[3];
    const size_t axes = image_shape(image, shape);
    npy_write_labels(stream, shape, axes, numbers);
    return true;
}

/* With the image's georeference; where the image has no data, labels are left out. `labels` is 0
 * if this is not a label map. */
static bool write_tiff(const char *file, FILE *stream, const writing *w, const uint16_t *samples,
                       size_t labels, const uint8_t (*colours)[3]) {
    const cli_image *image = &w->results->built->image;
    const double nodata = geo_label_nodata(image->geo, labels);
    const bool has_nodata = labels > 0 && (image->nodata || (image->geo && image->geo->has_nodata));
    const tiff_layout layout = {image->width, image->height, labels > UINT8_MAX + 1,
                                colours,      image->geo,    has_nodata ? &nodata : NULL};
    uint16_t *written = malloc(image_pixels(image) * sizeof *written);
    tiff_writer *writer = NULL;
    if (!written)
        return out_of_memory(w->problem, file);
    for (size_t i = 0; i < image_pixels(image); i++)
        written[i] =
            labels > 0 && image->nodata && image->nodata[i] ? (uint16_t)nodata : samples[i];
    const bool done = tiff_writer_new(&writer, stream, file, &layout, w->problem) &&
                      tiff_writer_rows(writer, written, image->height, w->problem) &&
                      tiff_writer_end(writer, w->problem);
    tiff_writer_free(&writer);
    free(written);
    return done;
}

static png_layout label_layout(const solve_outputs *outputs, const cli_image *image,
                               const palette *colours, bool is_hurried) {
    return (png_layout){.width = image->width,
                        .height = image->height,
                        .channels = 1,
                        .palette = outputs->label_format == LABELS_INDEXED ? colours->rgb : NULL,
                        .is_fast = is_hurried};
}

static bool write_labels(const char *file, FILE *stream, const writing *w) {
    const uint16_t *labels = w->results->found->labels;
    const bool is_indexed = w->outputs->label_format == LABELS_INDEXED;
    if (format_of(file) == TIFF)
        return write_tiff(file, stream, w, labels, dcrf_model_labels(w->results->built->model),
                          is_indexed ? w->results->colours->rgb : NULL);
    if (format_of(file) == NIFTI || format_of(file) == NPY)
        return write_label_numbers(file, stream, w, labels);
    const png_layout layout =
        label_layout(w->outputs, &w->results->built->image, w->results->colours, w->is_hurried);
    return png_write(stream, file, labels, layout, w->problem);
}

/* The georeference of a picture that cannot hold it itself, in a file beside it. */
static bool write_place(writing *w, const char *picture_file) {
    const geo_reference *geo = w->results->built->image.geo;
    FILE *stream;
    if (!picture_file || format_of(picture_file) != PNG || !geo || !geo->has_matrix)
        return true;
    w->world_file = geo_world_name(picture_file);
    if (!w->world_file)
        return out_of_memory(w->problem, picture_file);
    if (!output_begin(&w->files, w->world_file, &stream, w->problem))
        return false;
    geo_write_world(stream, geo);
    return true;
}

/* Write a picture and free it. */
static bool write_picture(const char *file, FILE *stream, const writing *w, uint16_t *picture,
                          size_t channels) {
    const png_layout layout = {.width = w->shown.width,
                               .height = w->shown.height,
                               .channels = channels,
                               .is_fast = w->is_hurried};
    const bool done = picture ? png_write(stream, file, picture, layout, w->problem)
                              : out_of_memory(w->problem, file);
    free(picture);
    return done;
}

static bool write_overlay(const char *file, FILE *stream, const writing *w) {
    return write_picture(file, stream, w,
                         picture_overlay(&w->shown, w->results->found->labels, w->results->colours),
                         IMAGE_CHANNELS);
}

static bool write_boundaries(const char *file, FILE *stream, const writing *w) {
    return write_picture(file, stream, w, picture_boundaries(&w->shown, w->results->found->labels),
                         IMAGE_CHANNELS);
}

/* Floats of one or more channels, in the element order of the format. */
static bool write_floats(const char *file, FILE *stream, const writing *w, const float *floats,
                         size_t channels) {
    const cli_image *image = &w->results->built->image;
    if (format_of(file) == NIFTI)
        return nifti_write_floats(stream, file, image->geometry, floats, channels, w->problem);
    size_t shape[NPY_MAX_AXES];
    size_t axes = image_shape(image, shape);
    if (channels > 1)
        shape[axes++] = channels;
    npy_write_floats(stream, shape, axes, floats);
    return true;
}

/* Write a grey picture and free it. */
static bool write_grey_tiff(const char *file, FILE *stream, const writing *w, uint16_t *grey) {
    const bool done =
        grey ? write_tiff(file, stream, w, grey, 0, NULL) : out_of_memory(w->problem, file);
    free(grey);
    return done;
}

static bool write_confidence(const char *file, FILE *stream, const writing *w) {
    const float *confidence = w->results->found->confidence;
    if (format_of(file) == NPY || format_of(file) == NIFTI)
        return write_floats(file, stream, w, confidence, 1);
    if (format_of(file) == TIFF)
        return write_grey_tiff(file, stream, w, picture_grey(&w->shown, confidence));
    return write_picture(file, stream, w, picture_grey(&w->shown, confidence), 1);
}

static bool write_proof(const char *file, FILE *stream, const writing *w) {
    const uint16_t *left = w->results->found->labels_left;
    if (format_of(file) == NPY || format_of(file) == NIFTI)
        return write_label_numbers(file, stream, w, left);
    return write_picture(file, stream, w, picture_proof(&w->shown, left), IMAGE_CHANNELS);
}

static bool write_certificate(const char *file, FILE *stream, const writing *w) {
    const solution *found = w->results->found;
    (void)file;
    fwrite(found->certificate, 1, found->certificate_size, stream); /* errors are detected at the
                                                                     * commit */
    return true;
}

static bool write_marginals(const char *file, FILE *stream, const writing *w) {
    const solution *found = w->results->found;
    const size_t labels = dcrf_model_labels(w->results->built->model);
    const size_t variables = image_pixels(&w->results->built->image);
    float *packed = calloc(variables, labels * sizeof *packed);
    if (!packed)
        return out_of_memory(w->problem, file);
    /* NIfTI stores one volume after the other, .npy the labels of a pixel next to each other. */
    const bool planar = format_of(file) == NIFTI;
    for (size_t a = 0; a < variables; a++)
        for (size_t i = 0; i < labels; i++)
            packed[planar ? i * variables + a : a * labels + i] =
                found->marginals[a * found->stride + i];
    const bool done = write_floats(file, stream, w, packed, labels);
    free(packed);
    return done;
}

static bool write_trace_file(const char *file, FILE *stream, const writing *w) {
    (void)file;
    write_trace(stream, w->results->found);
    return true;
}

static bool write_json(const char *file, FILE *stream, const writing *w) {
    const solve_results *r = w->results;
    json_t *root = solution_to_json(r->model, r->built, r->found,
                                    settings_to_json(r->record, no_part_of_settings));
    if (r->sweep->count > 0)
        root = json_merge(root, json_pack("{s:o}", "sweep", sweep_to_json(r->sweep)));
    return json_write_and_free(stream, file, root, w->problem);
}

static bool write_report(const char *file, FILE *stream, const writing *w) {
    const solve_results *r = w->results;
    return html_report_write(stream, file, r, w->is_hurried, w->problem);
}

/* Frames go into a folder of their own, one at a time (write_frames). */
static bool write_one(writing *w, const char *file,
                      bool (*write)(const char *file, FILE *stream, const writing *w)) {
    FILE *stream;
    return !file || format_of(file) == FOLDER ||
           (output_begin(&w->files, file, &stream, w->problem) && write(file, stream, w));
}

/* ---- frames --------------------------------------------------------------------------------- */

/* A picture named after a frame, in a folder that is created if missing. */
typedef struct frame_file {
    char *path;
    cli_outputs files;
    FILE *stream;
} frame_file;

static bool frame_begin(frame_file *file, const char *folder, const cli_image *video, size_t frame,
                        cli_problem *problem) {
    /* Replace a link rather than follow it: it may lead to an input frame. */
    *file = (frame_file){.files = {.place = OUTPUT_IN_STORE}};
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return failure(problem, folder, "cannot be made: %s", strerror(errno));
    file->path = path_beside(folder, video->frames.lines[frame], ".png");
    return file->path ? output_begin(&file->files, file->path, &file->stream, problem)
                      : out_of_memory(problem, folder);
}

static bool frame_end(frame_file *file, bool done, cli_problem *problem) {
    done = done && outputs_commit(&file->files, problem);
    outputs_discard(&file->files);
    free(file->path);
    return done;
}

bool solve_outputs_write_frame(const solve_outputs *outputs, const cli_image *video,
                               const palette *colours, size_t frame, const uint16_t *labels,
                               cli_problem *problem) {
    frame_file file;
    bool done = frame_begin(&file, outputs->labels_file, video, frame, problem);
    done = done && png_write(file.stream, file.path, labels,
                             label_layout(outputs, video, colours, false), problem);
    return frame_end(&file, done, problem);
}

static bool write_overlay_frame(writing *w, const cli_image *video, size_t frame) {
    frame_file file;
    scene_move(&w->shown, video, frame);
    const bool done = frame_begin(&file, w->outputs->overlay_file, video, frame, w->problem) &&
                      write_overlay(file.path, file.stream, w);
    return frame_end(&file, done, w->problem);
}

static bool write_frames(writing *w) {
    const cli_image *video = &w->results->built->image;
    const solve_outputs *o = w->outputs;
    const bool in_folder = o->labels_file && format_of(o->labels_file) == FOLDER;
    const bool overlays = o->overlay_file && format_of(o->overlay_file) == FOLDER;
    bool done = true;
    for (size_t i = 0; (in_folder || overlays) && done && i < video->depth; i++)
        done = (!in_folder || solve_outputs_write_frame(o, video, w->results->colours, i,
                                                        w->results->found->labels +
                                                            i * video->width * video->height,
                                                        w->problem)) &&
               (!overlays || write_overlay_frame(w, video, i));
    return done;
}

/* Printed before the files are put in place: if printing fails, no files are left behind. */
static bool print_summary(const writing *w) {
    const solve_results *r = w->results;
    if (!r->is_summary_wanted)
        return true;
    print_solution(stdout, r->built, r->found);
    if (w->outputs->explain)
        printf("\n%s", r->explanation);
    return output_flush_standard(w->problem);
}

/* Print the summary and put all files in place. */
static bool finish(writing *w) {
    return write_one(w, w->outputs->json_file, write_json) &&
           outputs_finish(&w->files, w->problem) && print_summary(w) &&
           outputs_commit(&w->files, w->problem);
}

/* Time to compress all pictures of a run. */
#define COMPRESSION_S_PER_PIXEL 1e-6

/* Will the time run out before pictures can be compressed well? */
static bool is_hurried(const built_model *built) {
    const double needed_s = COMPRESSION_S_PER_PIXEL * (double)image_pixels(&built->image);
    return interrupt_came() || (built->time.limit_s > 0 && time_left_s(&built->time) < needed_s);
}

/* Does any picture show the image, so that it must be scaled for display? */
static bool shows_image(const solve_outputs *outputs) {
    return outputs->overlay_file || outputs->boundaries_file || outputs->confidence_file ||
           outputs->proof_file ||
           (outputs->labels_file && format_of(outputs->labels_file) == FOLDER);
}

bool solve_outputs_need_image(const solve_outputs *outputs) {
    return shows_image(outputs) || outputs->report_file || outputs->explain;
}

bool solve_outputs_write(const solve_outputs *outputs, const solve_results *results,
                         cli_problem *problem) {
    writing w = {.outputs = outputs,
                 .results = results,
                 .is_hurried = is_hurried(results->built),
                 .problem = problem};
    if (shows_image(outputs) && !scene_new(&w.shown, &results->built->image, 1))
        return out_of_memory(problem, "pictures");
    bool done = write_one(&w, outputs->labels_file, write_labels) &&
                write_place(&w, outputs->labels_file) &&
                write_one(&w, outputs->overlay_file, write_overlay) &&
                write_one(&w, outputs->boundaries_file, write_boundaries) &&
                write_one(&w, outputs->confidence_file, write_confidence) &&
                write_one(&w, outputs->proof_file, write_proof) &&
                (!results->found->certificate ||
                 write_one(&w, outputs->certificate_file, write_certificate)) &&
                write_one(&w, outputs->marginals_file, write_marginals) &&
                write_one(&w, outputs->trace_file, write_trace_file) &&
                write_one(&w, outputs->report_file, write_report);
    done = done && write_frames(&w) && finish(&w);
    outputs_discard(&w.files);
    scene_free(&w.shown);
    free(w.world_file);
    return done;
}

bool solve_outputs_finish(const solve_outputs *outputs, const solve_results *results,
                          cli_outputs *files, cli_problem *problem) {
    writing w = {.outputs = outputs, .results = results, .files = *files, .problem = problem};
    const bool done = finish(&w);
    *files = w.files;
    return done;
}
