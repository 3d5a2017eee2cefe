/* Making a solver: memory, the first candidates, the start. */
#include "core/error.h"
#include "core/memory.h"
#include "core/timer.h"
#include "solver/settings.h"
#include "solver/solver.h"

#include <math.h>
#include <string.h>

static const struct dcrf_method_interface *const methods[] = {
    [DCRF_METHOD_MF] = &dcrf_mean_field,
    [DCRF_METHOD_QP] = &dcrf_qp,
    [DCRF_METHOD_LP] = &dcrf_lp,
};

/* ---- candidates ----------------------------------------------------------------------------- */

/* The energy that a constant labelling of label i gets from kernels that are not Potts, a unit of
 * unary energy being 1: sum_m w_m mu_m(i, i) sum_{a != b} k_m(a, b). */
static dcrf_status add_constant_pairs(dcrf_solver *solver, double *energy_of, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    for (size_t m = 0; m < model->kernel_count; m++) {
        const struct dcrf_model_kernel *kernel = &model->kernels[m];
        if (kernel->compatibility == DCRF_COMPATIBILITY_POTTS || !(kernel->weight > 0))
            continue;
        const struct dcrf_plan_kernel *planned = &solver->problem.plan->kernels[m];
        float *row_sums = solver->start;
        double mass = 0;
        const dcrf_status status =
            dcrf_operator_row_sums(planned->op, solver->problem.workspace, row_sums, error);
        if (status < 0)
            return status;
        for (size_t a = 0; a < model->variables; a++)
            mass += (double)row_sums[a] - (double)planned->diagonal[a];
        const size_t step =
            kernel->compatibility == DCRF_COMPATIBILITY_MATRIX ? model->labels + 1 : 1;
        for (size_t i = 0; i < model->labels; i++)
            energy_of[i] += kernel->weight * mass * (double)kernel->compatibility_values[i * step];
    }
    return DCRF_OK;
}

static dcrf_status consider_constants(dcrf_solver *solver, double *energy_of, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    size_t best = 0;
    for (size_t a = 0; a < model->variables; a++)
        for (size_t i = 0; i < model->labels; i++)
            energy_of[i] += (double)model->unary[a * model->stride + i];
    const dcrf_status status = add_constant_pairs(solver, energy_of, error);
    if (status < 0)
        return status;
    for (size_t i = 1; i < model->labels; i++)
        if (energy_of[i] < energy_of[best])
            best = i;
    for (size_t a = 0; a < model->variables; a++)
        solver->candidate[a] = (uint16_t)best;
    dcrf_energy energy;
    return dcrf_solver_consider(solver, solver->candidate, &energy, error);
}

static dcrf_status first_candidates(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    double *energy_of = dcrf_allocate_zero(model->labels, sizeof *energy_of);
    if (!energy_of)
        return dcrf_fail_memory(error, "a solver");
    for (size_t a = 0; a < model->variables; a++) {
        const float *unary = model->unary + a * model->stride;
        size_t best = 0;
        for (size_t i = 1; i < model->labels; i++)
            if (unary[i] < unary[best])
                best = i;
        solver->candidate[a] = (uint16_t)best;
    }
    dcrf_energy energy;
    dcrf_status status = dcrf_solver_consider(solver, solver->candidate, &energy, error);
    if (status == DCRF_OK)
        status = consider_constants(solver, energy_of, error);
    dcrf_release(energy_of);
    return status;
}

/* ---- new and free --------------------------------------------------------------------------- */

static dcrf_status take_memory(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    const dcrf_settings *settings = &solver->settings;
    solver->best = dcrf_allocate_zero(model->variables, sizeof *solver->best);
    solver->candidate = dcrf_allocate_zero(model->variables, sizeof *solver->candidate);
    solver->start = dcrf_allocate(model->variables, model->stride * sizeof *solver->start);
    if (!solver->best || !solver->candidate || !solver->start ||
        (settings->trace && !dcrf_trace_init(&solver->trace, settings->iterations)) ||
        (settings->rounding_draws > 0 &&
         !(solver->thresholds = dcrf_thresholds_new(model->labels))))
        return dcrf_fail_memory(error, "a solver");
    if (settings->polish && settings->polish_rounds > 0) {
        const dcrf_status status = dcrf_polisher_new(&solver->polisher, solver->problem.plan,
                                                     solver->problem.workspace, error);
        if (status < 0)
            return status;
    }
    return solver->method->init(&solver->state, &solver->problem, error);
}

dcrf_status dcrf_solver_new(dcrf_solver **out, const dcrf_plan *plan, dcrf_workspace *workspace,
                            const dcrf_settings *settings, dcrf_error *error) {
    const double began_s = dcrf_time_s();
    *out = NULL;
    if (!plan || !workspace || !settings)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "a solver needs a plan, a workspace and settings");
    dcrf_status status = dcrf_settings_check(settings, error);
    if (status < 0 || (status = dcrf_plan_check(plan, error)) < 0)
        return status;
    if (!methods[settings->method])
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED, "the method %s is not in this build",
                         dcrf_method_name(settings->method));
    dcrf_solver *solver = dcrf_allocate_zero(1, sizeof *solver);
    if (!solver)
        return dcrf_fail_memory(error, "a solver");
    solver->settings = *settings;
    solver->method = methods[settings->method];
    solver->stop.settings = &solver->settings;
    solver->problem = (struct dcrf_problem){.plan = plan,
                                            .model = plan->model,
                                            .workspace = workspace,
                                            .settings = &solver->settings,
                                            .stop = &solver->stop,
                                            .best_energy = &solver->info.energy.total};
    solver->info = (dcrf_solver_info){.method = settings->method,
                                      .energy = {.total = (double)INFINITY},
                                      .unpolished = {.total = (double)INFINITY},
                                      .rounded = DCRF_UNKNOWN_ENERGY,
                                      .objective = (double)NAN,
                                      .lower_bound = (double)NAN,
                                      .relative_gap = (double)NAN};
    status = take_memory(solver, error);
    if (status == DCRF_OK)
        status = first_candidates(solver, error);
    if (status < 0) {
        dcrf_solver_free(&solver);
        return status;
    }
    solver->info.start_s = dcrf_time_s() - began_s;
    *out = solver;
    return DCRF_OK;
}

void dcrf_solver_free(dcrf_solver **solver_pointer) {
    if (!solver_pointer || !*solver_pointer)
        return;
    dcrf_solver *solver = *solver_pointer;
    if (solver->state)
        solver->method->free(solver->state);
    dcrf_polisher_free(&solver->polisher);
    dcrf_thresholds_free(solver->thresholds);
    dcrf_trace_clear(&solver->trace);
    dcrf_release(solver->best);
    dcrf_release(solver->candidate);
    dcrf_release(solver->start);
    dcrf_release(solver);
    *solver_pointer = NULL;
}

/* ---- starting ------------------------------------------------------------------------------- */

dcrf_status dcrf_solver_start(dcrf_solver *solver, const float *y, dcrf_error *error) {
    const double began_s = dcrf_time_s();
    solver->stop.began_s = began_s; /* a long start looks at the clock, too */
    dcrf_status status = solver->method->start(solver->state, y, error);
    solver->info.solve_s += dcrf_time_s() - began_s;
    solver->has_started = status == DCRF_OK;
    solver->info.iterations = 0;
    solver->is_running = false;
    /* A run that stops by its gap stops the sooner, the better the labelling it is measured by. */
    if (status == DCRF_OK && solver->settings.gap > 0 && solver->polisher &&
        !dcrf_stop_is_time(&solver->stop))
        status = dcrf_solver_polish_marginals(solver, error);
    return status;
}

dcrf_status dcrf_solver_start_labels(dcrf_solver *solver, const uint16_t *labels,
                                     dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    dcrf_energy energy;
    if (!labels)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "there are no labels to start from");
    const dcrf_status status =
        dcrf_solver_consider(solver, labels, &energy, error); /* checks them too */
    if (status < 0)
        return status;
    memset(solver->start, 0, model->variables * model->stride * sizeof *solver->start);
    for (size_t a = 0; a < model->variables; a++)
        solver->start[a * model->stride + labels[a]] = 1;
    return dcrf_solver_start(solver, solver->start, error);
}

/* Copy one row of marginals, made to add up to one; false where it is no distribution. */
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
    const dcrf_model *model = solver->problem.model;
    dcrf_energy energy;
    if (!marginals || stride < model->labels)
        return dcrf_fail(error, marginals ? DCRF_ERROR_SIZE : DCRF_ERROR_ARGUMENT,
                         "marginals to start from need a row of %zu floats a variable",
                         model->labels);
    for (size_t a = 0; a < model->variables; a++)
        if (!copy_row(marginals + a * stride, solver->start + a * model->stride, model->labels,
                      model->stride))
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the marginals of variable %zu are no distribution over %zu labels", a,
                             model->labels);
    const struct dcrf_marginals rows = {solver->start, model->variables, model->labels,
                                        model->stride};
    dcrf_round_largest(&rows, dcrf_workspace_pool(solver->problem.workspace), solver->candidate);
    const dcrf_status status = dcrf_solver_consider(solver, solver->candidate, &energy, error);
    if (status < 0)
        return status;
    return dcrf_solver_start(solver, solver->start, error);
}
