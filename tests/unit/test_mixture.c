/* Mixtures of Gaussians, against formulas written out independently. */
#include "unit.h"

#include "scribble/mixture.h"

#include <math.h>
#include <stdlib.h>

/* Deterministic numbers, uniform in [0, 1). */
static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static double normal(uint64_t *state) {
    const double radius = sqrt(-2 * log(1 - uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

static struct dcrf_mixture_settings defaults(void) {
    return (struct dcrf_mixture_settings){.components_max = 5,
                                          .weight_per_component_min = 50,
                                          .variance_min = 1,
                                          .iterations_max = 100,
                                          .tolerance = 1e-5};
}

/* With every point of weight one. */
static void fit(struct dcrf_mixture *mixture, const float *points, size_t count, size_t dimension,
                const struct dcrf_mixture_settings *settings) {
    double *weights = malloc(count * sizeof *weights);
    uint8_t *cluster = malloc(count);
    assert_non_null(weights);
    assert_non_null(cluster);
    for (size_t n = 0; n < count; n++)
        weights[n] = 1;
    const struct dcrf_weighted_points weighted = {points, weights, count, dimension};
    dcrf_mixture_fit(mixture, &weighted, settings, cluster);
    free(weights);
    free(cluster);
}

/* Points of two clusters in the plane: weights 1/4 and 3/4, correlated along the diagonal. */
enum { POINTS = 40000 };

static void draw_points(float *points) {
    uint64_t state = 7;
    for (size_t n = 0; n < POINTS; n++) {
        const int second = n % 4 != 0;
        const double a = normal(&state), b = normal(&state);
        points[2 * n] = (float)((second ? 100 : 20) + 6 * a);
        points[2 * n + 1] = (float)((second ? 50 : 120) + 3 * a + 4 * b);
    }
}

static void test_fit_finds_the_clusters(void **state) {
    (void)state;
    float *points = malloc(2 * POINTS * sizeof *points);
    assert_non_null(points);
    draw_points(points);
    struct dcrf_mixture mixture;
    struct dcrf_mixture_settings settings = defaults();
    settings.components_max = 2;
    settings.variance_min = 1e-6;
    fit(&mixture, points, POINTS, 2, &settings);
    free(points);
    assert_int_equal(mixture.components, 2);
    const size_t second = mixture.of[0].weight > 0.5 ? 0 : 1;
    /* Six standard errors of means and variances of 10,000 and 30,000 points. */
    for (size_t k = 0; k < 2; k++) {
        const struct dcrf_mixture_component *found = &mixture.of[k];
        const double count = k == second ? 30000 : 10000;
        assert_true(fabs(found->weight - count / (double)POINTS) < 1e-3);
        assert_true(fabs(found->mean[0] - (k == second ? 100 : 20)) < 6 * 6 / sqrt(count));
        assert_true(fabs(found->mean[1] - (k == second ? 50 : 120)) < 6 * 5 / sqrt(count));
        assert_true(fabs(found->covariance[0][0] - 36) < 6 * 36 * sqrt(2 / count));
        assert_true(fabs(found->covariance[1][1] - 25) < 6 * 25 * sqrt(2 / count));
        assert_true(fabs(found->covariance[0][1] - 18) < 6 * 36 / sqrt(count));
    }
}

/* The density by the formula, with the inverse of a 2 x 2 matrix written out. */
static double naive_density(const struct dcrf_mixture *mixture, const float *point) {
    double sum = 0;
    for (size_t k = 0; k < mixture->components; k++) {
        const struct dcrf_mixture_component *c = &mixture->of[k];
        const double a = c->covariance[0][0], b = c->covariance[0][1], d = c->covariance[1][1];
        const double determinant = a * d - b * b;
        const double x = (double)point[0] - c->mean[0], y = (double)point[1] - c->mean[1];
        const double square = (d * x * x - 2 * b * x * y + a * y * y) / determinant;
        sum += c->weight * exp(-square / 2) / (6.283185307179586 * sqrt(determinant));
    }
    return sum;
}

static void test_density_against_the_formula(void **state) {
    (void)state;
    float points[400];
    uint64_t random = 3;
    for (size_t i = 0; i < 400; i++)
        points[i] = (float)(20 * uniform(&random) + (i % 7 < 3 ? 0 : 60));
    struct dcrf_mixture mixture;
    struct dcrf_mixture_settings settings = defaults();
    settings.components_max = 5;
    settings.weight_per_component_min = 40;
    fit(&mixture, points, 200, 2, &settings);
    assert_int_equal(mixture.components, 5);
    double weights = 0;
    for (size_t k = 0; k < 5; k++)
        weights += mixture.of[k].weight;
    assert_true(fabs(weights - 1) < 1e-12);
    for (size_t n = 0; n < 200; n++) {
        const double naive = naive_density(&mixture, points + 2 * n);
        /* Both are sums of five exponentials in double; exponents are below 100. */
        assert_true(fabs(exp(dcrf_mixture_log_density(&mixture, points + 2 * n)) / naive - 1) <
                    1e-10);
    }
}

static double mean_log_density(const struct dcrf_mixture *mixture, const float *points,
                               size_t count) {
    double sum = 0;
    for (size_t n = 0; n < count; n++)
        sum += dcrf_mixture_log_density(mixture, points + n * mixture->dimension);
    return sum / (double)count;
}

static void test_iterations_never_lose(void **state) {
    (void)state;
    enum { COUNT = 600 };
    float points[3 * COUNT];
    uint64_t random = 11;
    for (size_t i = 0; i < 3 * COUNT; i++)
        points[i] = (float)(255 * uniform(&random) * uniform(&random));
    double before = -HUGE_VAL;
    for (size_t iterations = 0; iterations < 30; iterations++) {
        struct dcrf_mixture mixture;
        struct dcrf_mixture_settings settings = defaults();
        settings.variance_min = 1e-9; /* too small to affect the sums */
        settings.tolerance = -1;
        settings.iterations_max = iterations;
        fit(&mixture, points, COUNT, 3, &settings);
        const double now = mean_log_density(&mixture, points, COUNT);
        assert_true(now >= before - 1e-9);
        before = now;
    }
}

/* A refit continues where a fit stopped. */
static void test_refit(void **state) {
    (void)state;
    enum { COUNT = 400 };
    float points[2 * COUNT];
    double weights[COUNT];
    uint64_t random = 23;
    for (size_t n = 0; n < COUNT; n++) {
        weights[n] = 1;
        points[2 * n] = (float)(60 * uniform(&random) * uniform(&random));
        points[2 * n + 1] = (float)(60 * uniform(&random));
    }
    const struct dcrf_weighted_points weighted = {points, weights, COUNT, 2};
    struct dcrf_mixture_settings settings = defaults();
    struct dcrf_mixture at_once, in_two;
    settings.tolerance = -1;
    settings.iterations_max = 7;
    fit(&at_once, points, COUNT, 2, &settings);
    settings.iterations_max = 4;
    fit(&in_two, points, COUNT, 2, &settings);
    settings.iterations_max = 3;
    dcrf_mixture_refit(&in_two, &weighted, &settings);
    assert_memory_equal(&at_once, &in_two, sizeof at_once);
}

static void test_degenerate_points(void **state) {
    (void)state;
    float equal[300];
    for (size_t i = 0; i < 300; i++)
        equal[i] = 42;
    const struct dcrf_mixture_settings settings = defaults();
    struct dcrf_mixture mixture;
    for (size_t count = 1; count <= 100; count += 33) {
        fit(&mixture, equal, count, 3, &settings);
        assert_true(isfinite(dcrf_mixture_log_density(&mixture, equal)));
        assert_true(fabs(mixture.of[0].mean[1] - 42) < 1e-9);
    }
    /* Points on a line, far from the origin: rounding must not break the factorization. */
    for (size_t i = 0; i < 300; i++)
        equal[i] = 1e7f + (float)(i / 3);
    fit(&mixture, equal, 100, 3, &settings);
    for (size_t n = 0; n < 100; n++)
        assert_true(isfinite(dcrf_mixture_log_density(&mixture, equal + 3 * n)));
}

/* A point of weight w counts as w equal points; one of weight 0 does not count. */
static void test_weights_are_repetitions(void **state) {
    (void)state;
    enum { DISTINCT = 40, MOST = 4 };
    float points[2 * DISTINCT], repeated[2 * DISTINCT * MOST];
    double weights[DISTINCT];
    uint8_t cluster[DISTINCT];
    uint64_t random = 5;
    size_t count = 0;
    for (size_t n = 0; n < DISTINCT; n++) {
        weights[n] = (double)(n % (MOST + 1));
        points[2 * n] = (float)(100 * uniform(&random) + (n % 2 ? 200 : 0));
        points[2 * n + 1] = (float)(50 * uniform(&random));
        for (size_t k = 0; k < n % (MOST + 1); k++, count++)
            memcpy(repeated + 2 * count, points + 2 * n, 2 * sizeof *points);
    }
    struct dcrf_mixture_settings settings = defaults();
    settings.weight_per_component_min = 20;
    struct dcrf_mixture first, second;
    const struct dcrf_weighted_points weighted = {points, weights, DISTINCT, 2};
    dcrf_mixture_fit(&first, &weighted, &settings, cluster);
    fit(&second, repeated, count, 2, &settings);
    assert_int_equal(first.components, second.components);
    assert_true(first.components > 1);
    /* The same sums in another order, through a few dozen iterations. */
    for (size_t n = 0; n < DISTINCT; n++)
        assert_true(fabs(dcrf_mixture_log_density(&first, points + 2 * n) -
                         dcrf_mixture_log_density(&second, points + 2 * n)) < 1e-6);
}

/* One iteration by the EM formulas for scalar points: no Cholesky, no logarithms, no origin. */
static void test_against_naive_em(void **state) {
    (void)state;
    enum { COUNT = 300 };
    float points[COUNT];
    uint64_t random = 17;
    for (size_t n = 0; n < COUNT; n++)
        points[n] = (float)((double)(n % 3) * 12 + 8 * uniform(&random));
    struct dcrf_mixture_settings settings = defaults();
    settings.tolerance = -1; /* run all iterations */
    struct dcrf_mixture before, after;
    for (size_t iterations = 0; iterations < 6; iterations++) {
        settings.iterations_max = iterations;
        fit(&before, points, COUNT, 1, &settings);
        settings.iterations_max = iterations + 1;
        fit(&after, points, COUNT, 1, &settings);
        for (size_t k = 0; k < before.components; k++) {
            double weight = 0, mean = 0, square = 0;
            for (size_t n = 0; n < COUNT; n++) {
                double share[DCRF_MIXTURE_COMPONENTS_MAX], sum = 0;
                for (size_t j = 0; j < before.components; j++) {
                    const struct dcrf_mixture_component *c = &before.of[j];
                    const double variance = c->covariance[0][0];
                    const double distance = (double)points[n] - c->mean[0];
                    share[j] = c->weight * exp(-distance * distance / (2 * variance)) /
                               sqrt(6.283185307179586 * variance);
                    sum += share[j];
                }
                weight += share[k] / sum;
                mean += share[k] / sum * (double)points[n];
                square += share[k] / sum * (double)points[n] * (double)points[n];
            }
            mean /= weight;
            /* Numbers below 1000 in double; squares cancel to hundreds. */
            assert_true(fabs(after.of[k].weight - weight / (double)COUNT) < 1e-10);
            assert_true(fabs(after.of[k].mean[0] - mean) < 1e-9);
            assert_true(fabs(after.of[k].covariance[0][0] -
                             (square / weight - mean * mean + settings.variance_min)) < 1e-8);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit_finds_the_clusters),
        cmocka_unit_test(test_density_against_the_formula),
        cmocka_unit_test(test_iterations_never_lose),
        cmocka_unit_test(test_refit),
        cmocka_unit_test(test_degenerate_points),
        cmocka_unit_test(test_weights_are_repetitions),
        cmocka_unit_test(test_against_naive_em),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
