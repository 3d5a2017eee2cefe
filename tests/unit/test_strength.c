/* The default kernels and the strength that suits the unary energies, against a naive independent
 * implementation: exponentials at every temperature, bisection instead of a table. */
#include "unit.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    dcrf_grid grid;
    size_t variables;
    size_t labels;
    float *unary;  /* variables x labels */
    float *colour; /* variables x 3 */
} problem;

/* cmocka compares floats; these are doubles. */
static void assert_near(double found, double expected, double tolerance) {
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%.9g is not within %.3g of %.9g", found, tolerance, expected);
}

static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 24);
}

/* Stripes of three colours with noise; a classifier that is right with a probability of 70 %, drawn
 * once per patch of `patch` x `patch` pixels. */
static problem make(dcrf_grid grid, size_t labels, size_t patch, uint64_t seed) {
    const uint64_t first_seed = seed;
    problem p = {.grid = grid, .labels = labels};
    p.variables = grid.size[0] * grid.size[1] * grid.size[2];
    p.unary = calloc(p.variables * labels, sizeof *p.unary);
    p.colour = calloc(p.variables * 3, sizeof *p.colour);
    assert_non_null(p.unary);
    assert_non_null(p.colour);
    for (size_t a = 0; a < p.variables; a++) {
        const size_t x = a % grid.size[0], y = a / grid.size[0], stripe = x / 13 % labels;
        uint64_t place = (x / patch * 2654435761u) ^ (y / patch * 40503u + first_seed);
        for (int turn = 0; turn < 4; turn++)
            uniform(&place);
        const size_t best =
            uniform(&place) < 0.7 ? stripe : (size_t)(uniform(&place) * (double)labels);
        for (size_t i = 0; i < labels; i++)
            p.unary[a * labels + i] =
                (float)(i == best ? 0.3 : 1.2 + 2 * uniform(&seed) + 0.1 * (double)i);
        for (size_t c = 0; c < 3; c++)
            p.colour[a * 3 + c] =
                (float)(40.0 * (double)(stripe + c) + 14 * (uniform(&seed) + uniform(&seed) - 1));
    }
    return p;
}

static void drop(problem *p) {
    free(p->unary);
    free(p->colour);
}

static dcrf_model *model_of(const problem *p, bool bilateral) {
    dcrf_model *model = NULL;
    const dcrf_view unary = dcrf_view_interleaved(p->unary, DCRF_F32, &p->grid, p->labels);
    const dcrf_view image = dcrf_view_interleaved(p->colour, DCRF_F32, &p->grid, 3);
    dcrf_kernel kernels[DCRF_DEFAULT_KERNELS];
    const size_t count = dcrf_default_kernels(bilateral ? &image : NULL, kernels);
    assert_int_equal(count, bilateral ? 2 : 1);
    assert_int_equal(dcrf_model_new(&model, &p->grid, p->labels, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &unary, NULL), DCRF_OK);
    for (size_t k = 0; k < count; k++)
        assert_int_equal(dcrf_model_add_kernel(model, &kernels[k], NULL), DCRF_OK);
    return model;
}

static dcrf_measured_strength measure_with(const problem *p, bool bilateral, size_t threads) {
    dcrf_model *model = model_of(p, bilateral);
    dcrf_workspace *workspace = NULL;
    dcrf_measured_strength measured;
    memset(&measured, 0x5a, sizeof measured);
    assert_int_equal(dcrf_workspace_new(&workspace, threads, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_measure_strength(model, workspace, &measured, NULL), DCRF_OK);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    return measured;
}

static dcrf_measured_strength measure(const problem *p) {
    return measure_with(p, true, 2);
}

/* ---- the oracle ----------------------------------------------------------------------------- */

static size_t best_of(const problem *p, size_t a, double *margin) {
    size_t best = 0;
    for (size_t i = 1; i < p->labels; i++)
        if (p->unary[a * p->labels + i] < p->unary[a * p->labels + best])
            best = i;
    *margin = INFINITY;
    for (size_t i = 0; i < p->labels; i++)
        if (i != best)
            *margin = fmin(*margin, (double)p->unary[a * p->labels + i] -
                                        (double)p->unary[a * p->labels + best]);
    return best;
}

static double error_of(const problem *p, size_t a, double temperature) {
    double margin, sum = 0;
    const size_t best = best_of(p, a, &margin);
    for (size_t i = 0; i < p->labels; i++)
        sum += exp(((double)p->unary[a * p->labels + best] - (double)p->unary[a * p->labels + i]) /
                   temperature);
    return 1 - 1 / sum;
}

typedef struct pair_sums {
    double pairs, differing, expected;
} pair_sums;

static void add_pair(const problem *p, size_t a, size_t b, double temperature, pair_sums *sums) {
    double margin_a, margin_b;
    const size_t best_a = best_of(p, a, &margin_a), best_b = best_of(p, b, &margin_b);
    if (!(margin_a > 0) || !(margin_b > 0))
        return;
    for (size_t c = 0; c < 3; c++)
        if (fabs((double)p->colour[a * 3 + c] - (double)p->colour[b * 3 + c]) >= 12)
            return;
    const double e = error_of(p, a, temperature), f = error_of(p, b, temperature);
    sums->pairs++;
    sums->differing += best_a != best_b;
    sums->expected += 1 - ((1 - e) * (1 - f) + e * f / (double)(p->labels - 1));
}

static pair_sums sum_pairs(const problem *p, double temperature) {
    pair_sums sums = {0, 0, 0};
    const size_t *size = p->grid.size, strides[] = {1, size[0], size[0] * size[1]};
    for (size_t z = 0; z < size[2]; z++)
        for (size_t y = 0; y < size[1]; y++)
            for (size_t x = 0; x < size[0]; x++) {
                const size_t at[] = {x, y, z}, a = (z * size[1] + y) * size[0] + x;
                for (size_t axis = 0; axis < 3; axis++)
                    for (size_t d = 1; d <= 2; d++)
                        if (at[axis] + d < size[axis])
                            add_pair(p, a, a + d * strides[axis], temperature, &sums);
            }
    return sums;
}

static double calibrating_temperature(const problem *p) {
    double low = -8, high = 8; /* of ln T */
    const double differing = sum_pairs(p, 1).differing;
    for (int step = 0; step < 40; step++) {
        const double middle = (low + high) / 2;
        if (sum_pairs(p, exp(middle)).expected < differing)
            low = middle;
        else
            high = middle;
    }
    return exp(low);
}

static double geometric_mean_margin(const problem *p) {
    double sum = 0, count = 0;
    for (size_t a = 0; a < p->variables; a++) {
        double margin;
        best_of(p, a, &margin);
        if (margin > 0) {
            sum += log(margin);
            count++;
        }
    }
    return exp(sum / count);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Small grids are not sampled, so the counts are equal. A cubic between temperatures a factor of
 * two apart is off by up to 3/128 (ln 2)^4 = 0.5 % of the fourth derivative of ln X over ln T,
 * which is below 1 here. */
static void test_against_the_oracle(void **state) {
    (void)state;
    const dcrf_grid grids[] = {dcrf_grid_2d(70, 41), dcrf_grid_2d(130, 9), dcrf_grid_3d(21, 12, 9),
                               dcrf_grid_1d(900)};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (size_t patch = 1; patch <= 4; patch += 3)
            for (size_t labels = 2; labels <= 5; labels += 3) {
                problem p = make(grids[g], labels, patch, 7 + g);
                const dcrf_measured_strength found = measure(&p);
                const pair_sums sums = sum_pairs(&p, 1);
                assert_int_equal(found.pairs, (size_t)sums.pairs);
                assert_true(found.pairs >= DCRF_LEAST_STRENGTH_PAIRS);
                assert_near(found.margin, geometric_mean_margin(&p), 1e-6 * found.margin);
                assert_near(found.rho, sums.differing / sums.expected, 0.01 * found.rho);
                const double temperature = calibrating_temperature(&p);
                assert_near(found.temperature, temperature, 0.01 * temperature);
                /* As in docs/explain/strength.md. */
                assert_near(found.strength,
                            14 * found.temperature / (1 + 2 * found.temperature / found.margin),
                            1e-12 * found.strength);
                drop(&p);
            }
}

/* Patches of errors make neighbours agree, so their vote is worth less. */
static void test_patches_weaken(void **state) {
    (void)state;
    problem independent = make(dcrf_grid_2d(96, 64), 4, 1, 3);
    problem patchy = make(dcrf_grid_2d(96, 64), 4, 6, 3);
    const dcrf_measured_strength a = measure(&independent), b = measure(&patchy);
    assert_true(b.rho < 0.6 * a.rho);
    assert_true(b.temperature < a.temperature);
    assert_true(b.strength < 0.8 * a.strength);
    drop(&independent);
    drop(&patchy);
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    problem p = make(dcrf_grid_2d(500, 375), 3, 2, 5);
    const dcrf_measured_strength one = measure_with(&p, true, 1);
    for (size_t threads = 2; threads <= 5; threads++) {
        const dcrf_measured_strength many = measure_with(&p, true, threads);
        assert_memory_equal(&one, &many, sizeof one);
    }
    assert_true(one.pairs < 4 * p.variables / 8); /* a sample */
    drop(&p);
}

/* The sample of a large image is representative of all its pixels. */
static void test_the_sample_is_fair(void **state) {
    (void)state;
    problem p = make(dcrf_grid_2d(448, 301), 3, 3, 11);
    const dcrf_measured_strength found = measure(&p);
    const pair_sums all = sum_pairs(&p, 1);
    /* About 16,000 of 134,848 pixels: the standard error of a share near 0.2 of 20,000 pairs in
     * patches of 9 pixels is 1 %; allow three of these, plus 1 % for the interpolation. */
    assert_near(found.rho, all.differing / all.expected, 0.04 * found.rho);
    drop(&p);
}

/* Offsets per pixel and the numbering of the labels do not matter; a factor scales the result. */
static void test_invariances(void **state) {
    (void)state;
    problem p = make(dcrf_grid_2d(80, 50), 4, 2, 13);
    const dcrf_measured_strength before = measure(&p);
    problem moved = make(p.grid, p.labels, 2, 13);
    for (size_t a = 0; a < p.variables; a++)
        for (size_t i = 0; i < p.labels; i++)
            moved.unary[a * 4 + i] =
                p.unary[a * 4 + (i + 1) % 4] + (float)(a % 8); /* negligible rounding */
    const dcrf_measured_strength after = measure(&moved);
    /* Sums up to 10 in single precision: 1e-6 of a margin near 1, and a few margins change sign. */
    assert_near(after.strength, before.strength, 1e-4 * before.strength);
    assert_int_equal(after.pairs, before.pairs);
    const float factors[] = {0.01f, 1.0f / 3, 2, 3, 10, 1000};
    for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
        for (size_t k = 0; k < p.variables * 4; k++)
            moved.unary[k] = p.unary[k] * factors[f];
        const dcrf_measured_strength scaled = measure(&moved);
        const double factor = (double)factors[f];
        assert_near(scaled.strength, factor * before.strength, 1e-4 * factor * before.strength);
        assert_near(scaled.temperature, factor * before.temperature,
                    1e-4 * factor * before.temperature);
        assert_true((factor > 1) == (scaled.rho > before.rho));
    }
    drop(&p);
    drop(&moved);
}

/* Undecided pixels count neither as agreeing nor as disagreeing. */
static void test_the_undecided_do_not_count(void **state) {
    (void)state;
    problem p = make(dcrf_grid_2d(60, 40), 3, 2, 17);
    const dcrf_measured_strength before = measure(&p);
    for (size_t a = 0; a < p.variables; a += 3)
        for (size_t i = 0; i < 3; i++)
            p.unary[a * 3 + i] = 2;
    const dcrf_measured_strength fewer = measure(&p);
    assert_true(fewer.pairs < before.pairs);
    assert_near(fewer.rho, before.rho, 0.1 * before.rho); /* a different sample of the same data */
    for (size_t k = 0; k < p.variables * 3; k++)
        p.unary[k] = 2;
    const dcrf_measured_strength none = measure(&p);
    assert_int_equal(none.pairs, 0);
    assert_near(none.strength, DCRF_FALLBACK_STRENGTH, 0);
    assert_true(isnan(none.rho) && isnan(none.temperature) && isnan(none.margin));
    drop(&p);
}

static void test_without_neighbours(void **state) {
    (void)state;
    problem p = make(dcrf_grid_1d(400), 3, 1, 19);
    dcrf_model *model = NULL;
    dcrf_workspace *workspace = NULL;
    dcrf_measured_strength measured;
    const dcrf_view unary = dcrf_view_interleaved(p.unary, DCRF_F32, &p.grid, 3);
    const dcrf_kernel features =
        dcrf_kernel_features(dcrf_view_interleaved(p.colour, DCRF_F32, &p.grid, 3), 1);
    assert_int_equal(dcrf_model_new(&model, &p.grid, 3, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &unary, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &features, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_measure_strength(model, workspace, &measured, NULL), DCRF_OK);
    assert_int_equal(measured.pairs, 0);
    assert_near(measured.strength, geometric_mean_margin(&p), 1e-6);
    assert_true(isnan(measured.rho));
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    /* Without colours all neighbours are alike. */
    assert_int_equal(measure_with(&p, false, 1).pairs, 399 + 398);
    drop(&p);
}

/* 40 pixels: 20 prefer label 0, 18 label 1, 2 label 2. */
static void test_changes(void **state) {
    (void)state;
    problem p = make(dcrf_grid_2d(8, 5), 4, 1, 29);
    uint16_t labels[40];
    size_t before[4], after[4];
    dcrf_changes changes;
    dcrf_error error;
    const dcrf_measured_strength weak = {.strength = 0.2}, strong = {.strength = 0.3};
    for (size_t a = 0; a < 40; a++) {
        const size_t best = a < 20 ? 0 : a < 38 ? 1 : 2;
        labels[a] = (uint16_t)best;
        for (size_t i = 0; i < 4; i++)
            p.unary[a * 4 + i] = i == best ? 0 : 1;
    }
    dcrf_model *model = model_of(&p, true); /* at strength 1 */
    assert_int_equal(
        dcrf_changes_of(model, NULL, labels, &strong, before, after, 4, &changes, &error), 0);
    assert_int_equal(changes.changed, 0);
    assert_int_equal(changes.warnings, 0);
    assert_int_equal(changes.labels_before, 3);
    assert_int_equal(changes.labels_after, 3);
    assert_int_equal(before[1], 18);
    assert_int_equal(before[3], 0);
    assert_memory_equal(before, after, sizeof before);
    changes.changed = 77;
    before[0] = after[0] = 99;
    assert_fails(DCRF_ERROR_SIZE, "the counts: the array holds 3 elements, 4 are needed", error,
                 dcrf_changes_of(model, NULL, labels, NULL, before, NULL, 3, &changes, &error));
    assert_fails(DCRF_ERROR_SIZE, "the counts: the array holds 3 elements, 4 are needed", error,
                 dcrf_changes_of(model, NULL, labels, NULL, NULL, after, 3, &changes, &error));
    assert_true(changes.changed == 77 && before[0] == 99 && after[0] == 99);
    labels[39] = 1; /* label 2 keeps one pixel */
    labels[0] = 3;  /* no variable preferred it */
    assert_int_equal(
        dcrf_changes_of(model, NULL, labels, &weak, before, after, 4, &changes, &error), 0);
    assert_int_equal(changes.changed, 2);
    assert_int_equal(changes.labels_after, 4);
    assert_int_equal(changes.labels_vanished, 0);
    assert_int_equal(changes.warnings, DCRF_WARNING_TOO_STRONG);
    labels[0] = 0;
    labels[38] = 1; /* label 2 had exactly 5 % */
    assert_int_equal(dcrf_changes_of(model, NULL, labels, NULL, NULL, NULL, 0, &changes, &error),
                     0);
    assert_int_equal(changes.labels_vanished, 1);
    assert_int_equal(changes.warnings, DCRF_WARNING_LABEL_GONE);
    assert_int_equal(changes.largest_label, 0);
    assert_near(changes.largest_share, 0.5, 0);
    for (size_t a = 0; a < 40; a++)
        labels[a] = 1;
    assert_int_equal(dcrf_changes_of(model, NULL, labels, NULL, NULL, NULL, 0, &changes, &error),
                     0);
    assert_int_equal(changes.warnings, DCRF_WARNING_CONSTANT | DCRF_WARNING_LABEL_GONE);
    const uint16_t preferred[40] = {[3] = 2, [9] = 1}; /* given, not found */
    assert_int_equal(
        dcrf_changes_of(model, preferred, labels, NULL, before, after, 4, &changes, &error), 0);
    assert_int_equal(changes.changed, 39);
    assert_int_equal(changes.warnings, DCRF_WARNING_CONSTANT | DCRF_WARNING_LABEL_GONE);
    assert_true(before[0] == 38 && before[1] == 1 && before[2] == 1 && after[1] == 40);
    labels[7] = 4;
    assert_fails(DCRF_ERROR_ARGUMENT, "variable 7", error,
                 dcrf_changes_of(model, NULL, labels, NULL, NULL, NULL, 0, &changes, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "variable 7", error,
                 dcrf_changes_of(model, labels, preferred, NULL, NULL, NULL, 0, &changes, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_changes_of(model, NULL, NULL, NULL, NULL, NULL, 0, &changes, &error));
    dcrf_model_free(&model);
    drop(&p);
}

static void test_null_is_refused(void **state) {
    (void)state;
    dcrf_error error;
    dcrf_measured_strength measured;
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error, dcrf_model_set_strength(NULL, 1, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error, dcrf_model_apply_temperature(NULL, 1, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_model_measure_strength(NULL, NULL, &measured, &error));
    assert_near(dcrf_model_strength(NULL), 0, 0);
    assert_near(dcrf_default_gamma(NULL), DCRF_DEFAULT_GAMMA_PER_STRENGTH * DCRF_FALLBACK_STRENGTH,
                0);
}

static void test_setting(void **state) {
    (void)state;
    problem p = make(dcrf_grid_2d(20, 10), 3, 1, 23);
    dcrf_model *model = model_of(&p, true);
    dcrf_error error;
    size_t stride;
    assert_near(dcrf_model_strength(model), 1, 1e-12);
    assert_int_equal(dcrf_model_set_strength(model, 2.5, &error), DCRF_OK);
    assert_near(dcrf_model_strength(model), 2.5, 1e-12);
    assert_near(dcrf_default_gamma(model), 2.5 * DCRF_DEFAULT_GAMMA_PER_STRENGTH, 1e-12);
    assert_true(dcrf_model_set_strength(model, -1, &error) < 0);
    assert_true(dcrf_model_set_strength(model, INFINITY, &error) < 0);
    assert_fails(DCRF_ERROR_SIZE, "too large for a float", error,
                 dcrf_model_set_strength(model, 1e40, &error));
    assert_near(dcrf_model_strength(model), 2.5, 1e-12);
    assert_int_equal(dcrf_model_set_strength(model, 0, &error), DCRF_OK);
    assert_near(dcrf_model_strength(model), 0, 0);
    assert_true(dcrf_model_set_strength(model, 1, &error) < 0); /* nothing to multiply */
    assert_non_null(strstr(error.message, "weight"));
    assert_int_equal(dcrf_model_apply_temperature(model, 4, &error), DCRF_OK);
    const float *unary = dcrf_model_unary(model, &stride);
    for (size_t a = 0; a < p.variables; a++)
        for (size_t i = 0; i < 3; i++)
            assert_true(unary[a * stride + i] == p.unary[a * 3 + i] / 4); /* a power of two */
    const double bad[] = {0, -1, NAN, INFINITY, 1e-300};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_true(dcrf_model_apply_temperature(model, bad[k], &error) < 0);
    assert_true(unary[1] == p.unary[1] / 4);
    dcrf_model_free(&model);
    drop(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_oracle),
        cmocka_unit_test(test_patches_weaken),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_the_sample_is_fair),
        cmocka_unit_test(test_invariances),
        cmocka_unit_test(test_the_undecided_do_not_count),
        cmocka_unit_test(test_without_neighbours),
        cmocka_unit_test(test_setting),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_null_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
