#include "metric_toy.h"

#include "unit.h"

#include "filter/plan.h"
#include "model/cuts.h"
#include "model/model.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <stdlib.h>

#define MOST_LABELLINGS 5000

static long double mu_of(const struct metric_toy *p, size_t kernel, size_t i, size_t j) {
    const struct dcrf_model_kernel *k = &p->model->kernels[kernel];
    if (k->compatibility == DCRF_COMPATIBILITY_POTTS)
        return i != j;
    return (long double)k->compatibility_values[i * p->labels + j];
}

static void read_matrices(struct metric_toy *p) {
    double in[METRIC_TOY_VARIABLES], out[METRIC_TOY_VARIABLES];
    for (size_t k = 0; k < p->model->kernel_count; k++) {
        const dcrf_operator *op = dcrf_plan_operator(p->plan, k);
        for (size_t b = 0; b < p->variables; b++) {
            for (size_t a = 0; a < p->variables; a++)
                in[a] = a == b;
            assert_int_equal(op->methods->apply_double(op, p->workspace, in, out, 1, NULL),
                             DCRF_OK);
            for (size_t a = 0; a < p->variables; a++)
                p->matrix[k][a][b] = (long double)p->model->kernels[k].weight * (long double)out[a];
        }
    }
}

/* ---- compatibilities of all kinds ----------------------------------------------------------- */

static void draw_tree(struct metric_toy *p, size_t kernel, dcrf_rng *rng) {
    const size_t nodes = p->labels + dcrf_rng_next(rng) % 4;
    size_t ends[2 * (METRIC_TOY_LABELS + 4)];
    double lengths[METRIC_TOY_LABELS + 4];
    for (size_t v = 1; v < nodes; v++) {
        ends[2 * v - 2] = v;
        ends[2 * v - 1] = dcrf_rng_next(rng) % v;
        lengths[v - 1] = 2 * dcrf_rng_uniform(rng);
    }
    assert_int_equal(dcrf_model_set_tree(p->model, kernel, nodes - 1, ends, lengths, NULL),
                     DCRF_OK);
}

static void draw_cuts(struct metric_toy *p, size_t kernel, dcrf_rng *rng) {
    unsigned char sets[6 * METRIC_TOY_LABELS];
    double lengths[6];
    const size_t count = dcrf_rng_next(rng) % 7;
    for (size_t k = 0; k < count * p->labels; k++)
        sets[k] = dcrf_rng_next(rng) % 2;
    for (size_t c = 0; c < count; c++)
        lengths[c] = dcrf_rng_uniform(rng);
    assert_int_equal(dcrf_model_set_cuts(p->model, kernel, count, sets, lengths, NULL), DCRF_OK);
}

/* Distances of points in a plane (L1 or Euclidean), or arbitrary numbers. */
static void draw_matrix(struct metric_toy *p, size_t kernel, dcrf_rng *rng) {
    float matrix[METRIC_TOY_LABELS * METRIC_TOY_LABELS];
    double point[METRIC_TOY_LABELS][2];
    const size_t kind = dcrf_rng_next(rng) % 3;
    for (size_t i = 0; i < p->labels; i++)
        for (size_t d = 0; d < 2; d++)
            point[i][d] = 2 * dcrf_rng_uniform(rng);
    for (size_t i = 0; i < p->labels; i++)
        for (size_t j = 0; j <= i; j++) {
            const double x = fabs(point[i][0] - point[j][0]), y = fabs(point[i][1] - point[j][1]);
            const double value = kind == 0   ? x + y
                                 : kind == 1 ? sqrt(x * x + y * y)
                                             : 2 * dcrf_rng_uniform(rng);
            matrix[i * p->labels + j] = matrix[j * p->labels + i] = i == j ? 0 : (float)value;
        }
    assert_int_equal(
        dcrf_model_set_compatibility(p->model, kernel, DCRF_COMPATIBILITY_MATRIX, matrix, NULL),
        DCRF_OK);
}

static void draw_compatibility(struct metric_toy *p, size_t kernel, dcrf_rng *rng) {
    switch (dcrf_rng_next(rng) % 6) {
    case 0:
        assert_int_equal(dcrf_model_set_linear(p->model, kernel, INFINITY, NULL), DCRF_OK);
        break;
    case 1:
        assert_int_equal(
            dcrf_model_set_linear(p->model, kernel, 0.5 + 3 * dcrf_rng_uniform(rng), NULL),
            DCRF_OK);
        break;
    case 2:
        draw_tree(p, kernel, rng);
        break;
    case 3:
        draw_cuts(p, kernel, rng);
        break;
    case 4:
        draw_matrix(p, kernel, rng);
        break;
    default:
        break; /* Potts */
    }
}

/* ---- models --------------------------------------------------------------------------------- */

/* (A alpha)_ai of the labelling, with every pair that a cut separates saturated: the sums
 * subtracted from the unaries. For matrices, the cuts are those that the LP finds. */
static long double saturated(const struct metric_toy *p, size_t a, size_t i) {
    long double sum = 0;
    for (size_t k = 0; k < p->model->kernel_count; k++) {
        const struct dcrf_cuts *cuts;
        struct dcrf_cuts *own;
        dcrf_left_out left_out;
        uint8_t sets[1024 * METRIC_TOY_LABELS];
        assert_int_equal(dcrf_model_find_cuts(p->model, k, &cuts, &own, &left_out, NULL), DCRF_OK);
        if (cuts)
            dcrf_cuts_sets(cuts, sets);
        for (size_t c = 0; c < (cuts ? cuts->count : p->labels); c++) {
            if (cuts ? !sets[c * p->labels + i] : c != i)
                continue;
            for (size_t b = 0; b < p->variables; b++) {
                const int one = cuts ? sets[c * p->labels + p->hidden[a]] : p->hidden[a] == c;
                const int other = cuts ? sets[c * p->labels + p->hidden[b]] : p->hidden[b] == c;
                sum += p->matrix[k][a][b] * (long double)(other - one) *
                       (cuts ? 2 * (long double)cuts->lengths[c] : 1);
            }
        }
        dcrf_cuts_free(&own);
    }
    return sum;
}

static void draw_unaries(struct metric_toy *p, bool is_tight, dcrf_rng *rng) {
    const dcrf_grid grid = *dcrf_model_grid(p->model);
    for (size_t a = 0; a < p->variables; a++) {
        p->hidden[a] = (uint16_t)(dcrf_rng_next(rng) % p->labels);
        for (size_t i = 0; i < p->labels; i++)
            p->unary[a * p->labels + i] = (float)(4 * dcrf_rng_uniform(rng));
    }
    for (size_t a = 0; is_tight && a < p->variables; a++)
        for (size_t i = 0; i < p->labels; i++)
            p->unary[a * p->labels + i] =
                (float)(saturated(p, a, i) + (i == p->hidden[a] ? 0 : 0.1L));
    const dcrf_view view = dcrf_view_interleaved(p->unary, DCRF_F32, &grid, p->labels);
    assert_int_equal(dcrf_model_set_unary(p->model, &view, NULL), DCRF_OK);
}

static void draw_cliques(struct metric_toy *p, dcrf_rng *rng) {
    int32_t map[METRIC_TOY_VARIABLES];
    const dcrf_grid grid = *dcrf_model_grid(p->model);
    for (size_t a = 0; a < p->variables; a++)
        map[a] = (int32_t)(dcrf_rng_next(rng) % 3) - 1;
    const dcrf_view view = dcrf_view_interleaved(map, DCRF_I32, &grid, 1);
    assert_int_equal(dcrf_model_set_clique_map(p->model, &view, 2 * dcrf_rng_uniform(rng), NULL),
                     DCRF_OK);
}

struct metric_toy metric_toy_make(uint64_t seed, enum metric_toy_kind kind, bool has_cliques,
                                  dcrf_rng *rng) {
    struct metric_toy p = {.labels = 2 + dcrf_rng_next(rng) % (METRIC_TOY_LABELS - 1)};
    p.variables = METRIC_TOY_VARIABLES;
    while (pow((double)p.labels, (double)p.variables) > MOST_LABELLINGS)
        p.variables--;
    const dcrf_grid grid = dcrf_grid_1d(p.variables);
    float features[METRIC_TOY_KERNELS][2 * METRIC_TOY_VARIABLES];
    assert_int_equal(dcrf_workspace_new(&p.workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&p.model, &grid, p.labels, NULL), DCRF_OK);
    const size_t kernels = 1 + dcrf_rng_next(rng) % METRIC_TOY_KERNELS;
    dcrf_rng before = *rng; /* the compatibility has been drawn */
    for (size_t k = 0; k < kernels; k++) {
        for (size_t i = 0; i < 2 * METRIC_TOY_VARIABLES; i++)
            features[k][i] = (float)(3 * dcrf_rng_uniform(rng));
        const double weight = pow(10, 3 * dcrf_rng_uniform(rng) - 1.5);
        dcrf_kernel kernel =
            seed % 3 == 0 ? dcrf_kernel_spatial(1 + dcrf_rng_uniform(rng), weight)
                          : dcrf_kernel_features(
                                dcrf_view_interleaved(features[k], DCRF_F32, &grid, 2), weight);
        kernel.normalization =
            dcrf_rng_next(rng) % 2 ? DCRF_NORMALIZE_NONE : DCRF_NORMALIZE_SYMMETRIC;
        assert_int_equal(dcrf_model_add_kernel(p.model, &kernel, NULL), DCRF_OK);
        if (kind == METRIC_TOY_SAME && k > 0)
            *rng = before;
        before = *rng;
        draw_compatibility(&p, k, rng);
    }
    if (has_cliques)
        draw_cliques(&p, rng);
    assert_int_equal(dcrf_plan_new(&p.plan, p.model,
                                   seed % 2 ? DCRF_OPERATOR_EXACT : DCRF_OPERATOR_FAST, p.workspace,
                                   NULL),
                     DCRF_OK);
    read_matrices(&p);
    draw_unaries(&p, kind == METRIC_TOY_TIGHT, rng);
    return p;
}

void metric_toy_clear(struct metric_toy *p) {
    dcrf_plan_free(&p->plan);
    dcrf_model_free(&p->model);
    dcrf_workspace_free(&p->workspace);
}

/* ---- what cuts leave out -------------------------------------------------------------------- */

/* mu - d of two labels. */
static long double left_out_of(const struct metric_toy *p, const struct dcrf_cuts *cuts,
                               const uint8_t *sets, size_t kernel, size_t i, size_t j) {
    long double rest = mu_of(p, kernel, i, j);
    for (size_t c = 0; c < cuts->count; c++)
        if (sets[c * p->labels + i] != sets[c * p->labels + j])
            rest -= (long double)cuts->lengths[c];
    return rest;
}

struct metric_toy_left_out metric_toy_left_out(const struct metric_toy *p, const uint16_t *x) {
    struct metric_toy_left_out found = {0};
    for (size_t k = 0; k < p->model->kernel_count; k++) {
        const struct dcrf_cuts *cuts;
        struct dcrf_cuts *own;
        dcrf_left_out left_out;
        uint8_t sets[1024 * METRIC_TOY_LABELS];
        assert_int_equal(dcrf_model_find_cuts(p->model, k, &cuts, &own, &left_out, NULL), DCRF_OK);
        if (!own)
            continue;
        dcrf_cuts_sets(own, sets);
        for (size_t i = 0; i < p->labels; i++)
            for (size_t j = 0; j < i; j++) {
                const long double part = left_out_of(p, own, sets, k, i, j);
                if (part > 1e-6L * mu_of(p, k, i, j))
                    found.fraction = fmaxl(found.fraction, part / mu_of(p, k, i, j));
            }
        for (size_t a = 0; a < p->variables; a++)
            for (size_t b = 0; b < p->variables; b++)
                if (a != b)
                    found.energy += p->matrix[k][a][b] * left_out_of(p, own, sets, k, x[a], x[b]);
        dcrf_cuts_free(&own);
    }
    return found;
}

/* ---- by enumeration ------------------------------------------------------------------------- */

long double metric_toy_energy(const struct metric_toy *p, const uint16_t *x) {
    const struct dcrf_cliques *cliques = &p->model->cliques;
    long double energy = 0;
    for (size_t a = 0; a < p->variables; a++) {
        energy += (long double)p->unary[a * p->labels + x[a]];
        for (size_t k = 0; k < p->model->kernel_count; k++)
            for (size_t b = 0; b < p->variables; b++)
                if (a != b)
                    energy += p->matrix[k][a][b] * mu_of(p, k, x[a], x[b]);
    }
    for (size_t c = 0; c < cliques->count; c++)
        for (size_t k = cliques->offsets[c]; k < cliques->offsets[c + 1]; k++)
            if (x[cliques->members[k]] != x[cliques->members[cliques->offsets[c]]]) {
                energy += (long double)cliques->costs[c];
                break;
            }
    return energy;
}

long double metric_toy_optimum(const struct metric_toy *p, uint16_t *best) {
    uint16_t x[METRIC_TOY_VARIABLES] = {0};
    long double least = INFINITY;
    for (;;) {
        const long double energy = metric_toy_energy(p, x);
        if (energy < least)
            memcpy(best, x, sizeof x);
        least = energy < least ? energy : least;
        size_t a = 0;
        while (a < p->variables && ++x[a] == p->labels)
            x[a++] = 0;
        if (a == p->variables)
            return least;
    }
}
