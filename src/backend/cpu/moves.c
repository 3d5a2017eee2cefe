#include "backend/cpu/moves.h"

#include "core/error.h"
#include "energy/energy.h"

#include <stdatomic.h>
#include <string.h>

/* About so many variables per chunk. */
#define UNITS 2048

/* ---- from and to the caller ----------------------------------------------------------------- */

static void free_moves(dcrf_backend_moves *moves) {
    dcrf_disown(&moves->owned);
    dcrf_release(moves);
}

static void take_labelling(dcrf_backend_moves *moves, struct dcrf_labelling *labelling,
                           const struct dcrf_slot *field_slot) {
    labelling->labels = dcrf_own(&moves->owned, moves->model->variables, sizeof(uint16_t));
    labelling->field_slot = field_slot;
    labelling->channel_of = dcrf_own(&moves->owned, moves->model->labels, sizeof(uint16_t));
}

static bool take_memory(dcrf_backend_moves *moves) {
    const dcrf_model *model = moves->model;
    const size_t cliques = model->cliques.count;
    struct dcrf_owned *owned = &moves->owned;
    moves->gain = dcrf_own(owned, model->variables, sizeof(float));
    moves->target = dcrf_own(owned, model->variables, sizeof(uint16_t));
    take_labelling(moves, &moves->current, &dcrf_filtered_slot);
    take_labelling(moves, &moves->trial, &dcrf_trial_slot);
    if (cliques > 0) {
        moves->clique_of = dcrf_own(owned, model->variables, sizeof(uint32_t));
        moves->cliques = dcrf_own(owned, cliques, sizeof *moves->cliques);
        moves->clique_rows = dcrf_own(owned, dcrf_workspace_threads(moves->workspace),
                                      model->labels * sizeof(double));
    }
    if (cliques > 0 && !owned->is_short)
        dcrf_model_clique_of(model, moves->clique_of);
    return !owned->is_short;
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

/* Variables are divided into parts, whatever the number of threads; each has tables of its own, one
 * after the other in scratch memory, which are added in order. With many labels there are fewer
 * parts, so that the tables take no more memory than two blocks of marginals in double. */
#define MOST_TABLE_PARTS 16

static size_t count_table_parts(const dcrf_model *model) {
    const size_t parts = model->variables / model->labels;
    return parts < 1 ? 1 : parts < MOST_TABLE_PARTS ? parts : MOST_TABLE_PARTS;
}

struct tables {
    const dcrf_backend_moves *moves;
    size_t grain;   /* variables of a part */
    double *memory; /* per part: unary energies, then mass */
};

static void fill_part(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct tables *tables = context;
    const dcrf_model *model = tables->moves->model;
    const struct dcrf_labelling *current = &tables->moves->current;
    const size_t labels = model->labels, entries = labels * labels, columns = current->channels;
    double *sum_unary = tables->memory + begin / tables->grain * 2 * entries;
    double *sum_mass = sum_unary + entries;
    memset(sum_unary, 0, 2 * entries * sizeof *sum_unary);
    for (size_t a = begin; a < end; a++) {
        const size_t own = current->labels[a];
        const float *unary = model->unary + a * model->stride;
        const float *field = current->field + a * current->stride;
        for (size_t i = 0; i < labels; i++)
            sum_unary[own * labels + i] += (double)unary[i];
        for (size_t c = 0; c < columns; c++)
            sum_mass[own * labels + c] += (double)field[c];
    }
    /* From columns to labels. No label is before its column, so the last one comes first. */
    for (size_t own = 0; own < labels; own++)
        for (size_t i = labels; i-- > 0;)
            sum_mass[own * labels + i] = current->channel_of[i] < columns
                                             ? sum_mass[own * labels + current->channel_of[i]]
                                             : 0;
}

static dcrf_status fill_tables(dcrf_backend_moves *moves, double *class_unary, double *class_mass,
                               size_t *class_size, dcrf_error *error) {
    const size_t n = moves->model->variables, labels = moves->model->labels;
    const size_t entries = labels * labels, parts = count_table_parts(moves->model);
    struct tables tables = {.moves = moves, .grain = (n - 1) / parts + 1};
    tables.memory = dcrf_workspace_slot(moves->workspace, &dcrf_energy_slot, entries,
                                        2 * parts * sizeof *tables.memory);
    if (!tables.memory)
        return dcrf_fail_memory(error, "moves");
    dcrf_parallel_for(dcrf_workspace_pool(moves->workspace), n, tables.grain, fill_part, &tables);
    memset(class_unary, 0, entries * sizeof *class_unary);
    memset(class_mass, 0, entries * sizeof *class_mass);
    memset(class_size, 0, labels * sizeof *class_size);
    for (size_t begin = 0; begin < n; begin += tables.grain, tables.memory += 2 * entries)
        for (size_t k = 0; k < entries; k++) {
            class_unary[k] += tables.memory[k];
            class_mass[k] += tables.memory[entries + k];
        }
    for (size_t a = 0; a < n; a++)
        class_size[moves->current.labels[a]]++;
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

struct changes {
    dcrf_backend_moves *moves;
    bool of_cliques;
    uint64_t salt;
    uint32_t mask;
    atomic_size_t count;
};

static void change_units(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct changes *changes = context;
    size_t count = 0;
    for (size_t unit = begin; unit < end; unit++)
        if (changes->moves->gain[unit] > 0 &&
            (dcrf_backend_scatter(unit + changes->salt) & changes->mask) == 0) {
            change_unit(changes->moves, changes->of_cliques, unit);
            count++;
        }
    atomic_fetch_add_explicit(&changes->count, count, memory_order_relaxed);
}

/* Cliques, of which there are few, are changed one after the other. */
static dcrf_status change(dcrf_backend_moves *moves, bool of_cliques, uint64_t salt, uint32_t mask,
                          size_t *changed, dcrf_error *error) {
    (void)error;
    const size_t units = count_units(moves, of_cliques);
    struct changes changes = {moves, of_cliques, salt, mask, 0};
    copy_current(moves);
    dcrf_parallel_for(dcrf_workspace_pool(moves->workspace), units,
                      of_cliques ? units + 1 : dcrf_even_grain(units, UNITS), change_units,
                      &changes);
    *changed = atomic_load(&changes.count);
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
