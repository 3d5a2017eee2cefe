/* The parts of the LP's dual against naive ones: the projection onto a simplex, the sets of the
 * cliques, and the pairwise points. */
#include "backend/cpu/clique_dual.h"
#include "backend/cpu/pair_dual.h"
#include "backend/simplex.h"
#include "toy.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <stdlib.h>

/* The root of sum max(0, v - theta) = total by bisection. */
static double bisect_threshold(const float *values, size_t count, double total) {
    double low = -1e9, high = 1e9;
    for (int k = 0; k < 200; k++) {
        const double middle = (low + high) / 2;
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += fmax(0, (double)values[i] - middle);
        if (sum > total)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void test_simplex(void **state) {
    (void)state;
    enum { MOST = 40 };
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 1);
    for (int round = 0; round < 20000; round++) {
        float row[MOST], projected[MOST];
        const size_t count = 1 + dcrf_rng_next(&rng) % MOST;
        const double scale = pow(10, 4 * dcrf_rng_uniform(&rng) - 2);
        for (size_t i = 0; i < count; i++) /* with ties */
            row[i] = (float)(scale * floor(16 * dcrf_rng_uniform(&rng)) / 16 - scale / 3);
        const double theta = bisect_threshold(row, count, 1);
        memcpy(projected, row, sizeof row);
        dcrf_simplex_project(projected, count);
        /* Bisection in double from 1e9 ends within 1e-7; entries are rounded to float. */
        for (size_t i = 0; i < count; i++)
            assert_true(fabs((double)projected[i] - fmax(0, (double)row[i] - theta)) < 1e-6);
    }
}

/* ---- cliques -------------------------------------------------------------------------------- */

struct fixture {
    struct toy toy;
    struct dcrf_dual_space space;
    struct dcrf_clique_dual cliques;
    struct dcrf_dual dual, vertex;
    float *y;
    double *base;
    size_t stride;
};

static void make(struct fixture *f, uint64_t seed, dcrf_clique_form form) {
    f->toy = new_toy(seed, 14 + seed % 5, 2 + seed % 3, 3, 1, TOY_POTTS, 2);
    if (seed % 5 == 0) { /* a clique of cost zero */
        f->toy.costs[seed % 3] = 0;
        assert_int_equal(dcrf_model_set_cliques(f->toy.model, f->toy.cliques, f->toy.offsets,
                                                f->toy.members, f->toy.costs, NULL),
                         DCRF_OK);
    }
    f->stride = dcrf_padded(f->toy.labels);
    assert_int_equal(dcrf_dual_space_init(&f->space, f->toy.plan, f->toy.workspace, form, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_dual_space_measure(&f->space, NULL), DCRF_OK);
    assert_int_equal(dcrf_clique_dual_init(&f->cliques, &f->space, NULL), DCRF_OK);
    assert_int_equal(dcrf_dual_init(&f->dual, &f->space, NULL), DCRF_OK);
    assert_int_equal(dcrf_dual_init(&f->vertex, &f->space, NULL), DCRF_OK);
    const size_t count = f->toy.variables * f->stride;
    f->y = calloc(count, sizeof *f->y);
    f->base = calloc(count, sizeof *f->base);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed + 100);
    for (size_t k = 0; k < count; k++) {
        f->y[k] = (float)(floor(8 * dcrf_rng_uniform(&rng)) / 8);
        f->base[k] = dcrf_rng_uniform(&rng) - 0.5;
    }
}

static void drop(struct fixture *f) {
    dcrf_dual_clear(&f->dual);
    dcrf_dual_clear(&f->vertex);
    dcrf_clique_dual_clear(&f->cliques);
    dcrf_dual_space_clear(&f->space);
    free(f->y);
    free(f->base);
    free_toy(&f->toy);
}

static double at(const struct fixture *f, const double *block, size_t k, size_t i) {
    return block[f->toy.members[k] * f->stride + i];
}

/* Checks that v is in the set of its form. Entries are floats up to 4, of at most 18 members:
 * 1e-5. */
static void check_feasible(const struct fixture *f, const double *v) {
    const struct toy *toy = &f->toy;
    for (size_t p = 0; p < toy->cliques; p++) {
        double size = 0;
        for (size_t i = 0; i < toy->labels; i++) {
            double sum = 0;
            for (size_t k = toy->offsets[p]; k < toy->offsets[p + 1]; k++) {
                sum += at(f, v, k, i);
                size += fabs(at(f, v, k, i)) / 2;
                if (f->space.form == DCRF_CLIQUE_MIN)
                    assert_true(at(f, v, k, i) >= 0);
            }
            const double wanted = f->space.form == DCRF_CLIQUE_MIN ? toy->costs[p] : 0;
            assert_true(fabs(sum - wanted) < 1e-5);
        }
        if (f->space.form == DCRF_CLIQUE_SPREAD)
            assert_true(size <= toy->costs[p] + 1e-5);
    }
}

/* The smallest <v, y> over the set: minus the clique term of the LP, by its formula. */
static double naive_minimum(const struct fixture *f, const double *y) {
    const struct toy *toy = &f->toy;
    double total = 0;
    for (size_t p = 0; p < toy->cliques; p++) {
        double widest = 0, smallest_sum = 0;
        for (size_t i = 0; i < toy->labels; i++) {
            double low = (double)INFINITY, high = -(double)INFINITY;
            for (size_t k = toy->offsets[p]; k < toy->offsets[p + 1]; k++) {
                low = fmin(low, y[toy->members[k] * f->stride + i]);
                high = fmax(high, y[toy->members[k] * f->stride + i]);
            }
            widest = fmax(widest, high - low);
            smallest_sum += low;
        }
        total += toy->costs[p] * (f->space.form == DCRF_CLIQUE_MIN ? smallest_sum : -widest);
    }
    return total;
}

static double product(const struct fixture *f, const double *v, const double *y) {
    double sum = 0;
    for (size_t k = 0; k < f->toy.offsets[f->toy.cliques]; k++)
        for (size_t i = 0; i < f->toy.labels; i++)
            sum += at(f, v, k, i) * y[f->toy.members[k] * f->stride + i];
    return sum;
}

static void check_cliques(uint64_t seed, dcrf_clique_form form) {
    struct fixture f;
    make(&f, seed, form);
    const size_t count = f.toy.variables * f.stride;
    double *direction = malloc(count * sizeof *direction);

    dcrf_clique_vertex(&f.cliques, f.y, &f.vertex);
    check_feasible(&f, f.vertex.clique);
    for (size_t k = 0; k < count; k++)
        direction[k] = (double)f.y[k];
    assert_true(fabs(product(&f, f.vertex.clique, direction) - naive_minimum(&f, direction)) <
                1e-4);

    /* P is the projection of w when no point of the set has a smaller product with P - w. */
    const double steps[] = {0.01, 0.3, 3, 50};
    for (size_t s = 0; s < 4; s++) {
        dcrf_clique_project(&f.cliques, f.base, f.y, 0, steps[s], &f.dual);
        check_feasible(&f, f.dual.clique);
        for (size_t k = 0; k < count; k++)
            direction[k] = f.dual.clique[k] - (f.base[k] - steps[s] * (double)f.y[k]);
        const double own = product(&f, f.dual.clique, direction);
        assert_true(own <= naive_minimum(&f, direction) + 1e-4 * (1 + steps[s]));
    }
    free(direction);
    drop(&f);
}

static void test_cliques(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        check_cliques(seed, DCRF_CLIQUE_MIN);
        check_cliques(seed, DCRF_CLIQUE_SPREAD);
    }
}

/* ---- pairs ---------------------------------------------------------------------------------- */

/* The nodes are at multiples of 1 / 8, like y, so F is exactly the clipped line; dead labels have
 * no flow. */
static void test_pairs(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct fixture f;
        struct dcrf_pair_filter filter;
        make(&f, seed, DCRF_CLIQUE_MIN);
        const size_t n = f.toy.variables, dead = f.toy.labels - 1;
        for (size_t a = 0; a < n; a++)
            f.y[a * f.stride + dead] = 0.01f;
        assert_int_equal(dcrf_pair_filter_init(&filter, &f.space, NULL), DCRF_OK);
        for (int shape_number = 0; shape_number < 2; shape_number++) {
            const double epsilon = shape_number == 0 ? 0.25 : 0;
            const struct dcrf_pair_shape shape = {.epsilon = epsilon, .bins = 9};
            assert_int_equal(dcrf_pair_dual(&filter, &shape, f.y, 0.02, &f.dual, NULL), DCRF_OK);
            for (size_t a = 0; a < n; a++)
                for (size_t i = 0; i < f.toy.labels; i++) {
                    double sum = 0;
                    for (size_t b = 0; b < n && i != dead; b++) {
                        const double difference =
                            (double)f.y[b * f.stride + i] - (double)f.y[a * f.stride + i];
                        const double flow = epsilon > 0 ? fmax(-1, fmin(1, difference / epsilon))
                                                        : (difference > 0) - (difference < 0);
                        sum += (f.toy.matrix[0][a * n + b] + f.toy.matrix[1][a * n + b]) * flow;
                    }
                    assert_true(fabs(f.dual.pairwise[a * f.stride + i] - sum) <
                                1e-5 * (1 + (double)f.space.row_sums[a]));
                }
        }
        dcrf_pair_filter_clear(&filter);
        drop(&f);
    }
}

/* ---- the bound of sums ---------------------------------------------------------------------- */

/* The same bound from sums in another order: not above it by more than the order can explain, and
 * not below it by more than twice what both subtract. */
static void test_bound_of_sums(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct toy toy = new_toy(seed, 14 + seed % 5, 2 + seed % 3, seed % 4, 1, TOY_POTTS, 2);
        const size_t stride = dcrf_padded(toy.labels);
        const dcrf_clique_form form = seed % 3 ? DCRF_CLIQUE_MIN : DCRF_CLIQUE_SPREAD;
        struct dcrf_dual_space space;
        struct dcrf_dual dual;
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        assert_int_equal(dcrf_dual_space_init(&space, toy.plan, toy.workspace, form, NULL),
                         DCRF_OK);
        assert_int_equal(dcrf_dual_space_measure(&space, NULL), DCRF_OK);
        assert_int_equal(dcrf_dual_init(&dual, &space, NULL), DCRF_OK);
        dcrf_dual_reset(&dual, &space);
        dual.roundings.pairwise = seed % 2 ? 1e5 * dcrf_rng_uniform(&rng) : 0;
        dual.roundings.clique = dual.clique && seed % 2 ? 1e5 * dcrf_rng_uniform(&rng) : 0;
        double lowest = 0, magnitude = 0;
        for (size_t a = toy.variables; a-- > 0;) {
            double cost = (double)INFINITY;
            for (size_t i = 0; i < toy.labels; i++) {
                dual.pairwise[a * stride + i] = dcrf_rng_uniform(&rng) - 0.5;
                cost = fmin(cost, (double)space.plan->model->unary[a * stride + i] -
                                      dual.pairwise[a * stride + i] -
                                      (dual.clique ? dual.clique[a * stride + i] : 0));
            }
            lowest += cost;
            magnitude += fabs(cost);
        }
        const double bound = dcrf_dual_bound(&space, &dual);
        const double of_sums = dcrf_dual_bound_of_sums(&space, dual.roundings, lowest, magnitude);
        double costs = 0; /* of the members' cliques */
        for (size_t p = 0; p < toy.cliques; p++)
            costs += toy.costs[p] * (double)(toy.offsets[p + 1] - toy.offsets[p]);
        const double taken_off = dual.roundings.pairwise * 0x1p-24 * space.total;
        const double of_cliques = dual.roundings.clique * 0x1p-24 * costs;
        /* In the min form v is below C, which is subtracted from the sums. */
        const double at_most = form == DCRF_CLIQUE_MIN ? 1.01 * of_cliques : 0;
        assert_true(of_sums <= space.constant + lowest - taken_off - of_cliques);
        assert_true(of_sums <= bound + 1e-12 * (magnitude + space.total));
        assert_true(bound - of_sums <=
                    at_most + 1e-6 * (taken_off + of_cliques) + 1e-12 * (magnitude + space.total));
        dcrf_dual_clear(&dual);
        dcrf_dual_space_clear(&space);
        free_toy(&toy);
    }
}

/* ---- mixtures ------------------------------------------------------------------------------- */

static void draw_point(const struct fixture *f, struct dcrf_dual *dual, dcrf_rng *rng) {
    dcrf_dual_reset(dual, &f->space);
    for (size_t k = 0; k < f->toy.variables * f->stride; k++) {
        dual->pairwise[k] = dcrf_rng_uniform(rng) - 0.5;
        dual->clique[k] = dcrf_rng_uniform(rng) - 0.5;
    }
    dual->roundings.pairwise = 1e4 * dcrf_rng_uniform(rng);
    dual->roundings.clique = 1e4 * dcrf_rng_uniform(rng);
}

/* A point with other columns than the space's proves the same: here in reverse order, in rows of
 * nine, and with one column for the last two labels. */
static void test_columns(void **state) {
    (void)state;
    enum { STRIDE = 9, MOST_LABELS = 4 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct fixture f;
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        make(&f, seed, seed % 2 ? DCRF_CLIQUE_MIN : DCRF_CLIQUE_SPREAD);
        const size_t labels = f.toy.labels, n = f.toy.variables;
        draw_point(&f, &f.dual, &rng);
        size_t column_of[MOST_LABELS];
        for (size_t i = 0; i < labels; i++)
            column_of[i] = i + 1 < labels ? STRIDE - 1 - i : STRIDE + 1 - labels;
        double *pairwise = calloc(n * STRIDE, sizeof *pairwise);
        double *clique = calloc(n * STRIDE, sizeof *clique);
        for (size_t a = 0; a < n; a++)
            for (size_t i = 0; i < labels; i++) {
                double *row = f.dual.pairwise + a * f.stride, *v = f.dual.clique + a * f.stride;
                row[labels - 1] = row[labels - 2];
                v[labels - 1] = v[labels - 2];
                pairwise[a * STRIDE + column_of[i]] = row[i];
                clique[a * STRIDE + column_of[i]] = v[i];
            }
        struct dcrf_dual view = f.dual;
        view.pairwise = pairwise;
        view.clique = clique;
        view.column_of = column_of;
        view.column_stride = STRIDE;
        assert_true(dcrf_dual_bound(&f.space, &view) == dcrf_dual_bound(&f.space, &f.dual));
        for (size_t a = 0; a < n; a++) {
            bool one, other;
            assert_int_equal(dcrf_dual_count(&f.space, &view, a, 0.3, 0, &one),
                             dcrf_dual_count(&f.space, &f.dual, a, 0.3, 0, &other));
            assert_true(one == other);
        }
        free(pairwise);
        free(clique);
        drop(&f);
    }
}

/* A mean has the mean of both errors, plus some roundings to double. */
static void check_mean(double mean, double from, double to, double weight) {
    assert_true(mean >= (1 - weight) * from + weight * to - 1e-12);
    assert_true(mean <= (1 - weight) * from + weight * to + 1e-7);
}

/* A point between two others, and the best such point: not below either end. The search ends within
 * 1/128 of the segment, over which no reduced cost changes by more than 1/64. */
static void test_mixtures(void **state) {
    (void)state;
    size_t inside = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct fixture f;
        struct dcrf_dual mixed;
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        make(&f, seed, seed % 2 ? DCRF_CLIQUE_MIN : DCRF_CLIQUE_SPREAD);
        assert_int_equal(dcrf_dual_init(&mixed, &f.space, NULL), DCRF_OK);
        draw_point(&f, &f.dual, &rng);
        draw_point(&f, &f.vertex, &rng);
        const double ends[] = {dcrf_dual_bound(&f.space, &f.dual),
                               dcrf_dual_bound(&f.space, &f.vertex)};
        double kept = -1e30;
        dcrf_dual_reset(&mixed, &f.space);
        dcrf_dual_keep(&f.space, &mixed, &f.dual, &kept);
        assert_true(kept == ends[0] && dcrf_dual_bound(&f.space, &mixed) == kept);
        const double weight = (double)(seed % 9) / 8;
        dcrf_dual_mix(&f.space, &mixed, &f.vertex, weight);
        for (size_t k = 0; k < f.toy.variables * f.stride; k++) {
            assert_true(fabs(mixed.pairwise[k] - (1 - weight) * f.dual.pairwise[k] -
                             weight * f.vertex.pairwise[k]) < 1e-15);
            assert_true(fabs(mixed.clique[k] - (1 - weight) * f.dual.clique[k] -
                             weight * f.vertex.clique[k]) < 1e-15);
        }
        check_mean(mixed.roundings.pairwise, f.dual.roundings.pairwise, f.vertex.roundings.pairwise,
                   weight);
        check_mean(mixed.roundings.clique, f.dual.roundings.clique, f.vertex.roundings.clique,
                   weight);
        double bound = ends[0];
        dcrf_dual_improve(&f.space, &f.dual, &f.vertex, &bound);
        const double slack = (double)f.toy.variables * 2 / 64;
        assert_true(bound >= ends[0] && bound >= ends[1] - slack);
        assert_true(bound >= dcrf_dual_bound(&f.space, &mixed) - slack);
        assert_true(bound == fmax(ends[0], dcrf_dual_bound(&f.space, &f.dual)));
        inside += bound > fmax(ends[0], ends[1]);
        dcrf_dual_clear(&mixed);
        drop(&f);
    }
    assert_true(inside > 30);
}

/* Nearly a vertex of the simplex: the other entries are smaller than the rounding error of a sum in
 * double. With all three entries the threshold is above them, without them below. The loop must
 * terminate. */
static void test_simplex_of_almost_nothing(void **state) {
    (void)state;
    float row[] = {1, 1.249e-16f, 1.249e-16f};
    dcrf_simplex_project(row, 3);
    assert_true(row[0] == 1 && row[1] >= 0 && row[1] < 1e-15f && row[2] == row[1]);
}

/* Several rows at a time give the bytes of each alone: rows with ties, totals of 0, totals that are
 * negligible, more columns than are transposed, and groups of rows that are not full. */
static void test_simplex_of_rows(void **state) {
    (void)state;
    enum { MOST = 70, ROWS = 8 };
    assert_int_equal(ROWS, DCRF_SIMPLEX_ROWS);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 2);
    for (int round = 0; round < 5000; round++) {
        float rows[ROWS * (MOST + 3)];
        double totals[ROWS], thetas[ROWS];
        const size_t count = 1 + dcrf_rng_next(&rng) % MOST;
        const size_t stride = count + dcrf_rng_next(&rng) % 4;
        const size_t row_count = round % 2 ? ROWS : 1 + dcrf_rng_next(&rng) % ROWS;
        for (size_t r = 0; r < ROWS; r++) {
            const double scale = pow(10, 4 * dcrf_rng_uniform(&rng) - 2);
            totals[r] = dcrf_rng_next(&rng) % 8 == 0 ? 0 : dcrf_rng_uniform(&rng);
            for (size_t i = 0; i < stride; i++)
                rows[r * stride + i] =
                    (float)(scale * floor(16 * dcrf_rng_uniform(&rng)) / 16 - scale / 3);
            if (dcrf_rng_next(&rng) % 8 == 0)
                for (size_t i = 0; i < stride; i++)
                    rows[r * stride + i] += 1e20f;
        }
        dcrf_simplex_thresholds(rows, stride, row_count, count, totals, thetas);
        for (size_t r = 0; r < row_count; r++) {
            const double alone = totals[r] > 0
                                     ? dcrf_simplex_threshold(rows + r * stride, count, totals[r])
                                     : (double)INFINITY;
            assert_true(thetas[r] == alone);
        }
        float projected[ROWS * (MOST + 3)];
        memcpy(projected, rows, sizeof rows);
        dcrf_simplex_project_rows(projected, stride, row_count, count);
        for (size_t r = 0; r < row_count; r++) {
            dcrf_simplex_project(rows + r * stride, count);
            assert_memory_equal(projected + r * stride, rows + r * stride, count * sizeof *rows);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simplex),         cmocka_unit_test(test_simplex_of_almost_nothing),
        cmocka_unit_test(test_simplex_of_rows), cmocka_unit_test(test_cliques),
        cmocka_unit_test(test_pairs),           cmocka_unit_test(test_bound_of_sums),
        cmocka_unit_test(test_mixtures),        cmocka_unit_test(test_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
