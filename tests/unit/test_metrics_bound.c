/* The LP's bound for distances between labels is never above the optimum: not by a rounding, not by
 * anything.
 *
 * The optimum is that of the matrices that the operators themselves apply: their columns, from unit
 * vectors in double, with the model's own mu, and all sums over them in long double, over all
 * labellings. No comparison here has a tolerance in the direction that matters.
 *
 * Some models are made tight: their unaries are such that the dual point of a labelling (pairs that
 * a cut tells apart are saturated) has its reduced costs smallest where the labelling is. Then the
 * bound of that point, computed without error, is the optimum, and one that rounds the wrong way is
 * above it. */
#include "unit.h"

#include "core/rng.h"
#include "filter/plan.h"
#include "model/cuts.h"
#include "model/model.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <math.h>
#include <stdlib.h>

#define MOST_VARIABLES 8
#define MOST_LABELS 8
#define KERNELS 2
#define MOST_LABELLINGS 5000

struct problem {
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
    size_t variables, labels;
    float unary[MOST_VARIABLES * MOST_LABELS];
    long double matrix[KERNELS][MOST_VARIABLES][MOST_VARIABLES]; /* with the weights */
    uint16_t hidden[MOST_VARIABLES];                             /* of a tight model */
};

static long double mu_of(const struct problem *p, size_t kernel, size_t i, size_t j) {
    const struct dcrf_model_kernel *k = &p->model->kernels[kernel];
    if (k->compatibility == DCRF_COMPATIBILITY_POTTS)
        return i != j;
    return (long double)k->compatibility_values[i * p->labels + j];
}

static void read_matrices(struct problem *p) {
    double in[MOST_VARIABLES], out[MOST_VARIABLES];
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

static void draw_tree(struct problem *p, size_t kernel, dcrf_rng *rng) {
    const size_t nodes = p->labels + dcrf_rng_next(rng) % 4;
    size_t ends[2 * (MOST_LABELS + 4)];
    double lengths[MOST_LABELS + 4];
    for (size_t v = 1; v < nodes; v++) {
        ends[2 * v - 2] = v;
        ends[2 * v - 1] = dcrf_rng_next(rng) % v;
        lengths[v - 1] = 2 * dcrf_rng_uniform(rng);
    }
    assert_int_equal(dcrf_model_set_tree(p->model, kernel, nodes - 1, ends, lengths, NULL),
                     DCRF_OK);
}

static void draw_cuts(struct problem *p, size_t kernel, dcrf_rng *rng) {
    unsigned char sets[6 * MOST_LABELS];
    double lengths[6];
    const size_t count = dcrf_rng_next(rng) % 7;
    for (size_t k = 0; k < count * p->labels; k++)
        sets[k] = dcrf_rng_next(rng) % 2;
    for (size_t c = 0; c < count; c++)
        lengths[c] = dcrf_rng_uniform(rng);
    assert_int_equal(dcrf_model_set_cuts(p->model, kernel, count, sets, lengths, NULL), DCRF_OK);
}

/* A distance of points in a plane (L1 or Euclidean), or any numbers. */
static void draw_matrix(struct problem *p, size_t kernel, dcrf_rng *rng) {
    float matrix[MOST_LABELS * MOST_LABELS];
    double point[MOST_LABELS][2];
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

static void draw_compatibility(struct problem *p, size_t kernel, dcrf_rng *rng) {
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

/* (A alpha)_ai of the labelling, with pairs that a cut tells apart saturated; the sums that are
 * taken off. For matrices the cuts are those that the LP finds. */
static long double saturated(const struct problem *p, size_t a, size_t i) {
    long double sum = 0;
    for (size_t k = 0; k < p->model->kernel_count; k++) {
        const struct dcrf_cuts *cuts;
        struct dcrf_cuts *own;
        double left_out;
        uint8_t sets[1024 * MOST_LABELS];
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

static void draw_unaries(struct problem *p, bool is_tight, dcrf_rng *rng) {
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

static void draw_cliques(struct problem *p, dcrf_rng *rng) {
    int32_t map[MOST_VARIABLES];
    const dcrf_grid grid = *dcrf_model_grid(p->model);
    for (size_t a = 0; a < p->variables; a++)
        map[a] = (int32_t)(dcrf_rng_next(rng) % 3) - 1;
    const dcrf_view view = dcrf_view_interleaved(map, DCRF_I32, &grid, 1);
    assert_int_equal(dcrf_model_set_clique_map(p->model, &view, 2 * dcrf_rng_uniform(rng), NULL),
                     DCRF_OK);
}

static struct problem make(uint64_t seed, bool is_tight, bool has_cliques, dcrf_rng *rng) {
    struct problem p = {.labels = 2 + dcrf_rng_next(rng) % (MOST_LABELS - 1)};
    p.variables = MOST_VARIABLES;
    while (pow((double)p.labels, (double)p.variables) > MOST_LABELLINGS)
        p.variables--;
    const dcrf_grid grid = dcrf_grid_1d(p.variables);
    float features[KERNELS][2 * MOST_VARIABLES];
    assert_int_equal(dcrf_workspace_new(&p.workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&p.model, &grid, p.labels, NULL), DCRF_OK);
    const size_t kernels = 1 + dcrf_rng_next(rng) % KERNELS;
    for (size_t k = 0; k < kernels; k++) {
        for (size_t i = 0; i < 2 * MOST_VARIABLES; i++)
            features[k][i] = (float)(3 * dcrf_rng_uniform(rng));
        const double weight = pow(10, 3 * dcrf_rng_uniform(rng) - 1.5);
        dcrf_kernel kernel =
            seed % 3 == 0 ? dcrf_kernel_spatial(1 + dcrf_rng_uniform(rng), weight)
                          : dcrf_kernel_features(
                                dcrf_view_interleaved(features[k], DCRF_F32, &grid, 2), weight);
        kernel.normalization =
            dcrf_rng_next(rng) % 2 ? DCRF_NORMALIZE_NONE : DCRF_NORMALIZE_SYMMETRIC;
        assert_int_equal(dcrf_model_add_kernel(p.model, &kernel, NULL), DCRF_OK);
        draw_compatibility(&p, k, rng);
    }
    if (has_cliques)
        draw_cliques(&p, rng);
    assert_int_equal(dcrf_plan_new(&p.plan, p.model,
                                   seed % 2 ? DCRF_OPERATOR_EXACT : DCRF_OPERATOR_FAST, p.workspace,
                                   NULL),
                     DCRF_OK);
    read_matrices(&p);
    draw_unaries(&p, is_tight, rng);
    return p;
}

static void clear(struct problem *p) {
    dcrf_plan_free(&p->plan);
    dcrf_model_free(&p->model);
    dcrf_workspace_free(&p->workspace);
}

/* ---- by enumeration ------------------------------------------------------------------------- */

static long double energy_of(const struct problem *p, const uint16_t *x) {
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

static long double optimum_of(const struct problem *p, uint16_t *best) {
    uint16_t x[MOST_VARIABLES] = {0};
    long double least = INFINITY;
    for (;;) {
        const long double energy = energy_of(p, x);
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

struct found {
    double bound, energy;
    uint16_t labels[MOST_VARIABLES];
};

static struct found run_lp(const struct problem *p, uint64_t seed) {
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_solver_info info;
    struct found found;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.lp.schedule = seed % 5 == 3   ? DCRF_LP_SCHEDULE_PROXIMAL
                           : seed % 5 == 4 ? DCRF_LP_SCHEDULE_PAPER
                                           : DCRF_LP_SCHEDULE_HUBER;
    settings.lp.clique_form = seed % 7 < 4 ? DCRF_CLIQUE_MIN : DCRF_CLIQUE_SPREAD;
    settings.iterations = settings.lp.schedule == DCRF_LP_SCHEDULE_HUBER ? 60 : 6;
    settings.gap = 0;
    assert_int_equal(dcrf_solver_new(&solver, p->plan, p->workspace, &settings, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) >= 0);
    dcrf_solver_get_info(solver, &info);
    found = (struct found){.bound = info.lower_bound, .energy = info.energy.total};
    dcrf_solver_labels(solver, found.labels, sizeof found.labels / sizeof *found.labels, NULL);
    dcrf_solver_free(&solver);
    return found;
}

struct tally {
    size_t models, close, optimal;
};

/* No label of an optimal labelling is called wrong. */
static void check_certify(const struct problem *p, const uint16_t *best, long double optimum) {
    dcrf_certify_settings settings;
    dcrf_certify_info info;
    dcrf_certify_settings_defaults(&settings);
    settings.iterations = 30;
    assert_int_equal(dcrf_certify(p->plan, p->workspace, best, &settings, &info, NULL), DCRF_OK);
    assert_int_equal(info.wrong, 0);
    assert_true((long double)info.lower_bound <= optimum);
}

static void check(uint64_t seed, bool is_tight, bool has_cliques, struct tally *tally) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    struct problem p = make(seed, is_tight, has_cliques, &rng);
    uint16_t best[MOST_VARIABLES];
    const long double optimum = optimum_of(&p, best);
    const struct found found = run_lp(&p, seed);
    if (!((long double)found.bound <= optimum))
        fail_msg("model %zu: the bound is above the optimum by %Lg", (size_t)seed,
                 (long double)found.bound - optimum);
    /* The energy that is said is not below that of the labelling. */
    const long double energy = energy_of(&p, found.labels);
    assert_true((long double)found.energy >= energy);
    assert_true((double)((long double)found.energy - energy) <= 1e-5 * (1 + fabs((double)energy)));
    if (seed % 4 == 0)
        check_certify(&p, best, optimum);
    tally->models++;
    tally->optimal += energy <= optimum + 1e-6L * fabsl(optimum);
    long double scale = 0; /* of a tight model the optimum is about zero */
    for (size_t k = 0; k < p.variables * p.labels; k++)
        scale += fabsl((long double)p.unary[k]) / (long double)p.labels;
    tally->close += optimum - (long double)found.bound <= (is_tight ? 1e-5L : 0.01L) * scale;
    clear(&p);
}

static void test_random(void **state) {
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < 400; seed++)
        check(seed, false, seed % 2 == 1, &tally);
    /* A bound of minus infinity would pass too: most are near, and most labellings optimal. */
    assert_true(tally.close >= tally.models / 2);
    assert_true(tally.optimal >= tally.models * 9 / 10);
}

static void test_tight(void **state) {
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 1000; seed < 1600; seed++)
        check(seed, true, false, &tally);
    assert_true(tally.close >= tally.models / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_tight)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
