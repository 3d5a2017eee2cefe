/* Quality and speed of masks from scribbles.
 *
 *   dcrf-scribbles [NAME=VALUE ...] IMAGE TRUTH STROKES...      strokes by people
 *   dcrf-scribbles [NAME=VALUE ...] --draw IMAGE TRUTH          strokes drawn from the truth
 *
 * One line per map of strokes: the intersection over union of the mask (of label 1 if there are two
 * labels, else the mean over labels; pixels whose truth is 255 are ignored), the CPU seconds of all
 * threads for the part that depends only on the image and for the update, and the wall times of
 * both. NAME is a field of dcrf_scribbles_settings, or `threads` (default 2).
 *
 * Drawn strokes are straight lines inside regions. "few": one in the largest region of each label,
 * three if the region covers a fifth of the image. "many": two more than that, up to twice as long,
 * in up to three regions of each label. Labels that cover less than 1 % of the image count as
 * void. */
#include "draw_strokes.h"
#include "measure.h"

#include "io/image.h"
#include "io/label_map.h"

#include <dcrf/dcrf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VOID_LABEL 255

struct task {
    cli_image image;
    dcrf_grid grid;
    size_t pixels, labels;
    int32_t *truth;
    dcrf_scribbles_settings settings;
    dcrf_workspace *workspace;
    dcrf_scribbles *scribbles;
    double new_processor_s, new_wall_s;
};

static void stop(const char *message) {
    fprintf(stderr, "dcrf-scribbles: %s\n", message);
    exit(1);
}

/* ---- settings ------------------------------------------------------------------------------- */

static int set_number(dcrf_scribbles_settings *s, const char *name, double value) {
    const struct {
        const char *name;
        double *number;
        size_t *count;
    } fields[] = {{"components", NULL, &s->components},
                  {"refits", NULL, &s->refits},
                  {"iterations", NULL, &s->iterations},
                  {"colour_weight", &s->colour_weight, NULL},
                  {"colour_limit", &s->colour_limit, NULL},
                  {"distance_weight", &s->distance_weight, NULL},
                  {"step_length", &s->step_length, NULL},
                  {"spatial_sigma", &s->spatial_sigma, NULL},
                  {"spatial_weight", &s->spatial_weight, NULL},
                  {"bilateral_sigma", &s->bilateral_sigma, NULL},
                  {"bilateral_channel_sigma", &s->bilateral_channel_sigma, NULL},
                  {"bilateral_weight", &s->bilateral_weight, NULL}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(name, fields[i].name) == 0) {
            if (fields[i].number)
                *fields[i].number = value;
            else
                *fields[i].count = (size_t)value;
            return 1;
        }
    return 0;
}

/* ---- one image ------------------------------------------------------------------------------ */

static void read_image(struct task *task, const char *image_file, const char *truth_file) {
    cli_problem problem;
    memset(&problem, 0, sizeof problem);
    if (!image_read(image_file, &task->image, &problem) ||
        !label_map_read(truth_file, &task->image, &task->truth, &problem))
        stop(problem.text);
    task->pixels = image_pixels(&task->image);
    task->grid = dcrf_grid_3d(task->image.width, task->image.height, task->image.depth);
    if (task->image.depth == 1)
        task->grid.axes = 2;
    memcpy(task->grid.spacing, task->image.spacing_mm, sizeof task->grid.spacing);
}

static void make_object(struct task *task, size_t labels) {
    const dcrf_view view =
        dcrf_view_interleaved(task->image.colours, DCRF_F32, &task->grid, task->image.channels);
    dcrf_error error;
    const double processor_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    const double wall_s = clock_s(CLOCK_MONOTONIC);
    task->labels = labels;
    must(dcrf_scribbles_new(&task->scribbles, &task->grid, &view, labels, &task->settings,
                            task->workspace, &error),
         &error);
    task->new_processor_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - processor_s;
    task->new_wall_s = clock_s(CLOCK_MONOTONIC) - wall_s;
}

static double score(const struct task *task, const uint16_t *mask) {
    double sum = 0;
    size_t present = 0;
    for (int32_t label = task->labels == 2 ? 1 : 0; (size_t)label < task->labels; label++) {
        size_t both = 0, either = 0;
        for (size_t a = 0; a < task->pixels; a++)
            if (task->truth[a] != VOID_LABEL) {
                both += task->truth[a] == label && mask[a] == label;
                either += task->truth[a] == label || mask[a] == label;
            }
        if (either > 0) {
            sum += (double)both / (double)either;
            present++;
        }
    }
    return sum / (double)present;
}

static void run(struct task *task, const int32_t *strokes) {
    const dcrf_view view = dcrf_view_interleaved(strokes, DCRF_I32, &task->grid, 1);
    uint16_t *mask = malloc(task->pixels * sizeof *mask);
    dcrf_error error;
    if (!mask)
        stop("out of memory");
    must(dcrf_scribbles_set_strokes(task->scribbles, &view, &error), &error);
    const double processor_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    const double wall_s = clock_s(CLOCK_MONOTONIC);
    must(dcrf_scribbles_update(task->scribbles, &error), &error);
    const double update_processor_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - processor_s;
    const double update_wall_s = clock_s(CLOCK_MONOTONIC) - wall_s;
    must(dcrf_scribbles_labels(task->scribbles, mask, task->pixels, &error), &error);
    printf("%.4f %.4f %.4f %.4f %.4f\n", score(task, mask), task->new_processor_s,
           update_processor_s, task->new_wall_s, update_wall_s);
    free(mask);
}

/* ---- strokes -------------------------------------------------------------------------------- */

static void run_files(struct task *task, char **files, int count) {
    cli_problem problem;
    memset(&problem, 0, sizeof problem);
    for (int i = 0; i < count; i++) {
        int32_t *strokes, largest = 1;
        if (!label_map_read(files[i], &task->image, &strokes, &problem))
            stop(problem.text);
        for (size_t a = 0; a < task->pixels; a++)
            if (strokes[a] != VOID_LABEL && strokes[a] > largest)
                largest = strokes[a];
        if (!task->scribbles)
            make_object(task, (size_t)largest + 1);
        run(task, strokes);
        free(strokes);
    }
}

static void run_drawn(struct task *task) {
    int32_t *strokes = malloc(task->pixels * sizeof *strokes);
    const size_t labels =
        number_labels(task->truth, task->image.width, task->image.height, VOID_LABEL);
    if (!strokes)
        stop("out of memory");
    if (labels < 2)
        stop("the truth has fewer than two labels of 1 % of the image");
    make_object(task, labels);
    for (int many = 0; many < 2; many++) {
        if (!draw_strokes(task->truth, task->image.width, task->image.height, labels, many,
                          strokes))
            stop("out of memory");
        run(task, strokes);
    }
    free(strokes);
}

int main(int count, char **arguments) {
    struct task task = {.scribbles = NULL};
    size_t threads = 2;
    int at = 1;
    dcrf_error error;
    dcrf_scribbles_settings_defaults(&task.settings);
    for (; at < count && strchr(arguments[at], '='); at++) {
        char *equals = strchr(arguments[at], '=');
        *equals = '\0';
        if (strcmp(arguments[at], "threads") == 0)
            threads = (size_t)atoi(equals + 1);
        else if (!set_number(&task.settings, arguments[at], atof(equals + 1)))
            stop("there is no such setting");
    }
    const int is_drawn = at < count && strcmp(arguments[at], "--draw") == 0;
    at += is_drawn;
    if (count - at < (is_drawn ? 2 : 3))
        stop("give IMAGE TRUTH STROKES..., or --draw IMAGE TRUTH");
    must(dcrf_workspace_new(&task.workspace, threads, &error), &error);
    read_image(&task, arguments[at], arguments[at + 1]);
    if (is_drawn)
        run_drawn(&task);
    else
        run_files(&task, arguments + at + 2, count - at - 2);
    dcrf_scribbles_free(&task.scribbles);
    dcrf_workspace_free(&task.workspace);
    image_free(&task.image);
    free(task.truth);
    return 0;
}
