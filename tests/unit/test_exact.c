/* The exact operator against plain loops over all pairs, in long double.
 *
 * The loops share nothing with the operator: features come from the caller's numbers, kernels from
 * the formula. Errors are in units of the row sum, sum_b K_ab: the operator promises 2e-6 in float
 * (with |v| <= 1), and states its own bounds in float and in double. */
#include "dense.h"

#include "filter/exact/exact.h"

#include <math.h>
#include <stdlib.h>

#define PROMISED 2e-6

typedef long double real;

struct problem {
    const char *name;
    dcrf_grid grid;
    dcrf_kernel kernel;
    void *channels; /* freed with it */
    dcrf_workspace *workspace;
    dcrf_operator *op;
    size_t variables;
    real *matrix, *row_sums;
};

static real squared_difference(const struct problem *p, size_t a, size_t b) {
    const dcrf_kernel *kernel = &p->kernel;
    real sum = 0;
    size_t rest_a = a, rest_b = b;
    for (size_t axis = 0; kernel->kind != DCRF_KERNEL_FEATURES && axis < p->grid.axes; axis++) {
        const real x = (real)(rest_a % p->grid.size[axis]) - (real)(rest_b % p->grid.size[axis]);
        const real scaled = x * (real)p->grid.spacing[axis] / (real)kernel->sigma[axis];
        rest_a /= p->grid.size[axis];
        rest_b /= p->grid.size[axis];
        sum += scaled * scaled;
    }
    for (size_t c = 0; kernel->kind != DCRF_KERNEL_SPATIAL && c < kernel->channels.channels; c++) {
        const size_t at_a = a * kernel->channels.channels + c,
                     at_b = b * kernel->channels.channels + c;
        real x;
        if (kernel->channels.type == DCRF_U8)
            x = (real)((const uint8_t *)p->channels)[at_a] -
                (real)((const uint8_t *)p->channels)[at_b];
        else if (kernel->channels.type == DCRF_F32)
            x = (real)((const float *)p->channels)[at_a] - (real)((const float *)p->channels)[at_b];
        else
            x = (real)((const double *)p->channels)[at_a] -
                (real)((const double *)p->channels)[at_b];
        if (kernel->kind == DCRF_KERNEL_BILATERAL)
            x /= (real)kernel->channel_sigma[c];
        sum += x * x;
    }
    return sum;
}

static void fill_matrix(struct problem *p) {
    const size_t n = p->variables;
    p->matrix = malloc(n * n * sizeof *p->matrix);
    p->row_sums = calloc(n, sizeof *p->row_sums);
    real *scale = malloc(n * sizeof *scale);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            p->matrix[a * n + b] = expl(-squared_difference(p, a, b) / 2);
            p->row_sums[a] += p->matrix[a * n + b];
        }
    for (size_t a = 0; a < n; a++)
        scale[a] =
            p->kernel.normalization == DCRF_NORMALIZE_SYMMETRIC ? 1 / sqrtl(p->row_sums[a]) : 1;
    for (size_t a = 0; a < n; a++) {
        p->row_sums[a] = 0;
        for (size_t b = 0; b < n; b++)
            p->row_sums[a] += p->matrix[a * n + b] *= scale[a] * scale[b];
    }
    free(scale);
}

static void finish(struct problem *p, dcrf_normalization normalization, size_t threads) {
    p->kernel.normalization = normalization;
    p->variables = grid_variables(&p->grid);
    p->workspace = new_workspace(threads);
    p->op = new_operator(&p->grid, &p->kernel, DCRF_OPERATOR_EXACT, p->workspace);
    fill_matrix(p);
}

/* Points in d dimensions: `groups` clouds of width 1, far apart. */
static struct problem new_clouds(size_t variables, size_t d, size_t groups, double apart,
                                 dcrf_type type, dcrf_normalization normalization) {
    struct problem p = {.name = "clouds", .grid = dcrf_grid_1d(variables)};
    float *random = random_block(variables, d, -1.5, 1.5, d + variables);
    p.channels = malloc(variables * d * sizeof(double));
    for (size_t i = 0; i < variables * d; i++) {
        const double value =
            (double)random[i] / sqrt((double)d) + apart * (double)(i / d * 7919 % groups);
        if (type == DCRF_F32)
            ((float *)p.channels)[i] = (float)value;
        else
            ((double *)p.channels)[i] = value;
    }
    free(random);
    p.kernel = dcrf_kernel_features(dcrf_view_interleaved(p.channels, type, &p.grid, d), 1);
    finish(&p, normalization, 2);
    return p;
}

static struct problem new_picture(size_t width, size_t height, double sigma, double colour_sigma,
                                  dcrf_normalization normalization, size_t threads) {
    struct problem p = {.name = "a picture", .grid = dcrf_grid_2d(width, height)};
    p.channels = draw_photograph(width, height);
    p.kernel = dcrf_kernel_bilateral(sigma, colour_sigma,
                                     dcrf_view_interleaved(p.channels, DCRF_U8, &p.grid, 3), 1);
    finish(&p, normalization, threads);
    return p;
}

static void free_problem(struct problem *p) {
    dcrf_operator_free(&p->op);
    dcrf_workspace_free(&p->workspace);
    free(p->channels);
    free(p->matrix);
    free(p->row_sums);
}

/* ---- what is left out ----------------------------------------------------------------------- */

/* The sum of each row over the pairs that the operator leaves out, by its own lists. */
static void sum_left_out(const struct problem *p, bool in_double, real *sums) {
    const struct dcrf_exact *op = (const struct dcrf_exact *)p->op;
    const struct dcrf_exact_near *near = in_double ? &op->near_double : &op->near;
    for (size_t a = 0; a < p->variables; a++)
        sums[a] = 0;
    for (size_t x = 0; x < p->variables; x++)
        for (size_t y = 0; y < p->variables; y++) {
            const size_t low = (x < y ? x : y) / DCRF_TILE, high = (x < y ? y : x) / DCRF_TILE;
            const uint64_t word =
                near->words[dcrf_exact_word(op, low / BLOCK_TILES, high / BLOCK_TILES)];
            if (!(word >> (low % BLOCK_TILES * BLOCK_TILES + high % BLOCK_TILES) & 1))
                sums[op->order[x]] += p->matrix[op->order[x] * p->variables + op->order[y]];
        }
}

/* The stated value is never below the true one, nor above what may be left out; returns the largest
 * share. */
static double check_left_out(const struct problem *p) {
    double *stated = malloc(p->variables * sizeof *stated), largest = 0;
    real *truth = malloc(p->variables * sizeof *truth);
    assert_int_equal(p->op->methods->left_out(p->op, p->workspace, false, stated, NULL), DCRF_OK);
    sum_left_out(p, false, truth);
    for (size_t a = 0; a < p->variables; a++) {
        if (!((real)stated[a] >= truth[a]))
            fail_msg("%s: %g left out of row %zu, %g stated", p->name, (double)truth[a], a,
                     stated[a]);
        largest = fmax(largest, (double)(truth[a] / p->row_sums[a]));
        assert_within(stated[a] / (double)p->row_sums[a], 1e-6, "%s: stated as left out of row %zu",
                      p->name, a);
    }
    assert_int_equal(p->op->methods->left_out(p->op, p->workspace, true, stated, NULL), DCRF_OK);
    sum_left_out(p, true, truth);
    for (size_t a = 0; a < p->variables; a++)
        assert_true((real)stated[a] >= truth[a]);
    free(stated);
    free(truth);
    return largest;
}

/* With a normalization, float scales contribute a small fraction of the row sums. */
static double stated_double(const struct problem *p) {
    const double stated = p->op->methods->double_error(p->op) + DCRF_EXACT_LEFT_OUT_DOUBLE;
    assert_true(stated < (p->kernel.normalization == DCRF_NORMALIZE_NONE ? 1e-10 : 1e-6));
    return stated;
}

/* ---- the operations ------------------------------------------------------------------------- */

enum { CHANNELS = 37, STRIDE = 40 }; /* more than one pass over the pairs takes */

static void check_apply(const struct problem *p) {
    const size_t n = p->variables;
    float *in = random_block(n, STRIDE, -1, 1, 5);
    /* Some channels are zero except at a few variables, one everywhere. */
    for (size_t a = 0; a < n; a++)
        for (size_t c = 2; c < CHANNELS; c += 4)
            if (a % 50 != c || c == 2)
                in[a * STRIDE + c] = 0;
    float *out = new_applied(p->op, p->workspace, DCRF_SYMMETRIC, in, CHANNELS, STRIDE);
    double *in_double = malloc(n * CHANNELS * sizeof *in_double);
    double *out_double = malloc(n * CHANNELS * sizeof *out_double);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < CHANNELS; c++)
            in_double[a * CHANNELS + c] = (double)in[a * STRIDE + c];
    assert_int_equal(
        p->op->methods->apply_double(p->op, p->workspace, in_double, out_double, CHANNELS, NULL),
        DCRF_OK);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < CHANNELS; c++) {
            real truth = 0;
            for (size_t b = 0; b < n; b++)
                truth += p->matrix[a * n + b] * (real)in[b * STRIDE + c];
            const double sum = (double)p->row_sums[a];
            assert_within(fabs((double)((real)out[a * STRIDE + c] - truth)) / sum, PROMISED,
                          "%s: channel %zu of row %zu", p->name, c, a);
            assert_within(fabs((double)((real)out_double[a * CHANNELS + c] - truth)) / sum,
                          stated_double(p), "%s: channel %zu of row %zu in double", p->name, c, a);
        }
    free(in);
    free(out);
    free(in_double);
    free(out_double);
}

static real clipped(real t) {
    return t < -1 ? -1 : t > 1 ? 1 : t;
}

/* Marginals: some 0 and some 1, in long stretches and singly. */
static float *new_marginals(size_t n) {
    float *y = random_block(n, STRIDE, 0, 1, 6);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < STRIDE; c++)
            if (c % 3 == 1 || (c % 3 == 2 && a % 5 < 3))
                y[a * STRIDE + c] = (float)((a / 70 + c) % 2);
    /* And constant in whole clouds: zero, one, and in between. */
    for (size_t a = 0; a < n; a++)
        for (size_t c = 4; c < STRIDE; c += 3)
            y[a * STRIDE + c] = (float)((a * 7919 % 5 + c) % 4) * (c % 2 ? 0.5f : 0.002f);
    return y;
}

static void check_line(const struct problem *p, double epsilon) {
    const size_t n = p->variables;
    float *y = new_marginals(n), *out = random_block(n, STRIDE, 0, 1, 7);
    float *kept = malloc(n * STRIDE * sizeof *kept);
    double *out_double = malloc(n * CHANNELS * sizeof *out_double);
    uint8_t *wanted = malloc(n);
    for (size_t a = 0; a < n; a++)
        wanted[a] = a / 90 % 2 == 0;
    memcpy(kept, out, n * STRIDE * sizeof *kept);
    struct dcrf_line line = {
        .epsilon = epsilon, .y = y, .out = out, .channels = CHANNELS, .stride = STRIDE};
    const struct dcrf_operator_methods *methods = p->op->methods;
    assert_int_equal(methods->line(p->op, p->workspace, &line, NULL), DCRF_OK);
    assert_int_equal(methods->line_double(p->op, p->workspace, &line, out_double, NULL), DCRF_OK);
    line.out = kept;
    line.wanted = wanted;
    assert_int_equal(methods->line(p->op, p->workspace, &line, NULL), DCRF_OK);
    const double stated = (double)methods->line_roundings(p->op) * 0x1p-24;
    float *untouched = random_block(n, STRIDE, 0, 1, 7);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < CHANNELS; c++) {
            real truth = 0;
            for (size_t b = 0; b < n; b++) {
                const real t = (real)y[b * STRIDE + c] - (real)y[a * STRIDE + c];
                truth += p->matrix[a * n + b] *
                         (epsilon > 0 ? clipped(t / (real)epsilon) : (real)((t > 0) - (t < 0)));
            }
            const double sum = (double)p->row_sums[a];
            const double error = fabs((double)((real)out[a * STRIDE + c] - truth)) / sum;
            assert_within(error, PROMISED, "%s: line %g, channel %zu of row %zu", p->name, epsilon,
                          c, a);
            assert_within(error, stated + 1e-6, "%s: line %g against what is stated", p->name,
                          epsilon);
            assert_within(fabs((double)((real)out_double[a * CHANNELS + c] - truth)) / sum,
                          stated_double(p), "%s: line %g in double, channel %zu of row %zu",
                          p->name, epsilon, c, a);
            if (wanted[a])
                assert_within(fabs((double)((real)kept[a * STRIDE + c] - truth)) / sum, PROMISED,
                              "%s: line %g of wanted rows", p->name, epsilon);
            else
                assert_true(kept[a * STRIDE + c] == untouched[a * STRIDE + c]);
        }
    free(untouched);
    free(y);
    free(out);
    free(kept);
    free(out_double);
    free(wanted);
}

/* Labels in stretches and singly, so that some tiles have one label and others several. */
static void check_disagreement(const struct problem *p) {
    const size_t n = p->variables;
    uint16_t *labels = malloc(n * sizeof *labels);
    const struct dcrf_exact *op = (const struct dcrf_exact *)p->op;
    for (size_t place = 0; place < n; place++)
        labels[op->order[place]] = (uint16_t)(place / 100 % 2 ? place / 200 % 3 : place % 3);
    real truth = 0, all = 0;
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            truth += labels[a] != labels[b] ? p->matrix[a * n + b] : 0;
            all += p->matrix[a * n + b];
        }
    double sum, sum_double;
    const struct dcrf_operator_methods *methods = p->op->methods;
    assert_int_equal(methods->disagreement(p->op, p->workspace, labels, false, &sum, NULL),
                     DCRF_OK);
    assert_int_equal(methods->disagreement(p->op, p->workspace, labels, true, &sum_double, NULL),
                     DCRF_OK);
    assert_within(fabs((double)(((real)sum - truth) / all)), PROMISED, "%s: disagreement", p->name);
    assert_within(fabs((double)(((real)sum_double - truth) / all)), stated_double(p),
                  "%s: disagreement in double", p->name);
    free(labels);
}

static void check_sums(const struct problem *p) {
    const size_t n = p->variables;
    float *diagonal = malloc(n * sizeof *diagonal), *row_sums = malloc(n * sizeof *row_sums);
    assert_int_equal(dcrf_operator_diagonal(p->op, p->workspace, diagonal, n, NULL), DCRF_OK);
    assert_int_equal(dcrf_operator_row_sums(p->op, p->workspace, row_sums, n, NULL), DCRF_OK);
    for (size_t a = 0; a < n; a++) {
        assert_within(fabs((double)((real)diagonal[a] / p->matrix[a * n + a] - 1)), 1e-7,
                      "%s: diagonal %zu", p->name, a);
        assert_within(fabs((double)((real)row_sums[a] / p->row_sums[a] - 1)), PROMISED,
                      "%s: row sum %zu", p->name, a);
    }
    free(diagonal);
    free(row_sums);
}

/* All checks, with and without pairs left out; returns the share that was left out. */
static double check(struct problem *p) {
    double share = 0;
    for (int pass = 0; pass < 2; pass++) {
        const double left_out = check_left_out(p);
        if (pass == 0)
            share = left_out;
        else
            assert_true(left_out == 0);
        check_apply(p);
        check_sums(p);
        check_disagreement(p);
        check_line(p, 0.25);
        check_line(p, 0x1p-8);
        check_line(p, 0);
        dcrf_exact_keep_all(p->op);
    }
    return share;
}

/* The operator restricted to some of the variables, as a separate problem. */
static void check_part(const struct problem *whole) {
    struct problem p = *whole;
    const size_t n = whole->variables;
    uint8_t *kept = calloc(n, 1);
    p.variables = 0;
    for (size_t a = 0; a < n; a++)
        p.variables += kept[a] = a == n / 2 || a * a % 7 < 2;
    p.matrix = malloc(p.variables * p.variables * sizeof *p.matrix);
    p.row_sums = calloc(p.variables, sizeof *p.row_sums);
    size_t row = 0;
    for (size_t a = 0; a < n; a++) {
        size_t column = 0;
        for (size_t b = 0; b < n && kept[a]; b++)
            if (kept[b]) {
                p.matrix[row * p.variables + column++] = whole->matrix[a * n + b];
                p.row_sums[row] += whole->matrix[a * n + b];
            }
        row += kept[a];
    }
    assert_int_equal(whole->op->methods->part(whole->op, kept, p.workspace, &p.op, NULL), DCRF_OK);
    check(&p);
    dcrf_operator_free(&p.op);
    free(p.matrix);
    free(p.row_sums);
    free(kept);
}

static const dcrf_normalization normalizations[] = {DCRF_NORMALIZE_NONE, DCRF_NORMALIZE_SYMMETRIC};

/* ---- the tests ------------------------------------------------------------------------------ */

static void every_dimension(void **state) {
    (void)state;
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++) {
        struct problem p = new_clouds(SANITIZED ? 70 : 150, d, 3, 2, d % 2 ? DCRF_F32 : DCRF_F64,
                                      normalizations[d / 2 % 2]);
        check(&p);
        free_problem(&p);
    }
}

static void every_number_of_variables(void **state) {
    (void)state;
    const size_t counts[] = {1, 2, 3, 31, 32, 33, 64, 65, 255, 256, 257};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        if (SANITIZED && counts[k] > 100)
            break;
        struct problem p = new_clouds(counts[k], 3, 2, 1, DCRF_F32, normalizations[k % 2]);
        check_part(&p);
        check(&p);
        free_problem(&p);
    }
}

static void pictures(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct problem p = SANITIZED ? new_picture(13, 9, 5, 13, normalizations[k], 2)
                                     : new_picture(29, 23, 5, 13, normalizations[k], 2);
        check_part(&p);
        check(&p);
        free_problem(&p);
    }
}

/* Clouds far enough apart for pairs of tiles to be left out, with nonzero sums. */
static void something_is_left_out(void **state) {
    (void)state;
    double largest = 0;
    for (size_t k = 0; k < 4; k++) {
        struct problem p = new_clouds(SANITIZED ? 320 : 640, 2 + k, 5, k % 2 ? 4.5 : 3.6, DCRF_F32,
                                      normalizations[k / 2]);
        const struct dcrf_exact *op = (const struct dcrf_exact *)p.op;
        assert_true(op->near.pairs_of_tiles < op->tiles * (op->tiles + 1) / 2);
        assert_true(op->near.pairs_of_tiles <= op->near_double.pairs_of_tiles);
        largest = fmax(largest, check(&p));
        free_problem(&p);
    }
    assert_true(largest > 1e-9); /* otherwise this tests nothing */
}

static void degenerate_shapes(void **state) {
    (void)state;
    enum { N = 100 };
    for (size_t k = 0; k < 6; k++) {
        struct problem p = {.name = "a degenerate shape", .grid = dcrf_grid_1d(N)};
        float *values = calloc(N * 2, sizeof *values);
        p.channels = values;
        for (size_t a = 0; a < N; a++) {
            if (k == 1) /* nothing couples */
                values[2 * a] = 1e3f * (float)a;
            else if (k == 2) /* as far apart as floats go */
                values[2 * a] = a % 2 ? 3e38f : -3e38f;
            else if (k == 3) /* one isolated variable */
                values[2 * a] = a == 50 ? 1e30f : 0.01f * (float)a;
            else if (k == 4) /* far from the origin */
                values[2 * a + 1] = 1e7f + (float)(a % 7);
            else if (k == 5) /* denormals */
                values[2 * a] = 1e-40f * (float)a;
        }
        p.kernel = dcrf_kernel_features(dcrf_view_interleaved(values, DCRF_F32, &p.grid, 2), 1);
        finish(&p, normalizations[k % 2], 2);
        check(&p);
        free_problem(&p);
    }
    struct problem line = {.name = "one long row", .grid = dcrf_grid_2d(200, 1)};
    line.kernel = dcrf_kernel_spatial(2.5, 1);
    finish(&line, DCRF_NORMALIZE_SYMMETRIC, 2);
    check(&line);
    free_problem(&line);
    struct problem box = {.name = "a box", .grid = dcrf_grid_3d(6, 5, 4)};
    box.grid.spacing[2] = 2.5;
    box.kernel = dcrf_kernel_spatial(1.3, 1);
    box.kernel.sigma[1] = 0.7;
    finish(&box, DCRF_NORMALIZE_NONE, 2);
    check(&box);
    free_problem(&box);
}

/* Pixel values are not divided by sigma and rounded: in double the matrix follows the formula. */
static void small_sigmas_are_exact(void **state) {
    (void)state;
    struct problem p = new_picture(12, 9, 3, 0.9, DCRF_NORMALIZE_SYMMETRIC, 1);
    const size_t n = p.variables;
    double *in = calloc(n * n, sizeof *in), *out = malloc(n * n * sizeof *out);
    for (size_t a = 0; a < n; a++)
        in[a * n + a] = 1;
    assert_int_equal(p.op->methods->apply_double(p.op, p.workspace, in, out, n, NULL), DCRF_OK);
    for (size_t i = 0; i < n * n; i++)
        assert_within(fabs((double)((real)out[i] - p.matrix[i])), 1e-14, "entry %zu", i);
    free(in);
    free(out);
    free_problem(&p);
}

/* The same bytes with 1, 2 and 5 threads, over several blocks. */
static void threads_do_not_matter(void **state) {
    (void)state;
    const size_t threads[] = {1, 2, 5}, n = 40 * 31;
    float *y = new_marginals(n), *first[2] = {NULL, NULL};
    uint8_t *image = draw_photograph(40, 31);
    const dcrf_grid grid = dcrf_grid_2d(40, 31);
    const dcrf_kernel kernel =
        dcrf_kernel_bilateral(12, 13, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 1);
    for (size_t k = 0; k < 3; k++) {
        dcrf_workspace *workspace = new_workspace(threads[k]);
        dcrf_operator *op = new_operator(&grid, &kernel, DCRF_OPERATOR_EXACT, workspace);
        float *applied = new_applied(op, workspace, DCRF_SYMMETRIC, y, CHANNELS, STRIDE);
        float *out = calloc(n * STRIDE, sizeof *out);
        const struct dcrf_line line = {
            .epsilon = 0.125, .y = y, .out = out, .channels = CHANNELS, .stride = STRIDE};
        assert_int_equal(op->methods->line(op, workspace, &line, NULL), DCRF_OK);
        float *results[] = {applied, out};
        for (size_t r = 0; r < 2; r++) {
            for (size_t a = 0; k > 0 && a < n; a++)
                assert_memory_equal(results[r] + a * STRIDE, first[r] + a * STRIDE,
                                    CHANNELS * sizeof(float));
            if (k > 0)
                free(results[r]);
            else
                first[r] = results[r];
        }
        dcrf_operator_free(&op);
        dcrf_workspace_free(&workspace);
    }
    free(first[0]);
    free(first[1]);
    free(image);
    free(y);
}

/* Every instruction set stays within the promised error. */
static void every_instruction_set(void **state) {
    (void)state;
    const dcrf_cpu before = dcrf_cpu_in_use();
    for (dcrf_cpu cpu = DCRF_CPU_C; dcrf_cpu_name(cpu); cpu++) {
        if (dcrf_cpu_limit(cpu, NULL) != DCRF_OK)
            continue;
        struct problem p = new_clouds(100, 5, 2, 2, DCRF_F32, DCRF_NORMALIZE_SYMMETRIC);
        check(&p);
        free_problem(&p);
    }
    assert_int_equal(dcrf_cpu_limit(before, NULL), DCRF_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dimension),
        cmocka_unit_test(every_number_of_variables),
        cmocka_unit_test(pictures),
        cmocka_unit_test(something_is_left_out),
        cmocka_unit_test(degenerate_shapes),
        cmocka_unit_test(small_sigmas_are_exact),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(every_instruction_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
