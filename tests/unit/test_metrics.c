/* Distances between labels as cuts: what is stored matches the request, by independent sums over
 * all pairs of labels. */
#include "unit.h"

#include "core/rng.h"
#include "filter/plan.h"
#include "model/cuts.h"
#include "model/model.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>

#define MOST_LABELS 64
#define assert_near(one, other, tolerance)                                                         \
    assert_true(fabs((double)(one) - (double)(other)) <= (tolerance))

static dcrf_model *new_model(size_t labels) {
    const dcrf_grid grid = dcrf_grid_2d(4, 3);
    const dcrf_kernel kernel = dcrf_kernel_spatial(1, 0.7);
    dcrf_model *model;
    assert_int_equal(dcrf_model_new(&model, &grid, labels, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
    return model;
}

/* mu as the model stores it, Potts included. */
static double mu_of(const dcrf_model *model, size_t i, size_t j) {
    const struct dcrf_model_kernel *kernel = &model->kernels[0];
    return (double)kernel->compatibility_values[i * model->labels + j];
}

/* Sums over the cuts that hold a label, whose rounding errors are within the stated bound. */
static void compare_sums(const struct dcrf_cuts *cuts, const uint8_t *sets) {
    double values[2 * MOST_LABELS], added[MOST_LABELS] = {0}, largest = 0;
    for (size_t c = 0; c < cuts->count; c++) {
        values[c] = sin((double)c + 1);
        largest = fmax(largest, fabs(values[c]));
    }
    dcrf_cuts_add(cuts, 1, values, added);
    for (size_t i = 0; i < cuts->labels; i++) {
        long double held = 0;
        for (size_t c = 0; c < cuts->count; c++)
            held += sets[c * cuts->labels + i] * 2 * (long double)cuts->lengths[c] *
                    (long double)values[c];
        assert_near(added[i], held, dcrf_cuts_roundings(cuts) * 0x1p-53 * cuts->reach * largest);
    }
}

/* sum_c 2 length_c z_c^2 / |y|^2 of a row that sums to 0; y becomes the next one of a power
 * iteration. */
static double stiffen(const struct dcrf_cuts *cuts, const uint8_t *sets, double *y) {
    double next[MOST_LABELS] = {0}, squares = 0, mean = 0, sum = 0;
    for (size_t i = 0; i < cuts->labels; i++)
        mean += y[i] / (double)cuts->labels;
    for (size_t i = 0; i < cuts->labels; i++)
        squares += (y[i] - mean) * (y[i] - mean);
    for (size_t c = 0; c < cuts->count; c++) {
        double z = 0;
        for (size_t i = 0; i < cuts->labels; i++)
            z += sets[c * cuts->labels + i] * (y[i] - mean);
        for (size_t i = 0; i < cuts->labels; i++)
            next[i] += sets[c * cuts->labels + i] * 2 * cuts->lengths[c] * z / sqrt(squares);
        sum += 2 * cuts->lengths[c] * z * z / squares;
    }
    memcpy(y, next, sizeof next);
    return sum;
}

/* No row is stiffer than the largest that is stated, and some are almost as stiff. */
static void compare_stiffness(const struct dcrf_cuts *cuts, const uint8_t *sets) {
    double y[MOST_LABELS], most = 0;
    for (size_t i = 0; i < cuts->labels; i++)
        y[i] = cos(3 * (double)i * (double)i);
    for (size_t step = 0; step < 300 && cuts->count > 0 && cuts->labels > 1; step++)
        most = fmax(most, stiffen(cuts, sets, y));
    assert_true(most <= cuts->stiffness * (1 + 1e-12) && cuts->stiffness <= 1.06 * most);
}

/* The sets and lengths of the model's cuts reproduce its matrix, and so do their fast products. */
static void compare_cuts(const dcrf_model *model) {
    const struct dcrf_cuts *cuts = model->kernels[0].cuts;
    const size_t labels = model->labels;
    assert_non_null(cuts);
    uint8_t *sets = malloc((cuts->count + 1) * labels);
    dcrf_cuts_sets(cuts, sets);
    float row[MOST_LABELS], field[MOST_LABELS], columns[2 * MOST_LABELS];
    double values[2 * MOST_LABELS], added[MOST_LABELS];
    for (size_t i = 0; i < labels; i++) {
        row[i] = (float)(1 + i % 5) / 64;
        field[i] = 0.5f;
        added[i] = 0.25;
    }
    assert_true(cuts->count <= 2 * MOST_LABELS);
    dcrf_cuts_apply(cuts, row, field);
    dcrf_cuts_columns(cuts, row, columns);
    for (size_t c = 0; c < cuts->count; c++)
        values[c] = sin((double)c);
    dcrf_cuts_add(cuts, 3, values, added);
    for (size_t i = 0; i < labels; i++) {
        double sum = 0.5, held = 0, reach = 0;
        for (size_t j = 0; j < labels; j++) {
            long double distance = 0;
            for (size_t c = 0; c < cuts->count; c++)
                if (sets[c * labels + i] != sets[c * labels + j])
                    distance += (long double)cuts->lengths[c];
            assert_true(distance <= (long double)mu_of(model, i, j)); /* no tolerance above */
            assert_true((double)distance >= mu_of(model, i, j) * (1 - 2e-7));
            sum += mu_of(model, i, j) * (double)row[j];
        }
        assert_near(field[i], sum, 1e-5 * (1 + sum));
        for (size_t c = 0; c < cuts->count; c++) {
            held += sets[c * labels + i] * 2 * cuts->lengths[c] * values[c];
            reach += sets[c * labels + i] * 2 * cuts->lengths[c];
        }
        assert_near(added[i], 0.25 + 3 * held, 1e-10 * (1 + cuts->reach));
        assert_true(reach <= cuts->reach);
    }
    for (size_t c = 0; c < cuts->count; c++) {
        double sum = 0;
        for (size_t i = 0; i < labels; i++)
            sum += sets[c * labels + i] * (double)row[i];
        assert_near(columns[c], fmin(1, sum), 1e-6);
    }
    compare_sums(cuts, sets);
    compare_stiffness(cuts, sets);
    free(sets);
}

static void test_linear(void **state) {
    (void)state;
    const size_t sizes[] = {2, 3, 6, 10, 60};
    const double truncations[] = {1, 2, 3, 5, 20, 0.5, 2.25, INFINITY};
    for (size_t s = 0; s < 5; s++)
        for (size_t t = 0; t < 8; t++) {
            dcrf_model *model = new_model(sizes[s]);
            assert_int_equal(dcrf_model_set_linear(model, 0, truncations[t], NULL), DCRF_OK);
            for (size_t i = 0; i < sizes[s]; i++)
                for (size_t j = 0; j < sizes[s]; j++) {
                    const double difference = fabs((double)i - (double)j);
                    assert_true(mu_of(model, i, j) == fmin(difference, truncations[t]));
                }
            compare_cuts(model);
            size_t count;
            dcrf_left_out left_out;
            assert_int_equal(dcrf_model_count_cuts(model, 0, &count, &left_out, NULL), DCRF_OK);
            assert_true(left_out.distance == 0 && left_out.fraction == 0 && left_out.energy == 0);
            if (truncations[t] == INFINITY && sizes[s] > 2)
                assert_int_equal(count, sizes[s] - 1);
            if (truncations[t] == 5 && sizes[s] > 10)
                assert_int_equal(count, sizes[s] + 5 - 1);
            dcrf_model_free(&model);
        }
}

/* A tree whose nodes have random parents and names, its distances by Floyd and Warshall. */
static void test_trees(void **state) {
    (void)state;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (int round = 0; round < 60; round++) {
        const size_t labels = 2 + dcrf_rng_next(&rng) % 30;
        const size_t nodes = labels + dcrf_rng_next(&rng) % 20;
        size_t name[MOST_LABELS], ends[2 * MOST_LABELS];
        double lengths[MOST_LABELS], way[MOST_LABELS][MOST_LABELS];
        for (size_t v = 0; v < nodes; v++)
            name[v] = v;
        for (size_t v = nodes - 1; v > 0; v--) {
            const size_t w = dcrf_rng_next(&rng) % (v + 1), kept = name[v];
            name[v] = name[w];
            name[w] = kept;
        }
        for (size_t v = 0; v < nodes; v++)
            for (size_t w = 0; w < nodes; w++)
                way[v][w] = v == w ? 0 : (double)INFINITY;
        for (size_t v = 1; v < nodes; v++) {
            const size_t one = name[v], other = name[dcrf_rng_next(&rng) % v];
            const double length =
                round % 2 ? (double)(dcrf_rng_next(&rng) % 4) : dcrf_rng_uniform(&rng);
            ends[2 * (v - 1)] = v % 2 ? one : other;
            ends[2 * (v - 1) + 1] = v % 2 ? other : one;
            lengths[v - 1] = way[one][other] = way[other][one] = length;
        }
        for (size_t k = 0; k < nodes; k++)
            for (size_t v = 0; v < nodes; v++)
                for (size_t w = 0; w < nodes; w++)
                    way[v][w] = fmin(way[v][w], way[v][k] + way[k][w]);
        dcrf_model *model = new_model(labels);
        assert_int_equal(dcrf_model_set_tree(model, 0, nodes - 1, ends, lengths, NULL), DCRF_OK);
        for (size_t i = 0; i < labels; i++)
            for (size_t j = 0; j < labels; j++)
                assert_near(mu_of(model, i, j), way[i][j], round % 2 ? 0 : 2e-6);
        compare_cuts(model);
        /* Subtrees are contiguous. */
        for (size_t c = 0; c < model->kernels[0].cuts->count; c++)
            assert_true(
                model->kernels[0].cuts->offsets[c + 1] - model->kernels[0].cuts->offsets[c] <= 2);
        dcrf_model_free(&model);
    }
}

static void test_cuts(void **state) {
    (void)state;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 6);
    for (int round = 0; round < 40; round++) {
        const size_t labels = 1 + dcrf_rng_next(&rng) % 20, count = dcrf_rng_next(&rng) % 30;
        unsigned char sets[30 * 20];
        double lengths[30];
        for (size_t k = 0; k < count * labels; k++)
            sets[k] = dcrf_rng_next(&rng) % 2;
        for (size_t c = 0; c < count; c++)
            lengths[c] = dcrf_rng_next(&rng) % 3 ? dcrf_rng_uniform(&rng) : 0;
        dcrf_model *model = new_model(labels);
        assert_int_equal(dcrf_model_set_cuts(model, 0, count, sets, lengths, NULL), DCRF_OK);
        for (size_t i = 0; i < labels; i++)
            for (size_t j = 0; j < labels; j++) {
                double sum = 0;
                for (size_t c = 0; c < count; c++)
                    sum += sets[c * labels + i] != sets[c * labels + j] ? lengths[c] : 0;
                assert_near(mu_of(model, i, j), sum, 3e-6);
            }
        compare_cuts(model);
        dcrf_model_free(&model);
    }
}

/* ---- matrices ------------------------------------------------------------------------------- */

/* The cuts are below the matrix, and the reported loss is right. */
static dcrf_left_out check_below(const float *matrix, size_t labels, size_t *count) {
    struct dcrf_cuts *cuts;
    dcrf_left_out left_out;
    double fraction = 0, part = 0;
    assert_int_equal(dcrf_cuts_below(&cuts, matrix, labels, &left_out, NULL), DCRF_OK);
    uint8_t *sets = malloc((cuts->count + 1) * labels);
    dcrf_cuts_sets(cuts, sets);
    for (size_t i = 0; i < labels; i++)
        for (size_t j = 0; j < labels; j++) {
            long double distance = 0;
            for (size_t c = 0; c < cuts->count; c++)
                if (sets[c * labels + i] != sets[c * labels + j])
                    distance += (long double)cuts->lengths[c];
            const long double mu = (long double)matrix[i * labels + j];
            assert_true(distance <= mu); /* no tolerance */
            if (!(mu - distance > 1e-6L * mu))
                continue; /* a rounding error */
            fraction = fmax(fraction, (double)(1 - distance / mu));
            part = fmax(part, (double)(mu - distance));
        }
    assert_near(left_out.fraction, fraction, 1e-9);
    assert_near(left_out.distance, part, 1e-9 * part);
    assert_true(fraction > 0 ? isnan(left_out.energy) : left_out.energy == 0);
    assert_true(fraction > 0 ? isnan(left_out.gap) : left_out.gap == 0);
    *count = cuts->count;
    free(sets);
    dcrf_cuts_free(&cuts);
    return left_out;
}

static void test_matrices(void **state) {
    (void)state;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 7);
    float matrix[MOST_LABELS * MOST_LABELS];
    size_t count;
    for (int round = 0; round < 80; round++) {
        /* Points in an L1 space: the cuts are exact. */
        const size_t labels = 2 + (size_t)round % 9;
        double point[MOST_LABELS][3];
        for (size_t i = 0; i < labels; i++)
            for (size_t d = 0; d < 3; d++)
                point[i][d] = (double)(dcrf_rng_next(&rng) % 9);
        for (size_t i = 0; i < labels; i++)
            for (size_t j = 0; j < labels; j++) {
                matrix[i * labels + j] = 0;
                for (size_t d = 0; d < 3; d++)
                    matrix[i * labels + j] += (float)fabs(point[i][d] - point[j][d]);
            }
        assert_true(check_below(matrix, labels, &count).fraction == 0);
        /* Nor does rounding the entries to floats matter. */
        for (size_t k = 0; k < labels * labels; k++)
            matrix[k] *= 0.37f;
        assert_true(check_below(matrix, labels, &count).fraction == 0);
        /* Any other matrix is approximated from below. */
        for (size_t i = 0; i < labels; i++)
            for (size_t j = 0; j < i; j++)
                matrix[i * labels + j] = matrix[j * labels + i] =
                    (float)(dcrf_rng_uniform(&rng) < 0.2 ? 0 : dcrf_rng_uniform(&rng));
        check_below(matrix, labels, &count);
    }
    /* Concave functions of the difference are sums of runs: fast even for many labels. */
    for (size_t labels = 11; labels <= 60; labels += 7) {
        for (size_t k = 0; k < labels * labels; k++)
            matrix[k] = (float)sqrt(fabs((double)(k / labels) - (double)(k % labels)));
        assert_true(check_below(matrix, labels, &count).fraction == 0);
        for (size_t k = 0; k < labels * labels; k++)
            matrix[k] = fminf(4, fabsf((float)(k / labels) - (float)(k % labels)));
        assert_true(check_below(matrix, labels, &count).fraction == 0);
        assert_int_equal(count, labels + 3);
        for (size_t k = 0; k < labels * labels; k++)
            matrix[k] *= 0.3f;
        assert_true(check_below(matrix, labels, &count).fraction == 0);
        assert_int_equal(count, labels + 3);
        for (size_t k = 0; k < labels * labels; k++)
            matrix[k] = 0.1f * fabsf((float)(k / labels) - (float)(k % labels));
        assert_true(check_below(matrix, labels, &count).fraction == 0);
        assert_int_equal(count, labels - 1);
        /* Squares are not a distance: only that between neighbours is representable. */
        for (size_t k = 0; k < labels * labels; k++)
            matrix[k] *= matrix[k];
        const double fraction = check_below(matrix, labels, &count).fraction;
        assert_true(fraction > 0 && fraction < 1);
    }
}

/* A square with unit sides and no shortcut across (distance 3): the best cuts are its sides, which
 * give 2 of the 3. */
static void test_best_below(void **state) {
    (void)state;
    const float square[] = {0, 1, 3, 1, 1, 0, 1, 3, 3, 1, 0, 1, 1, 3, 1, 0};
    size_t count;
    const dcrf_left_out left_out = check_below(square, 4, &count);
    assert_near(left_out.fraction, 1.0 / 3, 1e-9);
    assert_near(left_out.distance, 1, 1e-9);
    assert_int_equal(count, 2);
}

/* Entries from 1 to 1.8, for more labels than a linear program is solved for: cuts that are chosen
 * in turn keep a quarter of each. */
static void test_many_labels_below(void **state) {
    (void)state;
    enum { LABELS = 40 };
    float matrix[LABELS * LABELS];
    size_t count;
    for (size_t i = 0; i < LABELS; i++)
        for (size_t j = 0; j < LABELS; j++)
            matrix[i * LABELS + j] = i == j ? 0 : 1 + (float)(7 * (i + j) % 5) / 5;
    assert_true(check_below(matrix, LABELS, &count).fraction < 0.75);
}

/* ---- methods -------------------------------------------------------------------------------- */

static void solve(dcrf_model *model, dcrf_method method, float *marginals, dcrf_energy *energy) {
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_solver_info info;
    dcrf_settings_defaults(&settings, method);
    settings.iterations = 6;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) >= 0);
    dcrf_solver_get_info(solver, &info);
    *energy = info.energy;
    assert_int_equal(dcrf_solver_marginals(solver, marginals, model->variables * model->labels,
                                           model->labels, NULL),
                     DCRF_OK);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
}

enum { METHOD_LABELS = 9, METHOD_VARIABLES = 12 };

static dcrf_model *new_noisy_model(void) {
    float unary[METHOD_VARIABLES * METHOD_LABELS];
    dcrf_model *model = new_model(METHOD_LABELS);
    const dcrf_grid grid = *dcrf_model_grid(model);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 8);
    for (size_t k = 0; k < METHOD_VARIABLES * METHOD_LABELS; k++)
        unary[k] = (float)(3 * dcrf_rng_uniform(&rng));
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, METHOD_LABELS);
    assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
    return model;
}

static void set_truncated(dcrf_model *model) {
    assert_int_equal(dcrf_model_set_distance(model, 0, "truncated-linear:3", NULL), DCRF_OK);
}

/* Three groups of labels in one. */
static void set_groups(dcrf_model *model) {
    size_t ends[2 * (METHOD_LABELS + 3)];
    double lengths[METHOD_LABELS + 3];
    for (size_t e = 0; e < METHOD_LABELS + 3; e++) {
        ends[2 * e] = e;
        ends[2 * e + 1] = e < METHOD_LABELS ? METHOD_LABELS + e % 3 : METHOD_LABELS + 3;
        lengths[e] = 0.25 + 0.125 * (double)e;
    }
    assert_int_equal(dcrf_model_set_tree(model, 0, METHOD_LABELS + 3, ends, lengths, NULL),
                     DCRF_OK);
}

/* Sets of several runs of labels. */
static void set_scattered_cuts(dcrf_model *model) {
    unsigned char sets[7 * METHOD_LABELS];
    double lengths[7];
    for (size_t k = 0; k < sizeof sets; k++)
        sets[k] = k * k % 5 < 2;
    for (size_t c = 0; c < 7; c++)
        lengths[c] = 0.1 * (double)(c + 1);
    assert_int_equal(dcrf_model_set_cuts(model, 0, 7, sets, lengths, NULL), DCRF_OK);
}

/* The same model with its distance as a matrix of which no cuts are known. */
static dcrf_model *with_a_matrix(const dcrf_model *other) {
    float matrix[METHOD_LABELS * METHOD_LABELS];
    dcrf_model *model = new_noisy_model();
    for (size_t k = 0; k < METHOD_LABELS * METHOD_LABELS; k++)
        matrix[k] = (float)mu_of(other, k / METHOD_LABELS, k % METHOD_LABELS);
    assert_int_equal(
        dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, matrix, NULL), DCRF_OK);
    assert_null(model->kernels[0].cuts);
    assert_non_null(other->kernels[0].cuts);
    return model;
}

/* Cuts and the matrix of the same distance: mean field and QP find the same. */
static void test_methods(void **state) {
    (void)state;
    void (*const setters[])(dcrf_model * model) = {set_truncated, set_groups, set_scattered_cuts};
    for (size_t s = 0; s < sizeof setters / sizeof setters[0]; s++)
        for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_QP; method++) {
            float marginals[2][METHOD_VARIABLES * METHOD_LABELS];
            dcrf_energy energies[2];
            dcrf_model *cuts = new_noisy_model();
            setters[s](cuts);
            dcrf_model *matrix = with_a_matrix(cuts);
            solve(cuts, method, marginals[0], &energies[0]);
            solve(matrix, method, marginals[1], &energies[1]);
            assert_near(energies[0].total, energies[1].total, 1e-4);
            for (size_t k = 0; k < METHOD_VARIABLES * METHOD_LABELS; k++)
                assert_near(marginals[0][k], marginals[1][k], 1e-4);
            dcrf_model_free(&cuts);
            dcrf_model_free(&matrix);
        }
}

/* The sum of distances over all pairs, with the kernel's matrix from unit vectors in double. */
static double sum_of_pairs(const dcrf_model *model, const dcrf_plan *plan,
                           dcrf_workspace *workspace, const uint16_t *labels) {
    const dcrf_operator *op = dcrf_plan_operator(plan, 0);
    double in[12], out[12], sum = 0;
    assert_int_equal(model->variables, 12);
    for (size_t b = 0; b < 12; b++) {
        for (size_t a = 0; a < 12; a++)
            in[a] = a == b;
        assert_int_equal(op->methods->apply_double(op, workspace, in, out, 1, NULL), DCRF_OK);
        for (size_t a = 0; a < 12; a++)
            sum += model->kernels[0].weight * mu_of(model, labels[a], labels[b]) * out[a];
    }
    return sum;
}

/* Not all labels occur, and there are more than are filtered together. */
static void test_energies(void **state) {
    (void)state;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 9);
    for (size_t round = 0; round < 12; round++) {
        dcrf_model *model = new_model(round % 2 ? 45 : 7);
        dcrf_workspace *workspace;
        dcrf_plan *plan;
        uint16_t labels[12];
        dcrf_energy energy;
        assert_int_equal(dcrf_model_set_linear(model, 0, round % 3 ? 4 : (double)INFINITY, NULL),
                         DCRF_OK);
        assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
        assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, NULL),
                         DCRF_OK);
        for (size_t a = 0; a < 12; a++)
            labels[a] = (uint16_t)(2 + dcrf_rng_next(&rng) % (model->labels - 2));
        assert_int_equal(dcrf_energy_of_labels(plan, workspace, labels, &energy, NULL, 0, NULL),
                         DCRF_OK);
        const double expected = sum_of_pairs(model, plan, workspace, labels);
        assert_near(energy.pairwise, expected, 1e-5 * (1 + expected));
        dcrf_plan_free(&plan);
        dcrf_workspace_free(&workspace);
        dcrf_model_free(&model);
    }
}

/* ---- what the LP leaves out ----------------------------------------------------------------- */

/* Of (i - j)^2 the cuts between neighbours are |i - j|. */
static void test_left_out(void **state) {
    (void)state;
    enum { LABELS = METHOD_LABELS };
    float squares[LABELS * LABELS], rest[LABELS * LABELS];
    for (size_t k = 0; k < LABELS * LABELS; k++) {
        const float difference = fabsf((float)(k / LABELS) - (float)(k % LABELS));
        squares[k] = difference * difference;
        rest[k] = squares[k] - difference;
    }
    uint16_t labels[METHOD_VARIABLES];
    dcrf_model *model = new_noisy_model(), *other = new_noisy_model();
    assert_int_equal(
        dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, squares, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_compatibility(other, 0, DCRF_COMPATIBILITY_MATRIX, rest, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_model_set_weight(model, 0, 0.05, NULL), DCRF_OK); /* labels differ */
    assert_int_equal(dcrf_model_set_weight(other, 0, 0.05, NULL), DCRF_OK);
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_solver_info info;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) >= 0);
    dcrf_solver_get_info(solver, &info);
    dcrf_solver_labels(solver, labels, METHOD_VARIABLES, NULL);
    const double expected = sum_of_pairs(other, plan, workspace, labels);
    assert_near(info.bound_left_out.distance, 64 - 8, 1e-4);
    assert_near(info.bound_left_out.fraction, 1 - 1.0 / (LABELS - 1), 1e-6);
    assert_true(expected > 0);
    assert_near(info.bound_left_out.energy, expected, 1e-5 * expected);
    assert_near(info.bound_left_out.gap, expected / (info.energy.total - info.unary_floor), 1e-5);
    assert_true(info.lower_bound <= info.energy.total - expected * (1 - 1e-5));
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    dcrf_model_free(&other);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void test_refusals(void **state) {
    (void)state;
    dcrf_model *model = new_model(4);
    dcrf_error error;
    const double lengths[] = {1, 2, 3, 4}, negative[] = {1, -2, 3}, infinite[] = {1, INFINITY, 3};
    const size_t path[] = {0, 1, 1, 2, 2, 3}, cycle[] = {0, 1, 1, 2, 2, 0, 3, 4};
    const size_t apart[] = {0, 4, 4, 1, 1, 0, 2, 3}, far[] = {0, 1, 1, 2, 2, 9};
    const unsigned char sets[] = {1, 0, 0, 0, 1, 1, 0, 0, 1, 2, 0, 0};
    assert_int_equal(dcrf_model_set_distance(model, 0, "linear", NULL), DCRF_OK);
    const struct dcrf_cuts *before = model->kernels[0].cuts;
#define REFUSES(status, text, call)                                                                \
    do {                                                                                           \
        assert_fails(status, text, error, call);                                                   \
        assert_ptr_equal(model->kernels[0].cuts, before);                                          \
    } while (0)
    REFUSES(DCRF_ERROR_ARGUMENT, "above zero", dcrf_model_set_linear(model, 0, 0, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "above zero", dcrf_model_set_linear(model, 0, NAN, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "no kernel 1", dcrf_model_set_linear(model, 1, 2, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "above zero",
            dcrf_model_set_distance(model, 0, "truncated-linear:0", &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "'4x' is no number",
            dcrf_model_set_distance(model, 0, "truncated-linear:4x", &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "'quadratic' is not",
            dcrf_model_set_distance(model, 0, "quadratic", &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "missing",
            dcrf_model_set_tree(model, 0, 2, path, lengths, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "cycle", dcrf_model_set_tree(model, 0, 4, cycle, lengths, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "join label 0 and label 2",
            dcrf_model_set_tree(model, 0, 4, apart, lengths, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "nodes 2 and 9",
            dcrf_model_set_tree(model, 0, 3, far, lengths, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "negative",
            dcrf_model_set_tree(model, 0, 3, path, negative, &error));
    REFUSES(DCRF_ERROR_NOT_FINITE, "inf", dcrf_model_set_tree(model, 0, 3, path, infinite, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "NULL", dcrf_model_set_tree(model, 0, 3, NULL, lengths, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "cut 2 has 2 at label 1",
            dcrf_model_set_cuts(model, 0, 3, sets, lengths, &error));
    REFUSES(DCRF_ERROR_ARGUMENT, "negative",
            dcrf_model_set_cuts(model, 0, 2, sets, negative, &error));
    REFUSES(DCRF_ERROR_NOT_FINITE, "inf", dcrf_model_set_cuts(model, 0, 2, sets, infinite, &error));
    dcrf_model_free(&model);
    model = new_model(DCRF_MAX_DISTANCE_LABELS + 1);
    before = NULL;
    REFUSES(DCRF_ERROR_UNSUPPORTED, "1024", dcrf_model_set_linear(model, 0, 2, &error));
    dcrf_model_free(&model);
}

/* The LP names what it does not support. */
static void test_matrices_of_the_lp(void **state) {
    (void)state;
    const float negative[] = {0, -1, -1, 0}, diagonal[] = {1, 1, 1, 1}, vector[] = {1, 2};
    dcrf_error error;
    size_t count;
    dcrf_left_out left_out;
    dcrf_model *model = new_model(2);
    assert_int_equal(dcrf_model_count_cuts(model, 0, &count, &left_out, NULL), DCRF_OK);
    assert_int_equal(count, 2);
    dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, negative, NULL);
    assert_fails(DCRF_ERROR_UNSUPPORTED, "-1 at (1, 0)", error,
                 dcrf_model_count_cuts(model, 0, &count, &left_out, &error));
    dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, diagonal, NULL);
    assert_fails(DCRF_ERROR_UNSUPPORTED, "1 at (0, 0)", error,
                 dcrf_model_count_cuts(model, 0, &count, &left_out, &error));
    dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_VECTOR, vector, NULL);
    assert_fails(DCRF_ERROR_UNSUPPORTED, "vector", error,
                 dcrf_model_count_cuts(model, 0, &count, &left_out, &error));
    dcrf_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_best_below),
        cmocka_unit_test(test_many_labels_below),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_energies),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_matrices_of_the_lp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
