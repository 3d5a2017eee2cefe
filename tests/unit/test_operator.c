/* The exact operator against the formula, the grid operator against both, and what is refused. */
#include "dense.h"

#include "core/rng.h"
#include "filter/operator.h"

#include <math.h>
#include <stdlib.h>

/* The formula in double against the exact operator, whose result is a float (6e-8) computed from
 * float features (a colour of 20 sigmas to 1e-6 sigmas; the errors of many pairs average out). */
#define EXACT_TOLERANCE 1e-6
/* Promised by the grid operator. */
#define GRID_TOLERANCE 1e-4

static dcrf_grid spaced_grid(size_t axes, size_t width, size_t height, size_t depth) {
    return (dcrf_grid){axes, {width, height, depth}, {0.7, 1.3, 2.1}};
}

/* ---- exact ---------------------------------------------------------------------------------- */

static void check_exact(const dcrf_grid *grid, const dcrf_kernel *kernel, const char *name) {
    const size_t channels = 3, stride = 8, n = grid_variables(grid);
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_kernel normalized = *kernel;
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        normalized.normalization = symmetric ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
        dcrf_operator *op = new_operator(grid, &normalized, DCRF_OPERATOR_EXACT, workspace);
        double *matrix = dense_of_kernel(grid, &normalized);
        float *in = random_block(n, stride, -1, 1, 11), *diagonal = malloc(n * sizeof *diagonal);
        assert_int_equal(dcrf_operator_kind_of(op), DCRF_OPERATOR_EXACT);
        for (dcrf_direction direction = DCRF_SYMMETRIC; direction <= DCRF_ADJOINT; direction++) {
            float *out = new_applied(op, workspace, direction, in, channels, stride);
            assert_within(dense_error(matrix, n, in, out, channels, stride), EXACT_TOLERANCE,
                          "%s, symmetric %d, direction %d", name, symmetric, (int)direction);
            free(out);
        }
        assert_int_equal(dcrf_operator_diagonal(op, workspace, diagonal, n, NULL), DCRF_OK);
        for (size_t a = 0; a < n; a++)
            assert_within(fabs((double)diagonal[a] / matrix[a * n + a] - 1), EXACT_TOLERANCE,
                          "%s, diagonal of variable %zu", name, a);
        free(in);
        free(diagonal);
        free(matrix);
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

static void exact_is_the_formula(void **state) {
    (void)state;
    const dcrf_grid grids[] = {spaced_grid(1, 301, 1, 1), spaced_grid(2, 19, 13, 1),
                               spaced_grid(3, 9, 5, 6)};
    for (size_t g = 0; g < 3; g++) {
        const size_t n = grid_variables(&grids[g]);
        dcrf_kernel spatial = dcrf_kernel_spatial(1, 1);
        spatial.sigma[0] = 2.9;
        spatial.sigma[1] = 0.8;
        spatial.sigma[2] = 5.3;
        check_exact(&grids[g], &spatial, "spatial");

        float *image = random_block(n, 3, 0, 255, 3);
        dcrf_kernel bilateral =
            dcrf_kernel_bilateral(7, 60, dcrf_view_interleaved(image, DCRF_F32, &grids[g], 3), 1);
        bilateral.channel_sigma[1] = 120;
        check_exact(&grids[g], &bilateral, "bilateral");
        free(image);
    }
}

static void exact_takes_any_dimension(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_1d(150);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++) {
        float *features = random_block(150, d, -2, 2, d);
        const dcrf_kernel kernel =
            dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, d), 1);
        check_exact(&grid, &kernel, "features");
        free(features);
    }
}

/* ---- grid ----------------------------------------------------------------------------------- */

/* Random fields of either sign, in [0, 1], and impulses: the truncation error must be small
 * relative to the largest output, for any input. */
static void check_grid(const dcrf_grid *grid, const dcrf_kernel *kernel, size_t channels) {
    const size_t stride = dcrf_padded(channels) + (channels % 2 ? 8 : 0), n = grid_variables(grid);
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_operator *op = new_operator(grid, kernel, DCRF_OPERATOR_FAST, workspace);
    dcrf_operator *exact = new_operator(grid, kernel, DCRF_OPERATOR_EXACT, workspace);
    assert_int_equal(dcrf_operator_kind_of(op), DCRF_OPERATOR_GRID);
    for (int field = 0; field < 3; field++) {
        float *in = random_block(n, stride, field == 0 ? -1 : 0, field == 2 ? 0 : 1, 5);
        if (field == 2)
            for (size_t c = 0; c < channels; c++)
                in[c * 37 % n * stride + c] = 1;
        float *out = new_applied(op, workspace, DCRF_SYMMETRIC, in, channels, stride);
        float *wanted = new_applied(exact, workspace, DCRF_SYMMETRIC, in, channels, stride);
        assert_within(block_error(out, wanted, n, channels, stride), GRID_TOLERANCE,
                      "field %d, %zu x %zu x %zu, sigma %g, %zu channels", field, grid->size[0],
                      grid->size[1], grid->size[2], kernel->sigma[0], channels);
        free(in);
        free(out);
        free(wanted);
    }
    dcrf_operator_free(&op);
    dcrf_operator_free(&exact);
    dcrf_workspace_free(&workspace);
}

static void grid_is_exact_but_for_its_truncation(void **state) {
    (void)state;
    const dcrf_grid grids[] = {
        dcrf_grid_1d(1),          dcrf_grid_1d(2),           dcrf_grid_1d(201),
        dcrf_grid_2d(1, 1),       dcrf_grid_2d(1, 70),       dcrf_grid_2d(133, 1),
        dcrf_grid_2d(31, 17),     dcrf_grid_2d(64, 9),       dcrf_grid_2d(8, 66),
        dcrf_grid_3d(9, 7, 5),    dcrf_grid_3d(1, 5, 9),     dcrf_grid_3d(16, 1, 8),
        spaced_grid(1, 90, 1, 1), spaced_grid(2, 23, 29, 1), spaced_grid(3, 5, 11, 9),
    };
    const double sigmas[] = {0.3, 1, 3, 10, 1000};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (size_t s = 0; s < 5; s++) {
            dcrf_kernel kernel = dcrf_kernel_spatial(sigmas[s], 1);
            check_grid(&grids[g], &kernel, 3);
            kernel.normalization = DCRF_NORMALIZE_NONE;
            kernel.sigma[1] *= 0.6;
            kernel.sigma[2] *= 1.7;
            check_grid(&grids[g], &kernel, 8);
        }
}

static void grid_takes_any_number_of_channels(void **state) {
    (void)state;
    const size_t channels[] = {1, 7, 8, 9, 16, 21, 24, 32, 33, 70, 201};
    const dcrf_grid plane = dcrf_grid_2d(21, 19), volume = dcrf_grid_3d(7, 6, 5);
    dcrf_kernel kernel = dcrf_kernel_spatial(2, 1);
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        kernel.normalization = i % 2 ? DCRF_NORMALIZE_NONE : DCRF_NORMALIZE_SYMMETRIC;
        check_grid(&plane, &kernel, channels[i]);
        check_grid(&volume, &kernel, channels[i]);
    }
}

/* ---- all three ------------------------------------------------------------------------------ */

/* A kernel for each implementation over one small grid. */
#define IMPLEMENTATIONS 3
static const dcrf_operator_kind kinds[IMPLEMENTATIONS] = {DCRF_OPERATOR_EXACT, DCRF_OPERATOR_GRID,
                                                          DCRF_OPERATOR_LATTICE};

static dcrf_operator *new_of_kind(size_t i, const dcrf_grid *grid, dcrf_workspace *workspace) {
    float *image = random_block(grid_variables(grid), 3, 0, 255, 8);
    const dcrf_kernel kernel =
        kinds[i] == DCRF_OPERATOR_GRID
            ? dcrf_kernel_spatial(2, 1)
            : dcrf_kernel_bilateral(4, 80, dcrf_view_interleaved(image, DCRF_F32, grid, 3), 1);
    dcrf_operator *op = new_operator(grid, &kernel, kinds[i], workspace);
    free(image);
    return op;
}

/* out += factor * K in, also for a partial last block of channels, leaving the rest of each row
 * alone. */
static void runs_accumulate_and_scale(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(13, 9);
    const size_t n = grid_variables(&grid), channel_counts[] = {1, 7, 8, 21, 33, 70};
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t k = 0; k < IMPLEMENTATIONS; k++) {
        dcrf_operator *op = new_of_kind(k, &grid, workspace);
        for (size_t i = 0; i < 6; i++) {
            const size_t channels = channel_counts[i], stride = dcrf_padded(channels) + 8;
            float *in = random_block(n, stride, -1, 1, 1), *out = random_block(n, stride, -1, 1, 2);
            float *before = random_block(n, stride, -1, 1, 2);
            float *product = new_applied(op, workspace, DCRF_SYMMETRIC, in, channels, stride);
            struct dcrf_application run = {.in = in,
                                           .out = out,
                                           .channels = channels,
                                           .stride = stride,
                                           .factor = -2.5f,
                                           .accumulate = true};
            assert_int_equal(dcrf_operator_run(op, workspace, &run, NULL), DCRF_OK);
            for (size_t j = 0; j < n * stride; j++)
                product[j] = before[j] - 2.5f * product[j];
            /* A few roundings to float of values of size 1. */
            assert_within(block_error(out, product, n, channels, stride), 1e-6,
                          "kind %zu, %zu channels", k, channels);
            for (size_t a = 0; a < n; a++) /* beyond the padding nothing is touched */
                assert_memory_equal(out + a * stride + dcrf_padded(channels),
                                    before + a * stride + dcrf_padded(channels),
                                    (stride - dcrf_padded(channels)) * sizeof *out);
            free(in);
            free(out);
            free(before);
            free(product);
        }
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

static void row_sums_are_those_of_the_matrix(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(13, 9);
    const size_t n = grid_variables(&grid);
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t k = 0; k < IMPLEMENTATIONS; k++) {
        dcrf_operator *op = new_of_kind(k, &grid, workspace);
        double *matrix = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
        float *sums = malloc(n * sizeof *sums);
        assert_int_equal(dcrf_operator_row_sums(op, workspace, sums, n, NULL), DCRF_OK);
        for (size_t a = 0; a < n; a++) {
            double sum = 0;
            for (size_t b = 0; b < n; b++)
                sum += matrix[a * n + b];
            assert_within(fabs((double)sums[a] / sum - 1), 1e-5, "kind %zu, row %zu", k, a);
        }
        free(sums);
        free(matrix);
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

static void degenerate_shapes_work(void **state) {
    (void)state;
    const dcrf_grid grids[] = {dcrf_grid_1d(1),      dcrf_grid_1d(2),     dcrf_grid_2d(1, 1),
                               dcrf_grid_2d(1, 33),  dcrf_grid_2d(33, 1), dcrf_grid_3d(1, 1, 1),
                               dcrf_grid_3d(2, 1, 2)};
    dcrf_workspace *workspace = new_workspace(2);
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (size_t k = 0; k < IMPLEMENTATIONS; k++) {
            const size_t n = grid_variables(&grids[g]);
            dcrf_operator *op = new_of_kind(k, &grids[g], workspace);
            double *matrix = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
            float *in = random_block(n, 8, 0, 1, 1);
            float *out = new_applied(op, workspace, DCRF_SYMMETRIC, in, 1, 8);
            assert_within(dense_error(matrix, n, in, out, 1, 8), 1e-5, "grid %zu, kind %zu", g, k);
            if (n == 1) /* normalized, a single variable couples only to itself */
                assert_within(fabs(matrix[0] - 1), 1e-6, "grid %zu, kind %zu", g, k);
            free(matrix);
            free(in);
            free(out);
            dcrf_operator_free(&op);
        }
    dcrf_workspace_free(&workspace);
}

/* Each channel is independent of the others: 4096 of them against one at a time. */
static void thousands_of_channels_work(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(5, 4);
    const size_t n = grid_variables(&grid), channels = 4096;
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t k = 0; k < IMPLEMENTATIONS; k++) {
        dcrf_operator *op = new_of_kind(k, &grid, workspace);
        double *matrix = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
        float *in = random_block(n, channels, 0, 1, 4);
        float *out = new_applied(op, workspace, DCRF_SYMMETRIC, in, channels, channels);
        assert_within(dense_error(matrix, n, in, out, channels, channels), 1e-5, "kind %zu", k);
        free(matrix);
        free(in);
        free(out);
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void bad_requests_are_refused(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(4, 3);
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_error error;
    float in[12 * 16] = {0}, out[12 * 16];
    for (size_t i = 0; i < 12 * 16; i++)
        out[i] = 5;
    dcrf_operator *none = (dcrf_operator *)(void *)in;
    float *image = random_block(12, 3, 0, 255, 1);
    const dcrf_kernel bilateral =
        dcrf_kernel_bilateral(3, 10, dcrf_view_interleaved(image, DCRF_F32, &grid, 3), 1);
    assert_fails(
        DCRF_ERROR_UNSUPPORTED, "spatial kernels only", error,
        dcrf_operator_new(&none, &grid, &bilateral, DCRF_OPERATOR_GRID, workspace, &error));
    assert_null(none);
    assert_fails(
        DCRF_ERROR_ARGUMENT, "9 is not a kind of operator", error,
        dcrf_operator_new(&none, &grid, &bilateral, (dcrf_operator_kind)9, workspace, &error));
    dcrf_operator *op = new_operator(&grid, &bilateral, DCRF_OPERATOR_LATTICE, workspace);
#define apply(direction, channels, stride)                                                         \
    dcrf_operator_apply(op, workspace, direction, in, out, sizeof out / sizeof *out, channels,     \
                        stride, &error)
    assert_fails(DCRF_ERROR_SIZE, "at least one channel", error, apply(DCRF_SYMMETRIC, 0, 8));
    assert_fails(DCRF_ERROR_SIZE, "9 channels needs a stride of at least 16", error,
                 apply(DCRF_SYMMETRIC, 9, 8));
    assert_fails(DCRF_ERROR_SIZE, "multiple of 4, not 10", error, apply(DCRF_SYMMETRIC, 3, 10));
    assert_fails(DCRF_ERROR_ARGUMENT, "7 is not a direction", error,
                 apply((dcrf_direction)7, 3, 8));
#undef apply
    for (size_t i = 0; i < 12 * 16; i++)
        assert_true(out[i] == 5);
    dcrf_operator_free(&op);
    dcrf_operator_free(&op);
    assert_null(op);
    free(image);
    dcrf_workspace_free(&workspace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_is_the_formula),
        cmocka_unit_test(exact_takes_any_dimension),
        cmocka_unit_test(grid_is_exact_but_for_its_truncation),
        cmocka_unit_test(grid_takes_any_number_of_channels),
        cmocka_unit_test(runs_accumulate_and_scale),
        cmocka_unit_test(row_sums_are_those_of_the_matrix),
        cmocka_unit_test(degenerate_shapes_work),
        cmocka_unit_test(thousands_of_channels_work),
        cmocka_unit_test(bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
