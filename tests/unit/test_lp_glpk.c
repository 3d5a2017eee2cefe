/* The LP method against GLPK, which solves the same linear program written out:
 *
 *   min  sum_ai phi_ai y_ai + sum_{a < b} K_ab sum_i v_abi + clique terms
 *   sum_i y_ai = 1,  v_abi >= |y_ai - y_bi|,
 *   min form     C_p (1 - sum_i m_pi),  m_pi <= y_ai for the members a of p
 *   spread form  C_p w_p,  w_p >= h_pi - m_pi,  m_pi <= y_ai <= h_pi */
#include "lp/lp_experiment.h"
#include "solver/solver.h"
#include "toy.h"

#include <dcrf/solver.h>
#include <glpk.h>
#include <math.h>
#include <stdlib.h>

struct program {
    glp_prob *lp;
    int rows, columns;
    size_t entries, room;
    int *row, *column;
    double *value;
};

static int add_column(struct program *p, double cost, int bounds, double low, double high) {
    glp_add_cols(p->lp, 1);
    p->columns++;
    glp_set_obj_coef(p->lp, p->columns, cost);
    glp_set_col_bnds(p->lp, p->columns, bounds, low, high);
    return p->columns;
}

static int add_row(struct program *p, int bounds, double low) {
    glp_add_rows(p->lp, 1);
    p->rows++;
    glp_set_row_bnds(p->lp, p->rows, bounds, low, low);
    return p->rows;
}

static void enter(struct program *p, int row, int column, double value) {
    if (++p->entries >= p->room) {
        p->room = 2 * p->room + 1024;
        p->row = realloc(p->row, p->room * sizeof *p->row);
        p->column = realloc(p->column, p->room * sizeof *p->column);
        p->value = realloc(p->value, p->room * sizeof *p->value);
    }
    p->row[p->entries] = row;
    p->column[p->entries] = column;
    p->value[p->entries] = value;
}

/* 0 <= sum of two columns with signs +1 and -1, and one more. */
static void at_least_zero(struct program *p, int plus, int minus, int also, double sign) {
    const int row = add_row(p, GLP_LO, 0);
    enter(p, row, plus, 1);
    enter(p, row, minus, -1);
    if (also)
        enter(p, row, also, sign);
}

static double solve_by_glpk(const struct toy *toy, dcrf_clique_form form) {
    const size_t n = toy->variables, labels = toy->labels;
    struct program p = {.lp = glp_create_prob()};
    double constant = 0;
    glp_term_out(GLP_OFF);
    for (size_t k = 0; k < n * labels; k++)
        add_column(&p, toy->unary[k], GLP_LO, 0, 0);
    for (size_t a = 0; a < n; a++) {
        const int row = add_row(&p, GLP_FX, 1);
        for (size_t i = 0; i < labels; i++)
            enter(&p, row, (int)(a * labels + i) + 1, 1);
    }
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < a; b++) {
            const double k = toy->matrix[0][a * n + b] + toy->matrix[1][a * n + b];
            if (k < 1e-6) /* 780 such pairs change the objective by less than 1e-3 of 1e-3 */
                continue;
            for (size_t i = 0; i < labels; i++) {
                const int v = add_column(&p, k, GLP_LO, 0, 0);
                const int ya = (int)(a * labels + i) + 1, yb = (int)(b * labels + i) + 1;
                at_least_zero(&p, v, ya, yb, 1);
                at_least_zero(&p, v, yb, ya, 1);
            }
        }
    for (size_t c = 0; c < toy->cliques; c++) {
        const double cost = toy->costs[c];
        const int w = form == DCRF_CLIQUE_SPREAD ? add_column(&p, cost, GLP_LO, 0, 0) : 0;
        constant += form == DCRF_CLIQUE_MIN ? cost : 0;
        for (size_t i = 0; i < labels; i++) {
            const int m = add_column(&p, form == DCRF_CLIQUE_MIN ? -cost : 0, GLP_FR, 0, 0);
            const int h = form == DCRF_CLIQUE_SPREAD ? add_column(&p, 0, GLP_FR, 0, 0) : 0;
            if (h)
                at_least_zero(&p, w, h, m, 1);
            for (size_t k = toy->offsets[c]; k < toy->offsets[c + 1]; k++) {
                const int y = (int)(toy->members[k] * labels + i) + 1;
                at_least_zero(&p, y, m, 0, 0);
                if (h)
                    at_least_zero(&p, h, y, 0, 0);
            }
        }
    }
    glp_load_matrix(p.lp, (int)p.entries, p.row, p.column, p.value);
    glp_smcp parameters;
    glp_init_smcp(&parameters);
    parameters.meth = GLP_DUALP;
    parameters.presolve = GLP_ON;
    assert_int_equal(glp_simplex(p.lp, &parameters), 0);
    assert_int_equal(glp_get_status(p.lp), GLP_OPT);
    const double objective = glp_get_obj_val(p.lp) + constant;
    glp_delete_prob(p.lp);
    free(p.row);
    free(p.column);
    free(p.value);
    return objective;
}

/* The bound, which is the LP value that the method reports, is within `tolerance` of GLPK's; the
 * objective of y within three times that, because y minimizes the smoothed problem, in which
 * entries that would be equal differ by up to epsilon = 1 / 512. */
static void compare(uint64_t seed, size_t variables, size_t labels, double strength,
                    dcrf_clique_form form, dcrf_lp_schedule schedule, double tolerance) {
    struct toy toy = new_toy(seed, variables, labels, seed % 4, strength, TOY_POTTS, 1);
    const double exact = solve_by_glpk(&toy, form);
    float *y = malloc(variables * labels * sizeof *y);
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_solver_info info;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.gap = 0;
    settings.lp.clique_form = (int)form;
    settings.lp.schedule = (int)schedule;
    settings.iterations = schedule == DCRF_LP_SCHEDULE_HUBER ? 400 : 40;
    settings.evaluate_every = 100;
    assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL), DCRF_OK);
    struct dcrf_lp_experiment experiment = DCRF_LP_USUAL;
    experiment.bins = 256;
    experiment.inner_steps = 40;
    dcrf_lp_set_experiment(solver->state, &experiment);
    assert_true(dcrf_solver_run(solver, NULL) > 0);
    dcrf_solver_get_info(solver, &info);
    assert_int_equal(dcrf_solver_marginals(solver, y, variables * labels, labels, NULL), DCRF_OK);
    const double objective = toy_lp_objective(&toy, y, form);
    print_message("%zu x %zu, seed %d, form %d, schedule %d: GLPK %.6f, bound %.6f, y %.6f, energy "
                  "%.6f\n",
                  variables, labels, (int)seed, (int)form, (int)schedule, exact, info.lower_bound,
                  objective, info.energy.total);
    assert_true(info.lower_bound <= exact * (1 + 1e-6));
    assert_true(info.lower_bound >= exact * (1 - tolerance));
    assert_true(objective >= exact * (1 - 1e-6));
    assert_true(objective <= exact * (1 + 3 * tolerance));
    dcrf_solver_free(&solver);
    free(y);
    free_toy(&toy);
}

static void huber(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++)
        for (int form = 0; form < 2; form++)
            compare(seed, 8 + 2 * seed % 13, 2 + seed % 3, 0.15 + 0.1 * (double)(seed % 5),
                    (dcrf_clique_form)form, DCRF_LP_SCHEDULE_HUBER, 1e-3);
    for (int form = 0; form < 2; form++)
        compare(3, 40, 4, 0.12, (dcrf_clique_form)form, DCRF_LP_SCHEDULE_HUBER, 1e-3);
}

/* Frank-Wolfe converges like one over the number of steps. */
static void proximal(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int form = 0; form < 2; form++)
            compare(seed, 8 + 2 * seed % 13, 2 + seed % 3, 0.15 + 0.1 * (double)(seed % 5),
                    (dcrf_clique_form)form, DCRF_LP_SCHEDULE_PROXIMAL, 1e-2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(huber),
        cmocka_unit_test(proximal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
