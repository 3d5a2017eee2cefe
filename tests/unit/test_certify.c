/* Certificates of labellings against enumeration. */
#include "core/timer.h"
#include "core/workspace.h"
#include "energy/energy_double.h"
#include "toy.h"

#include <dcrf/certify.h>
#include <math.h>
#include <stdlib.h>

/* The oracle's matrix follows the formula; the operator rounds the normalization to float. */
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
        dcrf_certify_info certificate;
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

/* ---- features with an offset, in long double ------------------------------------------------- */

#define FAR_PIXELS 8

/* A model with one kernel over two features around an offset, and the energies of all its
 * labellings with two labels. */
struct far_model {
    float unary[FAR_PIXELS][2];
    double features[FAR_PIXELS][2];
    double weight;
    bool is_normalized;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
};

static struct far_model far_model_new(uint64_t seed, double offset) {
    struct far_model far_one = {.is_normalized = seed % 2 == 0};
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    far_one.weight = 0.3 * dcrf_rng_uniform(&rng);
    for (size_t a = 0; a < FAR_PIXELS; a++)
        for (size_t i = 0; i < 2; i++) {
            far_one.unary[a][i] = (float)dcrf_rng_uniform(&rng);
            far_one.features[a][i] = offset + 2 * dcrf_rng_uniform(&rng);
        }
    const dcrf_grid grid = dcrf_grid_1d(FAR_PIXELS);
    const dcrf_view unary = dcrf_view_interleaved(far_one.unary, DCRF_F32, &grid, 2);
    dcrf_kernel kernel = dcrf_kernel_features(
        dcrf_view_interleaved(far_one.features, DCRF_F64, &grid, 2), far_one.weight);
    kernel.normalization = far_one.is_normalized ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
    assert_int_equal(dcrf_model_new(&far_one.model, &grid, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(far_one.model, &unary, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(far_one.model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&far_one.workspace, 1, NULL), DCRF_OK);
    assert_int_equal(
        dcrf_plan_new(&far_one.plan, far_one.model, DCRF_OPERATOR_EXACT, far_one.workspace, NULL),
        DCRF_OK);
    return far_one;
}

static void far_model_free(struct far_model *far_one) {
    dcrf_plan_free(&far_one->plan);
    dcrf_model_free(&far_one->model);
    dcrf_workspace_free(&far_one->workspace);
}

static long double far_kernel(const struct far_model *far_one, size_t a, size_t b) {
    long double squared = 0;
    for (size_t i = 0; i < 2; i++) {
        const long double d =
            (long double)far_one->features[a][i] - (long double)far_one->features[b][i];
        squared += d * d;
    }
    return expl(-squared / 2);
}

static long double far_energy(const struct far_model *far_one, const uint16_t *labels) {
    long double sums[FAR_PIXELS] = {0}, energy = 0;
    for (size_t a = 0; a < FAR_PIXELS; a++)
        for (size_t b = 0; b < FAR_PIXELS; b++)
            sums[a] += far_kernel(far_one, a, b);
    for (size_t a = 0; a < FAR_PIXELS; a++) {
        energy += (long double)far_one->unary[a][labels[a]];
        for (size_t b = 0; b < FAR_PIXELS; b++)
            if (labels[a] != labels[b])
                energy += (long double)far_one->weight * far_kernel(far_one, a, b) /
                          (far_one->is_normalized ? sqrtl(sums[a] * sums[b]) : 1);
    }
    return energy;
}

/* Wherever the features lie, the certified energy is never below the true one and the bound never
 * above the optimum, so the gap is never too small. No tolerance. */
static void features_with_an_offset(void **state) {
    (void)state;
    const double offsets[] = {0, 1e4, 1e6};
    for (uint64_t seed = 0; seed < 90; seed++) {
        struct far_model far_one = far_model_new(seed, offsets[seed % 3]);
        uint16_t x[FAR_PIXELS], given[FAR_PIXELS];
        long double optimum = (long double)INFINITY;
        for (unsigned k = 0; k < 1u << FAR_PIXELS; k++) {
            for (size_t a = 0; a < FAR_PIXELS; a++)
                x[a] = (uint16_t)(k >> a & 1);
            const long double energy = far_energy(&far_one, x);
            if (energy < optimum || k == seed)
                memcpy(given, x, sizeof x);
            optimum = fminl(optimum, energy);
        }
        dcrf_certify_settings settings;
        dcrf_certify_info found;
        dcrf_certify_settings_defaults(&settings);
        settings.iterations = 1 + seed % 50;
        assert_int_equal(
            dcrf_certify(far_one.plan, far_one.workspace, given, &settings, &found, NULL), DCRF_OK);
        const long double energy = far_energy(&far_one, given);
        assert_true((long double)found.energy.total >= energy);
        assert_true((long double)found.energy.total <= energy + 1e-8L);
        assert_true((long double)found.best_energy >= optimum);
        assert_true((long double)found.lower_bound <= optimum);
        dcrf_energy precise;
        double error_of;
        assert_int_equal(dcrf_energy_in_double(far_one.plan, far_one.workspace, given, &precise,
                                               NULL, 0, &error_of, NULL),
                         DCRF_OK);
        assert_true(fabsl((long double)precise.total - energy) <= (long double)error_of);
        dcrf_energy_round_up(&precise, error_of);
        assert_true(found.energy.total == precise.total);
        assert_int_equal(
            dcrf_energy_at_most(far_one.plan, far_one.workspace, given, &precise, NULL, 0, NULL),
            DCRF_OK);
        assert_true(found.energy.total == precise.total);
        far_model_free(&far_one);
    }
}

/* No labelling is below the sum of the smallest unaries, so no bound needs to be. */
static void the_floor_is_a_bound(void **state) {
    (void)state;
    struct toy toy = new_toy(4, 8, 3, 2, 0.5, TOY_POTTS, 1);
    const double zeros[8 * 3] = {0};
    const dcrf_grid grid = dcrf_grid_1d(8);
    const dcrf_view view = dcrf_view_interleaved(zeros, DCRF_F64, &grid, 3);
    uint16_t labels[8] = {0};
    dcrf_certify_settings settings;
    dcrf_certify_info found;
    dcrf_certify_settings_defaults(&settings);
    assert_int_equal(dcrf_model_set_unary(toy.model, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_certify(toy.plan, toy.workspace, labels, &settings, &found, NULL),
                     DCRF_OK);
    assert_true(found.lower_bound >= 0 && found.lower_bound <= found.energy.total);
    free_toy(&toy);
}

/* Unaries are multiples of 2^-24 whose sum needs 64 bits, more than a double has: the bound must
 * not be above it. */
static void the_floor_is_rounded_down(void **state) {
    (void)state;
    enum { MANY = 3000 };
    static float unary[MANY][2];
    const dcrf_grid grid = dcrf_grid_1d(MANY);
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, 2);
    static uint16_t labels[MANY];
    size_t tight = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        dcrf_rng rng;
        dcrf_model *model;
        dcrf_plan *plan;
        dcrf_workspace *workspace;
        dcrf_certify_settings settings;
        dcrf_certify_info found;
        int64_t floor = 0;
        dcrf_rng_seed(&rng, seed);
        for (size_t a = 0; a < MANY; a++) {
            const int64_t bits = (int64_t)(dcrf_rng_next(&rng) >> 40);
            const int scale = (int)(dcrf_rng_next(&rng) % 3) * 12;
            unary[a][0] = ldexpf((float)bits, scale - 24);
            unary[a][1] = unary[a][0] * 2 + 1;
            floor += bits << scale;
        }
        assert_int_equal(dcrf_model_new(&model, &grid, 2, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
        assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
        assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, NULL),
                         DCRF_OK);
        dcrf_certify_settings_defaults(&settings);
        assert_int_equal(dcrf_certify(plan, workspace, labels, &settings, &found, NULL), DCRF_OK);
        /* Both are multiples of 2^-24, as are doubles of this size. */
        assert_true(found.lower_bound > 0x1p30 && found.lower_bound < 0x1p38);
        assert_true((int64_t)(found.lower_bound * 0x1p24) <= floor);
        assert_true((int64_t)(found.energy.total * 0x1p24) >= floor);
        tight += found.lower_bound * 0x1p24 >= (double)floor * (1 - 0x1p-40);
        dcrf_plan_free(&plan);
        dcrf_workspace_free(&workspace);
        dcrf_model_free(&model);
    }
    assert_int_equal(tight, 40);
}

static int cancel(void *user, const dcrf_moment *moment) {
    (void)moment;
    ++*(int *)user;
    return 1;
}

static int cancel_later(void *user) {
    return --*(int *)user < 0;
}

#define PATIENT 1000000

/* Certifies a labelling and cancels at the given call of the callback; returns the number of
 * calls. */
static int certify_until(const struct toy *toy, const uint16_t *labels, int question,
                         dcrf_certify_settings settings, dcrf_certify_info *found) {
    int left = question;
    settings.cancel = cancel_later;
    settings.cancel_user = &left;
    assert_int_equal(dcrf_certify(toy->plan, toy->workspace, labels, &settings, found, NULL),
                     DCRF_OK);
    assert_true(left >= -1); /* it is not called again */
    return question - left;
}

/* Labels that are proven right are optimal, and labels that are proven wrong are not: for the
 * opposite labelling the two are swapped. This also holds if the proof is cancelled and only the
 * gap is left. */
static void right_and_wrong(void **state) {
    (void)state;
    size_t all_right = 0, by_the_gap = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct toy toy = new_toy(seed, 8, 2, 0, 0.1, TOY_POTTS, 1);
        uint16_t best[8], opposite[8];
        dcrf_certify_settings settings;
        dcrf_certify_info found[2];
        dcrf_certify_settings_defaults(&settings);
        toy_optimum(&toy, best);
        for (size_t a = 0; a < 8; a++)
            opposite[a] = (uint16_t)(1 - best[a]);
        const int asked = certify_until(&toy, best, PATIENT, settings, &found[0]);
        for (int k = asked; k >= 0; k--) {
            const bool is_whole = k == asked;
            certify_until(&toy, best, k, settings, &found[0]);
            certify_until(&toy, opposite, is_whole ? PATIENT : k, settings, &found[1]);
            assert_int_equal(found[0].wrong, 0);
            assert_int_equal(found[1].right, 0);
            all_right += is_whole && found[0].right == 8 && found[1].wrong == 8;
            by_the_gap += !is_whole && found[0].right > 0 && found[1].wrong > 0;
        }
        free_toy(&toy);
    }
    assert_true(all_right > 10 && by_the_gap > 10);
}

/* The cancel callback is called by the solver and by the proof, and not again after it cancels. */
static void cancelling_reaches_the_proof(void **state) {
    (void)state;
    struct toy toy = new_toy(3, 40, 3, 2, 0.5, TOY_POTTS, 1);
    uint16_t labels[40] = {0};
    dcrf_certify_settings settings;
    dcrf_certify_info found;
    dcrf_certify_settings_defaults(&settings);
    settings.iterations = 2;
    settings.gap = 0;
    dcrf_workspace_ask_always(toy.workspace); /* regardless of the elapsed time */
    const int asked = certify_until(&toy, labels, PATIENT, settings, &found);
    int in_the_solver = 0, in_the_proof = 0;
    for (int k = 0; k < asked; k++) {
        assert_int_equal(certify_until(&toy, labels, k, settings, &found), k + 1);
        assert_true(found.lower_bound <= found.best_energy);
        in_the_solver += found.stop == DCRF_STOP_CANCELLED;
        in_the_proof += found.stop == DCRF_STOP_ITERATIONS;
    }
    assert_true(in_the_solver > 0 && in_the_proof > 0);
    assert_int_equal(in_the_solver + in_the_proof, asked);
    free_toy(&toy);
}

/* Takes half of the time limit for one answer and the rest for another one, and never cancels. */
struct delay {
    int asked, first, second;
    double began_s, limit_s;
};

static int wait_twice(void *user) {
    struct delay *delay = user;
    const double part = delay->asked == delay->first ? 0.5 : delay->asked == delay->second ? 1 : 0;
    while (dcrf_time_s() < delay->began_s + part * delay->limit_s)
        ;
    delay->asked++;
    return 0;
}

/* The proof has what the iterations left of the time: half of it here, of which nothing is left in
 * the midst of its questions. A proof with a limit of its own would ask all of them. */
static void the_time_is_granted_once(void **state) {
    (void)state;
    struct toy toy = new_toy(3, 40, 3, 2, 0.5, TOY_POTTS, 1);
    uint16_t labels[40] = {0};
    dcrf_certify_settings settings;
    dcrf_certify_info found;
    dcrf_certify_settings_defaults(&settings);
    settings.iterations = 2;
    settings.gap = 0;
    settings.time_limit_s = 0;
    dcrf_workspace_ask_always(toy.workspace);
    const int whole = certify_until(&toy, labels, PATIENT, settings, &found);
    int first = 0; /* question after the iterations */
    while (certify_until(&toy, labels, first, settings, &found), found.stop == DCRF_STOP_CANCELLED)
        first++;
    struct delay delay = {0};
    settings.cancel = wait_twice;
    settings.cancel_user = &delay;
    for (double limit_s = 0.02;; limit_s *= 2) { /* until there is time for the iterations */
        settings.time_limit_s = limit_s;
        delay = (struct delay){0, first, (first + whole) / 2, dcrf_time_s(), limit_s};
        assert_int_equal(dcrf_certify(toy.plan, toy.workspace, labels, &settings, &found, NULL),
                         DCRF_OK);
        if (found.stop == DCRF_STOP_ITERATIONS && delay.asked > delay.second)
            break;
    }
    assert_true(delay.asked < whole);
    free_toy(&toy);
}

/* Uses up a time limit after an iteration, and counts the moments of every stage. */
struct sleeper {
    double until_s;
    size_t stages[DCRF_STAGE_PROOF + 1];
};

static int sleep_over(void *user, const dcrf_moment *moment) {
    struct sleeper *sleeper = user;
    sleeper->stages[moment->stage]++;
    while (moment->stage == DCRF_STAGE_SOLVE && dcrf_time_s() < sleeper->until_s)
        continue;
    return 0;
}

/* Where the iterations have used up the time limit, there is no proof. */
static void there_is_no_proof_after_the_limit(void **state) {
    (void)state;
    struct toy toy = new_toy(3, 40, 3, 2, 0.5, TOY_POTTS, 1);
    uint16_t labels[40] = {0};
    for (int has_limit = 0; has_limit < 2; has_limit++) {
        const double limit_s = 0.5;
        struct sleeper sleeper = {.until_s = has_limit ? dcrf_time_s() + limit_s : 0};
        dcrf_certify_settings settings;
        dcrf_certify_info found;
        dcrf_certify_settings_defaults(&settings);
        settings.iterations = 3;
        settings.gap = 0;
        settings.time_limit_s = has_limit ? limit_s : 0;
        settings.progress = sleep_over;
        settings.progress_user = &sleeper;
        assert_int_equal(dcrf_certify(toy.plan, toy.workspace, labels, &settings, &found, NULL),
                         DCRF_OK);
        assert_int_equal(found.stop, has_limit ? DCRF_STOP_TIME : DCRF_STOP_ITERATIONS);
        assert_int_equal(sleeper.stages[DCRF_STAGE_PROOF], !has_limit);
        assert_int_equal(sleeper.stages[DCRF_STAGE_FINISH], 1);
        assert_true(found.lower_bound <= found.best_energy);
    }
    free_toy(&toy);
}

static void limits_and_errors(void **state) {
    (void)state;
    struct toy toy = new_toy(3, 8, 3, 2, 0.5, TOY_POTTS, 1);
    uint16_t labels[8] = {0};
    int calls = 0;
    dcrf_certify_settings settings;
    dcrf_certify_info certificate;
    dcrf_error error;
    memset(&settings, 0xa5, sizeof settings);
    dcrf_certify_settings_defaults(&settings);
    settings.gap = 0;
    settings.iterations = 2;
    const double began_s = dcrf_time_s();
    assert_int_equal(dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, NULL),
                     DCRF_OK);
    assert_true(certificate.time_s >= 0 && certificate.time_s <= dcrf_time_s() - began_s);
    assert_int_equal(certificate.stop, DCRF_STOP_ITERATIONS);
    assert_int_equal(certificate.iterations, 2);
    assert_int_equal(certificate.is_constant, 1);
    settings.iterations = 1000000;
    settings.time_limit_s = 1e-9;
    assert_int_equal(dcrf_certify(toy.plan, toy.workspace, labels, &settings, &certificate, NULL),
                     DCRF_OK);
    assert_int_equal(certificate.stop, DCRF_STOP_TIME);
    /* The sum of the smallest unaries, less its rounding error. */
    assert_true(certificate.lower_bound < dcrf_unary_floor(toy.model));
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_labelling),
        cmocka_unit_test(features_with_an_offset),
        cmocka_unit_test(the_floor_is_a_bound),
        cmocka_unit_test(the_floor_is_rounded_down),
        cmocka_unit_test(right_and_wrong),
        cmocka_unit_test(cancelling_reaches_the_proof),
        cmocka_unit_test(the_time_is_granted_once),
        cmocka_unit_test(there_is_no_proof_after_the_limit),
        cmocka_unit_test(limits_and_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
