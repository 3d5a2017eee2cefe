#include "scene.h"
#include "dense.h"

#include "core/rng.h"

#include <math.h>
#include <stdlib.h>

#define CHANNELS 3
#define FEATURES 4

void assert_close(double value, double expected, double scale) {
    if (!(fabs(value - expected) <= TOLERANCE * fmax(fabs(scale), 1e-3)))
        fail_msg("%.12g is not %.12g", value, expected);
}

/* ---- a scene: a model with every kind of kernel, and its matrices --------------------------- */

struct scene new_scene(dcrf_grid grid, size_t labels, size_t threads, dcrf_operator_kind kind,
                       enum matrices matrices) {
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
    for (size_t m = 0; matrices == FORMULA && m < KERNELS; m++)
        s.matrix[m] = dense_of_kernel(&grid, &kernels[m]);
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
    assert_int_equal(dcrf_plan_new(&s.plan, s.model, kind, s.workspace, NULL), DCRF_OK);
    for (size_t m = 0; matrices == OPERATORS && m < KERNELS; m++)
        s.matrix[m] = dense_of_operator(dcrf_plan_operator(s.plan, m), s.workspace, DCRF_SYMMETRIC);
    return s;
}

void free_scene(struct scene *s) {
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

void set_compatibility(struct scene *s, size_t m, dcrf_compatibility compatibility) {
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

void set_weight(struct scene *s, size_t m, double weight) {
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

/* ---- naive energies ------------------------------------------------------------------------- */

struct naive naive_labels(const struct scene *s, const uint16_t *x) {
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

/* ---- labellings ----------------------------------------------------------------------------- */

uint16_t *new_labels(const struct scene *s) {
    uint16_t *x = malloc(s->variables * sizeof *x);
    for (size_t a = 0; a < s->variables; a++)
        /* Runs, so that some cliques agree; label 1 never occurs. */
        x[a] = (uint16_t)(a / 3 * 2 % s->labels == 1 ? 0 : a / 3 * 2 % s->labels);
    return x;
}
