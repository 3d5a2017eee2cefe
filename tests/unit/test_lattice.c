/* The lattice operator as a matrix: adjoint, symmetry, diagonal, normalization, degenerate and
 * extreme features. Its accuracy is tested in test_lattice_accuracy. */
#include "dense.h"

#include "filter/lattice/lattice.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Identities between applications of one operator: a few dozen roundings of 6e-8, relative to the
 * size of the terms. */
#define ROUNDING 1e-5

/* Point sets from dense to sparse: depending on `spread` (in sigmas) the lattice is nearly full, or
 * every point is alone. */
static const double spreads[] = {0.5, 3, 20};
#define SPREADS (sizeof spreads / sizeof spreads[0])

static dcrf_operator *new_lattice(size_t points, size_t d, double spread,
                                  dcrf_normalization normalization, dcrf_workspace *workspace) {
    const dcrf_grid grid = dcrf_grid_1d(points);
    float *features = random_block(points, d, 0, spread, 17 + d);
    dcrf_kernel kernel =
        dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, d), 1);
    kernel.normalization = normalization;
    dcrf_operator *op = new_operator(&grid, &kernel, DCRF_OPERATOR_FAST, workspace);
    assert_int_equal(dcrf_operator_kind_of(op), DCRF_OPERATOR_LATTICE);
    assert_true(dcrf_operator_vertices(op) > d);
    free(features);
    return op;
}

static double inner(const float *x, const float *y, size_t count, double *size) {
    double sum = 0;
    *size = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)x[i] * (double)y[i];
        *size += fabs((double)x[i] * (double)y[i]);
    }
    return sum;
}

/* <K x, y> = <x, K' y>; the padding enters the products too, so it holds zeros. */
static void check_adjoint(const dcrf_operator *op, dcrf_workspace *workspace, dcrf_direction one,
                          dcrf_direction other) {
    const size_t n = dcrf_operator_variables(op), count = n * 8;
    float *x = random_block(n, 8, -1, 1, 1), *y = random_block(n, 8, -1, 1, 2);
    float *kx = new_applied(op, workspace, one, x, 8, 8);
    float *ky = new_applied(op, workspace, other, y, 8, 8);
    double left_size, right_size;
    const double left = inner(kx, y, count, &left_size), right = inner(x, ky, count, &right_size);
    assert_within(fabs(left - right) / fmax(left_size, right_size), ROUNDING,
                  "adjoint, directions %d and %d", (int)one, (int)other);
    free(x);
    free(y);
    free(kx);
    free(ky);
}

static void directions_are_adjoint(void **state) {
    (void)state;
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (size_t s = 0; s < SPREADS; s++)
            for (dcrf_normalization normal = 0; normal <= DCRF_NORMALIZE_SYMMETRIC; normal++) {
                dcrf_operator *op = new_lattice(1500, d, spreads[s], normal, workspace);
                check_adjoint(op, workspace, DCRF_FORWARD, DCRF_ADJOINT);
                check_adjoint(op, workspace, DCRF_SYMMETRIC, DCRF_SYMMETRIC);
                dcrf_operator_free(&op);
            }
    dcrf_workspace_free(&workspace);
}

/* Entry by entry on small sets: symmetric, the mean of both directions, nonnegative, with the
 * diagonal from dcrf_operator_diagonal. */
static void check_matrix(const dcrf_operator *op, dcrf_workspace *workspace, const char *name) {
    const size_t n = dcrf_operator_variables(op);
    double *symmetric = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
    double *forward = dense_of_operator(op, workspace, DCRF_FORWARD);
    double *adjoint = dense_of_operator(op, workspace, DCRF_ADJOINT);
    float *diagonal = malloc(n * sizeof *diagonal);
    assert_int_equal(dcrf_operator_diagonal(op, workspace, diagonal, n, NULL), DCRF_OK);
    double largest = 0;
    for (size_t i = 0; i < n * n; i++)
        largest = fmax(largest, symmetric[i]);
    for (size_t a = 0; a < n; a++) {
        const double unit = symmetric[a * n + a];
        assert_within(fabs((double)diagonal[a] / unit - 1), ROUNDING, "%s, diagonal of %zu", name,
                      a);
        for (size_t b = 0; b < n; b++) {
            const size_t ab = a * n + b, ba = b * n + a;
            assert_within(-symmetric[ab], 0, "%s, minus entry %zu, %zu", name, a, b);
            assert_within(fabs(symmetric[ab] - symmetric[ba]) / largest, ROUNDING, "%s, symmetry",
                          name);
            assert_within(fabs(forward[ab] - adjoint[ba]) / largest, ROUNDING, "%s, transpose",
                          name);
            assert_within(fabs(symmetric[ab] - (forward[ab] + adjoint[ab]) / 2) / largest, ROUNDING,
                          "%s, mean of the directions", name);
        }
    }
    free(symmetric);
    free(forward);
    free(adjoint);
    free(diagonal);
}

static void matrices_are_symmetric_with_their_diagonal(void **state) {
    (void)state;
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (size_t s = 0; s < SPREADS; s++)
            for (dcrf_normalization normal = 0; normal <= DCRF_NORMALIZE_SYMMETRIC; normal++) {
                char name[60];
                snprintf(name, sizeof name, "d %zu, spread %g, normalization %d", d, spreads[s],
                         (int)normal);
                dcrf_operator *op = new_lattice(90, d, spreads[s], normal, workspace);
                check_matrix(op, workspace, name);
                dcrf_operator_free(&op);
            }
    /* An image, where many variables share a simplex. */
    const dcrf_grid grid = dcrf_grid_2d(20, 14);
    uint8_t *image = draw_photograph(20, 14);
    const dcrf_kernel kernel =
        dcrf_kernel_bilateral(8, 40, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 1);
    dcrf_operator *op = new_operator(&grid, &kernel, DCRF_OPERATOR_LATTICE, workspace);
    check_matrix(op, workspace, "an image");
    dcrf_operator_free(&op);
    free(image);
    dcrf_workspace_free(&workspace);
}

/* On the lattice of a photograph a single order of the axes is not symmetric; otherwise the test
 * above could not tell it from the mean. */
static void one_direction_is_not_symmetric(void **state) {
    (void)state;
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_operator *op = new_lattice(300, 5, 3, DCRF_NORMALIZE_NONE, workspace);
    float *x = random_block(300, 8, 0, 1, 3);
    float *forward = new_applied(op, workspace, DCRF_FORWARD, x, 8, 8);
    float *adjoint = new_applied(op, workspace, DCRF_ADJOINT, x, 8, 8);
    assert_true(block_error(forward, adjoint, 300, 8, 8) > 1e-3);
    free(x);
    free(forward);
    free(adjoint);
    dcrf_operator_free(&op);
    dcrf_workspace_free(&workspace);
}

/* Linear in a block of more channels than one pass takes, and nonnegative. */
static void apply_is_linear_and_nonnegative(void **state) {
    (void)state;
    const size_t n = 2000, channels = 45, stride = 48;
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_operator *op = new_lattice(n, 5, 4, DCRF_NORMALIZE_SYMMETRIC, workspace);
    float *x = random_block(n, stride, 0, 1, 1), *y = random_block(n, stride, 0, 1, 2);
    float *both = malloc(n * stride * sizeof *both);
    for (size_t i = 0; i < n * stride; i++)
        both[i] = 3 * x[i] + 0.5f * y[i];
    float *kx = new_applied(op, workspace, DCRF_SYMMETRIC, x, channels, stride);
    float *ky = new_applied(op, workspace, DCRF_SYMMETRIC, y, channels, stride);
    float *k_both = new_applied(op, workspace, DCRF_SYMMETRIC, both, channels, stride);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < channels; c++) {
            const size_t i = a * stride + c;
            assert_true(kx[i] >= 0);
            kx[i] = 3 * kx[i] + 0.5f * ky[i];
        }
    assert_within(block_error(k_both, kx, n, channels, stride), ROUNDING, "linearity");
    free(x);
    free(y);
    free(both);
    free(kx);
    free(ky);
    free(k_both);
    dcrf_operator_free(&op);
    dcrf_workspace_free(&workspace);
}

/* D^-1/2 K D^-1/2 of the operator's own matrix. */
static void normalization_is_that_of_the_matrix(void **state) {
    (void)state;
    dcrf_workspace *workspace = new_workspace(1);
    const size_t n = 120, dimensions[] = {1, 2, 5, 9, 16};
    for (size_t i = 0; i < sizeof dimensions / sizeof dimensions[0]; i++) {
        dcrf_operator *raw = new_lattice(n, dimensions[i], 3, DCRF_NORMALIZE_NONE, workspace);
        dcrf_operator *op = new_lattice(n, dimensions[i], 3, DCRF_NORMALIZE_SYMMETRIC, workspace);
        double *k = dense_of_operator(raw, workspace, DCRF_SYMMETRIC);
        double *normalized = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
        double *mass = calloc(n, sizeof *mass);
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                mass[a] += k[a * n + b];
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                assert_within(fabs(normalized[a * n + b] - k[a * n + b] / sqrt(mass[a] * mass[b])),
                              ROUNDING, "d %zu, entry %zu, %zu", dimensions[i], a, b);
        free(k);
        free(normalized);
        free(mass);
        dcrf_operator_free(&raw);
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

/* ---- extremes ------------------------------------------------------------------------------- */

/* All variables at one point: K is a constant matrix, and calibration makes its entries one. */
static void equal_features_give_ones(void **state) {
    (void)state;
    const size_t n = 40;
    const dcrf_grid grid = dcrf_grid_1d(n);
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++) {
        float *features = malloc(n * d * sizeof *features);
        for (size_t i = 0; i < n * d; i++)
            features[i] = 0.37f * (float)(i % d + 1);
        dcrf_kernel kernel =
            dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, d), 1);
        kernel.normalization = DCRF_NORMALIZE_NONE;
        dcrf_operator *op = new_operator(&grid, &kernel, DCRF_OPERATOR_LATTICE, workspace);
        double *matrix = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
        for (size_t i = 0; i < n * n; i++)
            assert_within(fabs(matrix[i] - 1), ROUNDING, "d %zu, entry %zu", d, i);
        assert_int_equal(dcrf_operator_vertices(op), d + 1);
        free(matrix);
        free(features);
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

/* With a colour sigma of 0.01, different bytes are 100 sigmas apart: variables of one colour
 * interact as without colours, others not at all. A key that wraps around would join unrelated
 * variables. */
static void check_tiny_sigma(double channel_sigma) {
    const size_t width = 24, height = 18, n = width * height;
    const dcrf_grid grid = dcrf_grid_2d(width, height);
    uint8_t *image = malloc(n * 3);
    /* Half of the pixels have colours at the eight corners of the cube, the others any colour. */
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < 3; c++) {
            const size_t corner = (a * 2654435761u >> (9 + c) & 1) * 255;
            image[a * 3 + c] = (uint8_t)((a < n / 2 ? corner : a >> (c * 3)) & 255);
        }
    dcrf_kernel kernel =
        dcrf_kernel_bilateral(4, channel_sigma, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 1);
    kernel.normalization = DCRF_NORMALIZE_NONE;
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_operator *op;
    dcrf_error error;
    const dcrf_status status =
        dcrf_operator_new(&op, &grid, &kernel, DCRF_OPERATOR_LATTICE, workspace, &error);
    if (status < 0) {
        assert_int_equal(status, DCRF_ERROR_SIZE);
        assert_non_null(strstr(error.message, "larger sigma"));
        assert_null(op);
    } else {
        double *matrix = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
        double sum = 0, exact = 0;
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++) {
                const double truth = kernel_formula(&grid, &kernel, a, b);
                assert_true(matrix[a * n + b] >= 0);
                if (memcmp(image + a * 3, image + b * 3, 3) != 0)
                    assert_within(matrix[a * n + b], 0, "sigma %g joins variables %zu and %zu",
                                  channel_sigma, a, b);
                sum += matrix[a * n + b];
                exact += truth;
            }
        /* With so few rows the calibration uses all of them. */
        assert_within(fabs(sum / exact - 1), 1e-4, "sigma %g, mean of the row sums", channel_sigma);
        free(matrix);
    }
    print_message("channel sigma %g: %s\n", channel_sigma,
                  status < 0 ? error.message : "an answer");
    dcrf_operator_free(&op);
    dcrf_workspace_free(&workspace);
    free(image);
}

static void tiny_sigmas_give_an_answer_or_an_error(void **state) {
    (void)state;
    const double sigmas[] = {0.01, 1e-3, 1e-5, 3e-6, 1e-6, 5e-7, 1e-7, 1e-9, 1e-30};
    for (size_t s = 0; s < sizeof sigmas / sizeof sigmas[0]; s++)
        check_tiny_sigma(sigmas[s]);
}

static void features_beyond_the_keys_are_refused(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_1d(3);
    const float far[] = {1e9f, 1e12f, 1e30f, FLT_MAX};
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_error error;
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (size_t i = 0; i < 4; i++)
            for (int sign = -1; sign <= 1; sign += 2) {
                float features[3 * DCRF_MAX_FEATURES] = {0};
                features[2 * d - 1] = (float)sign * far[i];
                const dcrf_kernel kernel =
                    dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, d), 1);
                dcrf_operator *op = NULL;
                assert_fails(DCRF_ERROR_SIZE, "too many sigmas for the lattice", error,
                             dcrf_operator_new(&op, &grid, &kernel, DCRF_OPERATOR_LATTICE,
                                               workspace, &error));
                assert_null(op);
            }
    dcrf_workspace_free(&workspace);
}

/* Features of denormal size all count as one point, for every operator. */
static void tiny_features_are_one_point(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_1d(9);
    const float features[9] = {0, 1e-45f, -1e-45f, 1e-40f, -1e-40f, 1e-38f, -1e-38f, 1e-30f, 0};
    dcrf_kernel kernel =
        dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, 1), 1);
    kernel.normalization = DCRF_NORMALIZE_NONE;
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_operator *op = new_operator(&grid, &kernel, DCRF_OPERATOR_LATTICE, workspace);
    double *matrix = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
    for (size_t i = 0; i < 81; i++)
        assert_within(fabs(matrix[i] - 1), ROUNDING, "entry %zu", i);
    free(matrix);
    dcrf_operator_free(&op);
    dcrf_workspace_free(&workspace);
}

/* Points far apart: the identity. */
static void distant_points_give_the_identity(void **state) {
    (void)state;
    const size_t n = 30;
    const dcrf_grid grid = dcrf_grid_1d(n);
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++) {
        float *features = random_block(n, d, -0.5, 0.5, d);
        for (size_t a = 0; a < n; a++)
            features[a * d + a % d] += 1000 * (float)a;
        dcrf_kernel kernel =
            dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, d), 1);
        dcrf_operator *op = new_operator(&grid, &kernel, DCRF_OPERATOR_LATTICE, workspace);
        double *matrix = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                assert_within(fabs(matrix[a * n + b] - (a == b)), a == b ? ROUNDING : 0,
                              "d %zu, entry %zu, %zu", d, a, b);
        free(matrix);
        free(features);
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

/* Segments cover all layers in order, and there are several. */
static void check_sections(const struct dcrf_lattice *lattice, size_t threads) {
    struct dcrf_lattice_sections sections;
    dcrf_lattice_divide(lattice, threads, &sections);
    assert_true(sections.count >= 2 && sections.count <= threads);
    assert_int_equal(sections.first[0], 0);
    for (size_t i = 0; i < sections.count; i++)
        assert_true(sections.first[i] < sections.first[i + 1]);
    assert_int_equal(sections.first[sections.count], lattice->layers.count);
}

/* A large lattice, filtered in one sweep through a ring of rows, against the same lattice in parts:
 * equal up to rounding, out of place and in place, with and without accumulation, for weights that
 * differ between splat and slice; and the same bytes for every number of threads, and if labels are
 * filtered in parts. */
static void ring_is_lattice(void **state) {
    (void)state;
    const size_t n = 12000, width = 24, dimensions[] = {2, 3, 5};
    const dcrf_grid grid = dcrf_grid_1d(n);
    dcrf_workspace *workspace = new_workspace(3);
    for (size_t i = 0; i < 3; i++)
        for (int asymmetric = 0; asymmetric < 2; asymmetric++) {
            const size_t d = dimensions[i];
            float *values = random_block(n, d, 0, d == 5 ? 40 : 150, 17 + d);
            dcrf_kernel kernel =
                dcrf_kernel_features(dcrf_view_interleaved(values, DCRF_F32, &grid, d), 1);
            struct dcrf_features features;
            assert_int_equal(dcrf_features_new(&features, &grid, &kernel, NULL), DCRF_OK);
            float *in = random_block(n, width, -1, 1, 5), *scale = random_block(n, 1, 0.5, 2, 6);
            float *expected = NULL;
            for (size_t turn = 0; turn < 4; turn++) { /* in parts; 1 and 3 threads; in place */
                dcrf_operator *op;
                const struct dcrf_lattice_options options = {.runs = &dcrf_lattice_by_runs,
                                                             .row_floats = turn == 0 ? 8 : 100000};
                assert_int_equal(dcrf_lattice_new_with(&op, &features, options, workspace, NULL),
                                 DCRF_OK);
                struct dcrf_lattice *lattice = (struct dcrf_lattice *)op;
                assert_true((lattice->ring.rows > 0) == (turn > 0));
                assert_int_equal(
                    dcrf_lattice_scale(lattice, NULL, scale, asymmetric ? NULL : scale, NULL),
                    DCRF_OK);
                float *out = random_block(n, width, -1, 1, turn == 3 ? 5 : 7);
                struct dcrf_lattice_filter filter = {
                    .lattice = lattice,
                    .pool = turn % 2 ? NULL : dcrf_workspace_pool(workspace),
                    .in_stride = width,
                    .out_stride = width,
                    .factor = -0.7f,
                    .accumulate = turn < 3};
                if (turn == 2)
                    check_sections(lattice, 3);
                filter.scratch =
                    malloc(dcrf_lattice_filter_floats(lattice, width, turn % 2 ? 1 : 3) *
                           sizeof *filter.scratch);
                filter.width = turn == 2 ? width / 2 : width;
                for (size_t at = 0; at < width; at += filter.width) {
                    filter.in = (turn == 3 ? out : in) + at;
                    filter.out = out + at;
                    dcrf_lattice_filter(&filter);
                }
                float *other = random_block(n, width, -1, 1, 7);
                double largest = 0, error = 0;
                for (size_t k = 0; k < n * width; k++) {
                    if (turn == 3) /* no accumulation: add it here */
                        out[k] += other[k];
                    largest = fmax(largest, fabs((double)out[k]));
                    if (expected)
                        error = fmax(error, fabs((double)out[k] - (double)expected[k]));
                }
                if (turn == 2)
                    assert_memory_equal(out, expected, n * width * sizeof *out);
                assert_within(error / largest, ROUNDING, "ring, turn %zu, %zu dimensions", turn, d);
                free(expected);
                expected = out;
                free(other);
                free(filter.scratch);
                dcrf_operator_free(&op);
            }
            free(expected);
            free(in);
            free(scale);
            free(values);
            dcrf_features_clear(&features);
        }
    dcrf_workspace_free(&workspace);
}

/* The sections are the same whether the plan was made for so many threads or for one. Beyond ten,
 * one more section hardly makes the largest smaller, but several do. */
static void sections_are_as_many_as_pay(void **state) {
    (void)state;
    const size_t n = 12000, threads[2] = {1, 16};
    const struct dcrf_lattice_options options = {.runs = &dcrf_lattice_by_runs,
                                                 .row_floats = 100000};
    const dcrf_grid grid = dcrf_grid_1d(n);
    float *values = random_block(n, 2, 0, 150, 19);
    const dcrf_kernel kernel =
        dcrf_kernel_features(dcrf_view_interleaved(values, DCRF_F32, &grid, 2), 1);
    struct dcrf_features features;
    dcrf_workspace *workspace[2];
    dcrf_operator *op[2];
    assert_int_equal(dcrf_features_new(&features, &grid, &kernel, NULL), DCRF_OK);
    for (size_t i = 0; i < 2; i++) {
        workspace[i] = new_workspace(threads[i]);
        assert_int_equal(dcrf_lattice_new_with(&op[i], &features, options, workspace[i], NULL),
                         DCRF_OK);
    }
    for (size_t t = 1; t <= threads[1]; t++) {
        struct dcrf_lattice_sections sections[2];
        for (size_t i = 0; i < 2; i++)
            dcrf_lattice_divide((const struct dcrf_lattice *)op[i], t, &sections[i]);
        assert_memory_equal(&sections[0], &sections[1], sizeof sections[0]);
        assert_true(sections[0].count <= t && sections[0].count >= (t < 16 ? t - t / 4 : 12));
    }
    for (size_t i = 0; i < 2; i++) {
        dcrf_operator_free(&op[i]);
        dcrf_workspace_free(&workspace[i]);
    }
    dcrf_features_clear(&features);
    free(values);
}

/* Groups of variables have joint copies of rows with up to two threads, separate ones with more. */
static void all_threads_give_the_same_bytes(void **state) {
    (void)state;
    const size_t threads[] = {1, 2, 3, 7, 16}, channels[] = {3, 21, 40}, n = 17000;
    for (size_t d = 2; d <= 5; d += 3)
        for (size_t c = 0; c < 3; c++) {
            const size_t stride = dcrf_padded(channels[c]);
            float *in = random_block(n, stride, -1, 1, c), *expected = NULL;
            for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
                dcrf_workspace *workspace = new_workspace(threads[t]);
                dcrf_operator *op = new_lattice(n, d, 10, DCRF_NORMALIZE_SYMMETRIC, workspace);
                float *out = new_applied(op, workspace, DCRF_SYMMETRIC, in, channels[c], stride);
                if (expected)
                    assert_memory_equal(out, expected, n * stride * sizeof *out);
                free(expected);
                expected = out;
                dcrf_operator_free(&op);
                dcrf_workspace_free(&workspace);
            }
            free(in);
            free(expected);
        }
}

/* Dozens of channels, processed in blocks, give the same bytes as each channel by itself. */
static void channels_do_not_meet(void **state) {
    (void)state;
    const dcrf_direction directions[] = {DCRF_FORWARD, DCRF_ADJOINT, DCRF_SYMMETRIC};
    const size_t n = 700, channels = 150, stride = dcrf_padded(channels);
    for (size_t threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < 3; i++) {
            dcrf_workspace *workspace = new_workspace(threads);
            dcrf_operator *op = new_lattice(n, 5, 10, DCRF_NORMALIZE_NONE, workspace);
            float *in = random_block(n, stride, -1, 1, 2), *one = calloc(n * 4, sizeof *one);
            float *all = new_applied(op, workspace, directions[i], in, channels, stride);
            for (size_t c = 0; c < channels; c += 7) {
                for (size_t a = 0; a < n; a++)
                    one[a * 4] = in[a * stride + c];
                float *alone = new_applied(op, workspace, directions[i], one, 1, 4);
                for (size_t a = 0; a < n; a++)
                    assert_memory_equal(&alone[a * 4], &all[a * stride + c], sizeof *all);
                free(alone);
            }
            free(in);
            free(one);
            free(all);
            dcrf_operator_free(&op);
            dcrf_workspace_free(&workspace);
        }
}

/* The sweep through a lattice of many layers against separate passes: the same sums and so the same
 * bytes, for every number of threads, in both orders, whether the input is kept or not. */
static void sweep_is_passes(void **state) {
    (void)state;
    const size_t dimensions[] = {2, 3, 5}, width = 24;
    for (size_t i = 0; i < 3; i++)
        for (size_t threads = 1; threads <= 3; threads += 2) {
            dcrf_workspace *workspace = new_workspace(threads);
            dcrf_pool *pool = dcrf_workspace_pool(workspace);
            dcrf_operator *op = new_lattice(12000, dimensions[i], i == 0 ? 150 : 40,
                                            DCRF_NORMALIZE_NONE, workspace);
            const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)op;
            const size_t rows = lattice->vertices + 1, axes = lattice->corners;
            assert_true(lattice->layers.count > 3);
            float *in = random_block(rows, width, -1, 1, 5);
            memset(in + lattice->vertices * width, 0, width * sizeof *in);
            float *buffer[4];
            for (size_t k = 0; k < 4; k++) {
                buffer[k] = malloc(rows * width * sizeof *in);
                memcpy(buffer[k], in, rows * width * sizeof *in);
            }
            for (size_t count = axes - 1; count <= axes; count++)
                for (int upwards = 0; upwards < 2; upwards++) {
                    const float *from = in;
                    for (size_t pass = 0; pass < count; pass++) {
                        const size_t axis = upwards ? pass : axes - 1 - pass;
                        const struct dcrf_blur blur = {
                            .neighbour = {dcrf_lattice_neighbours(lattice, axis), NULL},
                            .in = {from, NULL},
                            .out = buffer[pass % 2],
                            .width = width,
                            .centre = DCRF_LATTICE_CENTRE,
                            .side = DCRF_LATTICE_SIDE};
                        dcrf_dsp()->blur(&blur, 0, lattice->vertices);
                        from = blur.out;
                    }
                    const float *kept = dcrf_lattice_blur(lattice, pool, width, in, upwards == 1,
                                                          count, buffer[2], buffer[3]);
                    assert_memory_equal(kept, from, rows * width * sizeof *in);
                    memcpy(buffer[3], in, rows * width * sizeof *in);
                    const float *lost = dcrf_lattice_blur(
                        lattice, pool, width, buffer[3], upwards == 1, count, buffer[2], buffer[3]);
                    assert_memory_equal(lost, from, rows * width * sizeof *in);
                }
            for (size_t k = 0; k < 4; k++)
                free(buffer[k]);
            free(in);
            dcrf_operator_free(&op);
            dcrf_workspace_free(&workspace);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directions_are_adjoint),
        cmocka_unit_test(sweep_is_passes),
        cmocka_unit_test(all_threads_give_the_same_bytes),
        cmocka_unit_test(channels_do_not_meet),
        cmocka_unit_test(ring_is_lattice),
        cmocka_unit_test(sections_are_as_many_as_pay),
        cmocka_unit_test(matrices_are_symmetric_with_their_diagonal),
        cmocka_unit_test(one_direction_is_not_symmetric),
        cmocka_unit_test(apply_is_linear_and_nonnegative),
        cmocka_unit_test(normalization_is_that_of_the_matrix),
        cmocka_unit_test(equal_features_give_ones),
        cmocka_unit_test(tiny_sigmas_give_an_answer_or_an_error),
        cmocka_unit_test(features_beyond_the_keys_are_refused),
        cmocka_unit_test(tiny_features_are_one_point),
        cmocka_unit_test(distant_points_give_the_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
