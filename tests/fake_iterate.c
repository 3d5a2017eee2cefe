/* Mean field and QP of the fake device: the formulas of meanfield/mean_field.c and qp/qp.c by
 * plain loops in double. Nothing follows from what was before but q, the logits, y and z: fields,
 * products and sums over cliques are made anew every time. */
#include "fake_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST_Q 1e-37f
#define MOST_KERNELS 16

struct group {
    size_t kernel_count;
    const dcrf_operator *operators[MOST_KERNELS];
    double weights[MOST_KERNELS];
    double *diagonal;
    double *mu; /* labels x labels */
};

struct dcrf_backend_iterate {
    dcrf_backend_device *device;
    size_t variables, labels, stride;
    double own_factor, all_factor;
    double *unary;
    double *y;        /* q, or y: variables x labels, as all blocks here */
    double *next;     /* the next q, or the vertex */
    double *logits;   /* of mean field */
    double *field[2]; /* of y and of the vertex */
    double *others;   /* S of a group */
    size_t group_count;
    struct group *groups;

    size_t clique_count;
    size_t *offsets;
    uint32_t *members;
    double *costs;
    double *z; /* cliques x labels */
};

static void iterate_free(dcrf_backend_iterate *it) {
    if (!it)
        return;
    fake_drop(it->device);
    for (size_t g = 0; it->groups && g < it->group_count; g++) {
        free(it->groups[g].diagonal);
        free(it->groups[g].mu);
    }
    void *const held[] = {it->unary,    it->y,        it->next,   it->logits,
                          it->field[0], it->field[1], it->others, it->groups,
                          it->offsets,  it->members,  it->costs,  it->z};
    for (size_t k = 0; k < sizeof held / sizeof *held; k++)
        free(held[k]);
    free(it);
}

static bool take_memory(dcrf_backend_iterate *it, const struct dcrf_backend_model *model) {
    const size_t count = it->variables * it->labels, cliques = it->clique_count;
    const size_t members = cliques > 0 ? model->cliques->offsets[cliques] : 0;
    it->unary = calloc(count, sizeof(double));
    it->y = calloc(count, sizeof(double));
    it->next = calloc(count, sizeof(double));
    it->logits = calloc(count, sizeof(double));
    it->field[0] = calloc(count, sizeof(double));
    it->field[1] = calloc(count, sizeof(double));
    it->others = calloc(count, sizeof(double));
    it->groups = calloc(it->group_count, sizeof *it->groups);
    it->offsets = calloc(cliques + 1, sizeof *it->offsets);
    it->members = calloc(members + 1, sizeof *it->members);
    it->costs = calloc(cliques + 1, sizeof(double));
    it->z = calloc((cliques + 1) * it->labels, sizeof(double));
    if (members > 0) {
        memcpy(it->offsets, model->cliques->offsets, (cliques + 1) * sizeof *it->offsets);
        memcpy(it->members, model->cliques->members, members * sizeof *it->members);
        memcpy(it->costs, model->cliques->costs, cliques * sizeof *it->costs);
    }
    return it->unary && it->y && it->next && it->logits && it->field[0] && it->field[1] &&
           it->others && it->groups && it->offsets && it->members && it->costs && it->z;
}

/* Without a matrix the field is S itself. */
static bool add_group(struct group *group, const struct dcrf_backend_group *given, size_t variables,
                      size_t labels) {
    group->diagonal = calloc(variables, sizeof(double));
    group->mu = calloc(labels * labels, sizeof(double));
    if (!group->diagonal || !group->mu || given->kernel_count > MOST_KERNELS)
        return false;
    group->kernel_count = given->kernel_count;
    for (size_t m = 0; m < given->kernel_count; m++) {
        group->operators[m] = given->operators[m];
        group->weights[m] = given->weights[m];
    }
    for (size_t a = 0; a < variables; a++)
        group->diagonal[a] = (double)given->diagonal[a];
    for (size_t k = 0; k < labels * labels; k++)
        group->mu[k] =
            given->compatibility ? (double)given->compatibility[k] : k / labels == k % labels;
    return true;
}

static dcrf_status iterate_make(dcrf_backend_iterate **out, dcrf_backend_device *device,
                                const struct dcrf_backend_model *model, enum dcrf_backend_use use,
                                dcrf_error *error) {
    const dcrf_status status = fake_refuse("iterate_make", error);
    (void)use;
    *out = NULL;
    if (status < 0)
        return status;
    for (size_t g = 0; g < model->group_count; g++)
        for (size_t m = 0; m < model->groups[g].kernel_count; m++)
            if (!fake_is_on(model->groups[g].operators[m], device))
                return fake_fail(error, DCRF_ERROR_DEVICE, "an operator is on another fake device");
    dcrf_backend_iterate *it = calloc(1, sizeof *it);
    if (!it)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake iterate");
    fake_hold(device);
    it->device = device;
    it->variables = model->variables;
    it->labels = model->labels;
    it->stride = model->stride;
    it->own_factor = (double)model->own_factor;
    it->all_factor = (double)model->all_factor;
    it->group_count = model->group_count;
    it->clique_count = model->cliques ? model->cliques->count : 0;
    bool is_complete = take_memory(it, model);
    for (size_t g = 0; g < model->group_count && is_complete; g++)
        is_complete = add_group(&it->groups[g], &model->groups[g], it->variables, it->labels);
    if (!is_complete) {
        iterate_free(it);
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake iterate");
    }
    for (size_t k = 0; k < it->variables * it->labels; k++)
        it->unary[k] = (double)model->unary[k / it->labels * it->stride + k % it->labels];
    *out = it;
    return DCRF_OK;
}

static const float *iterate_view(const dcrf_backend_iterate *it) {
    (void)it;
    return NULL; /* it is elsewhere */
}

static dcrf_status iterate_read(dcrf_backend_iterate *it, float *block, dcrf_error *error) {
    memset(block, 0, it->variables * it->stride * sizeof *block);
    for (size_t k = 0; k < it->variables * it->labels; k++)
        block[k / it->labels * it->stride + k % it->labels] = (float)it->y[k];
    return fake_refuse("iterate_read", error);
}

static dcrf_status iterate_labels(dcrf_backend_iterate *it, uint16_t *labels, dcrf_error *error) {
    for (size_t a = 0; a < it->variables; a++) {
        labels[a] = 0; /* by floats, as the marginals are given */
        for (size_t i = 1; i < it->labels; i++)
            if ((float)it->y[a * it->labels + i] > (float)it->y[a * it->labels + labels[a]])
                labels[a] = (uint16_t)i;
    }
    return fake_refuse("iterate_labels", error);
}

static void copy_from_host(dcrf_backend_iterate *it, const float *block) {
    for (size_t k = 0; k < it->variables * it->labels; k++)
        it->y[k] = (double)block[k / it->labels * it->stride + k % it->labels];
}

/* S of a group. */
static void find_others(const dcrf_backend_iterate *it, const struct group *group,
                        const double *block) {
    const size_t n = it->variables, labels = it->labels;
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++) {
            double sum = -group->diagonal[a] * block[a * labels + i];
            for (size_t m = 0; m < group->kernel_count; m++)
                for (size_t b = 0; b < n; b++)
                    sum += group->weights[m] * fake_row(group->operators[m], a)[b] *
                           block[b * labels + i];
            it->others[a * labels + i] = sum;
        }
}

/* The field of a block. */
static void find_field(const dcrf_backend_iterate *it, const double *block, double *field) {
    const size_t n = it->variables, labels = it->labels;
    memset(field, 0, n * labels * sizeof *field);
    for (size_t g = 0; g < it->group_count; g++) {
        find_others(it, &it->groups[g], block);
        for (size_t a = 0; a < n; a++)
            for (size_t j = 0; j < labels; j++)
                for (size_t i = 0; i < labels; i++)
                    field[a * labels + i] +=
                        it->others[a * labels + j] * it->groups[g].mu[j * labels + i];
    }
}

/* ---- mean field ----------------------------------------------------------------------------- */

/* q = softmax(logits), row by row. */
static void softmax(const double *logits, double *q, size_t rows, size_t labels) {
    for (size_t a = 0; a < rows; a++) {
        double largest = -INFINITY, sum = 0;
        for (size_t i = 0; i < labels; i++)
            largest = fmax(largest, logits[a * labels + i]);
        for (size_t i = 0; i < labels; i++)
            sum += q[a * labels + i] = exp(logits[a * labels + i] - largest);
        for (size_t i = 0; i < labels; i++)
            q[a * labels + i] /= sum;
    }
}

static double entropy_of(const dcrf_backend_iterate *it) {
    double sum = 0;
    for (size_t k = 0; k < it->variables * it->labels; k++)
        sum += it->y[k] > 0 ? it->y[k] * log(it->y[k]) : 0;
    return sum;
}

static dcrf_status mean_field_start(dcrf_backend_iterate *it, const float *q, float coldness,
                                    double *entropy, dcrf_error *error) {
    if (q)
        copy_from_host(it, q);
    for (size_t k = 0; k < it->variables * it->labels; k++)
        it->logits[k] =
            q ? log(fmax(it->y[k], (double)SMALLEST_Q)) : -(double)coldness * it->unary[k];
    if (!q)
        softmax(it->logits, it->y, it->variables, it->labels);
    *entropy = entropy_of(it);
    return fake_refuse("mean_field_start", error);
}

/* The product over the members of clique p, but for the one given. */
static double product(const dcrf_backend_iterate *it, size_t p, size_t i, size_t but) {
    double all = 1;
    for (size_t c = it->offsets[p]; c < it->offsets[p + 1]; c++)
        all *= it->members[c] == but ? 1 : it->y[it->members[c] * it->labels + i];
    return all;
}

/* Add what the cliques want to `wanted`; returns their expected cost. */
static double add_cliques(const dcrf_backend_iterate *it, double *wanted) {
    double cost = 0;
    for (size_t p = 0; p < it->clique_count; p++) {
        cost += it->costs[p];
        for (size_t i = 0; i < it->labels; i++) {
            cost -= it->costs[p] * product(it, p, i, SIZE_MAX);
            for (size_t c = it->offsets[p]; c < it->offsets[p + 1]; c++)
                wanted[it->members[c] * it->labels + i] +=
                    it->costs[p] * product(it, p, i, it->members[c]);
        }
    }
    return cost;
}

static dcrf_status mean_field_step(dcrf_backend_iterate *it, const struct dcrf_backend_update *how,
                                   double *sums, dcrf_error *error) {
    const double damping = (double)how->damping, coldness = (double)how->coldness;
    const size_t count = it->variables * it->labels;
    double energy = 0, change = 0, *wanted = it->field[1];
    find_field(it, it->y, it->field[0]);
    for (size_t k = 0; k < count; k++) {
        const double seen = it->field[0][k];
        wanted[k] = -it->unary[k] - 2 * it->own_factor * seen;
        energy += it->y[k] * it->unary[k] + seen * (it->all_factor + it->own_factor * it->y[k]);
    }
    sums[DCRF_BACKEND_CLIQUE_COST] = add_cliques(it, wanted);
    for (size_t k = 0; k < count; k++)
        it->logits[k] = damping * it->logits[k] + (1 - damping) * coldness * wanted[k];
    softmax(it->logits, it->next, it->variables, it->labels);
    for (size_t k = 0; k < count; k++)
        change += fabs(it->next[k] - it->y[k]);
    memcpy(it->y, it->next, count * sizeof *it->y);
    sums[DCRF_SOFTMAX_ENERGY] = energy;
    sums[DCRF_SOFTMAX_CHANGE] = change;
    sums[DCRF_SOFTMAX_ENTROPY] = entropy_of(it);
    return fake_refuse("mean_field_step", error);
}

/* ---- QP ------------------------------------------------------------------------------------- */

/* h_pi = sum over the members of 1 - y */
static double mass_elsewhere(const dcrf_backend_iterate *it, const double *y, size_t p, size_t i) {
    double h = 0;
    for (size_t c = it->offsets[p]; c < it->offsets[p + 1]; c++)
        h += 1 - y[it->members[c] * it->labels + i];
    return h;
}

/* The vertex, f and L at y and z. */
static void find_vertex(dcrf_backend_iterate *it, double *sums) {
    const size_t labels = it->labels, count = it->variables * labels;
    double *gradient = it->logits, objective = 0, linear = 0;
    find_field(it, it->y, it->field[0]);
    for (size_t k = 0; k < count; k++) {
        gradient[k] = it->unary[k] + 2 * it->own_factor * it->field[0][k];
        objective += it->y[k] * it->unary[k] +
                     it->field[0][k] * (it->all_factor + it->own_factor * it->y[k]);
        it->next[k] = 0;
    }
    for (size_t p = 0; p < it->clique_count; p++)
        for (size_t i = 0; i < labels; i++) {
            const double z = it->z[p * labels + i], h = mass_elsewhere(it, it->y, p, i);
            for (size_t c = it->offsets[p]; c < it->offsets[p + 1]; c++)
                gradient[it->members[c] * labels + i] -= it->costs[p] * (1 - z);
            objective += it->costs[p] * (z + (1 - z) * h - (i > 0));
            linear += it->costs[p] * ((h > 1) - z) * (1 - h);
        }
    for (size_t a = 0; a < it->variables; a++) {
        size_t best = 0;
        for (size_t i = 1; i < labels; i++)
            if (gradient[a * labels + i] < gradient[a * labels + best])
                best = i;
        it->next[a * labels + best] = 1;
    }
    for (size_t k = 0; k < count; k++)
        linear += gradient[k] * (it->next[k] - it->y[k]);
    sums[DCRF_BACKEND_QP_OBJECTIVE] = objective;
    sums[DCRF_BACKEND_QP_LINEAR] = linear;
}

static dcrf_status qp_start(dcrf_backend_iterate *it, const float *y, double *sums,
                            dcrf_error *error) {
    if (y)
        copy_from_host(it, y);
    for (size_t a = 0; a < it->variables && !y; a++) {
        size_t best = 0;
        for (size_t i = 0; i < it->labels; i++) {
            it->y[a * it->labels + i] = 0;
            best = it->unary[a * it->labels + i] < it->unary[a * it->labels + best] ? i : best;
        }
        it->y[a * it->labels + best] = 1;
    }
    for (size_t k = 0; k < it->clique_count * it->labels; k++)
        it->z[k] = mass_elsewhere(it, it->y, k / it->labels, k % it->labels) > 1;
    find_vertex(it, sums);
    return fake_refuse("qp_start", error);
}

static dcrf_status qp_bend(dcrf_backend_iterate *it, double *quadratic, dcrf_error *error) {
    const size_t labels = it->labels;
    *quadratic = 0;
    find_field(it, it->next, it->field[1]);
    for (size_t k = 0; k < it->variables * labels; k++)
        *quadratic +=
            it->own_factor * (it->next[k] - it->y[k]) * (it->field[1][k] - it->field[0][k]);
    for (size_t k = 0; k < it->clique_count * labels; k++) {
        const size_t p = k / labels, i = k % labels;
        const double h = mass_elsewhere(it, it->y, p, i);
        *quadratic -=
            it->costs[p] * ((h > 1) - it->z[k]) * (mass_elsewhere(it, it->next, p, i) - h);
    }
    return fake_refuse("qp_bend", error);
}

static dcrf_status qp_move(dcrf_backend_iterate *it, double step, double *sums, dcrf_error *error) {
    for (size_t k = 0; k < it->clique_count * it->labels; k++) {
        const double h = mass_elsewhere(it, it->y, k / it->labels, k % it->labels);
        it->z[k] += step * ((h > 1) - it->z[k]);
    }
    for (size_t k = 0; k < it->variables * it->labels; k++)
        it->y[k] += step * (it->next[k] - it->y[k]);
    find_vertex(it, sums);
    return fake_refuse("qp_move", error);
}

const struct dcrf_backend_iterate_methods fake_iterate = {.make = iterate_make,
                                                          .free = iterate_free,
                                                          .view = iterate_view,
                                                          .read = iterate_read,
                                                          .labels = iterate_labels,
                                                          .mean_field_start = mean_field_start,
                                                          .mean_field_step = mean_field_step,
                                                          .qp_start = qp_start,
                                                          .qp_bend = qp_bend,
                                                          .qp_move = qp_move};
