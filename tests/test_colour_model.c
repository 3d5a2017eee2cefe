/* Mixtures of Gaussians and the model of colours, against formulas written out again here. */
#include "unit.h"

#include "colour_model.h"
#include "gaussian_mixture.h"

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
    gaussian_mixture mixture;
    mixture_settings settings = mixture_defaults();
    settings.components_max = 2;
    settings.variance_min = 1e-6;
    assert_true(mixture_fit(&mixture, points, POINTS, 2, &settings));
    free(points);
    assert_int_equal(mixture.components, 2);
    const size_t second = mixture.of[0].weight > 0.5 ? 0 : 1;
    /* Six standard errors of means and variances of 10,000 and 30,000 points. */
    for (size_t k = 0; k < 2; k++) {
        const mixture_component *found = &mixture.of[k];
        const double count = k == second ? 30000 : 10000;
        assert_true(fabs(found->weight - count / POINTS) < 1e-3);
        assert_true(fabs(found->mean[0] - (k == second ? 100 : 20)) < 6 * 6 / sqrt(count));
        assert_true(fabs(found->mean[1] - (k == second ? 50 : 120)) < 6 * 5 / sqrt(count));
        assert_true(fabs(found->covariance[0][0] - 36) < 6 * 36 * sqrt(2 / count));
        assert_true(fabs(found->covariance[1][1] - 25) < 6 * 25 * sqrt(2 / count));
        assert_true(fabs(found->covariance[0][1] - 18) < 6 * 36 / sqrt(count));
    }
}

/* The density by the formula, with the inverse of a 2 x 2 matrix written out. */
static double naive_density(const gaussian_mixture *mixture, const float *point) {
    double sum = 0;
    for (size_t k = 0; k < mixture->components; k++) {
        const mixture_component *c = &mixture->of[k];
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
    gaussian_mixture mixture;
    mixture_settings settings = mixture_defaults();
    settings.points_a_component_min = 40;
    assert_true(mixture_fit(&mixture, points, 200, 2, &settings));
    assert_int_equal(mixture.components, 5);
    double weights = 0;
    for (size_t k = 0; k < 5; k++)
        weights += mixture.of[k].weight;
    assert_true(fabs(weights - 1) < 1e-12);
    for (size_t n = 0; n < 200; n++) {
        const double naive = naive_density(&mixture, points + 2 * n);
        /* Both are sums of five exponentials in double; exponents are below 100. */
        assert_true(fabs(exp(mixture_log_density(&mixture, points + 2 * n)) / naive - 1) < 1e-10);
    }
}

static double mean_log_density(const gaussian_mixture *mixture, const float *points, size_t count) {
    double sum = 0;
    for (size_t n = 0; n < count; n++)
        sum += mixture_log_density(mixture, points + n * mixture->dimension);
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
        gaussian_mixture mixture;
        mixture_settings settings = mixture_defaults();
        settings.variance_min = 1e-9; /* what it adds is lost in the sums */
        settings.tolerance = -1;
        settings.iterations_max = iterations;
        assert_true(mixture_fit(&mixture, points, COUNT, 3, &settings));
        const double now = mean_log_density(&mixture, points, COUNT);
        assert_true(now >= before - 1e-9);
        before = now;
    }
}

static void test_degenerate_points(void **state) {
    (void)state;
    float equal[300];
    for (size_t i = 0; i < 300; i++)
        equal[i] = 42;
    const mixture_settings settings = mixture_defaults();
    gaussian_mixture mixture;
    for (size_t count = 1; count <= 100; count += 33) {
        assert_true(mixture_fit(&mixture, equal, count, 3, &settings));
        assert_true(isfinite(mixture_log_density(&mixture, equal)));
        assert_true(fabs(mixture.of[0].mean[1] - 42) < 1e-9);
    }
    /* Points on a line, far from the origin: rounding must not break the factorization. */
    for (size_t i = 0; i < 300; i++)
        equal[i] = 1e7f + (float)(i / 3);
    assert_true(mixture_fit(&mixture, equal, 100, 3, &settings));
    for (size_t n = 0; n < 100; n++)
        assert_true(isfinite(mixture_log_density(&mixture, equal + 3 * n)));
}

/* Three labels on a strip of greys; two strokes each. */
enum { PIXELS = 90, LABELS = 3 };

static void make_strip(float *colours, int32_t *labels) {
    for (size_t i = 0; i < PIXELS; i++) {
        colours[i] = (float)(100 * (i / 30) + i % 7);
        labels[i] = i % 30 < 12 ? (int32_t)(i / 30) : -1;
    }
}

static void test_energies(void **state) {
    (void)state;
    float colours[PIXELS], energies[PIXELS * LABELS], again[PIXELS * LABELS];
    int32_t labels[PIXELS];
    make_strip(colours, labels);
    const coloured_scribbles scribbles = {colours, 1, PIXELS, labels, LABELS};
    assert_true(colour_model_energies(&scribbles, energies));
    for (size_t i = 0; i < PIXELS; i++) {
        const float *energy = energies + i * LABELS;
        const size_t truth = i / 30;
        double probability = 0;
        for (size_t label = 0; label < LABELS; label++) {
            if (labels[i] >= 0)
                assert_true(energy[label] == (label == truth ? 0 : SCRIBBLE_ENERGY));
            else
                assert_true(energy[label] >= 0 && energy[label] < 20);
            probability += exp((double)-energy[label]);
        }
        assert_true(fabs(probability - 1) < 1e-5); /* three energies in float */
        for (size_t label = 0; label < LABELS; label++)
            assert_true(label == truth || energy[label] > energy[truth] + 2);
    }
    assert_true(colour_model_energies(&scribbles, again));
    assert_memory_equal(energies, again, sizeof energies);

    /* A colour that nobody has: no label is much more likely than another. */
    colours[29] = 1000;
    assert_true(colour_model_energies(&scribbles, energies));
    for (size_t label = 0; label < LABELS; label++)
        assert_true(fabsf(energies[29 * LABELS + label] - logf(LABELS)) < 1e-3f);
}

static void test_image_of_one_colour(void **state) {
    (void)state;
    float colours[12] = {0}, energies[8];
    const int32_t labels[4] = {0, 1, -1, -1};
    const coloured_scribbles scribbles = {colours, 3, 4, labels, 2};
    assert_true(colour_model_energies(&scribbles, energies));
    for (size_t i = 4; i < 8; i++)
        assert_true(fabsf(energies[i] - logf(2)) < 1e-6f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit_finds_the_clusters),
        cmocka_unit_test(test_density_against_the_formula),
        cmocka_unit_test(test_iterations_never_lose),
        cmocka_unit_test(test_degenerate_points),
        cmocka_unit_test(test_energies),
        cmocka_unit_test(test_image_of_one_colour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
