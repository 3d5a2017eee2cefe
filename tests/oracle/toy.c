#include "toy.h"

#include <math.h>
#include <stdlib.h>

#define DIMENSIONS 2

/* The exact operator in double: the matrix of one kernel; the diagonal is removed at the end. */
static double *new_matrix(const float *features, size_t n, bool normalized, double weight) {
    double *matrix = malloc(n * n * sizeof *matrix), *mass = calloc(n, sizeof *mass);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            double squared = 0;
            for (size_t d = 0; d < DIMENSIONS; d++) {
                const double difference =
                    (double)features[a * DIMENSIONS + d] - (double)features[b * DIMENSIONS + d];
                squared += difference * difference;
            }
            mass[a] += matrix[a * n + b] = exp(-squared / 2);
        }
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            const double scale = normalized ? 1 / sqrt(mass[a] * mass[b]) : 1;
            matrix[a * n + b] = a == b ? 0 : weight * scale * matrix[a * n + b];
        }
    free(mass);
    return matrix;
}

static void build(struct toy *toy, float *const features[TOY_KERNELS], const bool *normalized,
                  const double *weights, size_t threads) {
    const dcrf_grid grid = dcrf_grid_1d(toy->variables);
    assert_int_equal(dcrf_model_new(&toy->model, &grid, toy->labels, NULL), DCRF_OK);
    const dcrf_view unary = dcrf_view_interleaved(toy->unary, DCRF_F64, &grid, toy->labels);
    assert_int_equal(dcrf_model_set_unary(toy->model, &unary, NULL), DCRF_OK);
    for (size_t m = 0; m < TOY_KERNELS; m++) {
        dcrf_kernel kernel = dcrf_kernel_features(
            dcrf_view_interleaved(features[m], DCRF_F32, &grid, DIMENSIONS), weights[m]);
        kernel.normalization = normalized[m] ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
        assert_int_equal(dcrf_model_add_kernel(toy->model, &kernel, NULL), DCRF_OK);
        toy->matrix[m] = new_matrix(features[m], toy->variables, normalized[m], weights[m]);
    }
    if (toy->values)
        assert_int_equal(dcrf_model_set_compatibility(toy->model, 1, DCRF_COMPATIBILITY_MATRIX,
                                                      toy->values, NULL),
                         DCRF_OK);
    assert_int_equal(dcrf_model_set_cliques(toy->model, toy->cliques, toy->offsets, toy->members,
                                            toy->costs, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&toy->workspace, threads, NULL), DCRF_OK);
    assert_int_equal(
        dcrf_plan_new(&toy->plan, toy->model, DCRF_OPERATOR_EXACT, toy->workspace, NULL), DCRF_OK);
}

static void draw_cliques(struct toy *toy, dcrf_rng *rng) {
    const size_t n = toy->variables;
    size_t *order = malloc(n * sizeof *order);
    for (size_t a = 0; a < n; a++)
        order[a] = a;
    for (size_t a = n - 1; a > 0; a--) {
        const size_t b = (size_t)(dcrf_rng_uniform(rng) * (double)(a + 1));
        const size_t kept = order[a];
        order[a] = order[b];
        order[b] = kept;
    }
    toy->offsets = calloc(toy->cliques + 1, sizeof *toy->offsets);
    toy->members = order;
    toy->costs = calloc(toy->cliques + 1, sizeof *toy->costs);
    /* Sizes differ: the first clique is the smallest and may have one member. */
    const size_t covered = n / 2 + (size_t)(dcrf_rng_uniform(rng) * (double)(n / 2));
    const size_t shares = toy->cliques * (toy->cliques + 1) / 2;
    for (size_t p = 0; p < toy->cliques; p++) {
        size_t size = covered * (p + 1) / shares;
        size = size ? size : 1;
        toy->offsets[p + 1] = toy->offsets[p] + size;
        toy->costs[p] = 4 * dcrf_rng_uniform(rng);
    }
}

struct toy new_toy(uint64_t seed, size_t variables, size_t labels, size_t cliques, double strength,
                   enum toy_pairs pairs, size_t threads) {
    struct toy toy = {.variables = variables, .labels = labels};
    toy.cliques = cliques < variables / 2 ? cliques : variables / 2;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    toy.unary = malloc(variables * labels * sizeof *toy.unary);
    for (size_t k = 0; k < variables * labels; k++)
        toy.unary[k] = (double)(float)(4 * dcrf_rng_uniform(&rng));
    float *features[TOY_KERNELS];
    bool normalized[TOY_KERNELS];
    double weights[TOY_KERNELS];
    for (size_t m = 0; m < TOY_KERNELS; m++) {
        features[m] = malloc(variables * DIMENSIONS * sizeof **features);
        for (size_t k = 0; k < variables * DIMENSIONS; k++)
            features[m][k] = (float)(4 * dcrf_rng_uniform(&rng));
        normalized[m] = dcrf_rng_uniform(&rng) < 0.5;
        weights[m] = strength * (0.2 + dcrf_rng_uniform(&rng));
    }
    if (pairs != TOY_POTTS)
        toy.values = malloc(labels * labels * sizeof *toy.values);
    if (pairs == TOY_MULTIPLE) {
        const float c = (float)(0.25 + 2 * dcrf_rng_uniform(&rng));
        for (size_t k = 0; k < labels * labels; k++)
            toy.values[k] = k / labels == k % labels ? 0 : c;
    }
    if (pairs == TOY_GENERAL)
        for (size_t i = 0; i < labels; i++)
            for (size_t j = 0; j <= i; j++)
                toy.values[i * labels + j] = toy.values[j * labels + i] =
                    (float)(2 * dcrf_rng_uniform(&rng) - 1);
    draw_cliques(&toy, &rng);
    build(&toy, features, normalized, weights, threads);
    for (size_t m = 0; m < TOY_KERNELS; m++)
        free(features[m]);
    return toy;
}

void free_toy(struct toy *toy) {
    dcrf_plan_free(&toy->plan);
    dcrf_model_free(&toy->model);
    dcrf_workspace_free(&toy->workspace);
    for (size_t m = 0; m < TOY_KERNELS; m++)
        free(toy->matrix[m]);
    free(toy->unary);
    free(toy->values);
    free(toy->offsets);
    free(toy->members);
    free(toy->costs);
}

void change_toy(struct toy *toy, const double *constants, const size_t *renaming) {
    const dcrf_grid grid = dcrf_grid_1d(toy->variables);
    const size_t labels = toy->labels;
    double *unary = malloc(toy->variables * labels * sizeof *unary);
    for (size_t a = 0; a < toy->variables; a++)
        for (size_t i = 0; i < labels; i++)
            unary[a * labels + renaming[i]] = toy->unary[a * labels + i] + constants[a];
    free(toy->unary);
    toy->unary = unary;
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F64, &grid, labels);
    assert_int_equal(dcrf_model_set_unary(toy->model, &view, NULL), DCRF_OK);
    if (!toy->values)
        return;
    float *values = malloc(labels * labels * sizeof *values);
    for (size_t i = 0; i < labels; i++)
        for (size_t j = 0; j < labels; j++)
            values[renaming[i] * labels + renaming[j]] = toy->values[i * labels + j];
    free(toy->values);
    toy->values = values;
    assert_int_equal(
        dcrf_model_set_compatibility(toy->model, 1, DCRF_COMPATIBILITY_MATRIX, values, NULL),
        DCRF_OK);
}

double toy_mu(const struct toy *toy, size_t kernel, size_t i, size_t j) {
    return kernel == 1 && toy->values ? (double)toy->values[i * toy->labels + j] : i != j;
}

static double clique_costs(const struct toy *toy, const uint16_t *labels) {
    double sum = 0;
    for (size_t p = 0; p < toy->cliques; p++) {
        bool agree = true;
        for (size_t c = toy->offsets[p]; c < toy->offsets[p + 1]; c++)
            agree &= labels[toy->members[c]] == labels[toy->members[toy->offsets[p]]];
        sum += agree ? 0 : toy->costs[p];
    }
    return sum;
}

/* What variable a adds to the energy of the variables before it. */
static double own_energy(const struct toy *toy, const uint16_t *labels, size_t a) {
    const size_t n = toy->variables;
    double energy = toy->unary[a * toy->labels + labels[a]];
    for (size_t m = 0; m < TOY_KERNELS; m++)
        for (size_t b = 0; b < a; b++)
            energy += (toy->matrix[m][a * n + b] + toy->matrix[m][b * n + a]) *
                      toy_mu(toy, m, labels[a], labels[b]);
    return energy;
}

double toy_energy(const struct toy *toy, const uint16_t *labels) {
    double energy = clique_costs(toy, labels);
    for (size_t a = 0; a < toy->variables; a++)
        energy += own_energy(toy, labels, a);
    return energy;
}

static void descend(const struct toy *toy, uint16_t *labels, size_t depth, double energy,
                    double *lowest, uint16_t *best) {
    if (depth == toy->variables) {
        energy += clique_costs(toy, labels);
        if (energy < *lowest) {
            *lowest = energy;
            if (best)
                memcpy(best, labels, toy->variables * sizeof *best);
        }
        return;
    }
    for (size_t i = 0; i < toy->labels; i++) {
        labels[depth] = (uint16_t)i;
        descend(toy, labels, depth + 1, energy + own_energy(toy, labels, depth), lowest, best);
    }
}

double toy_optimum(const struct toy *toy, uint16_t *best) {
    uint16_t *labels = calloc(toy->variables, sizeof *labels);
    double lowest = (double)INFINITY;
    descend(toy, labels, 0, 0, &lowest, best);
    free(labels);
    return lowest;
}

double toy_psi(const struct toy *toy, const float *y, size_t stride, size_t a, size_t i) {
    const size_t n = toy->variables;
    double sum = 0;
    for (size_t m = 0; m < TOY_KERNELS; m++)
        for (size_t b = 0; b < n; b++)
            for (size_t j = 0; j < toy->labels; j++)
                sum += toy->matrix[m][a * n + b] * toy_mu(toy, m, i, j) * (double)y[b * stride + j];
    return sum;
}

double toy_lp_objective(const struct toy *toy, const float *y, dcrf_clique_form form) {
    const size_t n = toy->variables, labels = toy->labels;
    double sum = 0;
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++) {
            sum += toy->unary[a * labels + i] * (double)y[a * labels + i];
            for (size_t b = 0; b < a; b++)
                sum += (toy->matrix[0][a * n + b] + toy->matrix[1][a * n + b]) *
                       fabs((double)y[a * labels + i] - (double)y[b * labels + i]);
        }
    for (size_t p = 0; p < toy->cliques; p++) {
        double widest = 0, smallest_sum = 0;
        for (size_t i = 0; i < labels; i++) {
            double low = 2, high = -1;
            for (size_t k = toy->offsets[p]; k < toy->offsets[p + 1]; k++) {
                low = fmin(low, (double)y[toy->members[k] * labels + i]);
                high = fmax(high, (double)y[toy->members[k] * labels + i]);
            }
            widest = fmax(widest, high - low);
            smallest_sum += low;
        }
        sum += toy->costs[p] * (form == DCRF_CLIQUE_MIN ? 1 - smallest_sum : widest);
    }
    return sum;
}
