#include "large/large.h"

#include "clock.h"
#include "large/exchange.h"
#include "large/inputs.h"
#include "large/outputs.h"
#include "large/sample.h"
#include "ranks/ranks.h"
#include "solution_text.h"

#include <dcrf/tiles.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const cli_option large_option_table[] = {
    {"memory", 0, "BYTES", NULL, false, parse_bytes, offsetof(large_options, memory_bytes),
     "about how much memory may be used, such as 4G; an image that needs more is solved in tiles "
     "that overlap, read and written piece by piece; of one rank, where MPI has started several"},
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
/* Between looks for tiles of other ranks, and for what they want of rank 0 while it solves one. */
#define PAUSE_NS 5000000L
#define ANSWER_S 0.02
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
    large_outputs *outputs;  /* at rank 0 */
    tile_exchange *exchange; /* NULL: there is one rank */
    cli_outputs files;
    progress watch;
    solution found;
    dcrf_tiles_info known; /* of the tiles that rank 0 has taken from all ranks */
    bool is_stopped;       /* another rank has failed */
    double answered_s;     /* when rank 0 last looked what others want */
    bool has_problem;      /* a callback failed, and `problem` says why */
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
    const bool done =
        run->exchange ? tile_exchange_put(run->exchange, result, run->problem) &&
                            (ranks_mine() != 0 || tile_exchange_take(run->exchange, run->outputs,
                                                                     &run->known, run->problem))
                      : large_outputs_take(run->outputs, result, run->problem);
    return done ? DCRF_OK : stop_with_problem(run, error);
}

/* Rank 0, which has the counters, looks at them while it solves: that costs it nothing, and without
 * it the others may wait for an answer until it has ended its tile. The others look between tiles.
 */
static void answer_others(large_run *run) {
    const double now_s = seconds_now();
    if (!run->exchange || ranks_mine() != 0 || now_s - run->answered_s < ANSWER_S)
        return;
    run->answered_s = now_s;
    ranks_progress();
    run->is_stopped = tile_exchange_has_failed(run->exchange);
}

static size_t next_tile(void *user) {
    const large_run *run = user;
    return tile_exchange_next(run->exchange);
}

static int say_and_ask(void *user) {
    large_run *run = user;
    char what[64];
    snprintf(what, sizeof what, "tile %zu of %zu", run->found.tiles.current,
             run->found.tiles.count);
    progress_stage(&run->watch, what);
    answer_others(run);
    return progress_cancel(&run->watch) || run->is_stopped;
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

/* At rank 0, which has no tile left: take those of the others as they come. */
static bool take_the_rest(large_run *run, cli_problem *problem) {
    const struct timespec pause = {0, PAUSE_NS};
    bool done = tile_exchange_take(run->exchange, run->outputs, &run->known, problem);
    while (done && tile_exchange_taken(run->exchange) < run->found.tiles.count &&
           !tile_exchange_has_failed(run->exchange)) {
        char what[64];
        snprintf(what, sizeof what, "%zu of %zu tiles, waiting for other ranks",
                 tile_exchange_taken(run->exchange), run->found.tiles.count);
        progress_stage(&run->watch, what);
        nanosleep(&pause, NULL);
        done = tile_exchange_take(run->exchange, run->outputs, &run->known, problem);
    }
    return done;
}

/* Wait for the others. What rank 0 knows of all tiles takes the place of what this rank knows of
 * its own, but for the times. */
static bool end_together(large_run *run, bool done, dcrf_tiles_info *info, cli_problem *problem) {
    solution *found = &run->found;
    if (done && ranks_mine() == 0)
        done = take_the_rest(run, problem);
    if (!done)
        tile_exchange_fail(run->exchange);
    if (!ranks_agree(done, problem))
        return false;
    ranks_sum(found->before, found->label_count);
    ranks_sum(found->after, found->label_count);
    run->known.model_s = info->model_s;
    run->known.plan_s = info->plan_s;
    run->known.solve_s = info->solve_s;
    *info = run->known;
    return true;
}

static bool run_tiles(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    const dcrf_tile_callbacks callbacks = {.model = make_model,
                                           .result = take_result,
                                           .user = run,
                                           .next = run->exchange ? next_tile : NULL};
    dcrf_settings settings = settings_from_options(task->solver, false);
    dcrf_tiles_info info;
    dcrf_error error;
    run->found.setup_s = seconds_now() - task->began_s;
    progress_begin(&run->watch, ranks_mine() == 0 ? task->talk : FEEDBACK_QUIET, 0,
                   settings.time_limit_s);
    run->watch.line.began_s = task->began_s;
    settings.cancel = say_and_ask;
    settings.cancel_user = run;
    settings.log = progress_log;
    settings.log_user = &run->watch;
    const dcrf_status status = dcrf_tiles_solve(
        &run->tiling, &callbacks, (dcrf_operator_kind)task->model->kernels.operator_kind,
        run->built.workspace, &settings, &info, &error);
    bool done = status >= 0;
    if (!done && !run->has_problem)
        library_problem(problem, "tiles", &error);
    if (run->exchange)
        done = end_together(run, done, &info, problem);
    progress_end(&run->watch);
    return done && (ranks_mine() != 0 || describe(run, &settings, &info, problem));
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

/* What only rank 0 does before the tiles: the cut, which the others are told, and the outputs. */
static bool prepare(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    return large_inputs_check(task->model, problem) &&
           large_outputs_check(task->outputs, problem) &&
           solve_outputs_fit(task->outputs, &run->inputs.image, problem) &&
           solve_outputs_colours(task->outputs, &run->built, &run->colours, problem) &&
           choose_tiling(run, problem) &&
           large_outputs_new(&run->outputs, task->outputs, &run->tiling, &run->inputs.image,
                             run->inputs.labels, &run->colours, &run->files, problem);
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
           run_tiles(run, problem);
}

/* ---- the decision --------------------------------------------------------------------------- */

static bool check_solver(const solver_options *options, cli_problem *problem) {
    return !options->start_file ||
           bad_input(problem, "--start",
                     "is read as a whole, and the image is solved in tiles; give --memory more, or "
                     "leave it out");
}

static void forget(large_run *run) {
    run->built.image = (cli_image){0}; /* that of the inputs */
    model_free(&run->built);
    large_inputs_close(&run->inputs);
}

/* Open the inputs and look at a sample of them; what was made is freed where that fails. */
static bool look(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    if (!large_inputs_open(task->model, task->image_file, task->outputs->labels_file, &run->inputs,
                           problem))
        return false;
    if (!large_sample_take(&run->inputs, &run->built, problem)) {
        large_inputs_close(&run->inputs);
        return false;
    }
    if (large_sample_vertices(&run->inputs, &run->built, &run->vertices, problem))
        return true;
    forget(run);
    return false;
}

/* Solve in tiles where the whole does not fit. Together. */
static bool look_and_solve(large_run *run, bool *was_solved, cli_problem *problem) {
    const large_task *task = run->task;
    const bool has_looked = look(run, problem);
    bool done = ranks_agree(has_looked, problem);
    const cli_image *image = &run->inputs.image;
    *was_solved = task->limits->tile_px > 0 ||
                  (done && bytes_of_whole(task, (double)image_pixels(image), run->inputs.labels,
                                          image->channels,
                                          run->vertices) > (double)task->limits->memory_bytes);
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
    if (has_looked)
        forget(run);
    return done;
}

/* May the whole not fit? What tiles cannot do is done as a whole where that is likely to fit. */
static bool decide(const large_task *task, bool *may_be_tiled, cli_problem *problem) {
    const large_options *limits = task->limits;
    const size_t features = 2 + IMAGE_CHANNELS;
    cli_problem reason;
    *may_be_tiled = false;
    if (limits->tile_px == 0 &&
        (limits->memory_bytes == 0 || fits_by_headers(task, MOST_VERTICES(features))))
        return true;
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
                      look_and_solve(run, was_solved, problem);
    free(run);
    return done;
}
