#include "solve_outputs.h"

#include "html_report.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/output.h"
#include "io/png_format.h"
#include "pictures.h"
#include "solution_text.h"

#include <stdlib.h>
#include <string.h>

const cli_option solve_output_table[] = {
    {"output", 'o', "FILE", NULL, false, parse_text, offsetof(solve_outputs, labels_file),
     "the labelling: an indexed PNG whose indices are the labels, or a .npy of integers"},
    {"overlay", 0, "FILE.png", NULL, false, parse_text, offsetof(solve_outputs, overlay_file),
     "the image with the labels' colours laid over it"},
    {"boundaries", 0, "FILE.png", NULL, false, parse_text, offsetof(solve_outputs, boundaries_file),
     "the image with lines where labels meet"},
    {"confidence-map", 0, "FILE", NULL, false, parse_text, offsetof(solve_outputs, confidence_file),
     "the marginal of the chosen label at every pixel: a grey PNG, white is sure, or a .npy"},
    {"marginals", 0, "FILE.npy", NULL, false, parse_text, offsetof(solve_outputs, marginals_file),
     "the method's last distributions, of the shape (H, W, labels)"},
    {"palette", 0, "FILE", NULL, false, parse_text, offsetof(solve_outputs, palette_file),
     "colours of the labels, one a line: #rrggbb or R G B; the default suits colour-blind eyes"},
    {"trace", 0, "FILE.csv", NULL, false, parse_text, offsetof(solve_outputs, trace_file),
     "time, objective, energies and bound of every iteration"},
    {"json", 0, "FILE|-", NULL, false, parse_text, offsetof(solve_outputs, json_file),
     "the result and its settings as JSON; - writes it to the standard output, instead of the "
     "summary"},
    {"report", 0, "FILE.html", NULL, false, parse_text, offsetof(solve_outputs, report_file),
     "a page to look at: pictures to compare, energy against time, settings"},
    {"explain", 0, NULL, NULL, false, parse_switch, offsetof(solve_outputs, explain),
     "say also what the settings mean for this image"},
    {0},
};

const cli_option *const no_part_of_settings[] = {solve_output_table, feedback_option_table, NULL};

/* ---- checks --------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *ending) {
    const size_t length = strlen(text), ending_length = strlen(ending);
    return length >= ending_length && strcmp(text + length - ending_length, ending) == 0;
}

/* A file is named by its format where there is a choice, or could be a mistake. */
static bool check_one(const char *file, const char *first, const char *second,
                      cli_problem *problem) {
    if (!file)
        return true;
    if (first && !output_is_standard(file) && !ends_with(file, first) &&
        !(second && ends_with(file, second)))
        return bad_input(problem, file, "its name has to end in %s%s%s", first,
                         second ? " or " : "", second ? second : "");
    return output_check(file, problem);
}

bool solve_outputs_check(const solve_outputs *outputs, cli_problem *problem) {
    return check_one(outputs->labels_file, ".png", ".npy", problem) &&
           check_one(outputs->overlay_file, ".png", NULL, problem) &&
           check_one(outputs->boundaries_file, ".png", NULL, problem) &&
           check_one(outputs->confidence_file, ".png", ".npy", problem) &&
           check_one(outputs->marginals_file, ".npy", NULL, problem) &&
           check_one(outputs->trace_file, NULL, NULL, problem) &&
           check_one(outputs->json_file, NULL, NULL, problem) &&
           check_one(outputs->report_file, NULL, NULL, problem);
}

bool solve_outputs_take_stdout(const solve_outputs *outputs) {
    const char *files[] = {outputs->labels_file,     outputs->overlay_file,
                           outputs->boundaries_file, outputs->confidence_file,
                           outputs->marginals_file,  outputs->trace_file,
                           outputs->json_file,       outputs->report_file};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] && output_is_standard(files[i]))
            return true;
    return false;
}

/* ---- writing -------------------------------------------------------------------------------- */

typedef struct writing {
    const solve_outputs *outputs;
    const solve_results *results;
    cli_outputs files;
    palette colours;
    cli_problem *problem;
} writing;

static bool write_labels(const char *file, FILE *stream, const writing *w) {
    const cli_image *image = &w->results->built->image;
    const uint16_t *labels = w->results->found->labels;
    if (!ends_with(file, ".npy"))
        return png_write_labels(stream, file, labels, image->width, image->height, w->colours.rgb,
                                w->problem);
    npy_write_labels(stream, (const size_t[]){image->height, image->width}, 2, labels);
    return true;
}

/* Write a picture and free it. */
static bool write_picture(const char *file, FILE *stream, const writing *w, uint16_t *picture,
                          size_t channels) {
    const cli_image *image = &w->results->built->image;
    const bool done = picture ? png_write_samples(stream, file, picture, image->width,
                                                  image->height, channels, w->problem)
                              : out_of_memory(w->problem, file);
    free(picture);
    return done;
}

static bool write_overlay(const char *file, FILE *stream, const writing *w) {
    const solve_results *r = w->results;
    return write_picture(file, stream, w,
                         picture_overlay(&r->built->image, r->found->labels, &w->colours),
                         IMAGE_CHANNELS);
}

static bool write_boundaries(const char *file, FILE *stream, const writing *w) {
    const solve_results *r = w->results;
    return write_picture(file, stream, w, picture_boundaries(&r->built->image, r->found->labels),
                         IMAGE_CHANNELS);
}

static bool write_confidence(const char *file, FILE *stream, const writing *w) {
    const cli_image *image = &w->results->built->image;
    const size_t variables = image->width * image->height;
    if (!ends_with(file, ".npy"))
        return write_picture(file, stream, w, picture_confidence(w->results->found, variables), 1);
    float *confidence = confidence_of(w->results->found, variables);
    if (!confidence)
        return out_of_memory(w->problem, file);
    npy_write_floats(stream, (const size_t[]){image->height, image->width}, 2, confidence);
    free(confidence);
    return true;
}

static bool write_marginals(const char *file, FILE *stream, const writing *w) {
    const cli_image *image = &w->results->built->image;
    const solution *found = w->results->found;
    const size_t labels = dcrf_model_labels(w->results->built->model);
    const size_t variables = image->width * image->height;
    float *packed = calloc(variables, labels * sizeof *packed);
    if (!packed)
        return out_of_memory(w->problem, file);
    for (size_t a = 0; a < variables; a++)
        memcpy(packed + a * labels, found->marginals + a * found->stride, labels * sizeof *packed);
    npy_write_floats(stream, (const size_t[]){image->height, image->width, labels}, 3, packed);
    free(packed);
    return true;
}

static bool write_trace_file(const char *file, FILE *stream, const writing *w) {
    (void)file;
    write_trace(stream, w->results->found);
    return true;
}

static bool write_json(const char *file, FILE *stream, const writing *w) {
    const solve_results *r = w->results;
    return json_write_and_free(stream, file,
                               solution_to_json(r->model, r->built, r->found,
                                                settings_to_json(r->record, no_part_of_settings)),
                               w->problem);
}

static bool write_report(const char *file, FILE *stream, const writing *w) {
    const solve_results *r = w->results;
    return html_report_write(stream, file, r, &w->colours, w->problem);
}

static bool write_one(writing *w, const char *file,
                      bool (*write)(const char *file, FILE *stream, const writing *w)) {
    FILE *stream;
    return !file || (output_begin(&w->files, file, &stream, w->problem) && write(file, stream, w));
}

bool solve_outputs_write(const solve_outputs *outputs, const solve_results *results,
                         cli_problem *problem) {
    writing w = {.outputs = outputs, .results = results, .problem = problem};
    if (!outputs->palette_file)
        palette_default(&w.colours);
    else if (!palette_read(outputs->palette_file, &w.colours, problem))
        return false;
    const bool done = write_one(&w, outputs->labels_file, write_labels) &&
                      write_one(&w, outputs->overlay_file, write_overlay) &&
                      write_one(&w, outputs->boundaries_file, write_boundaries) &&
                      write_one(&w, outputs->confidence_file, write_confidence) &&
                      write_one(&w, outputs->marginals_file, write_marginals) &&
                      write_one(&w, outputs->trace_file, write_trace_file) &&
                      write_one(&w, outputs->report_file, write_report) &&
                      write_one(&w, outputs->json_file, write_json) &&
                      outputs_commit(&w.files, problem);
    outputs_discard(&w.files);
    return done;
}
