/* Simple labellings and the relative gap, against plain loops and by invariances. */
#include "core/rng.h"
#include "toy.h"

#include <dcrf/labelling.h>
#include <math.h>

/* Energies of toys come from float kernels: 4e-6 of terms that sum to less than 60. */
#define TOLERANCE 2e-4

static void constants_and_minima(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct toy toy = new_toy(seed, 3 + seed % 20, 1 + seed % 6, seed % 3, 0.5,
                                 seed % 2 ? TOY_GENERAL : TOY_POTTS, 1);
        uint16_t labels[32], label;
        float rows[32 * 8] = {0};
        dcrf_energy energy;
        double best = (double)INFINITY, floor = 0;
        dcrf_label_by_unary(toy.model, labels, 32, NULL);
        for (size_t a = 0; a < toy.variables; a++) {
            const double *unary = toy.unary + a * toy.labels;
            for (size_t i = 0; i < toy.labels; i++) {
                assert_true(unary[labels[a]] < unary[i] ||
                            (!(unary[i] < unary[labels[a]]) && labels[a] <= i));
                rows[a * 8 + i] = -(float)unary[i];
            }
            floor += unary[labels[a]];
        }
        uint16_t again[32];
        assert_int_equal(
            dcrf_label_by_marginals(rows, toy.variables, toy.labels, 8, again, 32, NULL), DCRF_OK);
        assert_memory_equal(again, labels, toy.variables * sizeof *labels);
        assert_true(fabs(dcrf_unary_floor(toy.model) - floor) <= 1e-9);
        for (size_t i = 0; i < toy.labels; i++) {
            for (size_t a = 0; a < toy.variables; a++)
                labels[a] = (uint16_t)i;
            best = fmin(best, toy_energy(&toy, labels));
        }
        assert_int_equal(dcrf_best_constant(toy.plan, toy.workspace, &label, &energy, NULL),
                         DCRF_OK);
        assert_true(fabs(energy.total - best) <= TOLERANCE);
        for (size_t a = 0; a < toy.variables; a++)
            labels[a] = label;
        assert_true(fabs(toy_energy(&toy, labels) - best) <= TOLERANCE);
        free_toy(&toy);
    }
}

/* Rows shorter and longer than a vector, with many equal numbers: the first of them. */
static void minima_of_rows_of_any_length(void **state) {
    (void)state;
    enum { VARIABLES = 50, MOST = 45 };
    const dcrf_grid grid = dcrf_grid_2d(VARIABLES, 1);
    for (size_t turn = 0; turn < 2 * MOST; turn++) {
        const size_t count = 1 + turn / 2;
        float unary[VARIABLES * MOST];
        uint16_t labels[VARIABLES];
        double floor = 0;
        dcrf_model *model;
        dcrf_rng rng;
        dcrf_rng_seed(&rng, turn);
        for (size_t k = 0; k < VARIABLES * count; k++) {
            const float value = (float)(6 * dcrf_rng_uniform(&rng) - 3);
            unary[k] = turn % 2 ? rintf(value) : value;
        }
        const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, count);
        assert_int_equal(dcrf_model_new(&model, &grid, count, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
        assert_int_equal(dcrf_label_by_unary(model, labels, VARIABLES, NULL), DCRF_OK);
        for (size_t a = 0; a < VARIABLES; a++) {
            size_t best = 0;
            for (size_t i = 1; i < count; i++)
                best = unary[a * count + i] < unary[a * count + best] ? i : best;
            assert_int_equal(labels[a], best);
            floor += (double)unary[a * count + best];
        }
        assert_true(fabs(dcrf_unary_floor(model) - floor) <= 1e-9);
        dcrf_model_free(&model);
    }
}

/* Between 0 and 1 whatever the sign of the energies, and independent of their zero. */
static void relative_gap(void **state) {
    (void)state;
    const double offsets[] = {0, -1000, 1000, -9.5, -10};
    for (size_t k = 0; k < 5; k++) {
        const double zero = offsets[k];
        assert_true(fabs(dcrf_relative_gap(10 + zero, 9 + zero, zero) - 0.1) < 1e-12);
        assert_true(fabs(dcrf_relative_gap(10 + zero, zero, zero) - 1) < 1e-12);
        /* The floor is a bound too. */
        assert_true(fabs(dcrf_relative_gap(10 + zero, zero - 5, zero) - 1) < 1e-12);
        assert_true(dcrf_relative_gap(10 + zero, 10 + zero, zero) <= 0);
        /* A bound above the energy by rounding gives a gap of zero, not a negative one. */
        assert_true(dcrf_relative_gap(10 + zero, 10.5 + zero, zero) >= 0);
        assert_true(dcrf_relative_gap(10 + zero, 10.5 + zero, zero) <= 0);
        /* The lowest possible energy: nothing to prove, whatever the bound. */
        assert_true(dcrf_relative_gap(zero, zero, zero) <= 0);
        assert_true(dcrf_relative_gap(zero, zero - 1, zero) <= 0);
    }
    assert_true(isnan(dcrf_relative_gap((double)NAN, 1, 0)));
    assert_true(isnan(dcrf_relative_gap(1, (double)NAN, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_and_minima),
        cmocka_unit_test(minima_of_rows_of_any_length),
        cmocka_unit_test(relative_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
