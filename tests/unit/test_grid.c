/* The grid operator on grids of many tiles, against sums over all variables in double: the matrix
 * is a product of two, so two dimensions suffice. Some regions have few values, as in the LP,
 * others many: the ordered filter skips unused bins. */
#include "dense.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* The promised truncation error, relative to the maximum possible result; float rounding is far
 * below that. */
#define TOLERANCE 1e-4
#define SIGMA 2.5
#define WIDTH 0.25 /* of the line that the ordered filter clips */
#define SAMPLES 61

static const dcrf_grid grids[] = {
    {2, {301, 290, 1}, {1, 1, 1}}, {2, {17, 411, 1}, {1, 1, 1}}, {3, {130, 70, 5}, {1, 1, 1}}};
#define GRIDS 3

#define LONGEST 411
static double taps[LONGEST];

static double tap(size_t a, size_t b) {
    return taps[a < b ? b - a : a - b];
}

/* Normalization factors, from row sums that are products of those along each axis. */
static double *new_scale(const dcrf_grid *grid, bool is_symmetric) {
    const size_t n = grid_variables(grid);
    double *scale = malloc(n * sizeof *scale);
    for (size_t a = 0; a < n; a++) {
        size_t at = a;
        double product = 1;
        for (size_t axis = 0; axis < grid->axes; axis++) {
            double sum = 0;
            for (size_t b = 0; b < grid->size[axis]; b++)
                sum += tap(at % grid->size[axis], b);
            product *= sum;
            at /= grid->size[axis];
        }
        scale[a] = is_symmetric ? 1 / sqrt(product) : 1;
    }
    return scale;
}

/* K_ab. */
static double entry(const dcrf_grid *grid, const double *scale, size_t a, size_t b) {
    double product = scale[a] * scale[b];
    for (size_t axis = 0; axis < grid->axes; axis++) {
        product *= tap(a % grid->size[axis], b % grid->size[axis]);
        a /= grid->size[axis];
        b /= grid->size[axis];
    }
    return product;
}

static dcrf_operator *new_spatial(const dcrf_grid *grid, bool is_symmetric,
                                  dcrf_workspace *workspace) {
    dcrf_kernel kernel = dcrf_kernel_spatial(SIGMA, 1);
    kernel.normalization = is_symmetric ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
    return new_operator(grid, &kernel, DCRF_OPERATOR_FAST, workspace);
}

/* The samples include corners, edges and tile borders: their stride is not aligned with
 * anything. */
static size_t sampled(size_t n, size_t i) {
    return i == 0 ? 0 : i == 1 ? n - 1 : i * 7919 % n;
}

static void applications_are_the_sums(void **state) {
    (void)state;
    for (size_t g = 0; g < GRIDS; g++)
        for (size_t channels = 3; channels <= 54; channels += 17) {
            const bool is_symmetric = channels % 2 == 0;
            const dcrf_grid *grid = &grids[g];
            const size_t n = grid_variables(grid), stride = dcrf_padded(channels);
            double *scale = new_scale(grid, is_symmetric);
            float *in = random_block(n, stride, -1, 1, channels);
            dcrf_workspace *workspace = new_workspace(2);
            dcrf_operator *op = new_spatial(grid, is_symmetric, workspace);
            float *out = new_applied(op, workspace, DCRF_SYMMETRIC, in, channels, stride);
            for (size_t i = 0; i < SAMPLES; i++) {
                const size_t a = sampled(n, i), c = i % channels;
                double sum = 0, most = 0;
                for (size_t b = 0; b < n; b++) {
                    const double k = entry(grid, scale, a, b);
                    sum += k * (double)in[b * stride + c];
                    most += k;
                }
                assert_within(fabs((double)out[a * stride + c] - sum) / most, TOLERANCE,
                              "grid %zu, %zu channels, variable %zu", g, channels, a);
            }
            free(scale);
            free(in);
            free(out);
            dcrf_operator_free(&op);
            dcrf_workspace_free(&workspace);
        }
}

/* Stripes of one value, of two, and of all; the second channel is constant. All values are nodes of
 * the levels, where interpolation is exact. */
static float *new_values(const dcrf_grid *grid, size_t stride, size_t steps) {
    const size_t n = grid_variables(grid);
    float *y = random_block(n, stride, 0, 1, 12);
    for (size_t a = 0; a < n; a++) {
        const size_t line = a / grid->size[0] % grid->size[1];
        if (line % 200 < 150)
            y[a * stride] = line % 200 < 60 ? 0.25f : a % 3 ? 0.25f : 0.875f;
        y[a * stride] = roundf(y[a * stride] * (float)steps) / (float)steps;
        y[a * stride + 1] = 0.375f;
    }
    return y;
}

static void check_ordered(const dcrf_grid *grid, const dcrf_levels *levels, size_t steps) {
    const size_t n = grid_variables(grid), stride = 4;
    double *scale = new_scale(grid, true);
    float *y = new_values(grid, stride, steps), *out = malloc(n * stride * sizeof *out);
    dcrf_workspace *workspace = new_workspace(2);
    dcrf_operator *op = new_spatial(grid, true, workspace);
    assert_int_equal(
        dcrf_operator_ordered(op, workspace, levels, y, out, n * stride, 2, stride, NULL), DCRF_OK);
    for (size_t i = 0; i < SAMPLES; i++) {
        const size_t a = sampled(n, i);
        double sum = 0, most = 0;
        for (size_t b = 0; b < n; b++) {
            const double k = entry(grid, scale, a, b);
            const double t = (double)y[b * stride] - (double)y[a * stride];
            sum += k * (levels->table ? fmax(-1, fmin(1, t / WIDTH)) : (double)((t > 0) - (t < 0)));
            most += k;
        }
        assert_within(fabs((double)out[a * stride] - sum) / most, TOLERANCE,
                      "%zu bins, variable %zu of %zu", levels->count, a, n);
    }
    for (size_t a = 0; a < n; a++)
        assert_true(out[a * stride + 1] == 0);
    free(scale);
    free(y);
    free(out);
    dcrf_operator_free(&op);
    dcrf_workspace_free(&workspace);
}

static void ordered_sums_are_the_sums(void **state) {
    (void)state;
    for (size_t steps = 16; steps <= 64; steps *= 2) {
        const size_t count = steps + 1;
        float *nodes = malloc(count * sizeof *nodes), *between = malloc(count * sizeof *between);
        float *table = malloc(count * count * sizeof *table);
        for (size_t h = 0; h < count; h++) {
            nodes[h] = (float)h / (float)steps;
            between[h] = ((float)h + 0.5f) / (float)steps;
            for (size_t k = 0; k < count; k++)
                table[h * count + k] =
                    (float)fmax(-1, fmin(1, ((double)k - (double)h) / (double)steps / WIDTH));
        }
        for (size_t g = 0; g < GRIDS; g++) {
            check_ordered(&grids[g], &(dcrf_levels){count, nodes, table}, steps);
            check_ordered(&grids[g], &(dcrf_levels){count, between, NULL}, steps);
        }
        free(nodes);
        free(between);
        free(table);
    }
}

int main(void) {
    for (size_t t = 0; t < LONGEST; t++)
        taps[t] = exp(-0.5 * (double)(t * t) / (SIGMA * SIGMA));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(applications_are_the_sums),
        cmocka_unit_test(ordered_sums_are_the_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
