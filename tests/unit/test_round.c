/* Rounding and polishing. */
#include "toy.h"

#include "round/polisher.h"
#include "round/round.h"

#include <math.h>
#include <stdlib.h>

#define MOST_VARIABLES 64
#define TOLERANCE 2e-4 /* as in test_solver.c */

/* ---- rounding ------------------------------------------------------------------------------- */

static void the_largest_is_taken(void **state) {
    (void)state;
    const float rows[] = {0.2f, 0.5f, 0.3f, -1, 0.4f, 0.2f, 0.4f, 7, 0, 0, 1, 7};
    const struct dcrf_marginals marginals = {rows, 3, 3, 4, NULL};
    uint16_t labels[3];
    dcrf_labels_of_marginals(&marginals, NULL, labels);
    assert_int_equal(labels[0], 1);
    assert_int_equal(labels[1], 0); /* the first among equals */
    assert_int_equal(labels[2], 2);
}

/* Rows with columns for some labels give the labels of rows with all, whose other columns are zero.
 */
static void columns_have_names(void **state) {
    (void)state;
    enum { LABELS = 6, COLUMNS = 3, VARIABLES = 40 };
    const uint16_t label_of[COLUMNS] = {1, 2, 5};
    float rows[VARIABLES * LABELS] = {0}, columns[VARIABLES * COLUMNS];
    dcrf_rng random, one, other;
    dcrf_rng_seed(&random, 3);
    for (size_t a = 0; a < VARIABLES; a++) {
        const double first = dcrf_rng_uniform(&random);
        const double second = (1 - first) * dcrf_rng_uniform(&random);
        const double shares[COLUMNS] = {first, second, 1 - first - second};
        for (size_t c = 0; c < COLUMNS; c++)
            rows[a * LABELS + label_of[c]] = columns[a * COLUMNS + c] = (float)shares[c];
    }
    const struct dcrf_marginals all = {rows, VARIABLES, LABELS, LABELS, NULL};
    const struct dcrf_marginals some = {columns, VARIABLES, COLUMNS, COLUMNS, label_of};
    struct dcrf_thresholds *thresholds = dcrf_thresholds_new(LABELS, NULL);
    uint16_t expected[VARIABLES], labels[VARIABLES];
    dcrf_labels_of_marginals(&all, NULL, expected);
    dcrf_labels_of_marginals(&some, NULL, labels);
    assert_memory_equal(labels, expected, sizeof labels);
    dcrf_rng_seed(&one, 4);
    other = one;
    for (int draw = 0; draw < 20; draw++) {
        dcrf_thresholds_observe(thresholds, &all);
        dcrf_round_threshold(thresholds, &all, NULL, &one, expected);
        dcrf_thresholds_observe(thresholds, &some);
        dcrf_round_threshold(thresholds, &some, NULL, &other, labels);
        assert_memory_equal(labels, expected, sizeof labels);
    }
    dcrf_thresholds_free(thresholds);
}

/* Labels are drawn with the marginals as probabilities: counts of 40,000 draws lie within 5
 * standard deviations (at most 100 each) of the expected ones. With an order, the drawn positions
 * of two variables are on average as far apart as the sums of their rows. */
static void draw_marginals(const uint16_t *order) {
    enum { DRAWS = 40000, LABELS = 4, VARIABLES = 3 };
    const float rows[VARIABLES * LABELS] = {0.1f,  0.2f,  0.7f, 0, 0.25f, 0.25f,
                                            0.25f, 0.25f, 0,    0, 1,     0};
    const struct dcrf_marginals marginals = {rows, VARIABLES, LABELS, LABELS, NULL};
    size_t counts[VARIABLES * LABELS] = {0};
    struct dcrf_thresholds *thresholds = dcrf_thresholds_new(LABELS, order);
    dcrf_rng rng;
    double apart = 0;
    dcrf_rng_seed(&rng, 1);
    dcrf_thresholds_observe(thresholds, &marginals);
    for (size_t k = 0; k < DRAWS; k++) {
        uint16_t labels[VARIABLES];
        dcrf_round_threshold(thresholds, &marginals, NULL, &rng, labels);
        for (size_t a = 0; a < VARIABLES; a++)
            counts[a * LABELS + labels[a]]++;
        double places[2] = {0, 0};
        for (size_t place = 0; place < LABELS && order; place++)
            for (size_t a = 0; a < 2; a++)
                places[a] += labels[a] == order[place] ? (double)place : 0;
        apart += fabs(places[0] - places[1]);
    }
    for (size_t k = 0; k < VARIABLES * LABELS; k++) {
        const double p = (double)rows[k];
        assert_true(fabs((double)counts[k] - (double)DRAWS * p) <=
                    5 * sqrt((double)DRAWS * p * (1 - p)) + 0.5);
    }
    /* In the order 2, 0, 3, 1 the rows have the partial sums .7 .8 .8 1 and .25 .5 .75 1. */
    if (order)
        assert_true(fabs(apart / DRAWS - (0.45 + 0.3 + 0.05)) < 0.02);
    dcrf_thresholds_free(thresholds);
}

static void thresholds_draw_the_marginals(void **state) {
    (void)state;
    const uint16_t order[] = {2, 0, 3, 1};
    draw_marginals(NULL);
    draw_marginals(order);
}

/* Each variable takes the first label at which the sum of its row, in order, reaches the threshold.
 */
static void a_threshold_is_common_to_all(void **state) {
    (void)state;
    enum { LABELS = 4, VARIABLES = 3 };
    const float rows[VARIABLES * LABELS] = {0.125f, 0.25f, 0.625f, 0, 0.25f, 0.25f,
                                            0.25f,  0.25f, 0,      0, 1,     0};
    const uint16_t order[] = {2, 0, 3, 1};
    const struct {
        double threshold;
        uint16_t labels[VARIABLES];
    } expected[] = {{0.25, {2, 2, 2}}, {0.5, {2, 0, 2}}, {0.6875, {0, 3, 2}}, {1, {1, 1, 2}}};
    const struct dcrf_marginals marginals = {rows, VARIABLES, LABELS, LABELS, NULL};
    struct dcrf_thresholds *thresholds = dcrf_thresholds_new(LABELS, order);
    for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
        uint16_t labels[VARIABLES];
        dcrf_round_in_order(thresholds, &marginals, NULL, expected[k].threshold, labels);
        assert_memory_equal(labels, expected[k].labels, sizeof labels);
    }
    dcrf_thresholds_free(thresholds);
}

/* ---- polishing ------------------------------------------------------------------------------ */

static double gain_of_variables(const struct toy *toy, const uint16_t *labels) {
    const double energy = toy_energy(toy, labels);
    uint16_t changed[MOST_VARIABLES];
    double gain = 0;
    memcpy(changed, labels, toy->variables * sizeof *changed);
    for (size_t a = 0; a < toy->variables; a++) {
        for (size_t i = 0; i < toy->labels; i++) {
            changed[a] = (uint16_t)i;
            gain = fmax(gain, energy - toy_energy(toy, changed));
        }
        changed[a] = labels[a];
    }
    return gain;
}

static double gain_of_classes(const struct toy *toy, const uint16_t *labels) {
    const double energy = toy_energy(toy, labels);
    uint16_t changed[MOST_VARIABLES];
    double gain = 0;
    for (size_t i = 0; i < toy->labels; i++)
        for (size_t j = 0; j < toy->labels; j++) {
            for (size_t a = 0; a < toy->variables; a++)
                changed[a] = labels[a] == j ? (uint16_t)i : labels[a];
            gain = fmax(gain, energy - toy_energy(toy, changed));
        }
    return gain;
}

/* The gain of changing the members of a clique one by one, summed, plus the clique's cost. */
static double gain_of_cliques(const struct toy *toy, const uint16_t *labels) {
    const size_t n = toy->variables;
    double gain = 0;
    for (size_t p = 0; p < toy->cliques; p++)
        for (size_t i = 0; i < toy->labels; i++) {
            double sum = 0;
            bool agree = true;
            for (size_t c = toy->offsets[p]; c < toy->offsets[p + 1]; c++) {
                const size_t a = toy->members[c];
                agree &= labels[a] == labels[toy->members[toy->offsets[p]]];
                sum += toy->unary[a * toy->labels + labels[a]] - toy->unary[a * toy->labels + i];
                for (size_t m = 0; m < TOY_KERNELS; m++)
                    for (size_t b = 0; b < n; b++)
                        sum +=
                            2 * toy->matrix[m][a * n + b] *
                            (toy_mu(toy, m, labels[a], labels[b]) - toy_mu(toy, m, i, labels[b]));
            }
            gain = fmax(gain, sum + (agree ? 0 : toy->costs[p]));
        }
    return gain;
}

/* Each kind of move by itself, from a random labelling, until it finds nothing: then there is
 * nothing to find. */
static void each_move_finds_what_there_is(void **state) {
    (void)state;
    const struct {
        dcrf_status (*move)(struct dcrf_polisher *, bool *, dcrf_error *);
        double (*gain)(const struct toy *, const uint16_t *);
        bool potts_only;
    } kinds[] = {{dcrf_move_variables, gain_of_variables, false},
                 {dcrf_move_classes, gain_of_classes, true},
                 {dcrf_move_cliques, gain_of_cliques, true}};
    for (uint64_t seed = 0; seed < 600; seed++) {
        const size_t kind = seed % 3;
        struct toy toy =
            new_toy(seed, 3 + seed % 40, 2 + seed % 5, seed % 7, 0.2 * (double)(seed % 8),
                    seed % 4 || kinds[kind].potts_only ? TOY_POTTS : TOY_GENERAL, 1);
        struct dcrf_coupling *coupling;
        struct dcrf_polisher *polisher;
        uint16_t labels[MOST_VARIABLES];
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        for (size_t a = 0; a < toy.variables; a++)
            labels[a] = (uint16_t)(dcrf_rng_uniform(&rng) * (double)toy.labels);
        assert_int_equal(dcrf_coupling_new(&coupling, toy.plan, toy.workspace, NULL), DCRF_OK);
        assert_int_equal(dcrf_polisher_new(&polisher, coupling, NULL), DCRF_OK);
        assert_int_equal(dcrf_polisher_load(polisher, labels, 10000, NULL), DCRF_OK);
        double energy = toy_energy(&toy, labels);
        for (bool is_better = true; is_better;) {
            assert_int_equal(kinds[kind].move(polisher, &is_better, NULL), DCRF_OK);
            assert_int_equal(dcrf_polisher_read(polisher, labels, NULL), DCRF_OK);
            const double now = toy_energy(&toy, labels);
            assert_true(fabs(now - polisher->energy) <= TOLERANCE);
            assert_true(is_better ? now < energy + TOLERANCE : fabs(now - energy) <= 1e-9);
            energy = now;
        }
        assert_true(kinds[kind].gain(&toy, labels) <= TOLERANCE);
        dcrf_polisher_free(&polisher);
        dcrf_coupling_free(&coupling);
        free_toy(&toy);
    }
}

static void moves_end_where_none_gains(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct toy toy = new_toy(seed, 3 + seed % 40, 2 + seed % 5, seed % 5,
                                 0.2 * (double)(seed % 7), seed % 4 ? TOY_POTTS : TOY_GENERAL, 1);
        struct dcrf_coupling *coupling;
        struct dcrf_polisher *polisher;
        uint16_t labels[MOST_VARIABLES], once[MOST_VARIABLES];
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        for (size_t a = 0; a < toy.variables; a++)
            labels[a] = once[a] = (uint16_t)(dcrf_rng_uniform(&rng) * (double)toy.labels);
        assert_int_equal(dcrf_coupling_new(&coupling, toy.plan, toy.workspace, NULL), DCRF_OK);
        assert_int_equal(dcrf_polisher_new(&polisher, coupling, NULL), DCRF_OK);
        const double before = toy_energy(&toy, labels);
        /* Two rounds at most: never worse. */
        assert_int_equal(dcrf_polish(polisher, once, 2, NULL, NULL), DCRF_OK);
        const double short_run = toy_energy(&toy, once);
        assert_true(short_run <= before + TOLERANCE);
        assert_int_equal(dcrf_polish(polisher, labels, 10000, NULL, NULL), DCRF_OK);
        assert_true(toy_energy(&toy, labels) <= before + TOLERANCE);
        assert_true(gain_of_variables(&toy, labels) <= TOLERANCE);
        assert_true(toy.values || gain_of_classes(&toy, labels) <= TOLERANCE);
        dcrf_polisher_free(&polisher);
        dcrf_coupling_free(&coupling);
        free_toy(&toy);
    }
}

/* A clique whose members stay because the others do: only moving all of them together helps. */
static void a_clique_moves_as_a_whole(void **state) {
    (void)state;
    enum { VARIABLES = 12, LABELS = 2, MEMBERS = 6 };
    const dcrf_grid grid = dcrf_grid_1d(VARIABLES);
    float unary[VARIABLES * LABELS] = {0};
    int32_t map[VARIABLES];
    for (size_t a = 0; a < VARIABLES; a++) {
        unary[2 * a] = a < MEMBERS ? 1 : 0; /* members prefer label 1 by 1, the others label 0 */
        unary[2 * a + 1] = a < MEMBERS ? 0 : 9;
        map[a] = a < MEMBERS ? 0 : -1;
    }
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    struct dcrf_coupling *coupling;
    struct dcrf_polisher *polisher;
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_view map_view = dcrf_view_interleaved(map, DCRF_I32, &grid, 1);
    assert_int_equal(dcrf_model_new(&model, &grid, LABELS, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_clique_map(model, &map_view, 3, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_coupling_new(&coupling, plan, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_polisher_new(&polisher, coupling, NULL), DCRF_OK);
    uint16_t labels[VARIABLES] = {0};
    assert_int_equal(dcrf_polish(polisher, labels, 10, NULL, NULL), DCRF_OK);
    for (size_t a = 0; a < VARIABLES; a++)
        assert_int_equal(labels[a], a < MEMBERS);
    dcrf_polisher_free(&polisher);
    dcrf_coupling_free(&coupling);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_is_taken),
        cmocka_unit_test(columns_have_names),
        cmocka_unit_test(thresholds_draw_the_marginals),
        cmocka_unit_test(a_threshold_is_common_to_all),
        cmocka_unit_test(each_move_finds_what_there_is),
        cmocka_unit_test(moves_end_where_none_gains),
        cmocka_unit_test(a_clique_moves_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
