/* The LP relaxation as a method of the solver.
 *
 *   min_y  phi'y + sum_{a < b} K_ab sum_i |y_ai - y_bi| + clique terms,   y_a distributions
 *
 * (MODEL: Potts; clique terms: dcrf_clique_form). Both schedules start from the labelling of
 * mean field, or the best constant one where that is better, as an integral point: there
 * the pairs that differ are saturated and the others are not, which is the pattern of the optimal
 * dual, and labels that mean field does not use cost nothing. */
#include "solver/lp.h"

#include "core/error.h"
#include "core/memory.h"
#include "round/round.h"

#include <math.h>
#include <string.h>

static void lp_free(void *state) {
    struct dcrf_lp *lp = state;
    if (!lp)
        return;
    if (lp->mean_field)
        dcrf_mean_field.free(lp->mean_field);
    dcrf_pair_filter_clear(&lp->pairs);
    dcrf_clique_dual_clear(&lp->cliques);
    dcrf_dual_clear(&lp->current);
    dcrf_dual_clear(&lp->other);
    dcrf_dual_clear(&lp->best);
    dcrf_dual_space_clear(&lp->space);
    dcrf_lp_record_clear(&lp->record);
    dcrf_release(lp->labels);
    dcrf_release(lp->y);
    dcrf_release(lp->previous);
    dcrf_release(lp->z);
    dcrf_release(lp->metric);
    dcrf_release(lp);
}

/* The curvature of the smoothed problem at a variable is at most about (row sum + stiffness of its
 * clique) / epsilon: K is nearly positive semidefinite, so D - K is below D. Variables that nothing
 * holds get a small one, so that their step is long but finite. */
static void make_metric(struct dcrf_lp *lp) {
    const size_t n = lp->problem->model->variables;
    const struct dcrf_cliques *cliques = &lp->problem->model->cliques;
    double mean = 0;
    memcpy(lp->metric, lp->space.row_sums, n * sizeof *lp->metric);
    for (size_t p = 0; p < cliques->count; p++)
        for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
            lp->metric[cliques->members[k]] += (float)lp->cliques.stiffness[p];
    for (size_t a = 0; a < n; a++)
        mean += (double)lp->metric[a] / (double)n;
    const float floor = mean > 0 ? (float)(1e-3 * mean) : 1e-3f;
    for (size_t a = 0; a < n; a++)
        lp->metric[a] = lp->metric[a] > floor ? lp->metric[a] : floor;
    lp->lambda = lp->problem->settings->lp.lambda > 0 ? lp->problem->settings->lp.lambda
                 : mean > 0                           ? 2 / mean
                                                      : 1;
}

static dcrf_status take_memory(struct dcrf_lp *lp, dcrf_error *error) {
    const dcrf_model *model = lp->problem->model;
    const size_t row = model->stride * sizeof(float);
    lp->labels = dcrf_allocate(model->variables, sizeof *lp->labels);
    lp->y = dcrf_allocate_zero(model->variables, row);
    lp->previous = dcrf_allocate_zero(model->variables, row);
    lp->z = dcrf_allocate_zero(model->variables, row);
    lp->metric = dcrf_allocate(model->variables, sizeof(float));
    if (!lp->labels || !lp->y || !lp->previous || !lp->z || !lp->metric)
        return dcrf_fail_memory(error, "the LP relaxation");
    dcrf_status status = dcrf_dual_space_init(&lp->space, lp->problem->plan, lp->problem->workspace,
                                              lp->problem->settings->lp.clique_form, error);
    if (status < 0 || (status = dcrf_pair_filter_init(&lp->pairs, &lp->space, error)) < 0 ||
        (status = dcrf_clique_dual_init(&lp->cliques, &lp->space, error)) < 0 ||
        (status = dcrf_dual_init(&lp->current, &lp->space, error)) < 0 ||
        (status = dcrf_dual_init(&lp->other, &lp->space, error)) < 0 ||
        (status = dcrf_dual_init(&lp->best, &lp->space, error)) < 0)
        return status;
    return dcrf_mean_field.init(&lp->mean_field, lp->problem, error);
}

static dcrf_status lp_init(void **state, const struct dcrf_problem *problem, dcrf_error *error) {
    *state = NULL;
    struct dcrf_lp *lp = dcrf_allocate_zero(1, sizeof *lp);
    if (!lp)
        return dcrf_fail_memory(error, "the LP relaxation");
    lp->problem = problem;
    const dcrf_status status = take_memory(lp, error);
    if (status < 0) {
        lp_free(lp);
        return status;
    }
    make_metric(lp);
    *state = lp;
    return DCRF_OK;
}

/* ---- the start ------------------------------------------------------------------------------ */

static void set_labels(struct dcrf_lp *lp, const uint16_t *labels) {
    const dcrf_model *model = lp->problem->model;
    memset(lp->y, 0, model->variables * model->stride * sizeof *lp->y);
    for (size_t a = 0; a < model->variables; a++)
        lp->y[a * model->stride + labels[a]] = 1;
}

/* The best constant labelling into lp->labels; returns its energy. */
static double find_constant(struct dcrf_lp *lp) {
    const dcrf_model *model = lp->problem->model;
    size_t best = 0;
    double lowest = INFINITY;
    for (size_t i = 0; i < model->labels; i++) {
        double sum = 0;
        for (size_t a = 0; a < model->variables; a++)
            sum += (double)model->unary[a * model->stride + i];
        if (sum < lowest) {
            lowest = sum;
            best = i;
        }
    }
    for (size_t a = 0; a < model->variables; a++)
        lp->labels[a] = (uint16_t)best;
    return lowest;
}

/* Updates of mean field before the LP, at most. */
#define MEAN_FIELD_UPDATES 100

/* Begin at the labelling of mean field if its energy is below `energy`. */
static dcrf_status start_from_mean_field(struct dcrf_lp *lp, double energy, dcrf_error *error) {
    const dcrf_model *model = lp->problem->model;
    struct dcrf_step_report report;
    dcrf_status status = dcrf_mean_field.start(lp->mean_field, NULL, error);
    for (int k = 0; k < MEAN_FIELD_UPDATES && status == DCRF_OK; k++) {
        status = dcrf_mean_field.step(lp->mean_field, &report, error);
        if (status < 0 || report.stationarity <= DCRF_DEFAULT_MF_STATIONARITY ||
            dcrf_stop_is_time(lp->problem->stop))
            break;
    }
    if (status < 0)
        return status;
    const struct dcrf_marginals rows = {dcrf_mean_field.marginals(lp->mean_field), model->variables,
                                        model->labels, model->stride};
    dcrf_round_largest(&rows, dcrf_workspace_pool(lp->problem->workspace), lp->labels);
    dcrf_energy found;
    status = dcrf_energy_of_labels(lp->problem->plan, lp->problem->workspace, lp->labels, &found,
                                   NULL, error);
    if (status == DCRF_OK && found.total < energy)
        set_labels(lp, lp->labels);
    return status;
}

/* Nothing is gained by proving more. */
#define PROVEN 1e-5

static dcrf_status lp_start(void *state, const float *y, dcrf_error *error) {
    struct dcrf_lp *lp = state;
    const dcrf_model *model = lp->problem->model;
    dcrf_status status = DCRF_OK;
    dcrf_dual_reset(&lp->best, &lp->space);
    lp->bound = dcrf_dual_bound(&lp->space, &lp->best);
    const double constant = find_constant(lp);
    /* The flow can only prove constant labellings optimal; it is not worth trying where a better
     * labelling is known. */
    if (lp->problem->settings->lp.potential_flow &&
        constant <= *lp->problem->best_energy + PROVEN * fabs(constant))
        status = dcrf_lp_potential_flow(lp, constant, error);
    if (y) {
        memcpy(lp->y, y, model->variables * model->stride * sizeof *y);
    } else {
        set_labels(lp, lp->labels);
        if (status == DCRF_OK && !(constant - lp->bound <= PROVEN * fabs(constant)))
            status = start_from_mean_field(lp, constant, error);
    }
    if (lp->problem->settings->lp.schedule == DCRF_LP_SCHEDULE_PROXIMAL)
        dcrf_lp_proximal_start(lp);
    else
        dcrf_lp_huber_start(lp);
    return status;
}

/* ---- the interface -------------------------------------------------------------------------- */

static dcrf_status lp_step(void *state, struct dcrf_step_report *report, dcrf_error *error) {
    struct dcrf_lp *lp = state;
    const double before = lp->bound;
    const dcrf_status status = lp->problem->settings->lp.schedule == DCRF_LP_SCHEDULE_PROXIMAL
                                   ? dcrf_lp_proximal_step(lp, report, error)
                                   : dcrf_lp_huber_step(lp, report, error);
    report->lower_bound = lp->bound;
    report->stationarity = (lp->bound - before) / fmax(fabs(lp->bound), 1e-30);
    return status;
}

static const float *lp_marginals(const void *state) {
    return ((const struct dcrf_lp *)state)->y;
}

const struct dcrf_method_interface dcrf_lp = {
    .name = "LP",
    .init = lp_init,
    .start = lp_start,
    .step = lp_step,
    .marginals = lp_marginals,
    .free = lp_free,
};
