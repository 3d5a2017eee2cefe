/* Mean field against a naive implementation, and its softmax against plain C. */
#include "toy.h"

#include "dsp/dsp.h"

#include <math.h>
#include <stdlib.h>

#define MOST_VARIABLES 64
#define MOST_LABELS 8

/* ---- a naive mean field --------------------------------------------------------------------- */

struct naive {
    const struct toy *toy;
    double q[MOST_VARIABLES * MOST_LABELS];
};

static void softmax_row(const double *s, double *q, size_t labels) {
    double largest = -(double)INFINITY, sum = 0;
    for (size_t i = 0; i < labels; i++)
        largest = fmax(largest, s[i]);
    for (size_t i = 0; i < labels; i++)
        sum += q[i] = exp(s[i] - largest);
    for (size_t i = 0; i < labels; i++)
        q[i] /= sum;
}

static void naive_start(struct naive *mf, const struct toy *toy) {
    mf->toy = toy;
    for (size_t a = 0; a < toy->variables; a++) {
        double s[MOST_LABELS];
        for (size_t i = 0; i < toy->labels; i++)
            s[i] = -toy->unary[a * toy->labels + i];
        softmax_row(s, mf->q + a * toy->labels, toy->labels);
    }
}

static void naive_update(const struct naive *from, struct naive *to) {
    const struct toy *toy = from->toy;
    const size_t n = toy->variables, labels = toy->labels;
    to->toy = toy;
    for (size_t a = 0; a < n; a++) {
        double s[MOST_LABELS];
        for (size_t i = 0; i < labels; i++) {
            s[i] = -toy->unary[a * labels + i];
            for (size_t m = 0; m < TOY_KERNELS; m++)
                for (size_t b = 0; b < n; b++)
                    for (size_t j = 0; j < labels; j++)
                        s[i] -= 2 * toy->matrix[m][a * n + b] * toy_mu(toy, m, i, j) *
                                from->q[b * labels + j];
            for (size_t p = 0; p < toy->cliques; p++) {
                double others = 1;
                bool is_member = false;
                for (size_t c = toy->offsets[p]; c < toy->offsets[p + 1]; c++) {
                    is_member |= toy->members[c] == a;
                    if (toy->members[c] != a)
                        others *= from->q[toy->members[c] * labels + i];
                }
                if (is_member)
                    s[i] -= toy->costs[p] * (1 - others);
            }
        }
        softmax_row(s, to->q + a * labels, labels);
    }
}

static double naive_free_energy(const struct naive *mf) {
    const struct toy *toy = mf->toy;
    const size_t n = toy->variables, labels = toy->labels;
    double energy = 0;
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++) {
            const double q = mf->q[a * labels + i];
            energy += q * toy->unary[a * labels + i] + (q > 0 ? q * log(q) : 0);
            for (size_t m = 0; m < TOY_KERNELS; m++)
                for (size_t b = 0; b < n; b++)
                    for (size_t j = 0; j < labels; j++)
                        energy += toy->matrix[m][a * n + b] * toy_mu(toy, m, i, j) * q *
                                  mf->q[b * labels + j];
        }
    for (size_t p = 0; p < toy->cliques; p++) {
        double agree = 0;
        for (size_t i = 0; i < labels; i++) {
            double product = 1;
            for (size_t c = toy->offsets[p]; c < toy->offsets[p + 1]; c++)
                product *= mf->q[toy->members[c] * labels + i];
            agree += product;
        }
        energy += toy->costs[p] * (1 - agree);
    }
    return energy;
}

static dcrf_solver *new_solver(const struct toy *toy, double damping) {
    dcrf_settings settings;
    dcrf_solver *solver;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.damping = damping;
    settings.polish = 0;
    settings.iterations = 2000;
    settings.stationarity = 1e-6;
    assert_int_equal(dcrf_solver_new(&solver, toy->plan, toy->workspace, &settings, NULL), DCRF_OK);
    return solver;
}

static double distance(dcrf_solver *solver, const struct naive *naive) {
    const size_t labels = naive->toy->labels;
    float marginals[MOST_VARIABLES * MOST_LABELS];
    double largest = 0;
    assert_int_equal(
        dcrf_solver_marginals(solver, marginals, MOST_VARIABLES * MOST_LABELS, labels, NULL),
        DCRF_OK);
    for (size_t k = 0; k < naive->toy->variables * labels; k++)
        largest = fmax(largest, fabs((double)marginals[k] - naive->q[k]));
    return largest;
}

/* Every update, and the free energy of the previous iterate. */
static void updates_are_those_of_the_naive_one(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy = new_toy(seed, 4 + seed % 20, 2 + seed % 5, seed % 4, 0.2,
                                 seed % 3 ? TOY_POTTS : TOY_GENERAL, 1);
        struct naive naive[2];
        naive_start(&naive[0], &toy);
        dcrf_solver *solver = new_solver(&toy, 0);
        for (size_t k = 0; k < 6; k++) {
            dcrf_solver_info info;
            const double free_energy = naive_free_energy(&naive[k % 2]);
            assert_true(dcrf_solver_step(solver, NULL) >= 0);
            dcrf_solver_get_info(solver, &info);
            assert_true(fabs(info.objective - free_energy) <= 1e-4);
            naive_update(&naive[k % 2], &naive[(k + 1) % 2]);
            /* Float messages of size up to 20 lose 1e-6; a few updates amplify that. */
            assert_true(distance(solver, &naive[(k + 1) % 2]) <= 1e-4);
        }
        dcrf_solver_free(&solver);
        free_toy(&toy);
    }
}

/* The limit is a fixed point of the naive update, with any damping. */
static void limits_are_fixed_points(void **state) {
    (void)state;
    const double dampings[] = {DCRF_DAMPING_AUTO, 0.3, 0.8};
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy = new_toy(seed, 4 + seed % 20, 2 + seed % 5, seed % 4, 0.2,
                                 seed % 3 ? TOY_POTTS : TOY_GENERAL, 1);
        for (size_t k = 0; k < 3; k++) {
            struct naive limit = {.toy = &toy}, next;
            float marginals[MOST_VARIABLES * MOST_LABELS];
            dcrf_solver *solver = new_solver(&toy, dampings[k]);
            assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_STATIONARY);
            assert_int_equal(dcrf_solver_marginals(solver, marginals, MOST_VARIABLES * MOST_LABELS,
                                                   toy.labels, NULL),
                             DCRF_OK);
            for (size_t j = 0; j < toy.variables * toy.labels; j++)
                limit.q[j] = (double)marginals[j];
            naive_update(&limit, &next);
            assert_true(distance(solver, &next) <= 1e-4);
            dcrf_solver_free(&solver);
        }
        free_toy(&toy);
    }
}

/* Variables that prefer to differ all flip together when updated simultaneously. */
static void damping_ends_oscillation(void **state) {
    (void)state;
    enum { VARIABLES = 20, LABELS = 2 };
    const dcrf_grid grid = dcrf_grid_1d(VARIABLES);
    float features[VARIABLES] = {0}, unary[VARIABLES * LABELS];
    const float repel[] = {1, 1};
    for (size_t a = 0; a < VARIABLES; a++) {
        unary[2 * a] = 0;
        unary[2 * a + 1] = 0.5f;
    }
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    dcrf_kernel kernel =
        dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, 1), 1);
    kernel.normalization = DCRF_NORMALIZE_NONE;
    assert_int_equal(dcrf_model_new(&model, &grid, LABELS, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_VECTOR, repel, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, NULL), DCRF_OK);
    const struct toy toy = {.plan = plan, .workspace = workspace};
    dcrf_solver *solver = new_solver(&toy, 0);
    assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_ITERATIONS);
    dcrf_solver_free(&solver);
    solver = new_solver(&toy, DCRF_DAMPING_AUTO);
    assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_STATIONARY);
    /* All variables are alike: q_0 = sigmoid(0.5 - 2 * 19 (2 q_0 - 1)), by bisection. */
    double low = 0, high = 1;
    for (int k = 0; k < 60; k++) {
        const double q = (low + high) / 2;
        *(1 / (1 + exp(-(0.5 - 38 * (2 * q - 1)))) > q ? &low : &high) = q;
    }
    float marginals[VARIABLES * LABELS];
    assert_int_equal(dcrf_solver_marginals(solver, marginals, VARIABLES * LABELS, LABELS, NULL),
                     DCRF_OK);
    for (size_t a = 0; a < VARIABLES; a++)
        assert_true(fabs((double)marginals[2 * a] - low) <= 1e-4);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
}

/* One clique of 10,000: intermediate products of 1e-40000, and of 0.9 at the end. */
static void a_large_clique_neither_under_nor_overflows(void **state) {
    (void)state;
    enum { VARIABLES = 10000, LABELS = 3 };
    const dcrf_grid grid = dcrf_grid_1d(VARIABLES);
    const double cost = 8;
    const double unaries[][LABELS] = {{0, 11.5, 30}, {0, 3, 4}, {0, 200, 300}, {1, 1, 1}};
    float *unary = malloc(VARIABLES * LABELS * sizeof *unary);
    int32_t *map = calloc(VARIABLES, sizeof *map);
    for (size_t k = 0; k < sizeof unaries / sizeof unaries[0]; k++) {
        for (size_t a = 0; a < VARIABLES * LABELS; a++)
            unary[a] = (float)unaries[k][a % LABELS];
        dcrf_model *model;
        dcrf_workspace *workspace;
        dcrf_plan *plan;
        const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
        const dcrf_view map_view = dcrf_view_interleaved(map, DCRF_I32, &grid, 1);
        assert_int_equal(dcrf_model_new(&model, &grid, LABELS, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_set_clique_map(model, &map_view, cost, NULL), DCRF_OK);
        assert_int_equal(dcrf_workspace_new(&workspace, 2, NULL), DCRF_OK);
        assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, NULL), DCRF_OK);
        const struct toy toy = {.plan = plan, .workspace = workspace};
        dcrf_solver *solver = new_solver(&toy, 0);
        /* All variables are alike: iterate on one, with q^9999 through its logarithm. */
        double s[LABELS], q[LABELS];
        for (size_t i = 0; i < LABELS; i++)
            s[i] = -unaries[k][i];
        softmax_row(s, q, LABELS);
        for (size_t iteration = 0; iteration < 4; iteration++) {
            for (size_t i = 0; i < LABELS; i++)
                s[i] = -unaries[k][i] + cost * exp((VARIABLES - 1) * log(q[i]));
            softmax_row(s, q, LABELS);
            assert_true(dcrf_solver_step(solver, NULL) >= 0);
        }
        float *marginals = malloc(VARIABLES * LABELS * sizeof *marginals);
        assert_int_equal(dcrf_solver_marginals(solver, marginals, VARIABLES * LABELS, LABELS, NULL),
                         DCRF_OK);
        dcrf_solver_info info;
        dcrf_solver_get_info(solver, &info);
        assert_true(isfinite(info.objective));
        for (size_t a = 0; a < VARIABLES * LABELS; a++)
            assert_true(fabs((double)marginals[a] - q[a % LABELS]) <= 1e-4);
        free(marginals);
        dcrf_solver_free(&solver);
        dcrf_plan_free(&plan);
        dcrf_workspace_free(&workspace);
        dcrf_model_free(&model);
    }
    free(unary);
    free(map);
}

/* Unary energies so large that exponentials vanish: still distributions. */
static void enormous_unaries_are_survived(void **state) {
    (void)state;
    enum { VARIABLES = 6, LABELS = 5 };
    const dcrf_grid grid = dcrf_grid_1d(VARIABLES);
    const float sizes[] = {1e4f, 1e20f, 1e36f};
    for (size_t k = 0; k < 3; k++) {
        float unary[VARIABLES * LABELS], marginals[VARIABLES * LABELS];
        for (size_t j = 0; j < VARIABLES * LABELS; j++)
            unary[j] = sizes[k] * (float)(1 + j % 7);
        dcrf_model *model;
        dcrf_workspace *workspace;
        dcrf_plan *plan;
        const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
        const dcrf_kernel kernel = dcrf_kernel_spatial(1, 1);
        assert_int_equal(dcrf_model_new(&model, &grid, LABELS, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
        assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
        assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, NULL), DCRF_OK);
        const struct toy toy = {.plan = plan, .workspace = workspace};
        for (int is_damped = 0; is_damped < 2; is_damped++) {
            dcrf_solver *solver = new_solver(&toy, is_damped ? 0.5 : 0);
            assert_int_equal(dcrf_solver_run(solver, NULL), DCRF_STOP_STATIONARY);
            assert_int_equal(
                dcrf_solver_marginals(solver, marginals, VARIABLES * LABELS, LABELS, NULL),
                DCRF_OK);
            for (size_t a = 0; a < VARIABLES; a++) {
                double sum = 0;
                for (size_t i = 0; i < LABELS; i++)
                    sum += (double)marginals[a * LABELS + i];
                assert_true(fabs(sum - 1) <= 1e-5);
            }
            dcrf_solver_info info;
            dcrf_solver_get_info(solver, &info);
            assert_true(isfinite(info.objective));
            dcrf_solver_free(&solver);
        }
        dcrf_plan_free(&plan);
        dcrf_workspace_free(&workspace);
        dcrf_model_free(&model);
    }
}

/* ---- the softmax ---------------------------------------------------------------------------- */

struct softmax_case {
    size_t rows, labels, stride;
    float *block[6]; /* unary, message, extra, field, q, diagonal */
};

static void fill(struct softmax_case *c, uint64_t seed, float range) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    for (size_t b = 0; b < 6; b++) {
        c->block[b] = calloc(c->rows * c->stride, sizeof(float));
        for (size_t r = 0; r < c->rows; r++)
            for (size_t i = 0; i < c->stride; i++) {
                float *at = &c->block[b][r * c->stride + i];
                *at = (float)(dcrf_rng_uniform(&rng) * 2 - 1) * range;
                if (b >= 4)
                    *at = fabsf(*at) / range / (float)c->labels;
                if (b == 4 && i >= c->labels)
                    *at = 0;
            }
    }
}

static void apply(const struct softmax_case *c, const struct dcrf_dsp *dsp, double *sums) {
    const struct dcrf_softmax softmax = {.labels = c->labels,
                                         .stride = c->stride,
                                         .unary = c->block[0],
                                         .message = c->block[1],
                                         .extra = c->labels % 2 ? c->block[2] : NULL,
                                         .logits = c->labels % 3 ? c->block[3] : NULL,
                                         .q = c->block[4],
                                         .next = c->block[4],
                                         .diagonal = c->labels % 5 ? c->block[5] : NULL,
                                         .factor = -2,
                                         .same_label_factor = -1,
                                         .all_factor = 1,
                                         .damping = 0.25f};
    dsp->softmax(&softmax, 0, c->rows, sums);
}

/* The argument of the exponential has the error of one rounding of s (up to 2 * 6 * range), which
 * the exponential amplifies; the exponential itself is good to 2 ulp (1.2e-7 each). */
static void softmax_agrees_with_plain_c(void **state) {
    (void)state;
    const dcrf_cpu cpus[] = {DCRF_CPU_NEON, DCRF_CPU_AVX2, DCRF_CPU_AVX512, DCRF_CPU_SIMD128};
    for (size_t k = 0; k < 3; k++) {
        const struct dcrf_dsp *dsp = dcrf_dsp_for(cpus[k]);
        if (!dsp)
            continue;
        /* Rows of more than 512 labels do not fit on the stack. */
        for (size_t labels = 1; labels <= 1200; labels += labels < 70 ? 1 : 221)
            for (size_t wide = 0; wide < 2; wide++) {
                const float range = wide ? 60 : 3;
                struct softmax_case plain = {
                    .rows = 7, .labels = labels, .stride = dcrf_padded(labels)};
                struct softmax_case vector = plain;
                double plain_sums[DCRF_SOFTMAX_SUMS] = {0}, sums[DCRF_SOFTMAX_SUMS] = {0};
                fill(&plain, labels, range);
                fill(&vector, labels, range);
                apply(&plain, dcrf_dsp_for(DCRF_CPU_C), plain_sums);
                apply(&vector, dsp, sums);
                const double relative = 4 * 1.2e-7 * (12 * (double)range) + 3e-7;
                for (size_t j = 0; j < plain.rows * plain.stride; j++)
                    assert_true(fabs((double)vector.block[4][j] - (double)plain.block[4][j]) <=
                                relative * (double)plain.block[4][j] + 1e-35);
                for (size_t j = 0; j < DCRF_SOFTMAX_SUMS; j++)
                    assert_true(fabs(sums[j] - plain_sums[j]) <=
                                1e-5 * (1 + (double)range) * (double)plain.rows);
                for (size_t b = 0; b < 6; b++) {
                    free(plain.block[b]);
                    free(vector.block[b]);
                }
            }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_the_naive_one),
        cmocka_unit_test(limits_are_fixed_points),
        cmocka_unit_test(damping_ends_oscillation),
        cmocka_unit_test(a_large_clique_neither_under_nor_overflows),
        cmocka_unit_test(enormous_unaries_are_survived),
        cmocka_unit_test(softmax_agrees_with_plain_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
