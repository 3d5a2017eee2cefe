/* Solves the LP of the undecided variables (energy: see knowledge.h) by the method of lp_huber.c:
 *
 *   r_ai = cost_ai - sum_b K_ab clip((z_bi - z_ai) / epsilon),   y = P(z - tau r),
 *
 * accelerated, with epsilon halved after a fixed number of steps. Every r proves the lower bound
 * sum_a min_i r_ai over the possible labels, and so does every mixture of them; the best one is
 * moved by line search towards the newest and the average. With hundreds of variables a step
 * takes microseconds, so thousands are affordable, in double, with lines as narrow as needed. */
#include "proof/rest.h"

#include "backend/simplex.h"
#include "core/error.h"
#include "core/owned.h"

#include <math.h>
#include <string.h>

#define MOST_VARIABLES 1024
#define FIRST_EPSILON 0.25
#define NARROWEST (1.0 / 2048)
#define STEPS_PER_EPSILON 80
/* Columns of the matrix passed through the operators together. */
#define COLUMNS 16
#define HALVINGS 12

struct rest {
    struct dcrf_knowledge *known;
    size_t count, labels;
    uint32_t *variable; /* index in the model */
    double *matrix;     /* count x count, the diagonal zero */
    double *row_sum;
    /* count x labels each: marginals, flows (the sums over b) and mixtures of flows. */
    float *y, *previous;
    double *z, *flow, *average, *best;
    uint16_t *label, *best_label;
    double best_energy, bound;
};

static bool allocate(struct rest *rest, struct dcrf_owned *owned) {
    const size_t n = rest->count, numbers = rest->count * rest->labels;
    rest->variable = dcrf_own(owned, n, sizeof *rest->variable);
    rest->matrix = dcrf_own(owned, n, n * sizeof *rest->matrix);
    rest->row_sum = dcrf_own_zero(owned, n, sizeof *rest->row_sum);
    rest->y = dcrf_own(owned, numbers, sizeof *rest->y);
    rest->previous = dcrf_own(owned, numbers, sizeof *rest->previous);
    rest->z = dcrf_own(owned, numbers, sizeof *rest->z);
    rest->flow = dcrf_own(owned, numbers, sizeof *rest->flow);
    rest->average = dcrf_own_zero(owned, numbers, sizeof *rest->average);
    rest->best = dcrf_own_zero(owned, numbers, sizeof *rest->best);
    rest->label = dcrf_own(owned, n, sizeof *rest->label);
    rest->best_label = dcrf_own(owned, n, sizeof *rest->best_label);
    return !owned->is_short;
}

static const double *costs_of(const struct rest *rest, size_t a) {
    return rest->known->cost + rest->variable[a] * rest->labels;
}

static const uint8_t *possible_at(const struct rest *rest, size_t a) {
    return rest->known->possible + rest->variable[a] * rest->labels;
}

static dcrf_status read_matrix(struct rest *rest, dcrf_error *error) {
    const size_t n = rest->count;
    DCRF_SCOPED double *columns = dcrf_allocate(n, COLUMNS * sizeof *columns);
    if (!columns)
        return dcrf_fail_memory(error, "the rest of a proof");
    for (size_t first = 0; first < n; first += COLUMNS) {
        const size_t count = n - first < COLUMNS ? n - first : COLUMNS;
        TRY(dcrf_knowledge_columns(rest->known, rest->variable, n, first, count, columns, error));
        for (size_t a = 0; a < n; a++)
            for (size_t c = 0; c < count; c++) {
                const double value = a == first + c ? 0 : columns[a * count + c];
                rest->matrix[a * n + first + c] = value;
                rest->row_sum[a] += value;
            }
    }
    return DCRF_OK;
}

/* ---- what is proven ------------------------------------------------------------------------- */

/* sum_a min_i (cost - flow), where flow = (1 - at) from + at to. */
static double bound_of(const struct rest *rest, const double *from, const double *to, double at) {
    double sum = 0;
    for (size_t a = 0; a < rest->count; a++) {
        const double *cost = costs_of(rest, a), *x = from + a * rest->labels,
                     *y = to + a * rest->labels;
        const uint8_t *possible = possible_at(rest, a);
        double lowest = INFINITY;
        for (size_t i = 0; i < rest->labels; i++)
            if (possible[i])
                lowest = fmin(lowest, cost[i] - x[i] - at * (y[i] - x[i]));
        sum += lowest;
    }
    return sum;
}

/* Ternary search: the bound is concave along the line. */
static void improve(struct rest *rest, const double *candidate) {
    double low = 0, high = 1;
    for (int k = 0; k < HALVINGS; k++) {
        const double left = low + (high - low) / 3, right = high - (high - low) / 3;
        if (bound_of(rest, rest->best, candidate, left) <
            bound_of(rest, rest->best, candidate, right))
            low = left;
        else
            high = right;
    }
    const double at = (low + high) / 2, bound = bound_of(rest, rest->best, candidate, at);
    if (!(bound > rest->bound))
        return;
    for (size_t k = 0; k < rest->count * rest->labels; k++)
        rest->best[k] += at * (candidate[k] - rest->best[k]);
    rest->bound = bound_of(rest, rest->best, rest->best, 0);
}

/* ---- labellings ----------------------------------------------------------------------------- */

static double energy_of(const struct rest *rest, const uint16_t *label) {
    double sum = 0;
    for (size_t a = 0; a < rest->count; a++) {
        sum += costs_of(rest, a)[label[a]];
        for (size_t b = 0; b < rest->count; b++)
            sum += label[a] != label[b] ? rest->matrix[a * rest->count + b] : 0;
    }
    return sum;
}

static void consider(struct rest *rest) {
    for (size_t a = 0; a < rest->count; a++) {
        const float *y = rest->y + a * rest->labels;
        size_t best = rest->best_label[a];
        for (size_t i = 0; i < rest->labels; i++)
            if (possible_at(rest, a)[i] && y[i] > y[best])
                best = i;
        rest->label[a] = (uint16_t)best;
    }
    const double energy = energy_of(rest, rest->label);
    if (energy < rest->best_energy) {
        rest->best_energy = energy;
        memcpy(rest->best_label, rest->label, rest->count * sizeof *rest->label);
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void find_flow(struct rest *rest, double epsilon) {
    const size_t n = rest->count, labels = rest->labels;
    memset(rest->flow, 0, n * labels * sizeof *rest->flow);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < a; b++) {
            const double k = rest->matrix[a * n + b];
            for (size_t i = 0; i < labels; i++) {
                const double t = (rest->z[b * labels + i] - rest->z[a * labels + i]) / epsilon;
                const double f = k * (t < -1 ? -1 : t > 1 ? 1 : t);
                rest->flow[a * labels + i] += f;
                rest->flow[b * labels + i] -= f;
            }
        }
}

/* Returns whether the momentum points uphill. */
static bool descend(struct rest *rest, double epsilon) {
    const size_t labels = rest->labels;
    double uphill = 0;
    memcpy(rest->previous, rest->y, rest->count * labels * sizeof *rest->y);
    for (size_t a = 0; a < rest->count; a++) {
        const double tau = epsilon / fmax(rest->row_sum[a], 1e-30);
        const double *cost = costs_of(rest, a), *z = rest->z + a * labels;
        const double *flow = rest->flow + a * labels;
        float *y = rest->y + a * labels;
        double lowest = INFINITY;
        for (size_t i = 0; i < labels; i++)
            if (possible_at(rest, a)[i])
                lowest = fmin(lowest, cost[i] - flow[i]);
        for (size_t i = 0; i < labels; i++)
            y[i] = possible_at(rest, a)[i]
                       ? (float)fmax(z[i] - tau * (cost[i] - flow[i] - lowest), -1e3)
                       : -1e6f;
        dcrf_simplex_project(y, labels);
        for (size_t i = 0; i < labels; i++)
            uphill += rest->row_sum[a] * (z[i] - (double)y[i]) *
                      ((double)y[i] - (double)rest->previous[a * labels + i]);
    }
    return uphill > 0;
}

static void step(struct rest *rest, double epsilon, double *momentum, double *total) {
    const size_t numbers = rest->count * rest->labels;
    find_flow(rest, epsilon);
    *total += *momentum;
    for (size_t k = 0; k < numbers; k++)
        rest->average[k] += *momentum / *total * (rest->flow[k] - rest->average[k]);
    improve(rest, rest->flow);
    improve(rest, rest->average);
    if (descend(rest, epsilon))
        *momentum = 1;
    const double next = (1 + sqrt(1 + 4 * *momentum * *momentum)) / 2;
    const double beta = (*momentum - 1) / next;
    *momentum = next;
    for (size_t k = 0; k < numbers; k++) {
        const double value =
            (double)rest->y[k] + beta * ((double)rest->y[k] - (double)rest->previous[k]);
        rest->z[k] = fmax(0, fmin(1, value));
    }
}

static void solve(struct rest *rest, double enough) {
    for (double epsilon = FIRST_EPSILON; epsilon >= NARROWEST; epsilon /= 2) {
        double momentum = 1, total = 0;
        for (size_t k = 0; k < rest->count * rest->labels; k++)
            rest->z[k] = (double)rest->y[k];
        for (int k = 0; k < STEPS_PER_EPSILON; k++) {
            if (rest->best_energy - rest->bound <= enough)
                return;
            step(rest, epsilon, &momentum, &total);
            consider(rest);
        }
    }
}

/* ---- the rest of a proof -------------------------------------------------------------------- */

bool dcrf_rest_is_small(const struct dcrf_knowledge *known) {
    return known->undecided > 0 && known->undecided <= MOST_VARIABLES &&
           known->model->cliques.count == 0;
}

static void begin(struct rest *rest, const float *y) {
    size_t k = 0;
    for (size_t a = 0; a < rest->known->model->variables; a++)
        if (rest->known->round[a] == 0) {
            rest->best_label[k] = rest->known->labels[a];
            memcpy(rest->y + k * rest->labels, y + a * rest->labels, rest->labels * sizeof *y);
            rest->variable[k++] = (uint32_t)a;
        }
}

/* As in groups.c: a label exceeding the smallest reduced cost by more than the excess is in no
 * optimal labelling. */
static void exclude(const struct rest *rest, double excess) {
    for (size_t a = 0; a < rest->count; a++) {
        const double *cost = costs_of(rest, a), *flow = rest->best + a * rest->labels;
        uint8_t *possible = rest->known->possible + rest->variable[a] * rest->labels;
        double lowest = INFINITY;
        for (size_t i = 0; i < rest->labels; i++)
            if (possible[i])
                lowest = fmin(lowest, cost[i] - flow[i]);
        for (size_t i = 0; i < rest->labels; i++)
            if (cost[i] - flow[i] - lowest > excess + rest->known->error[rest->variable[a]])
                possible[i] = 0;
    }
}

dcrf_status dcrf_rest_solve(struct dcrf_knowledge *known, float *y, bool may_exclude,
                            bool *is_better, double *excess, dcrf_error *error) {
    struct rest rest = {.known = known, .count = known->undecided, .labels = known->model->labels};
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    double errors = 0;
    *is_better = false;
    if (!allocate(&rest, &owned))
        return dcrf_fail_memory(error, "the rest of a proof");
    begin(&rest, y);
    TRY(read_matrix(&rest, error));
    for (size_t a = 0; a < rest.count; a++)
        errors += known->error[rest.variable[a]];
    const double before = rest.best_energy = energy_of(&rest, rest.best_label);
    rest.bound = bound_of(&rest, rest.best, rest.best, 0);
    solve(&rest, errors);
    *is_better = rest.best_energy < before;
    *excess = fmax(0, rest.best_energy - rest.bound) + errors;
    for (size_t a = 0; a < rest.count; a++) {
        known->labels[rest.variable[a]] = rest.best_label[a];
        memcpy(y + rest.variable[a] * rest.labels, rest.y + a * rest.labels,
               rest.labels * sizeof *y);
    }
    if (may_exclude)
        exclude(&rest, *excess);
    return DCRF_OK;
}
