#include "large/run.h"

#include "clock.h"
#include "model/compatibility.h"
#include "ranks/ranks.h"
#include "report/solution_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Between polls for tiles of other ranks, and for their requests while rank 0 solves a tile. */
#define PAUSE_NS 5000000L
#define ANSWER_S 0.02

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
    return compatibility_apply(options->compatibility, *model, problem);
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

/* Rank 0, which owns the counters, serves them while it solves: that costs next to nothing, and
 * otherwise the others might wait for an answer until its tile is solved. The others poll
 * between tiles. */
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

/* Describe the result in the form that the outputs of a whole solution have. */
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
                                 .bound_left_out = info->bound_left_out,
                                 .solve_s = info->solve_s};
    as_one->stop = info->stop != DCRF_OK                      ? info->stop
                   : info->iterations >= settings->iterations ? DCRF_STOP_ITERATIONS
                                                              : DCRF_STOP_STATIONARY;
    found->unary_minimum = found->constant = unknown;
    found->setup_s += info->model_s + info->plan_s;
    tiles_facts *tiles = &found->tiles;
    tiles->solved = info->solved;
    tiles->largest_gap = info->largest_gap;
    tiles->plan_bytes = info->plan_bytes;
    large_outputs_flicker(run->outputs, &tiles->flicker_before, &tiles->flicker_after);
    return dcrf_changes_of_counts(run->built.model, found->pixels, info->changed, found->before,
                                  found->after, &run->built.strength.measured, &found->changes,
                                  &error) >= 0 ||
           library_problem(problem, "changes", &error);
}

/* On rank 0, when it has no tile left: collect those of the others as they come. */
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

/* The sum over all ranks, a few numbers at a time. Together. */
static void sum_counts(size_t *counts, size_t count) {
    uint64_t part[256];
    const size_t most = sizeof part / sizeof part[0];
    for (size_t first = 0; first < count; first += most) {
        const size_t taken = count - first < most ? count - first : most;
        for (size_t i = 0; i < taken; i++)
            part[i] = counts[first + i];
        ranks_sum(part, taken);
        for (size_t i = 0; i < taken; i++)
            counts[first + i] = (size_t)part[i];
    }
}

/* Wait for the others. Rank 0's statistics of all tiles replace this rank's own, except for the
 * times. */
static bool end_together(large_run *run, bool done, dcrf_tiles_info *info, cli_problem *problem) {
    solution *found = &run->found;
    if (done && ranks_mine() == 0)
        done = take_the_rest(run, problem);
    if (!done)
        tile_exchange_fail(run->exchange);
    if (!ranks_agree(done, problem))
        return false;
    sum_counts(found->before, found->label_count);
    sum_counts(found->after, found->label_count);
    run->known.model_s = info->model_s;
    run->known.plan_s = info->plan_s;
    run->known.solve_s = info->solve_s;
    *info = run->known;
    return true;
}

bool large_run_tiles(large_run *run, cli_problem *problem) {
    const large_task *task = run->task;
    const dcrf_tile_callbacks callbacks = {.model = make_model,
                                           .result = take_result,
                                           .user = run,
                                           .next = run->exchange ? next_tile : NULL};
    dcrf_settings settings = settings_from_options(task->solver, false);
    dcrf_tiles_info info;
    dcrf_error error;
    run->found.setup_s = seconds_now() - task->time.began_s;
    progress_begin(&run->watch, ranks_mine() == 0 ? task->talk : FEEDBACK_QUIET, 0, &task->time);
    /* No rank begins before every rank can be told to end: one that dies takes the others along. */
    if (run->exchange)
        ranks_agree(true, problem);
    settings.time_limit_s = time_left_s(&task->time);
    settings.cancel = say_and_ask;
    settings.cancel_user = run;
    settings.log = progress_log;
    settings.log_user = &run->watch;
    const dcrf_status status = dcrf_tiles_solve(
        &run->tiling, &callbacks, (dcrf_operator_kind)task->model->kernels.operator_kind,
        run->built.workspace, &settings, &info, &error);
    bool done = status >= 0;
    if (!done && !run->has_problem)
        compatibility_problem(task->model->compatibility, dcrf_model_labels(run->built.model),
                              "tiles", &error, problem);
    if (run->exchange)
        done = end_together(run, done, &info, problem);
    progress_end(&run->watch);
    return done && (ranks_mine() != 0 || describe(run, &settings, &info, problem));
}
