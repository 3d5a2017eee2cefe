/* The LP method and its bound against enumeration, and invariances. */
#include "scene.h"
#include "toy.h"

#include "energy/labelling.h"
#include "lp/lp.h"
#include "model/model.h"
#include "round/polish.h"
#include "solver/solver.h"

#include <dcrf/solver.h>
#include <math.h>
#include <stdlib.h>

/* The oracle's matrix follows the formula; the operator rounds the normalization to float. Both
 * agree to 2e-7 of the energy's terms, which are below 10 per variable and pair here. */
#define AGREEMENT 2e-6

struct solved {
    dcrf_solver_info info;
    uint16_t *labels;
    float *marginals;
};

static struct solved experiment_with(const dcrf_plan *plan, dcrf_workspace *workspace,
                                     const dcrf_settings *settings,
                                     const struct dcrf_lp_experiment *experiment) {
    const dcrf_model *model = dcrf_plan_model(plan);
    const size_t n = dcrf_model_variables(model), labels = dcrf_model_labels(model);
    struct solved solved = {.labels = malloc(n * sizeof(uint16_t)),
                            .marginals = malloc(n * labels * sizeof(float))};
    dcrf_solver *solver;
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, settings, NULL), DCRF_OK);
    if (experiment)
        dcrf_lp_set_experiment(solver->state, experiment);
    assert_true(dcrf_solver_run(solver, NULL) > 0);
    dcrf_solver_get_info(solver, &solved.info);
    dcrf_solver_labels(solver, solved.labels, n, NULL);
    assert_int_equal(dcrf_solver_marginals(solver, solved.marginals, n * labels, labels, NULL),
                     DCRF_OK);
    dcrf_solver_free(&solver);
    return solved;
}

static struct solved solve_plan(const dcrf_plan *plan, dcrf_workspace *workspace,
                                const dcrf_settings *settings) {
    return experiment_with(plan, workspace, settings, NULL);
}

static void free_solved(struct solved *solved) {
    free(solved->labels);
    free(solved->marginals);
}

static dcrf_settings settings_for(uint64_t seed) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.iterations = 30;
    settings.lp.clique_form = seed % 2 ? DCRF_CLIQUE_SPREAD : DCRF_CLIQUE_MIN;
    settings.lp.schedule = seed % 3       ? DCRF_LP_SCHEDULE_HUBER
                           : seed % 5 % 2 ? DCRF_LP_SCHEDULE_PROXIMAL
                                          : DCRF_LP_SCHEDULE_PAPER;
    return settings;
}

static struct dcrf_lp_experiment experiment_for(uint64_t seed) {
    struct dcrf_lp_experiment experiment = DCRF_LP_USUAL;
    experiment.bins = (size_t)8 << seed % 4;
    return experiment;
}

static void check_against_enumeration(uint64_t seed, size_t variables, size_t labels,
                                      enum toy_pairs pairs, size_t *optimal) {
    const double strengths[] = {0.1, 0.4, 1, 4};
    struct toy toy = new_toy(seed, variables, labels, seed % 4, strengths[seed / 4 % 4], pairs, 1);
    const dcrf_settings settings = settings_for(seed);
    const struct dcrf_lp_experiment experiment = experiment_for(seed);
    struct solved solved = experiment_with(toy.plan, toy.workspace, &settings, &experiment);
    const double optimum = toy_optimum(&toy, NULL), energy = toy_energy(&toy, solved.labels);
    const double tolerance = AGREEMENT * (double)variables * (1 + fabs(optimum));
    if (!(solved.info.lower_bound <= optimum + tolerance))
        fail_msg("seed %d: bound %.9g above the optimum %.9g", (int)seed, solved.info.lower_bound,
                 optimum);
    assert_true(energy >= optimum - tolerance);
    assert_true(fabs(energy - solved.info.energy.total) <= tolerance);
    *optimal += energy <= optimum + tolerance;
    free_solved(&solved);
    free_toy(&toy);
}

static void bound_below_optimum(void **state) {
    (void)state;
    size_t optimal = 0, count = 0;
    for (uint64_t seed = 0; seed < 400; seed++, count++)
        check_against_enumeration(seed, 2 + seed % 7, 2 + seed / 7 % 3, TOY_POTTS, &optimal);
    for (uint64_t seed = 1000; seed < 1004; seed++, count++)
        check_against_enumeration(seed, 12, 3, TOY_POTTS, &optimal);
    for (uint64_t seed = 2000; seed < 2100; seed++, count++)
        check_against_enumeration(seed, 2 + seed % 7, 2 + seed / 7 % 3, TOY_MULTIPLE, &optimal);
    print_message("%zu of %zu labellings are optimal\n", optimal, count);
}

/* With two labels the LP is tight (the model is submodular), and rounding its solution at any
 * threshold is optimal. */
static void two_labels(void **state) {
    (void)state;
    size_t optimal = 0, count = 0;
    double gap = 0;
    for (uint64_t seed = 0; seed < 200; seed++, count++) {
        struct toy toy =
            new_toy(seed, 8 + seed % 7, 2, seed % 3, 0.1 + (double)(seed % 10) / 5, TOY_POTTS, 1);
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.iterations = 100;
        settings.gap = 1e-5;
        struct solved solved = solve_plan(toy.plan, toy.workspace, &settings);
        const double optimum = toy_optimum(&toy, NULL), energy = toy_energy(&toy, solved.labels);
        optimal += energy <= optimum + 1e-4;
        gap += solved.info.relative_gap;
        free_solved(&solved);
        free_toy(&toy);
    }
    print_message("two labels: %zu of %zu optimal, mean certified gap %.4f %%\n", optimal, count,
                  100 * gap / (double)count);
    assert_true(optimal * 100 >= count * 99);
}

/* No method ends above mean field, nor, if the gap stays open, above five polished steps of it. */
static void second_opinion(void **state) {
    (void)state;
    enum { VARIABLES = 40, LABELS = 4 };
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct toy toy =
            new_toy(seed, VARIABLES, LABELS, seed % 3, 0.1 * (double)(1 + seed % 8), TOY_POTTS, 1);
        dcrf_settings lp, mean_field;
        dcrf_settings_defaults(&lp, DCRF_METHOD_LP);
        lp.iterations = 1;
        dcrf_settings_defaults(&mean_field, DCRF_METHOD_MF);
        mean_field.iterations = 5;
        mean_field.polish = 0;
        struct solved field = solve_plan(toy.plan, toy.workspace, &mean_field);
        const struct dcrf_marginals rows = {field.marginals, VARIABLES, LABELS, LABELS, NULL};
        struct dcrf_coupling *coupling;
        struct dcrf_polisher *polisher;
        assert_int_equal(dcrf_coupling_new(&coupling, toy.plan, toy.workspace, NULL), DCRF_OK);
        assert_int_equal(dcrf_polisher_new(&polisher, coupling, NULL), DCRF_OK);
        dcrf_labels_of_marginals(&rows, NULL, field.labels);
        assert_int_equal(dcrf_polish(polisher, field.labels, lp.polish_rounds, NULL, NULL),
                         DCRF_OK);
        dcrf_polisher_free(&polisher);
        dcrf_coupling_free(&coupling);
        struct solved solved = solve_plan(toy.plan, toy.workspace, &lp);
        const double energy = toy_energy(&toy, solved.labels);
        assert_true(energy <=
                    toy_energy(&toy, field.labels) + AGREEMENT * (double)VARIABLES * energy);
        free_solved(&solved);
        free_solved(&field);
        free_toy(&toy);
    }
}

/* If the dual of every step is solved well, the objective of the proximal sequence falls, up to the
 * error of the inner steps (their gap is O(1 / steps)) and the bins: 0.5 %. */
static void proximal_objective_falls(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct toy toy = new_toy(seed, 20, 3, seed % 3, 0.5, TOY_POTTS, 1);
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.lp.schedule = DCRF_LP_SCHEDULE_PROXIMAL;
        struct dcrf_lp_experiment experiment = DCRF_LP_USUAL;
        experiment.inner_steps = 100;
        experiment.bins = 256;
        settings.lp.clique_form = seed % 2 ? DCRF_CLIQUE_SPREAD : DCRF_CLIQUE_MIN;
        settings.iterations = 10;
        settings.gap = 0;
        dcrf_solver *solver;
        float y[20 * 3];
        double before = (double)INFINITY;
        assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        dcrf_lp_set_experiment(solver->state, &experiment);
        for (int k = 0; k < 10; k++) {
            assert_true(dcrf_solver_step(solver, NULL) >= 0);
            assert_int_equal(dcrf_solver_marginals(solver, y, 60, 3, NULL), DCRF_OK);
            const double objective =
                toy_lp_objective(&toy, y, (dcrf_clique_form)settings.lp.clique_form);
            if (!(objective <= before * 1.005))
                fail_msg("seed %d, step %d: %.9g after %.9g", (int)seed, k, objective, before);
            before = fmin(before, objective);
        }
        dcrf_solver_free(&solver);
        free_toy(&toy);
    }
}

static void renaming_labels(void **state) {
    (void)state;
    const size_t renaming[] = {2, 0, 3, 1};
    const double constants[12] = {0.5, -1, 2, 0, 3, -0.25, 1, 1, -2, 0.125, 4, 0};
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct toy toy = new_toy(seed, 12, 4, seed % 3, 0.5, TOY_POTTS, 1);
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.lp.schedule = (int)(seed % 3);
        struct solved before = solve_plan(toy.plan, toy.workspace, &settings);
        change_toy(&toy, constants, renaming);
        struct solved after = solve_plan(toy.plan, toy.workspace, &settings);
        double shift = 0;
        for (size_t a = 0; a < 12; a++) {
            shift += constants[a];
            assert_int_equal(after.labels[a], renaming[before.labels[a]]);
        }
        assert_true(fabs(after.info.energy.total - before.info.energy.total - shift) < 1e-3);
        /* Iterates differ by rounding, and the stopping gap may be reached one step earlier. */
        assert_true(fabs(after.info.lower_bound - before.info.lower_bound - shift) <
                    1e-3 * fabs(before.info.energy.total));
        free_solved(&before);
        free_solved(&after);
        free_toy(&toy);
    }
}

/* The same bytes after two iterations with 1 to 16 threads, with every kind of fast operator. */
static void same_bytes_for_all_threads(void **state) {
    (void)state;
    const size_t threads[] = {1, 2, 3, 8, 16};
    for (int schedule = 0; schedule < 3; schedule++)
        for (int form = 0; form < 2; form++) {
            struct solved first = {0};
            for (size_t k = 0; k < sizeof threads / sizeof threads[0]; k++) {
                struct scene scene =
                    new_scene(dcrf_grid_2d(64, 48), 5, threads[k], DCRF_OPERATOR_FAST, NO_MATRICES);
                dcrf_settings settings;
                dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
                settings.lp.schedule = (int)schedule;
                settings.lp.clique_form = (int)form;
                settings.iterations = 6;
                struct dcrf_lp_experiment experiment = DCRF_LP_USUAL;
                experiment.inner_steps = 3;
                struct solved solved =
                    experiment_with(scene.plan, scene.workspace, &settings, &experiment);
                if (k == 0) {
                    first = solved;
                } else {
                    const size_t n = scene.variables;
                    assert_memory_equal(first.labels, solved.labels, n * sizeof(uint16_t));
                    assert_memory_equal(first.marginals, solved.marginals, n * 5 * sizeof(float));
                    assert_memory_equal(&first.info.lower_bound, &solved.info.lower_bound,
                                        sizeof(double));
                    free_solved(&solved);
                }
                free_scene(&scene);
            }
            free_solved(&first);
        }
}

/* If the kernels overwhelm the unaries, the flow proves the best constant labelling optimal at
 * once. */
static void constant_is_proven(void **state) {
    (void)state;
    size_t constant = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct toy toy = new_toy(seed, 10, 3, seed % 3, 300, TOY_POTTS, 1);
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        struct solved solved = solve_plan(toy.plan, toy.workspace, &settings);
        const double optimum = toy_optimum(&toy, NULL);
        if (solved.info.is_constant) {
            constant++;
            assert_true(solved.info.lower_bound <= optimum * (1 + 1e-6));
            assert_int_equal(solved.info.iterations, 0);
            assert_int_equal(solved.info.stop, DCRF_STOP_GAP);
        }
        free_solved(&solved);
        free_toy(&toy);
    }
    assert_true(constant >= 15);
}

/* From any start, a run ends at or below the energy of its start, and its bound is valid. */
static void warm_starts(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy = new_toy(seed, 9, 3, seed % 3, 0.6, TOY_POTTS, 1);
        dcrf_settings settings = settings_for(seed);
        dcrf_solver *solver;
        dcrf_solver_info info;
        uint16_t labels[9], best[9];
        float y[9 * 3];
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        const double optimum = toy_optimum(&toy, best);
        settings.iterations = 4;
        settings.polish = 0;
        for (size_t a = 0; a < 9; a++)
            labels[a] = seed % 2 ? best[a] : (uint16_t)(dcrf_rng_next(&rng) % 3);
        const double start = toy_energy(&toy, labels);
        assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        assert_int_equal(dcrf_solver_start_labels(solver, labels, NULL), DCRF_OK);
        assert_true(dcrf_solver_run(solver, NULL) > 0);
        dcrf_solver_get_info(solver, &info);
        assert_true(info.energy.total <= start + AGREEMENT * 10 * (1 + fabs(start)));
        assert_true(info.lower_bound <= optimum + AGREEMENT * 10 * (1 + fabs(optimum)));
        /* Again, from its end. */
        const double ended = info.energy.total;
        assert_int_equal(dcrf_solver_marginals(solver, y, 27, 3, NULL), DCRF_OK);
        assert_int_equal(dcrf_solver_start_marginals(solver, y, 3, NULL), DCRF_OK);
        assert_true(dcrf_solver_run(solver, NULL) > 0);
        dcrf_solver_get_info(solver, &info);
        assert_true(info.energy.total <= ended);
        assert_true(info.lower_bound <= optimum + AGREEMENT * 10 * (1 + fabs(optimum)));
        dcrf_solver_free(&solver);
        free_toy(&toy);
    }
}

/* Two halves that prefer different labels, under kernels with row sums of some hundred, from a
 * constant labelling: y has a long way to go, and the width must not become too small before it
 * arrives. */
static void leaves_a_bad_start(void **state) {
    (void)state;
    enum { WIDTH = 40, HEIGHT = 30, COUNT = WIDTH * HEIGHT };
    static float unary[COUNT][2];
    static const uint16_t constant[COUNT] = {0};
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, 2);
    dcrf_kernel kernel = dcrf_kernel_spatial(2, 5);
    dcrf_settings settings;
    dcrf_solver_info info;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
    dcrf_solver *solver;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (size_t a = 0; a < COUNT; a++)
        for (size_t i = 0; i < 2; i++)
            unary[a][i] =
                (float)(40 * dcrf_rng_uniform(&rng) + (i == (a % WIDTH < WIDTH / 2) ? 20 : 0));
    kernel.normalization = DCRF_NORMALIZE_NONE;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.gap = 1e-3;
    settings.iterations = 150;
    settings.polish = 0;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&model, &grid, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_start_labels(solver, constant, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_GAP);
    dcrf_solver_get_info(solver, &info);
    assert_true(!info.is_constant);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
}

static int stop_at_three(void *user, const dcrf_moment *moment) {
    (void)user;
    return moment->iteration == 3;
}

static void limits_leave_a_labelling(void **state) {
    (void)state;
    struct toy toy = new_toy(8, 11, 4, 2, 0.3, TOY_POTTS, 1);
    for (int k = 0; k < 9; k++) {
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.gap = 0;
        settings.iterations = 100;
        settings.lp.schedule = (int)(k % 3);
        if (k / 3 == 0)
            settings.progress = stop_at_three;
        else if (k / 3 == 1)
            settings.time_limit_s = 1e-9;
        else
            settings.gap = 0.9;
        const dcrf_status expected[] = {DCRF_STOP_CANCELLED, DCRF_STOP_TIME, DCRF_STOP_GAP};
        struct solved solved = solve_plan(toy.plan, toy.workspace, &settings);
        assert_int_equal(solved.info.stop, expected[k / 3]);
        assert_true(fabs(toy_energy(&toy, solved.labels) - solved.info.energy.total) < 1e-3);
        free_solved(&solved);
    }
    free_toy(&toy);
}

static void distances_only(void **state) {
    (void)state;
    struct toy toy = new_toy(1, 6, 3, 1, 1, TOY_GENERAL, 1);
    dcrf_settings settings;
    dcrf_solver *solver;
    dcrf_error error;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    assert_fails(DCRF_ERROR_UNSUPPORTED, "not negative, with zeros on the diagonal", error,
                 dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, &error));
    free_toy(&toy);
}

/* A matrix c (1 - I) is Potts with c times the weight. One that differs from it by a rounding stays
 * a matrix, so that mean field can be compared along both code paths. */
static void a_multiple_of_potts_is_potts(void **state) {
    (void)state;
    enum { VARIABLES = 7, LABELS = 3 };
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct toy toy = new_toy(seed, VARIABLES, LABELS, seed % 3, 0.4, TOY_MULTIPLE, 1);
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
        settings.polish = 0;
        struct solved folded = solve_plan(toy.plan, toy.workspace, &settings);
        toy.values[1] = toy.values[LABELS] = nextafterf(toy.values[1], 9);
        assert_int_equal(
            dcrf_model_set_compatibility(toy.model, 1, DCRF_COMPATIBILITY_MATRIX, toy.values, NULL),
            DCRF_OK);
        assert_int_equal(toy.model->kernels[1].compatibility, DCRF_COMPATIBILITY_MATRIX);
        struct solved matrix = solve_plan(toy.plan, toy.workspace, &settings);
        for (size_t k = 0; k < VARIABLES * LABELS; k++)
            assert_true(fabsf(folded.marginals[k] - matrix.marginals[k]) < 1e-5f);
        free_solved(&folded);
        free_solved(&matrix);
        free_toy(&toy);
    }
}

/* A weight or a strength that is set later applies to the matrix. */
static void a_weight_after_a_multiple_of_potts(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct toy toy = new_toy(seed, 7, 3, seed % 3, 0.4, TOY_MULTIPLE, 1);
        const double old = toy.model->kernels[1].given_weight;
        const double ratio = 1.75, strength = dcrf_model_strength(toy.model);
        assert_true(strength == 2 * (toy.model->kernels[0].weight + old));
        for (size_t k = 0; k < 7 * 7; k++)
            toy.matrix[1][k] *= ratio;
        if (seed % 2) {
            for (size_t k = 0; k < 7 * 7; k++)
                toy.matrix[0][k] *= ratio;
            assert_int_equal(dcrf_model_set_strength(toy.model, ratio * strength, NULL), DCRF_OK);
        } else {
            assert_int_equal(dcrf_model_set_weight(toy.model, 1, ratio * old, NULL), DCRF_OK);
        }
        uint16_t best[7];
        dcrf_energy energy;
        const double optimum = toy_optimum(&toy, best);
        assert_int_equal(
            dcrf_energy_of_labels(toy.plan, toy.workspace, best, &energy, NULL, 0, NULL), DCRF_OK);
        assert_true(fabs(energy.total - optimum) <= 7 * AGREEMENT * (1 + fabs(optimum)));
        const dcrf_settings settings = settings_for(seed);
        struct solved solved = solve_plan(toy.plan, toy.workspace, &settings);
        assert_true(solved.info.lower_bound <= optimum + 7 * AGREEMENT * (1 + fabs(optimum)));
        free_solved(&solved);
        free_toy(&toy);
    }
}

/* ---- the best dual point --------------------------------------------------------------------- */

/* alpha_ab:i of the parts of the best dual point, antisymmetric and at most K_ab. */
static double *dense_alpha(const struct toy *toy, const struct dcrf_lp *lp) {
    const size_t n = toy->variables, labels = toy->labels, stride = dcrf_padded(labels);
    double *alpha = calloc(n * n * labels, sizeof *alpha);
    for (size_t k = 0; k < lp->mixture.count; k++)
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                for (size_t i = 0; i < labels; i++) {
                    const struct dcrf_lp_part *part = &lp->mixture.parts[k];
                    const double ya = (double)part->y[a * stride + i];
                    const double yb = (double)part->y[b * stride + i];
                    alpha[(a * n + b) * labels + i] +=
                        lp->best.part_weights[k] * fmax(-1, fmin(1, (yb - ya) / part->epsilon)) *
                        (toy->matrix[0][a * n + b] + toy->matrix[1][a * n + b]);
                }
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            for (size_t i = 0; i < labels; i++) {
                const double k = toy->matrix[0][a * n + b] + toy->matrix[1][a * n + b];
                assert_true(fabs(alpha[(a * n + b) * labels + i]) <= k * (1 + 1e-6) + 1e-9);
                assert_true(fabs(alpha[(a * n + b) * labels + i] +
                                 alpha[(b * n + a) * labels + i]) <= 1e-6 * k + 1e-9);
            }
    return alpha;
}

static double dense_bound(const struct toy *toy, const struct dcrf_lp *lp) {
    const size_t n = toy->variables, labels = toy->labels;
    double *alpha = dense_alpha(toy, lp), bound = 0;
    for (size_t a = 0; a < n; a++) {
        double lowest = (double)INFINITY;
        for (size_t i = 0; i < labels; i++) {
            double cost = toy->unary[a * labels + i];
            for (size_t b = 0; b < n; b++)
                cost -= alpha[(a * n + b) * labels + i];
            if (lp->best.clique)
                cost -= lp->best.clique[a * dcrf_padded(labels) + i];
            lowest = fmin(lowest, cost);
        }
        bound += lowest;
    }
    for (size_t p = 0; p < toy->cliques && lp->space.form == DCRF_CLIQUE_MIN; p++)
        bound += toy->costs[p];
    free(alpha);
    return bound;
}

/* The bound that the LP claims is that of one feasible point, by double loops over dense matrices.
 * Runs are short: no two parts have been merged. */
static void bound_of_its_parts(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy = new_toy(seed, 10 + seed % 7, 2 + seed % 3, seed % 4,
                                 seed % 5 == 0 ? 100 : 0.4, TOY_POTTS, 2);
        dcrf_solver *solver;
        dcrf_settings settings;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.lp.clique_form = seed % 2 ? DCRF_CLIQUE_SPREAD : DCRF_CLIQUE_MIN;
        settings.iterations = DCRF_LP_MOST_PARTS - 1;
        settings.proof = DCRF_PROVE_CERTIFICATE; /* keeps the parts */
        assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        assert_true(dcrf_solver_run(solver, NULL) > 0);
        struct dcrf_lp *lp = solver->state;
        assert_int_equal(dcrf_lp_fetch_best(lp, NULL), DCRF_OK);
        /* Rounding error was subtracted from the claim. What the last mixture lost to rounding can
         * make the point slightly worse than the best one before it. */
        const double bound = dense_bound(&toy, lp), scale = 1 + fabs(solver->info.energy.total);
        assert_true(lp->bound <= bound + 1e-5 * scale);
        assert_true(lp->bound >= bound - 1e-3 * scale);
        dcrf_solver_free(&solver);
        free_toy(&toy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_below_optimum),
        cmocka_unit_test(two_labels),
        cmocka_unit_test(second_opinion),
        cmocka_unit_test(proximal_objective_falls),
        cmocka_unit_test(renaming_labels),
        cmocka_unit_test(same_bytes_for_all_threads),
        cmocka_unit_test(constant_is_proven),
        cmocka_unit_test(warm_starts),
        cmocka_unit_test(limits_leave_a_labelling),
        cmocka_unit_test(distances_only),
        cmocka_unit_test(a_multiple_of_potts_is_potts),
        cmocka_unit_test(a_weight_after_a_multiple_of_potts),
        cmocka_unit_test(leaves_a_bad_start),
        cmocka_unit_test(bound_of_its_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
