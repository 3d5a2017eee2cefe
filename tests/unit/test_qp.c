/* The QP relaxation, step by step, against its formula. */
#include "toy.h"

#include "energy/coupling.h"
#include "method/method.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <stdlib.h>

#define MOST_ENTRIES 512
/* y and the field are floats; objectives are of size up to 100. */
#define TOLERANCE 1e-4

struct bench {
    struct toy toy;
    dcrf_settings settings;
    struct dcrf_stop stop;
    struct dcrf_coupling *coupling;
    struct dcrf_problem problem;
    void *state;
    size_t stride;
};

/* The QP method for the toy's model and plan. */
static void make_method(struct bench *bench) {
    dcrf_settings_defaults(&bench->settings, DCRF_METHOD_QP);
    dcrf_stop_init(&bench->stop, &bench->settings, bench->toy.workspace);
    assert_int_equal(
        dcrf_coupling_new(&bench->coupling, bench->toy.plan, bench->toy.workspace, NULL), DCRF_OK);
    bench->problem = (struct dcrf_problem){.plan = bench->toy.plan,
                                           .model = bench->toy.model,
                                           .workspace = bench->toy.workspace,
                                           .coupling = bench->coupling,
                                           .settings = &bench->settings,
                                           .stop = &bench->stop};
    assert_int_equal(dcrf_qp.init(&bench->state, &bench->problem, NULL), DCRF_OK);
}

static void set_up(struct bench *bench, uint64_t seed, size_t cliques) {
    bench->toy = new_toy(seed, 6 + seed % 15, 2 + seed % 4, cliques, 0.4,
                         seed % 3 ? TOY_POTTS : TOY_GENERAL, 1);
    bench->stride = dcrf_padded(bench->toy.labels);
    make_method(bench);
}

static void tear_down(struct bench *bench) {
    dcrf_qp.free(bench->state);
    dcrf_coupling_free(&bench->coupling);
    free_toy(&bench->toy);
}

/* h_pi = sum over the members of 1 - y */
static double mass_elsewhere(const struct toy *toy, const double *y, size_t p, size_t i) {
    double h = 0;
    for (size_t c = toy->offsets[p]; c < toy->offsets[p + 1]; c++)
        h += 1 - y[toy->members[c] * toy->labels + i];
    return h;
}

/* f(y, z), without its constant. */
static double objective(const struct toy *toy, const double *y, const double *z) {
    const size_t n = toy->variables, labels = toy->labels;
    double f = 0;
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++) {
            f += toy->unary[a * labels + i] * y[a * labels + i];
            for (size_t m = 0; m < TOY_KERNELS; m++)
                for (size_t b = 0; b < n; b++)
                    for (size_t j = 0; j < labels; j++)
                        f += toy->matrix[m][a * n + b] * toy_mu(toy, m, i, j) * y[a * labels + i] *
                             y[b * labels + j];
        }
    for (size_t p = 0; p < toy->cliques; p++) {
        f -= toy->costs[p] * (double)(labels - 1);
        for (size_t i = 0; i < labels; i++) {
            const double zi = z[p * labels + i];
            f += toy->costs[p] * (zi + (1 - zi) * mass_elsewhere(toy, y, p, i));
        }
    }
    return f;
}

static void best_z(const struct toy *toy, const double *y, double *z) {
    for (size_t p = 0; p < toy->cliques; p++)
        for (size_t i = 0; i < toy->labels; i++)
            z[p * toy->labels + i] = mass_elsewhere(toy, y, p, i) > 1;
}

/* df/dy by central differences: f is quadratic, so they are exact up to rounding. */
static double slope(const struct toy *toy, double *y, const double *z, size_t at) {
    const double h = 1e-3, kept = y[at];
    y[at] = kept + h;
    const double above = objective(toy, y, z);
    y[at] = kept - h;
    const double below = objective(toy, y, z);
    y[at] = kept;
    return (above - below) / (2 * h);
}

/* The linear minimizer of a variable, and the Frank-Wolfe gap. */
static double find_vertex(const struct toy *toy, double *y, double *z, double *vertex) {
    const size_t labels = toy->labels;
    double gap = 0;
    for (size_t a = 0; a < toy->variables; a++) {
        size_t best = 0;
        double smallest = (double)INFINITY, expected = 0;
        for (size_t i = 0; i < labels; i++) {
            const double g = slope(toy, y, z, a * labels + i);
            vertex[a * labels + i] = 0;
            expected += g * y[a * labels + i];
            if (g < smallest) {
                smallest = g;
                best = i;
            }
        }
        vertex[a * labels + best] = 1;
        gap += expected - smallest;
    }
    for (size_t k = 0; k < toy->cliques * labels; k++) {
        /* df/dz, also by differences */
        const double kept = z[k];
        z[k] = 1;
        const double at_one = objective(toy, y, z);
        z[k] = 0;
        const double g = at_one - objective(toy, y, z);
        z[k] = kept;
        gap += g * kept - fmin(g, 0);
    }
    return gap;
}

static void read(const struct bench *bench, double *y) {
    assert_int_equal(dcrf_method_fetch(&dcrf_qp, bench->state, NULL), DCRF_OK);
    const float *rows = dcrf_qp.marginals(bench->state);
    for (size_t a = 0; a < bench->toy.variables; a++) {
        double sum = 0;
        for (size_t i = 0; i < bench->toy.labels; i++) {
            sum += y[a * bench->toy.labels + i] = (double)rows[a * bench->stride + i];
            assert_true(rows[a * bench->stride + i] >= -1e-6f);
        }
        assert_true(fabs(sum - 1) <= 1e-5);
    }
}

/* The first step from a random point: z stays optimal for that point, so that everything can be
 * recomputed. The step is the exact minimum along the line, and objective and gap follow the
 * formula, its gradient by differences. */
static void the_first_step_is_exact(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 80; seed++) {
        struct bench bench;
        set_up(&bench, seed, seed % 4);
        const struct toy *toy = &bench.toy;
        const size_t entries = toy->variables * toy->labels;
        double y0[MOST_ENTRIES], y1[MOST_ENTRIES], z[MOST_ENTRIES], vertex[MOST_ENTRIES];
        float *start = calloc(toy->variables * bench.stride, sizeof *start);
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        for (size_t a = 0; a < toy->variables; a++) {
            double sum = 0;
            for (size_t i = 0; i < toy->labels; i++)
                sum += y0[a * toy->labels + i] = pow(dcrf_rng_uniform(&rng), 4);
            for (size_t i = 0; i < toy->labels; i++) {
                start[a * bench.stride + i] = (float)(y0[a * toy->labels + i] / sum);
                y0[a * toy->labels + i] = (double)start[a * bench.stride + i];
            }
        }
        struct dcrf_step_report report = {0};
        assert_int_equal(dcrf_qp.start(bench.state, &(struct dcrf_start){.y = start}, NULL),
                         DCRF_OK);
        best_z(toy, y0, z);
        find_vertex(toy, y0, z, vertex);
        assert_int_equal(dcrf_qp.step(bench.state, &report, NULL), DCRF_OK);
        read(&bench, y1);
        const double f1 = objective(toy, y1, z);
        assert_true(fabs(report.objective - f1) <= TOLERANCE);
        for (int k = 0; k <= 50; k++) {
            double between[MOST_ENTRIES];
            for (size_t j = 0; j < entries; j++)
                between[j] = y0[j] + k / 50.0 * (vertex[j] - y0[j]);
            assert_true(f1 <= objective(toy, between, z) + TOLERANCE);
        }
        const double gap = find_vertex(toy, y1, z, vertex);
        assert_true(fabs(report.stationarity * fabs(report.objective) - gap) <= TOLERANCE);
        free(start);
        tear_down(&bench);
    }
}

static void the_objective_falls_and_the_gap_vanishes(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 80; seed++) {
        struct bench bench;
        set_up(&bench, seed, seed % 4);
        double last = (double)INFINITY, y[MOST_ENTRIES], z[MOST_ENTRIES];
        struct dcrf_step_report report = {0};
        assert_int_equal(dcrf_qp.start(bench.state, &(struct dcrf_start){0}, NULL), DCRF_OK);
        size_t steps = 0;
        do {
            assert_int_equal(dcrf_qp.step(bench.state, &report, NULL), DCRF_OK);
            assert_true(report.objective <= last + 1e-6 * fabs(report.objective));
            last = report.objective;
        } while (report.stationarity > 1e-5 && ++steps < 5000);
        assert_true(report.stationarity <= 1e-5);
        read(&bench, y);
        best_z(&bench.toy, y, z);
        assert_true(objective(&bench.toy, y, z) <= report.objective + TOLERANCE);
        tear_down(&bench);
    }
}

/* Among equally good labels the first one is taken, wherever the threads of a device look first. */
static void the_first_of_equals_is_taken(void **state) {
    (void)state;
    enum { VARIABLES = 7, LABELS = 21, FIRST = 3 };
    const dcrf_grid grid = dcrf_grid_1d(VARIABLES);
    float unary[VARIABLES * LABELS];
    for (size_t k = 0; k < VARIABLES * LABELS; k++)
        unary[k] = k % LABELS < FIRST ? 1 : 0;
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_kernel kernel = dcrf_kernel_spatial(2, 1);
    struct bench bench = {.stride = dcrf_padded(LABELS)};
    struct toy *toy = &bench.toy;
    assert_int_equal(dcrf_model_new(&toy->model, &grid, LABELS, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(toy->model, &energies, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(toy->model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&toy->workspace, 1, NULL), DCRF_OK);
    assert_int_equal(
        dcrf_plan_new(&toy->plan, toy->model, DCRF_OPERATOR_EXACT, toy->workspace, NULL), DCRF_OK);
    make_method(&bench);
    assert_int_equal(dcrf_qp.start(bench.state, &(struct dcrf_start){0}, NULL), DCRF_OK);
    assert_int_equal(dcrf_method_fetch(&dcrf_qp, bench.state, NULL), DCRF_OK);
    const float *y = dcrf_qp.marginals(bench.state);
    for (size_t a = 0; a < VARIABLES; a++)
        for (size_t i = 0; i < LABELS; i++)
            assert_true(y[a * bench.stride + i] == (float)(i == FIRST));
    dcrf_qp.free(bench.state);
    dcrf_coupling_free(&bench.coupling);
    dcrf_plan_free(&toy->plan);
    dcrf_workspace_free(&toy->workspace);
    dcrf_model_free(&toy->model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_step_is_exact),
        cmocka_unit_test(the_first_of_equals_is_taken),
        cmocka_unit_test(the_objective_falls_and_the_gap_vanishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
