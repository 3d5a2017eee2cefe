/* Certificates of labellings, and the verifier, against enumeration and dense matrices. */
#include "certify/verify.h"
#include "toy.h"

#include <dcrf/certify.h>
#include <math.h>
#include <stdlib.h>

/* The oracle's matrix is that of the formula; the operator rounds the normalization to float. */
#define AGREEMENT 2e-6

static void random_labels(uint16_t *labels, const struct toy *toy, uint64_t seed) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    for (size_t a = 0; a < toy->variables; a++)
        labels[a] = (uint16_t)(dcrf_rng_next(&rng) % toy->labels);
}

static void any_labelling(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        const double strengths[] = {0.1, 0.5, 2, 200};
        struct toy toy = new_toy(seed, 4 + seed % 5, 2 + seed % 3, seed % 3,
                                 strengths[seed / 3 % 4], TOY_POTTS, 1);
        uint16_t labels[8], best[8];
        const double optimum = toy_optimum(&toy, best);
        const double tolerance = AGREEMENT * (double)toy.variables * (1 + fabs(optimum));
        dcrf_certify_settings settings;
        dcrf_certificate certificate;
        dcrf_certify_settings_defaults(&settings);
        for (int which = 0; which < 2; which++) {
            if (which == 0)
                random_labels(labels, &toy, seed);
            else
                memcpy(labels, best, sizeof labels);
            assert_int_equal(
                dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, NULL),
                DCRF_OK);
            const double energy = toy_energy(&toy, labels);
            assert_true(fabs(certificate.energy.total - energy) <= AGREEMENT * (10 + fabs(energy)));
            assert_true(certificate.lower_bound <= optimum + tolerance);
            assert_true(certificate.best_energy >= optimum - tolerance);
            assert_true(certificate.best_energy <= certificate.energy.total);
            double floor = 0;
            for (size_t a = 0; a < toy.variables; a++) {
                double smallest = (double)INFINITY;
                for (size_t i = 0; i < toy.labels; i++)
                    smallest = fmin(smallest, toy.unary[a * toy.labels + i]);
                floor += smallest;
            }
            const double above = certificate.energy.total - floor;
            const double open = certificate.energy.total - fmax(certificate.lower_bound, floor);
            assert_true(fabs(certificate.relative_gap * above - fmax(0, open)) < 1e-9);
            assert_true(certificate.stop > 0);
            if (certificate.stop == DCRF_STOP_GAP)
                assert_true(certificate.relative_gap <= settings.gap);
        }
        free_toy(&toy);
    }
}

static int cancel(void *user, const dcrf_moment *moment) {
    (void)moment;
    ++*(int *)user;
    return 1;
}

static void limits_and_errors(void **state) {
    (void)state;
    struct toy toy = new_toy(3, 8, 3, 2, 0.5, TOY_POTTS, 1);
    uint16_t labels[8] = {0};
    int calls = 0;
    dcrf_certify_settings settings;
    dcrf_certificate certificate;
    dcrf_error error;
    memset(&settings, 0xa5, sizeof settings);
    dcrf_certify_settings_defaults(&settings);
    settings.gap = 0;
    settings.iterations = 2;
    assert_int_equal(dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, NULL),
                     DCRF_OK);
    assert_int_equal(certificate.stop, DCRF_STOP_ITERATIONS);
    assert_int_equal(certificate.iterations, 2);
    assert_int_equal(certificate.is_constant, 1);
    settings.iterations = 1000000;
    settings.time_limit_s = 1e-9;
    assert_int_equal(dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, NULL),
                     DCRF_OK);
    assert_int_equal(certificate.stop, DCRF_STOP_TIME);
    settings.time_limit_s = 0;
    settings.progress = cancel;
    settings.progress_user = &calls;
    assert_int_equal(dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, NULL),
                     DCRF_OK);
    assert_int_equal(certificate.stop, DCRF_STOP_CANCELLED);
    assert_int_equal(calls, 1);

    labels[5] = 3;
    assert_true(dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, &error) < 0);
    labels[5] = 0;
    settings.gap = -1;
    assert_fails(DCRF_ERROR_ARGUMENT, "gap", error,
                 dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, &error));
    settings.gap = 0;
    settings.iterations = 0;
    assert_fails(DCRF_ERROR_ARGUMENT, "iteration", error,
                 dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, &error));
    settings.iterations = 1;
    settings.reserved[7] = 1;
    assert_fails(DCRF_ERROR_ARGUMENT, "reserved", error,
                 dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, &error));
    free_toy(&toy);
}

/* The recorded point by double loops: alpha_ab is antisymmetric and at most K_ab, and the bound is
 * the one that both the verifier and the solver say. */
static double dense_bound(const struct toy *toy, const struct dcrf_lp_record *record,
                          dcrf_clique_form form) {
    const size_t n = toy->variables, labels = toy->labels, stride = dcrf_padded(labels);
    /* The exact operator has no bins. */
    const bool takes_lines =
        dcrf_operator_kind_of(dcrf_plan_operator(toy->plan, 0)) == DCRF_OPERATOR_EXACT;
    double *alpha = calloc(n * n * labels, sizeof *alpha), bound = 0;
    for (size_t k = 0; k < record->count; k++) {
        const struct dcrf_lp_point *point = &record->points[k];
        for (size_t c = 0; c < point->alive_count; c++)
            for (size_t a = 0; a < n; a++)
                for (size_t b = 0; b < n; b++) {
                    const double ya = (double)point->y[a * point->alive_count + c];
                    const double yb = (double)point->y[b * point->alive_count + c];
                    double flow = ya - yb;
                    if (point->bins > 0 && takes_lines) {
                        flow = fmax(-1, fmin(1, (yb - ya) / point->epsilon));
                    } else if (point->bins > 0) { /* bilinear between the nodes */
                        const double last = (double)point->bins - 1;
                        const double low_a = fmin(floor(ya * last), last - 1);
                        const double low_b = fmin(floor(yb * last), last - 1);
                        const double part_a = ya * last - low_a, part_b = yb * last - low_b;
                        flow = 0;
                        for (int corner = 0; corner < 4; corner++) {
                            const double node_a = low_a + corner % 2, node_b = low_b + corner / 2;
                            flow += (corner % 2 ? part_a : 1 - part_a) *
                                    (corner / 2 ? part_b : 1 - part_b) *
                                    fmax(-1, fmin(1, (node_b - node_a) / last / point->epsilon));
                        }
                    }
                    alpha[(a * n + b) * labels + point->alive[c]] +=
                        point->weight * flow *
                        (toy->matrix[0][a * n + b] + toy->matrix[1][a * n + b]);
                }
    }
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            for (size_t i = 0; i < labels; i++) {
                const double k = toy->matrix[0][a * n + b] + toy->matrix[1][a * n + b];
                assert_true(fabs(alpha[(a * n + b) * labels + i]) <= k * (1 + 1e-6) + 1e-9);
                assert_true(fabs(alpha[(a * n + b) * labels + i] +
                                 alpha[(b * n + a) * labels + i]) <= 1e-6 * k + 1e-9);
            }
    for (size_t a = 0; a < n; a++) {
        double lowest = (double)INFINITY;
        for (size_t i = 0; i < labels; i++) {
            double cost = toy->unary[a * labels + i];
            for (size_t b = 0; b < n; b++)
                cost -= alpha[(a * n + b) * labels + i];
            if (record->clique)
                cost -= record->clique[a * stride + i];
            lowest = fmin(lowest, cost);
        }
        bound += lowest;
    }
    for (size_t p = 0; p < toy->cliques && form == DCRF_CLIQUE_MIN; p++)
        bound += toy->costs[p];
    free(alpha);
    return bound;
}

static void verifier(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy = new_toy(seed, 10 + seed % 7, 2 + seed % 3, seed % 4,
                                 seed % 5 == 0 ? 100 : 0.4, TOY_POTTS, 2);
        const dcrf_clique_form form = seed % 2 ? DCRF_CLIQUE_SPREAD : DCRF_CLIQUE_MIN;
        uint16_t labels[16];
        dcrf_solver *solver;
        dcrf_settings settings;
        dcrf_solver_info info;
        struct dcrf_verdict verdict;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.lp.clique_form = form;
        assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        assert_int_equal(dcrf_solver_record(solver, settings.iterations + 1, NULL), DCRF_OK);
        assert_true(dcrf_solver_run(solver, NULL) > 0);
        dcrf_solver_get_info(solver, &info);
        dcrf_solver_labels(solver, labels);
        const struct dcrf_lp_record *record = dcrf_solver_recorded(solver);
        assert_int_equal(dcrf_verify(toy.plan, toy.workspace, labels, record, form, &verdict, NULL),
                         DCRF_OK);
        const double scale = 1 + fabs(info.energy.total);
        assert_true(verdict.is_feasible);
        assert_true(fabs(verdict.energy - info.energy.total) <= 1e-5 * scale);
        /* The solver's bound has its roundings taken off. What the last mixture lost to them can
         * make the recorded point a little worse than the best one before it. */
        assert_true(info.lower_bound <= verdict.lower_bound + 1e-5 * scale);
        assert_true(info.lower_bound >= verdict.lower_bound - 1e-3 * scale);
        assert_true(fabs(dense_bound(&toy, record, form) - verdict.lower_bound) <= 1e-4 * scale);
        dcrf_solver_free(&solver);
        free_toy(&toy);
    }
}

/* A verifier that finds nothing is worth nothing. */
static void verifier_finds_fault(void **state) {
    (void)state;
    struct toy toy = new_toy(2, 12, 3, 3, 0.4, TOY_POTTS, 1);
    dcrf_solver *solver;
    dcrf_settings settings;
    struct dcrf_verdict honest, verdict;
    uint16_t labels[12];
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.iterations = 5;
    assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_record(solver, 6, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) > 0);
    dcrf_solver_labels(solver, labels);
    struct dcrf_lp_record record = *dcrf_solver_recorded(solver);
    assert_int_equal(
        dcrf_verify(toy.plan, toy.workspace, labels, &record, DCRF_CLIQUE_MIN, &honest, NULL),
        DCRF_OK);
    assert_true(honest.is_feasible);
    const double kept = record.points[1].weight;
    record.points[1].weight = 2;
    assert_int_equal(
        dcrf_verify(toy.plan, toy.workspace, labels, &record, DCRF_CLIQUE_MIN, &verdict, NULL),
        DCRF_OK);
    assert_false(verdict.is_feasible);
    record.points[1].weight = -0.5;
    assert_int_equal(
        dcrf_verify(toy.plan, toy.workspace, labels, &record, DCRF_CLIQUE_MIN, &verdict, NULL),
        DCRF_OK);
    assert_false(verdict.is_feasible);
    record.points[1].weight = kept;
    double broken[12 * DCRF_NARROW_LANES];
    assert_int_equal(dcrf_padded(toy.labels), DCRF_NARROW_LANES);
    memcpy(broken, record.clique, sizeof broken);
    broken[toy.members[0] * DCRF_NARROW_LANES] += 1;
    record.clique = broken;
    assert_int_equal(
        dcrf_verify(toy.plan, toy.workspace, labels, &record, DCRF_CLIQUE_MIN, &verdict, NULL),
        DCRF_OK);
    assert_false(verdict.is_feasible);
    dcrf_solver_free(&solver);
    free_toy(&toy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_labelling),
        cmocka_unit_test(limits_and_errors),
        cmocka_unit_test(verifier),
        cmocka_unit_test(verifier_finds_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
