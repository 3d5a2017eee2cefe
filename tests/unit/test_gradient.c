/* Derivatives against central differences of a naive mean field (and pairwise energy) in double
 * over dense matrices, which shares no code with the library. */
#include "dense.h"
#include "unit.h"

#include "core/lanes.h"
#include "core/rng.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 6,
    HEIGHT = 5,
    N = WIDTH * HEIGHT,
    M = 3,
    STRIDE = DCRF_NARROW_LANES,
    KERNELS = 3,
    FEATURES = 2
};

/* A problem as plain numbers, each of which can be varied. */
struct problem {
    dcrf_grid grid;
    double unary[N][M];
    double weight[KERNELS];
    double mu[KERNELS][M][M];
    dcrf_compatibility compatibility[KERNELS];
    dcrf_kernel kernel[KERNELS];
    uint8_t image[N * 3];
    float features[N * FEATURES];
    uint8_t mask[N];
    size_t iterations;
    bool is_logarithm; /* the loss is in ln q */
    double loss[N][M]; /* dL/dq: the loss is linear in q, or in ln q */
};

static double uniform(dcrf_rng *rng, double low, double high) {
    return low + (high - low) * dcrf_rng_uniform(rng);
}

/* The three kinds of kernel, covering every normalization. The row sums are small, so that the
 * messages are about as large as the unary energies. */
static struct problem *new_problem(uint64_t seed, size_t iterations, bool is_potts) {
    struct problem *p = calloc(1, sizeof *p);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    p->grid = dcrf_grid_2d(WIDTH, HEIGHT);
    p->grid.spacing[1] = 1.5;
    p->iterations = iterations;
    for (size_t a = 0; a < N; a++) {
        p->mask[a] = 1;
        for (size_t i = 0; i < M; i++) {
            p->unary[a][i] = (double)(float)uniform(&rng, 0, 2);
            p->loss[a][i] = (double)(float)uniform(&rng, -1, 1);
        }
        for (size_t c = 0; c < 3; c++)
            p->image[a * 3 + c] = (uint8_t)dcrf_rng_next(&rng);
        for (size_t c = 0; c < FEATURES; c++)
            p->features[a * FEATURES + c] = (float)uniform(&rng, 3, 6);
    }
    const dcrf_view image = dcrf_view_interleaved(p->image, DCRF_U8, &p->grid, 3);
    const dcrf_view features = dcrf_view_interleaved(p->features, DCRF_F32, &p->grid, FEATURES);
    p->kernel[0] = dcrf_kernel_spatial(1.5, 1);
    p->kernel[0].sigma[1] = 2.5;
    p->kernel[1] = dcrf_kernel_bilateral(3, 60, image, 1);
    p->kernel[1].channel_sigma[2] = 90;
    p->kernel[2] = dcrf_kernel_features(features, 1);
    p->kernel[2].normalization = DCRF_NORMALIZE_NONE;
    const double weights[KERNELS] = {0.7, 1.3, 0.05};
    for (size_t m = 0; m < KERNELS; m++) {
        p->weight[m] = weights[m];
        p->compatibility[m] = is_potts ? DCRF_COMPATIBILITY_POTTS : (dcrf_compatibility)m;
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j <= i; j++) {
                const double drawn = (double)(float)uniform(&rng, -1, 1);
                double value = i != j;
                if (p->compatibility[m] == DCRF_COMPATIBILITY_VECTOR)
                    value = i == j ? drawn : 0;
                if (p->compatibility[m] == DCRF_COMPATIBILITY_MATRIX)
                    value = drawn;
                p->mu[m][i][j] = p->mu[m][j][i] = value;
            }
    }
    return p;
}

/* Kernel 1, which has a Potts or vector compatibility, gets the matrix c (1 - I). */
static void make_multiple(struct problem *p, double c) {
    p->compatibility[1] = DCRF_COMPATIBILITY_MATRIX;
    for (size_t k = 0; k < M * M; k++)
        p->mu[1][k / M][k % M] = k / M == k % M ? 0 : c;
}

/* ---- the oracle ----------------------------------------------------------------------------- */

static void naive_field(const struct problem *p, double *const *matrix, double q[N][M],
                        double out[N][M]) {
    memset(out, 0, sizeof(double[N][M]));
    for (size_t m = 0; m < KERNELS; m++)
        for (size_t a = 0; a < N; a++)
            for (size_t b = 0; b < N; b++)
                for (size_t i = 0; i < M && a != b; i++)
                    for (size_t j = 0; j < M; j++)
                        out[a][i] += p->weight[m] * matrix[m][a * N + b] * p->mu[m][i][j] * q[b][j];
}

static void naive_softmax(const struct problem *p, double s[N][M], double q[N][M]) {
    for (size_t a = 0; a < N; a++) {
        double sum = 0;
        for (size_t i = 0; i < M; i++)
            sum += exp(-s[a][i]);
        for (size_t i = 0; i < M; i++)
            q[a][i] = p->mask[a] ? exp(-s[a][i]) / sum : 0;
    }
}

static double with_matrices(const struct problem *p, double y[N][M],
                            double (*value)(const struct problem *, double *const *,
                                            double[N][M])) {
    double *matrix[KERNELS];
    for (size_t m = 0; m < KERNELS; m++)
        matrix[m] = dense_of_kernel(&p->grid, &p->kernel[m]);
    const double result = value(p, matrix, y);
    for (size_t m = 0; m < KERNELS; m++)
        free(matrix[m]);
    return result;
}

static double naive_mean_field(const struct problem *p, double *const *matrix, double q[N][M]) {
    double s[N][M], loss = 0;
    memcpy(s, p->unary, sizeof s);
    naive_softmax(p, s, q);
    for (size_t t = 0; t < p->iterations; t++) {
        naive_field(p, matrix, q, s);
        for (size_t k = 0; k < N * M; k++)
            s[k / M][k % M] = p->unary[k / M][k % M] + 2 * s[k / M][k % M];
        naive_softmax(p, s, q);
    }
    for (size_t k = 0; k < N * M; k++) {
        const double own = q[k / M][k % M];
        if (own > 0)
            loss += p->loss[k / M][k % M] * (p->is_logarithm ? log(own) : own);
    }
    return loss;
}

static double naive_loss(const struct problem *p) {
    double q[N][M];
    return with_matrices(p, q, naive_mean_field);
}

/* The energy of y = the rows of `loss`, so that they can be varied too. */
static double naive_pairs(const struct problem *p, double *const *matrix, double y[N][M]) {
    double field[N][M], sum = 0;
    naive_field(p, matrix, y, field);
    for (size_t k = 0; k < N * M; k++)
        sum += field[k / M][k % M] * y[k / M][k % M];
    return sum;
}

static double naive_energy(const struct problem *p) {
    double y[N][M];
    memcpy(y, p->loss, sizeof y);
    return with_matrices(p, y, naive_pairs);
}

/* Central differences; the oracle is in double and smooth on the scale of the step. */
static double difference(double (*value)(const struct problem *), struct problem *p, double *at,
                         double step) {
    const double old = *at;
    *at = old + step;
    const double above = value(p);
    *at = old - step;
    const double below = value(p);
    *at = old;
    return (above - below) / (2 * step);
}

static double feature_difference(double (*value)(const struct problem *), struct problem *p,
                                 float *at) {
    const float old = *at, step = 1.0f / 1024; /* old + step is a float: old is below 8 */
    *at = old + step;
    const double above = value(p);
    *at = old - step;
    const double below = value(p);
    *at = old;
    return (above - below) / (2 * (double)step);
}

/* ---- the library ---------------------------------------------------------------------------- */

struct found {
    float q[N * STRIDE], log_q[N * STRIDE], unary[N * STRIDE], y[N * STRIDE];
    double energy;
    double weight[KERNELS];
    double compatibility[KERNELS * M * M];
    double sigma[KERNELS * DCRF_MAX_FEATURES];
    float features[N * FEATURES];
    float *features_of[KERNELS];
};

struct held {
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
};

static struct held hold(const struct problem *p, size_t threads, dcrf_operator_kind kind) {
    struct held h = {0};
    float unary[N * M];
    for (size_t k = 0; k < N * M; k++)
        unary[k] = (float)p->unary[k / M][k % M];
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &p->grid, M);
    assert_int_equal(dcrf_model_new(&h.model, &p->grid, M, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(h.model, &view, NULL), DCRF_OK);
    for (size_t m = 0; m < KERNELS; m++) {
        dcrf_kernel kernel = p->kernel[m];
        float values[M * M];
        kernel.weight = p->weight[m];
        for (size_t k = 0; k < M * M; k++)
            values[k] = (float)p->mu[m][k / M][k % M];
        if (p->compatibility[m] == DCRF_COMPATIBILITY_VECTOR)
            for (size_t i = 0; i < M; i++)
                values[i] = (float)p->mu[m][i][i];
        assert_int_equal(dcrf_model_add_kernel(h.model, &kernel, NULL), DCRF_OK);
        assert_int_equal(
            dcrf_model_set_compatibility(h.model, m, p->compatibility[m], values, NULL), DCRF_OK);
    }
    assert_int_equal(dcrf_workspace_new(&h.workspace, threads, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&h.plan, h.model, kind, h.workspace, NULL), DCRF_OK);
    return h;
}

static void drop(struct held *h) {
    dcrf_plan_free(&h->plan);
    dcrf_workspace_free(&h->workspace);
    dcrf_model_free(&h->model);
}

static dcrf_derivatives everything(struct found *f) {
    f->features_of[2] = f->features;
    return (dcrf_derivatives){.weight = f->weight,
                              .weight_count = KERNELS,
                              .compatibility = f->compatibility,
                              .compatibility_count = KERNELS * M * M,
                              .sigma = f->sigma,
                              .sigma_count = KERNELS * DCRF_MAX_FEATURES,
                              .features = f->features_of,
                              .features_count = sizeof f->features / sizeof *f->features};
}

static struct found *find(const struct problem *p, size_t threads, dcrf_operator_kind kind) {
    struct found *f = calloc(1, sizeof *f);
    struct held h = hold(p, threads, kind);
    float loss[N * STRIDE] = {0};
    dcrf_unrolled *unrolled;
    /* The loss gradient at masked variables must be ignored, even NaN. */
    for (size_t k = 0; k < N * M; k++)
        loss[k / M * STRIDE + k % M] = p->mask[k / M] ? (float)p->loss[k / M][k % M] : NAN;
    dcrf_derivatives wanted = everything(f);
    wanted.unary = f->unary;
    wanted.unary_count = N * STRIDE;
    assert_int_equal(dcrf_unrolled_new(&unrolled, h.plan, h.workspace, p->iterations, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_unrolled_forward(unrolled, p->mask, f->q, N * STRIDE, STRIDE, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_unrolled_log_q(unrolled, f->log_q, N * STRIDE, STRIDE, NULL), DCRF_OK);
    for (size_t time = 0; time < 2; time++) /* the second call gives the same */
        assert_int_equal(p->is_logarithm
                             ? dcrf_unrolled_backward_log_q(unrolled, loss, STRIDE, &wanted, NULL)
                             : dcrf_unrolled_backward(unrolled, loss, STRIDE, &wanted, NULL),
                         DCRF_OK);
    dcrf_unrolled_free(&unrolled);
    drop(&h);
    return f;
}

static struct found *find_energy(const struct problem *p) {
    struct found *f = calloc(1, sizeof *f);
    struct held h = hold(p, 2, DCRF_OPERATOR_EXACT);
    float y[N * STRIDE] = {0};
    for (size_t k = 0; k < N * M; k++)
        y[k / M * STRIDE + k % M] = (float)p->loss[k / M][k % M];
    const dcrf_derivatives wanted = everything(f);
    assert_int_equal(dcrf_pairwise_gradient(h.plan, h.workspace, y, STRIDE, &f->energy, f->y,
                                            N * STRIDE, &wanted, NULL),
                     DCRF_OK);
    drop(&h);
    return f;
}

/* ---- comparisons ---------------------------------------------------------------------------- */

/* Filters round to float; sums of some hundred terms of both signs lose about 1e-6 of their size.
 * The derivatives here are between about 0.1 and 10; central differences are good to 1e-7. */
#define ABSOLUTE 1e-5
#define RELATIVE 1e-4

static void assert_derivative(double value, double expected, const char *what, size_t index) {
    if (!(fabs(value - expected) <= ABSOLUTE + RELATIVE * fabs(expected)))
        fail_msg("derivative by %s %zu: %.8g, by differences %.8g", what, index, value, expected);
}

static void check_parameters(struct problem *p, const struct found *f,
                             double (*value)(const struct problem *)) {
    const double step = 1e-4;
    double largest = 0;
    for (size_t m = 0; m < KERNELS; m++) {
        assert_derivative(f->weight[m], difference(value, p, &p->weight[m], step), "weight", m);
        largest = fmax(largest, fabs(f->weight[m]));
        for (size_t k = 0; k < M * M; k++)
            assert_derivative(f->compatibility[m * M * M + k],
                              difference(value, p, &p->mu[m][k / M][k % M], step), "compatibility",
                              m * 100 + k);
        const double *sigma = f->sigma + m * DCRF_MAX_FEATURES;
        for (size_t axis = 0; m < 2 && axis < 2; axis++)
            assert_derivative(sigma[axis], difference(value, p, &p->kernel[m].sigma[axis], step),
                              "sigma", m * 100 + axis);
        for (size_t c = 0; m == 1 && c < 3; c++)
            assert_derivative(sigma[2 + c],
                              difference(value, p, &p->kernel[1].channel_sigma[c], 1e-2),
                              "channel sigma", c);
    }
    assert_true(largest > 0.01);
    for (size_t k = 0; k < N * FEATURES; k++)
        assert_derivative((double)f->features[k], feature_difference(value, p, &p->features[k]),
                          "feature", k);
}

static void derivatives_of_mean_field_are_those_of_differences(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct problem *p = new_problem(seed, seed == 3 || seed == 8 ? 0 : 3, seed % 2);
        p->is_logarithm = seed > 5;
        if (seed == 5)
            make_multiple(p, 1.75);
        if (seed == 4 || seed == 7)
            for (size_t a = 0; a < N; a += 3)
                p->mask[a] = 0;
        struct found *f = find(p, 2, DCRF_OPERATOR_EXACT);
        double q[N][M];
        with_matrices(p, q, naive_mean_field);
        for (size_t k = 0; k < N * M; k++) {
            const double own = q[k / M][k % M];
            assert_true(fabs((double)f->q[k / M * STRIDE + k % M] - own) < 1e-5);
            assert_true(fabs((double)f->log_q[k / M * STRIDE + k % M] - (own > 0 ? log(own) : 0)) <
                        1e-4);
            assert_derivative((double)f->unary[k / M * STRIDE + k % M],
                              difference(naive_loss, p, &p->unary[k / M][k % M], 1e-4), "unary", k);
        }
        if (p->iterations > 0)
            check_parameters(p, f, naive_loss);
        else
            for (size_t m = 0; m < KERNELS; m++)
                assert_true(f->weight[m] == 0);
        free(f);
        free(p);
    }
}

static void derivatives_of_the_energy_are_those_of_differences(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct problem *p = new_problem(seed, 0, seed % 2);
        if (seed == 3)
            make_multiple(p, 1.75);
        struct found *f = find_energy(p);
        assert_true(fabs(f->energy - naive_energy(p)) < 1e-4 * fmax(1, fabs(f->energy)));
        for (size_t k = 0; k < N * M; k++)
            assert_derivative((double)f->y[k / M * STRIDE + k % M],
                              difference(naive_energy, p, &p->loss[k / M][k % M], 1e-3), "y", k);
        check_parameters(p, f, naive_energy);
        free(f);
        free(p);
    }
}

/* The forward pass is what the solver computes without damping. */
static void forward_is_mean_field(void **state) {
    (void)state;
    for (int is_potts = 0; is_potts < 2; is_potts++) {
        struct problem *p = new_problem(5, 4, is_potts);
        struct held h = hold(p, 1, DCRF_OPERATOR_FAST);
        struct found *f = find(p, 1, DCRF_OPERATOR_FAST);
        dcrf_settings settings;
        dcrf_solver *solver;
        float q[N * STRIDE];
        dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
        settings.damping = 0;
        settings.stationarity = 0;
        settings.iterations = p->iterations;
        settings.polish = 0;
        assert_int_equal(dcrf_solver_new(&solver, h.plan, h.workspace, &settings, NULL), DCRF_OK);
        assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_ITERATIONS);
        assert_int_equal(dcrf_solver_marginals(solver, q, N * STRIDE, STRIDE, NULL), DCRF_OK);
        for (size_t k = 0; k < N * M; k++)
            assert_true(q[k / M * STRIDE + k % M] == f->q[k / M * STRIDE + k % M]);
        dcrf_solver_free(&solver);
        drop(&h);
        free(f);
        free(p);
    }
}

static void threads_change_no_byte(void **state) {
    (void)state;
    struct problem *p = new_problem(6, 3, false);
    struct found *one = find(p, 1, DCRF_OPERATOR_FAST), *four = find(p, 4, DCRF_OPERATOR_FAST);
    for (size_t m = 0; m < KERNELS; m++)
        one->features_of[m] = four->features_of[m] = NULL;
    assert_memory_equal(one, four, sizeof *one);
    free(one);
    free(four);
    free(p);
}

/* The loss of a picture on the lattice with these sigmas (the sum of q at the drawn labels), and
 * its derivatives. */
enum {
    PICTURE_WIDTH = 32,
    PICTURE_HEIGHT = 24,
    PIXELS = PICTURE_WIDTH * PICTURE_HEIGHT,
    DRAWN = 4
};
enum { SIGMAS = 5 };

static double lattice_loss(const uint8_t *image, const float *noise, const float *labels,
                           const double *sigma, double *derivative) {
    const dcrf_grid grid = dcrf_grid_2d(PICTURE_WIDTH, PICTURE_HEIGHT);
    dcrf_view unary = dcrf_view_interleaved(noise, DCRF_F32, &grid, STRIDE);
    dcrf_kernel kernel =
        dcrf_kernel_bilateral(1, 1, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 2);
    struct held h = {0};
    dcrf_unrolled *unrolled;
    float *q = calloc(PIXELS * STRIDE, sizeof *q);
    const dcrf_derivatives wanted = {.sigma = derivative, .sigma_count = DCRF_MAX_FEATURES};
    double loss = 0;
    unary.channels = DRAWN;
    for (size_t c = 0; c < SIGMAS; c++)
        *(c < 2 ? &kernel.sigma[c] : &kernel.channel_sigma[c - 2]) = sigma[c];
    assert_int_equal(dcrf_model_new(&h.model, &grid, DRAWN, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(h.model, &unary, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(h.model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&h.workspace, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&h.plan, h.model, DCRF_OPERATOR_LATTICE, h.workspace, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_unrolled_new(&unrolled, h.plan, h.workspace, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_unrolled_forward(unrolled, NULL, q, PIXELS * STRIDE, STRIDE, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_unrolled_backward(unrolled, labels, STRIDE, &wanted, NULL), DCRF_OK);
    for (size_t a = 0; a < PIXELS; a++)
        for (size_t i = 0; i < DRAWN; i++)
            loss += (double)q[a * STRIDE + i] * (double)labels[a * STRIDE + i];
    dcrf_unrolled_free(&unrolled);
    drop(&h);
    free(q);
    return loss;
}

/* Derivatives with respect to the logarithms of a lattice's sigmas match finite differences of the
 * loss. The limit: the loss is not linear over factors from 1 / 1.2 to 1.2 (2 % here), nor is mean
 * field in its operators. */
static void sigmas_of_the_lattice_are_differences(void **state) {
    (void)state;
    uint8_t *image = draw_photograph(PICTURE_WIDTH, PICTURE_HEIGHT);
    float *labels = draw_labels(PICTURE_WIDTH, PICTURE_HEIGHT, DRAWN, STRIDE);
    float *noise = random_block(PIXELS, STRIDE, 0, 2, 3);
    double derivative[DCRF_MAX_FEATURES], unused[DCRF_MAX_FEATURES], error = 0, size = 0;
    double sigma[SIGMAS] = {6, 6, 20, 20, 20};
    for (size_t k = 0; k < PIXELS * STRIDE; k++)
        noise[k] -= labels[k];
    lattice_loss(image, noise, labels, sigma, derivative);
    for (size_t c = 0; c < SIGMAS; c++) {
        const double old = sigma[c];
        sigma[c] = old * 1.2;
        const double wide = lattice_loss(image, noise, labels, sigma, unused);
        sigma[c] = old / 1.2;
        const double narrow = lattice_loss(image, noise, labels, sigma, unused);
        sigma[c] = old;
        const double expected = (wide - narrow) / (2 * log(1.2));
        print_message("by ln sigma %zu: %.4f, by differences %.4f\n", c, derivative[c] * old,
                      expected);
        error += fabs(derivative[c] * old - expected);
        size += fabs(expected);
    }
    assert_true(size > 5);
    assert_true(error < 0.05 * size);
    free(image);
    free(labels);
    free(noise);
}

static void mistakes_are_errors(void **state) {
    (void)state;
    struct problem *p = new_problem(1, 2, true);
    struct held h = hold(p, 1, DCRF_OPERATOR_EXACT);
    dcrf_unrolled *unrolled = NULL;
    dcrf_error error;
    float block[N * STRIDE] = {0};
    double energy;
    dcrf_derivatives wanted = {.unary = block, .unary_count = N * STRIDE};
    assert_int_equal(dcrf_unrolled_new(&unrolled, h.plan, h.workspace, 2, &error), DCRF_OK);
    assert_fails(DCRF_ERROR_ARGUMENT, "forward", error,
                 dcrf_unrolled_backward(unrolled, block, STRIDE, &wanted, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "forward", error,
                 dcrf_unrolled_log_q(unrolled, block, N * STRIDE, STRIDE, &error));
    assert_fails(DCRF_ERROR_SIZE, "stride", error,
                 dcrf_unrolled_log_q(unrolled, block, N * STRIDE, STRIDE - 1, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_unrolled_log_q(unrolled, NULL, N * STRIDE, STRIDE, &error));
    assert_fails(DCRF_ERROR_SIZE, "stride", error,
                 dcrf_unrolled_forward(unrolled, NULL, block, N * STRIDE, STRIDE - 1, &error));
    assert_int_equal(dcrf_unrolled_forward(unrolled, NULL, block, N * STRIDE, STRIDE, &error),
                     DCRF_OK);
    assert_fails(DCRF_ERROR_ARGUMENT, "unary", error,
                 dcrf_pairwise_gradient(h.plan, h.workspace, block, STRIDE, &energy, NULL, 0,
                                        &wanted, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_unrolled_new(&unrolled, NULL, h.workspace, 2, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_unrolled_forward(unrolled, NULL, NULL, N * STRIDE, STRIDE, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_unrolled_backward(unrolled, block, STRIDE, NULL, &error));
    assert_fails(
        DCRF_ERROR_ARGUMENT, "NULL", error,
        dcrf_pairwise_gradient(h.plan, h.workspace, NULL, STRIDE, &energy, NULL, 0, NULL, &error));
    dcrf_unrolled_free(NULL);
    wanted.reserved[3] = 1;
    assert_fails(DCRF_ERROR_ARGUMENT, "reserved", error,
                 dcrf_unrolled_backward(unrolled, block, STRIDE, &wanted, &error));
    wanted.reserved[3] = 0;
    assert_int_equal(dcrf_unrolled_backward(unrolled, block, STRIDE, &wanted, &error), DCRF_OK);
    assert_int_equal(dcrf_model_set_weight(h.model, 0, 7, &error), DCRF_OK);
    assert_fails(DCRF_ERROR_ARGUMENT, "has changed", error,
                 dcrf_unrolled_backward(unrolled, block, STRIDE, &wanted, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "has changed", error,
                 dcrf_unrolled_backward_log_q(unrolled, block, STRIDE, &wanted, &error));
    assert_int_equal(dcrf_unrolled_forward(unrolled, NULL, block, N * STRIDE, STRIDE, &error),
                     DCRF_OK);
    assert_int_equal(dcrf_unrolled_backward(unrolled, block, STRIDE, &wanted, &error), DCRF_OK);
    dcrf_unrolled_free(&unrolled);
    const size_t offsets[2] = {0, 2}, members[2] = {0, 1};
    const double cost = 1;
    assert_int_equal(dcrf_model_set_cliques(h.model, 1, offsets, members, &cost, &error), DCRF_OK);
    assert_fails(DCRF_ERROR_UNSUPPORTED, "cliques", error,
                 dcrf_unrolled_new(&unrolled, h.plan, h.workspace, 2, &error));
    assert_null(unrolled);
    drop(&h);
    free(p);
}

/* Arrays for results that are one element short: refused, and nothing is written. */
static void arrays_too_small(void **state) {
    (void)state;
    enum { WIDE = 2 * STRIDE };
    struct problem *p = new_problem(1, 2, true);
    struct held h = hold(p, 1, DCRF_OPERATOR_EXACT);
    dcrf_unrolled *unrolled;
    dcrf_error error;
    float out[N * WIDE], untouched[N * WIDE];
    const float y[N * STRIDE] = {0};
    double energy = 9, weight[KERNELS] = {9};
    const dcrf_derivatives wanted = {.weight = weight, .weight_count = KERNELS};
    for (size_t k = 0; k < N * WIDE; k++)
        out[k] = untouched[k] = 9;
    assert_int_equal(dcrf_unrolled_new(&unrolled, h.plan, h.workspace, 2, &error), DCRF_OK);
    assert_fails(DCRF_ERROR_SIZE, "q: the array holds", error,
                 dcrf_unrolled_forward(unrolled, NULL, out, N * STRIDE - 1, STRIDE, &error));
    assert_fails(DCRF_ERROR_SIZE, "q: the array holds", error,
                 dcrf_unrolled_forward(unrolled, NULL, out, N * WIDE - 1, WIDE, &error));
    assert_fails(DCRF_ERROR_SIZE, "too large", error,
                 dcrf_unrolled_forward(unrolled, NULL, out, N * WIDE, SIZE_MAX - 3, &error));
    assert_memory_equal(out, untouched, sizeof out);
    assert_fails(DCRF_ERROR_ARGUMENT, "forward", error,
                 dcrf_unrolled_log_q(unrolled, out, N * STRIDE, STRIDE, &error));
    assert_int_equal(dcrf_unrolled_forward(unrolled, NULL, out, N * WIDE, WIDE, &error), DCRF_OK);
    memcpy(out, untouched, sizeof out);
    assert_fails(DCRF_ERROR_SIZE, "ln q: the array holds", error,
                 dcrf_unrolled_log_q(unrolled, out, N * STRIDE - 1, STRIDE, &error));
    assert_fails(DCRF_ERROR_SIZE, "ln q: the array holds", error,
                 dcrf_unrolled_log_q(unrolled, out, N * WIDE - 1, WIDE, &error));
    assert_memory_equal(out, untouched, sizeof out);
    assert_int_equal(dcrf_unrolled_log_q(unrolled, out, N * WIDE, WIDE, &error), DCRF_OK);
    memcpy(out, untouched, sizeof out);
    assert_fails(DCRF_ERROR_SIZE, "the derivative by y: the array holds", error,
                 dcrf_pairwise_gradient(h.plan, h.workspace, y, STRIDE, &energy, out,
                                        N * STRIDE - 1, &wanted, &error));
    assert_memory_equal(out, untouched, sizeof out);
    assert_true(energy == 9);
    assert_true(weight[0] == 9);
    assert_int_equal(dcrf_pairwise_gradient(h.plan, h.workspace, y, STRIDE, &energy, out,
                                            N * STRIDE, &wanted, &error),
                     DCRF_OK);
    /* Derivatives by parameters. */
    struct found *f = calloc(1, sizeof *f), *before = calloc(1, sizeof *f);
    dcrf_derivatives all = everything(f);
    all.unary = f->unary;
    all.unary_count = N * STRIDE;
    const struct {
        size_t *count;
        const char *message;
    } counts[] = {
        {&all.unary_count, "the derivatives by unary energies: the array holds"},
        {&all.weight_count, "the derivatives by weights: the array holds"},
        {&all.compatibility_count, "the derivatives by compatibilities: the array holds"},
        {&all.sigma_count, "the derivatives by sigmas: the array holds"},
        {&all.features_count, "the derivatives by features: the array holds"},
    };
    memcpy(before, f, sizeof *f);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        --*counts[k].count;
        assert_fails(DCRF_ERROR_SIZE, counts[k].message, error,
                     dcrf_unrolled_backward(unrolled, y, STRIDE, &all, &error));
        assert_memory_equal(f, before, sizeof *f);
        ++*counts[k].count;
    }
    assert_int_equal(dcrf_unrolled_backward(unrolled, y, STRIDE, &all, &error), DCRF_OK);
    free(f);
    free(before);
    dcrf_unrolled_free(&unrolled);
    drop(&h);
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derivatives_of_mean_field_are_those_of_differences),
        cmocka_unit_test(derivatives_of_the_energy_are_those_of_differences),
        cmocka_unit_test(forward_is_mean_field),
        cmocka_unit_test(threads_change_no_byte),
        cmocka_unit_test(sigmas_of_the_lattice_are_differences),
        cmocka_unit_test(mistakes_are_errors),
        cmocka_unit_test(arrays_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
