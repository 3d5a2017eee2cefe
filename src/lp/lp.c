/* The LP relaxation as a method of the solver.
 *
 *   min_y  phi'y + sum_{a < b} K_ab sum_i |y_ai - y_bi| + clique terms,   y_a distributions
 *
 * (Potts; other compatibilities: energy/columns.h; clique terms: dcrf_clique_form). All schedules
 * start at the best known labelling, an integral point: there the pairs that differ are saturated
 * and the others are not, which is the pattern of the optimal dual, and unused labels cost no work.
 */
#include "lp/lp.h"

#include "backend/make.h"
#include "core/error.h"
#include "core/memory.h"
#include "energy/energy.h"
#include "energy/labelling.h"
#include "lp/potential_flow.h"

#include <math.h>
#include <string.h>

/* ---- blocks --------------------------------------------------------------------------------- */

static dcrf_status make_blocks(void *user, const struct dcrf_backend *backend,
                               dcrf_backend_device *device, const struct dcrf_backend_model *model,
                               dcrf_error *error) {
    struct dcrf_lp *lp = user;
    if (lp->schedule == &dcrf_lp_proximal && !backend->lp->proximal)
        return DCRF_ERROR_UNSUPPORTED;
    lp->methods = backend->lp;
    return lp->methods->make(&lp->blocks, device, model, &lp->space, error);
}

static void free_blocks(struct dcrf_lp *lp) {
    lp->best.pairwise = lp->best.clique = NULL; /* they belong to the blocks or the copy */
    dcrf_dual_clear(&lp->best);
    dcrf_dual_clear(&lp->best_copy);
    dcrf_release(lp->y_copy);
    if (lp->blocks)
        lp->methods->free(lp->blocks);
}

static bool lp_rows(const void *state, struct dcrf_marginals *rows) {
    const struct dcrf_lp *lp = state;
    return lp->methods->view(lp->blocks, rows);
}

/* The copy is allocated when it is first needed. */
static dcrf_status lp_fetch(void *state, dcrf_error *error) {
    struct dcrf_lp *lp = state;
    const dcrf_model *model = lp->problem->model;
    struct dcrf_marginals rows;
    if (lp_rows(lp, &rows) && !rows.label_of) {
        lp->y = rows.values;
        return DCRF_OK;
    }
    if (!lp->y_copy)
        lp->y_copy = dcrf_allocate(model->variables, model->stride * sizeof *lp->y_copy);
    if (!lp->y_copy)
        return dcrf_fail_memory(error, "the LP's marginals");
    lp->y = lp->y_copy;
    const dcrf_status status =
        lp->is_y_old ? lp->methods->read(lp->blocks, DCRF_BACKEND_Y, lp->y_copy, error) : DCRF_OK;
    lp->is_y_old = status < 0;
    return status;
}

dcrf_status dcrf_lp_fetch_best(struct dcrf_lp *lp, dcrf_error *error) {
    struct dcrf_dual view = lp->best;
    if (lp->methods->view_best(lp->blocks, &view) && !view.column_of) {
        lp->best = view;
        return DCRF_OK;
    }
    dcrf_status status = DCRF_OK;
    if (!lp->best_copy.pairwise)
        status = dcrf_dual_init(&lp->best_copy, &lp->space, error);
    lp->best.pairwise = lp->best_copy.pairwise;
    lp->best.clique = lp->best_copy.clique;
    if (status == DCRF_OK && lp->is_best_old)
        status = lp->methods->read_best(lp->blocks, lp->best.pairwise, lp->best.clique, error);
    lp->is_best_old = status < 0;
    return status;
}

/* ---- new and free --------------------------------------------------------------------------- */

static void lp_free(void *state) {
    struct dcrf_lp *lp = state;
    if (!lp)
        return;
    free_blocks(lp);
    dcrf_dual_clear(&lp->huber.current);
    dcrf_dual_clear(&lp->huber.average);
    dcrf_dual_space_clear(&lp->space);
    dcrf_lp_mixture_clear(&lp->mixture);
    dcrf_release(lp->metric);
    dcrf_release(lp);
}

static dcrf_status take_memory(struct dcrf_lp *lp, dcrf_error *error) {
    lp->metric = dcrf_allocate(lp->problem->model->variables, sizeof(float));
    if (!lp->metric)
        return dcrf_fail_memory(error, "the LP relaxation");
    const dcrf_clique_form form = (dcrf_clique_form)lp->problem->settings->lp.clique_form;
    dcrf_status status =
        dcrf_dual_space_init(&lp->space, lp->problem->plan, lp->problem->workspace, form, error);
    if (status == DCRF_OK)
        status = dcrf_backend_make(lp->problem->plan, lp->problem->workspace, NULL, make_blocks, lp,
                                   error);
    return status < 0 ? status : dcrf_lp_mixture_init(lp, error);
}

static dcrf_status lp_init(void **state, const struct dcrf_problem *problem, dcrf_error *error) {
    *state = NULL;
    struct dcrf_lp *lp = dcrf_allocate_zero(1, sizeof *lp);
    if (!lp)
        return dcrf_fail_memory(error, "the LP relaxation");
    lp->problem = problem;
    lp->experiment = DCRF_LP_USUAL;
    lp->schedule = problem->settings->lp.schedule == DCRF_LP_SCHEDULE_HUBER ? &dcrf_lp_huber
                                                                            : &dcrf_lp_proximal;
    const dcrf_status status = take_memory(lp, error);
    if (status < 0) {
        lp_free(lp);
        return status;
    }
    *state = lp;
    return DCRF_OK;
}

void dcrf_lp_set_experiment(void *state, const struct dcrf_lp_experiment *experiment) {
    ((struct dcrf_lp *)state)->experiment = *experiment;
}

/* ---- the start ------------------------------------------------------------------------------ */

/* The curvature of the smoothed problem at a variable is at most about (row sum + stiffness of its
 * clique) / epsilon: K is nearly positive semidefinite, so D - K is below D. Uncoupled variables
 * get a small value, so that their step is long but finite. With cuts the metric is a matrix
 * (backend/cpu/cut_step.c), to which these numbers are added. */
static void make_metric(struct dcrf_lp *lp) {
    const size_t n = lp->problem->model->variables;
    const struct dcrf_cliques *cliques = &lp->problem->model->cliques;
    double mean = 0;
    memcpy(lp->metric, lp->space.curvature, n * sizeof *lp->metric);
    for (size_t p = 0; p < cliques->count; p++)
        for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
            lp->metric[cliques->members[k]] += (float)lp->space.stiffness[p];
    for (size_t a = 0; a < n; a++)
        mean += (double)lp->metric[a] / (double)n;
    const float floor = mean > 0 ? (float)(1e-3 * mean) : 1e-3f;
    for (size_t a = 0; a < n; a++)
        if (!lp->space.is_potts)
            lp->metric[a] = lp->metric[a] - lp->space.curvature[a] + floor;
        else
            lp->metric[a] = lp->metric[a] > floor ? lp->metric[a] : floor;
    lp->mean_metric = mean;
}

static dcrf_status lp_dual_space(void *state, const struct dcrf_dual_space **space,
                                 dcrf_error *error) {
    struct dcrf_lp *lp = state;
    *space = &lp->space;
    if (lp->is_measured)
        return DCRF_OK;
    const dcrf_status status = dcrf_dual_space_measure(&lp->space, error);
    if (status < 0)
        return status;
    make_metric(lp);
    lp->is_measured = true;
    return DCRF_OK;
}

static double lp_row_sums(const void *state) {
    const struct dcrf_lp *lp = state;
    return lp->is_measured ? lp->space.total : (double)INFINITY;
}

static const struct dcrf_columns *lp_columns(const void *state) {
    return ((const struct dcrf_lp *)state)->space.columns;
}

/* alpha_ab = K_ab (u_a - u_b) is the clipped line of width 1 at y = 1 - u. */
static dcrf_status keep_flow(struct dcrf_lp *lp, const struct dcrf_flow_proof *flow,
                             dcrf_error *error) {
    const struct dcrf_pair_shape line = {.epsilon = 1, .bins = 2};
    const size_t cells = lp->problem->model->variables * lp->problem->model->stride;
    float *y;
    const dcrf_status status = dcrf_lp_mixture_add(lp, &lp->best, &line, &y, error);
    for (size_t k = 0; k < cells && y; k++)
        y[k] = 1 - flow->potentials[k];
    return status;
}

/* The flow becomes the best dual point; the cliques' part is kept. */
static dcrf_status take_flow(struct dcrf_lp *lp, const struct dcrf_flow_proof *flow,
                             dcrf_error *error) {
    const dcrf_status status = lp->methods->write_best(lp->blocks, flow->pairwise, error);
    if (status < 0)
        return status;
    lp->is_best_old = true;
    lp->best.roundings.pairwise = flow->roundings;
    lp->bound = fmax(lp->bound, flow->bound);
    return keep_flow(lp, flow, error);
}

static dcrf_status go_on(const struct dcrf_lp *lp, dcrf_error *error) {
    return dcrf_stop_is_due(lp->problem->stop)
               ? dcrf_fail_interrupted(lp->problem->workspace, "starting the LP", error)
               : DCRF_OK;
}

static dcrf_status lp_start(void *state, const struct dcrf_start *start, dcrf_error *error) {
    struct dcrf_lp *lp = state;
    const struct dcrf_dual_space *space;
    /* Check between these: each makes the first pass over its memory. */
    dcrf_status status = go_on(lp, error);
    if (status < 0 || (status = lp_dual_space(lp, &space, error)) < 0 ||
        (status = go_on(lp, error)) < 0)
        return status;
    if (!lp->has_best) { /* dual points stay valid wherever the primal starts */
        /* Mean field took a column for every label; the LP has them for labels in use. */
        dcrf_workspace_release(lp->problem->workspace, &dcrf_filtered_slot);
        dcrf_dual_forget(&lp->best, &lp->space);
        lp->is_best_old = true;
        status = lp->methods->reset_best(lp->blocks, lp->best.roundings, &lp->bound, error);
        if (status < 0)
            return status;
        lp->has_best = true;
        if ((status = go_on(lp, error)) < 0)
            return status;
    }
    if (start->flow && (status = take_flow(lp, start->flow, error)) < 0)
        return status;
    lp->is_y_old = true;
    return lp->schedule->start(lp, start, error);
}

/* ---- single variables ----------------------------------------------------------------------- */

struct counting {
    const struct dcrf_lp *lp;
    const struct dcrf_dual *best;
    const uint16_t *labels;
    uint16_t *counts;
    double excess;
};
enum { RIGHT, WRONG, COUNTED };

static void count_variables(void *context, size_t begin, size_t end, double *sums) {
    const struct counting *c = context;
    for (size_t a = begin; a < end; a++) {
        bool has_label;
        const size_t count =
            dcrf_dual_count(&c->lp->space, c->best, a, c->excess, c->labels[a], &has_label);
        sums[RIGHT] += count == 1 && has_label;
        sums[WRONG] += !has_label;
        if (c->counts)
            c->counts[a] = (uint16_t)count;
    }
}

static dcrf_status lp_count_proven(void *state, double energy, const uint16_t *labels,
                                   struct dcrf_proven *proven, dcrf_error *error) {
    struct dcrf_lp *lp = state;
    struct dcrf_dual view = lp->best;
    const bool is_in_place = lp->methods->view_best(lp->blocks, &view);
    const dcrf_status status = is_in_place ? DCRF_OK : dcrf_lp_fetch_best(lp, error);
    if (status < 0)
        return status;
    const struct dcrf_dual *best = is_in_place ? &view : &lp->best;
    double sums[COUNTED];
    struct counting counting = {lp, best, labels, proven->counts,
                                energy - dcrf_dual_bound(&lp->space, best)};
    if (!(counting.excess >= 0)) /* the bound is wrong: claim nothing */
        counting.excess = (double)INFINITY;
    dcrf_parallel_sums(dcrf_workspace_pool(lp->problem->workspace), lp->problem->model->variables,
                       count_variables, &counting, sums, COUNTED);
    proven->right = (size_t)sums[RIGHT];
    proven->wrong = (size_t)sums[WRONG];
    return DCRF_OK;
}

/* ---- the interface -------------------------------------------------------------------------- */

static dcrf_status lp_step(void *state, struct dcrf_step_report *report, dcrf_error *error) {
    struct dcrf_lp *lp = state;
    const double before = lp->bound;
    const dcrf_status status = lp->schedule->step(lp, report, error);
    report->lower_bound = lp->bound;
    report->stationarity = (lp->bound - before) / fmax(fabs(lp->bound), 1e-30);
    return status;
}

static dcrf_status lp_labels(void *state, uint16_t *labels, dcrf_error *error) {
    struct dcrf_lp *lp = state;
    return lp->methods->labels(lp->blocks, labels, error);
}

static dcrf_status lp_energy(void *state, dcrf_energy *energy, dcrf_error *error) {
    struct dcrf_lp *lp = state;
    if (!lp->methods->energy || !lp->space.is_potts || !lp->huber.has_stepped ||
        lp->problem->model->cliques.count > 0)
        return DCRF_NO_LABELS;
    *energy = (dcrf_energy){0};
    const dcrf_status status =
        lp->methods->energy(lp->blocks, &energy->unary, &energy->pairwise, error);
    energy->total = energy->unary + energy->pairwise;
    return status;
}

static const float *lp_marginals(const void *state) {
    return ((const struct dcrf_lp *)state)->y;
}

static double lp_lower_bound(const void *state) {
    return ((const struct dcrf_lp *)state)->bound;
}

const struct dcrf_method_interface dcrf_lp = {
    .name = "LP",
    .init = lp_init,
    .start = lp_start,
    .step = lp_step,
    .fetch = lp_fetch,
    .labels = lp_labels,
    .energy = lp_energy,
    .rows = lp_rows,
    .marginals = lp_marginals,
    .lower_bound = lp_lower_bound,
    .count_proven = lp_count_proven,
    .dual_space = lp_dual_space,
    .row_sums = lp_row_sums,
    .columns = lp_columns,
    .free = lp_free,
};
