/* The one loop of all methods, and what comes after it. */
#include "solver/solver.h"

#include "core/error.h"
#include "core/rng.h"
#include "core/timer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECOND_OPINION_STEPS 5

static bool is_constant(const uint16_t *labels, size_t count) {
    for (size_t a = 1; a < count; a++)
        if (labels[a] != labels[0])
            return false;
    return true;
}

dcrf_status dcrf_solver_consider(dcrf_solver *solver, const uint16_t *labels, dcrf_energy *energy,
                                 dcrf_error *error) {
    const size_t variables = solver->problem.model->variables;
    const dcrf_status status = dcrf_energy_of_labels(
        solver->problem.plan, solver->problem.workspace, labels, energy, NULL, error);
    /* A NaN is never better; the first candidate replaces an energy that is infinite. */
    if (status == DCRF_OK && !solver->is_polishing && energy->total < solver->info.unpolished.total)
        solver->info.unpolished = *energy;
    if (status == DCRF_OK && energy->total < solver->info.energy.total) {
        solver->info.energy = *energy;
        solver->info.is_constant = is_constant(labels, variables);
        if (labels != solver->best)
            memcpy(solver->best, labels, variables * sizeof *labels);
    }
    return status;
}

static dcrf_moment this_moment(const dcrf_solver *solver) {
    const dcrf_solver_info *info = &solver->info;
    return (dcrf_moment){dcrf_time_s() - solver->stop.began_s,
                         info->iterations,
                         info->objective,
                         info->rounded.total,
                         info->energy.total,
                         info->lower_bound};
}

static void say(const dcrf_solver *solver, const dcrf_moment *moment, const char *what) {
    char line[256];
    if (!solver->settings.log)
        return;
    snprintf(line, sizeof line,
             "%s, %s %zu: objective %.9g, energy %.9g, best %.9g, bound %.9g, %.3f s",
             solver->method->name, what, moment->iteration, moment->objective, moment->energy,
             moment->best_energy, moment->lower_bound, moment->time_s);
    solver->settings.log(solver->settings.log_user, line);
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* The clock of a run goes before the start, which can be long. */
static dcrf_status begin(dcrf_solver *solver, dcrf_error *error) {
    if (!solver->is_running) {
        solver->stop.began_s = dcrf_time_s();
        solver->run_iterations = 0;
    }
    const dcrf_status status =
        solver->has_started ? DCRF_OK : dcrf_solver_start(solver, NULL, error);
    solver->is_running = true;
    return status;
}

static void round_to_candidate(dcrf_solver *solver, const float *marginals) {
    const dcrf_model *model = solver->problem.model;
    const struct dcrf_marginals rows = {marginals, model->variables, model->labels, model->stride};
    dcrf_round_largest(&rows, dcrf_workspace_pool(solver->problem.workspace), solver->candidate);
}

static void round_marginals(dcrf_solver *solver) {
    round_to_candidate(solver, solver->method->marginals(solver->state));
}

/* The energy of the method's labelling: its own, or the largest marginals. */
static dcrf_status evaluate(dcrf_solver *solver, const uint16_t *labels, dcrf_error *error) {
    const double began_s = dcrf_time_s();
    if (!labels) {
        round_marginals(solver);
        labels = solver->candidate;
    }
    const dcrf_status status = dcrf_solver_consider(solver, labels, &solver->info.rounded, error);
    solver->info.evaluate_s += dcrf_time_s() - began_s;
    return status;
}

static bool is_due(const dcrf_solver *solver) {
    const size_t every = solver->settings.evaluate_every;
    return every > 0 ? solver->info.iterations % every == 0 : solver->settings.trace != 0;
}

static void take_bound(dcrf_solver *solver, double bound) {
    if (bound > solver->info.lower_bound || isnan(solver->info.lower_bound))
        solver->info.lower_bound = bound;
}

dcrf_status dcrf_solver_step(dcrf_solver *solver, dcrf_error *error) {
    dcrf_status status = begin(solver, error);
    if (status < 0)
        return status;
    struct dcrf_step_report report = {(double)NAN, (double)NAN, (double)NAN, NULL};
    const double began_s = dcrf_time_s();
    status = solver->method->step(solver->state, &report, error);
    solver->info.solve_s += dcrf_time_s() - began_s;
    if (status < 0)
        return status;
    solver->info.iterations++;
    solver->run_iterations++;
    solver->info.objective = report.objective;
    take_bound(solver, report.lower_bound);
    solver->info.rounded = DCRF_UNKNOWN_ENERGY;
    if ((is_due(solver) || report.labels) && (status = evaluate(solver, report.labels, error)) < 0)
        return status;

    dcrf_solver_info *info = &solver->info;
    info->relative_gap = dcrf_relative_gap(info->energy.total, info->lower_bound);
    const dcrf_moment moment = this_moment(solver);
    dcrf_trace_add(&solver->trace, &moment);
    say(solver, &moment, "iteration");
    info->stop = dcrf_stop_decide(&solver->stop, solver->run_iterations, report.stationarity,
                                  info->relative_gap);
    if (solver->settings.progress &&
        solver->settings.progress(solver->settings.progress_user, &moment) != 0)
        info->stop = DCRF_STOP_CANCELLED;
    return info->stop;
}

static dcrf_status round_by_thresholds(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    const struct dcrf_marginals rows = {solver->method->marginals(solver->state), model->variables,
                                        model->labels, model->stride};
    const double began_s = dcrf_time_s();
    dcrf_status status = DCRF_OK;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, solver->settings.seed);
    for (size_t k = 0; k < solver->settings.rounding_draws && status == DCRF_OK; k++) {
        dcrf_energy energy;
        dcrf_round_threshold(solver->thresholds, &rows,
                             dcrf_workspace_pool(solver->problem.workspace), &rng,
                             solver->candidate);
        status = dcrf_solver_consider(solver, solver->candidate, &energy, error);
    }
    solver->info.round_s += dcrf_time_s() - began_s;
    return status;
}

/* Polish the candidate, which becomes the best labelling if it then is. */
static dcrf_status polish_candidate(dcrf_solver *solver, dcrf_error *error) {
    const double began_s = dcrf_time_s();
    dcrf_energy energy;
    solver->is_polishing = true;
    dcrf_status status =
        dcrf_polish(solver->polisher, solver->candidate, solver->settings.polish_rounds, error);
    if (status == DCRF_OK)
        status = dcrf_solver_consider(solver, solver->candidate, &energy, error);
    solver->is_polishing = false;
    solver->info.polish_s += dcrf_time_s() - began_s;
    return status;
}

dcrf_status dcrf_solver_polish_marginals(dcrf_solver *solver, dcrf_error *error) {
    round_marginals(solver);
    return polish_candidate(solver, error);
}

/* The method's own labelling too, where another one (a constant one, say) is better: moves lead
 * from it to where they cannot get from the other. */
static dcrf_status polish(dcrf_solver *solver, dcrf_error *error) {
    const size_t bytes = solver->problem.model->variables * sizeof *solver->candidate;
    dcrf_status status = DCRF_OK;
    round_marginals(solver);
    if (memcmp(solver->candidate, solver->best, bytes) != 0)
        status = polish_candidate(solver, error);
    if (status < 0)
        return status;
    memcpy(solver->candidate, solver->best, bytes);
    return polish_candidate(solver, error);
}

/* A second opinion: some steps of mean field, polished. Under weights that drown the unaries the LP
 * ends at a constant labelling that is far from the best, and no move leads away from it. */
static dcrf_status polish_mean_field(dcrf_solver *solver, dcrf_error *error) {
    const struct dcrf_method_interface *other = &dcrf_mean_field;
    const double began_s = dcrf_time_s();
    struct dcrf_step_report report = {(double)NAN, (double)NAN, (double)NAN, NULL};
    void *state;
    dcrf_status status = other->init(&state, &solver->problem, error);
    if (status < 0)
        return status;
    status = other->start(state, NULL, error);
    for (int k = 0; k < SECOND_OPINION_STEPS && status >= 0; k++)
        status = other->step(state, &report, error);
    if (status >= 0)
        round_to_candidate(solver, other->marginals(state));
    other->free(state);
    solver->info.polish_s += dcrf_time_s() - began_s;
    return status < 0 ? status : polish_candidate(solver, error);
}

/* Is there a bound, and is the best labelling further above it than is wanted? */
static bool is_gap_open(const dcrf_solver *solver) {
    const dcrf_solver_info *info = &solver->info;
    return dcrf_relative_gap(info->energy.total, info->lower_bound) > solver->settings.gap;
}

dcrf_status dcrf_solver_finish(dcrf_solver *solver, dcrf_error *error) {
    dcrf_solver_info *info = &solver->info;
    dcrf_status status = begin(solver, error);
    if (status == DCRF_OK && isnan(info->rounded.total))
        status = evaluate(solver, NULL, error);
    /* Who cancels does not want to wait. */
    const bool is_cancelled = info->stop == DCRF_STOP_CANCELLED;
    if (status == DCRF_OK && solver->thresholds && !is_cancelled)
        status = round_by_thresholds(solver, error);
    if (status == DCRF_OK && solver->polisher && !is_cancelled)
        status = polish(solver, error);
    if (status == DCRF_OK && solver->polisher && !is_cancelled && is_gap_open(solver))
        status = polish_mean_field(solver, error);
    info->relative_gap = dcrf_relative_gap(info->energy.total, info->lower_bound);
    const dcrf_moment moment = this_moment(solver);
    say(solver, &moment, "finished after iteration");
    solver->is_running = false;
    return status;
}

dcrf_status dcrf_solver_run(dcrf_solver *solver, dcrf_error *error) {
    dcrf_status stop = DCRF_OK;
    solver->is_running = false;
    if (solver->settings.iterations == 0)
        solver->info.stop = stop = DCRF_STOP_ITERATIONS;
    while (stop == DCRF_OK)
        stop = dcrf_solver_step(solver, error);
    if (stop < 0)
        return stop;
    const dcrf_status status = dcrf_solver_finish(solver, error);
    return status < 0 ? status : stop;
}

/* ---- results -------------------------------------------------------------------------------- */

void dcrf_solver_get_info(const dcrf_solver *solver, dcrf_solver_info *info) {
    *info = solver->info;
}

void dcrf_solver_labels(const dcrf_solver *solver, uint16_t *labels) {
    memcpy(labels, solver->best, solver->problem.model->variables * sizeof *labels);
}

dcrf_status dcrf_solver_marginals(const dcrf_solver *solver, float *marginals, size_t stride,
                                  dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    if (!solver->has_started)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the solver has not started: there are no marginals yet");
    if (!marginals || stride < model->labels)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "marginals need room for %zu floats a variable; the stride is %zu",
                         model->labels, stride);
    const float *rows = solver->method->marginals(solver->state);
    for (size_t a = 0; a < model->variables; a++)
        memcpy(marginals + a * stride, rows + a * model->stride, model->labels * sizeof *rows);
    return DCRF_OK;
}

const dcrf_moment *dcrf_solver_trace(const dcrf_solver *solver, size_t *count) {
    *count = solver->trace.count;
    return solver->trace.moments;
}
