#include "large/large.h"

#include "io/frames.h"
#include "io/video.h"
#include "large/run.h"
#include "large/sample.h"
#include "ranks/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const cli_option large_option_table[] = {
    {"memory", 0, "BYTES", NULL, false, parse_bytes, offsetof(large_options, memory_bytes),
     "approximate memory limit, such as 4G; an image that needs more is solved in overlapping "
     "tiles, and read and written piece by piece; with MPI, the limit of one rank"},
    {"tile", 0, "PIXELS", NULL, false, parse_positive_count, offsetof(large_options, tile_px),
     "solve in tiles whose windows have this side, including the overlap, regardless of --memory"},
    {0},
};

/* The program, its threads, and read-ahead. */
#define FIXED_BYTES (64.0 * 1024 * 1024)
/* The number of labels assumed before a map has been inspected. */
#define ASSUMED_LABELS 32

/* ---- does the whole fit? -------------------------------------------------------------------- */

static bool fits(const large_task *task, const cli_image *image, size_t labels, size_t channels,
                 double vertices) {
    return FIXED_BYTES + bytes_of_whole((dcrf_method)task->solver->method,
                                        (double)image_pixels(image), labels, channels, vertices) <=
           (double)task->limits->memory_bytes;
}

/* The number of labels, before the files are read. */
static size_t labels_by_headers(const large_task *task, const cli_image *image) {
    const unary_options *unary = &task->model->unary;
    array_place place;
    cli_problem ignored;
    if (unary->array_file &&
        pixel_array_place(unary->array_file, image, (array_layout)unary->layout,
                          ARRAY_MAY_BE_SMALLER, &place, &ignored))
        return place.channels;
    return unary->label_count > 0 ? unary->label_count : ASSUMED_LABELS;
}

static bool fits_by_headers(const large_task *task, double vertices) {
    cli_image image;
    cli_problem ignored;
    if (!(path_is_folder(task->image_file) ? video_measure(task->image_file, &image, &ignored)
                                           : image_measure(task->image_file, &image)))
        return false;
    const bool is_small =
        fits(task, &image, labels_by_headers(task, &image), IMAGE_CHANNELS, vertices);
    image_free(&image);
    return is_small;
}

/* ---- the tiling ----------------------------------------------------------------------------- */

static double bytes_of_tiles(const large_run *run, const dcrf_tiling *tiling) {
    const cli_image *image = &run->inputs.image;
    const double per_pixel = dcrf_bytes_per_variable(
        (dcrf_method)run->task->solver->method, run->inputs.labels, image->channels, run->vertices);
    /* Volumes are read whole, except for videos. */
    const double kept = image_is_volume(image) && !image_is_video(image)
                            ? (double)image_pixels(image) *
                                  (double)(sizeof(float) * (image->channels + run->inputs.labels))
                            : 0;
    return FIXED_BYTES + kept + per_pixel * (double)dcrf_tiling_largest(tiling) +
           large_outputs_bytes(run->task->outputs, tiling, image, run->inputs.labels);
}

static bool make_tiling(const large_run *run, size_t side, size_t slices, dcrf_tiling *tiling,
                        dcrf_error *error) {
    const dcrf_grid grid = image_grid(&run->inputs.image);
    const size_t window[DCRF_MAX_AXES] = {side, side, slices};
    size_t overlap[DCRF_MAX_AXES];
    dcrf_tiling_overlap(&grid, run->built.kernels, run->built.kernel_count,
                        DCRF_TILE_OVERLAP_SIGMAS, overlap);
    return dcrf_tiling_make(tiling, &grid, window, overlap, error) >= 0;
}

/* Try windows of these sides, and return whether they fit into memory; `is_cut` is false if the
 * image cannot be cut like this. */
static bool try_tiling(large_run *run, size_t side, size_t slices, bool *is_cut, double *needed) {
    dcrf_tiling tried;
    dcrf_error error;
    *is_cut = make_tiling(run, side, slices, &tried, &error);
    if (!*is_cut)
        return false;
    run->tiling = tried;
    *needed = bytes_of_tiles(run, &tried);
    return *needed <= (double)run->task->limits->memory_bytes;
}

/* A video is cut along time first, so that frames stay whole, as long as less than half of a
 * window is overlap; then frames are cut, and finally time again. */
static bool choose_video_tiling(large_run *run, double *needed) {
    const cli_image *video = &run->inputs.image;
    const size_t whole = video->width > video->height ? video->width : video->height;
    bool is_cut = true;
    size_t overlap[DCRF_MAX_AXES];
    const dcrf_grid grid = image_grid(video);
    dcrf_tiling_overlap(&grid, run->built.kernels, run->built.kernel_count,
                        DCRF_TILE_OVERLAP_SIGMAS, overlap);
    for (size_t slices = video->depth; slices > 4 * overlap[2]; slices--)
        if (try_tiling(run, whole, slices, &is_cut, needed))
            return true;
    for (size_t slices = 4 * overlap[2] + 1; slices > 2 * overlap[2]; slices--) {
        is_cut = true;
        for (size_t side = whole; is_cut; side -= side / 32 + 1)
            if (try_tiling(run, side, slices, &is_cut, needed))
                return true;
    }
    return false;
}

/* The largest windows that fit into memory. */
static bool choose_tiling(large_run *run, cli_problem *problem) {
    const large_options *limits = run->task->limits;
    const cli_image *image = &run->inputs.image;
    size_t side = image->width > image->height ? image->width : image->height;
    dcrf_error error;
    double needed = NAN;
    bool is_cut = true;
    if (image->depth > side)
        side = image->depth;
    if (limits->tile_px > 0)
        return make_tiling(run, limits->tile_px, limits->tile_px, &run->tiling, &error) ||
               library_problem(problem, "--tile", &error);
    if (image_is_video(image) && choose_video_tiling(run, &needed))
        return true;
    for (; is_cut && !image_is_video(image); side -= side / 32 + 1)
        if (try_tiling(run, side, side, &is_cut, &needed))
            return true;
    return bad_input(problem, "--memory",
                     "tiles as wide as the kernels need them take about %.0f MiB; give that much, "
                     "or smaller sigmas",
                     ceil(needed / 1048576));
}

/* ---- the run -------------------------------------------------------------------------------- */

static bool begin_solution(large_run *run, cli_problem *problem) {
    const large_options *limits = run->task->limits;
    solution *found = &run->found;
    tiles_facts *tiles = &found->tiles;
    const dcrf_tile first = dcrf_tiling_tile(&run->tiling, 0);
    found->pixels = image_pixels(&run->inputs.image);
    found->label_count = run->inputs.labels;
    found->before = calloc(found->label_count, sizeof *found->before);
    found->after = calloc(found->label_count, sizeof *found->after);
    *tiles = (tiles_facts){.count = dcrf_tiling_count(&run->tiling),
                           .memory_bytes = limits->memory_bytes,
                           .estimated_bytes = bytes_of_tiles(run, &run->tiling),
                           .vertices = run->vertices};
    memcpy(tiles->along, run->tiling.count, sizeof tiles->along);
    memcpy(tiles->overlap, run->tiling.overlap, sizeof tiles->overlap);
    memcpy(tiles->window, first.size, sizeof tiles->window);
    return (found->before && found->after) || out_of_memory(problem, "solution");
}

static bool write_results(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    const strength_sweep no_sweep = {0};
    const bool summary = task->talk != FEEDBACK_QUIET && !solve_outputs_take_stdout(task->outputs);
    const solve_results results = {task->model, &run->built, &run->found,   task->record,
                                   NULL,        &no_sweep,   &run->colours, summary};
    return solve_outputs_finish(task->outputs, &results, &run->files, problem);
}

/* What only rank 0 does before the tiles: choose the tiling, which the others receive, and begin
 * the outputs. */
static bool prepare(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    return large_inputs_check(task->model, problem) &&
           large_outputs_check(task->outputs, problem) &&
           solve_outputs_fit(task->outputs, &run->inputs.image, problem) &&
           solve_outputs_colours(task->outputs, &run->built, &run->colours, problem) &&
           choose_tiling(run, problem) &&
           large_outputs_new(&run->outputs, task->outputs, &run->tiling, &run->inputs.image,
                             run->inputs.labels, &run->colours, &run->inputs.colours, &run->files,
                             problem);
}

/* Together. */
static bool solve_tiles(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    if (!ranks_agree(ranks_mine() != 0 || prepare(run, problem), problem))
        return false;
    ranks_broadcast(&run->tiling, sizeof run->tiling);
    return ranks_agree(begin_solution(run, problem), problem) &&
           (ranks_count() == 1 || tile_exchange_new(&run->exchange, task->outputs, &run->tiling,
                                                    run->inputs.labels, problem)) &&
           large_run_tiles(run, problem);
}

/* ---- the decision --------------------------------------------------------------------------- */

static bool check_solver(const solver_options *options, cli_problem *problem) {
    return !options->start_file ||
           bad_input(problem, "--start",
                     "is read as a whole, and the image is solved in tiles; give --memory more, or "
                     "leave it out");
}

static void forget(large_run *run) {
    run->built.image = (cli_image){0}; /* still owned by the inputs */
    model_free(&run->built);
    large_inputs_close(&run->inputs);
}

/* Open the inputs and sample them; on failure everything is freed. */
static bool open_and_sample(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    if (!large_inputs_open(task->model, task->image_file, task->outputs->labels_file, &run->inputs,
                           problem))
        return false;
    if (!large_sample_take(&run->inputs, task->time, &run->built, problem)) {
        large_inputs_close(&run->inputs);
        return false;
    }
    if (large_sample_vertices(&run->inputs, &run->built, &run->vertices, problem))
        return true;
    forget(run);
    return false;
}

/* Solve in tiles if the whole does not fit. Together. */
static bool open_and_solve(large_run *run, bool *was_solved, cli_problem *problem) {
    const large_task *task = run->task;
    const bool is_open = open_and_sample(run, problem);
    bool done = ranks_agree(is_open, problem);
    const cli_image *image = &run->inputs.image;
    *was_solved = task->limits->tile_px > 0 ||
                  (done && !fits(task, image, run->inputs.labels, image->channels, run->vertices));
    ranks_broadcast(was_solved, sizeof *was_solved);
    if (done && *was_solved) {
        done = solve_tiles(run, problem);
        tile_exchange_free(&run->exchange);
        large_outputs_free(&run->outputs);
        done = done && (ranks_mine() != 0 || write_results(run, problem));
    }
    outputs_discard(&run->files);
    free(run->found.before);
    free(run->found.after);
    if (is_open)
        forget(run);
    return done;
}

/* Could the whole be too large? What tiles cannot handle is solved as a whole if that is likely
 * to fit. */
static bool decide(const large_task *task, bool *may_be_tiled, cli_problem *problem) {
    const large_options *limits = task->limits;
    const size_t features = 2 + IMAGE_CHANNELS;
    cli_problem reason;
    *may_be_tiled = false;
    if (limits->tile_px == 0 &&
        (limits->memory_bytes == 0 || fits_by_headers(task, MOST_VERTICES(features))))
        return true;
    if (path_is_folder(task->image_file) && ranks_count() > 1)
        return bad_input(problem, limits->tile_px > 0 ? "--tile" : "--memory",
                         "the tiles of a folder of frames are solved by one process");
    if (!model_check_kernels(task->model, problem) ||
        !unary_check_options(&task->model->unary, problem))
        return false;
    *may_be_tiled = large_inputs_check(task->model, &reason) &&
                    large_outputs_check(task->outputs, &reason) &&
                    check_solver(task->solver, &reason);
    if (*may_be_tiled || (limits->tile_px == 0 && fits_by_headers(task, USUAL_VERTICES)))
        return true;
    *problem = reason;
    return false;
}

bool large_solve(const large_task *task, bool *was_solved, cli_problem *problem) {
    bool may_be_tiled = false;
    *was_solved = false;
    if (!ranks_agree(ranks_mine() != 0 || decide(task, &may_be_tiled, problem), problem))
        return false;
    ranks_broadcast(&may_be_tiled, sizeof may_be_tiled);
    if (!may_be_tiled)
        return true;
    large_run *run = calloc(1, sizeof *run);
    if (run)
        *run = (large_run){.task = task, .problem = problem};
    const bool done = ranks_agree(run || out_of_memory(problem, "tiles"), problem) &&
                      open_and_solve(run, was_solved, problem);
    free(run);
    return done;
}
