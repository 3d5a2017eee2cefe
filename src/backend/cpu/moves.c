#include "backend/cpu/moves.h"

#include "core/error.h"
#include "core/memory.h"
#include "energy/sums.h"

#include <string.h>

static const struct dcrf_slot second_field_slot = {"the field of a second labelling"};

/* ---- from and to the caller ----------------------------------------------------------------- */

static void free_labelling(struct dcrf_labelling *labelling) {
    dcrf_release(labelling->labels);
    dcrf_release(labelling->channel_of);
}

static void free_moves(dcrf_backend_moves *moves) {
    free_labelling(&moves->current);
    free_labelling(&moves->trial);
    dcrf_release(moves->gain);
    dcrf_release(moves->target);
    dcrf_release(moves->clique_of);
    dcrf_release(moves->cliques);
    dcrf_release(moves->clique_rows);
    dcrf_release(moves);
}

static bool take_labelling(struct dcrf_labelling *labelling, const dcrf_model *model,
                           const struct dcrf_slot *field_slot) {
    labelling->labels = dcrf_allocate(model->variables, sizeof(uint16_t));
    labelling->field_slot = field_slot;
    labelling->channel_of = dcrf_allocate(model->labels, sizeof(uint16_t));
    return labelling->labels && labelling->channel_of;
}

static bool take_cliques(dcrf_backend_moves *moves) {
    const dcrf_model *model = moves->model;
    if (model->cliques.count == 0)
        return true;
    moves->clique_of = dcrf_allocate(model->variables, sizeof(uint32_t));
    moves->cliques = dcrf_allocate(model->cliques.count, sizeof *moves->cliques);
    moves->clique_rows =
        dcrf_allocate(dcrf_workspace_threads(moves->workspace), model->labels * sizeof(double));
    if (!moves->clique_of || !moves->cliques || !moves->clique_rows)
        return false;
    dcrf_model_clique_of(model, moves->clique_of);
    return true;
}

static bool take_memory(dcrf_backend_moves *moves) {
    const size_t variables = moves->model->variables;
    moves->gain = dcrf_allocate(variables, sizeof(float));
    moves->target = dcrf_allocate(variables, sizeof(uint16_t));
    return moves->gain && moves->target &&
           take_labelling(&moves->current, moves->model, &dcrf_filtered_slot) &&
           take_labelling(&moves->trial, moves->model, &second_field_slot) && take_cliques(moves);
}

static dcrf_status make_moves(dcrf_backend_moves **out, dcrf_backend_device *device,
                              const struct dcrf_backend_model *model, dcrf_error *error) {
    (void)device;
    dcrf_backend_moves *moves = dcrf_allocate_zero(1, sizeof *moves);
    *out = moves;
    if (!moves)
        return dcrf_fail_memory(error, "moves");
    moves->coupling = model->coupling;
    moves->model = model->coupling->plan->model;
    moves->workspace = model->coupling->workspace;
    if (take_memory(moves))
        return DCRF_OK;
    free_moves(moves);
    *out = NULL;
    return dcrf_fail_memory(error, "moves");
}

static dcrf_status load(dcrf_backend_moves *moves, const uint16_t *labels, double *energy,
                        dcrf_error *error) {
    memcpy(moves->current.labels, labels, moves->model->variables * sizeof *labels);
    return dcrf_moves_measure(moves, &moves->current, energy, error);
}

static dcrf_status read_labels(dcrf_backend_moves *moves, uint16_t *labels, dcrf_error *error) {
    (void)error;
    memcpy(labels, moves->current.labels, moves->model->variables * sizeof *labels);
    return DCRF_OK;
}

/* ---- whole labels --------------------------------------------------------------------------- */

static dcrf_status fill_tables(dcrf_backend_moves *moves, double *class_unary, double *class_mass,
                               size_t *class_size, dcrf_error *error) {
    (void)error;
    const dcrf_model *model = moves->model;
    const size_t labels = model->labels;
    const struct dcrf_labelling *current = &moves->current;
    memset(class_unary, 0, labels * labels * sizeof *class_unary);
    memset(class_mass, 0, labels * labels * sizeof *class_mass);
    memset(class_size, 0, labels * sizeof *class_size);
    for (size_t a = 0; a < model->variables; a++) {
        const size_t own = current->labels[a];
        const float *unary = model->unary + a * model->stride;
        const float *field = current->field + a * current->stride;
        class_size[own]++;
        for (size_t i = 0; i < labels; i++) {
            class_unary[own * labels + i] += (double)unary[i];
            class_mass[own * labels + i] += (double)field[current->channel_of[i]];
        }
    }
    return DCRF_OK;
}

static dcrf_status relabel(dcrf_backend_moves *moves, const uint16_t *map, dcrf_error *error) {
    (void)error;
    for (size_t a = 0; a < moves->model->variables; a++)
        moves->trial.labels[a] = map[moves->current.labels[a]];
    return DCRF_OK;
}

/* ---- units ---------------------------------------------------------------------------------- */

static size_t count_units(const dcrf_backend_moves *moves, bool of_cliques) {
    return of_cliques ? moves->model->cliques.count : moves->model->variables;
}

static void copy_current(dcrf_backend_moves *moves) {
    memcpy(moves->trial.labels, moves->current.labels,
           moves->model->variables * sizeof *moves->trial.labels);
}

static void change_unit(dcrf_backend_moves *moves, bool of_cliques, size_t unit) {
    const struct dcrf_cliques *cliques = &moves->model->cliques;
    if (!of_cliques) {
        moves->trial.labels[unit] = moves->target[unit];
        return;
    }
    for (size_t c = cliques->offsets[unit]; c < cliques->offsets[unit + 1]; c++)
        moves->trial.labels[cliques->members[c]] = moves->target[unit];
}

static dcrf_status change(dcrf_backend_moves *moves, bool of_cliques, uint64_t salt, uint32_t mask,
                          size_t *changed, dcrf_error *error) {
    (void)error;
    *changed = 0;
    copy_current(moves);
    for (size_t unit = 0; unit < count_units(moves, of_cliques); unit++)
        if (moves->gain[unit] > 0 && (dcrf_backend_scatter(unit + salt) & mask) == 0) {
            change_unit(moves, of_cliques, unit);
            (*changed)++;
        }
    return DCRF_OK;
}

static dcrf_status change_best(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error) {
    (void)error;
    size_t best = 0;
    for (size_t unit = 1; unit < count_units(moves, of_cliques); unit++)
        if (moves->gain[unit] > moves->gain[best])
            best = unit;
    copy_current(moves);
    change_unit(moves, of_cliques, best);
    return DCRF_OK;
}

/* ---- the trial ------------------------------------------------------------------------------ */

static dcrf_status evaluate(dcrf_backend_moves *moves, double *energy, dcrf_error *error) {
    return dcrf_moves_measure(moves, &moves->trial, energy, error);
}

static void accept(dcrf_backend_moves *moves) {
    const struct dcrf_labelling better = moves->trial;
    moves->trial = moves->current;
    moves->current = better;
}

const struct dcrf_backend_moves_methods dcrf_cpu_moves = {
    .make = make_moves,
    .free = free_moves,
    .load = load,
    .read = read_labels,
    .tables = fill_tables,
    .relabel = relabel,
    .find_gains = dcrf_moves_find_gains,
    .change = change,
    .change_best = change_best,
    .evaluate = evaluate,
    .accept = accept,
};
