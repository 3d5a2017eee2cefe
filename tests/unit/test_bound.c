/* The bound is never above the optimum, not even by a rounding error.
 *
 * The optimum is that of the matrix that the operators really apply: their columns, from unit
 * vectors in double; all sums are in long double, over all labellings. No comparison here has a
 * tolerance.
 *
 * Random models are rarely tight enough for a missing rounding error to show, so some are made
 * tight: for a labelling x and the dual point of its indicators (pairs that differ are saturated)
 * the unaries are chosen such that the reduced costs of x are the smallest of each variable. Then
 * the bound of that point, computed without error, is E(x), and x is optimal; a bound that rounds
 * the wrong way is above it. */
#include "backend/cpu/pair_dual.h"
#include "unit.h"

#include "core/rng.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <math.h>
#include <stdlib.h>

#define MOST_VARIABLES 9
#define MOST_LABELS 4
#define MOST_STRIDE DCRF_NARROW_LANES /* for up to 4 labels */
#define KERNELS 2
#define MOST_DIMENSIONS 10

struct model {
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
    size_t variables, labels;
    float unary[MOST_VARIABLES * MOST_LABELS];
    long double matrix[MOST_VARIABLES][MOST_VARIABLES]; /* weights included */
};

/* K e_b is column b of the operator's own matrix. */
static void read_matrix(struct model *m) {
    const size_t n = m->variables;
    double in[MOST_VARIABLES], out[MOST_VARIABLES];
    for (size_t k = 0; k < dcrf_model_kernels(m->model); k++) {
        const dcrf_operator *op = dcrf_plan_operator(m->plan, k);
        for (size_t b = 0; b < n; b++) {
            for (size_t a = 0; a < n; a++)
                in[a] = a == b;
            assert_int_equal(op->methods->apply_double(op, m->workspace, in, out, 1, NULL),
                             DCRF_OK);
            for (size_t a = 0; a < n; a++)
                m->matrix[a][b] += (long double)m->model->kernels[k].weight * (long double)out[a];
        }
    }
}

static void set_unary(struct model *m) {
    const dcrf_grid grid = *dcrf_model_grid(m->model);
    const dcrf_view view = dcrf_view_interleaved(m->unary, DCRF_F32, &grid, m->labels);
    assert_int_equal(dcrf_model_set_unary(m->model, &view, NULL), DCRF_OK);
}

/* Kernels of random strength over random points, or over the positions on the grid. Coinciding
 * points make the same errors, which then add up. */
static struct model make(uint64_t seed, dcrf_operator_kind kind, dcrf_rng *rng) {
    struct model m = {.variables = 2 + seed % (MOST_VARIABLES - 1), .labels = 2 + seed / 8 % 2};
    while (pow((double)m.labels, (double)m.variables) > 600)
        m.variables--;
    const dcrf_grid grid = dcrf_grid_1d(m.variables);
    float features[KERNELS][MOST_VARIABLES * MOST_DIMENSIONS];
    assert_int_equal(dcrf_workspace_new(&m.workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&m.model, &grid, m.labels, NULL), DCRF_OK);
    const size_t kernels = 1 + dcrf_rng_next(rng) % KERNELS;
    for (size_t k = 0; k < kernels; k++) {
        const double weight = pow(10, 4 * dcrf_rng_uniform(rng) - 1);
        const size_t dimension = 1 + dcrf_rng_next(rng) % MOST_DIMENSIONS;
        const double width = 3 / (double)dimension;
        const size_t places = 1 + dcrf_rng_next(rng) % MOST_VARIABLES;
        for (size_t i = 0; i < MOST_VARIABLES * MOST_DIMENSIONS; i++)
            features[k][i] = i < places * dimension ? (float)(width * dcrf_rng_uniform(rng))
                                                    : features[k][i - places * dimension];
        dcrf_kernel kernel =
            kind == DCRF_OPERATOR_GRID
                ? dcrf_kernel_spatial(0.5 + 3 * dcrf_rng_uniform(rng), weight)
                : dcrf_kernel_features(
                      dcrf_view_interleaved(features[k], DCRF_F32, &grid, dimension), weight);
        kernel.normalization =
            dcrf_rng_next(rng) % 2 ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
        assert_int_equal(dcrf_model_add_kernel(m.model, &kernel, NULL), DCRF_OK);
    }
    assert_int_equal(dcrf_plan_new(&m.plan, m.model, kind, m.workspace, NULL), DCRF_OK);
    read_matrix(&m);
    return m;
}

static void drop(struct model *m) {
    dcrf_plan_free(&m->plan);
    dcrf_model_free(&m->model);
    dcrf_workspace_free(&m->workspace);
}

/* ---- enumeration ---------------------------------------------------------------------------- */

static long double energy_of(const struct model *m, const size_t *x) {
    long double energy = 0;
    for (size_t a = 0; a < m->variables; a++) {
        energy += (long double)m->unary[a * m->labels + x[a]];
        for (size_t b = 0; b < m->variables; b++)
            energy += x[a] != x[b] ? m->matrix[a][b] : 0;
    }
    return energy;
}

static long double optimum_of(const struct model *m) {
    size_t x[MOST_VARIABLES] = {0};
    long double lowest = (long double)INFINITY;
    for (;;) {
        lowest = fminl(lowest, energy_of(m, x));
        size_t a = 0;
        while (a < m->variables && ++x[a] == m->labels)
            x[a++] = 0;
        if (a == m->variables)
            return lowest;
    }
}

/* ---- points of the dual --------------------------------------------------------------------- */

struct fixture {
    struct model m;
    struct dcrf_dual_space space;
    struct dcrf_pair_filter filter;
    struct dcrf_dual dual, other;
    float y[MOST_VARIABLES * MOST_STRIDE];
};

/* Points for the model in the fixture. */
static void open_points(struct fixture *f) {
    assert_int_equal(
        dcrf_dual_space_init(&f->space, f->m.plan, f->m.workspace, DCRF_CLIQUE_MIN, NULL), DCRF_OK);
    assert_int_equal(dcrf_dual_space_measure(&f->space, NULL), DCRF_OK);
    assert_int_equal(dcrf_pair_filter_init(&f->filter, &f->space, NULL), DCRF_OK);
    assert_int_equal(dcrf_dual_init(&f->dual, &f->space, NULL), DCRF_OK);
    assert_int_equal(dcrf_dual_init(&f->other, &f->space, NULL), DCRF_OK);
}

static void open_space(struct fixture *f, uint64_t seed, dcrf_operator_kind kind, dcrf_rng *rng) {
    f->m = make(seed, kind, rng);
    set_unary(&f->m);
    open_points(f);
}

static void close_space(struct fixture *f) {
    dcrf_dual_clear(&f->dual);
    dcrf_dual_clear(&f->other);
    dcrf_pair_filter_clear(&f->filter);
    dcrf_dual_space_clear(&f->space);
    drop(&f->m);
}

static void take_point(struct fixture *f, const struct dcrf_pair_shape *shape,
                       struct dcrf_dual *dual) {
    assert_int_equal(dcrf_pair_dual(&f->filter, shape, f->y, 0, dual, NULL), DCRF_OK);
}

static struct dcrf_pair_shape draw_shape(dcrf_rng *rng) {
    const double epsilons[] = {0, 0.25, 1.0 / 32, 1.0 / 128};
    struct dcrf_pair_shape shape = {.epsilon = epsilons[dcrf_rng_next(rng) % 4],
                                    .bins = (size_t)8 << dcrf_rng_next(rng) % 4};
    shape.is_precise = shape.epsilon > 0 && dcrf_rng_next(rng) % 4 == 0;
    return shape;
}

static void check(const struct fixture *f, uint64_t seed, const char *what) {
    const long double optimum = optimum_of(&f->m);
    const double bound = dcrf_dual_bound(&f->space, &f->dual);
    if (!((long double)bound <= optimum))
        fail_msg("seed %d, %s: the bound %.17g is above the optimum by %g", (int)seed, what, bound,
                 (double)((long double)bound - optimum));
}

static const dcrf_operator_kind kinds[] = {DCRF_OPERATOR_EXACT, DCRF_OPERATOR_GRID,
                                           DCRF_OPERATOR_LATTICE};

/* Sets the unaries that make x optimal, with the point of its indicators as the proof. */
static void make_tight(struct fixture *f, const size_t *x, dcrf_rng *rng) {
    const size_t stride = dcrf_padded(f->m.labels);
    for (size_t a = 0; a < f->m.variables; a++) {
        const double offset = 20 * dcrf_rng_uniform(rng) - 15; /* energies of both signs */
        for (size_t i = 0; i < f->m.labels; i++) {
            const double cost = f->dual.pairwise[a * stride + i] + offset;
            /* The other labels lie above by more than the rounding error of x's float. */
            f->m.unary[a * f->m.labels + i] =
                (float)(i == x[a] ? cost : cost + 1e-5 * (1 + fabs(cost)));
        }
    }
    set_unary(&f->m);
}

static void tight_points(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 9000; seed++) {
        struct fixture f = {0};
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        open_space(&f, seed, kinds[seed % 3], &rng);
        const size_t stride = dcrf_padded(f.m.labels);
        size_t x[MOST_VARIABLES];
        for (size_t a = 0; a < f.m.variables; a++) {
            x[a] = a * f.m.labels / f.m.variables;
            f.y[a * stride + x[a]] = 1;
        }
        struct dcrf_pair_shape shape = draw_shape(&rng);
        take_point(&f, &shape, &f.dual);
        make_tight(&f, x, &rng);
        check(&f, seed, "tight");
        /* The same point by another shape, a precise one, mixed with the first: the error bounds
         * must be mixed too. */
        struct dcrf_pair_shape precise = {.epsilon = 0.25, .bins = 8, .is_precise = true};
        take_point(&f, &precise, &f.other);
        dcrf_dual_mix(&f.space, &f.other, &f.dual, 1 - 0.1 * dcrf_rng_uniform(&rng));
        const struct dcrf_dual swap = f.other;
        f.other = f.dual;
        f.dual = swap;
        check(&f, seed, "tight, mixed");
        close_space(&f);
    }
}

static void random_points(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct fixture f = {0};
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed + 10000);
        open_space(&f, seed, kinds[seed % 3], &rng);
        const size_t stride = dcrf_padded(f.m.labels);
        for (size_t k = 0; k < f.m.variables * f.m.labels; k++)
            f.m.unary[k] = (float)(40 * dcrf_rng_uniform(&rng) - 30);
        set_unary(&f.m);
        dcrf_dual_reset(&f.dual, &f.space);
        for (int point = 0; point < 4; point++) {
            for (size_t a = 0; a < f.m.variables; a++)
                for (size_t i = 0; i < f.m.labels; i++)
                    f.y[a * stride + i] = (float)dcrf_rng_uniform(&rng);
            const struct dcrf_pair_shape shape = draw_shape(&rng);
            double bound = dcrf_dual_bound(&f.space, &f.dual);
            take_point(&f, &shape, &f.other);
            dcrf_dual_improve(&f.space, &f.dual, &f.other, &bound);
            assert_true((long double)bound <= optimum_of(&f.m));
            check(&f, seed, "random");
        }
        close_space(&f);
    }
}

/* ---- a point's own error bounds ------------------------------------------------------------- */

/* Toys have short sums, whose errors are hidden by those of the other sums in a bound. Here rows
 * have hundreds of terms, and each number of a point is compared with the point's own error bound.
 * At the indicators of a labelling x, (A alpha)_ai = sum_b K_ab ([x_b = i] - [x_a = i]). */
#define MANY 240
#define MANY_LABELS 3

static long double matrix[MANY][MANY], row_sum[MANY];

static void read_large_matrix(const dcrf_plan *plan, dcrf_workspace *workspace, double weight) {
    const dcrf_operator *op = dcrf_plan_operator(plan, 0);
    double in[MANY] = {0}, out[MANY];
    for (size_t a = 0; a < MANY; a++)
        row_sum[a] = 0;
    for (size_t b = 0; b < MANY; b++) {
        in[b] = 1;
        assert_int_equal(op->methods->apply_double(op, workspace, in, out, 1, NULL), DCRF_OK);
        in[b] = 0;
        for (size_t a = 0; a < MANY; a++) {
            matrix[a][b] = (long double)weight * (long double)out[a];
            row_sum[a] += matrix[a][b];
        }
    }
}

static dcrf_kernel large_kernel(dcrf_operator_kind kind, double weight, dcrf_rng *rng) {
    static float features[2 * MANY];
    const dcrf_grid grid = dcrf_grid_1d(MANY);
    for (size_t k = 0; k < 2 * MANY; k++)
        features[k] = (float)(3 * dcrf_rng_uniform(rng));
    dcrf_kernel kernel =
        kind == DCRF_OPERATOR_GRID
            ? dcrf_kernel_spatial(1 + 30 * dcrf_rng_uniform(rng), weight)
            : dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, 2), weight);
    kernel.normalization = dcrf_rng_next(rng) % 2 ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
    return kernel;
}

static void stated_errors(void **state) {
    (void)state;
    long double largest[2][3] = {{0}}; /* in units of rounding: float and double, by operator */
    for (uint64_t seed = 0; seed < 60; seed++) {
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed + 30000);
        const dcrf_operator_kind kind = kinds[seed % 3];
        const double weight = 0.1 + dcrf_rng_uniform(&rng);
        const dcrf_kernel kernel = large_kernel(kind, weight, &rng);
        static float unary[MANY * MANY_LABELS], y[MANY * MOST_STRIDE];
        const dcrf_grid grid = dcrf_grid_1d(MANY);
        const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, MANY_LABELS);
        struct fixture f = {0};
        assert_int_equal(dcrf_workspace_new(&f.m.workspace, 1, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_new(&f.m.model, &grid, MANY_LABELS, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_set_unary(f.m.model, &view, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_add_kernel(f.m.model, &kernel, NULL), DCRF_OK);
        assert_int_equal(dcrf_plan_new(&f.m.plan, f.m.model, kind, f.m.workspace, NULL), DCRF_OK);
        read_large_matrix(f.m.plan, f.m.workspace, weight);
        open_points(&f);
        size_t x[MANY];
        for (size_t a = 0; a < MANY; a++) {
            x[a] = dcrf_rng_next(&rng) % MANY_LABELS;
            for (size_t i = 0; i < MOST_STRIDE; i++)
                y[a * MOST_STRIDE + i] = i == x[a];
        }
        for (int precise = 0; precise < 2; precise++) {
            const struct dcrf_pair_shape shape = {
                .epsilon = 1.0 / 32, .bins = 16, .is_precise = precise};
            assert_int_equal(dcrf_pair_dual(&f.filter, &shape, y, 0, &f.dual, NULL), DCRF_OK);
            for (size_t k = 0; k < MANY * MANY_LABELS; k++) {
                const size_t a = k / MANY_LABELS, i = k % MANY_LABELS;
                long double sum = 0;
                for (size_t b = 0; b < MANY; b++)
                    sum += matrix[a][b] * (long double)((x[b] == i) - (x[a] == i));
                const long double error =
                    fabsl(sum - (long double)f.dual.pairwise[a * MOST_STRIDE + i]) / row_sum[a];
                if (!(error <= (long double)f.dual.roundings.pairwise * 0x1p-24L))
                    fail_msg("seed %d, precise %d: %g of the row sum, not %g", (int)seed, precise,
                             (double)error, f.dual.roundings.pairwise * 0x1p-24);
                long double *most = &largest[precise][seed % 3];
                *most = fmaxl(*most, error * (precise ? 0x1p53L : 0x1p24L));
            }
        }
        close_space(&f);
    }
    /* As doubles: not every C library prints long doubles. */
    for (size_t k = 0; k < 3; k++)
        print_message("operator %zu: errors of up to %.1f roundings to float, %.1f to double\n", k,
                      (double)largest[0][k], (double)largest[1][k]);
}

/* ---- the whole solver ----------------------------------------------------------------------- */

static void solvers(void **state) {
    (void)state;
    size_t closed = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed + 20000);
        struct model m = make(seed, kinds[seed % 3], &rng);
        for (size_t k = 0; k < m.variables * m.labels; k++)
            m.unary[k] = (float)(40 * dcrf_rng_uniform(&rng) - 30);
        set_unary(&m);
        const long double optimum = optimum_of(&m);
        dcrf_settings settings;
        dcrf_solver *solver;
        dcrf_solver_info info;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.lp.schedule = (int)(seed % 5 % 3);
        settings.gap = seed % 2 ? 1e-4 : 0;
        settings.iterations = 60;
        assert_int_equal(dcrf_solver_new(&solver, m.plan, m.workspace, &settings, NULL), DCRF_OK);
        assert_true(dcrf_solver_run(solver, NULL) > 0);
        dcrf_solver_get_info(solver, &info);
        if (!((long double)info.lower_bound <= optimum))
            fail_msg("seed %d: the bound %.17g is above the optimum by %g", (int)seed,
                     info.lower_bound, (double)((long double)info.lower_bound - optimum));
        assert_true(info.relative_gap >= 0 && info.relative_gap <= 1);
        closed += info.relative_gap <= 1e-4;
        dcrf_solver_free(&solver);
        drop(&m);
    }
    print_message("%zu of 1500 gaps closed to 0.01 %%\n", closed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tight_points),
        cmocka_unit_test(random_points),
        cmocka_unit_test(stated_errors),
        cmocka_unit_test(solvers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
