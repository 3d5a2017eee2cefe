/* The moves of the fake device: energies by sums over all pairs, and what a change gains as the
 * difference of two such sums. */
#include "fake_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_KERNELS 16

struct dcrf_backend_moves {
    dcrf_backend_device *device;
    size_t variables, labels, stride, kernel_count;
    float *unary;
    uint16_t *current, *trial, *target;
    double *gain;
    double weights[MOST_KERNELS];
    const dcrf_operator *operators[MOST_KERNELS];
    double *mu; /* labels x labels for each kernel */
    size_t clique_count;
    size_t *offsets;
    uint32_t *members;
    double *costs;
};

static void moves_free(dcrf_backend_moves *moves) {
    fake_drop(moves->device);
    free(moves->unary);
    free(moves->current);
    free(moves->trial);
    free(moves->target);
    free(moves->gain);
    free(moves->mu);
    free(moves->offsets);
    free(moves->members);
    free(moves->costs);
    free(moves);
}

static bool take_memory(dcrf_backend_moves *moves, const struct dcrf_cliques *cliques) {
    const size_t n = moves->variables;
    moves->unary = calloc(n * moves->stride, sizeof(float));
    moves->current = calloc(n, sizeof(uint16_t));
    moves->trial = calloc(n, sizeof(uint16_t));
    moves->target = calloc(n, sizeof(uint16_t));
    moves->gain = calloc(n, sizeof(double));
    moves->mu = calloc(MOST_KERNELS * moves->labels * moves->labels, sizeof(double));
    moves->clique_count = cliques ? cliques->count : 0;
    moves->offsets = calloc(moves->clique_count + 1, sizeof *moves->offsets);
    moves->members = calloc(n, sizeof *moves->members);
    moves->costs = calloc(moves->clique_count + 1, sizeof(double));
    if (!moves->unary || !moves->current || !moves->trial || !moves->target || !moves->gain ||
        !moves->mu || !moves->offsets || !moves->members || !moves->costs)
        return false;
    for (size_t p = 0; p < moves->clique_count; p++) {
        moves->offsets[p + 1] = cliques->offsets[p + 1];
        moves->costs[p] = cliques->costs[p];
    }
    for (size_t k = 0; k < moves->offsets[moves->clique_count]; k++)
        moves->members[k] = cliques->members[k];
    return true;
}

static void take_kernels(dcrf_backend_moves *moves, const struct dcrf_backend_group *group) {
    const size_t labels = moves->labels;
    for (size_t m = 0; m < group->kernel_count; m++) {
        double *mu = moves->mu + moves->kernel_count * labels * labels;
        for (size_t k = 0; k < labels * labels; k++)
            mu[k] =
                group->compatibility ? (double)group->compatibility[k] : k / labels != k % labels;
        moves->operators[moves->kernel_count] = group->operators[m];
        moves->weights[moves->kernel_count++] = group->weights[m];
    }
}

static dcrf_status moves_make(dcrf_backend_moves **out, dcrf_backend_device *device,
                              const struct dcrf_backend_model *model, dcrf_error *error) {
    const dcrf_status status = fake_refuse("moves_make", error);
    *out = NULL;
    if (status < 0)
        return status;
    dcrf_backend_moves *moves = calloc(1, sizeof *moves);
    if (!moves)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: fake moves");
    fake_hold(device);
    moves->device = device;
    moves->variables = model->variables;
    moves->labels = model->labels;
    moves->stride = model->stride;
    if (!take_memory(moves, model->cliques)) {
        moves_free(moves);
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: fake moves");
    }
    memcpy(moves->unary, model->unary, model->variables * model->stride * sizeof(float));
    for (size_t g = 0; g < model->group_count; g++)
        take_kernels(moves, &model->groups[g]);
    *out = moves;
    return DCRF_OK;
}

/* What a pays for b, where they have the labels i and j. */
static double pair_cost(const dcrf_backend_moves *moves, size_t a, size_t b, size_t i, size_t j) {
    const size_t labels = moves->labels;
    double sum = 0;
    for (size_t m = 0; m < moves->kernel_count && a != b; m++)
        sum += moves->weights[m] * fake_row(moves->operators[m], a)[b] *
               moves->mu[m * labels * labels + i * labels + j];
    return sum;
}

/* What clique p pays. */
static double clique_cost(const dcrf_backend_moves *moves, const uint16_t *x, size_t p) {
    const uint16_t first = x[moves->members[moves->offsets[p]]];
    for (size_t k = moves->offsets[p]; k < moves->offsets[p + 1]; k++)
        if (x[moves->members[k]] != first)
            return moves->costs[p];
    return 0;
}

static double energy_of(const dcrf_backend_moves *moves, const uint16_t *x) {
    double sum = 0;
    for (size_t a = 0; a < moves->variables; a++) {
        sum += (double)moves->unary[a * moves->stride + x[a]];
        for (size_t b = 0; b < moves->variables; b++)
            sum += pair_cost(moves, a, b, x[a], x[b]);
    }
    for (size_t p = 0; p < moves->clique_count; p++)
        sum += clique_cost(moves, x, p);
    return sum;
}

/* What a variable pays, up to what the others pay among themselves, and without its clique. */
static double cost_of(const dcrf_backend_moves *moves, size_t a, size_t label) {
    double sum = (double)moves->unary[a * moves->stride + label];
    for (size_t b = 0; b < moves->variables; b++)
        sum += pair_cost(moves, a, b, label, moves->current[b]) +
               pair_cost(moves, b, a, moves->current[b], label);
    return sum;
}

static dcrf_status moves_load(dcrf_backend_moves *moves, const uint16_t *labels, double *energy,
                              dcrf_error *error) {
    memcpy(moves->current, labels, moves->variables * sizeof *labels);
    *energy = energy_of(moves, moves->current);
    return fake_refuse("moves_load", error);
}

static dcrf_status moves_read(dcrf_backend_moves *moves, uint16_t *labels, dcrf_error *error) {
    memcpy(labels, moves->current, moves->variables * sizeof *labels);
    return fake_refuse("moves_read", error);
}

static dcrf_status moves_tables(dcrf_backend_moves *moves, double *unary, double *mass,
                                size_t *sizes, dcrf_error *error) {
    const size_t labels = moves->labels;
    for (size_t k = 0; k < labels * labels; k++)
        unary[k] = mass[k] = 0;
    for (size_t i = 0; i < labels; i++)
        sizes[i] = 0;
    for (size_t a = 0; a < moves->variables; a++) {
        const size_t own = moves->current[a];
        sizes[own]++;
        for (size_t i = 0; i < labels; i++)
            unary[own * labels + i] += (double)moves->unary[a * moves->stride + i];
        for (size_t b = 0; b < moves->variables; b++)
            if (labels > 1) /* Potts: what the two would pay under labels that differ */
                mass[own * labels + moves->current[b]] += pair_cost(moves, a, b, 0, 1);
    }
    return fake_refuse("moves_tables", error);
}

static dcrf_status moves_relabel(dcrf_backend_moves *moves, const uint16_t *map,
                                 dcrf_error *error) {
    for (size_t a = 0; a < moves->variables; a++)
        moves->trial[a] = map[moves->current[a]];
    return fake_refuse("moves_relabel", error);
}

/* With its clique: the costs of all cliques with that label, which differ in one at most. */
static double cost_with_clique(const dcrf_backend_moves *moves, size_t a, size_t label) {
    double sum = cost_of(moves, a, label);
    memcpy(moves->trial, moves->current, moves->variables * sizeof *moves->trial);
    moves->trial[a] = (uint16_t)label;
    for (size_t p = 0; p < moves->clique_count; p++)
        sum += clique_cost(moves, moves->trial, p);
    return sum;
}

/* The sum of what the members pay. */
static double cost_of_members(const dcrf_backend_moves *moves, size_t p, size_t label) {
    double sum = 0;
    for (size_t k = moves->offsets[p]; k < moves->offsets[p + 1]; k++)
        sum += cost_of(moves, moves->members[k],
                       label < moves->labels ? label : moves->current[moves->members[k]]);
    return sum;
}

static dcrf_status moves_find_gains(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error) {
    const size_t units = of_cliques ? moves->clique_count : moves->variables;
    for (size_t unit = 0; unit < units; unit++) {
        const double own = of_cliques ? cost_of_members(moves, unit, SIZE_MAX) +
                                            clique_cost(moves, moves->current, unit)
                                      : cost_with_clique(moves, unit, moves->current[unit]);
        moves->gain[unit] = 0;
        for (size_t i = 0; i < moves->labels; i++) {
            const double cost =
                of_cliques ? cost_of_members(moves, unit, i) : cost_with_clique(moves, unit, i);
            if (own - cost > moves->gain[unit]) {
                moves->gain[unit] = own - cost;
                moves->target[unit] = (uint16_t)i;
            }
        }
        if (moves->gain[unit] <= 1e-7 * fabs(own)) /* what floats do not see */
            moves->gain[unit] = 0;
    }
    return fake_refuse(of_cliques ? "moves_find_clique_gains" : "moves_find_gains", error);
}

static void change_unit(dcrf_backend_moves *moves, bool of_cliques, size_t unit) {
    if (!of_cliques)
        moves->trial[unit] = moves->target[unit];
    else
        for (size_t k = moves->offsets[unit]; k < moves->offsets[unit + 1]; k++)
            moves->trial[moves->members[k]] = moves->target[unit];
}

static dcrf_status moves_change(dcrf_backend_moves *moves, bool of_cliques, uint64_t salt,
                                uint32_t mask, size_t *changed, dcrf_error *error) {
    const size_t units = of_cliques ? moves->clique_count : moves->variables;
    *changed = 0;
    memcpy(moves->trial, moves->current, moves->variables * sizeof *moves->trial);
    for (size_t unit = 0; unit < units; unit++)
        if (moves->gain[unit] > 0 && (dcrf_backend_scatter(unit + salt) & mask) == 0) {
            change_unit(moves, of_cliques, unit);
            ++*changed;
        }
    return fake_refuse("moves_change", error);
}

static dcrf_status moves_change_best(dcrf_backend_moves *moves, bool of_cliques,
                                     dcrf_error *error) {
    const size_t units = of_cliques ? moves->clique_count : moves->variables;
    size_t best = 0;
    for (size_t unit = 1; unit < units; unit++)
        if (moves->gain[unit] > moves->gain[best])
            best = unit;
    memcpy(moves->trial, moves->current, moves->variables * sizeof *moves->trial);
    if (moves->gain[best] > 0)
        change_unit(moves, of_cliques, best);
    return fake_refuse("moves_change_best", error);
}

static dcrf_status moves_evaluate(dcrf_backend_moves *moves, double *energy, dcrf_error *error) {
    *energy = energy_of(moves, moves->trial);
    return fake_refuse("moves_evaluate", error);
}

static void moves_accept(dcrf_backend_moves *moves) {
    uint16_t *better = moves->trial;
    moves->trial = moves->current;
    moves->current = better;
}

const struct dcrf_backend_moves_methods fake_moves = {.make = moves_make,
                                                      .free = moves_free,
                                                      .load = moves_load,
                                                      .read = moves_read,
                                                      .tables = moves_tables,
                                                      .relabel = moves_relabel,
                                                      .find_gains = moves_find_gains,
                                                      .change = moves_change,
                                                      .change_best = moves_change_best,
                                                      .evaluate = moves_evaluate,
                                                      .accept = moves_accept};
