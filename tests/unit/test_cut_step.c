/* Steps of the LP in the metric of the cuts end at the minimum, by its optimality conditions, with
 * the metric summed cut by cut. */
#include "unit.h"

#include "backend/cpu/cut_step.h"
#include "core/rng.h"
#include "energy/columns.h"
#include "filter/plan.h"
#include "model/cuts.h"
#include "model/model.h"

#include <dcrf/dcrf.h>
#include <math.h>

#define VARIABLES 6
#define MOST_LABELS 24
#define MOST_CUTS 64

static dcrf_model *make(uint64_t seed, dcrf_rng *rng) {
    const dcrf_grid grid = dcrf_grid_1d(VARIABLES);
    const size_t labels = 2 + dcrf_rng_next(rng) % (MOST_LABELS - 1);
    dcrf_model *model;
    assert_int_equal(dcrf_model_new(&model, &grid, labels, NULL), DCRF_OK);
    for (size_t k = 0; k < 1 + seed % 2; k++) {
        const dcrf_kernel kernel = dcrf_kernel_spatial(1 + (double)k, 0.2 + (double)k);
        assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
    }
    const double most = seed % 3 == 0 ? INFINITY : (double)(1 + dcrf_rng_next(rng) % 5);
    assert_int_equal(dcrf_model_set_linear(model, 0, most, NULL), DCRF_OK);
    return model; /* a second kernel is Potts */
}

/* slope += D sum_c 2 length_c 1_c <1_c, difference> */
static void add_group(const struct dcrf_column_group *group, size_t labels, double row_sum,
                      const double *difference, double *slope) {
    uint8_t sets[MOST_CUTS * MOST_LABELS] = {0};
    if (group->cuts) {
        assert_true(group->cuts->count <= MOST_CUTS);
        dcrf_cuts_sets(group->cuts, sets);
    } else
        for (size_t i = 0; i < labels; i++)
            sets[i * labels + i] = 1;
    for (size_t c = 0; c < group->count; c++) {
        double held = 0;
        for (size_t i = 0; i < labels; i++)
            held += sets[c * labels + i] * difference[i];
        for (size_t i = 0; i < labels; i++)
            slope[i] += row_sum * sets[c * labels + i] * held *
                        (group->cuts ? 2 * group->cuts->lengths[c] : 1);
    }
}

/* All labels with mass have the smallest derivative. */
static void check(const struct dcrf_dual_space *space, size_t variable, double own,
                  const double *gradient, const float *z, const float *y, const double *said) {
    const size_t labels = space->plan->model->labels;
    double difference[MOST_LABELS], slope[MOST_LABELS], lowest = INFINITY, sum = 0, scale = own;
    for (size_t i = 0; i < labels; i++) {
        assert_true(y[i] >= 0);
        sum += (double)y[i];
        difference[i] = (double)y[i] - (double)z[i];
        slope[i] = gradient[i] + own * difference[i];
    }
    assert_true(fabs(sum - 1) < 1e-6);
    for (size_t g = 0; g < space->columns->group_count; g++) {
        const double row_sum = (double)space->group_sums[g * VARIABLES + variable];
        scale += row_sum;
        add_group(&space->columns->groups[g], labels, row_sum, difference, slope);
    }
    for (size_t i = 0; i < labels; i++)
        lowest = fmin(lowest, slope[i]);
    for (size_t i = 0; i < labels; i++) {
        assert_true(y[i] == 0 || slope[i] - lowest <= 2e-4 * scale);
        /* The reported slopes differ by a constant. */
        assert_true(fabs(said[i] - slope[i] - (said[0] - slope[0])) <= 1e-4 * scale);
    }
}

static void try_model(uint64_t seed) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    dcrf_model *model = make(seed, &rng);
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    struct dcrf_dual_space space;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_dual_space_init(&space, plan, workspace, DCRF_CLIQUE_MIN, NULL), DCRF_OK);
    assert_int_equal(dcrf_dual_space_measure(&space, NULL), DCRF_OK);
    const size_t labels = model->labels;
    for (size_t a = 0; a < VARIABLES && !space.is_potts; a++) {
        double gradient[MOST_LABELS], moved[MOST_LABELS], sum = 0;
        float z[MOST_LABELS], y[MOST_LABELS] = {0};
        const double own = a % 2 ? 0.3 : 1e-3, strength = pow(10, 2 * dcrf_rng_uniform(&rng) - 1);
        for (size_t i = 0; i < labels; i++)
            sum += z[i] = (float)(dcrf_rng_next(&rng) % 3 ? 0.01 : 1) * (float)(i + 1);
        for (size_t i = 0; i < labels; i++) {
            z[i] /= (float)sum;
            gradient[i] = moved[i] = strength * dcrf_rng_uniform(&rng);
        }
        y[dcrf_rng_next(&rng) % labels] = 1;
        dcrf_cut_step_take(&space, a, own, z, y, moved);
        check(&space, a, own, gradient, z, y, moved);
    }
    dcrf_dual_space_clear(&space);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
}

static void test_minimum(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++)
        try_model(seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_minimum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
