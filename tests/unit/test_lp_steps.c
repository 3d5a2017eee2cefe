/* The LP steps that a backend supplies (backend/backend.h), against plain loops in double over
 * dense matrices: the point of z, its cliques, mixtures, the bound, y and the next z. With a
 * device, tests those of the device. */
#include "toy.h"

#include "backend/make.h"
#include "energy/columns.h"
#include "filter/operator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 16
#define LABELS 19
#define ROW 24
#define STEPS 12
#define MODELS 48
#define MOST_CUTS 32

enum { CURRENT, AVERAGE, BEST, DUALS };

/* A kernel's columns: for Potts the labels, with length 1/2. */
struct kernel_cuts {
    size_t count;
    uint8_t sets[MOST_CUTS * LABELS];
    double lengths[MOST_CUTS];
};

struct steps {
    const struct toy *toy;
    struct kernel_cuts cuts[TOY_KERNELS];
    struct dcrf_dual_space space;
    const struct dcrf_backend_lp_methods *methods;
    dcrf_backend_lp *lp;
    size_t stride;
    double size; /* of energies and bounds */
    float metric[MOST];

    /* The oracle's y and z are read back after each step, so that errors do not accumulate. */
    float y[MOST * ROW], z[MOST * ROW];
    double dual[DUALS][MOST][LABELS]; /* A alpha + v */
};

static dcrf_status make(void *user, const struct dcrf_backend *backend, dcrf_backend_device *device,
                        const struct dcrf_backend_model *model, dcrf_error *error) {
    struct steps *s = user;
    s->methods = backend->lp;
    return s->methods->make(&s->lp, device, model, &s->space, error);
}

static void read_marginals(struct steps *s) {
    assert_int_equal(s->methods->read(s->lp, DCRF_BACKEND_Y, s->y, NULL), DCRF_OK);
    assert_int_equal(s->methods->read(s->lp, DCRF_BACKEND_Z, s->z, NULL), DCRF_OK);
}

/* ---- the oracle ----------------------------------------------------------------------------- */

/* The theta with sum of max(0, v - theta) = total, by bisection. */
static double find_threshold(const double *v, size_t count, double total) {
    double high = v[0];
    for (size_t i = 1; i < count; i++)
        high = fmax(high, v[i]);
    double low = high - total;
    for (int k = 0; k < 60; k++) {
        const double theta = (low + high) / 2;
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += fmax(0, v[i] - theta);
        *(sum > total ? &low : &high) = theta;
    }
    return low;
}

static struct kernel_cuts cuts_of(const struct dcrf_column_group *group, size_t labels) {
    struct kernel_cuts cuts = {.count = group->count};
    assert_true(cuts.count <= MOST_CUTS);
    if (group->cuts)
        dcrf_cuts_sets(group->cuts, cuts.sets);
    for (size_t c = 0; c < cuts.count; c++) {
        cuts.lengths[c] = group->cuts ? group->cuts->lengths[c] : 0.5;
        if (!group->cuts)
            cuts.sets[c * labels + c] = 1;
    }
    return cuts;
}

static bool is_potts(const struct steps *s, size_t kernel) {
    return !s->space.columns->groups[s->space.columns->group_of[kernel]].cuts;
}

/* z of one cut, for all variables. Is it alive? */
static bool find_column(const struct steps *s, size_t kernel, size_t cut, double threshold,
                        double *column) {
    const struct toy *toy = s->toy;
    double largest = 0, smallest = is_potts(s, kernel) ? 0 : 1;
    for (size_t a = 0; a < toy->variables; a++) {
        column[a] = 0;
        for (size_t i = 0; i < toy->labels; i++)
            if (s->cuts[kernel].sets[cut * toy->labels + i])
                column[a] += (double)s->z[a * s->stride + i];
        column[a] = fmin(column[a], 1);
        largest = fmax(largest, column[a]);
        smallest = fmin(smallest, column[a]);
    }
    return largest - smallest > threshold;
}

static void add_kernel(struct steps *s, size_t kernel, double epsilon, double threshold) {
    const struct toy *toy = s->toy;
    double column[MOST];
    for (size_t c = 0; c < s->cuts[kernel].count; c++) {
        if (!find_column(s, kernel, c, threshold, column))
            continue;
        for (size_t a = 0; a < toy->variables; a++) {
            double sum = 0;
            for (size_t b = 0; b < toy->variables; b++)
                sum += toy->matrix[kernel][a * toy->variables + b] *
                       fmax(-1, fmin(1, (column[b] - column[a]) / epsilon));
            for (size_t i = 0; i < toy->labels; i++)
                if (s->cuts[kernel].sets[c * toy->labels + i])
                    s->dual[CURRENT][a][i] += 2 * s->cuts[kernel].lengths[c] * sum;
        }
    }
}

static void find_point(struct steps *s, double epsilon, double threshold) {
    memset(s->dual[CURRENT], 0, sizeof s->dual[CURRENT]);
    for (size_t m = 0; m < TOY_KERNELS; m++)
        add_kernel(s, m, epsilon, threshold);
}

static void add_cliques(struct steps *s, double epsilon) {
    const struct toy *toy = s->toy;
    for (size_t p = 0; p < toy->cliques; p++)
        for (size_t i = 0; i < toy->labels && toy->costs[p] > 0; i++) {
            const size_t *members = toy->members + toy->offsets[p];
            const size_t count = toy->offsets[p + 1] - toy->offsets[p];
            double column[MOST];
            for (size_t k = 0; k < count; k++)
                column[k] =
                    -s->space.stiffness[p] / epsilon * (double)s->z[members[k] * s->stride + i];
            const double theta = find_threshold(column, count, toy->costs[p]);
            for (size_t k = 0; k < count; k++)
                s->dual[CURRENT][members[k]][i] += fmax(0, column[k] - theta);
        }
}

static void mix(struct steps *s, int into, int from, double weight) {
    for (size_t a = 0; a < s->toy->variables; a++)
        for (size_t i = 0; i < s->toy->labels; i++)
            s->dual[into][a][i] += weight * (s->dual[from][a][i] - s->dual[into][a][i]);
}

/* The bound of best + t (to - best), before subtracting rounding error. */
static double bound_at(const struct steps *s, int to, double t) {
    const struct toy *toy = s->toy;
    double bound = 0;
    for (size_t p = 0; p < toy->cliques; p++)
        bound += toy->costs[p];
    for (size_t a = 0; a < toy->variables; a++) {
        double lowest = (double)INFINITY;
        for (size_t i = 0; i < toy->labels; i++)
            lowest = fmin(lowest, toy->unary[a * toy->labels + i] - s->dual[BEST][a][i] -
                                      t * (s->dual[to][a][i] - s->dual[BEST][a][i]));
        bound += lowest;
    }
    return bound;
}

/* ---- comparisons ---------------------------------------------------------------------------- */

static void assert_near(double one, double other, double tolerance) {
    if (!(fabs(one - other) <= tolerance))
        fail_msg("%.9g and %.9g differ by more than %g", one, other, tolerance);
}

/* Best moves until its bound falls, to a multiple of 1/128: no other such point on the segment is
 * better by more than the bound changes between two of them. The claimed bound is what the point
 * proves minus rounding error, never more. */
static void check_improvement(struct steps *s, int to, double weight, double claimed) {
    const double size = s->size, found = bound_at(s, to, weight);
    assert_true(weight >= 0 && weight <= 1 && weight * 128 == floor(weight * 128));
    const double next = bound_at(s, to, fmin(1, weight + 1.0 / 128));
    for (int k = 0; k <= 128; k++)
        assert_true(bound_at(s, to, k / 128.0) <= fmax(found, next) + 1e-5 * size);
    if (weight > 0) {
        assert_true(claimed <= found + 1e-6 * size);
        assert_true(claimed >= found - 1e-4 * size);
    }
    mix(s, BEST, to, weight);
}

/* y of plain loops, by row. */
static void project_row(double *row, size_t labels) {
    const double theta = find_threshold(row, labels, 1);
    for (size_t i = 0; i < labels; i++)
        row[i] = fmax(0, row[i] - theta);
}

/* K x of all kernels including the diagonal, which the toy's matrices omit. */
static double filter(const struct steps *s, double x[MOST][LABELS], size_t a, size_t i) {
    const struct toy *toy = s->toy;
    double sum = s->space.sums[a] * x[a][i];
    for (size_t b = 0; b < toy->variables; b++)
        for (size_t m = 0; m < TOY_KERNELS; m++)
            sum += toy->matrix[m][a * toy->variables + b] * (x[b][i] - x[a][i]);
    return sum;
}

/* The same plus the means over cliques. */
static double filter_all(const struct steps *s, double x[MOST][LABELS], size_t a, size_t i) {
    const struct toy *toy = s->toy;
    double sum = filter(s, x, a, i);
    for (size_t p = 0; p < toy->cliques; p++) {
        const double size = (double)(toy->offsets[p + 1] - toy->offsets[p]);
        double mean = 0;
        bool is_member = false;
        for (size_t k = toy->offsets[p]; k < toy->offsets[p + 1]; k++) {
            mean += x[toy->members[k]][i] / size;
            is_member |= toy->members[k] == a;
        }
        sum += is_member ? s->space.stiffness[p] * mean : 0;
    }
    return sum;
}

/* Labels with an entry of y above `still`. */
static void find_moving(const struct toy *toy, double y[MOST][LABELS], double still, bool *moves) {
    for (size_t i = 0; i < toy->labels; i++) {
        moves[i] = false;
        for (size_t a = 0; a < toy->variables; a++)
            moves[i] |= y[a][i] > still;
    }
}

/* The row's moving entries become the projection of `goal`, with the same sum. */
static void project_moving(const bool *moves, const double *goal, size_t labels, double *row) {
    double values[LABELS], total = 0;
    size_t count = 0;
    for (size_t i = 0; i < labels; i++)
        if (moves[i]) {
            values[count++] = goal[i];
            total += row[i];
        }
    const double theta = total > 0 ? find_threshold(values, count, total) : 0;
    for (size_t i = 0; i < labels && total > 0; i++)
        if (moves[i])
            row[i] = fmax(0, goal[i] - theta);
}

/* Inner steps by plain loops from y = P(base), and the decreases of the majorant at w. Only labels
 * with an entry above `still` move. */
static void step_inside(const struct steps *s, const float *z,
                        const struct dcrf_backend_advance *how, double still,
                        double base[MOST][LABELS], double y[MOST][LABELS], double *decrease) {
    const struct toy *toy = s->toy;
    double before[MOST][LABELS], moved[MOST][LABELS], goal[LABELS], momentum = 1, beta = 0;
    bool moves[LABELS];
    find_moving(toy, y, still, moves);
    memcpy(before, y, sizeof before);
    decrease[1] = 0;
    for (size_t k = 0; k < how->inner_steps; k++) {
        for (size_t a = 0; a < toy->variables; a++)
            for (size_t i = 0; i < toy->labels; i++)
                moved[a][i] =
                    y[a][i] + beta * (y[a][i] - before[a][i]) - (double)z[a * s->stride + i];
        memcpy(before, y, sizeof before);
        decrease[0] = decrease[1];
        decrease[1] = 0;
        for (size_t a = 0; a < toy->variables; a++) {
            const double metric = (double)s->metric[a];
            for (size_t i = 0; i < toy->labels; i++) {
                const double down = s->dual[CURRENT][a][i] - toy->unary[a * toy->labels + i];
                const double pull = filter_all(s, moved, a, i);
                goal[i] = base[a][i] + pull / metric;
                if (moves[i])
                    decrease[1] +=
                        moved[a][i] * (down + (pull - metric * moved[a][i]) / (2 * how->epsilon));
            }
            project_moving(moves, goal, toy->labels, y[a]);
        }
        beta = momentum - 1;
        momentum = (1 + sqrt(1 + 4 * momentum * momentum)) / 2;
        beta /= momentum;
    }
}

/* How far the step's y and decreases are from those of plain loops, relative to what is allowed. */
static double distance_from(const struct steps *s, const float *z,
                            const struct dcrf_backend_advance *how,
                            const struct dcrf_backend_advanced *done, double still,
                            double base[MOST][LABELS]) {
    const struct toy *toy = s->toy;
    const double allowed = how->inner_steps > 0 ? 1e-4 : 2e-5;
    double wanted[MOST][LABELS], decrease[2], most = 0;
    memcpy(wanted, base, sizeof wanted);
    for (size_t a = 0; a < toy->variables; a++)
        project_row(wanted[a], toy->labels);
    step_inside(s, z, how, still, base, wanted, decrease);
    for (size_t k = 0; k < 2 && how->inner_steps > 0; k++)
        most = fmax(most, fabs(done->decrease[k] - decrease[k]) / (1e-4 * s->size));
    for (size_t a = 0; a < toy->variables; a++)
        for (size_t i = 0; i < toy->labels; i++)
            most = fmax(most, fabs((double)s->y[a * s->stride + i] - wanted[a][i]) / allowed);
    return most;
}

/* d(i, j) of a kernel. */
static double distance(const struct steps *s, size_t kernel, size_t i, size_t j) {
    const struct kernel_cuts *cuts = &s->cuts[kernel];
    double sum = 0;
    for (size_t c = 0; c < cuts->count; c++)
        if (cuts->sets[c * s->toy->labels + i] != cuts->sets[c * s->toy->labels + j])
            sum += cuts->lengths[c];
    return sum;
}

/* A variable's Q x, Q the metric of the cuts, up to a constant: G x is -d x for sums of zero
 * (backend/cpu/cut_step.c), and z may sum to more than 1. */
static void apply_metric(const struct steps *s, size_t a, const double *x, double *out) {
    const size_t labels = s->toy->labels, n = s->toy->variables;
    bool is_done[TOY_KERNELS] = {false}; /* per group */
    for (size_t i = 0; i < labels; i++)
        out[i] = (double)s->metric[a] * x[i];
    for (size_t m = 0; m < TOY_KERNELS; m++) {
        const size_t g = s->space.columns->group_of[m];
        for (size_t i = 0; i < labels && !is_done[g]; i++)
            for (size_t j = 0; j < labels; j++)
                out[i] -= (double)s->space.group_sums[g * n + a] * distance(s, m, i, j) * x[j];
        is_done[g] = true;
    }
}

/* With cuts, y is a minimum: all labels with mass have the smallest derivative, up to what counts
 * as equal (backend/cut_moves.h) and float roundings of y. */
static void check_cut_descent(const struct steps *s, const float *before_y, const float *before_z,
                              const struct dcrf_backend_advance *how,
                              const struct dcrf_backend_advanced *done) {
    const struct toy *toy = s->toy;
    double objective = 0, uphill = 0;
    for (size_t a = 0; a < toy->variables; a++) {
        double difference[LABELS], metric[LABELS], slope[LABELS], lowest = (double)INFINITY;
        double sum = 0, scale = (double)s->metric[a];
        for (size_t g = 0; g < s->space.columns->group_count; g++)
            scale += (double)s->space.group_sums[g * toy->variables + a];
        for (size_t i = 0; i < toy->labels; i++)
            difference[i] = (double)s->y[a * s->stride + i] - (double)before_z[a * s->stride + i];
        apply_metric(s, a, difference, metric);
        for (size_t i = 0; i < toy->labels; i++) {
            const size_t k = a * s->stride + i;
            const double cost = toy->unary[a * toy->labels + i] - s->dual[CURRENT][a][i];
            const double beta = done->uphill > 0 ? 0 : (double)how->beta;
            const double y = (double)s->y[k], moved = y - (double)before_y[k];
            slope[i] = how->epsilon * cost + metric[i];
            lowest = fmin(lowest, slope[i]);
            sum += y;
            objective += (double)before_z[k] * cost;
            uphill -= metric[i] * moved;
            assert_true(y >= 0);
            assert_near((double)s->z[k], fmax(0, fmin(1, y + beta * moved)), 1e-6);
        }
        assert_near(sum, 1, 1e-6);
        for (size_t i = 0; i < toy->labels; i++)
            if (s->y[a * s->stride + i] > 1e-6f && slope[i] - lowest > 2e-4 * scale)
                fail_msg("variable %zu, label %zu: %g above the smallest derivative, scale %g", a,
                         i, slope[i] - lowest, scale);
    }
    assert_near(done->objective, objective, 1e-5 * s->size);
    assert_near(done->uphill, uphill, 1e-4 * (1 + s->space.total));
}

/* A few float roundings, relative to 1 and to the step length times the row sum. */
static void check_descent(const struct steps *s, const float *before_y, const float *before_z,
                          const struct dcrf_backend_advance *how,
                          const struct dcrf_backend_advanced *done) {
    const struct toy *toy = s->toy;
    if (!s->space.is_potts) {
        check_cut_descent(s, before_y, before_z, how, done);
        return;
    }
    double objective = 0, uphill = 0, base[MOST][LABELS];
    for (size_t a = 0; a < toy->variables; a++) {
        for (size_t i = 0; i < toy->labels; i++) {
            const double z = (double)before_z[a * s->stride + i];
            const double cost = toy->unary[a * toy->labels + i] - s->dual[CURRENT][a][i];
            base[a][i] = z - how->epsilon / (double)s->metric[a] * cost;
            objective += z * cost;
        }
    }
    /* In inner steps the CPU leaves labels with next to nothing where they are; a device need not.
     */
    const double off = distance_from(s, before_z, how, done, how->epsilon / 16, base);
    if (off > 1 && getenv("DCRF_TEST_DEVICE"))
        assert_near(distance_from(s, before_z, how, done, -1, base), 0, 1);
    else
        assert_near(off, 0, 1);
    for (size_t a = 0; a < toy->variables; a++) {
        const double metric = (double)s->metric[a];
        for (size_t i = 0; i < toy->labels; i++) {
            const size_t k = a * s->stride + i;
            const double y = (double)s->y[k], beta = done->uphill > 0 ? 0 : (double)how->beta;
            assert_near((double)s->z[k], fmax(0, fmin(1, y + beta * (y - (double)before_y[k]))),
                        1e-6);
            uphill += metric * ((double)before_z[k] - y) * (y - (double)before_y[k]);
        }
    }
    assert_near(done->objective, objective, 1e-5 * s->size);
    assert_near(done->uphill, uphill, 1e-4 * (1 + s->space.total));
}

/* ---- the steps ------------------------------------------------------------------------------ */

/* Starts at a random labelling with the first labels only. */
static void begin(struct steps *s, const struct toy *toy, size_t first, uint64_t seed) {
    uint16_t labels[MOST];
    double bound;
    dcrf_rng rng;
    *s = (struct steps){.toy = toy, .stride = dcrf_padded(toy->labels)};
    dcrf_rng_seed(&rng, seed);
    assert_int_equal(
        dcrf_dual_space_init(&s->space, toy->plan, toy->workspace, DCRF_CLIQUE_MIN, NULL), DCRF_OK);
    assert_int_equal(dcrf_dual_space_measure(&s->space, NULL), DCRF_OK);
    for (size_t m = 0; m < TOY_KERNELS; m++)
        s->cuts[m] = cuts_of(&s->space.columns->groups[s->space.columns->group_of[m]], toy->labels);
    s->size = 1 + 4 * (double)toy->variables + s->space.total;
    assert_int_equal(dcrf_backend_make(toy->plan, toy->workspace, NULL, make, s, NULL), DCRF_OK);
    for (size_t a = 0; a < toy->variables; a++) {
        s->metric[a] =
            (s->space.is_potts ? s->space.row_sums[a] : 0) + 0.1f + (float)dcrf_rng_uniform(&rng);
        labels[a] = (uint16_t)(dcrf_rng_uniform(&rng) * (double)first);
        for (size_t i = 0; i < toy->labels && toy->cliques > 0; i++)
            s->dual[BEST][a][i] = (double)s->space.clique_weight[a];
    }
    const struct dcrf_roundings none = {0, 0};
    assert_int_equal(s->methods->reset_best(s->lp, none, &bound, NULL), DCRF_OK);
    assert_near(bound, bound_at(s, BEST, 0), 1e-5 * s->size);
    assert_int_equal(s->methods->start(s->lp, NULL, labels, s->metric, NULL), DCRF_OK);
    assert_int_equal(s->methods->restart(s->lp, NULL), DCRF_OK);
    read_marginals(s);
    for (size_t a = 0; a < toy->variables; a++)
        for (size_t i = 0; i < toy->labels; i++) {
            assert_true(s->y[a * s->stride + i] == (float)(labels[a] == i));
            assert_true(s->z[a * s->stride + i] == (float)(labels[a] == i));
        }
}

static bool step(struct steps *s, size_t number, double epsilon) {
    const struct toy *toy = s->toy;
    const double threshold = epsilon / 16, average_weight = 1 / (double)(number + 1);
    const struct dcrf_pair_shape shape = {
        .epsilon = epsilon, .bins = 32, .is_precise = number % 3 == 2};
    struct dcrf_backend_advance how = {.average_weight = average_weight,
                                       .has_average = number > 0,
                                       .epsilon = epsilon,
                                       .beta = 0.9f,
                                       .inner_steps = s->space.is_potts && number % 4 == 3 ? 3 : 0};
    struct dcrf_backend_advanced done;
    float y[MOST * ROW], z[MOST * ROW];
    memcpy(y, s->y, sizeof y);
    memcpy(z, s->z, sizeof z);
    find_point(s, epsilon, threshold);
    add_cliques(s, epsilon);
    mix(s, AVERAGE, CURRENT, average_weight);
    assert_int_equal(s->methods->find_point(s->lp, &shape, threshold, NULL, NULL), DCRF_OK);
    if (toy->cliques > 0)
        assert_int_equal(s->methods->find_cliques(s->lp, epsilon, NULL), DCRF_OK);
    assert_int_equal(s->methods->advance(s->lp, &how, &done, NULL), DCRF_OK);
    read_marginals(s);
    check_improvement(s, CURRENT, done.weights[DCRF_BACKEND_TO_CURRENT],
                      done.bounds[DCRF_BACKEND_TO_CURRENT]);
    if (how.has_average)
        check_improvement(s, AVERAGE, done.weights[DCRF_BACKEND_TO_AVERAGE],
                          done.bounds[DCRF_BACKEND_TO_AVERAGE]);
    check_descent(s, y, z, &how, &done);
    return done.uphill > 0;
}

static void check_best(struct steps *s) {
    const struct toy *toy = s->toy;
    double pairwise[MOST * ROW], clique[MOST * ROW] = {0};
    assert_int_equal(s->methods->read_best(s->lp, pairwise, clique, NULL), DCRF_OK);
    for (size_t a = 0; a < toy->variables; a++)
        for (size_t i = 0; i < toy->labels; i++) {
            const size_t k = a * s->stride + i;
            assert_near(pairwise[k] + clique[k], s->dual[BEST][a][i], 1e-4 * s->size);
        }
}

/* All steps, each compared, and the end; how many went uphill. */
static size_t run(struct steps *s) {
    size_t uphill = 0;
    for (size_t k = 0; k < STEPS; k++)
        uphill += step(s, k, k < STEPS / 2 ? 0.25 : 0.0625);
    check_best(s);
    s->methods->free(s->lp);
    dcrf_dual_space_clear(&s->space);
    return uphill;
}

static void steps_are_those_of_plain_loops(void **state) {
    (void)state;
    size_t uphill = 0;
    for (uint64_t seed = 0; seed < MODELS; seed++) {
        /* Few labels, or many of which most are unused at first, or always. */
        const size_t labels = seed < 16 ? 2 + seed % 3 : 9 + 5 * (seed % 3);
        static const double strengths[] = {0.05, 0.3, 2};
        struct toy toy = new_toy(seed, 6 + seed % 7, labels, seed % 2 * 3, strengths[seed % 3],
                                 TOY_POTTS, 1 + seed % 2);
        struct steps s;
        begin(&s, &toy, labels < 5 ? labels : 3, seed);
        uphill += run(&s);
        free_toy(&toy);
    }
    assert_true(uphill > 10 && MODELS * STEPS - uphill > 10);
}

/* Ordered labels or a tree, for one kernel or both, or a different distance for each. */
static void set_distances(struct toy *toy, uint64_t seed) {
    size_t ends[2 * LABELS];
    double lengths[LABELS];
    for (size_t v = 1; v < toy->labels; v++) {
        ends[2 * v - 2] = v;
        ends[2 * v - 1] = (v - 1) / 2;
        lengths[v - 1] = 0.25 * (double)(1 + (seed + v) % 4);
    }
    const size_t first = seed % 4 == 0, end = seed % 4 == 1 ? 1 : 2;
    for (size_t m = first; m < end; m++)
        assert_int_equal(
            seed % 3 == 2 && (m == 0 || seed % 4 == 2)
                ? dcrf_model_set_tree(toy->model, m, toy->labels - 1, ends, lengths, NULL)
                : dcrf_model_set_linear(toy->model, m, seed % 3 == 0 ? (double)INFINITY : 3, NULL),
            DCRF_OK);
}

static void steps_with_cuts_are_those_of_plain_loops(void **state) {
    (void)state;
    size_t uphill = 0;
    for (uint64_t seed = 0; seed < MODELS; seed++) {
        static const double strengths[] = {0.05, 0.3, 1};
        const size_t labels = 3 + seed * 5 % (LABELS - 2);
        struct toy toy = new_toy(seed, 6 + seed % 7, labels, seed % 5 == 0 ? 3 : 0,
                                 strengths[seed % 3], TOY_POTTS, 1 + seed % 2);
        struct steps s;
        set_distances(&toy, seed);
        begin(&s, &toy, seed % 2 ? labels : 3, seed);
        assert_false(s.space.is_potts);
        uphill += run(&s);
        free_toy(&toy);
    }
    assert_true(uphill > 10 && MODELS * STEPS - uphill > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_plain_loops),
        cmocka_unit_test(steps_with_cuts_are_those_of_plain_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
