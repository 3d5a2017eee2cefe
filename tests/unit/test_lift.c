/* The LP's start off the corner for constant labellings: what it starts from, what narrowing keeps,
 * and how many steps that saves. */
#include "unit.h"

#include "core/memory.h"
#include "lp/lp.h"
#include "lp/potential_flow.h"
#include "solver/solver.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>

/* A strip whose left part would rather have label 1, and the rest label 0; label 2 is dear in a
 * corner. All of label 0 is best, since a border costs more than label 1 would gain; but the flows
 * that prove it must cross the strip, from pair to pair, and the potentials differ by more than 1
 * from end to end. */
enum { WIDTH = 48, HEIGHT = 10, VARIABLES = WIDTH * HEIGHT, LABELS = 3 };

struct run {
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
};

static struct run new_run(size_t iterations) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    float *unary = calloc(VARIABLES * LABELS, sizeof *unary);
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_kernel kernel = dcrf_kernel_spatial(1.5, 20);
    struct run run = {0};
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.iterations = iterations;
    settings.gap = 1e-4;
    for (size_t a = 0; a < VARIABLES; a++) {
        unary[a * LABELS] = a % WIDTH < 16 ? 1 : 0;
        unary[a * LABELS + 1] = a % WIDTH < 16 ? 0 : 0.8f;
        unary[a * LABELS + 2] = a < 3 ? 2 : 1;
    }
    assert_int_equal(dcrf_model_new(&run.model, &grid, LABELS, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(run.model, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(run.model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&run.workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&run.plan, run.model, DCRF_OPERATOR_EXACT, run.workspace, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_solver_new(&run.solver, run.plan, run.workspace, &settings, NULL),
                     DCRF_OK);
    assert_true(dcrf_solver_run(run.solver, NULL) >= 0);
    free(unary);
    return run;
}

static void free_run(struct run *run) {
    dcrf_solver_free(&run->solver);
    dcrf_plan_free(&run->plan);
    dcrf_workspace_free(&run->workspace);
    dcrf_model_free(&run->model);
}

static struct dcrf_lp *lp_of(const struct run *run) {
    return run->solver->state;
}

/* 13 steps; from the corner it takes 46. */
static void a_run_takes_few_steps(void **state) {
    (void)state;
    struct run run = new_run(20);
    dcrf_solver_info info;
    dcrf_solver_get_info(run.solver, &info);
    assert_true(info.is_constant && info.constant_label == 0);
    assert_true(info.candidates[DCRF_CANDIDATE_FLOW].lower_bound < 0.5 * info.energy.total);
    assert_true(lp_of(&run)->huber.lift.is_on);
    assert_int_equal(info.stop, DCRF_STOP_GAP);
    assert_true(info.lower_bound <= info.energy.total);
    free_run(&run);
}

/* ---- the start ------------------------------------------------------------------------------ */

struct lifted {
    struct run run;
    struct dcrf_flow_proof flow;
    struct dcrf_start from;
    uint16_t labels[VARIABLES];
    float *y;
    double epsilon;
};

static struct lifted *new_lifted(void) {
    struct lifted *l = calloc(1, sizeof *l);
    l->run = new_run(1);
    const double energy = l->run.solver->info.energy.total;
    assert_int_equal(dcrf_potential_flow(&lp_of(&l->run)->space, energy, NULL, &l->flow, NULL),
                     DCRF_OK);
    l->from = (struct dcrf_start){.labels = l->labels, .flow = &l->flow};
    l->epsilon = 0.25;
    return l;
}

static void lift(struct lifted *l) {
    dcrf_release(l->y);
    l->y = NULL;
    l->epsilon = 0.25;
    assert_int_equal(dcrf_lp_lift_new(lp_of(&l->run), &l->from, &l->y, &l->epsilon, NULL), DCRF_OK);
    assert_true(lp_of(&l->run)->huber.lift.is_on == (l->y != NULL));
}

static void free_lifted(struct lifted *l) {
    dcrf_release(l->y);
    dcrf_flow_proof_clear(&l->flow);
    free_run(&l->run);
    free(l);
}

/* u_1 - u_0 in halves: v of label 1. */
static double value_of(const struct lifted *l, size_t a) {
    const float *potentials = l->flow.potentials + a * lp_of(&l->run)->problem->model->stride;
    return (l->flow.spread[1] * (double)potentials[1] - l->flow.spread[0] * (double)potentials[0]) /
           2;
}

static double spread_of(const struct lifted *l) {
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (size_t a = 0; a < VARIABLES; a++) {
        low = fmin(low, value_of(l, a));
        high = fmax(high, value_of(l, a));
    }
    return high - low;
}

/* Distributions with the flows of the potentials: (y_b - y_a) / epsilon = v_a - v_b. Label 2 does
 * not take part, and label 0 takes what is left. */
static void it_has_the_flows_of_the_potentials(void **state) {
    (void)state;
    struct lifted *l = new_lifted();
    const size_t stride = lp_of(&l->run)->problem->model->stride;
    lift(l);
    assert_non_null(l->y);
    assert_true(l->flow.spread[1] > 1 && l->flow.spread[2] == 1);
    assert_true(l->epsilon * spread_of(l) <= 0.5);
    assert_true(l->epsilon * spread_of(l) > 0.2); /* no narrower than necessary */
    for (size_t a = 0; a < VARIABLES; a++) {
        const float *row = l->y + a * stride;
        const double difference = (double)(row[1] - l->y[1]) / l->epsilon;
        assert_true(row[0] >= 0.4999f && row[1] >= 0 && row[2] == 0);
        assert_true(fabs((double)row[0] + (double)row[1] - 1) < 1e-6);
        /* Floats in [0, 1], divided by epsilon. */
        assert_true(fabs(difference - (value_of(l, 0) - value_of(l, a))) < 1e-4);
        for (size_t i = LABELS; i < stride; i++)
            assert_true(row[i] == 0);
    }
    free_lifted(l);
}

/* The same potentials, with a spread as given. */
static void spread(struct lifted *l, double wanted) {
    const double factor = wanted / spread_of(l);
    l->flow.spread[0] *= factor;
    l->flow.spread[1] *= factor;
}

static void it_is_left_out_where_it_does_not_help(void **state) {
    (void)state;
    struct lifted *l = new_lifted();
    spread(l, 31); /* half of y at 1/62 */
    lift(l);
    assert_true(l->y && l->epsilon == 1.0 / 63);
    spread(l, 32);
    lift(l);
    assert_true(!l->y && l->epsilon == 0.25);
    spread(l, 4);
    const double kept = l->flow.spread[1];
    l->flow.spread[1] = 1;
    lift(l);
    assert_true(!l->y && l->epsilon == 0.25);
    l->flow.spread[1] = kept;
    float own[1];
    l->from.y = own;
    lift(l);
    assert_null(l->y);
    l->from.y = NULL;
    lift(l);
    assert_non_null(l->y);
    l->from.flow = NULL;
    lift(l);
    assert_null(l->y);
    free_lifted(l);
}

/* Constants per variable change no flow that counts, so they do not change the start. */
static void it_ignores_constants(void **state) {
    (void)state;
    struct lifted *l = new_lifted();
    const size_t stride = lp_of(&l->run)->problem->model->stride, count = VARIABLES * stride;
    lift(l);
    float *before = calloc(count, sizeof *before);
    memcpy(before, l->y, count * sizeof *before);
    for (size_t a = 0; a < VARIABLES; a++)
        for (size_t i = 0; i < LABELS; i++)
            l->flow.potentials[a * stride + i] += (float)(a % 7) / (float)l->flow.spread[i];
    lift(l);
    assert_non_null(l->y);
    for (size_t k = 0; k < count; k++)
        assert_true(fabsf(l->y[k] - before[k]) < 1e-5f);
    free(before);
    free_lifted(l);
}

/* ---- narrowing ------------------------------------------------------------------------------ */

static const float *read(struct dcrf_lp *lp) {
    lp->is_y_old = true;
    assert_int_equal(dcrf_lp.fetch(lp, NULL), DCRF_OK);
    return lp->y;
}

/* y is drawn towards the corner by the factor, unless a better labelling is known. */
static void narrowing_keeps_the_flows(void **state) {
    (void)state;
    enum { MOST_NUMBERS = VARIABLES * 8 };
    static float before[MOST_NUMBERS];
    struct run run = new_run(1);
    struct dcrf_lp *lp = lp_of(&run);
    const size_t stride = lp->problem->model->stride;
    assert_true(stride * VARIABLES <= MOST_NUMBERS && lp->huber.lift.is_on);
    memcpy(before, read(lp), VARIABLES * stride * sizeof *before);
    assert_int_equal(dcrf_lp_lift_narrow(lp, 0.25, NULL), DCRF_OK);
    const float *y = read(lp);
    float moved = 0;
    for (size_t a = 0; a < VARIABLES; a++) {
        for (size_t i = 1; i < LABELS; i++)
            assert_true(y[a * stride + i] == before[a * stride + i] / 4);
        assert_true(fabsf(y[a * stride] - (1 - y[a * stride + 1] - y[a * stride + 2])) < 1e-6f);
        moved += before[a * stride] != y[a * stride];
    }
    assert_true(moved > VARIABLES / 2);
    run.solver->info.energy.total -= 1;
    memcpy(before, y, VARIABLES * stride * sizeof *before);
    assert_int_equal(dcrf_lp_lift_narrow(lp, 0.25, NULL), DCRF_OK);
    assert_false(lp->huber.lift.is_on);
    assert_memory_equal(read(lp), before, VARIABLES * stride * sizeof *before);
    free_run(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_takes_few_steps),
        cmocka_unit_test(it_has_the_flows_of_the_potentials),
        cmocka_unit_test(it_is_left_out_where_it_does_not_help),
        cmocka_unit_test(it_ignores_constants),
        cmocka_unit_test(narrowing_keeps_the_flows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
