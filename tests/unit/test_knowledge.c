/* Knowledge about the optimal labellings: costs after rounds, and dead ends, against sums over all
 * pairs. Every stated error bound holds, and is small. */
#include "known_toy.h"

#include <math.h>
#include <stdlib.h>

static struct known_toy toy_of(uint64_t seed) {
    const double strengths[] = {0.03, 0.1, 0.3, 2};
    struct known_toy t = new_known_toy(seed, 7 + seed % 17, seed % 9 == 0 ? 11 : 2 + seed % 4,
                                       seed / 2 % 4, strengths[seed / 3 % 4]);
    exclude_some(&t, 0.2);
    for (uint64_t round = 0; round < seed % 5; round++)
        decide_some(&t, 0.3);
    return t;
}

/* A difference of two costs is right up to the stated error, and the error is small: every sum has
 * a few dozen float roundings of 2^-24. */
static void costs_and_rows(void **state) {
    (void)state;
    size_t shrunken = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct known_toy t = toy_of(seed);
        const size_t n = t.toy.variables, labels = t.toy.labels;
        shrunken += t.known.parts != NULL;
        assert_int_equal(dcrf_knowledge_sum_undecided(&t.known, NULL), DCRF_OK);
        for (size_t a = 0; a < n; a++) {
            long double row = 0, largest = 0;
            for (size_t b = 0; b < n; b++)
                row += t.matrix[a * n + b];
            for (size_t i = 0; i < labels; i++)
                largest = fmaxl(largest, fabsl((long double)t.toy.unary[a * labels + i]));
            assert_true((long double)t.known.row_sums[a] >= row * (1 - 0x1p-48L));
            assert_true((long double)t.known.row_sums[a] <= row * (1 + 0x1p-31L));
            assert_true(t.known.error[a] > 0);
            assert_true((long double)t.known.error[a] <= 1e-4L * row + 1e-12L * largest + 1e-20L);
            if (t.known.round[a] != 0)
                continue;
            assert_true(fabsl((long double)t.known.indicated[a] - plain_row(&t, a)) <=
                        1e-6L * row + 1e-24L);
            for (size_t i = 0; i < labels; i++) {
                const long double difference = (long double)t.known.cost[a * labels + i] -
                                               (long double)t.known.cost[a * labels] -
                                               (plain_cost(&t, a, i) - plain_cost(&t, a, 0));
                assert_true(fabsl(difference) <= (long double)t.known.error[a]);
            }
        }
        free_known_toy(&t);
    }
    print_message("%zu of 300 with operators of the rest\n", shrunken);
    assert_true(shrunken > 30);
}

/* The matrix of the rest, a few columns at a time. */
static void columns_of_the_rest(void **state) {
    (void)state;
    size_t compared = 0;
    for (uint64_t seed = 0; seed < 120; seed++) {
        struct known_toy t = toy_of(seed);
        const size_t n = t.toy.variables;
        uint32_t rest[32];
        size_t size = 0;
        for (size_t a = 0; a < n; a++)
            if (t.known.round[a] == 0)
                rest[size++] = (uint32_t)a;
        for (size_t first = 0; first < size; first += 3) {
            const size_t count = size - first < 3 ? size - first : 3;
            double columns[3 * 32];
            assert_int_equal(
                dcrf_knowledge_columns(&t.known, rest, size, first, count, columns, NULL), DCRF_OK);
            for (size_t k = 0; k < size; k++)
                for (size_t c = 0; c < count; c++, compared++) {
                    const long double value = t.matrix[rest[k] * n + rest[first + c]];
                    /* The exact operator leaves out less than about 1e-7 of a row. */
                    assert_true(fabsl((long double)columns[k * count + c] - value) <=
                                1e-6L * (long double)t.known.row_sums[rest[k]] + 1e-24L);
                }
        }
        free_known_toy(&t);
    }
    assert_true(compared > 5000);
}

/* How much more i costs at a than the best label, minus all that the other variables can contribute
 * to it. */
static long double lead(const struct known_toy *t, size_t a, size_t i) {
    const size_t n = t->toy.variables, labels = t->toy.labels;
    long double lowest = (long double)INFINITY, gained = 0;
    for (size_t j = 0; j < labels; j++)
        lowest = fminl(lowest, plain_cost(t, a, j));
    for (size_t b = 0; b < n; b++) /* including a itself, which excludes slightly less */
        if (t->known.round[b] == 0 && t->known.possible[b * labels + i])
            gained += 2 * t->matrix[a * n + b];
    for (size_t p = 0; p < t->toy.cliques; p++)
        for (size_t k = t->toy.offsets[p]; k < t->toy.offsets[p + 1]; k++)
            if (t->toy.members[k] == a && plain_may_agree(t, p, i))
                gained += (long double)t->toy.costs[p];
    return plain_cost(t, a, i) - lowest - gained;
}

static bool always(void *user) {
    ++*(size_t *)user;
    return true;
}

/* A label is excluded if and only if it is a dead end, up to errors. */
static void dead_ends(void **state) {
    (void)state;
    size_t excluded = 0, stayed = 0, close = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct known_toy t = toy_of(seed);
        const size_t cells = t.toy.variables * t.toy.labels;
        uint8_t *before = malloc(cells);
        long double *leads = malloc(cells * sizeof *leads);
        size_t asked = 0;
        const struct dcrf_interrupt interrupt = {always, &asked};
        for (size_t k = 0; k < cells; k++)
            leads[k] = lead(&t, k / t.toy.labels, k % t.toy.labels);
        memcpy(before, t.known.possible, cells);
        assert_int_equal(dcrf_knowledge_eliminate(&t.known, &interrupt, NULL), DCRF_OK);
        assert_true(asked > 0 || t.known.undecided == 0);
        assert_memory_equal(t.known.possible, before, cells);
        assert_int_equal(dcrf_knowledge_eliminate(&t.known, NULL, NULL), DCRF_OK);
        for (size_t k = 0; k < cells; k++) {
            const size_t a = k / t.toy.labels;
            const long double error = (long double)t.known.error[a];
            if (!before[k] || t.known.round[a] != 0) {
                assert_int_equal(t.known.possible[k], before[k]);
            } else if (fabsl(leads[k]) <= 2 * error) {
                close++;
            } else {
                assert_int_equal(t.known.possible[k], leads[k] < 0);
                *(leads[k] < 0 ? &stayed : &excluded) += 1;
            }
        }
        free(before);
        free(leads);
        free_known_toy(&t);
    }
    print_message("%zu labels excluded, %zu not, %zu too close to tell\n", excluded, stayed, close);
    assert_true(excluded > 500 && stayed > 500 && close * 100 < excluded + stayed);
}

/* A label too expensive to matter does not increase the errors of the others; one that could matter
 * does. */
static void dear_labels(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++)
        for (int is_dear = 0; is_dear < 2; is_dear++) {
            struct known_toy t = new_known_toy(seed, 8, 3, 0, 0.3);
            const struct known_toy usual = t;
            uint16_t *labels = t.known.labels;
            const double dear = is_dear ? 1e15 : 1e4;
            for (size_t a = 0; a < 8; a++)
                t.toy.model->unary[a * t.toy.model->stride + 2] = (float)dear;
            assert_int_equal(dcrf_knowledge_init(&t.known, t.plan, t.toy.workspace, labels, NULL),
                             DCRF_OK);
            for (size_t a = 0; a < 8; a++) {
                const double more = t.known.error[a] - usual.known.error[a];
                if (is_dear)
                    assert_true(more <= 0);
                else /* 2^-44 of it, and its neighbours' share in rounding error */
                    assert_true(more >= 0x1p-45 * dear && more <= 0x1p-43 * dear);
            }
            struct dcrf_knowledge first = usual.known;
            dcrf_knowledge_clear(&first);
            free_known_toy(&t);
        }
}

/* Both labels of variable 0 cost 1.25 times 2^20. Each round decides another variable, which takes
 * 0.49 units in the last place from label 0, and nothing is left of that: the error that is stated
 * grows with the rounds. */
static void errors_grow_with_the_rounds(void **state) {
    (void)state;
    enum { CROWD = 700 };
    const double unit = 0x1p-32, weight = 0.245 * unit;
    const dcrf_grid grid = dcrf_grid_1d(CROWD + 1);
    float unary[2 * (CROWD + 1)] = {0x1.4p20f, 0x1.4p20f}, feature[CROWD + 1] = {0};
    uint16_t labels[CROWD + 1] = {0};
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, 2);
    dcrf_kernel kernel =
        dcrf_kernel_features(dcrf_view_interleaved(feature, DCRF_F32, &grid, 1), weight);
    kernel.normalization = DCRF_NORMALIZE_NONE;
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    struct dcrf_knowledge known;
    assert_int_equal(dcrf_model_new(&model, &grid, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &energies, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_knowledge_init(&known, plan, workspace, labels, NULL), DCRF_OK);
    for (size_t b = 1; b <= CROWD; b++) {
        uint8_t marked[CROWD + 1] = {0};
        marked[b] = 1;
        assert_int_equal(dcrf_knowledge_decide(&known, marked, NULL), DCRF_OK);
        const double lost = known.cost[0] - known.cost[1] + 2 * weight * (double)b;
        assert_true(fabs(lost) <= known.error[0]);
    }
    assert_true(known.rounds == CROWD && known.cost[0] == known.cost[1]);
    dcrf_knowledge_clear(&known);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
}

/* The kept result of a proof does not refer to the plan. */
static void the_result_is_kept(void **state) {
    (void)state;
    struct known_toy t = toy_of(14);
    uint16_t *labels = t.known.labels;
    uint8_t *possible = t.known.possible;
    dcrf_knowledge_keep_result(&t.known);
    assert_ptr_equal(t.known.labels, labels);
    assert_ptr_equal(t.known.possible, possible);
    assert_true(!t.known.cost && !t.known.plan && !t.known.parts && !t.known.model);
    free_known_toy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_and_rows),
        cmocka_unit_test(columns_of_the_rest),
        cmocka_unit_test(dead_ends),
        cmocka_unit_test(dear_labels),
        cmocka_unit_test(errors_grow_with_the_rounds),
        cmocka_unit_test(the_result_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
