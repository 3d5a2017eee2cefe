/* Energies against double loops over dense matrices, and what is refused. */
#include "scene.h"

#include "energy/energy.h"
#include "energy/energy_double.h"
#include "filter/plan.h"

#include <dcrf/labelling.h>
#include <math.h>
#include <stdlib.h>

static void assert_energies(const dcrf_energy *e, const dcrf_energy *expected, double pair_scale) {
    assert_close(e->unary, expected->unary, fmax(fabs(expected->unary), 1));
    assert_close(e->pairwise, expected->pairwise, pair_scale);
    assert_close(e->cliques, expected->cliques, fmax(fabs(expected->cliques), 1));
    assert_true(e->total == e->unary + e->pairwise + e->cliques);
}

/* ---- energies ------------------------------------------------------------------------------- */

/* Every third variable, and the others. */
static void check_parts(const struct scene *s, const uint16_t *x, const struct naive *expected) {
    const size_t variables = s->model->variables;
    uint8_t *part = calloc(variables, sizeof *part);
    dcrf_energy sum = {0};
    assert_non_null(part);
    for (int side = 0; side < 2; side++) {
        dcrf_energy energy;
        for (size_t a = 0; a < variables; a++)
            part[a] = (a % 3 == 0) == side;
        assert_int_equal(dcrf_energy_of_part(s->plan, s->workspace, x, part, &energy, NULL),
                         DCRF_OK);
        sum.unary += energy.unary;
        sum.pairwise += energy.pairwise;
        sum.cliques += energy.cliques;
    }
    sum.total = sum.unary + sum.pairwise + sum.cliques;
    assert_energies(&sum, &expected->energy, expected->pair_scale);
    free(part);
}

static void check_labelling(const struct scene *s, const uint16_t *x) {
    dcrf_energy energy, again;
    double of_kernel[KERNELS];
    const struct naive expected = naive_labels(s, x);
    assert_int_equal(
        dcrf_energy_of_labels(s->plan, s->workspace, x, &energy, of_kernel, KERNELS, NULL),
        DCRF_OK);
    assert_energies(&energy, &expected.energy, expected.pair_scale);
    for (size_t m = 0; m < KERNELS; m++)
        assert_close(of_kernel[m], expected.of_kernel[m], expected.pair_scale);
    assert_int_equal(dcrf_energy_of_labels(s->plan, s->workspace, x, &again, NULL, 0, NULL),
                     DCRF_OK);
    assert_memory_equal(&again, &energy, sizeof energy);
    double error_of;
    assert_int_equal(dcrf_energy_in_double(s->plan, s->workspace, x, &again, of_kernel, KERNELS,
                                           &error_of, NULL),
                     DCRF_OK);
    assert_energies(&again, &expected.energy, expected.pair_scale);
    for (size_t m = 0; m < KERNELS; m++)
        assert_close(of_kernel[m], expected.of_kernel[m], expected.pair_scale);
    check_parts(s, x, &expected);
}

static void check_labels(const struct scene *s) {
    uint16_t *x = new_labels(s);
    check_labelling(s, x);
    free(x);
}

static void the_energy_is_that_of_the_double_loop(void **state) {
    (void)state;
    const dcrf_grid grids[] = {dcrf_grid_2d(9, 7), dcrf_grid_3d(4, 3, 5), dcrf_grid_1d(40)};
    for (size_t g = 0; g < 3; g++) {
        dcrf_grid grid = grids[g];
        grid.spacing[0] = 1.25;
        struct scene s = new_scene(grid, 5, 1, DCRF_OPERATOR_EXACT, FORMULA);
        check_labels(&s);
        /* Every compatibility on every kernel, and changed weights: the plan stays. */
        for (int kind = DCRF_COMPATIBILITY_MATRIX; kind >= DCRF_COMPATIBILITY_POTTS; kind--) {
            for (size_t m = 0; m < KERNELS; m++)
                set_compatibility(&s, m, (dcrf_compatibility)kind);
            check_labels(&s);
        }
        set_compatibility(&s, 1, DCRF_COMPATIBILITY_VECTOR);
        set_compatibility(&s, 2, DCRF_COMPATIBILITY_MATRIX);
        set_weight(&s, 0, 0);
        set_weight(&s, 2, 6.5);
        check_labels(&s);
        free_scene(&s);
    }
}

/* The same through grid and lattice operators, against their own matrices. */
static void fast_plans_give_the_energy_of_their_operators(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(9, 7), 5, 2, DCRF_OPERATOR_FAST, OPERATORS);
    assert_int_equal(dcrf_operator_kind_of(dcrf_plan_operator(s.plan, 0)), DCRF_OPERATOR_GRID);
    assert_int_equal(dcrf_operator_kind_of(dcrf_plan_operator(s.plan, 1)), DCRF_OPERATOR_LATTICE);
    check_labels(&s);
    set_compatibility(&s, 1, DCRF_COMPATIBILITY_VECTOR);
    set_compatibility(&s, 2, DCRF_COMPATIBILITY_MATRIX);
    check_labels(&s);
    free_scene(&s);
    /* One label more than an operator takes at a time. */
    s = new_scene(dcrf_grid_2d(9, 7), 9, 2, DCRF_OPERATOR_FAST, OPERATORS);
    uint16_t x[63];
    for (size_t a = 0; a < 63; a++)
        x[a] = (uint16_t)(a % 9);
    check_labelling(&s, x);
    free_scene(&s);
}

static void the_weight_of_a_kernel_without_pairs_is_nothing(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_1d(1), 3, 1, DCRF_OPERATOR_EXACT, FORMULA);
    for (size_t m = 0; m < KERNELS; m++)
        set_compatibility(&s, m, DCRF_COMPATIBILITY_MATRIX); /* K's diagonal does not count */
    const uint16_t x[1] = {2};
    dcrf_energy energy;
    assert_int_equal(dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, NULL, 0, NULL),
                     DCRF_OK);
    /* K Y and the diagonal are each rounded to float. */
    assert_true(energy.unary == s.unary[2] && fabs(energy.pairwise) < 1e-6);
    free_scene(&s);
}

static void one_label_costs_nothing_but_its_unary_energy(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(6, 5), 1, 2, DCRF_OPERATOR_EXACT, FORMULA);
    const uint16_t x[30] = {0};
    dcrf_energy energy;
    assert_int_equal(dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, NULL, 0, NULL),
                     DCRF_OK);
    assert_true(energy.pairwise == 0 && energy.cliques == 0);
    assert_close(energy.total, naive_labels(&s, x).energy.unary, 30);
    free_scene(&s);
}

static void there_may_be_thousands_of_labels(void **state) {
    (void)state;
    const size_t labels[] = {4096, 65535};
    for (size_t k = 0; k < 2; k++) {
        struct scene s = new_scene(dcrf_grid_2d(11, 9), labels[k], 2, DCRF_OPERATOR_EXACT, FORMULA);
        uint16_t x[99];
        for (size_t a = 0; a < 99; a++) /* 70 labels: three blocks */
            x[a] = (uint16_t)(labels[k] - 1 - a % 70 * 57);
        const struct naive expected = naive_labels(&s, x);
        dcrf_energy energy;
        assert_int_equal(dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, NULL, 0, NULL),
                         DCRF_OK);
        assert_energies(&energy, &expected.energy, expected.pair_scale);
        /* No N x M block was allocated: in and out are 32 channels wide, and so are the threads'
         * buffers. */
        assert_true(dcrf_workspace_bytes(s.workspace) <
                    64 * 99 * sizeof(float) + 4 * labels[k] + 400000);
        free_scene(&s);
    }
}

static void threads_do_not_change_a_byte(void **state) {
    (void)state;
    enum { TIMES = 5 };
    const size_t threads[TIMES] = {1, 2, 3, 8, 16};
    const dcrf_operator_kind kinds[] = {DCRF_OPERATOR_EXACT, DCRF_OPERATOR_FAST};
    for (size_t k = 0; k < 2; k++) {
        dcrf_energy labels[TIMES];
        double of_kernel[TIMES][KERNELS];
        for (size_t t = 0; t < TIMES; t++) {
            /* 1200 variables: the sums take two chunks. */
            struct scene s = new_scene(dcrf_grid_2d(40, 30), 5, threads[t], kinds[k], NO_MATRICES);
            uint16_t *x = new_labels(&s);
            assert_int_equal(dcrf_energy_of_labels(s.plan, s.workspace, x, &labels[t], of_kernel[t],
                                                   KERNELS, NULL),
                             DCRF_OK);
            assert_memory_equal(&labels[t], &labels[0], sizeof labels[0]);
            assert_memory_equal(of_kernel[t], of_kernel[0], sizeof of_kernel[0]);
            free(x);
            free_scene(&s);
        }
    }
}

static void a_model_without_kernels_and_cliques_has_unary_energies(void **state) {
    (void)state;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
    dcrf_energy energy;
    const dcrf_grid grid = dcrf_grid_1d(3);
    const double unary[] = {1, 2, 3, 4, 5, 6};
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F64, &grid, 2);
    const uint16_t x[] = {1, 0, 1};
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&model, &grid, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_energy_of_labels(plan, workspace, x, &energy, NULL, 0, NULL), DCRF_OK);
    assert_true(energy.total == 11 && energy.pairwise == 0 && energy.cliques == 0);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void bad_labellings_are_refused(void **state) {
    (void)state;
    struct scene s = new_scene(dcrf_grid_2d(4, 3), 3, 1, DCRF_OPERATOR_EXACT, NO_MATRICES);
    dcrf_error error;
    dcrf_energy energy = {1, 2, 3, 4};
    double of_kernel[KERNELS + 1] = {5, 6, 7, 8, 9};
    uint16_t x[12] = {0};
    x[7] = 3;
    assert_fails(
        DCRF_ERROR_ARGUMENT, "variable 7 has label 3; the model has 3 labels", error,
        dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, of_kernel, KERNELS, &error));
    x[7] = 0;
    assert_fails(
        DCRF_ERROR_SIZE, "the energies of kernels: the array holds 3 elements, 4 are needed", error,
        dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, of_kernel, KERNELS - 1, &error));
    for (size_t k = 0; k < 2; k++) { /* without distances and with */
        set_compatibility(&s, 1, k ? DCRF_COMPATIBILITY_POTTS : DCRF_COMPATIBILITY_VECTOR);
        assert_fails(
            DCRF_ERROR_SIZE, "the energies of kernels: the array holds 3 elements, 4 are needed",
            error,
            dcrf_energy_at_most(s.plan, s.workspace, x, &energy, of_kernel, KERNELS - 1, &error));
    }
    assert_fails(DCRF_ERROR_ARGUMENT, "needs", error,
                 dcrf_energy_of_labels(s.plan, s.workspace, NULL, &energy, NULL, 0, &error));
    const dcrf_kernel kernel = dcrf_kernel_spatial(1, 1);
    assert_int_equal(dcrf_model_add_kernel(s.model, &kernel, NULL), DCRF_OK);
    const char stale[] = "made when the model had 4 kernels; it has 5 now";
    assert_fails(
        DCRF_ERROR_SIZE, stale, error,
        dcrf_energy_of_labels(s.plan, s.workspace, x, &energy, of_kernel, KERNELS, &error));
    uint16_t label;
    assert_fails(DCRF_ERROR_SIZE, stale, error,
                 dcrf_best_constant(s.plan, s.workspace, &label, &energy, &error));
    /* Nothing was written. */
    assert_true(energy.total == 1 && energy.unary == 2 && energy.pairwise == 3 &&
                energy.cliques == 4);
    for (size_t m = 0; m <= KERNELS; m++)
        assert_true(of_kernel[m] == (double)(5 + m));
    free_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_energy_is_that_of_the_double_loop),
        cmocka_unit_test(fast_plans_give_the_energy_of_their_operators),
        cmocka_unit_test(the_weight_of_a_kernel_without_pairs_is_nothing),
        cmocka_unit_test(one_label_costs_nothing_but_its_unary_energy),
        cmocka_unit_test(there_may_be_thousands_of_labels),
        cmocka_unit_test(threads_do_not_change_a_byte),
        cmocka_unit_test(a_model_without_kernels_and_cliques_has_unary_energies),
        cmocka_unit_test(bad_labellings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
