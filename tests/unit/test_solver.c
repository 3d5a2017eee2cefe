/* The solver as a whole, for every method: against enumeration, and invariances. */
#include "toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Energies come from float kernels and float unaries and are added in double: 4e-6 of the sum of
 * the absolute values, which for these toys is below 60. */
#define TOLERANCE 2e-4

#define MOST_VARIABLES 64

static const dcrf_method methods[] = {DCRF_METHOD_MF, DCRF_METHOD_QP};
#define METHODS (sizeof methods / sizeof methods[0])

static dcrf_solver *new_solver(const struct toy *toy, const dcrf_settings *settings) {
    dcrf_solver *solver;
    dcrf_error error = {0};
    if (dcrf_solver_new(&solver, toy->plan, toy->workspace, settings, &error) != DCRF_OK)
        fail_msg("%s", error.message);
    return solver;
}

static dcrf_settings new_settings(dcrf_method method) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, method);
    return settings;
}

/* Those of a new solver. */
static void check_first_labels(const struct toy *toy, const dcrf_solver *solver) {
    uint16_t first[MOST_VARIABLES], unary[MOST_VARIABLES];
    assert_int_equal(dcrf_solver_labels(solver, first, toy->variables, NULL), DCRF_OK);
    assert_int_equal(dcrf_label_by_unary(toy->model, unary, toy->variables, NULL), DCRF_OK);
    assert_memory_equal(first, unary, toy->variables * sizeof *first);
}

/* Run, compare the reported energy with the naive one, and return it. */
static double run_and_check(const struct toy *toy, dcrf_solver *solver, uint16_t *labels) {
    dcrf_error error = {0};
    dcrf_solver_info info;
    if (dcrf_solver_run(solver, &error) <= 0)
        fail_msg("%s", error.message);
    dcrf_solver_get_info(solver, &info);
    dcrf_solver_labels(solver, labels, toy->variables, NULL);
    const double energy = toy_energy(toy, labels);
    assert_true(fabs(info.energy.total - energy) <= TOLERANCE);
    assert_true(fabs(info.energy.unary + info.energy.pairwise + info.energy.cliques - energy) <=
                TOLERANCE);
    assert_true(info.energy.total <= info.unpolished.total);
    assert_true(info.unpolished.total <= info.rounded.total);
    assert_true(isnan(info.lower_bound) && isnan(info.relative_gap));
    return energy;
}

/* ---- enumeration ---------------------------------------------------------------------------- */

static void check_toy(const struct toy *toy, double *excess) {
    uint16_t labels[MOST_VARIABLES];
    const double optimum = toy_optimum(toy, NULL);
    for (size_t k = 0; k < METHODS; k++) {
        dcrf_settings settings = new_settings(methods[k]);
        settings.rounding_draws = 3;
        dcrf_solver *solver = new_solver(toy, &settings);
        check_first_labels(toy, solver);
        const double energy = run_and_check(toy, solver, labels);
        assert_true(energy >= optimum - 1e-9);
        /* Never worse than a constant labelling or the minimum of the unaries. */
        for (size_t i = 0; i <= toy->labels; i++) {
            uint16_t simple[MOST_VARIABLES];
            for (size_t a = 0; a < toy->variables; a++) {
                simple[a] = (uint16_t)i;
                for (size_t j = 0; i == toy->labels && j < toy->labels; j++)
                    if (j == 0 ||
                        toy->unary[a * toy->labels + j] < toy->unary[a * toy->labels + simple[a]])
                        simple[a] = (uint16_t)j;
            }
            assert_true(energy <= toy_energy(toy, simple) + TOLERANCE);
        }
        excess[k] += (energy - optimum) / fabs(optimum);
        dcrf_solver_free(&solver);
        assert_null(solver);
    }
}

static void energies_are_at_least_the_optimum(void **state) {
    (void)state;
    double excess[METHODS] = {0};
    const int toys = 300;
    for (int t = 0; t < toys; t++) {
        const size_t labels = 2 + (size_t)t % 3;
        const size_t variables = t % 30 == 0 ? (labels == 2   ? 16
                                                : labels == 3 ? 12
                                                              : 9)
                                             : 3 + (size_t)t % 6;
        struct toy toy = new_toy((uint64_t)t, variables, labels, (size_t)t % 4,
                                 0.3 * (double)(t % 5), t % 4 == 3 ? TOY_GENERAL : TOY_POTTS, 1);
        check_toy(&toy, excess);
        free_toy(&toy);
    }
    for (size_t k = 0; k < METHODS; k++)
        print_message("%s with polishing: %.3f %% above the optimum on average\n",
                      dcrf_method_name(methods[k]), 100 * excess[k] / toys);
}

/* ---- what must not matter ------------------------------------------------------------------- */

static void renaming_labels_and_adding_constants_changes_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        const size_t labels = 4, variables = 30;
        const size_t renaming[] = {2, 0, 3, 1};
        double constants[MOST_VARIABLES];
        for (size_t a = 0; a < variables; a++)
            constants[a] = 0.25 * (double)(a % 9) - 1; /* exact in float */
        struct toy toy =
            new_toy(seed, variables, labels, 3, 0.4, seed % 2 ? TOY_GENERAL : TOY_POTTS, 1);
        for (size_t k = 0; k < METHODS; k++) {
            uint16_t before[MOST_VARIABLES], after[MOST_VARIABLES];
            const dcrf_settings settings = new_settings(methods[k]);
            dcrf_solver *solver = new_solver(&toy, &settings);
            run_and_check(&toy, solver, before);
            dcrf_solver_free(&solver);
            struct toy changed =
                new_toy(seed, variables, labels, 3, 0.4, seed % 2 ? TOY_GENERAL : TOY_POTTS, 1);
            change_toy(&changed, constants, renaming);
            solver = new_solver(&changed, &settings);
            run_and_check(&changed, solver, after);
            dcrf_solver_free(&solver);
            free_toy(&changed);
            for (size_t a = 0; a < variables; a++)
                assert_int_equal(after[a], renaming[before[a]]);
        }
        free_toy(&toy);
    }
}

static void thread_counts_give_the_same_bytes(void **state) {
    (void)state;
    enum { WIDTH = 90, HEIGHT = 70, LABELS = 5, VARIABLES = WIDTH * HEIGHT };
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const size_t threads[] = {1, 2, 3, 8, 16};
    float *unary = malloc(VARIABLES * LABELS * sizeof *unary);
    uint8_t *image = malloc(VARIABLES * 3);
    int32_t *map = malloc(VARIABLES * sizeof *map);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (size_t k = 0; k < VARIABLES * LABELS; k++)
        unary[k] = (float)(3 * dcrf_rng_uniform(&rng));
    for (size_t a = 0; a < VARIABLES; a++) {
        map[a] = (int32_t)((a / WIDTH / 9) * 100 + a % WIDTH / 9);
        for (size_t c = 0; c < 3; c++)
            image[3 * a + c] =
                (uint8_t)(40 * (double)(a % WIDTH / 30) + 60 * dcrf_rng_uniform(&rng));
    }
    dcrf_model *model;
    assert_int_equal(dcrf_model_new(&model, &grid, LABELS, NULL), DCRF_OK);
    const dcrf_view unary_view = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_view map_view = dcrf_view_interleaved(map, DCRF_I32, &grid, 1);
    const dcrf_kernel spatial = dcrf_kernel_spatial(2, 1);
    const dcrf_kernel bilateral =
        dcrf_kernel_bilateral(10, 30, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 1);
    assert_int_equal(dcrf_model_set_unary(model, &unary_view, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &spatial, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &bilateral, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_clique_map(model, &map_view, 5, NULL), DCRF_OK);
    uint16_t *labels[2] = {malloc(VARIABLES * 2), malloc(VARIABLES * 2)};
    float *marginals[2] = {malloc(VARIABLES * LABELS * 4), malloc(VARIABLES * LABELS * 4)};
    for (size_t k = 0; k < METHODS; k++)
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            const size_t side = t > 0;
            dcrf_workspace *workspace;
            dcrf_plan *plan;
            dcrf_solver *solver;
            dcrf_settings settings = new_settings(methods[k]);
            settings.iterations = 8;
            settings.rounding_draws = 2;
            assert_int_equal(dcrf_workspace_new(&workspace, threads[t], NULL), DCRF_OK);
            assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, NULL),
                             DCRF_OK);
            assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, NULL), DCRF_OK);
            assert_true(dcrf_solver_run(solver, NULL) > 0);
            dcrf_solver_labels(solver, labels[side], VARIABLES, NULL);
            assert_int_equal(
                dcrf_solver_marginals(solver, marginals[side], VARIABLES * LABELS, LABELS, NULL),
                DCRF_OK);
            if (side) {
                assert_memory_equal(labels[0], labels[1], VARIABLES * 2);
                assert_memory_equal(marginals[0], marginals[1], VARIABLES * LABELS * 4);
            }
            dcrf_solver_free(&solver);
            dcrf_plan_free(&plan);
            dcrf_workspace_free(&workspace);
        }
    dcrf_model_free(&model);
    free(unary);
    free(image);
    free(map);
    for (int side = 0; side < 2; side++) {
        free(labels[side]);
        free(marginals[side]);
    }
}

/* ---- starts --------------------------------------------------------------------------------- */

static void a_warm_start_never_ends_worse(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy = new_toy(seed, 9, 3, 2, 1, seed % 3 ? TOY_POTTS : TOY_GENERAL, 1);
        uint16_t best[MOST_VARIABLES], labels[MOST_VARIABLES];
        float marginals[MOST_VARIABLES * 3];
        const double optimum = toy_optimum(&toy, best);
        for (size_t k = 0; k < METHODS; k++) {
            const dcrf_settings settings = new_settings(methods[k]);
            dcrf_solver *solver = new_solver(&toy, &settings);
            assert_int_equal(dcrf_solver_start_labels(solver, best, NULL), DCRF_OK);
            assert_true(run_and_check(&toy, solver, labels) <= optimum + TOLERANCE);
            dcrf_solver_free(&solver);

            for (size_t a = 0; a < toy.variables; a++)
                for (size_t i = 0; i < 3; i++)
                    marginals[3 * a + i] = best[a] == i ? 0.5f : 0.25f;
            solver = new_solver(&toy, &settings);
            assert_int_equal(dcrf_solver_start_marginals(solver, marginals, 3, NULL), DCRF_OK);
            assert_true(run_and_check(&toy, solver, labels) <= optimum + TOLERANCE);
            /* Again, from the result. */
            assert_true(run_and_check(&toy, solver, labels) <= optimum + TOLERANCE);
            dcrf_solver_free(&solver);
        }
        free_toy(&toy);
    }
}

static void bad_starts_are_refused(void **state) {
    (void)state;
    struct toy toy = new_toy(1, 5, 3, 1, 1, TOY_POTTS, 1);
    const dcrf_settings settings = new_settings(DCRF_METHOD_QP);
    dcrf_solver *solver = new_solver(&toy, &settings);
    dcrf_error error;
    uint16_t labels[] = {0, 1, 2, 3, 0};
    float marginals[15], out[15];
    uint16_t before[5], after[5];
    dcrf_solver_labels(solver, before, 5, NULL);
    for (size_t k = 0; k < 15; k++)
        marginals[k] = 1.0f / 3;
    assert_fails(DCRF_ERROR_ARGUMENT, "not started", error,
                 dcrf_solver_marginals(solver, out, 15, 3, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "variable 3 has label 3", error,
                 dcrf_solver_start_labels(solver, labels, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "no labels", error,
                 dcrf_solver_start_labels(solver, NULL, &error));
    assert_fails(DCRF_ERROR_SIZE, "3 floats", error,
                 dcrf_solver_start_marginals(solver, marginals, 2, &error));
    const float bad[] = {NAN, INFINITY, -0.5f, 0.8f};
    for (size_t k = 0; k < 4; k++) {
        marginals[7] = bad[k];
        assert_fails(DCRF_ERROR_ARGUMENT, "variable 2", error,
                     dcrf_solver_start_marginals(solver, marginals, 3, &error));
    }
    dcrf_solver_labels(solver, after, 5, NULL);
    assert_memory_equal(before, after, sizeof before);
    dcrf_solver_free(&solver);
    free_toy(&toy);
}

/* ---- stopping ------------------------------------------------------------------------------- */

struct watch {
    size_t calls, stop_after;
    double best_energy;
};

static int watch_progress(void *user, const dcrf_moment *moment) {
    struct watch *watch = user;
    if (moment->stage != DCRF_STAGE_SOLVE)
        return 0;
    assert_int_equal(moment->iteration, ++watch->calls);
    assert_true(isnan(moment->lower_bound));
    watch->best_energy = moment->best_energy;
    return watch->calls == watch->stop_after;
}

static void callbacks_cancel(void **state) {
    (void)state;
    struct toy toy = new_toy(3, 40, 4, 4, 0.3, TOY_POTTS, 1);
    for (size_t k = 0; k < METHODS; k++) {
        uint16_t labels[MOST_VARIABLES];
        struct watch watch = {0, 3, 0};
        dcrf_settings settings = new_settings(methods[k]);
        settings.progress = watch_progress;
        settings.progress_user = &watch;
        settings.stationarity = 0;
        dcrf_solver *solver = new_solver(&toy, &settings);
        assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_CANCELLED);
        dcrf_solver_info info;
        dcrf_solver_get_info(solver, &info);
        dcrf_solver_labels(solver, labels, MOST_VARIABLES, NULL);
        assert_int_equal(info.iterations, 3);
        assert_int_equal(info.stop, DCRF_STOP_CANCELLED);
        assert_true(fabs(info.energy.total - toy_energy(&toy, labels)) <= TOLERANCE);
        assert_true(info.energy.total <= watch.best_energy);
        dcrf_solver_free(&solver);
    }
    free_toy(&toy);
}

static void limits_stop(void **state) {
    (void)state;
    struct toy toy = new_toy(3, 60, 4, 4, 0.3, TOY_POTTS, 1);
    for (size_t k = 0; k < METHODS; k++) {
        uint16_t labels[MOST_VARIABLES];
        dcrf_solver_info info;
        dcrf_settings settings = new_settings(methods[k]);
        settings.iterations = SIZE_MAX;
        settings.stationarity = 0;
        /* On a busy machine, raise the limit until there is time for an iteration. */
        settings.time_limit_s = 0.02;
        dcrf_solver *solver = NULL;
        do {
            dcrf_solver_free(&solver);
            solver = new_solver(&toy, &settings);
            assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_TIME);
            dcrf_solver_get_info(solver, &info);
            settings.time_limit_s *= 4;
        } while (info.iterations == 0 && settings.time_limit_s < 100);
        dcrf_solver_labels(solver, labels, MOST_VARIABLES, NULL);
        assert_true(info.iterations > 0);
        assert_true(fabs(info.energy.total - toy_energy(&toy, labels)) <= TOLERANCE);
        dcrf_solver_free(&solver);

        for (size_t iterations = 0; iterations < 3; iterations++) {
            settings = new_settings(methods[k]);
            settings.iterations = iterations;
            settings.stationarity = 0;
            solver = new_solver(&toy, &settings);
            assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_ITERATIONS);
            dcrf_solver_get_info(solver, &info);
            assert_int_equal(info.iterations, iterations);
            dcrf_solver_free(&solver);
        }

        settings = new_settings(methods[k]);
        settings.iterations = 100000;
        settings.stationarity = 1e-6;
        solver = new_solver(&toy, &settings);
        assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_STATIONARY);
        dcrf_solver_free(&solver);
    }
    free_toy(&toy);
}

static void steps_and_trace(void **state) {
    (void)state;
    struct toy toy = new_toy(4, 40, 3, 3, 0.3, TOY_POTTS, 1);
    for (size_t k = 0; k < METHODS; k++) {
        dcrf_settings settings = new_settings(methods[k]);
        settings.iterations = 40000; /* more than the trace holds */
        settings.stationarity = 0;
        settings.trace = 1;
        dcrf_solver *solver = new_solver(&toy, &settings);
        const size_t steps = 20000;
        for (size_t s = 0; s < steps; s++)
            assert_int_equal(dcrf_solver_step(solver, NULL), DCRF_OK);
        size_t count;
        const dcrf_moment *moments = dcrf_solver_trace(solver, &count);
        assert_true(count >= 8192 && count <= 16384);
        size_t first = 0; /* iteration */
        while (moments[first].stage == DCRF_STAGE_CANDIDATES)
            first++;
        assert_true(first <= DCRF_CANDIDATE_KINDS && moments[first].iteration <= 2);
        for (size_t m = first + 1; m < count; m++) {
            assert_int_equal(moments[m].iteration - moments[m - 1].iteration, 2);
            assert_true(moments[m].time_s >= moments[m - 1].time_s);
            assert_true(moments[m].best_energy <= moments[m - 1].best_energy);
            assert_true(isfinite(moments[m].objective) && isfinite(moments[m].energy));
        }
        assert_int_equal(dcrf_solver_finish(solver, NULL), DCRF_OK);
        dcrf_solver_free(&solver);
    }
    free_toy(&toy);
}

/* ---- settings ------------------------------------------------------------------------------- */

static void defaults_set_every_field(void **state) {
    (void)state;
    dcrf_settings first, second;
    for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++) {
        /* Junk that differs in every byte: a field that is not set differs afterwards. */
        memset(&first, 0x5a, sizeof first);
        memset(&second, 0xa5, sizeof second);
        dcrf_settings_defaults(&first, method);
        dcrf_settings_defaults(&second, method);
        assert_memory_equal(&first, &second, sizeof first);
        dcrf_method found;
        assert_int_equal(dcrf_method_from_name(dcrf_method_name(method), &found), 1);
        assert_int_equal(found, method);
    }
    assert_null(dcrf_method_name((dcrf_method)3));
    dcrf_method found;
    assert_int_equal(dcrf_method_from_name("nothing", &found), 0);
}

static void bad_settings_are_refused(void **state) {
    (void)state;
    struct toy toy = new_toy(1, 5, 3, 1, 1, TOY_POTTS, 1);
    dcrf_solver *solver;
    dcrf_error error;
#define REFUSED(change, text)                                                                      \
    do {                                                                                           \
        dcrf_settings settings = new_settings(DCRF_METHOD_MF);                                     \
        change;                                                                                    \
        assert_fails(DCRF_ERROR_ARGUMENT, text, error,                                             \
                     dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, &error));        \
        assert_null(solver);                                                                       \
    } while (0)
    REFUSED(settings.method = (dcrf_method)7, "method 7");
    REFUSED(settings.time_limit_s = -1, "time limit");
    REFUSED(settings.time_limit_s = (double)NAN, "time limit");
    REFUSED(settings.gap = (double)NAN, "gap");
    REFUSED(settings.stationarity = (double)INFINITY, "stationarity");
    REFUSED(settings.damping = 1, "damping");
    REFUSED(settings.damping = (double)NAN, "damping");
    REFUSED(settings.reserved[3] = 1, "reserved");
    REFUSED(settings.lp.clique_form = (dcrf_clique_form)5, "clique form");
    REFUSED(settings.lp.schedule = (dcrf_lp_schedule)9, "schedule");
#undef REFUSED
    assert_fails(DCRF_ERROR_ARGUMENT, "settings", error,
                 dcrf_solver_new(&solver, toy.plan, toy.workspace, NULL, &error));
    dcrf_solver_free(&solver);
    dcrf_solver_free(NULL);
    free_toy(&toy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energies_are_at_least_the_optimum),
        cmocka_unit_test(renaming_labels_and_adding_constants_changes_nothing),
        cmocka_unit_test(thread_counts_give_the_same_bytes),
        cmocka_unit_test(a_warm_start_never_ends_worse),
        cmocka_unit_test(bad_starts_are_refused),
        cmocka_unit_test(callbacks_cancel),
        cmocka_unit_test(limits_stop),
        cmocka_unit_test(steps_and_trace),
        cmocka_unit_test(defaults_set_every_field),
        cmocka_unit_test(bad_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
