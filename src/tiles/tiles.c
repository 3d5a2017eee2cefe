/* Solves tiles one after the other: model, plan, solver, result.
 *
 * The total energy is that of all inner regions,
 *
 *   sum over tiles of  sum_{a inner} ( phi_a(x_a) + sum_m sum_{b in the window} w_m k_m(a, b)
 *                                                     mu_m(x_a, x_b) ),
 *
 * where x_b outside the inner region is the label in that window's own solution. With windows as
 * wide as the kernels reach, this is the energy of the whole labelling up to effects of the seams.
 */
#include "core/error.h"
#include "core/owned.h"
#include "core/timer.h"
#include "core/workspace.h"
#include "energy/energy.h"
#include "energy/labelling.h"
#include "model/cuts.h"
#include "model/model.h"

#include <dcrf/labelling.h>
#include <dcrf/tiles.h>
#include <math.h>
#include <string.h>

/* Arrays over a window, with room for the largest one. */
struct window_arrays {
    uint16_t *labels;
    uint16_t *unary_labels;
    uint8_t *inner; /* 1 where a variable is in the inner region */
    float *marginals;
    size_t marginals_room;   /* floats */
    struct dcrf_owned owned; /* all but the marginals */
};

struct run {
    const dcrf_tiling *tiling;
    const dcrf_tile_callbacks *callbacks;
    dcrf_operator_kind operator_kind;
    dcrf_workspace *workspace;
    const dcrf_settings *settings;
    double began_s;
    struct window_arrays arrays;
    size_t count;         /* tiles in the tiling */
    dcrf_status stop;     /* DCRF_OK, or why the run was stopped */
    dcrf_tile_facts tile; /* of the current tile */
    dcrf_tiles_info info;
};

static void free_arrays(struct window_arrays *arrays) {
    dcrf_disown(&arrays->owned);
    dcrf_release(arrays->marginals);
}

static dcrf_status allocate_arrays(struct run *run, dcrf_error *error) {
    struct window_arrays *arrays = &run->arrays;
    const size_t largest = dcrf_tiling_largest(run->tiling);
    arrays->labels = dcrf_own(&arrays->owned, largest, sizeof *arrays->labels);
    arrays->unary_labels = dcrf_own(&arrays->owned, largest, sizeof *arrays->unary_labels);
    arrays->inner = dcrf_own(&arrays->owned, largest, sizeof *arrays->inner);
    return arrays->owned.is_short ? dcrf_fail_memory(error, "the labels of a tile") : DCRF_OK;
}

/* The number of labels is known only once the first model exists. */
static dcrf_status make_room_for_marginals(struct window_arrays *arrays, const dcrf_model *model,
                                           dcrf_error *error) {
    const size_t needed = model->variables * model->stride;
    if (arrays->marginals && needed <= arrays->marginals_room)
        return DCRF_OK;
    dcrf_release(arrays->marginals);
    arrays->marginals = dcrf_allocate(needed, sizeof *arrays->marginals);
    arrays->marginals_room = arrays->marginals ? needed : 0;
    return arrays->marginals ? DCRF_OK : dcrf_fail_memory(error, "the marginals of a tile");
}

static void mark_inner(const dcrf_tile *tile, uint8_t *inner) {
    memset(inner, 0, tile->size[0] * tile->size[1] * tile->size[2]);
    for (size_t z = 0; z < tile->inner_size[2]; z++)
        for (size_t y = 0; y < tile->inner_size[1]; y++) {
            const size_t row =
                (z + tile->inner_first[2]) * tile->size[1] + y + tile->inner_first[1];
            memset(inner + row * tile->size[0] + tile->inner_first[0], 1, tile->inner_size[0]);
        }
}

/* ---- stopping ------------------------------------------------------------------------------- */

static double seconds_left(const struct run *run) {
    return run->settings->time_limit_s - (dcrf_time_s() - run->began_s);
}

/* Called between tiles, and during the long steps of one. */
static bool is_stopped(struct run *run) {
    const dcrf_settings *settings = run->settings;
    if (run->stop == DCRF_OK)
        run->stop = dcrf_workspace_limit(run->workspace);
    if (run->stop == DCRF_OK && settings->cancel && settings->cancel(settings->cancel_user))
        run->stop = DCRF_STOP_CANCELLED;
    if (run->stop == DCRF_OK && settings->time_limit_s > 0 && seconds_left(run) <= 0)
        run->stop = DCRF_STOP_TIME;
    return run->stop != DCRF_OK;
}

static bool is_due(void *user) {
    return is_stopped(user);
}

/* A step ended by a stop has not failed. */
static dcrf_status forgive_stop(struct run *run, dcrf_status status) {
    return status == DCRF_ERROR_INTERRUPTED && is_stopped(run) ? DCRF_OK : status;
}

/* The time for this tile: an equal part of the time left. If tiles are shared with other runs, this
 * run is assumed to get the same fraction of the remaining tiles as so far. */
static double seconds_for(const struct run *run, const dcrf_tile *tile) {
    const double share = (double)(run->info.tiles + 1) / (double)(tile->index + 1);
    const double tiles_left = share * (double)(run->count - tile->index);
    return seconds_left(run) / fmax(tiles_left, 1);
}

/* ---- one tile ------------------------------------------------------------------------------- */

static void note_solver(struct run *run, const dcrf_solver *solver, const dcrf_plan *plan) {
    dcrf_tile_facts *tile = &run->tile;
    dcrf_solver_info found;
    dcrf_solver_get_info(solver, &found);
    tile->plan_bytes = dcrf_plan_bytes(plan);
    tile->iterations = found.iterations;
    tile->left_out = found.left_out;
    tile->relative_gap = found.relative_gap;
    tile->bound_left_out = found.bound_left_out;
}

static dcrf_status run_solver(struct run *run, const dcrf_plan *plan, const dcrf_settings *settings,
                              dcrf_error *error) {
    const dcrf_model *model = dcrf_plan_model(plan);
    struct window_arrays *arrays = &run->arrays;
    DCRF_AT_END(dcrf_solver_free) dcrf_solver *solver = NULL;
    TRY(dcrf_solver_new(&solver, plan, run->workspace, settings, error));
    const dcrf_status status = dcrf_solver_run(solver, error);
    if (status < 0)
        return status;
    if (status == DCRF_STOP_CANCELLED)
        run->stop = DCRF_STOP_CANCELLED;
    note_solver(run, solver, plan);
    dcrf_solver_labels(solver, arrays->labels, model->variables, NULL);
    return dcrf_solver_marginals(solver, arrays->marginals, model->variables * model->stride,
                                 model->stride, error);
}

static dcrf_status find_energy(struct run *run, const dcrf_plan *plan, dcrf_error *error) {
    dcrf_energy energy;
    TRY(dcrf_energy_of_part(plan, run->workspace, run->arrays.labels, run->arrays.inner, &energy,
                            error));
    run->tile.energy = energy;
    return DCRF_OK;
}

/* Plan and solve. If the run is stopped before there are labels, the unary minimum is used; if it
 * is stopped before their energy is known, the energy stays NaN. */
static dcrf_status solve_window(struct run *run, const dcrf_tile *tile, const dcrf_model *model,
                                dcrf_error *error) {
    const struct dcrf_interrupt interrupt = {is_due, run};
    DCRF_WATCH(run->workspace, &interrupt);
    dcrf_plan *plan = NULL;
    dcrf_settings settings = *run->settings;
    const double began_s = dcrf_time_s();
    dcrf_status status = dcrf_plan_new(&plan, model, run->operator_kind, run->workspace, error);
    run->info.plan_s += dcrf_time_s() - began_s;
    const double planned_s = dcrf_time_s();
    if (status >= 0 && !is_stopped(run)) {
        if (settings.time_limit_s > 0)
            settings.time_limit_s = seconds_for(run, tile);
        status = run_solver(run, plan, &settings, error);
        run->tile.is_solved = status >= 0;
        if (status >= 0)
            status = find_energy(run, plan, error);
    }
    run->info.solve_s += dcrf_time_s() - planned_s;
    dcrf_plan_free(&plan);
    return forgive_stop(run, status);
}

static dcrf_status solve_tile(struct run *run, const dcrf_tile *tile, const dcrf_model *model,
                              dcrf_error *error) {
    struct window_arrays *arrays = &run->arrays;
    const size_t variables = tile->size[0] * tile->size[1] * tile->size[2];
    const double nan = (double)NAN;
    run->tile = (dcrf_tile_facts){.energy = {nan, nan, nan, nan}, .relative_gap = nan};
    if (model->variables != variables)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the model of tile %zu has %zu variables; its window has %zu", tile->index,
                         model->variables, variables);
    TRY(make_room_for_marginals(arrays, model, error));
    mark_inner(tile, arrays->inner);
    dcrf_unary_minimum(model, dcrf_workspace_pool(run->workspace), arrays->unary_labels);
    if (!is_stopped(run))
        TRY(solve_window(run, tile, model, error));
    if (!run->tile.is_solved) {
        memcpy(arrays->labels, arrays->unary_labels, variables * sizeof *arrays->labels);
        dcrf_marginals_of_labels(arrays->labels, variables, model->stride, arrays->marginals);
    }
    run->tile.stop = run->stop;
    for (size_t a = 0; a < variables; a++)
        run->tile.changed += arrays->inner[a] && arrays->labels[a] != arrays->unary_labels[a];
    const dcrf_tile_result result = {.tile = tile,
                                     .model = model,
                                     .labels = arrays->labels,
                                     .unary_labels = arrays->unary_labels,
                                     .marginals = arrays->marginals,
                                     .stride = model->stride,
                                     .is_solved = run->tile.is_solved,
                                     .facts = &run->tile};
    const double began_s = dcrf_time_s();
    const dcrf_status status = run->callbacks->result(run->callbacks->user, &result, error);
    run->info.model_s += dcrf_time_s() - began_s;
    dcrf_tiles_add(&run->info, &run->tile);
    return status;
}

static dcrf_status do_tile(struct run *run, size_t index, dcrf_error *error) {
    const dcrf_tile tile = dcrf_tiling_tile(run->tiling, index);
    const double began_s = dcrf_time_s();
    dcrf_model *model = NULL;
    dcrf_status status = run->callbacks->model(run->callbacks->user, &tile, &model, error);
    run->info.model_s += dcrf_time_s() - began_s;
    if (status >= 0 && !model)
        status = dcrf_fail_null(error, "the model of a tile");
    if (status >= 0)
        status = solve_tile(run, &tile, model, error);
    dcrf_model_free(&model);
    return status < 0 ? status : DCRF_OK;
}

/* ---- all of them ---------------------------------------------------------------------------- */

void dcrf_tiles_add(dcrf_tiles_info *info, const dcrf_tile_facts *facts) {
    if (!info || !facts)
        return;
    dcrf_energy *total = &info->energy;
    if (info->tiles == 0)
        info->largest_gap = (double)NAN;
    info->tiles++;
    info->solved += facts->is_solved != 0;
    info->changed += facts->changed;
    if (info->stop == DCRF_OK)
        info->stop = facts->stop;
    if (info->left_out == DCRF_OK)
        info->left_out = facts->left_out;
    if (!isnan(facts->relative_gap) && !(info->largest_gap >= facts->relative_gap))
        info->largest_gap = facts->relative_gap;
    dcrf_left_out_join(&info->bound_left_out, &facts->bound_left_out);
    info->iterations = facts->iterations > info->iterations ? facts->iterations : info->iterations;
    info->plan_bytes = facts->plan_bytes > info->plan_bytes ? facts->plan_bytes : info->plan_bytes;
    total->unary += facts->energy.unary;
    total->pairwise += facts->energy.pairwise;
    total->cliques += facts->energy.cliques;
    total->total += facts->energy.total;
}

static size_t next_tile(const struct run *run, size_t before) {
    const dcrf_tile_callbacks *callbacks = run->callbacks;
    return callbacks->next ? callbacks->next(callbacks->user) : before + 1;
}

dcrf_status dcrf_tiles_solve(const dcrf_tiling *tiling, const dcrf_tile_callbacks *callbacks,
                             dcrf_operator_kind operator_kind, dcrf_workspace *workspace,
                             const dcrf_settings *settings, dcrf_tiles_info *info,
                             dcrf_error *error) {
    if (!tiling || !callbacks || !callbacks->model || !callbacks->result)
        return dcrf_fail_null(error, "the tiling or a callback of the tiles");
    if (!workspace || !settings || !info)
        return dcrf_fail_null(error, "the workspace, the settings or the place for what is said");
    TRY(dcrf_check_reserved(callbacks->reserved, sizeof callbacks->reserved,
                            "the callbacks of the tiles", error));
    DCRF_ENTER(workspace, error);
    struct run run = {.tiling = tiling,
                      .callbacks = callbacks,
                      .operator_kind = operator_kind,
                      .workspace = workspace,
                      .settings = settings,
                      .began_s = dcrf_time_s(),
                      .count = dcrf_tiling_count(tiling),
                      .info = {.largest_gap = (double)NAN}};
    dcrf_status status = allocate_arrays(&run, error);
    /* SIZE_MAX + 1 wraps around to 0, the first tile. */
    size_t index = SIZE_MAX;
    while (status >= 0 && (index = next_tile(&run, index)) < run.count)
        status = do_tile(&run, index, error);
    free_arrays(&run.arrays);
    if (status >= 0)
        *info = run.info;
    return status < 0 ? status : DCRF_OK;
}
