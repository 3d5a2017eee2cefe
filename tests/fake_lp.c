/* The LP of the fake device: the steps of lp/lp_huber.c by plain loops. */
#include "fake_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNARY, Y, PREVIOUS, Z, METRIC, FLOAT_BLOCKS };

struct dcrf_backend_lp {
    dcrf_backend_device *device;
    const struct dcrf_dual_space *space;
    size_t variables, labels, stride, kernel_count;
    float *block[FLOAT_BLOCKS];
    double *dual[DCRF_BACKEND_DUALS], *clique[DCRF_BACKEND_DUALS];
    size_t clique_count;
    size_t *offsets;
    uint32_t *members;
    double *costs, *stiffness;
    double weights[16];
    const dcrf_operator *operators[16];
};

static size_t floats_of(const dcrf_backend_lp *lp) {
    return lp->variables * lp->stride;
}

static void lp_free(dcrf_backend_lp *lp) {
    fake_drop(lp->device);
    for (size_t k = 0; k < FLOAT_BLOCKS; k++)
        free(lp->block[k]);
    for (size_t k = 0; k < DCRF_BACKEND_DUALS; k++) {
        free(lp->dual[k]);
        free(lp->clique[k]);
    }
    free(lp->offsets);
    free(lp->members);
    free(lp->costs);
    free(lp->stiffness);
    free(lp);
}

static bool take_cliques(dcrf_backend_lp *lp, const struct dcrf_cliques *cliques) {
    const size_t count = cliques->count, members = cliques->offsets[count];
    lp->offsets = calloc(count + 1, sizeof *lp->offsets);
    lp->members = calloc(members + 1, sizeof *lp->members);
    lp->costs = calloc(count, sizeof(double));
    lp->stiffness = calloc(count, sizeof(double));
    if (!lp->offsets || !lp->members || !lp->costs || !lp->stiffness)
        return false;
    lp->clique_count = count;
    memcpy(lp->offsets, cliques->offsets, (count + 1) * sizeof *lp->offsets);
    memcpy(lp->members, cliques->members, members * sizeof *lp->members);
    memcpy(lp->costs, cliques->costs, count * sizeof *lp->costs);
    return true;
}

static dcrf_status lp_make(dcrf_backend_lp **out, dcrf_backend_device *device,
                           const struct dcrf_backend_model *model,
                           const struct dcrf_dual_space *space, dcrf_error *error) {
    const dcrf_status status = fake_refuse("lp_make", error);
    *out = NULL;
    if (status < 0)
        return status;
    if (model->cliques && space->form != DCRF_CLIQUE_MIN)
        return fake_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "the spread form is not on the fake device");
    dcrf_backend_lp *lp = calloc(1, sizeof *lp);
    if (!lp)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake LP");
    lp->device = device;
    fake_hold(device);
    lp->space = space;
    lp->variables = model->variables;
    lp->labels = model->labels;
    lp->stride = model->stride;
    bool has_all = true;
    for (size_t k = 0; k < FLOAT_BLOCKS; k++)
        has_all &= (lp->block[k] = calloc(floats_of(lp), sizeof(float))) != NULL;
    for (size_t k = 0; k < DCRF_BACKEND_DUALS; k++)
        has_all &= (lp->dual[k] = calloc(floats_of(lp), sizeof(double))) != NULL &&
                   (lp->clique[k] = calloc(floats_of(lp), sizeof(double))) != NULL;
    has_all = has_all && (!model->cliques || take_cliques(lp, model->cliques));
    if (!has_all) {
        lp_free(lp);
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake LP");
    }
    memcpy(lp->block[UNARY], model->unary, floats_of(lp) * sizeof(float));
    for (size_t m = 0; m < model->groups->kernel_count; m++) {
        lp->operators[lp->kernel_count] = model->groups->operators[m];
        lp->weights[lp->kernel_count++] = model->groups->weights[m];
    }
    *out = lp;
    return DCRF_OK;
}

static dcrf_status lp_start(dcrf_backend_lp *lp, const float *y, const uint16_t *labels,
                            const float *metric, dcrf_error *error) {
    for (size_t p = 0; p < lp->clique_count; p++)
        lp->stiffness[p] = lp->space->stiffness[p];
    for (size_t k = 0; k < floats_of(lp); k++) {
        lp->block[Y][k] = y ? y[k] : labels[k / lp->stride] == k % lp->stride;
        lp->dual[DCRF_BACKEND_AVERAGE][k] = lp->clique[DCRF_BACKEND_AVERAGE][k] = 0;
    }
    memcpy(lp->block[METRIC], metric, lp->variables * sizeof *metric);
    return fake_refuse("lp_start", error);
}

static dcrf_status lp_restart(dcrf_backend_lp *lp, dcrf_error *error) {
    memcpy(lp->block[Z], lp->block[Y], floats_of(lp) * sizeof(float));
    return fake_refuse("lp_restart", error);
}

static dcrf_status lp_read(dcrf_backend_lp *lp, enum dcrf_backend_marginals which, float *block,
                           dcrf_error *error) {
    memcpy(block, lp->block[which == DCRF_BACKEND_Y ? Y : Z], floats_of(lp) * sizeof *block);
    return fake_refuse("lp_read", error);
}

static dcrf_status lp_labels(dcrf_backend_lp *lp, uint16_t *labels, dcrf_error *error) {
    for (size_t a = 0; a < lp->variables; a++) {
        const float *row = lp->block[Y] + a * lp->stride;
        labels[a] = 0;
        for (size_t i = 1; i < lp->labels; i++)
            if (row[i] > row[labels[a]])
                labels[a] = (uint16_t)i;
    }
    return fake_refuse("lp_labels", error);
}

static const float *lp_view(const dcrf_backend_lp *lp) {
    (void)lp;
    return NULL;
}

static bool lp_view_best(const dcrf_backend_lp *lp, double **pairwise, double **clique) {
    (void)lp, (void)pairwise, (void)clique;
    return false;
}

static dcrf_status lp_read_best(dcrf_backend_lp *lp, double *pairwise, double *clique,
                                dcrf_error *error) {
    memcpy(pairwise, lp->dual[DCRF_BACKEND_BEST], floats_of(lp) * sizeof *pairwise);
    if (lp->clique_count > 0)
        memcpy(clique, lp->clique[DCRF_BACKEND_BEST], floats_of(lp) * sizeof *clique);
    return fake_refuse("lp_read_best", error);
}

static dcrf_status lp_write_best(dcrf_backend_lp *lp, const double *pairwise, dcrf_error *error) {
    memcpy(lp->dual[DCRF_BACKEND_BEST], pairwise, floats_of(lp) * sizeof *pairwise);
    return fake_refuse("lp_write_best", error);
}

/* The last node that is not above the value, and the part of the way to the next one. */
static size_t find_node(const dcrf_levels *levels, float value, double *part) {
    size_t node = 0;
    while (node + 1 < levels->count && levels->levels[node + 1] <= value)
        node++;
    *part = 0;
    if (node + 1 < levels->count && value > levels->levels[node])
        *part = (double)((value - levels->levels[node]) /
                         (levels->levels[node + 1] - levels->levels[node]));
    return node;
}

static double between_nodes(const dcrf_levels *levels, float y_a, float y_b) {
    double p, q, value = 0;
    const size_t i = find_node(levels, y_a, &p), k = find_node(levels, y_b, &q);
    for (size_t u = 0; u < 2; u++)
        for (size_t v = 0; v < 2; v++) {
            const double weight = (u ? p : 1 - p) * (v ? q : 1 - q);
            if (weight > 0)
                value += weight * (double)levels->table[(i + u) * levels->count + k + v];
        }
    return value;
}

static double flow(const dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                   const dcrf_levels *levels, size_t a, size_t i) {
    const float *z = lp->block[Z];
    const struct dcrf_line along = {.epsilon = shape->epsilon, .y = z, .stride = lp->stride};
    double sum = 0;
    for (size_t m = 0; m < lp->kernel_count; m++)
        for (size_t b = 0; b < lp->variables; b++)
            sum += lp->weights[m] * fake_row(lp->operators[m], a)[b] *
                   (lp->operators[m]->methods->line
                        ? fake_line_value(&along, a, b, i)
                        : between_nodes(levels, z[a * lp->stride + i], z[b * lp->stride + i]));
    return sum;
}

static dcrf_status lp_find_point(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                                 double threshold, const struct dcrf_interrupt *interrupt,
                                 dcrf_error *error) {
    (void)interrupt;
    const size_t bins = shape->bins;
    float *nodes = calloc((bins + 1) * bins, sizeof *nodes);
    if (!nodes)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: fake levels");
    const dcrf_levels levels = {bins, nodes, nodes + bins};
    dcrf_pair_fill_levels(shape, nodes, nodes + bins);
    for (size_t i = 0; i < lp->labels; i++) {
        double largest = 0;
        for (size_t a = 0; a < lp->variables; a++)
            largest = fmax(largest, (double)lp->block[Z][a * lp->stride + i]);
        for (size_t a = 0; a < lp->variables; a++)
            lp->dual[DCRF_BACKEND_CURRENT][a * lp->stride + i] =
                largest > threshold ? flow(lp, shape, &levels, a, i) : 0;
    }
    free(nodes);
    return fake_refuse("lp_find_point", error);
}

static void mix(dcrf_backend_lp *lp, enum dcrf_backend_dual into, enum dcrf_backend_dual from,
                double weight) {
    for (size_t k = 0; k < floats_of(lp); k++) {
        lp->dual[into][k] += weight * (lp->dual[from][k] - lp->dual[into][k]);
        lp->clique[into][k] += weight * (lp->clique[from][k] - lp->clique[into][k]);
    }
}

/* A alpha + v */
static double value(const dcrf_backend_lp *lp, enum dcrf_backend_dual which, size_t k) {
    return lp->dual[which][k] + lp->clique[which][k];
}

/* The label with the lowest reduced cost of best + t (to - best). */
static size_t cheapest(const dcrf_backend_lp *lp, enum dcrf_backend_dual to, double t, size_t a,
                       double *cost) {
    size_t best = 0;
    *cost = (double)INFINITY;
    for (size_t i = 0; i < lp->labels; i++) {
        const size_t k = a * lp->stride + i;
        const double from = value(lp, DCRF_BACKEND_BEST, k);
        const double here = (double)lp->block[UNARY][k] - from - t * (value(lp, to, k) - from);
        if (here < *cost) {
            best = i;
            *cost = here;
        }
    }
    return best;
}

/* d/dt sum_a min_i of the reduced costs of best + t (to - best) */
static double slope_at(const dcrf_backend_lp *lp, enum dcrf_backend_dual to, double t) {
    double slope = 0;
    for (size_t a = 0; a < lp->variables; a++) {
        double cost;
        const size_t i = cheapest(lp, to, t, a, &cost) + a * lp->stride;
        slope -= value(lp, to, i) - value(lp, DCRF_BACKEND_BEST, i);
    }
    return slope;
}

static double bound_of_best(const dcrf_backend_lp *lp, struct dcrf_roundings roundings) {
    double lowest = 0, magnitude = 0;
    for (size_t a = 0; a < lp->variables; a++) {
        double cost;
        cheapest(lp, DCRF_BACKEND_BEST, 0, a, &cost);
        lowest += cost;
        magnitude += fabs(cost);
    }
    return dcrf_dual_bound_of_sums(lp->space, roundings, lowest, magnitude);
}

static dcrf_status lp_reset_best(dcrf_backend_lp *lp, struct dcrf_roundings roundings,
                                 double *bound, dcrf_error *error) {
    for (size_t k = 0; k < floats_of(lp); k++) {
        lp->dual[DCRF_BACKEND_BEST][k] = 0;
        lp->clique[DCRF_BACKEND_BEST][k] =
            lp->clique_count > 0 ? (double)lp->space->clique_weight[k / lp->stride] : 0;
    }
    *bound = bound_of_best(lp, roundings);
    return fake_refuse("lp_reset_best", error);
}

/* The theta with sum of max(0, v - theta) = total, by bisection, which is another way than the
 * library's. */
static double find_threshold(const double *v, size_t count, double total) {
    double low = -(double)INFINITY, high = -(double)INFINITY;
    for (size_t i = 0; i < count; i++)
        high = fmax(high, v[i]);
    low = high - total;
    for (int k = 0; k < 60; k++) {
        const double theta = (low + high) / 2;
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += fmax(0, v[i] - theta);
        *(sum > total ? &low : &high) = theta;
    }
    return low;
}

/* One label of a clique: v is scaled, so that its sum is the cost. */
static void project_clique(dcrf_backend_lp *lp, size_t p, size_t i, double step, double *column) {
    const size_t begin = lp->offsets[p], count = lp->offsets[p + 1] - begin;
    double *out = lp->clique[DCRF_BACKEND_CURRENT], sum = 0;
    for (size_t k = 0; k < count; k++)
        column[k] = -step * (double)lp->block[Z][lp->members[begin + k] * lp->stride + i];
    const double theta = find_threshold(column, count, lp->costs[p]);
    for (size_t k = 0; k < count; k++)
        sum += column[k] = fmax(0, column[k] - theta);
    for (size_t k = 0; k < count; k++)
        out[lp->members[begin + k] * lp->stride + i] = column[k] * (lp->costs[p] / sum);
}

static dcrf_status lp_find_cliques(dcrf_backend_lp *lp, double epsilon, dcrf_error *error) {
    double *column = calloc(lp->variables, sizeof *column);
    if (!column)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: fake cliques");
    memset(lp->clique[DCRF_BACKEND_CURRENT], 0, floats_of(lp) * sizeof(double));
    for (size_t p = 0; p < lp->clique_count; p++)
        for (size_t i = 0; i < lp->labels && lp->costs[p] > 0; i++)
            project_clique(lp, p, i, lp->stiffness[p] / epsilon, column);
    free(column);
    return fake_refuse("lp_find_cliques", error);
}

static bool descend(dcrf_backend_lp *lp, double epsilon, struct dcrf_backend_advanced *done) {
    const float *z = lp->block[Z], *unary = lp->block[UNARY];
    double *v = calloc(lp->labels, sizeof *v);
    if (!v)
        return false;
    memcpy(lp->block[PREVIOUS], lp->block[Y], floats_of(lp) * sizeof(float));
    done->objective = done->uphill = 0;
    for (size_t a = 0; a < lp->variables; a++) {
        const size_t row = a * lp->stride;
        const double metric = (double)lp->block[METRIC][a];
        for (size_t i = 0; i < lp->labels; i++) {
            const double cost = (double)unary[row + i] - value(lp, DCRF_BACKEND_CURRENT, row + i);
            v[i] = (double)z[row + i] - epsilon / metric * cost;
            done->objective += (double)z[row + i] * cost;
        }
        const double theta = find_threshold(v, lp->labels, 1);
        for (size_t i = 0; i < lp->labels; i++)
            lp->block[Y][row + i] = (float)fmax(0, v[i] - theta);
        for (size_t k = row; k < row + lp->labels; k++)
            done->uphill += metric * ((double)z[k] - (double)lp->block[Y][k]) *
                            ((double)lp->block[Y][k] - (double)lp->block[PREVIOUS][k]);
    }
    free(v);
    return true;
}

static void extrapolate(dcrf_backend_lp *lp, float beta) {
    for (size_t k = 0; k < floats_of(lp); k++) {
        const float y = lp->block[Y][k];
        lp->block[Z][k] = fmaxf(0, fminf(1, y + beta * (y - lp->block[PREVIOUS][k])));
    }
}

/* All the way, or up to the last of the steps of 1 / 128 where the bound rises. */
static double find_weight(const dcrf_backend_lp *lp, enum dcrf_backend_dual to, double of_errors) {
    size_t step = 128;
    if (slope_at(lp, to, 1) - of_errors < 0)
        do
            step--;
        while (step > 0 && !(slope_at(lp, to, (double)step / 128) - of_errors > 0));
    return (double)step / 128;
}

static dcrf_status lp_advance(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                              struct dcrf_backend_advanced *done, dcrf_error *error) {
    const enum dcrf_backend_dual targets[] = {DCRF_BACKEND_CURRENT, DCRF_BACKEND_AVERAGE};
    struct dcrf_roundings best = how->roundings[DCRF_BACKEND_BEST];
    dcrf_status status = fake_refuse("lp_advance", error);
    mix(lp, DCRF_BACKEND_AVERAGE, DCRF_BACKEND_CURRENT, how->average_weight);
    for (size_t t = 0; t < (how->has_average ? 2 : 1) && status == DCRF_OK; t++) {
        const struct dcrf_roundings to = how->roundings[targets[t]];
        const double weight =
            find_weight(lp, targets[t], dcrf_dual_error_slope(lp->space, best, to));
        done->weights[t] = weight;
        best = dcrf_roundings_mix(best, to, weight);
        mix(lp, DCRF_BACKEND_BEST, targets[t], weight);
        done->bounds[t] = bound_of_best(lp, best);
    }
    if (status < 0)
        return status;
    if (!descend(lp, how->epsilon, done))
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake step");
    extrapolate(lp, done->uphill > 0 ? 0 : how->beta);
    return DCRF_OK;
}

static dcrf_status lp_energy(dcrf_backend_lp *lp, double *unary, double *pairwise,
                             dcrf_error *error) {
    uint16_t *x = calloc(lp->variables, sizeof *x);
    dcrf_status status = x ? lp_labels(lp, x, error)
                           : fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake energy");
    *unary = *pairwise = 0;
    for (size_t a = 0; a < lp->variables && status == DCRF_OK; a++) {
        *unary += (double)lp->block[UNARY][a * lp->stride + x[a]];
        for (size_t m = 0; m < lp->kernel_count; m++)
            for (size_t b = 0; b < lp->variables; b++)
                if (x[a] != x[b])
                    *pairwise += lp->weights[m] * fake_row(lp->operators[m], a)[b];
    }
    free(x);
    return status < 0 ? status : fake_refuse("lp_energy", error);
}

const struct dcrf_backend_lp_methods fake_lp = {.make = lp_make,
                                                .free = lp_free,
                                                .start = lp_start,
                                                .restart = lp_restart,
                                                .view = lp_view,
                                                .read = lp_read,
                                                .labels = lp_labels,
                                                .view_best = lp_view_best,
                                                .read_best = lp_read_best,
                                                .reset_best = lp_reset_best,
                                                .write_best = lp_write_best,
                                                .find_point = lp_find_point,
                                                .find_cliques = lp_find_cliques,
                                                .advance = lp_advance,
                                                .energy = lp_energy};
