/* Energies and objectives against double loops over dense matrices, which are built here from the
 * raw inputs; plans; and what is refused. */
#include "unit.h"

#include "core/rng.h"
#include "filter/plan.h"

#include <dcrf/energy.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* The exact operator rounds features to float (a coordinate of 10 sigmas to 1e-6 of a sigma) and
 * its result to float; sums follow in double. All sums here are of positive terms or of moderate
 * cancellation, so a few times 1e-6 relative to their size is what may be lost. */
#define TOLERANCE 4e-6

#define KERNELS 4
#define CHANNELS 3
#define FEATURES 4

static void assert_close(double value, double expected, double scale) {
    if (!(fabs(value - expected) <= TOLERANCE * fmax(fabs(scale), 1e-3)))
        fail_msg("%.12g is not %.12g", value, expected);
}

/* ---- a scene: a model with every kind of kernel, and its matrices ------------------------------
 */

struct scene {
    dcrf_grid grid;
    size_t variables, labels, cliques;
    double *unary;           /* variables x labels */
    double *matrix[KERNELS]; /* dense, normalized, without the weight */
    double weight[KERNELS];
    dcrf_compatibility compatibility[KERNELS];
    float *values[KERNELS];
    int32_t *region; /* clique of each variable, -1: none */
    double *cost;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
};

static double *new_matrix(const dcrf_grid *grid, double sigma, const float *channels, size_t count,
                          double channel_sigma, bool normalized) {
    const size_t n = grid->size[0] * grid->size[1] * grid->size[2];
    double *matrix = malloc(n * n * sizeof *matrix), *mass = calloc(n, sizeof *mass);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            double squared = 0;
            size_t p = a, q = b;
            for (size_t axis = 0; axis < 3; axis++) {
                const double d = (double)(p % grid->size[axis]) - (double)(q % grid->size[axis]);
                if (sigma > 0)
                    squared += pow(d * grid->spacing[axis] / sigma, 2);
                p /= grid->size[axis];
                q /= grid->size[axis];
            }
            for (size_t c = 0; c < count; c++)
                squared += pow(((double)channels[a * count + c] - (double)channels[b * count + c]) /
                                   channel_sigma,
                               2);
            mass[a] += matrix[a * n + b] = exp(-squared / 2);
        }
    for (size_t a = 0; normalized && a < n; a++)
        for (size_t b = 0; b < n; b++)
            matrix[a * n + b] /= sqrt(mass[a] * mass[b]);
    free(mass);
    return matrix;
}

/* Potts, vector, matrix, Potts; every normalization and kind of kernel. */
static struct scene new_scene(dcrf_grid grid, size_t labels, size_t threads, bool with_matrices) {
    struct scene s = {.grid = grid, .labels = labels};
    const size_t n = s.variables = grid.size[0] * grid.size[1] * grid.size[2];
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 7);
    assert_int_equal(dcrf_model_new(&s.model, &grid, labels, NULL), DCRF_OK);

    s.unary = malloc(n * labels * sizeof *s.unary);
    for (size_t i = 0; i < n * labels; i++)
        s.unary[i] = (double)(float)(4 * dcrf_rng_uniform(&rng) - 1);
    const dcrf_view unary = dcrf_view_interleaved(s.unary, DCRF_F64, &grid, labels);
    assert_int_equal(dcrf_model_set_unary(s.model, &unary, NULL), DCRF_OK);

    float *image = malloc(n * CHANNELS * sizeof *image);
    float *features = malloc(n * FEATURES * sizeof *features);
    for (size_t i = 0; i < n * CHANNELS; i++)
        image[i] = (float)(255 * dcrf_rng_uniform(&rng));
    for (size_t i = 0; i < n * FEATURES; i++)
        features[i] = (float)(2 * dcrf_rng_uniform(&rng));
    dcrf_kernel kernels[KERNELS] = {
        dcrf_kernel_spatial(1.5, 2),
        dcrf_kernel_bilateral(4, 90, dcrf_view_interleaved(image, DCRF_F32, &grid, CHANNELS), 1.25),
        dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, FEATURES), 0.5),
        dcrf_kernel_spatial(0.8, 0.75)};
    kernels[1].normalization = kernels[3].normalization = DCRF_NORMALIZE_NONE;
    for (size_t m = 0; m < KERNELS; m++) {
        s.weight[m] = kernels[m].weight;
        assert_int_equal(dcrf_model_add_kernel(s.model, &kernels[m], NULL), DCRF_OK);
    }
    if (with_matrices) {
        s.matrix[0] = new_matrix(&grid, 1.5, NULL, 0, 1, true);
        s.matrix[1] = new_matrix(&grid, 4, image, CHANNELS, 90, false);
        s.matrix[2] = new_matrix(&grid, 0, features, FEATURES, 1, true);
        s.matrix[3] = new_matrix(&grid, 0.8, NULL, 0, 1, false);
    }
    free(image);
    free(features);

    s.cliques = n / 5;
    s.region = malloc(n * sizeof *s.region);
    s.cost = malloc((s.cliques + 1) * sizeof *s.cost);
    for (size_t p = 0; p < s.cliques; p++)
        s.cost[p] = 3 * dcrf_rng_uniform(&rng);
    size_t *offsets = malloc((s.cliques + 1) * sizeof *offsets);
    size_t *members = malloc(n * sizeof *members);
    size_t count = 0;
    for (size_t a = 0; a < n; a++)
        s.region[a] = -1;
    for (size_t p = 0; p < s.cliques; p++) {
        /* One to four of the five variables p, p + cliques, p + 2 cliques ... */
        offsets[p] = count;
        for (size_t i = 0; i <= p % 4; i++) {
            members[count] = p + i * s.cliques;
            s.region[members[count++]] = (int32_t)p;
        }
    }
    offsets[s.cliques] = count;
    assert_int_equal(dcrf_model_set_cliques(s.model, s.cliques, offsets, members, s.cost, NULL),
                     DCRF_OK);
    free(offsets);
    free(members);

    assert_int_equal(dcrf_workspace_new(&s.workspace, threads, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&s.plan, s.model, DCRF_OPERATOR_EXACT, s.workspace, NULL),
                     DCRF_OK);
    return s;
}

static void free_scene(struct scene *s) {
    dcrf_plan_free(&s->plan);
    dcrf_workspace_free(&s->workspace);
    dcrf_model_free(&s->model);
    free(s->unary);
    free(s->region);
    free(s->cost);
    for (size_t m = 0; m < KERNELS; m++) {
        free(s->matrix[m]);
        free(s->values[m]);
    }
}

/* Change the compatibility of a kernel, in the scene and in the model: the plan is not rebuilt. */
static void set_compatibility(struct scene *s, size_t m, dcrf_compatibility compatibility) {
    const size_t count = s->labels;
    free(s->values[m]);
    s->values[m] = malloc(count * count * sizeof *s->values[m]);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            s->values[m][i * count + j] = compatibility == DCRF_COMPATIBILITY_VECTOR
                                              ? (float)(i * count + j) / 4 - 1 /* first row */
                                              : (float)((i + 1) * (j + 1) % 7) / 3 - 0.5f;
    s->compatibility[m] = compatibility;
    assert_int_equal(dcrf_model_set_compatibility(s->model, m, compatibility, s->values[m], NULL),
                     DCRF_OK);
}

static void set_weight(struct scene *s, size_t m, double weight) {
    s->weight[m] = weight;
    assert_int_equal(dcrf_model_set_weight(s->model, m, weight, NULL), DCRF_OK);
}

static double mu(const struct scene *s, size_t m, size_t i, size_t j) {
    if (s->compatibility[m] == DCRF_COMPATIBILITY_VECTOR)
        return i == j ? (double)s->values[m][i] : 0;
    if (s->compatibility[m] == DCRF_COMPATIBILITY_MATRIX)
        return (double)s->values[m][i * s->labels + j];
    return i != j;
}

/* ---- naive energies ----------------------------------------------------------------------------
 */

struct naive {
    dcrf_energy energy;
    double of_kernel[KERNELS];
    double pair_scale; /* sum of the absolute values of the pairwise terms */
};

static struct naive naive_labels(const struct scene *s, const uint16_t *x) {
    struct naive result = {0};
    const size_t n = s->variables;
    for (size_t a = 0; a < n; a++)
        result.energy.unary += s->unary[a * s->labels + x[a]];
    for (size_t m = 0; m < KERNELS; m++) {
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                if (a != b) {
                    const double term =
                        s->weight[m] * s->matrix[m][a * n + b] * mu(s, m, x[a], x[b]);
                    result.of_kernel[m] += term;
                    result.pair_scale += fabs(term);
                }
        result.energy.pairwise += result.of_kernel[m];
    }
    for (size_t p = 0; p < s->cliques; p++) {
        bool broken = false;
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                broken |= s->region[a] == (int32_t)p && s->region[b] == (int32_t)p && x[a] != x[b];
        result.energy.cliques += broken ? s->cost[p] : 0;
    }
    result.energy.total = result.energy.unary + result.energy.pairwise + result.energy.cliques;
    return result;
}

/* The clique terms of the three relaxations, as the header writes them. */
enum form { QP, LP_MIN, LP_SPREAD };

static double naive_cliques(const struct scene *s, const float *y, size_t stride, enum form form) {
    double total = 0;
    for (size_t p = 0; p < s->cliques; p++) {
        double qp = 1 - (double)s->labels, agreement = 0, widest = 0;
        for (size_t i = 0; i < s->labels; i++) {
            double missing = 0, least = INFINITY, most = -INFINITY;
            for (size_t a = 0; a < s->variables; a++)
                if (s->region[a] == (int32_t)p) {
                    const double value = (double)y[a * stride + i];
                    missing += 1 - value;
                    least = fmin(least, value);
                    most = fmax(most, value);
                }
            qp += fmin(1, missing);
            agreement += least;
            widest = fmax(widest, most - least);
        }
        total += s->cost[p] * (form == QP ? qp : form == LP_MIN ? 1 - agreement : widest);
    }
    return total;
}

static double naive_unary(const struct scene *s, const float *y, size_t stride) {
    double total = 0;
    for (size_t a = 0; a < s->variables; a++)
        for (size_t i = 0; i < s->labels; i++)
            total += s->unary[a * s->labels + i] * (double)y[a * stride + i];
    return total;
}

static double naive_qp_pairs(const struct scene *s, const float *y, size_t stride, double *scale) {
    double total = 0;
    *scale = 0;
    const size_t n = s->variables;
    for (size_t m = 0; m < KERNELS; m++)
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                for (size_t i = 0; a != b && i < s->labels; i++)
                    for (size_t j = 0; j < s->labels; j++) {
                        const double term = s->weight[m] * s->matrix[m][a * n + b] *
                                            mu(s, m, i, j) * (double)y[a * stride + i] *
                                            (double)y[b * stride + j];
                        total += term;
                        *scale += fabs(term);
                    }
    return total;
}

/* bins = 0: the true differences; otherwise pairs in one bin of width 1 / bins count as equal.
 * *mass is sum_{a < b} K_ab. */
static double naive_lp_pairs(const struct scene *s, const float *y, size_t stride, size_t bins,
                             double *mass) {
    const size_t n = s->variables;
    double total = 0;
    *mass = 0;
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n; b++) {
            double k = 0;
            for (size_t m = 0; m < KERNELS; m++)
                k += s->weight[m] * s->matrix[m][a * n + b];
            *mass += k;
            for (size_t i = 0; i < s->labels; i++) {
                const double u = (double)y[a * stride + i], v = (double)y[b * stride + i];
                const double last = (double)bins - 1;
                if (bins == 0 ||
                    fmin(floor(u * (double)bins), last) != fmin(floor(v * (double)bins), last))
                    total += k * fabs(u - v);
            }
        }
    return total;
}

/* ---- labellings --------------------------------------------------------------------------------
 */

static uint16_t *new_labels(const struct scene *s) {
    uint16_t *x = malloc(s->variables * sizeof *x);
    for (size_t a = 0; a < s->variables; a++)
        /* Runs, so that some cliques agree; label 1 never occurs. */
        x[a] = (uint16_t)(a / 3 * 2 % s->labels == 1 ? 0 : a / 3 * 2 % s->labels);
    return x;
}

/* Rows that sum to one; of multiples of 1 / 16 when asked for. */
static float *new_fractional(const struct scene *s, size_t stride, bool sixteenths) {
    float *y = malloc(s->variables * stride * sizeof *y);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 11);
    for (size_t a = 0; a < s->variables; a++) {
        float *row = y + a * stride;
        double sum = 0;
        for (size_t i = 0; i < stride; i++)
            row[i] = 0;
        if (sixteenths) {
            for (size_t i = 0; i < 16; i++)
                row[(size_t)(dcrf_rng_uniform(&rng) * (double)s->labels)] += 1.0f / 16;
            continue;
        }
        for (size_t i = 0; i < s->labels; i++) /* one label never occurs; rows from flat to sharp */
            sum += row[i] = i == 1 && s->labels > 2
                                ? 0
                                : (float)pow(dcrf_rng_uniform(&rng), (double)(a % 5) * 4 + 0.1);
        for (size_t i = 0; i < s->labels; i++)
            row[i] = (float)((double)row[i] / sum);
    }
    return y;
}

static float *new_indicators(const struct scene *s, const uint16_t *x, size_t stride) {
    float *y = calloc(s->variables * stride, sizeof *y);
    for (size_t a = 0; a < s->variables; a++)
        y[a * stride + x[a]] = 1;
    return y;
}

static void assert_energies(const dcrf_energy *e, const dcrf_energy *expected, double pair_scale) {
    assert_close(e->unary, expected->unary, fmax(fabs(expected->unary), 1));
    assert_close(e->pairwise, expected->pairwise, pair_scale);
    assert_close(e->cliques, expected->cliques, fmax(fabs(expected->cliques), 1));
    assert_true(e->total == e->unary + e->pairwise + e->cliques);
}

/* ---- energies ----------------------------------------------------------------------------------
 */

static void check_labels(const struct scene *s) {
    uint16_t *x = new_labels(s);
    dcrf_energy energy, again;
    double of_kernel[KERNELS];
    const struct naive expected = naive_labels(s, x);
    assert_int_equal(dcrf_energy_of_labels(s->plan, s->workspace, x, &energy, of_kernel, NULL),
                     DCRF_OK);
    assert_energies(&energy, &expected.energy, expected.pair_scale);
    for (size_t m = 0; m < KERNELS; m++)
        assert_close(of_kernel[m], expected.of_kernel[m], expected.pair_scale);
    assert_int_equal(dcrf_energy_of_labels(s->plan, s->workspace, x, &again, NULL, NULL), DCRF_OK);
    assert_memory_equal(&again, &energy, sizeof energy);
    free(x);
}

static void the_energy_is_that_of_the_double_loop(void **state) {
    (void)state;
    const dcrf_grid grids[] = {dcrf_grid_2d(9, 7), dcrf_grid_3d(4, 3, 5), dcrf_grid_1d(40)};
    for (size_t g = 0; g < 3; g++) {
        dcrf_grid grid = grids[g];
        grid.spacing[0] = 1.25;
        struct scene s = new_scene(grid, 5, 1, true);
        check_labels(&s);
        /* Every compatibility on every kernel, and changed weights: the plan stays. */
        for (int kind = DCRF_COMPATIBILITY_MATRIX; kind >= DCRF_COMPATIBILITY_POTTS; kind--) {
            for (size_t m = 0; m < KERNELS; m++)
                set_compatibility(&s, m, (dcrf_compatibility)kind);
            check_labels(&s);
        }
        set_compatibility(&s, 1, DCRF_COMPATIBILITY_VECTOR);
        set_compatibility(&s, 2, DCRF_COMPATIBILITY_MATRIX);
        set_weight(&s, 0, 0);
        set_weight(&s, 2, 6.5);
        check_labels(&s);
        free_scene(&s);
    }
}

static void the_weight_of_a_kernel_without_pairs_is_nothing(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_1d(1), 3, 1, true);
    for (size_t m = 0; m < KERNELS; m++)
        set_compatibility(&s, m,
                          DCRF_COMPATIBILITY_MATRIX); /* the diagonal of K counts for no one */
    const uint16_t x[1] = {2};
    const float y[8] = {0.25f, 0.5f, 0.25f};
    dcrf_energy energy;
    assert_int_equal(dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, NULL, NULL), DCRF_OK);
    /* K Y and the diagonal are each rounded to float. */
    assert_true(energy.unary == s.unary[2] && fabs(energy.pairwise) < 1e-6);
    assert_int_equal(dcrf_energy_qp(s.plan, s.workspace, y, 8, &energy, NULL), DCRF_OK);
    assert_true(fabs(energy.pairwise) < 1e-6);
    for (size_t m = 0; m < KERNELS; m++)
        set_compatibility(&s, m, DCRF_COMPATIBILITY_POTTS);
    assert_int_equal(dcrf_energy_lp(s.plan, s.workspace, y, 8, 2, DCRF_CLIQUE_MIN, &energy, NULL),
                     DCRF_OK);
    assert_true(energy.pairwise == 0 && energy.cliques == 0);
    free_scene(&s);
}

static void one_label_costs_nothing_but_its_unary_energy(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(6, 5), 1, 2, true);
    const uint16_t x[30] = {0};
    dcrf_energy energy;
    assert_int_equal(dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, NULL, NULL), DCRF_OK);
    assert_true(energy.pairwise == 0 && energy.cliques == 0);
    assert_close(energy.total, naive_labels(&s, x).energy.unary, 30);
    free_scene(&s);
}

static void there_may_be_thousands_of_labels(void **state) {
    (void)state;
    const size_t labels[] = {4096, 65535};
    for (size_t k = 0; k < 2; k++) {
        struct scene s = new_scene(dcrf_grid_2d(11, 9), labels[k], 2, true);
        uint16_t x[99];
        for (size_t a = 0; a < 99; a++) /* 70 labels: three blocks */
            x[a] = (uint16_t)(labels[k] - 1 - a % 70 * 57);
        const struct naive expected = naive_labels(&s, x);
        dcrf_energy energy;
        assert_int_equal(dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, NULL, NULL),
                         DCRF_OK);
        assert_energies(&energy, &expected.energy, expected.pair_scale);
        float *y = new_indicators(&s, x, dcrf_padded(labels[k]));
        dcrf_energy qp, lp;
        assert_int_equal(dcrf_energy_qp(s.plan, s.workspace, y, dcrf_padded(labels[k]), &qp, NULL),
                         DCRF_OK);
        assert_energies(&qp, &energy, energy.pairwise);
        assert_int_equal(dcrf_energy_lp(s.plan, s.workspace, y, dcrf_padded(labels[k]), 2,
                                        DCRF_CLIQUE_MIN, &lp, NULL),
                         DCRF_OK);
        assert_energies(&lp, &energy, energy.pairwise);
        /* No N x M block was made: in and out are 32 channels wide. */
        assert_true(dcrf_workspace_bytes(s.workspace) <
                    64 * 99 * sizeof(float) + 6 * labels[k] + 100000);
        free(y);
        free_scene(&s);
    }
}

static void the_objectives_are_the_energy_where_y_is_integral(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(9, 7), 5, 2, true);
    uint16_t *x = new_labels(&s);
    const size_t stride = 16; /* wider than need be */
    float *y = new_indicators(&s, x, stride);
    dcrf_energy energy, relaxed;
    for (size_t bins = 2; bins <= DCRF_MAX_BINS; bins += 127)
        for (int form = DCRF_CLIQUE_MIN; form <= DCRF_CLIQUE_SPREAD; form++) {
            assert_int_equal(dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, NULL, NULL),
                             DCRF_OK);
            assert_int_equal(dcrf_energy_lp(s.plan, s.workspace, y, stride, bins,
                                            (dcrf_clique_form)form, &relaxed, NULL),
                             DCRF_OK);
            assert_energies(&relaxed, &energy, energy.pairwise);
        }
    assert_true(energy.cliques > 0 && energy.pairwise > 0);
    for (size_t m = 0; m < KERNELS; m++) {
        set_compatibility(&s, m, m % 2 ? DCRF_COMPATIBILITY_MATRIX : DCRF_COMPATIBILITY_VECTOR);
        const struct naive expected = naive_labels(&s, x);
        assert_int_equal(dcrf_energy_qp(s.plan, s.workspace, y, stride, &relaxed, NULL), DCRF_OK);
        assert_energies(&relaxed, &expected.energy, expected.pair_scale);
    }
    free(x);
    free(y);
    free_scene(&s);
}

static void the_qp_objective_is_that_of_the_double_loop(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(8, 6), 5, 2, true);
    const size_t stride = 8;
    float *y = new_fractional(&s, stride, false);
    for (int kind = DCRF_COMPATIBILITY_MATRIX; kind >= DCRF_COMPATIBILITY_POTTS; kind--) {
        double scale;
        dcrf_energy energy, expected;
        for (size_t m = 0; m < KERNELS; m++)
            set_compatibility(&s, m, (dcrf_compatibility)((kind + (int)(m % 2)) % 3));
        set_weight(&s, 1, 0.3 * kind);
        expected.unary = naive_unary(&s, y, stride);
        expected.pairwise = naive_qp_pairs(&s, y, stride, &scale);
        expected.cliques = naive_cliques(&s, y, stride, QP);
        assert_int_equal(dcrf_energy_qp(s.plan, s.workspace, y, stride, &energy, NULL), DCRF_OK);
        assert_energies(&energy, &expected, scale);
    }
    free(y);
    free_scene(&s);
}

static void the_lp_objective_is_that_of_the_double_loop(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(8, 6), 5, 2, true);
    const size_t stride = 8;
    float *y = new_fractional(&s, stride, false), *steps = new_fractional(&s, stride, true);
    double mass;
    dcrf_energy energy, expected, spread;
    const size_t bins[] = {2, 10, 16, 64, DCRF_MAX_BINS};
    for (size_t k = 0; k < 5; k++) {
        const double true_value = naive_lp_pairs(&s, y, stride, 0, &mass);
        expected.unary = naive_unary(&s, y, stride);
        expected.cliques = naive_cliques(&s, y, stride, LP_MIN);
        expected.pairwise = naive_lp_pairs(&s, y, stride, bins[k], &mass);
        assert_int_equal(
            dcrf_energy_lp(s.plan, s.workspace, y, stride, bins[k], DCRF_CLIQUE_MIN, &energy, NULL),
            DCRF_OK);
        assert_energies(&energy, &expected, mass);
        /* Never high, and low by no more than the header says. */
        assert_true(energy.pairwise <= true_value + TOLERANCE * mass);
        assert_true(energy.pairwise >=
                    true_value - mass / (double)bins[k] * (double)s.labels - TOLERANCE * mass);
        expected.cliques = naive_cliques(&s, y, stride, LP_SPREAD);
        assert_int_equal(dcrf_energy_lp(s.plan, s.workspace, y, stride, bins[k], DCRF_CLIQUE_SPREAD,
                                        &spread, NULL),
                         DCRF_OK);
        assert_energies(&spread, &expected, mass);
        assert_true(spread.cliques < energy.cliques);
    }
    /* 32 bins tell all multiples of 1 / 16 apart: exact. */
    expected.pairwise = naive_lp_pairs(&s, steps, stride, 0, &mass);
    expected.unary = naive_unary(&s, steps, stride);
    expected.cliques = naive_cliques(&s, steps, stride, LP_MIN);
    assert_int_equal(
        dcrf_energy_lp(s.plan, s.workspace, steps, stride, 32, DCRF_CLIQUE_MIN, &energy, NULL),
        DCRF_OK);
    assert_energies(&energy, &expected, mass);
    free(steps);
    free(y);
    free_scene(&s);
}

static void threads_do_not_change_a_byte(void **state) {
    (void)state;
    const size_t threads[] = {1, 2, 3, 8};
    dcrf_energy labels[4], qp[4], lp[4];
    double of_kernel[4][KERNELS];
    memset(labels, 0, sizeof labels);
    for (size_t t = 0; t < 4; t++) {
        /* 1200 variables: two chunks of the sums. */
        struct scene s = new_scene(dcrf_grid_2d(40, 30), 5, threads[t], false);
        uint16_t *x = new_labels(&s);
        float *y = new_fractional(&s, 8, false);
        assert_int_equal(
            dcrf_energy_of_labels(s.plan, s.workspace, x, &labels[t], of_kernel[t], NULL), DCRF_OK);
        assert_int_equal(dcrf_energy_qp(s.plan, s.workspace, y, 8, &qp[t], NULL), DCRF_OK);
        assert_int_equal(
            dcrf_energy_lp(s.plan, s.workspace, y, 8, 16, DCRF_CLIQUE_MIN, &lp[t], NULL), DCRF_OK);
        assert_memory_equal(&labels[t], &labels[0], sizeof labels[0]);
        assert_memory_equal(of_kernel[t], of_kernel[0], sizeof of_kernel[0]);
        assert_memory_equal(&qp[t], &qp[0], sizeof qp[0]);
        assert_memory_equal(&lp[t], &lp[0], sizeof lp[0]);
        free(x);
        free(y);
        free_scene(&s);
    }
}

/* ---- plans -------------------------------------------------------------------------------------
 */

static void a_plan_applies_all_kernels_without_their_diagonal(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(7, 6), 3, 2, true);
    const size_t n = s.variables, channels = 5, stride = 8;
    float *in = calloc(n * stride, sizeof *in), *out = calloc(n * stride, sizeof *out);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 3);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < channels; c++)
            in[a * stride + c] = (float)(2 * dcrf_rng_uniform(&rng) - 1);
    for (int round = 0; round < 3; round++) {
        if (round == 1) {
            set_weight(&s, 0, 0);
            set_weight(&s, 3, 9);
        }
        for (size_t m = 0; round == 2 && m < KERNELS; m++)
            set_weight(&s, m, 0);
        assert_int_equal(dcrf_plan_apply(s.plan, s.workspace, in, out, channels, stride, NULL),
                         DCRF_OK);
        for (size_t a = 0; a < n; a++)
            for (size_t c = 0; c < channels; c++) {
                double expected = 0, scale = 0;
                for (size_t b = 0; b < n; b++)
                    for (size_t m = 0; m < KERNELS; m++) {
                        const double k = s.weight[m] * s.matrix[m][a * n + b];
                        expected += a == b ? 0 : k * (double)in[b * stride + c];
                        scale += k;
                    }
                assert_close((double)out[a * stride + c], expected, scale);
            }
    }
    free(in);
    free(out);
    free_scene(&s);
}

static void a_plan_knows_its_model(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(7, 6), 3, 1, false);
    size_t bytes = 0;
    assert_ptr_equal(dcrf_plan_model(s.plan), s.model);
    for (size_t m = 0; m < KERNELS; m++) {
        assert_int_equal(dcrf_operator_variables(dcrf_plan_operator(s.plan, m)), 42);
        bytes += dcrf_operator_bytes(dcrf_plan_operator(s.plan, m)) + 42 * sizeof(float);
    }
    assert_null(dcrf_plan_operator(s.plan, KERNELS));
    assert_true(dcrf_plan_bytes(s.plan) >= bytes && dcrf_plan_bytes(s.plan) < bytes + 1000);
    dcrf_plan *none = NULL;
    dcrf_error error;
    assert_fails(DCRF_ERROR_ARGUMENT, "a plan needs a model", error,
                 dcrf_plan_new(&none, NULL, DCRF_OPERATOR_EXACT, s.workspace, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "a plan needs a workspace", error,
                 dcrf_plan_new(&none, s.model, DCRF_OPERATOR_EXACT, NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "77 is not a kind", error,
                 dcrf_plan_new(&none, s.model, (dcrf_operator_kind)77, s.workspace, &error));
    /* Fails at the second kernel, with the first one built. */
    assert_true(dcrf_plan_new(&none, s.model, DCRF_OPERATOR_GRID, s.workspace, &error) ==
                DCRF_ERROR_UNSUPPORTED);
    assert_null(none);
    dcrf_plan_free(&none);
    dcrf_plan_free(NULL);
    free_scene(&s);
}

static void a_model_without_kernels_and_cliques_has_unary_energies(void **state) {
    (void)state;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
    dcrf_energy energy;
    const dcrf_grid grid = dcrf_grid_1d(3);
    const double unary[] = {1, 2, 3, 4, 5, 6};
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F64, &grid, 2);
    const uint16_t x[] = {1, 0, 1};
    const float y[24] = {[0] = 0.5f, [1] = 0.5f, [8] = 1, [17] = 1};
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&model, &grid, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_energy_of_labels(plan, workspace, x, &energy, NULL, NULL), DCRF_OK);
    assert_true(energy.total == 11 && energy.pairwise == 0 && energy.cliques == 0);
    assert_int_equal(dcrf_energy_qp(plan, workspace, y, 8, &energy, NULL), DCRF_OK);
    assert_true(energy.total == 10.5);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
}

/* ---- what is refused ---------------------------------------------------------------------------
 */

static void bad_labellings_are_refused(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(4, 3), 3, 1, false);
    dcrf_error error;
    dcrf_energy energy = {1, 2, 3, 4};
    double of_kernel[KERNELS + 1] = {5, 6, 7, 8, 9};
    uint16_t x[12] = {0};
    float y[12 * 8] = {0};
    for (size_t a = 0; a < 12; a++)
        y[a * 8 + 2] = 1;
    x[7] = 3;
    assert_fails(DCRF_ERROR_ARGUMENT, "variable 7 has label 3; the model has 3 labels", error,
                 dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, of_kernel, &error));
    x[7] = 0;
    assert_fails(DCRF_ERROR_ARGUMENT, "needs", error,
                 dcrf_energy_of_labels(s.plan, s.workspace, NULL, &energy, NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "needs", error,
                 dcrf_energy_qp(s.plan, s.workspace, NULL, 8, &energy, &error));
#define qp() dcrf_energy_qp(s.plan, s.workspace, y, 8, &energy, &error)
#define lp(bins, form) dcrf_energy_lp(s.plan, s.workspace, y, 8, bins, form, &energy, &error)
    y[5 * 8 + 1] = NAN;
    assert_fails(DCRF_ERROR_NOT_FINITE, "y holds nan at variable 5, label 1", error, qp());
    assert_fails(DCRF_ERROR_NOT_FINITE, "nan at variable 5", error, lp(8, DCRF_CLIQUE_MIN));
    y[5 * 8 + 1] = -0.5f;
    assert_fails(DCRF_ERROR_ARGUMENT, "y holds -0.5 at variable 5, label 1", error, qp());
    y[5 * 8 + 1] = 0.5f;
    assert_fails(DCRF_ERROR_ARGUMENT, "variable 5 has the sum 1.5", error, qp());
    y[5 * 8 + 1] = 0;
    assert_fails(DCRF_ERROR_SIZE, "stride of 2 floats; the model has 3 labels", error,
                 dcrf_energy_qp(s.plan, s.workspace, y, 2, &energy, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "2 to 256 bins, not 1", error, lp(1, DCRF_CLIQUE_MIN));
    assert_fails(DCRF_ERROR_ARGUMENT, "not 257", error, lp(257, DCRF_CLIQUE_MIN));
    assert_fails(DCRF_ERROR_ARGUMENT, "5 is not a form", error, lp(8, (dcrf_clique_form)5));
    set_compatibility(&s, 1, DCRF_COMPATIBILITY_MATRIX);
    assert_fails(DCRF_ERROR_UNSUPPORTED,
                 "the LP relaxation needs Potts compatibilities; kernel 1 has a matrix", error,
                 lp(8, DCRF_CLIQUE_MIN));
    set_compatibility(&s, 1, DCRF_COMPATIBILITY_VECTOR);
    assert_fails(DCRF_ERROR_UNSUPPORTED, "kernel 1 has a vector", error, lp(8, DCRF_CLIQUE_MIN));
    set_compatibility(&s, 1, DCRF_COMPATIBILITY_POTTS);

    const dcrf_kernel kernel = dcrf_kernel_spatial(1, 1);
    assert_int_equal(dcrf_model_add_kernel(s.model, &kernel, NULL), DCRF_OK);
    const char stale[] = "made when the model had 4 kernels; it has 5 now";
    assert_fails(DCRF_ERROR_SIZE, stale, error,
                 dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, of_kernel, &error));
    assert_fails(DCRF_ERROR_SIZE, stale, error, qp());
    assert_fails(DCRF_ERROR_SIZE, stale, error, lp(8, DCRF_CLIQUE_MIN));
    assert_fails(DCRF_ERROR_SIZE, stale, error,
                 dcrf_plan_apply(s.plan, s.workspace, y, y, 3, 8, &error));
#undef qp
#undef lp
    /* Nothing was written. */
    assert_true(energy.total == 1 && energy.unary == 2 && energy.pairwise == 3 &&
                energy.cliques == 4);
    for (size_t m = 0; m <= KERNELS; m++)
        assert_true(of_kernel[m] == (double)(5 + m));
    free_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_energy_is_that_of_the_double_loop),
        cmocka_unit_test(the_weight_of_a_kernel_without_pairs_is_nothing),
        cmocka_unit_test(one_label_costs_nothing_but_its_unary_energy),
        cmocka_unit_test(there_may_be_thousands_of_labels),
        cmocka_unit_test(the_objectives_are_the_energy_where_y_is_integral),
        cmocka_unit_test(the_qp_objective_is_that_of_the_double_loop),
        cmocka_unit_test(the_lp_objective_is_that_of_the_double_loop),
        cmocka_unit_test(threads_do_not_change_a_byte),
        cmocka_unit_test(a_plan_applies_all_kernels_without_their_diagonal),
        cmocka_unit_test(a_plan_knows_its_model),
        cmocka_unit_test(a_model_without_kernels_and_cliques_has_unary_energies),
        cmocka_unit_test(bad_labellings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
