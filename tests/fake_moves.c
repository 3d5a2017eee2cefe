/* The moves of the fake device: energies by sums over all pairs, and what a change gains as the
 * difference of two such sums. */
#include "fake_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dcrf_backend_moves {
    dcrf_backend_device *device;
    size_t variables, labels, stride, kernel_count;
    float *unary;
    uint16_t *current, *trial, *target;
    double *gain;
    double weights[16];
    const dcrf_operator *operators[16];
};

static void moves_free(dcrf_backend_moves *moves) {
    fake_drop(moves->device);
    free(moves->unary);
    free(moves->current);
    free(moves->trial);
    free(moves->target);
    free(moves->gain);
    free(moves);
}

static dcrf_status moves_make(dcrf_backend_moves **out, dcrf_backend_device *device,
                              const struct dcrf_backend_model *model, dcrf_error *error) {
    const size_t n = model->variables;
    const dcrf_status status = fake_refuse("moves_make", error);
    *out = NULL;
    if (status < 0)
        return status;
    dcrf_backend_moves *moves = calloc(1, sizeof *moves);
    if (!moves)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: fake moves");
    fake_hold(device);
    *moves = (dcrf_backend_moves){.device = device,
                                  .variables = n,
                                  .labels = model->labels,
                                  .stride = model->stride,
                                  .unary = calloc(n * model->stride, sizeof(float)),
                                  .current = calloc(n, sizeof(uint16_t)),
                                  .trial = calloc(n, sizeof(uint16_t)),
                                  .target = calloc(n, sizeof(uint16_t)),
                                  .gain = calloc(n, sizeof(double))};
    if (!moves->unary || !moves->current || !moves->trial || !moves->target || !moves->gain) {
        moves_free(moves);
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: fake moves");
    }
    memcpy(moves->unary, model->unary, n * model->stride * sizeof(float));
    for (size_t m = 0; m < model->groups[0].kernel_count; m++) {
        moves->operators[moves->kernel_count] = model->groups[0].operators[m];
        moves->weights[moves->kernel_count++] = (double)model->groups[0].weights[m];
    }
    *out = moves;
    return DCRF_OK;
}

static double weight_of(const dcrf_backend_moves *moves, size_t a, size_t b) {
    double sum = 0;
    for (size_t m = 0; m < moves->kernel_count && a != b; m++)
        sum += moves->weights[m] * fake_row(moves->operators[m], a)[b];
    return sum;
}

static double energy_of(const dcrf_backend_moves *moves, const uint16_t *x) {
    double sum = 0;
    for (size_t a = 0; a < moves->variables; a++) {
        sum += (double)moves->unary[a * moves->stride + x[a]];
        for (size_t b = 0; b < moves->variables; b++)
            sum += x[a] != x[b] ? weight_of(moves, a, b) : 0;
    }
    return sum;
}

/* What a variable pays, up to what the others pay among themselves. */
static double cost_of(const dcrf_backend_moves *moves, size_t a, size_t label) {
    double sum = (double)moves->unary[a * moves->stride + label];
    for (size_t b = 0; b < moves->variables; b++)
        sum += moves->current[b] != label ? weight_of(moves, a, b) + weight_of(moves, b, a) : 0;
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
            mass[own * labels + moves->current[b]] += weight_of(moves, a, b);
    }
    return fake_refuse("moves_tables", error);
}

static dcrf_status moves_relabel(dcrf_backend_moves *moves, const uint16_t *map,
                                 dcrf_error *error) {
    for (size_t a = 0; a < moves->variables; a++)
        moves->trial[a] = map[moves->current[a]];
    return fake_refuse("moves_relabel", error);
}

static dcrf_status moves_find_gains(dcrf_backend_moves *moves, dcrf_error *error) {
    for (size_t a = 0; a < moves->variables; a++) {
        const double own = cost_of(moves, a, moves->current[a]);
        moves->gain[a] = 0;
        moves->target[a] = moves->current[a];
        for (size_t i = 0; i < moves->labels; i++)
            if (own - cost_of(moves, a, i) > moves->gain[a]) {
                moves->gain[a] = own - cost_of(moves, a, i);
                moves->target[a] = (uint16_t)i;
            }
        if (moves->gain[a] <= 1e-7 * fabs(own)) /* what floats do not see */
            moves->gain[a] = 0;
    }
    return fake_refuse("moves_find_gains", error);
}

static dcrf_status moves_change(dcrf_backend_moves *moves, uint64_t salt, uint32_t mask,
                                size_t *changed, dcrf_error *error) {
    *changed = 0;
    for (size_t a = 0; a < moves->variables; a++) {
        const bool is_changed = moves->gain[a] > 0 && (dcrf_backend_scatter(a + salt) & mask) == 0;
        moves->trial[a] = is_changed ? moves->target[a] : moves->current[a];
        *changed += is_changed;
    }
    return fake_refuse("moves_change", error);
}

static dcrf_status moves_change_best(dcrf_backend_moves *moves, dcrf_error *error) {
    size_t best = 0;
    for (size_t a = 1; a < moves->variables; a++)
        if (moves->gain[a] > moves->gain[best])
            best = a;
    memcpy(moves->trial, moves->current, moves->variables * sizeof *moves->trial);
    moves->trial[best] = moves->target[best];
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
