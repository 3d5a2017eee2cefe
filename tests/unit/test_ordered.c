/* The ordered filter against a double loop: the operator's own matrix, entry by entry, times F
 * evaluated from the values. */
#include "dense.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Histograms are sums of floats over up to 256 bins, and F takes differences of their sums: a few
 * dozen roundings of 6e-8, relative to the mass sum_b K_ab of a variable. */
#define TOLERANCE 1e-5

static const dcrf_operator_kind kinds[] = {DCRF_OPERATOR_EXACT, DCRF_OPERATOR_GRID,
                                           DCRF_OPERATOR_LATTICE};
#define KINDS 3

/* ---- F, naively ----------------------------------------------------------------------------- */

static long bin_of(const dcrf_levels *levels, double value) {
    long bin = 0;
    for (size_t h = 0; h + 1 < levels->count; h++)
        bin += (double)levels->levels[h] <= value;
    return bin;
}

/* The node below a value, and the weight of the one above. */
static size_t node_of(const dcrf_levels *levels, double value, double *weight) {
    const float *nodes = levels->levels;
    *weight = 0;
    if (!(value > (double)nodes[0]))
        return 0;
    for (size_t h = 0; h + 1 < levels->count; h++)
        if (value < (double)nodes[h + 1]) {
            *weight = (value - (double)nodes[h]) / ((double)nodes[h + 1] - (double)nodes[h]);
            return h;
        }
    return levels->count - 1;
}

static double pair_function(const dcrf_levels *levels, double u, double v) {
    if (!levels->table) {
        const long difference = bin_of(levels, v) - bin_of(levels, u);
        return (double)((difference > 0) - (difference < 0));
    }
    double s, t, sum = 0;
    const size_t h = node_of(levels, u, &s), k = node_of(levels, v, &t);
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
            const double weight = (i ? s : 1 - s) * (j ? t : 1 - t);
            if (weight > 0)
                sum += weight * (double)levels->table[(h + i) * levels->count + k + j];
        }
    return sum;
}

/* ---- levels --------------------------------------------------------------------------------- */

struct level_set {
    dcrf_levels levels;
    float *values, *table;
};

/* `count` bins or nodes over [0, 1]: evenly spaced, or increasingly wide. With a table: clip((v -
 * u) / width), or arbitrary antisymmetric numbers. */
enum table { NO_TABLE, CLIP, NUMBERS };
static struct level_set new_levels(size_t count, bool even, enum table kind) {
    struct level_set set = {.values = malloc(count * sizeof(float))};
    const size_t given = kind == NO_TABLE ? count - 1 : count;
    for (size_t h = 0; h < given; h++) {
        const double at =
            kind == NO_TABLE ? (double)(h + 1) / (double)count : (double)h / (double)(count - 1);
        set.values[h] = (float)(even ? at : at * at * (0.5 + 0.4 * at));
    }
    if (kind != NO_TABLE) {
        set.table = random_block(count, count, -1, 1, count);
        for (size_t h = 0; h < count; h++)
            for (size_t k = 0; k <= h; k++) {
                float *here = &set.table[h * count + k];
                if (kind == CLIP)
                    *here = fmaxf(-1, fminf(1, (set.values[k] - set.values[h]) * 4));
                if (h == k)
                    *here = 0;
                set.table[k * count + h] = -*here;
            }
    }
    set.levels = (dcrf_levels){count, set.values, set.table};
    return set;
}

static void free_levels(struct level_set *set) {
    free(set->values);
    free(set->table);
}

/* ---- against the double loop ---------------------------------------------------------------- */

static dcrf_operator *new_of_kind(dcrf_operator_kind kind, const dcrf_grid *grid,
                                  dcrf_workspace *workspace) {
    float *image = random_block(grid_variables(grid), 3, 0, 255, 8);
    const dcrf_kernel kernel =
        kind == DCRF_OPERATOR_GRID
            ? dcrf_kernel_spatial(2, 1)
            : dcrf_kernel_bilateral(4, 80, dcrf_view_interleaved(image, DCRF_F32, grid, 3), 1);
    dcrf_operator *op = new_operator(grid, &kernel, kind, workspace);
    free(image);
    return op;
}

/* Values beyond the levels at both ends, on the levels, and equal to each other. */
static float *new_values(size_t n, size_t stride, const dcrf_levels *levels) {
    float *y = random_block(n, stride, -0.3, 1.3, 3);
    for (size_t i = 0; i < n * stride; i += 5)
        y[i] = levels->levels[i % (levels->count - 1)];
    for (size_t i = 7; i + 1 < n * stride; i += 11)
        y[i] = y[i + 1];
    y[0] = -FLT_MAX;
    y[stride] = FLT_MAX;
    return y;
}

static void check_ordered(const dcrf_operator *op, const double *matrix, dcrf_workspace *workspace,
                          const dcrf_levels *levels, size_t channels, size_t stride) {
    const size_t n = dcrf_operator_variables(op);
    float *y = new_values(n, stride, levels), *out = malloc(n * stride * sizeof *out);
    float *y_before = malloc(n * stride * sizeof *y);
    memcpy(y_before, y, n * stride * sizeof *y);
    for (size_t i = 0; i < n * stride; i++)
        out[i] = NAN;
    assert_int_equal(
        dcrf_operator_ordered(op, workspace, levels, y, out, n * stride, channels, stride, NULL),
        DCRF_OK);
    assert_memory_equal(y, y_before, n * stride * sizeof *y);
    double largest_entry = 0;
    for (size_t i = 0; levels->table && i < levels->count * levels->count; i++)
        largest_entry = fmax(largest_entry, fabs((double)levels->table[i]));
    for (size_t c = 0; c < channels; c++) {
        double total = 0, total_mass = 0;
        for (size_t a = 0; a < n; a++) {
            double sum = 0, mass = 0;
            for (size_t b = 0; b < n; b++) {
                const double k = matrix[a * n + b];
                mass += k;
                sum +=
                    k * pair_function(levels, (double)y[a * stride + c], (double)y[b * stride + c]);
            }
            mass *= fmax(1, largest_entry);
            const double value = (double)out[a * stride + c];
            assert_within(fabs(value - sum) / mass, TOLERANCE,
                          "kind %d, %zu bins, table %d, variable %zu, channel %zu: %g is not %g",
                          (int)dcrf_operator_kind_of(op), levels->count, levels->table != NULL, a,
                          c, value, sum);
            total += value;
            total_mass += mass;
        }
        /* K symmetric, F antisymmetric: all pairs cancel. */
        assert_within(fabs(total) / total_mass, TOLERANCE, "antisymmetry");
    }
    free(y);
    free(y_before);
    free(out);
}

static void ordered_is_the_double_loop(void **state) {
    (void)state;
    const size_t counts[] = {2, 3, 5, 7, 8, 9, 16, 31, 32, 33, 34, 63, 64, 65, 255, 256};
    const dcrf_grid grid = dcrf_grid_2d(15, 9);
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t k = 0; k < KINDS; k++) {
        dcrf_operator *op = new_of_kind(kinds[k], &grid, workspace);
        double *matrix = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            for (int even = 0; even < 2; even++)
                for (enum table table = NO_TABLE; table <= NUMBERS; table++) {
                    struct level_set set = new_levels(counts[i], even, table);
                    check_ordered(op, matrix, workspace, &set.levels, 2, 8);
                    free_levels(&set);
                }
        free(matrix);
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

static void any_number_of_channels_and_variables(void **state) {
    (void)state;
    const size_t channels[] = {1, 7, 8, 9, 21};
    const dcrf_grid grids[] = {dcrf_grid_1d(2), dcrf_grid_1d(31), dcrf_grid_2d(1, 20),
                               dcrf_grid_2d(17, 1), dcrf_grid_3d(4, 3, 5)};
    dcrf_workspace *workspace = new_workspace(2);
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (size_t k = 0; k < KINDS; k++) {
            dcrf_operator *op = new_of_kind(kinds[k], &grids[g], workspace);
            double *matrix = dense_of_operator(op, workspace, DCRF_SYMMETRIC);
            for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
                for (enum table table = NO_TABLE; table <= NUMBERS; table++) {
                    struct level_set set = new_levels(10, false, table);
                    check_ordered(op, matrix, workspace, &set.levels, channels[i],
                                  dcrf_padded(channels[i]) + 8);
                    free_levels(&set);
                }
            free(matrix);
            dcrf_operator_free(&op);
        }
    dcrf_workspace_free(&workspace);
}

/* A single variable sees only itself, and variables of equal value see no difference. */
static void equal_values_cancel(void **state) {
    (void)state;
    const dcrf_grid grids[] = {dcrf_grid_1d(1), dcrf_grid_2d(9, 7)};
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t g = 0; g < 2; g++)
        for (size_t k = 0; k < KINDS; k++)
            for (enum table table = NO_TABLE; table <= NUMBERS; table++) {
                const size_t n = grid_variables(&grids[g]);
                dcrf_operator *op = new_of_kind(kinds[k], &grids[g], workspace);
                struct level_set set = new_levels(6, false, table);
                float *y = malloc(n * 8 * sizeof *y), *out = malloc(n * 8 * sizeof *out);
                for (size_t i = 0; i < n * 8; i++)
                    y[i] = 0.43f;
                assert_int_equal(
                    dcrf_operator_ordered(op, workspace, &set.levels, y, out, n * 8, 3, 8, NULL),
                    DCRF_OK);
                for (size_t a = 0; a < n; a++)
                    for (size_t c = 0; c < 3; c++)
                        assert_within(fabs((double)out[a * 8 + c]), TOLERANCE, "kind %zu", k);
                free(y);
                free(out);
                free_levels(&set);
                dcrf_operator_free(&op);
            }
    dcrf_workspace_free(&workspace);
}

/* A small step of y across a node, or across the ends, changes the result by a small amount; with
 * thresholds it jumps. */
static void tables_make_it_continuous(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(9, 8);
    const size_t n = grid_variables(&grid);
    const float step = 1e-4f;
    dcrf_workspace *workspace = new_workspace(1);
    for (size_t k = 0; k < KINDS; k++) {
        dcrf_operator *op = new_of_kind(kinds[k], &grid, workspace);
        struct level_set set = new_levels(9, true, CLIP), signs = new_levels(9, true, NO_TABLE);
        double jump = 0;
        for (size_t h = 0; h < 9; h++) {
            float *y = random_block(n, 8, 0, 1, 5), out[2][72 * 8];
            for (int side = 0; side < 2; side++) {
                y[20 * 8] = set.levels.levels[h] + (side ? step : -step);
                assert_int_equal(dcrf_operator_ordered(op, workspace, &set.levels, y, out[side],
                                                       n * 8, 1, 8, NULL),
                                 DCRF_OK);
            }
            /* F changes by at most 4 for a change of one; rows of K sum to about one. */
            for (size_t a = 0; a < n; a++)
                assert_within(fabs((double)(out[1][a * 8] - out[0][a * 8])),
                              4 * 2 * (double)step * 2 + TOLERANCE, "kind %zu, node %zu", k, h);
            for (int side = 0; side < 2 && h < 8; side++) {
                y[20 * 8] = signs.levels.levels[h] + (side ? step : -step);
                assert_int_equal(dcrf_operator_ordered(op, workspace, &signs.levels, y, out[side],
                                                       n * 8, 1, 8, NULL),
                                 DCRF_OK);
            }
            for (size_t a = 0; a < n; a++)
                jump = fmax(jump, fabs((double)(out[1][a * 8] - out[0][a * 8])));
            free(y);
        }
        assert_true(jump > 0.01);
        free_levels(&set);
        free_levels(&signs);
        dcrf_operator_free(&op);
    }
    dcrf_workspace_free(&workspace);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void bad_levels_are_refused(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(4, 3);
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_operator *op = new_of_kind(DCRF_OPERATOR_LATTICE, &grid, workspace);
    dcrf_error error;
    float y[12 * 8] = {0}, out[12 * 8], values[300], table[9] = {0, 1, 1, -1, 0, 1, -1, -1, 0};
    for (size_t i = 0; i < 300; i++)
        values[i] = (float)i;
    for (size_t i = 0; i < 12 * 8; i++)
        out[i] = 5;
    dcrf_levels levels = {.count = 4, .levels = values};
#define ordered(channels, stride)                                                                  \
    dcrf_operator_ordered(op, workspace, &levels, y, out, 12 * 8, channels, stride, &error)
    assert_fails(DCRF_ERROR_SIZE, "0 channels", error, ordered(0, 8));
    assert_fails(DCRF_ERROR_SIZE, "9 channels", error, ordered(9, 8));
    levels.count = 1;
    assert_fails(DCRF_ERROR_ARGUMENT, "2 to 256 bins, not 1", error, ordered(2, 8));
    levels.count = 0;
    assert_fails(DCRF_ERROR_ARGUMENT, "2 to 256 bins, not 0", error, ordered(2, 8));
    levels.count = 257;
    assert_fails(DCRF_ERROR_ARGUMENT, "2 to 256 bins, not 257", error, ordered(2, 8));
    levels.count = 4;
    values[2] = 1;
    assert_fails(DCRF_ERROR_ARGUMENT, "ascend; level 2 is 1", error, ordered(2, 8));
    values[2] = 0.5f;
    assert_fails(DCRF_ERROR_ARGUMENT, "ascend; level 2 is 0.5", error, ordered(2, 8));
    values[2] = NAN;
    assert_fails(DCRF_ERROR_ARGUMENT, "level 2 is nan", error, ordered(2, 8));
    values[2] = INFINITY;
    assert_fails(DCRF_ERROR_ARGUMENT, "level 2 is inf", error, ordered(2, 8));
    values[0] = -INFINITY;
    assert_fails(DCRF_ERROR_ARGUMENT, "level 0 is -inf", error, ordered(2, 8));
    values[0] = 0;
    values[2] = 2;
    levels = (dcrf_levels){3, values, table};
    table[5] = -1;
    assert_fails(DCRF_ERROR_ARGUMENT, "antisymmetric at (2, 1)", error, ordered(2, 8));
    table[5] = NAN;
    assert_fails(DCRF_ERROR_ARGUMENT, "(2, 1)", error, ordered(2, 8));
    table[5] = INFINITY;
    table[7] = -INFINITY;
    assert_fails(DCRF_ERROR_ARGUMENT, "(2, 1)", error, ordered(2, 8));
    table[5] = 1;
    table[7] = -1;
    table[4] = 1;
    assert_fails(DCRF_ERROR_ARGUMENT, "antisymmetric at (1, 1)", error, ordered(2, 8));
    table[4] = 0;
    /* If the distance between nodes is not a normal float, interpolation would give NaN. */
    values[0] = -FLT_MAX;
    values[2] = FLT_MAX;
    values[1] = FLT_MAX / 2;
    assert_fails(DCRF_ERROR_ARGUMENT, "levels 0 and 1", error, ordered(2, 8));
    values[0] = 0;
    values[1] = FLT_MIN;
    values[2] = FLT_MIN * 1.5f;
    assert_fails(DCRF_ERROR_ARGUMENT, "levels 1 and 2", error, ordered(2, 8));
    for (size_t i = 0; i < 12 * 8; i++)
        assert_true(out[i] == 5);
    values[1] = 1;
    values[2] = 2;
    assert_int_equal(ordered(2, 8), DCRF_OK);
#undef ordered
    dcrf_operator_free(&op);
    dcrf_workspace_free(&workspace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordered_is_the_double_loop),
        cmocka_unit_test(any_number_of_channels_and_variables),
        cmocka_unit_test(equal_values_cancel),
        cmocka_unit_test(tables_make_it_continuous),
        cmocka_unit_test(bad_levels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
