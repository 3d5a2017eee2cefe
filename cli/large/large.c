#include "large/large.h"

#include "clock.h"
#include "large/inputs.h"
#include "large/outputs.h"
#include "large/sample.h"
#include "solution_text.h"

#include <dcrf/tiles.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const cli_option large_option_table[] = {
    {"memory", 0, "BYTES", NULL, false, parse_bytes, offsetof(large_options, memory_bytes),
     "about how much memory may be used, such as 4G; an image that needs more is solved in tiles "
     "that overlap, read and written piece by piece"},
    {"tile", 0, "PIXELS", NULL, false, parse_positive_count, offsetof(large_options, tile_px),
     "solve in tiles, the windows of which have this side, overlap included, whatever the memory"},
    {0},
};

/* The program, its threads, and what is read ahead. */
#define FIXED_BYTES (64.0 * 1024 * 1024)
/* The most that a lattice of positions and colours can have, a vertex for every corner of every
 * pixel's simplex; and what photographs with grain have. */
#define MOST_VERTICES(features) ((double)(features) + 1)
#define USUAL_VERTICES 2.0
/* What the command holds of a whole image besides the library: colours, labels, marginals of the
 * labels chosen. */
#define COMMAND_BYTES_PER_PIXEL 40.0
/* Labels that are assumed where a map has not been looked at yet. */
#define ASSUMED_LABELS 32

/* ---- does the whole fit? -------------------------------------------------------------------- */

static double bytes_of_whole(const large_task *task, double pixels, size_t labels, size_t channels,
                             double vertices) {
    return FIXED_BYTES + pixels * (COMMAND_BYTES_PER_PIXEL +
                                   dcrf_bytes_per_variable((dcrf_method)task->solver->method,
                                                           labels, channels, vertices));
}

/* The labels of the problem, before its files are read. */
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
    if (!image_measure(task->image_file, &image))
        return false;
    return bytes_of_whole(task, (double)image_pixels(&image), labels_by_headers(task, &image),
                          IMAGE_CHANNELS, vertices) <= (double)task->limits->memory_bytes;
}

/* ---- the tiling ----------------------------------------------------------------------------- */

typedef struct large_run {
    const large_task *task;
    large_inputs inputs;
    built_model built;
    palette colours;
    double vertices;
    dcrf_tiling tiling;
    large_outputs *outputs;
    cli_outputs files;
    progress watch;
    solution found;
    bool has_problem; /* a callback failed, and `problem` says why */
    cli_problem *problem;
} large_run;

static double bytes_of_tiles(const large_run *run, const dcrf_tiling *tiling) {
    const cli_image *image = &run->inputs.image;
    const double per_pixel = dcrf_bytes_per_variable(
        (dcrf_method)run->task->solver->method, run->inputs.labels, image->channels, run->vertices);
    /* Volumes are read whole. */
    const double kept = image_is_volume(image)
                            ? (double)image_pixels(image) *
                                  (double)(sizeof(float) * (image->channels + run->inputs.labels))
                            : 0;
    return FIXED_BYTES + kept + per_pixel * (double)dcrf_tiling_largest(tiling) +
           large_outputs_bytes(run->task->outputs, tiling, image_is_volume(image),
                               run->inputs.labels);
}

static bool make_tiling(const large_run *run, size_t side, dcrf_tiling *tiling, dcrf_error *error) {
    const dcrf_grid grid = image_grid(&run->inputs.image);
    const size_t window[DCRF_MAX_AXES] = {side, side, side};
    size_t overlap[DCRF_MAX_AXES];
    dcrf_tiling_overlap(&grid, run->built.kernels, run->built.kernel_count,
                        DCRF_TILE_OVERLAP_SIGMAS, overlap);
    return dcrf_tiling_make(tiling, &grid, window, overlap, error) >= 0;
}

/* The largest windows that the memory has room for. */
static bool choose_tiling(large_run *run, cli_problem *problem) {
    const large_options *limits = run->task->limits;
    const cli_image *image = &run->inputs.image;
    size_t side = image->width > image->height ? image->width : image->height;
    dcrf_tiling tried;
    dcrf_error error;
    double needed = NAN;
    if (image->depth > side)
        side = image->depth;
    if (limits->tile_px > 0)
        return make_tiling(run, limits->tile_px, &run->tiling, &error) ||
               library_problem(problem, "--tile", &error);
    for (; make_tiling(run, side, &tried, &error); side -= side / 32 + 1) {
        run->tiling = tried;
        needed = bytes_of_tiles(run, &tried);
        if (needed <= (double)limits->memory_bytes)
            return true;
    }
    return bad_input(problem, "--memory",
                     "tiles as wide as the kernels need them take about %.0f MiB; give that much, "
                     "or smaller sigmas",
                     ceil(needed / 1048576));
}

/* ---- one tile ------------------------------------------------------------------------------- */

static dcrf_status stop_with_problem(large_run *run, dcrf_error *error) {
    run->has_problem = true;
    *error = (dcrf_error){DCRF_ERROR_ARGUMENT, "the callback of a tile failed"};
    return DCRF_ERROR_ARGUMENT;
}

static bool build_window(const large_run *run, const raster_window *window, const dcrf_grid *grid,
                         float *colours, float *energies, dcrf_model **model,
                         cli_problem *problem) {
    const model_options *options = run->task->model;
    const size_t channels = run->inputs.image.channels;
    const dcrf_view unary = dcrf_view_interleaved(energies, DCRF_F32, grid, run->inputs.labels);
    dcrf_error error;
    if (!large_inputs_colours(&run->inputs, window, colours, problem) ||
        !large_inputs_energies(&run->inputs, window, energies, problem))
        return false;
    if (dcrf_model_new(model, grid, run->inputs.labels, &error) < 0 ||
        dcrf_model_set_origin(*model, window->first, &error) < 0 ||
        dcrf_model_set_unary(*model, &unary, &error) < 0 ||
        dcrf_model_apply_temperature(*model, options->strength.temperature, &error) < 0)
        return large_window_problem(problem, unary_file(&options->unary), window, &error);
    for (size_t k = 0; k < run->built.kernel_count; k++) {
        dcrf_kernel kernel = run->built.kernels[k];
        if (kernel.kind == DCRF_KERNEL_BILATERAL)
            kernel.channels = dcrf_view_interleaved(colours, DCRF_F32, grid, channels);
        if (dcrf_model_add_kernel(*model, &kernel, &error) < 0)
            return large_window_problem(problem, run->task->image_file, window, &error);
    }
    return true;
}

static dcrf_status make_model(void *user, const dcrf_tile *tile, dcrf_model **model,
                              dcrf_error *error) {
    large_run *run = user;
    const dcrf_grid grid = dcrf_tiling_window(&run->tiling, tile);
    const size_t pixels = tile->size[0] * tile->size[1] * tile->size[2];
    raster_window window;
    memcpy(window.first, tile->first, sizeof window.first);
    memcpy(window.size, tile->size, sizeof window.size);
    run->found.tiles.current = tile->index + 1;
    float *colours = malloc(pixels * run->inputs.image.channels * sizeof *colours);
    float *energies = malloc(pixels * run->inputs.labels * sizeof *energies);
    const bool done = colours && energies ? build_window(run, &window, &grid, colours, energies,
                                                         model, run->problem)
                                          : out_of_memory(run->problem, "tile");
    free(colours);
    free(energies);
    return done ? DCRF_OK : stop_with_problem(run, error);
}

static dcrf_status take_result(void *user, const dcrf_tile_result *result, dcrf_error *error) {
    large_run *run = user;
    const dcrf_tile *tile = result->tile;
    for (size_t z = 0; z < tile->inner_size[2]; z++)
        for (size_t y = 0; y < tile->inner_size[1]; y++) {
            const size_t row =
                (z + tile->inner_first[2]) * tile->size[1] + y + tile->inner_first[1];
            const size_t first = row * tile->size[0] + tile->inner_first[0];
            for (size_t a = first; a < first + tile->inner_size[0]; a++) {
                run->found.before[result->unary_labels[a]]++;
                run->found.after[result->labels[a]]++;
            }
        }
    return large_outputs_take(run->outputs, result, run->problem) ? DCRF_OK
                                                                  : stop_with_problem(run, error);
}

static int say_and_ask(void *user) {
    large_run *run = user;
    char what[64];
    snprintf(what, sizeof what, "tile %zu of %zu", run->found.tiles.current,
             run->found.tiles.count);
    progress_stage(&run->watch, what);
    return progress_cancel(&run->watch);
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* What is known afterwards, in the form that the outputs of a whole solution have. */
static bool describe(large_run *run, const dcrf_settings *settings, const dcrf_tiles_info *info,
                     cli_problem *problem) {
    solution *found = &run->found;
    dcrf_solver_info *as_one = &found->info;
    dcrf_error error;
    const double nan = (double)NAN;
    const dcrf_energy unknown = {nan, nan, nan, nan};
    *as_one = (dcrf_solver_info){.method = settings->method,
                                 .iterations = info->iterations,
                                 .energy = info->energy,
                                 .unpolished = unknown,
                                 .rounded = unknown,
                                 .objective = nan,
                                 .lower_bound = nan,
                                 .relative_gap = nan,
                                 .unary_floor = nan,
                                 .left_out = info->left_out,
                                 .solve_s = info->solve_s};
    as_one->stop = info->stop != DCRF_OK                      ? info->stop
                   : info->iterations >= settings->iterations ? DCRF_STOP_ITERATIONS
                                                              : DCRF_STOP_STATIONARY;
    found->unary_minimum.energy = found->constant.energy = unknown;
    found->setup_s += info->model_s + info->plan_s;
    tiles_facts *tiles = &found->tiles;
    tiles->solved = info->solved;
    tiles->largest_gap = info->largest_gap;
    tiles->plan_bytes = info->plan_bytes;
    return dcrf_changes_of_counts(run->built.model, found->pixels, info->changed, found->before,
                                  found->after, &run->built.strength.measured, &found->changes,
                                  &error) >= 0 ||
           library_problem(problem, "changes", &error);
}

static bool run_tiles(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    const dcrf_tile_callbacks callbacks = {.model = make_model, .result = take_result, .user = run};
    dcrf_settings settings = settings_from_options(task->solver, false);
    dcrf_tiles_info info;
    dcrf_error error;
    run->found.setup_s = seconds_now() - task->began_s;
    progress_begin(&run->watch, task->talk, 0, settings.time_limit_s);
    run->watch.line.began_s = task->began_s;
    settings.cancel = say_and_ask;
    settings.cancel_user = run;
    settings.log = progress_log;
    settings.log_user = &run->watch;
    const dcrf_status status = dcrf_tiles_solve(
        &run->tiling, &callbacks, (dcrf_operator_kind)task->model->kernels.operator_kind,
        run->built.workspace, &settings, &info, &error);
    progress_end(&run->watch);
    if (status < 0)
        return !run->has_problem && library_problem(problem, "tiles", &error);
    return describe(run, &settings, &info, problem);
}

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

static bool solve_tiles(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    const bool done =
        large_inputs_check(task->model, problem) && large_outputs_check(task->outputs, problem) &&
        solve_outputs_fit(task->outputs, &run->inputs.image, problem) &&
        solve_outputs_colours(task->outputs, &run->built, &run->colours, problem) &&
        choose_tiling(run, problem) && begin_solution(run, problem) &&
        large_outputs_new(&run->outputs, task->outputs, &run->tiling, &run->inputs.image,
                          run->inputs.labels, &run->colours, &run->files, problem) &&
        run_tiles(run, problem);
    large_outputs_free(&run->outputs);
    return done && write_results(run, problem);
}

/* ---- the decision --------------------------------------------------------------------------- */

static bool check_solver(const solver_options *options, cli_problem *problem) {
    return !options->start_file ||
           bad_input(problem, "--start",
                     "is read as a whole, and the image is solved in tiles; give --memory more, or "
                     "leave it out");
}

/* Open the inputs, look at a sample of them, and solve in tiles where the whole does not fit. */
static bool look_and_solve(large_run *run, bool *was_solved, cli_problem *problem) {
    const large_task *task = run->task;
    if (!large_inputs_open(task->model, task->image_file, task->outputs->labels_file, &run->inputs,
                           problem))
        return false;
    bool done = large_sample_take(&run->inputs, &run->built, problem);
    if (!done) {
        large_inputs_close(&run->inputs);
        return false;
    }
    done = large_sample_vertices(&run->inputs, &run->built, &run->vertices, problem);
    const cli_image *image = &run->inputs.image;
    *was_solved =
        task->limits->tile_px > 0 ||
        bytes_of_whole(task, (double)image_pixels(image), run->inputs.labels, image->channels,
                       run->vertices) > (double)task->limits->memory_bytes;
    done = done && (!*was_solved || solve_tiles(run, problem));
    outputs_discard(&run->files);
    free(run->found.before);
    free(run->found.after);
    run->built.image = (cli_image){0}; /* that of the inputs */
    model_free(&run->built);
    large_inputs_close(&run->inputs);
    return done;
}

bool large_solve(const large_task *task, bool *was_solved, cli_problem *problem) {
    const large_options *limits = task->limits;
    const size_t features = 2 + IMAGE_CHANNELS;
    cli_problem reason;
    *was_solved = false;
    if (limits->tile_px == 0 &&
        (limits->memory_bytes == 0 || fits_by_headers(task, MOST_VERTICES(features))))
        return true;
    if (!model_check_kernels(task->model, problem) ||
        !unary_check_options(&task->model->unary, problem))
        return false;
    /* What tiles cannot do is done as a whole where that is likely to fit. */
    const bool can_be_tiled = large_inputs_check(task->model, &reason) &&
                              large_outputs_check(task->outputs, &reason) &&
                              check_solver(task->solver, &reason);
    if (!can_be_tiled) {
        if (limits->tile_px == 0 && fits_by_headers(task, USUAL_VERTICES))
            return true;
        *problem = reason;
        return false;
    }
    large_run *run = calloc(1, sizeof *run);
    if (!run)
        return out_of_memory(problem, "tiles");
    run->task = task;
    run->problem = problem;
    const bool done = look_and_solve(run, was_solved, problem);
    free(run);
    return done;
}
