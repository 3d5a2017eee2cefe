/* The stages of a run: what the candidates find, that limits hold in each stage, and that the exact
 * operators start where the fast ones end. */
#include "scene.h"
#include "toy.h"

#include "core/timer.h"

#include <dcrf/solver.h>
#include <math.h>
#include <stdlib.h>

/* Energies come from float kernels: 4e-6 of terms that sum to less than 60. */
#define AGREEMENT 2e-4

/* Without time to sum in double, the energy of a run with a bound is rounded up by the possible
 * error of floats: some hundred float roundings of pairs that sum to less than 60. */
#define ROUNDED_UP 3e-3

/* Devices round differently from the CPU, whose float sums for one labelling are bit-identical. */
static double of_floats(void) {
    return getenv("DCRF_TEST_DEVICE") ? ROUNDED_UP : AGREEMENT;
}

static bool is_same(double one, double other) {
    return getenv("DCRF_TEST_DEVICE") ? fabs(one - other) <= of_floats() : one == other;
}

static dcrf_solver_info info_of(const dcrf_solver *solver) {
    dcrf_solver_info info;
    dcrf_solver_get_info(solver, &info);
    return info;
}

#define TOY_VARIABLES 30

/* Kernels weak enough for the unaries to matter. */
static void weaken(struct scene *scene) {
    for (size_t m = 0; m < KERNELS; m++)
        set_weight(scene, m, 0.02);
}

/* The labelling of the smallest unaries, or the best constant one, by plain sums. */
static double simple_energy(const struct toy *toy, dcrf_candidate_kind kind) {
    uint16_t labels[TOY_VARIABLES];
    double least = (double)INFINITY;
    for (uint16_t i = 0; i < toy->labels; i++) {
        for (size_t a = 0; a < toy->variables; a++) {
            const double *unary = toy->unary + a * toy->labels;
            labels[a] = i;
            for (uint16_t j = 0; j < toy->labels && kind == DCRF_CANDIDATE_UNARY; j++)
                labels[a] = unary[j] < unary[labels[a]] ? j : labels[a];
        }
        least = fmin(least, toy_energy(toy, labels));
    }
    return least;
}

/* The energies of candidates by their terms: those of the totals, and none below the result. */
static void check_terms(const dcrf_solver *solver, const struct toy *toy) {
    const dcrf_solver_info info = info_of(solver);
    dcrf_energy energy;
    double unary = 0;
    for (int k = 0; k < DCRF_CANDIDATE_KINDS; k++) {
        dcrf_solver_candidate_energy(solver, (dcrf_candidate_kind)k, &energy);
        const double known = info.candidates[k].energy;
        assert_int_equal(isnan(energy.total), isnan(known));
        if (isnan(known))
            continue;
        assert_true(energy.total >= info.energy.total);
        assert_true(fabs(energy.total - known) <= of_floats());
        assert_true(fabs(energy.unary + energy.pairwise + energy.cliques - known) <= of_floats());
    }
    dcrf_solver_candidate_energy(solver, DCRF_CANDIDATE_UNARY, &energy);
    assert_true(fabs(energy.unary - info.unary_floor) <= of_floats() ||
                energy.total == info.energy.total);
    for (size_t a = 0; a < toy->variables; a++)
        unary += toy->unary[a * toy->labels + info.constant_label];
    dcrf_solver_candidate_energy(solver, DCRF_CANDIDATE_CONSTANT, &energy);
    assert_true(fabs(energy.total - unary) <= of_floats());
    dcrf_solver_candidate_energy(solver, DCRF_CANDIDATE_KINDS, &energy);
    assert_true(isnan(energy.total));
}

/* Each candidate is tried once, has a time, and bounds the result. The flow is tried if nothing
 * before it is better than a constant labelling, and annealing if the flow was no proof. */
static void candidates_can_be_read(void **state) {
    (void)state;
    size_t flows = 0, proofs = 0, annealings = 0;
    for (uint64_t seed = 0; seed < 30; seed++)
        for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++) {
            struct toy toy = new_toy(seed, TOY_VARIABLES, 4, seed % 3, 0.3 * (double)(1 + seed % 8),
                                     TOY_POTTS, 1);
            dcrf_settings settings;
            dcrf_solver *solver;
            dcrf_settings_defaults(&settings, method);
            assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                             DCRF_OK);
            dcrf_solver_info info = info_of(solver);
            assert_true(isnan(info.energy.total)); /* nothing is computed before a run */
            assert_true(dcrf_solver_run(solver, NULL) > 0);
            info = info_of(solver);
            const double unary = simple_energy(&toy, DCRF_CANDIDATE_UNARY);
            const double constant = simple_energy(&toy, DCRF_CANDIDATE_CONSTANT);
            assert_true(fabs(info.candidates[DCRF_CANDIDATE_UNARY].energy - unary) <= AGREEMENT);
            assert_true(fabs(info.candidates[DCRF_CANDIDATE_CONSTANT].energy - constant) <=
                        AGREEMENT);
            const bool is_lp = method == DCRF_METHOD_LP;
            const double mean_field = info.candidates[DCRF_CANDIDATE_MEAN_FIELD].energy;
            const bool wants_flow = is_lp && constant <= fmin(unary, mean_field) + AGREEMENT;
            /* A bound from the flow is a bound for the run and for its labelling. */
            const double bound = info.candidates[DCRF_CANDIDATE_FLOW].lower_bound;
            assert_true(isnan(bound) || (bound <= info.lower_bound && bound <= constant));
            const bool is_proven = wants_flow && bound >= constant - 1e-5 * fabs(constant);
            const bool wants[DCRF_CANDIDATE_KINDS] = {
                [DCRF_CANDIDATE_UNARY] = true,
                [DCRF_CANDIDATE_CONSTANT] = true,
                [DCRF_CANDIDATE_FLOW] = wants_flow,
                [DCRF_CANDIDATE_MEAN_FIELD] = method != DCRF_METHOD_MF,
                [DCRF_CANDIDATE_ANNEALING] = is_lp && !is_proven};
            flows += wants_flow;
            proofs += is_proven;
            annealings += is_lp && !is_proven;
            double time_s = 0;
            for (int k = 0; k < DCRF_CANDIDATE_KINDS; k++) {
                const dcrf_candidate *candidate = &info.candidates[k];
                assert_non_null(dcrf_candidate_kind_name((dcrf_candidate_kind)k));
                assert_int_equal(candidate->was_tried, wants[k]);
                assert_int_equal(candidate->status, DCRF_OK);
                if (k != DCRF_CANDIDATE_FLOW && candidate->was_tried)
                    assert_true(info.energy.total <= candidate->energy + of_floats());
                else
                    assert_true(isnan(candidate->energy));
                time_s += candidate->time_s;
            }
            assert_null(dcrf_candidate_kind_name(DCRF_CANDIDATE_KINDS));
            check_terms(solver, &toy);
            assert_true(fabs(time_s - info.start_s) < 1e-9);
            dcrf_solver_free(&solver);
            free_toy(&toy);
        }
    print_message("%zu flows, %zu proofs by them, %zu annealings\n", flows, proofs, annealings);
    assert_true(proofs > 0 && proofs < flows && annealings > flows - proofs);
}

/* A run with a loose gap anneals only if its first steps do not close the gap, and what it proves
 * still holds. */
static void loose_gaps_wait_with_annealing(void **state) {
    (void)state;
    size_t without = 0, later = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy =
            new_toy(seed, 20, 8, seed % 3, 0.04 * (double)(1 + seed % 8), TOY_POTTS, 1);
        double bound[2], energy[2];
        for (int is_loose = 0; is_loose < 2; is_loose++) {
            dcrf_settings settings;
            dcrf_solver *solver;
            dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
            settings.iterations = 200;
            if (is_loose)
                settings.gap = seed % 2 ? 0.02 : 1e-3;
            assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                             DCRF_OK);
            assert_true(dcrf_solver_run(solver, NULL) > 0);
            const dcrf_solver_info info = info_of(solver);
            const dcrf_candidate *candidates = info.candidates;
            const double floor = info.unary_floor;
            const bool waits = candidates[DCRF_CANDIDATE_MEAN_FIELD].energy - floor <
                               0.5 * (candidates[DCRF_CANDIDATE_CONSTANT].energy - floor);
            bound[is_loose] = info.lower_bound;
            energy[is_loose] = info.energy.total;
            if (is_loose && !candidates[DCRF_CANDIDATE_ANNEALING].was_tried) {
                assert_true(info.relative_gap <= settings.gap);
                without += waits && info.iterations > 0;
            } else if (is_loose && waits) {
                assert_true(info.iterations >= 16);
                later++;
            }
            dcrf_solver_free(&solver);
        }
        for (int i = 0; i < 2; i++)
            assert_true(bound[i] <= fmin(energy[0], energy[1]) + AGREEMENT);
        free_toy(&toy);
    }
    assert_true(without > 0 && later > 0);
}

/* No method ends above mean field. */
static void mean_field_is_never_better(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct toy toy =
            new_toy(seed, 40, 4, seed % 3, 0.1 * (double)(1 + seed % 12), TOY_POTTS, 1);
        double energy[3];
        for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++) {
            dcrf_settings settings;
            dcrf_solver *solver;
            dcrf_settings_defaults(&settings, method);
            settings.polish = seed % 2 == 0;
            settings.iterations = method == DCRF_METHOD_MF ? settings.iterations : 2;
            assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                             DCRF_OK);
            assert_true(dcrf_solver_run(solver, NULL) > 0);
            energy[method] = info_of(solver).energy.total;
            dcrf_solver_free(&solver);
        }
        assert_true(energy[DCRF_METHOD_QP] <= energy[DCRF_METHOD_MF] + AGREEMENT);
        assert_true(energy[DCRF_METHOD_LP] <= energy[DCRF_METHOD_MF] + AGREEMENT);
        free_toy(&toy);
    }
}

/* ---- cancelling ----------------------------------------------------------------------------- */

struct patience {
    size_t asked, most;
};

static int is_over(void *user) {
    struct patience *patience = user;
    return ++patience->asked > patience->most;
}

/* A run is cancelled at the first call of the callback, at the second, and so on through all its
 * stages: it stops, calls back at most a few more times, and holds a labelling with its energy. */
static void cancelling_works_at_every_question(void **state) {
    (void)state;
    struct scene scene = new_scene(dcrf_grid_2d(24, 20), 4, 1, DCRF_OPERATOR_FAST, NO_MATRICES);
    uint16_t *labels = malloc(scene.variables * sizeof *labels);
    weaken(&scene);
    for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++)
        for (size_t most = 0;; most += 1 + most / 16) {
            struct patience patience = {0, most};
            dcrf_settings settings;
            dcrf_solver *solver;
            dcrf_energy energy, at_most;
            dcrf_settings_defaults(&settings, method);
            settings.rounding_draws = 4;
            settings.iterations = 30;
            settings.cancel = is_over;
            settings.cancel_user = &patience;
            assert_int_equal(dcrf_solver_new(&solver, scene.plan, scene.workspace, &settings, NULL),
                             DCRF_OK);
            const dcrf_status stop = dcrf_solver_run(solver, NULL);
            const dcrf_solver_info info = info_of(solver);
            dcrf_solver_labels(solver, labels, scene.variables, NULL);
            assert_int_equal(
                dcrf_energy_of_labels(scene.plan, scene.workspace, labels, &energy, NULL, 0, NULL),
                DCRF_OK);
            assert_int_equal(
                dcrf_energy_at_most(scene.plan, scene.workspace, labels, &at_most, NULL, 0, NULL),
                DCRF_OK);
            /* Without time for the energy in double, the float energy is used. A bound is never
             * compared with an energy below the true one. */
            if (info.energy.total != at_most.total) {
                assert_true(patience.asked > most);
                assert_true(method == DCRF_METHOD_LP ? info.energy.total > at_most.total
                                                     : is_same(info.energy.total, energy.total));
                assert_true(fabs(info.energy.total - energy.total) <= 1e-4 * energy.total);
            }
            assert_true(stop > 0);
            dcrf_solver_free(&solver);
            if (patience.asked <= most) { /* never cancelled: the run finished */
                assert_true(most > 20);
                break;
            }
            /* The callback is not called again after it has cancelled. */
            assert_int_equal(patience.asked, most + 1);
        }
    free(labels);
    free_scene(&scene);
}

/* A time limit covers every stage: if the first one exceeds it, the others are skipped. */
static void no_time_at_all(void **state) {
    (void)state;
    struct toy toy = new_toy(5, 60, 4, 3, 0.4, TOY_POTTS, 1);
    for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++) {
        dcrf_settings settings;
        dcrf_solver *solver;
        dcrf_energy floats;
        uint16_t labels[60];
        dcrf_settings_defaults(&settings, method);
        settings.time_limit_s = 1e-9;
        settings.rounding_draws = 1000000; /* would take minutes */
        assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_TIME);
        const dcrf_solver_info info = info_of(solver);
        dcrf_solver_labels(solver, labels, 60, NULL);
        assert_int_equal(
            dcrf_energy_of_labels(toy.plan, toy.workspace, labels, &floats, NULL, 0, NULL),
            DCRF_OK);
        assert_int_equal(info.iterations, 0);
        if (!isnan(info.lower_bound)) /* never below the true one */
            assert_true(info.energy.total >= toy_energy(&toy, labels) &&
                        info.energy.total <= toy_energy(&toy, labels) + ROUNDED_UP);
        else
            assert_true(is_same(info.energy.total, floats.total));
        dcrf_solver_free(&solver);
    }
    free_toy(&toy);
}

/* ---- what is told --------------------------------------------------------------------------- */

#define MOST_TOLD 64

/* The moments of a run, and which of them cancels it. */
struct told {
    dcrf_moment moments[MOST_TOLD];
    size_t count, cancels_at;
};

static int listen(void *user, const dcrf_moment *moment) {
    struct told *told = user;
    assert_true(told->count < MOST_TOLD);
    assert_true(told->count <= told->cancels_at); /* not called again */
    told->moments[told->count] = *moment;
    return told->count++ == told->cancels_at;
}

static dcrf_solver *new_listened(const struct toy *toy, dcrf_method method, dcrf_proving proof,
                                 struct told *told) {
    dcrf_settings settings;
    dcrf_solver *solver;
    dcrf_settings_defaults(&settings, method);
    settings.iterations = 6;
    settings.stationarity = 0;
    settings.proof = proof;
    settings.trace = 1;
    settings.progress = listen;
    settings.progress_user = told;
    assert_int_equal(dcrf_solver_new(&solver, toy->plan, toy->workspace, &settings, NULL), DCRF_OK);
    return solver;
}

/* First the candidates that were tried, then the iterations, then the end of each later stage. */
static void check_stages(const dcrf_solver *solver, const struct told *told, dcrf_proving proof) {
    const dcrf_solver_info info = info_of(solver);
    size_t counts[DCRF_STAGE_PROOF + 1] = {0}, tried = 0, traced;
    for (size_t k = 0; k < told->count; k++) {
        const dcrf_moment *moment = &told->moments[k];
        counts[moment->stage]++;
        assert_true(k == 0 || moment->stage >= moment[-1].stage);
        assert_true(k == 0 || moment->time_s >= moment[-1].time_s);
        assert_true(isfinite(moment->best_energy));
        if (moment->stage == DCRF_STAGE_CANDIDATES)
            assert_true(isnan(moment->objective) && isnan(moment->energy) &&
                        isnan(moment->lower_bound) && isnan(moment->relative_gap));
        assert_int_equal(moment->iteration, counts[DCRF_STAGE_SOLVE]);
    }
    for (size_t k = 0; k < DCRF_CANDIDATE_KINDS; k++)
        tried += (size_t)info.candidates[k].was_tried;
    assert_int_equal(counts[DCRF_STAGE_CANDIDATES], tried);
    assert_int_equal(counts[DCRF_STAGE_FAST], 0);
    assert_int_equal(counts[DCRF_STAGE_SOLVE], info.iterations);
    assert_int_equal(counts[DCRF_STAGE_FINISH], 1);
    assert_int_equal(counts[DCRF_STAGE_PROOF], proof != DCRF_PROVE_BY_GAP);
    const dcrf_moment *last = &told->moments[told->count - 1];
    assert_true(last->best_energy == info.energy.total);
    assert_true(
        !(last->relative_gap < info.relative_gap || last->relative_gap > info.relative_gap));
    const dcrf_moment *trace = dcrf_solver_trace(solver, &traced);
    assert_int_equal(traced, told->count);
    assert_memory_equal(trace, told->moments, traced * sizeof *trace);
}

/* Whichever moment cancels a run, no later stage begins, and the callback is not called again. */
static void stages_are_told(void **state) {
    (void)state;
    struct toy toy = new_toy(5, TOY_VARIABLES, 4, 1, 0.1, TOY_POTTS, 1);
    for (int k = 0; k < DCRF_METHOD_LP + 3; k++) {
        const dcrf_method method = (dcrf_method)(k < DCRF_METHOD_LP ? k : DCRF_METHOD_LP);
        const dcrf_proving proof = (dcrf_proving)(k - (int)method);
        struct told whole = {.cancels_at = SIZE_MAX};
        dcrf_solver *solver = new_listened(&toy, method, proof, &whole);
        const dcrf_status usual = dcrf_solver_run(solver, NULL);
        assert_true(usual > 0);
        check_stages(solver, &whole, proof);
        dcrf_solver_free(&solver);
        for (size_t at = 0; at < whole.count; at++) {
            struct told told = {.cancels_at = at};
            solver = new_listened(&toy, method, proof, &told);
            const dcrf_status stop = dcrf_solver_run(solver, NULL);
            const dcrf_solver_info info = info_of(solver);
            const dcrf_stage stage = told.moments[at].stage;
            assert_int_equal(told.count, at + 1);
            assert_int_equal(stage, whole.moments[at].stage);
            assert_int_equal(stop, stage <= DCRF_STAGE_SOLVE ? DCRF_STOP_CANCELLED : usual);
            assert_int_equal(info.iterations, whole.moments[at].iteration);
            assert_int_equal(info.proof_stop,
                             proof != DCRF_PROVE_BY_GAP && stage != DCRF_STAGE_PROOF
                                 ? DCRF_STOP_CANCELLED
                                 : DCRF_OK);
            assert_true(isfinite(info.energy.total));
            dcrf_solver_free(&solver);
        }
    }
    free_toy(&toy);
}

/* ---- exact after fast ----------------------------------------------------------------------- */

static void exact_after_fast(void **state) {
    (void)state;
    struct scene scene = new_scene(dcrf_grid_2d(60, 40), 3, 1, DCRF_OPERATOR_EXACT, NO_MATRICES);
    dcrf_settings settings;
    dcrf_solver *solver;
    weaken(&scene);
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.trace = 1;
    settings.gap = 1e-3;
    assert_int_equal(dcrf_solver_new(&solver, scene.plan, scene.workspace, &settings, NULL),
                     DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) > 0);
    const dcrf_solver_info info = info_of(solver);
    assert_int_equal(info.candidates[DCRF_CANDIDATE_FAST].was_tried, 1);
    assert_int_equal(info.candidates[DCRF_CANDIDATE_FAST].status, DCRF_OK);
    assert_true(info.energy.total <= info.candidates[DCRF_CANDIDATE_FAST].energy);
    assert_int_equal(info.candidates[DCRF_CANDIDATE_ANNEALING].was_tried, 0);
    /* All moments of the fast operators come before those of the iterations. */
    size_t count, of_fast = 0, of_exact = 0;
    const dcrf_moment *moments = dcrf_solver_trace(solver, &count);
    for (size_t k = 0; k < count; k++) {
        of_fast += moments[k].stage == DCRF_STAGE_FAST;
        of_exact += moments[k].stage == DCRF_STAGE_SOLVE;
        assert_true(moments[k].stage != DCRF_STAGE_FAST || of_exact == 0);
        assert_true(k == 0 || moments[k].time_s >= moments[k - 1].time_s);
    }
    assert_true(of_fast > 0);
    assert_int_equal(moments[count - 1].stage, DCRF_STAGE_FINISH);
    dcrf_solver_free(&solver);
    free_scene(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_can_be_read),
        cmocka_unit_test(loose_gaps_wait_with_annealing),
        cmocka_unit_test(mean_field_is_never_better),
        cmocka_unit_test(cancelling_works_at_every_question),
        cmocka_unit_test(no_time_at_all),
        cmocka_unit_test(stages_are_told),
        cmocka_unit_test(exact_after_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
