/* Methods through src/backend/backend.h, with a fake device (tests/device/fake_backend.c): each
 * takes the same course as on the CPU, bounds hold, and certificates are checked. */
#include "elsewhere.h"

#include "places.h"

#include "lp/lp.h"
#include "solver/solver.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* Mean field or QP on the CPU and on the device: compares every iteration. */
static void compare_courses(const struct toy *toy, const dcrf_settings *settings,
                            const uint16_t *start) {
    struct elsewhere there = plan_elsewhere(toy, "cuda");
    dcrf_solver *solvers[] = {run_solver(toy->plan, toy->workspace, settings, start),
                              run_solver(there.plan, there.workspace, settings, start)};
    dcrf_solver_info info[2];
    float q[2][MOST * 8];
    uint16_t labels[2][MOST];
    const dcrf_moment *moments[2];
    size_t count[2];
    for (size_t k = 0; k < 2; k++) {
        dcrf_solver_get_info(solvers[k], &info[k]);
        dcrf_solver_labels(solvers[k], labels[k], MOST, NULL);
        moments[k] = dcrf_solver_trace(solvers[k], &count[k]);
        assert_int_equal(dcrf_solver_marginals(solvers[k], q[k], MOST * 8, toy->labels, NULL),
                         DCRF_OK);
    }
    assert_int_equal(info[1].iterations, info[0].iterations);
    assert_int_equal(info[1].stop, info[0].stop);
    assert_near(info[1].energy.total, info[0].energy.total, 1e-5);
    assert_near(info[1].objective, info[0].objective, 1e-4);
    assert_int_equal(count[0], count[1]);
    for (size_t i = 0; i < count[0]; i++) {
        assert_int_equal(moments[1][i].stage, moments[0][i].stage);
        if (!isnan(moments[0][i].objective))
            assert_near(moments[1][i].objective, moments[0][i].objective, 1e-4);
    }
    for (size_t k = 0; k < toy->variables * toy->labels; k++)
        assert_near((double)q[1][k], (double)q[0][k], 1e-5);
    assert_memory_equal(labels[1], labels[0], toy->variables * sizeof labels[0][0]);
    for (size_t k = 0; k < 2; k++)
        dcrf_solver_free(&solvers[k]);
    free_elsewhere(&there);
}

static void mean_field_is_the_same(void **state) {
    (void)state;
    static const double dampings[] = {0, 0.5, DCRF_DAMPING_AUTO};
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct toy toy = toy_of(seed);
        dcrf_settings settings;
        uint16_t start[MOST] = {0};
        dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
        settings.damping = dampings[seed / 2 % 3];
        settings.trace = 1;
        settings.stationarity = 0; /* the number of iterations must not depend on rounding */
        compare_courses(&toy, &settings, seed % 2 ? start : NULL);
        free_toy(&toy);
    }
}

static void mean_field_of_any_compatibility_is_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct toy toy = new_toy(seed, 9, 3, seed % 2 ? 2 : 0, 0.2, TOY_GENERAL, 1);
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
        settings.stationarity = 0;
        compare_courses(&toy, &settings, NULL);
        free_toy(&toy);
    }
}

static void qp_is_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct toy toy = new_toy(seed, 6 + seed % 5, 2 + seed % 3, seed % 4 / 2 * 2, 0.2,
                                 seed % 3 ? TOY_POTTS : TOY_GENERAL, 1);
        dcrf_settings settings;
        uint16_t start[MOST] = {0};
        dcrf_settings_defaults(&settings, DCRF_METHOD_QP);
        settings.trace = 1;
        settings.stationarity = 0;
        settings.iterations = 8; /* later ones choose between nearly equal vertices */
        compare_courses(&toy, &settings, seed % 2 ? start : NULL);
        free_toy(&toy);
    }
}

static void a_weight_that_changes_is_taken(void **state) {
    (void)state;
    struct toy toy = toy_of(1);
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.stationarity = 0;
    assert_int_equal(dcrf_model_set_weight(toy.model, 0, 0, NULL), DCRF_OK);
    compare_courses(&toy, &settings, NULL);
    assert_int_equal(dcrf_model_set_weight(toy.model, 1, 0, NULL), DCRF_OK);
    compare_courses(&toy, &settings, NULL);
    free_toy(&toy);
}

/* The proximal schedules, which a device may leave to the CPU. */
static void proximal_steps_are_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct toy toy = toy_of(seed);
        struct elsewhere there = plan_elsewhere(&toy, "cuda");
        dcrf_settings settings;
        dcrf_error error = {0};
        dcrf_solver_info info[2];
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.lp.schedule = seed % 2 ? DCRF_LP_SCHEDULE_PROXIMAL : DCRF_LP_SCHEDULE_PAPER;
        settings.gap = settings.stationarity = 0;
        settings.iterations = 3; /* vertices jump: later ones differ by rounding */
        dcrf_solver *solvers[] = {run_solver(toy.plan, toy.workspace, &settings, NULL),
                                  run_solver(there.plan, there.workspace, &settings, NULL)};
        const double size = fabs(toy_optimum(&toy, NULL)) + 1;
        for (size_t k = 0; k < 2; k++) {
            struct dcrf_lp *lp = solvers[k]->state;
            dcrf_solver_get_info(solvers[k], &info[k]);
            must(dcrf_lp_fetch_best(lp, &error), &error);
            assert_near(dcrf_dual_bound(&lp->space, &lp->best), lp->bound,
                        1e-6 * (1 + fabs(lp->bound)));
            dcrf_solver_free(&solvers[k]);
        }
        assert_near(info[1].energy.total, info[0].energy.total, 1e-5 * size);
        assert_near(info[1].lower_bound, info[0].lower_bound, 1e-2 * size);
        free_elsewhere(&there);
        free_toy(&toy);
    }
}

/* The LP on the CPU and on the device, with the exact operators: objectives and bounds of every
 * iteration. The line search for the bound ends at a multiple of 1/128, and at a kink rounding
 * decides at which one, so intermediate bounds may differ by one such step. */
static void the_lp_is_the_same(void **state) {
    (void)state;
    size_t lifted = 0;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct toy toy = toy_of(seed);
        struct elsewhere there = plan_elsewhere(&toy, "cuda");
        dcrf_settings settings;
        const dcrf_moment *moments[2];
        size_t count[2];
        float y[2][MOST * 8];
        uint16_t start[MOST] = {0};
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.trace = 1;
        settings.gap = 0;
        settings.stationarity = 0;
        settings.iterations = 32; /* later ones use widths that depend on a gap near zero */
        dcrf_solver *solvers[] = {
            run_solver(toy.plan, toy.workspace, &settings, seed % 2 ? start : NULL),
            run_solver(there.plan, there.workspace, &settings, seed % 2 ? start : NULL)};
        const double size = fabs(toy_optimum(&toy, NULL)) + 1;
        for (size_t k = 0; k < 2; k++) {
            moments[k] = dcrf_solver_trace(solvers[k], &count[k]);
            /* Whether the flow is a proof, so that annealing is left out, depends on rounding. */
            for (; count[k] > 0 && moments[k]->stage == DCRF_STAGE_CANDIDATES; count[k]--)
                moments[k]++;
            assert_int_equal(dcrf_solver_marginals(solvers[k], y[k], MOST * 8, toy.labels, NULL),
                             DCRF_OK);
        }
        assert_int_equal(count[0], count[1]);
        for (size_t i = 0; i < count[0]; i++) {
            assert_near(moments[1][i].best_energy, moments[0][i].best_energy, 1e-5 * size);
            if (!isnan(moments[0][i].objective))
                assert_near(moments[1][i].objective, moments[0][i].objective, 1e-4 * size);
            if (!isnan(moments[0][i].lower_bound))
                assert_near(moments[1][i].lower_bound, moments[0][i].lower_bound, size / 128);
        }
        /* A lifted start soon comes to its optimum, where y is free in directions that cost
         * nothing. */
        if (!((const struct dcrf_lp *)solvers[0]->state)->huber.lift.is_on)
            for (size_t k = 0; k < toy.variables * toy.labels; k++)
                assert_near((double)y[1][k], (double)y[0][k], 1e-3);
        else
            lifted++;
        for (size_t k = 0; k < 2; k++)
            dcrf_solver_free(&solvers[k]);
        free_elsewhere(&there);
        free_toy(&toy);
    }
    assert_true(lifted > 0 && lifted < 12);
}

static void the_flow_is_the_same(void **state) {
    (void)state;
    size_t proven = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct toy toy = strong_toy(seed);
        struct elsewhere there = plan_elsewhere(&toy, "cuda");
        dcrf_settings settings;
        dcrf_solver_info info[2];
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        dcrf_solver *solvers[] = {run_solver(toy.plan, toy.workspace, &settings, NULL),
                                  run_solver(there.plan, there.workspace, &settings, NULL)};
        for (size_t k = 0; k < 2; k++) {
            dcrf_solver_get_info(solvers[k], &info[k]);
            dcrf_solver_free(&solvers[k]);
        }
        const dcrf_candidate *flow[] = {&info[0].candidates[DCRF_CANDIDATE_FLOW],
                                        &info[1].candidates[DCRF_CANDIDATE_FLOW]};
        assert_int_equal(flow[0]->was_tried, flow[1]->was_tried);
        if (flow[0]->was_tried) {
            proven++;
            /* Both stop within 2e-6 of the energy. */
            assert_near(flow[1]->lower_bound, flow[0]->lower_bound,
                        4e-6 * fabs(flow[0]->lower_bound));
            assert_true(flow[1]->lower_bound <= toy_optimum(&toy, NULL) * (1 + 1e-6));
        }
        free_elsewhere(&there);
        free_toy(&toy);
    }
    assert_true(proven >= 8);
}

static void relaxations_hold(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct toy toy = toy_of(seed);
        struct elsewhere there = plan_elsewhere(&toy, "cuda");
        const double optimum = toy_optimum(&toy, NULL);
        for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++) {
            dcrf_settings settings;
            dcrf_solver_info info;
            uint16_t labels[MOST];
            dcrf_settings_defaults(&settings, method);
            dcrf_solver *solver = run_solver(there.plan, there.workspace, &settings, NULL);
            dcrf_solver_get_info(solver, &info);
            dcrf_solver_labels(solver, labels, MOST, NULL);
            assert_near(info.energy.total, toy_energy(&toy, labels), 1e-5);
            assert_true(info.energy.total >= optimum - 1e-5);
            if (method == DCRF_METHOD_LP) {
                assert_true(info.lower_bound <= optimum);
                /* Toys of this strength have small gaps on the CPU too (tests/unit/test_lp.c). */
                assert_true(info.relative_gap <= 0.2);
            }
            dcrf_solver_free(&solver);
        }
        free_elsewhere(&there);
        free_toy(&toy);
    }
}

/* A certificate made with a device holds without it and is checked without it. */
static void certificates_are_checked_on_the_cpu(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct toy toy = toy_of(seed);
        struct elsewhere there = plan_elsewhere(&toy, "cuda");
        dcrf_plan *fast;
        const bool is_exact = seed % 2 == 0;
        dcrf_settings settings;
        dcrf_verification found;
        dcrf_error error = {0};
        size_t size;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.proof = DCRF_PROVE_CERTIFICATE;
        /* The fast operators of this device differ entirely from those of the CPU. */
        assert_int_equal(dcrf_plan_new(&fast, toy.model, DCRF_OPERATOR_FAST, there.workspace, NULL),
                         DCRF_OK);
        dcrf_solver *solver =
            run_solver(is_exact ? there.plan : fast, there.workspace, &settings, NULL);
        setenv("FAKE_FAILURE", "operator_new", 1);
        assert_int_equal(dcrf_solver_prove(solver, &error), DCRF_OK);
        const uint8_t *bytes = dcrf_proof_certificate(dcrf_solver_proof(solver), &size);
        assert_non_null(bytes);
        if (dcrf_verify_certificate(bytes, size, toy.model, there.workspace, NULL, NULL, 0, &found,
                                    &error) < 0)
            fail_msg("toy %zu: %s", (size_t)seed, error.message);
        unsetenv("FAKE_FAILURE");
        assert_int_equal(found.is_exact, is_exact);
        if (is_exact)
            assert_true(found.lower_bound <= toy_optimum(&toy, NULL));
        assert_string_equal(dcrf_workspace_device(there.workspace), "cuda:0");
        dcrf_solver_free(&solver);
        dcrf_plan_free(&fast);
        free_elsewhere(&there);
        free_toy(&toy);
    }
}

/* The parts of the bound that go into a certificate are the same as on the CPU. */
static void parts_of_the_bound_are_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct toy toy = toy_of(seed);
        struct elsewhere there = plan_elsewhere(&toy, "cuda");
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.iterations = 6;
        settings.gap = 0;
        settings.proof = DCRF_PROVE_CERTIFICATE;
        dcrf_solver *here = run_solver(toy.plan, toy.workspace, &settings, NULL);
        dcrf_solver *away = run_solver(there.plan, there.workspace, &settings, NULL);
        const struct dcrf_lp_mixture *one = &((struct dcrf_lp *)here->state)->mixture;
        const struct dcrf_lp_mixture *other = &((struct dcrf_lp *)away->state)->mixture;
        assert_int_equal(one->count, other->count);
        for (size_t k = 0; k < one->count; k++)
            for (size_t a = 0; a < toy.variables; a++)
                for (size_t i = 0; i < toy.labels; i++) {
                    const size_t cell = a * dcrf_padded(toy.labels) + i;
                    assert_true(fabsf(one->parts[k].y[cell] - other->parts[k].y[cell]) <= 1e-3f);
                }
        dcrf_solver_free(&here);
        dcrf_solver_free(&away);
        free_elsewhere(&there);
        free_toy(&toy);
    }
}

/* The host's copies of y and of the best dual point are those of the last step, however often they
 * were read before: y is the CPU's, and the point proves the claimed bound, except for what its
 * last mixture lost to rounding. */
static void copies_follow_the_steps(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct toy toy = toy_of(seed);
        struct elsewhere there = plan_elsewhere(&toy, "cuda");
        dcrf_settings settings;
        dcrf_solver *solvers[2];
        dcrf_error error = {0};
        float y[2][MOST * 8];
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.gap = 0;
        settings.stationarity = 0;
        must(dcrf_solver_new(&solvers[0], toy.plan, toy.workspace, &settings, &error), &error);
        must(dcrf_solver_new(&solvers[1], there.plan, there.workspace, &settings, &error), &error);
        for (size_t step = 0; step < 6; step++) {
            for (size_t k = 0; k < 2; k++) {
                struct dcrf_lp *lp = solvers[k]->state;
                assert_true(dcrf_solver_step(solvers[k], &error) >= 0);
                must(dcrf_solver_marginals(solvers[k], y[k], MOST * 8, toy.labels, &error), &error);
                must(dcrf_lp_fetch_best(lp, &error), &error);
                assert_near(dcrf_dual_bound(&lp->space, &lp->best), lp->bound,
                            1e-6 * (1 + fabs(lp->bound)));
            }
            for (size_t k = 0; k < toy.variables * toy.labels; k++)
                assert_near((double)y[1][k], (double)y[0][k], 1e-4);
        }
        for (size_t k = 0; k < 2; k++)
            dcrf_solver_free(&solvers[k]);
        free_elsewhere(&there);
        free_toy(&toy);
    }
}

/* What the device refuses is done by the CPU, and proves what it should. */
static void the_cpu_does_what_the_device_cannot(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct toy toy = new_toy(seed, 9, 3, 2, 0.2, TOY_POTTS, 1);
        struct elsewhere there = plan_elsewhere(&toy, "cuda");
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.lp.clique_form = DCRF_CLIQUE_SPREAD;
        dcrf_solver *solver = run_solver(there.plan, there.workspace, &settings, NULL);
        const struct dcrf_lp *lp = solver->state;
        assert_ptr_equal(lp->methods, dcrf_backend_cpu.lp);
        assert_true(solver->info.lower_bound <= toy_optimum(&toy, NULL));
        dcrf_solver_free(&solver);
        free_elsewhere(&there);
        free_toy(&toy);
    }
}

/* Asks the kernel: write() fails on memory that cannot be read. */
static bool can_be_read(const void *memory) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const bool is_readable = write(ends[1], memory, 1) == 1;
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    return is_readable;
}

/* All tests with this device rely on this: a host that reads device memory crashes. */
static void the_host_cannot_read_the_device(void **state) {
    (void)state;
    struct toy toy = toy_of(0);
    struct elsewhere there = plan_elsewhere(&toy, "cuda");
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    dcrf_solver *solver = run_solver(there.plan, there.workspace, &settings, NULL);
    const struct dcrf_lp *lp = solver->state;
    assert_ptr_not_equal(lp->methods, dcrf_backend_cpu.lp);
    assert_true(can_be_read(lp));
    assert_false(can_be_read(lp->blocks));
    dcrf_solver_free(&solver);
    free_elsewhere(&there);
    free_toy(&toy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_field_is_the_same),
        cmocka_unit_test(mean_field_of_any_compatibility_is_the_same),
        cmocka_unit_test(qp_is_the_same),
        cmocka_unit_test(a_weight_that_changes_is_taken),
        cmocka_unit_test(proximal_steps_are_the_same),
        cmocka_unit_test(the_lp_is_the_same),
        cmocka_unit_test(the_flow_is_the_same),
        cmocka_unit_test(relaxations_hold),
        cmocka_unit_test(certificates_are_checked_on_the_cpu),
        cmocka_unit_test(parts_of_the_bound_are_the_same),
        cmocka_unit_test(copies_follow_the_steps),
        cmocka_unit_test(the_cpu_does_what_the_device_cannot),
        cmocka_unit_test(the_host_cannot_read_the_device),
        cmocka_unit_test(nothing_is_left), /* must be last */
    };
    setenv("DCRF_CUDA_LIBRARY", FAKE_BACKEND, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
