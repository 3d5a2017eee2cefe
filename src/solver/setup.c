/* Creating a solver, and setting the user's start. */
#include "core/error.h"
#include "core/owned.h"
#include "energy/coupling.h"
#include "energy/labelling.h"
#include "solver/solver.h"

#include <math.h>
#include <string.h>

static const struct dcrf_method_interface *const methods[] = {
    [DCRF_METHOD_MF] = &dcrf_mean_field,
    [DCRF_METHOD_QP] = &dcrf_qp,
    [DCRF_METHOD_LP] = &dcrf_lp,
};

/* ---- new and free --------------------------------------------------------------------------- */

static dcrf_status take_memory(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    const dcrf_settings *settings = &solver->settings;
    solver->best = dcrf_allocate_zero(model->variables, sizeof *solver->best);
    solver->candidate = dcrf_allocate_zero(model->variables, sizeof *solver->candidate);
    if (!solver->best || !solver->candidate ||
        !dcrf_candidates_init(&solver->candidates, settings->method, model->variables) ||
        (settings->trace && !dcrf_trace_init(&solver->trace, settings->iterations)) ||
        ((settings->rounding_draws > 0 || solver->method->lower_bound) &&
         !(solver->thresholds = dcrf_thresholds_new(model->labels, dcrf_model_order(model)))))
        return dcrf_fail_memory(error, "a solver");
    TRY(dcrf_coupling_new(&solver->problem.coupling, solver->problem.plan,
                          solver->problem.workspace, error));
    if (settings->polish && settings->polish_rounds > 0)
        TRY(dcrf_polisher_new(&solver->polisher, solver->problem.coupling, error));
    if (solver->polisher && settings->gap > 0 && solver->method->lower_bound)
        TRY(dcrf_refiner_init(solver, error));
    return solver->method->init(&solver->state, &solver->problem, error);
}

dcrf_status dcrf_solver_new(dcrf_solver **out, const dcrf_plan *plan, dcrf_workspace *workspace,
                            const dcrf_settings *settings, dcrf_error *error) {
    if (!out || !plan || !workspace || !settings)
        return dcrf_fail_null(error, "the place for the solver, its plan, workspace or settings");
    DCRF_ENTER(workspace, error);
    *out = NULL;
    TRY(dcrf_settings_check(settings, error));
    TRY(dcrf_plan_check(plan, error));
    if (!methods[settings->method])
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED, "the method %s is not in this build",
                         dcrf_method_name(settings->method));
    const float *distance;
    if (settings->proof != DCRF_PROVE_BY_GAP)
        TRY(dcrf_model_find_distance(plan->model, "a proof for single variables", &distance,
                                     error));
    DCRF_AT_END(dcrf_solver_free) dcrf_solver *solver = dcrf_allocate_zero(1, sizeof *solver);
    if (!solver)
        return dcrf_fail_memory(error, "a solver");
    solver->settings = *settings;
    solver->method = methods[settings->method];
    dcrf_stop_init(&solver->stop, &solver->settings, workspace);
    solver->problem = (struct dcrf_problem){.plan = plan,
                                            .model = plan->model,
                                            .workspace = workspace,
                                            .settings = &solver->settings,
                                            .best_energy = &solver->info.energy.total,
                                            .stop = &solver->stop};
    dcrf_plan_hold(plan);
    dcrf_workspace_hold(workspace);
    solver->model_revision = plan->model->revision;
    solver->most_sweeps = DCRF_MOST_SWEEPS;
    solver->info = (dcrf_solver_info){.method = settings->method,
                                      .energy = {.total = (double)INFINITY},
                                      .unpolished = {.total = (double)INFINITY},
                                      .rounded = DCRF_UNKNOWN_ENERGY,
                                      .objective = (double)NAN,
                                      .lower_bound = (double)NAN,
                                      .relative_gap = (double)NAN};
    for (size_t k = 0; k < DCRF_CANDIDATE_ROOM; k++)
        solver->info.candidates[k].energy = solver->info.candidates[k].lower_bound = (double)NAN;
    TRY(take_memory(solver, error));
    const struct dcrf_unary_minimum floor =
        dcrf_unary_minimum(plan->model, dcrf_workspace_pool(workspace), solver->best);
    solver->info.unary_floor = floor.sum;
    solver->unary_floor_error = floor.error;
    *out = DCRF_PASS_ON(solver);
    return DCRF_OK;
}

void dcrf_solver_free(dcrf_solver **solver_pointer) {
    if (!solver_pointer || !*solver_pointer)
        return;
    dcrf_solver *solver = *solver_pointer;
    dcrf_plan *plan = (dcrf_plan *)solver->problem.plan;
    dcrf_workspace *workspace = solver->problem.workspace;
    if (solver->state)
        solver->method->free(solver->state);
    dcrf_candidates_clear(&solver->candidates);
    dcrf_refiner_clear(&solver->refiner);
    dcrf_polisher_free(&solver->polisher);
    dcrf_thresholds_free(solver->thresholds);
    dcrf_trace_clear(&solver->trace);
    dcrf_proof_free(&solver->proof);
    dcrf_release(solver->best);
    dcrf_release(solver->candidate);
    dcrf_release(solver->start);
    dcrf_coupling_free(&solver->problem.coupling);
    dcrf_release(solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    *solver_pointer = NULL;
}

dcrf_status dcrf_solver_check(const dcrf_solver *solver, dcrf_error *error) {
    if (!solver)
        return dcrf_fail_null(error, "the solver");
    if (solver->problem.model->revision != solver->model_revision)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the model has changed since the solver was made: make a new solver");
    return DCRF_OK;
}

/* ---- starting ------------------------------------------------------------------------------- */

/* Few runs are given a start, so its block is allocated on demand. */
static dcrf_status need_start(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    if (!solver->start)
        solver->start = dcrf_allocate(model->variables, model->stride * sizeof *solver->start);
    return solver->start ? DCRF_OK : dcrf_fail_memory(error, "a start");
}

dcrf_status dcrf_solver_start_labels(dcrf_solver *solver, const uint16_t *labels,
                                     dcrf_error *error) {
    TRY(dcrf_solver_check(solver, error));
    DCRF_ENTER(solver->problem.workspace, error);
    const dcrf_model *model = solver->problem.model;
    dcrf_energy energy;
    if (!labels)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "there are no labels to start from");
    TRY(dcrf_solver_consider(solver, labels, &energy, error)); /* checks them too */
    TRY(need_start(solver, error));
    dcrf_marginals_of_labels(labels, model->variables, model->stride, solver->start);
    return dcrf_solver_start(solver, solver->start, error);
}

/* Copy one row of marginals, normalized to sum to one; false if it is not a distribution. */
static bool copy_row(const float *from, float *to, size_t labels, size_t stride) {
    const double tolerance = 1e-3;
    double sum = 0;
    for (size_t i = 0; i < labels; i++) {
        if (!((double)from[i] >= -tolerance && (double)from[i] <= 1 + tolerance))
            return false;
        to[i] = from[i] > 0 ? from[i] : 0;
        sum += (double)to[i];
    }
    if (!(fabs(sum - 1) <= tolerance * (double)(labels + 1)))
        return false;
    for (size_t i = 0; i < labels; i++)
        to[i] = (float)((double)to[i] / sum);
    memset(to + labels, 0, (stride - labels) * sizeof *to);
    return true;
}

dcrf_status dcrf_solver_start_marginals(dcrf_solver *solver, const float *marginals, size_t stride,
                                        dcrf_error *error) {
    TRY(dcrf_solver_check(solver, error));
    DCRF_ENTER(solver->problem.workspace, error);
    const dcrf_model *model = solver->problem.model;
    dcrf_energy energy;
    if (!marginals || stride < model->labels)
        return dcrf_fail(error, marginals ? DCRF_ERROR_SIZE : DCRF_ERROR_ARGUMENT,
                         "marginals to start from need a row of %zu floats per variable",
                         model->labels);
    TRY(need_start(solver, error));
    for (size_t a = 0; a < model->variables; a++)
        if (!copy_row(marginals + a * stride, solver->start + a * model->stride, model->labels,
                      model->stride))
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the marginals of variable %zu are no distribution over %zu labels", a,
                             model->labels);
    dcrf_solver_round(solver, solver->start, solver->candidate);
    TRY(dcrf_solver_consider(solver, solver->candidate, &energy, error));
    return dcrf_solver_start(solver, solver->start, error);
}
