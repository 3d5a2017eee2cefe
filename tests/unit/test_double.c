/* The operators in double: the same matrix as the float operators, and rounding errors of the
 * ordered filter within the stated bound. */
#include "core/memory.h"
#include "core/rng.h"
#include "filter/operator.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#define WIDTH 23
#define HEIGHT 17
#define VARIABLES (WIDTH * HEIGHT)
#define CHANNELS 3

struct fixture {
    dcrf_operator *op;
    dcrf_workspace *workspace;
};

/* An image with many equal colours, so that some lattice vertices have many entries. */
static void make(struct fixture *fixture, dcrf_operator_kind kind,
                 dcrf_normalization normalization) {
    static uint8_t image[VARIABLES * 3];
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 7);
    for (size_t i = 0; i < VARIABLES * 3; i++)
        image[i] = (uint8_t)(30 + dcrf_rng_next(&rng) % 4);
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    dcrf_kernel kernel =
        kind == DCRF_OPERATOR_GRID
            ? dcrf_kernel_spatial(2, 1)
            : dcrf_kernel_bilateral(6, 9, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 1);
    kernel.normalization = normalization;
    assert_int_equal(dcrf_workspace_new(&fixture->workspace, 2, NULL), DCRF_OK);
    assert_int_equal(
        dcrf_operator_new(&fixture->op, &grid, &kernel, kind, fixture->workspace, NULL), DCRF_OK);
}

static void drop(struct fixture *fixture) {
    dcrf_operator_free(&fixture->op);
    dcrf_workspace_free(&fixture->workspace);
}

static void check_kind(dcrf_operator_kind kind, dcrf_normalization normalization) {
    struct fixture f;
    make(&f, kind, normalization);
    float *in = dcrf_allocate(2 * VARIABLES, DCRF_LANES * sizeof *in);
    float *out = in + VARIABLES * DCRF_LANES;
    double *precise_in = malloc(VARIABLES * CHANNELS * sizeof *precise_in);
    double *precise = malloc(VARIABLES * CHANNELS * sizeof *precise);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 11);
    memset(in, 0, VARIABLES * DCRF_LANES * sizeof *in);
    for (size_t a = 0; a < VARIABLES; a++)
        for (size_t c = 0; c < CHANNELS; c++) {
            in[a * DCRF_LANES + c] = (float)dcrf_rng_uniform(&rng);
            precise_in[a * CHANNELS + c] = (double)in[a * DCRF_LANES + c];
        }
    assert_int_equal(dcrf_operator_apply(f.op, f.workspace, DCRF_SYMMETRIC, in, out,
                                         dcrf_operator_variables(f.op) * DCRF_LANES, CHANNELS,
                                         DCRF_LANES, NULL),
                     DCRF_OK);
    assert_int_equal(
        f.op->methods->apply_double(f.op, f.workspace, precise_in, precise, CHANNELS, NULL),
        DCRF_OK);
    /* Sums of at most VARIABLES + 100 positive floats: relative error below 1e-4. */
    for (size_t a = 0; a < VARIABLES; a++)
        for (size_t c = 0; c < CHANNELS; c++)
            assert_true(fabs((double)out[a * DCRF_LANES + c] - precise[a * CHANNELS + c]) <=
                        (VARIABLES + 100) * 0x1p-24 * precise[a * CHANNELS + c]);
    free(precise);
    free(precise_in);
    dcrf_release(in);
    drop(&f);
}

static void test_same_matrix(void **state) {
    (void)state;
    for (int normalization = 0; normalization < 2; normalization++) {
        check_kind(DCRF_OPERATOR_EXACT, (dcrf_normalization)normalization);
        check_kind(DCRF_OPERATOR_GRID, (dcrf_normalization)normalization);
        check_kind(DCRF_OPERATOR_LATTICE, (dcrf_normalization)normalization);
    }
}

/* The ordered filter with hats at the nodes, written out in double: a block of one channel per bin
 * through the operator in double. */
static void check_ordered(dcrf_operator_kind kind, const dcrf_levels *levels, bool is_sign) {
    struct fixture f;
    make(&f, kind, DCRF_NORMALIZE_SYMMETRIC);
    const size_t bins = levels->count;
    float *y = dcrf_allocate(2 * VARIABLES, DCRF_LANES * sizeof *y);
    float *out = y + VARIABLES * DCRF_LANES;
    double *hats = calloc(VARIABLES * bins, sizeof *hats),
           *seen = malloc(VARIABLES * bins * sizeof *seen);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    memset(y, 0, VARIABLES * DCRF_LANES * sizeof *y);
    for (size_t a = 0; a < VARIABLES; a++) {
        const float value = (float)(dcrf_rng_uniform(&rng) * 1.2 - 0.1);
        y[a * DCRF_LANES] = value;
        size_t h = 0;
        if (!levels->table) {
            while (h + 1 < bins && levels->levels[h] <= value)
                h++;
            hats[a * bins + h] = 1;
            continue;
        }
        while (h + 1 < bins && levels->levels[h + 1] <= value)
            h++;
        const float low = levels->levels[h];
        const double fraction =
            value <= low || h + 1 == bins
                ? 0
                : ((double)value - (double)low) / ((double)levels->levels[h + 1] - (double)low);
        hats[a * bins + h] = 1 - fraction;
        if (fraction > 0)
            hats[a * bins + h + 1] = fraction;
    }
    assert_int_equal(dcrf_operator_ordered(f.op, f.workspace, levels, y, out,
                                           dcrf_operator_variables(f.op) * DCRF_LANES, 1,
                                           DCRF_LANES, NULL),
                     DCRF_OK);
    assert_int_equal(f.op->methods->apply_double(f.op, f.workspace, hats, seen, bins, NULL),
                     DCRF_OK);
    /* The fraction itself is rounded to float here and in the filter: the slope of F between two
     * nodes times the error of the fraction counts as 8 more roundings. */
    const double promised =
        (double)(f.op->methods->ordered_roundings(f.op, bins, is_sign) + 8) * 0x1p-24;
    for (size_t a = 0; a < VARIABLES; a++) {
        double sum = 0, row_sum = 0;
        for (size_t h = 0; h < bins; h++)
            for (size_t k = 0; k < bins; k++) {
                const double value = levels->table ? (double)levels->table[h * bins + k]
                                                   : (double)((k > h) - (k < h));
                sum += hats[a * bins + h] * value * seen[a * bins + k];
            }
        for (size_t k = 0; k < bins; k++)
            row_sum += seen[a * bins + k];
        assert_true(fabs((double)out[a * DCRF_LANES] - sum) <= promised * row_sum);
    }
    free(seen);
    free(hats);
    dcrf_release(y);
    drop(&f);
}

/* The clipped line over two nodes and a half, the sign between thresholds, and the sign at nodes
 * with a line between them. */
static void check_levels(size_t bins) {
    static const dcrf_operator_kind kinds[] = {DCRF_OPERATOR_EXACT, DCRF_OPERATOR_GRID,
                                               DCRF_OPERATOR_LATTICE};
    float *nodes = malloc(bins * sizeof *nodes);
    float *line = malloc(2 * bins * bins * sizeof *line), *steps = line + bins * bins;
    for (size_t h = 0; h < bins; h++)
        nodes[h] = (float)h / (float)(bins - 1);
    for (size_t h = 0; h < bins; h++)
        for (size_t k = 0; k < bins; k++) {
            line[h * bins + k] = fmaxf(-1, fminf(1, ((float)k - (float)h) * 0.4f));
            steps[h * bins + k] = (float)(k > h) - (float)(k < h);
        }
    for (size_t kind = 0; kind < 3; kind++) {
        check_ordered(kinds[kind], &(dcrf_levels){bins, nodes, line}, false);
        check_ordered(kinds[kind], &(dcrf_levels){bins, nodes, NULL}, true);
        check_ordered(kinds[kind], &(dcrf_levels){bins, nodes, steps}, true);
    }
    free(line);
    free(nodes);
}

static void test_ordered_rounding(void **state) {
    (void)state;
    check_levels(12);
    check_levels(77); /* several blocks, the last one not full */
}

/* The model's definition (dcrf/model.h): a kernel value below 2^-126 may count as anything from 0
 * to that; all others follow the formula up to float rounding. */
static void test_values_that_vanish(void **state) {
    (void)state;
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    for (double distance = 1; distance < 40; distance += 0.25) {
        const double feature[2] = {0, distance};
        const dcrf_grid grid = dcrf_grid_1d(2);
        dcrf_kernel kernel =
            dcrf_kernel_features(dcrf_view_interleaved(feature, DCRF_F64, &grid, 1), 1);
        dcrf_operator *op;
        const double unit[2] = {1, 0};
        double precise[2];
        float in[2 * DCRF_LANES] = {1}, out[2 * DCRF_LANES];
        const long double value = expl(-(long double)(distance * distance) / 2);
        /* Beyond that many sigmas the operator leaves pairs out, and states how much. */
        double left_out[2] = {0};
        kernel.normalization = DCRF_NORMALIZE_NONE;
        assert_int_equal(
            dcrf_operator_new(&op, &grid, &kernel, DCRF_OPERATOR_EXACT, workspace, NULL), DCRF_OK);
        assert_int_equal(dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, in, out,
                                             dcrf_operator_variables(op) * DCRF_LANES, 1,
                                             DCRF_LANES, NULL),
                         DCRF_OK);
        assert_int_equal(op->methods->apply_double(op, workspace, unit, precise, 1, NULL), DCRF_OK);
        assert_int_equal(op->methods->left_out(op, workspace, false, left_out, NULL), DCRF_OK);
        const long double error = 1e-4L * value + 0x1p-126L + (long double)left_out[1];
        assert_true(out[DCRF_LANES] >= 0 && precise[1] >= 0);
        assert_true(fabsl((long double)out[DCRF_LANES] - value) <= error);
        assert_true(fabsl((long double)precise[1] - value) <= error);
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_matrix),
        cmocka_unit_test(test_ordered_rounding),
        cmocka_unit_test(test_values_that_vanish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
