/* The compatible mean field through src/backend/backend.h, on a fake device
 * (tests/device/fake_compat.c) that uses the Gaussian itself instead of the lattice: so the
 * formulas of dcrf/densecrf.h, repeated here over dense matrices in double, predict the results.
 * Also covers models that the device does not support. */
#include "core/rng.h"
#include "places.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 7, HEIGHT = 5, N = WIDTH * HEIGHT, LABELS = 3, SIZE = N * LABELS, MOST_KERNELS = 4 };

/* ---- the formulas --------------------------------------------------------------------------- */

/* A model here, and the same one in the library. */
struct both {
    float unary[SIZE];
    size_t kernel_count;
    double kernel[MOST_KERNELS][N][N];
    double mu[MOST_KERNELS][LABELS][LABELS];
    unsigned char image[N * 3];
    float features[N * 7];
    dcrf_workspace *workspace;
    dcrf_densecrf *crf;
};

static void normalize(double kernel[N][N], dcrf_densecrf_normalization normalization) {
    double sum[N] = {0};
    for (size_t a = 0; a < N; a++)
        for (size_t b = 0; b < N; b++)
            sum[a] += kernel[a][b];
    for (size_t a = 0; a < N; a++)
        for (size_t b = 0; b < N; b++)
            kernel[a][b] /= normalization == DCRF_DENSECRF_BEFORE      ? sum[b]
                            : normalization == DCRF_DENSECRF_AFTER     ? sum[a]
                            : normalization == DCRF_DENSECRF_SYMMETRIC ? sqrt(sum[a] * sum[b])
                                                                       : 1;
}

static void set_mu(struct both *both, size_t m, dcrf_compatibility compatibility,
                   const float *values) {
    for (size_t i = 0; i < LABELS; i++)
        for (size_t j = 0; j < LABELS; j++)
            both->mu[m][i][j] =
                compatibility == DCRF_COMPATIBILITY_MATRIX
                    ? ((double)values[i * LABELS + j] + (double)values[j * LABELS + i]) / 2
                : i != j                                     ? 0
                : compatibility == DCRF_COMPATIBILITY_VECTOR ? (double)values[i]
                                                             : -(double)values[0];
}

static void find_message(const struct both *both, const double *q, double *message) {
    memset(message, 0, SIZE * sizeof *message);
    for (size_t m = 0; m < both->kernel_count; m++)
        for (size_t j = 0; j < LABELS; j++)
            for (size_t a = 0; a < N; a++) {
                double sum = 0;
                for (size_t b = 0; b < N; b++)
                    sum += both->kernel[m][a][b] * q[j * N + b];
                for (size_t i = 0; i < LABELS; i++)
                    message[i * N + a] += both->mu[m][i][j] * sum;
            }
}

/* `has_q`: start from q, otherwise from softmax(-unary). */
static void expect(const struct both *both, bool has_q, size_t updates, double *q) {
    double message[SIZE];
    for (size_t t = has_q ? 1 : 0; t <= updates; t++) {
        if (t > 0)
            find_message(both, q, message);
        else
            memset(message, 0, sizeof message);
        for (size_t a = 0; a < N; a++) {
            double sum = 0;
            for (size_t i = 0; i < LABELS; i++)
                sum += exp(-(double)both->unary[i * N + a] - message[i * N + a]);
            for (size_t i = 0; i < LABELS; i++)
                q[i * N + a] = exp(-(double)both->unary[i * N + a] - message[i * N + a]) / sum;
        }
    }
}

static double expect_divergence(const struct both *both, const double *q) {
    double message[SIZE], sum = 0;
    find_message(both, q, message);
    for (size_t k = 0; k < SIZE; k++)
        sum += q[k] * (log(fmax(q[k], 1e-20)) + (double)both->unary[k] + message[k]);
    return sum;
}

/* Results are rounded to float, and so was the input. */
#define ROUNDING 1e-6

static void assert_expected(const struct both *both, size_t updates) {
    double expected[SIZE], divergence;
    float q[SIZE];
    expect(both, false, updates, expected);
    assert_int_equal(
        dcrf_densecrf_infer(both->crf, both->workspace, updates, q, SIZE, NULL, NULL, NULL),
        DCRF_OK);
    for (size_t k = 0; k < SIZE; k++)
        assert_true(fabs((double)q[k] - expected[k]) <= ROUNDING);
    for (size_t k = 0; k < SIZE; k++)
        expected[k] = (double)q[k];
    assert_int_equal(dcrf_densecrf_divergence(both->crf, both->workspace, q, &divergence, NULL),
                     DCRF_OK);
    assert_true(fabs(divergence - expect_divergence(both, expected)) <= (double)SIZE * ROUNDING);
    assert_int_equal(dcrf_densecrf_step(both->crf, both->workspace, q, SIZE, NULL), DCRF_OK);
    expect(both, true, 1, expected);
    for (size_t k = 0; k < SIZE; k++)
        assert_true(fabs((double)q[k] - expected[k]) <= ROUNDING);
}

/* ---- models --------------------------------------------------------------------------------- */

static void set_unary(struct both *both, uint64_t seed) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    for (size_t k = 0; k < SIZE; k++)
        both->unary[k] = (float)dcrf_rng_uniform(&rng) * 4;
    const dcrf_view view = dcrf_view_planar(both->unary, DCRF_F32, &grid, LABELS);
    assert_int_equal(dcrf_densecrf_set_unary(both->crf, &view, NULL), DCRF_OK);
}

static struct both *both_new(const char *device) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    struct both *both = calloc(1, sizeof *both);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (size_t k = 0; k < sizeof both->image; k++)
        both->image[k] = (unsigned char)(dcrf_rng_next(&rng) % 100);
    for (size_t k = 0; k < sizeof both->features / sizeof *both->features; k++)
        both->features[k] = (float)dcrf_rng_uniform(&rng);
    assert_int_equal(dcrf_workspace_new(&both->workspace, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_set_device(both->workspace, device, NULL), DCRF_OK);
    assert_int_equal(dcrf_densecrf_new(&both->crf, &grid, LABELS, NULL), DCRF_OK);
    return both;
}

static void both_free(struct both *both) {
    dcrf_densecrf_free(&both->crf);
    dcrf_workspace_free(&both->workspace);
    free(both);
}

enum kind { SPATIAL, BILATERAL, FEATURES, MANY_FEATURES };

static dcrf_kernel kernel_of(const struct both *both, enum kind kind) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    dcrf_kernel kernel = dcrf_kernel_spatial(1.5, 1);
    if (kind == BILATERAL)
        kernel =
            dcrf_kernel_bilateral(3, 40, dcrf_view_interleaved(both->image, DCRF_U8, &grid, 3), 1);
    else if (kind >= FEATURES)
        kernel = dcrf_kernel_features(
            dcrf_view_interleaved(both->features, DCRF_F32, &grid, kind == FEATURES ? 2 : 7), 1);
    kernel.sigma[1] *= 2; /* different in x and y */
    return kernel;
}

static double square_distance(const struct both *both, enum kind kind, size_t a, size_t b) {
    double sum = 0;
    if (kind >= FEATURES) {
        const size_t count = kind == FEATURES ? 2 : 7;
        for (size_t c = 0; c < count; c++)
            sum += pow(
                (double)both->features[a * count + c] - (double)both->features[b * count + c], 2);
        return sum;
    }
    const double sigma = kind == SPATIAL ? 1.5 : 3;
    sum += pow(((double)(a % WIDTH) - (double)(b % WIDTH)) / sigma, 2);
    sum += pow(((double)(a / WIDTH) - (double)(b / WIDTH)) / (2 * sigma), 2);
    for (size_t c = 0; kind == BILATERAL && c < 3; c++)
        sum += pow(((double)both->image[3 * a + c] - (double)both->image[3 * b + c]) / 40, 2);
    return sum;
}

static dcrf_status add(struct both *both, enum kind kind, dcrf_densecrf_normalization normalization,
                       dcrf_compatibility compatibility, const float *values, dcrf_error *error) {
    const dcrf_kernel kernel = kernel_of(both, kind);
    const dcrf_status status = dcrf_densecrf_add_kernel(
        both->crf, both->workspace, &kernel, normalization, compatibility, values, error);
    if (status < 0)
        return status;
    const size_t m = both->kernel_count++;
    for (size_t a = 0; a < N; a++)
        for (size_t b = 0; b < N; b++)
            both->kernel[m][a][b] = exp(-square_distance(both, kind, a, b) / 2);
    normalize(both->kernel[m], normalization);
    set_mu(both, m, compatibility, values);
    return DCRF_OK;
}

/* Read from the first, second or third number on. */
static const float values[LABELS * LABELS + 2] = {0.5f, -0.7f, 0.2f,  -0.3f, 0.9f, -0.4f,
                                                  0.1f, 0.6f,  -0.2f, 0.3f,  -0.8f};

/* ---- tests ---------------------------------------------------------------------------------- */

/* Nothing is on the device before the first kernel; kernels of every kind, alone and together. */
static void the_formulas_are_those_of_the_device(void **state) {
    (void)state;
    for (int normalization = DCRF_DENSECRF_NONE; normalization <= DCRF_DENSECRF_SYMMETRIC;
         normalization++)
        for (int mixture = 0; mixture < 5; mixture++) {
            static const dcrf_compatibility kinds[5][3] = {
                {DCRF_COMPATIBILITY_POTTS, DCRF_COMPATIBILITY_POTTS, DCRF_COMPATIBILITY_POTTS},
                {DCRF_COMPATIBILITY_VECTOR, DCRF_COMPATIBILITY_POTTS, DCRF_COMPATIBILITY_MATRIX},
                {DCRF_COMPATIBILITY_POTTS, DCRF_COMPATIBILITY_MATRIX, DCRF_COMPATIBILITY_POTTS},
                {DCRF_COMPATIBILITY_MATRIX, DCRF_COMPATIBILITY_MATRIX, DCRF_COMPATIBILITY_VECTOR},
                {DCRF_COMPATIBILITY_VECTOR, DCRF_COMPATIBILITY_VECTOR, DCRF_COMPATIBILITY_VECTOR}};
            struct both *both = both_new("cuda:1");
            assert_expected(both, 0); /* softmax(0) */
            assert_string_equal(dcrf_densecrf_device(both->crf), "cpu");
            if (mixture % 2)
                set_unary(both, 1);
            for (size_t m = 0; m < 3; m++) {
                assert_int_equal(add(both, (enum kind)m, (dcrf_densecrf_normalization)normalization,
                                     kinds[mixture][m], values + m, NULL),
                                 DCRF_OK);
                assert_string_equal(dcrf_densecrf_device(both->crf), "cuda:1");
                assert_expected(both, m + 1); /* also: the object with fewer kernels is dropped */
            }
            set_unary(both, 2);
            assert_expected(both, 0);
            assert_expected(both, 2);
            both_free(both);
        }
}

static void what_changes_is_taken(void **state) {
    (void)state;
    struct both *both = both_new("cuda");
    set_unary(both, 3);
    assert_int_equal(
        add(both, BILATERAL, DCRF_DENSECRF_SYMMETRIC, DCRF_COMPATIBILITY_POTTS, values, NULL),
        DCRF_OK);
    assert_expected(both, 2);
    set_unary(both, 4);
    assert_expected(both, 2);
    for (int compatibility = 0; compatibility < 3; compatibility++) {
        assert_int_equal(dcrf_densecrf_set_compatibility(
                             both->crf, 0, (dcrf_compatibility)compatibility, values + 1, NULL),
                         DCRF_OK);
        set_mu(both, 0, (dcrf_compatibility)compatibility, values + 1);
        assert_expected(both, 2);
    }
    both_free(both);
}

/* Compares with the same model on the CPU from the beginning, byte by byte. */
static void assert_like_cpu(const struct both *both, const enum kind *kinds, size_t count) {
    struct both *here = both_new("cpu");
    float q[2][SIZE];
    set_unary(here, 6);
    for (size_t m = 0; m < count; m++)
        assert_int_equal(
            add(here, kinds[m], DCRF_DENSECRF_SYMMETRIC, DCRF_COMPATIBILITY_VECTOR, values, NULL),
            DCRF_OK);
    const struct both *const models[2] = {both, here};
    for (size_t k = 0; k < 2; k++)
        assert_int_equal(dcrf_densecrf_infer(models[k]->crf, models[k]->workspace, 3, q[k], SIZE,
                                             NULL, NULL, NULL),
                         DCRF_OK);
    assert_memory_equal(q[0], q[1], sizeof q[0]);
    both_free(here);
}

/* An unsupported kernel, as the first one and as a later one. */
static void models_come_back(void **state) {
    (void)state;
    static const enum kind orders[2][3] = {{SPATIAL, BILATERAL, MANY_FEATURES},
                                           {MANY_FEATURES, SPATIAL, BILATERAL}};
    for (size_t order = 0; order < 2; order++) {
        struct both *both = both_new("cuda");
        set_unary(both, 6);
        for (size_t m = 0; m < 3; m++) {
            assert_int_equal(add(both, orders[order][m], DCRF_DENSECRF_SYMMETRIC,
                                 DCRF_COMPATIBILITY_VECTOR, values, NULL),
                             DCRF_OK);
            const bool is_on_device = order == 0 && m < 2;
            assert_string_equal(dcrf_densecrf_device(both->crf), is_on_device ? "cuda:0" : "cpu");
            if (is_on_device)
                assert_expected(both, 1);
        }
        assert_like_cpu(both, orders[order], 3);
        both_free(both);
    }
}

static void too_many_labels_stay(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(3, 2);
    const dcrf_kernel kernel = dcrf_kernel_spatial(2, 1);
    enum { MOST = 512 };
    float q[6 * (MOST + 1)];
    for (size_t labels = MOST; labels <= MOST + 1; labels++) {
        dcrf_workspace *workspace;
        dcrf_densecrf *crf;
        assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
        assert_int_equal(dcrf_workspace_set_device(workspace, "cuda", NULL), DCRF_OK);
        assert_int_equal(dcrf_densecrf_new(&crf, &grid, labels, NULL), DCRF_OK);
        assert_int_equal(dcrf_densecrf_add_kernel(crf, workspace, &kernel, DCRF_DENSECRF_NONE,
                                                  DCRF_COMPATIBILITY_POTTS, values, NULL),
                         DCRF_OK);
        assert_string_equal(dcrf_densecrf_device(crf), labels > MOST ? "cpu" : "cuda:0");
        assert_int_equal(dcrf_densecrf_infer(crf, workspace, 2, q, 6 * labels, NULL, NULL, NULL),
                         DCRF_OK);
        for (size_t k = 0; k < 6 * labels; k++)
            assert_true(fabs((double)q[k] * (double)labels - 1) <= 1e-5); /* all labels are alike */
        dcrf_densecrf_free(&crf);
        dcrf_workspace_free(&workspace);
    }
}

/* A failure is reported, changes nothing and can be retried. */
static void failures_are_told(void **state) {
    (void)state;
    static const char *const entries[] = {"compat.make", "compat.set_unary", "compat.operator_new",
                                          "compat.set_kernels"};
    struct both *both = both_new("cuda");
    dcrf_error error;
    float q[SIZE], kept[SIZE];
    double divergence = 7;
    set_unary(both, 6);
    for (size_t m = 0; m < 2; m++) { /* of the first kernel and of a later one */
        for (size_t k = m ? 2 : 0; k < sizeof entries / sizeof *entries; k++) {
            setenv("FAKE_FAILURE", entries[k], 1);
            assert_fails(
                DCRF_ERROR_DEVICE, entries[k], error,
                add(both, SPATIAL, DCRF_DENSECRF_NONE, DCRF_COMPATIBILITY_POTTS, values, &error));
            unsetenv("FAKE_FAILURE");
            assert_int_equal(dcrf_densecrf_kernels(both->crf), m);
            assert_string_equal(dcrf_densecrf_device(both->crf), k < 2 ? "cpu" : "cuda:0");
            assert_expected(both, 1);
        }
        assert_int_equal(
            add(both, BILATERAL, DCRF_DENSECRF_NONE, DCRF_COMPATIBILITY_POTTS, values, NULL),
            DCRF_OK);
    }
    setenv("FAKE_FAILURE", "compat.set_kernels", 1);
    assert_fails(
        DCRF_ERROR_DEVICE, "refuses compat.set_kernels", error,
        dcrf_densecrf_set_compatibility(both->crf, 1, DCRF_COMPATIBILITY_VECTOR, values, &error));
    setenv("FAKE_FAILURE", "compat.get_unary", 1); /* while moving back to the host */
    assert_fails(
        DCRF_ERROR_DEVICE, "refuses compat.get_unary", error,
        add(both, MANY_FEATURES, DCRF_DENSECRF_NONE, DCRF_COMPATIBILITY_POTTS, values, &error));
    assert_string_equal(dcrf_densecrf_device(both->crf), "cuda:0");
    for (size_t k = 0; k < SIZE; k++)
        q[k] = kept[k] = (float)k;
    setenv("FAKE_FAILURE", "compat.run", 1);
    assert_fails(DCRF_ERROR_DEVICE, "refuses compat.run", error,
                 dcrf_densecrf_step(both->crf, both->workspace, q, SIZE, &error));
    setenv("FAKE_FAILURE", "compat.divergence", 1);
    assert_fails(DCRF_ERROR_DEVICE, "refuses compat.divergence", error,
                 dcrf_densecrf_divergence(both->crf, both->workspace, q, &divergence, &error));
    unsetenv("FAKE_FAILURE");
    q[4] = kept[4] = NAN;
    assert_fails(DCRF_ERROR_NOT_FINITE, "finite", error,
                 dcrf_densecrf_step(both->crf, both->workspace, q, SIZE, &error));
    assert_memory_equal(q, kept, sizeof q);
    assert_expected(both, 2);
    both_free(both);
}

/* Before there are kernels: energies go to the device and back, in any layout, and errors in them
 * are reported as on the CPU. */
static void models_can_be_put_there(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    struct both *both = both_new("cuda:1");
    dcrf_workspace *here;
    dcrf_error error;
    double doubles[SIZE];
    assert_int_equal(dcrf_workspace_new(&here, 1, NULL), DCRF_OK);
    for (size_t round = 0; round < 3; round++) { /* to the device, back, and again */
        set_unary(both, 6 + round);
        assert_int_equal(
            dcrf_densecrf_set_device(both->crf, round == 1 ? here : both->workspace, NULL),
            DCRF_OK);
        assert_string_equal(dcrf_densecrf_device(both->crf), round == 1 ? "cpu" : "cuda:1");
        assert_expected(both, 2);
    }
    set_unary(both, 9);
    assert_expected(both, 0);
    for (size_t k = 0; k < SIZE; k++)
        doubles[k] = (double)both->unary[k];
    dcrf_view view = dcrf_view_planar(doubles, DCRF_F64, &grid, LABELS);
    for (size_t k = 0; k < SIZE; k++) {
        both->unary[k] /= 2;
        doubles[k] /= 2;
    }
    assert_int_equal(dcrf_densecrf_set_unary(both->crf, &view, NULL), DCRF_OK);
    assert_expected(both, 0);
    /* NaN, both ways. */
    float wrong[SIZE];
    memcpy(wrong, both->unary, sizeof wrong);
    wrong[2 * N + 5] = NAN;
    doubles[2 * N + 5] = (double)NAN;
    assert_fails(DCRF_ERROR_NOT_FINITE, "label 2", error,
                 dcrf_densecrf_set_unary(both->crf, &view, &error));
    view = dcrf_view_planar(wrong, DCRF_F32, &grid, LABELS);
    assert_fails(DCRF_ERROR_NOT_FINITE, "label 2", error,
                 dcrf_densecrf_set_unary(both->crf, &view, &error));
    assert_expected(both, 0);
    assert_int_equal(
        add(both, BILATERAL, DCRF_DENSECRF_BEFORE, DCRF_COMPATIBILITY_POTTS, values, NULL),
        DCRF_OK);
    assert_expected(both, 3);
    assert_fails(DCRF_ERROR_ARGUMENT, "has kernels", error,
                 dcrf_densecrf_set_device(both->crf, here, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error,
                 dcrf_densecrf_set_device(both->crf, NULL, &error));
    dcrf_workspace_free(&here);
    both_free(both);
}

/* The kernels hold the device; later workspaces change nothing. */
static void models_outlive_their_workspace(void **state) {
    (void)state;
    struct both *both = both_new("cuda:1");
    set_unary(both, 6);
    assert_int_equal(
        add(both, SPATIAL, DCRF_DENSECRF_AFTER, DCRF_COMPATIBILITY_POTTS, values, NULL), DCRF_OK);
    dcrf_workspace_free(&both->workspace);
    assert_int_equal(dcrf_workspace_new(&both->workspace, 1, NULL), DCRF_OK);
    assert_expected(both, 2);
    assert_int_equal(
        add(both, BILATERAL, DCRF_DENSECRF_AFTER, DCRF_COMPATIBILITY_POTTS, values, NULL), DCRF_OK);
    assert_string_equal(dcrf_densecrf_device(both->crf), "cuda:1");
    assert_expected(both, 2);
    both_free(both);
}

static int stop_at_two(void *user, const dcrf_moment *moment) {
    size_t *calls = user;
    assert_int_equal(moment->iteration, ++*calls);
    assert_true(moment->time_s >= 0 && isnan(moment->energy));
    return *calls == 2;
}

static void progress_is_told(void **state) {
    (void)state;
    struct both *both = both_new("cuda");
    float q[SIZE];
    double expected[SIZE];
    size_t calls = 0;
    set_unary(both, 6);
    assert_int_equal(
        add(both, SPATIAL, DCRF_DENSECRF_AFTER, DCRF_COMPATIBILITY_POTTS, values, NULL), DCRF_OK);
    assert_int_equal(
        dcrf_densecrf_infer(both->crf, both->workspace, 9, q, SIZE, stop_at_two, &calls, NULL),
        DCRF_STOP_CANCELLED);
    assert_int_equal(calls, 2);
    expect(both, false, 2, expected);
    for (size_t k = 0; k < SIZE; k++)
        assert_true(fabs((double)q[k] - expected[k]) <= ROUNDING);
    both_free(both);
}

static void *infer_often(void *context) {
    const struct both *both = context;
    dcrf_workspace *workspace;
    float *q = malloc(SIZE * sizeof *q);
    if (q && dcrf_workspace_new(&workspace, 1, NULL) == DCRF_OK) {
        for (size_t k = 0; k < 20; k++)
            dcrf_densecrf_infer(both->crf, workspace, 3, q, SIZE, NULL, NULL, NULL);
        dcrf_workspace_free(&workspace);
    }
    return q;
}

/* Threads may share a model that does not change. */
static void threads_share_a_model(void **state) {
    (void)state;
    enum { THREADS = 4 };
    struct both *both = both_new("cuda");
    pthread_t threads[THREADS];
    double expected[SIZE];
    set_unary(both, 6);
    assert_int_equal(
        add(both, BILATERAL, DCRF_DENSECRF_AFTER, DCRF_COMPATIBILITY_MATRIX, values, NULL),
        DCRF_OK);
    expect(both, false, 3, expected);
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, infer_often, both), 0);
    for (size_t t = 0; t < THREADS; t++) {
        void *result;
        assert_int_equal(pthread_join(threads[t], &result), 0);
        assert_non_null(result);
        const float *q = result;
        for (size_t k = 0; k < SIZE; k++)
            assert_true(fabs((double)q[k] - expected[k]) <= ROUNDING);
        free(result);
    }
    both_free(both);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_formulas_are_those_of_the_device),
        cmocka_unit_test(what_changes_is_taken),
        cmocka_unit_test(models_come_back),
        cmocka_unit_test(too_many_labels_stay),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(models_can_be_put_there),
        cmocka_unit_test(models_outlive_their_workspace),
        cmocka_unit_test(progress_is_told),
        cmocka_unit_test(threads_share_a_model),
        cmocka_unit_test(nothing_is_left), /* must be last */
    };
    setenv("DCRF_CUDA_LIBRARY", FAKE_BACKEND, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
