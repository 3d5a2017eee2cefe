/* The loop shared by all methods, and what follows it. */
#include "solver/solver.h"

#include "core/error.h"
#include "core/rng.h"
#include "core/timer.h"
#include "energy/energy.h"
#include "solver/refine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the best labelling --------------------------------------------------------------------- */

static void measure_gap(dcrf_solver_info *info) {
    info->relative_gap =
        dcrf_relative_gap(info->energy.total, info->lower_bound, info->unary_floor);
}

void dcrf_solver_take(dcrf_solver *solver, const uint16_t *labels, const dcrf_energy *energy) {
    const size_t variables = solver->problem.model->variables;
    /* A NaN is never better; the first candidate replaces an infinite energy. */
    if (!solver->is_polishing && energy->total < solver->info.unpolished.total)
        solver->info.unpolished = *energy;
    if (energy->total < solver->info.energy.total) {
        solver->info.energy = *energy;
        solver->info.is_constant = dcrf_labels_are_constant(labels, variables);
        if (labels != solver->best)
            memcpy(solver->best, labels, variables * sizeof *labels);
        measure_gap(&solver->info);
    }
}

dcrf_status dcrf_solver_consider(dcrf_solver *solver, const uint16_t *labels, dcrf_energy *energy,
                                 dcrf_error *error) {
    const double began_s = dcrf_time_s();
    const dcrf_status status = dcrf_energy_of_labels(
        solver->problem.plan, solver->problem.workspace, labels, energy, NULL, 0, error);
    solver->energy_s = fmax(solver->energy_s, dcrf_time_s() - began_s);
    if (status == DCRF_OK)
        dcrf_solver_take(solver, labels, energy);
    return status;
}

void dcrf_solver_round(const dcrf_solver *solver, const float *marginals, uint16_t *labels) {
    const dcrf_model *model = solver->problem.model;
    const struct dcrf_marginals rows = {marginals, model->variables, model->labels, model->stride,
                                        NULL};
    dcrf_labels_of_marginals(&rows, dcrf_workspace_pool(solver->problem.workspace), labels);
}

dcrf_status dcrf_solver_round_method(const dcrf_solver *solver,
                                     const struct dcrf_method_interface *method, void *state,
                                     uint16_t *labels, dcrf_error *error) {
    const dcrf_status status =
        method->labels ? method->labels(state, labels, error) : DCRF_NO_LABELS;
    if (status != DCRF_NO_LABELS)
        return status;
    TRY(dcrf_method_fetch(method, state, error));
    dcrf_solver_round(solver, method->marginals(state), labels);
    return DCRF_OK;
}

dcrf_status dcrf_solver_leave_out(dcrf_solver *solver, dcrf_status status) {
    status = dcrf_unless_interrupted(status);
    if (status != DCRF_ERROR_MEMORY)
        return status;
    solver->info.left_out = status;
    return DCRF_OK;
}

static dcrf_moment this_moment(const dcrf_solver *solver, dcrf_stage stage) {
    const dcrf_solver_info *info = &solver->info;
    return (dcrf_moment){.time_s = dcrf_time_s() - solver->stop.began_s,
                         .iteration = info->iterations,
                         .objective = info->objective,
                         .energy = info->rounded.total,
                         .best_energy =
                             isfinite(info->energy.total) ? info->energy.total : (double)NAN,
                         .lower_bound = info->lower_bound,
                         .relative_gap = info->relative_gap,
                         .stage = stage};
}

bool dcrf_solver_tell(dcrf_solver *solver, const dcrf_moment *moment) {
    const dcrf_settings *settings = &solver->settings;
    dcrf_trace_add(&solver->trace, moment);
    if (solver->stop.is_cancelled || !settings->progress)
        return false;
    return solver->stop.is_cancelled = settings->progress(settings->progress_user, moment) != 0;
}

dcrf_moment dcrf_solver_tell_now(dcrf_solver *solver, dcrf_stage stage) {
    const dcrf_moment moment = this_moment(solver, stage);
    dcrf_solver_tell(solver, &moment);
    return moment;
}

static void say(const dcrf_solver *solver, const dcrf_moment *moment, const char *what) {
    char line[256];
    if (!solver->settings.log)
        return;
    snprintf(line, sizeof line,
             "%s, %s %zu: objective %.9g, energy %.9g, best %.9g, bound %.9g, gap %.3g %%, %.3f s",
             solver->method->name, what, moment->iteration, moment->objective, moment->energy,
             moment->best_energy, moment->lower_bound, 100 * moment->relative_gap, moment->time_s);
    solver->settings.log(solver->settings.log_user, line);
}

/* Is there a bound, and is the gap to the best labelling larger than the settings ask for? */
static bool is_gap_open(const dcrf_solver *solver) {
    const dcrf_solver_info *info = &solver->info;
    return dcrf_relative_gap(info->energy.total, info->lower_bound, info->unary_floor) >
           solver->settings.gap;
}

/* Is the labelling to be certified proven to be as good as was asked for? */
static bool is_reference_close(const dcrf_solver *solver) {
    const struct dcrf_reference *reference = &solver->reference;
    return reference->gap > 0 &&
           dcrf_relative_gap(reference->energy.total, solver->info.lower_bound,
                             solver->info.unary_floor) <= reference->gap;
}

/* ---- moves ---------------------------------------------------------------------------------- */

/* Moves leave time to compute the energy of their result. */
static bool is_polishing_over(void *user) {
    dcrf_solver *solver = user;
    return dcrf_stop_is_near(&solver->stop, solver->energy_s);
}

static dcrf_status consider_polished(dcrf_solver *solver, const uint16_t *labels,
                                     dcrf_error *error) {
    dcrf_energy energy;
    DCRF_WATCH(solver->problem.workspace, dcrf_solver_energy_interrupt(solver));
    return dcrf_solver_consider(solver, labels, &energy, error);
}

dcrf_status dcrf_solver_polish(dcrf_solver *solver, uint16_t *labels, dcrf_error *error) {
    const double began_s = dcrf_time_s();
    const struct dcrf_interrupt interrupt = {is_polishing_over, solver};
    solver->is_polishing = true;
    dcrf_status status = dcrf_unless_interrupted(
        dcrf_polish(solver->polisher, labels, solver->settings.polish_rounds, &interrupt, error));
    if (status == DCRF_OK)
        status = consider_polished(solver, labels, error);
    solver->is_polishing = false;
    solver->info.polish_s += dcrf_time_s() - began_s;
    return status;
}

/* Polish a copy of the labels, unless they are the best ones, which are polished last. */
static dcrf_status polish_copy(dcrf_solver *solver, const uint16_t *labels, dcrf_error *error) {
    const size_t bytes = solver->problem.model->variables * sizeof *labels;
    if (memcmp(labels, solver->best, bytes) == 0 || dcrf_stop_is_due(&solver->stop))
        return DCRF_OK;
    if (labels != solver->candidate)
        memcpy(solver->candidate, labels, bytes);
    return dcrf_solver_polish(solver, solver->candidate, error);
}

static dcrf_status polish_best(dcrf_solver *solver, dcrf_error *error) {
    memcpy(solver->candidate, solver->best,
           solver->problem.model->variables * sizeof *solver->best);
    return dcrf_solver_polish(solver, solver->candidate, error);
}

/* ---- starting ------------------------------------------------------------------------------- */

/* The largest fraction of a time limit that the iterations leave for polishing. */
#define POLISHING_PART 0.1
/* The time for polishing at the end, relative to that at the start. */
#define LAST_POLISHING 3
/* The fraction of a time limit that the iterations leave for a proof. */
#define PROOF_PART 0.3

/* A run that stops by its gap stops sooner if the gap is measured from a better labelling. The mean
 * field labelling is polished too: moves may lead further from it than from a better one. */
static dcrf_status polish_first(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_settings *settings = &solver->settings;
    const double before_s = solver->info.polish_s;
    const double limit_s = dcrf_stop_limit_s(&solver->stop);
    const double for_proof_s = settings->proof != DCRF_PROVE_BY_GAP ? PROOF_PART * limit_s : 0;
    const double for_polishing_s = solver->polisher ? POLISHING_PART * limit_s : 0;
    solver->stop.reserve_s = for_proof_s + for_polishing_s;
    if (!(settings->gap > 0) || !solver->polisher || dcrf_stop_is_due(&solver->stop) ||
        solver->candidates.is_annealing_due)
        return DCRF_OK;
    dcrf_status status = DCRF_OK;
    const uint16_t *mean_field = dcrf_candidates_mean_field(&solver->candidates);
    if (mean_field)
        status = polish_copy(solver, mean_field, error);
    if (status == DCRF_OK)
        status = polish_best(solver, error);
    status = dcrf_solver_leave_out(solver, status);
    solver->stop.reserve_s =
        for_proof_s + fmin(for_polishing_s, LAST_POLISHING * (solver->info.polish_s - before_s));
    return status;
}

static void take_bound(dcrf_solver *solver, double bound) {
    if (bound > solver->info.lower_bound || isnan(solver->info.lower_bound))
        solver->info.lower_bound = bound;
}

/* If interrupted, return the reason as the status of the run. */
static dcrf_status reason_for(dcrf_solver *solver, dcrf_status status) {
    if (status != DCRF_ERROR_INTERRUPTED)
        return status;
    const dcrf_status reason = dcrf_stop_reason(&solver->stop);
    return reason == DCRF_OK ? DCRF_STOP_CANCELLED : reason;
}

static void begin_clock(dcrf_solver *solver) {
    dcrf_stop_begin(&solver->stop);
    solver->run_iterations = 0;
}

dcrf_status dcrf_solver_start(dcrf_solver *solver, const float *y, dcrf_error *error) {
    if (!solver->is_running)
        begin_clock(solver);
    DCRF_WATCH(solver->problem.workspace, &solver->stop.interrupt);
    solver->has_started = false;
    dcrf_status status = dcrf_solver_candidates(solver, y != NULL, error);
    if (status == DCRF_OK)
        status = polish_first(solver, error);
    if (status != DCRF_OK)
        return reason_for(solver, status);
    if (solver->method->lower_bound) /* only the unaries can be negative */
        take_bound(solver, solver->info.unary_floor - solver->unary_floor_error);
    const double began_s = dcrf_time_s();
    const struct dcrf_start start = {
        .y = y,
        .labels = solver->best,
        .flow = solver->candidates.flow.pairwise ? &solver->candidates.flow : NULL,
        .unary_floor = solver->info.unary_floor};
    status = solver->method->start(solver->state, &start, error);
    solver->info.solve_s += dcrf_time_s() - began_s;
    if (status < 0)
        return reason_for(solver, status);
    dcrf_flow_proof_clear(&solver->candidates.flow); /* the method has copied it */
    if (solver->method->lower_bound)
        take_bound(solver, solver->method->lower_bound(solver->state));
    measure_gap(&solver->info);
    solver->has_started = true;
    solver->info.iterations = 0;
    dcrf_rng_seed(&solver->rng, solver->settings.seed);
    solver->refiner.labellings = 0;
    return DCRF_OK;
}

/* The clock starts before the method's start, which can take long. */
static dcrf_status begin(dcrf_solver *solver, dcrf_error *error) {
    if (!solver->is_running)
        begin_clock(solver);
    solver->is_running = true;
    return solver->has_started ? DCRF_OK : dcrf_solver_start(solver, NULL, error);
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Set the candidate to the labels with the method's largest marginals. */
static dcrf_status round_largest(dcrf_solver *solver, dcrf_error *error) {
    return dcrf_solver_round_method(solver, solver->method, solver->state, solver->candidate,
                                    error);
}

/* The energy of the largest marginals, computed by the method itself; the labels are fetched only
 * if they are the best so far. */
static dcrf_status evaluate_by_method(dcrf_solver *solver, dcrf_error *error) {
    dcrf_energy energy;
    dcrf_status status = solver->method->energy
                             ? solver->method->energy(solver->state, &energy, error)
                             : DCRF_NO_LABELS;
    if (status == DCRF_OK && energy.total < solver->info.energy.total)
        status = round_largest(solver, error);
    if (status == DCRF_OK) {
        solver->info.rounded = energy;
        dcrf_solver_take(solver, solver->candidate, &energy);
    }
    return status;
}

/* The energy of the method's labelling: `labels`, or, if NULL, that of the largest marginals. */
static dcrf_status evaluate(dcrf_solver *solver, const uint16_t *labels, dcrf_error *error) {
    const double began_s = dcrf_time_s();
    dcrf_status status = labels ? DCRF_NO_LABELS : evaluate_by_method(solver, error);
    if (status == DCRF_NO_LABELS) {
        status = labels ? DCRF_OK : round_largest(solver, error);
        if (status == DCRF_OK)
            status = dcrf_solver_consider(solver, labels ? labels : solver->candidate,
                                          &solver->info.rounded, error);
    }
    solver->info.evaluate_s += dcrf_time_s() - began_s;
    return status;
}

static bool is_due(const dcrf_solver *solver) {
    const size_t every = solver->settings.evaluate_every;
    return every > 0 ? solver->info.iterations % every == 0 : solver->settings.trace != 0;
}

/* The method's marginals, of all labels or of those in use. */
static dcrf_status find_rows(const dcrf_solver *solver, struct dcrf_marginals *rows,
                             dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    if (solver->method->rows && solver->method->rows(solver->state, rows))
        return DCRF_OK;
    TRY(dcrf_method_fetch(solver->method, solver->state, error));
    *rows = (struct dcrf_marginals){solver->method->marginals(solver->state), model->variables,
                                    model->labels, model->stride, NULL};
    return DCRF_OK;
}

/* Threshold roundings of the method's marginals; the best of them becomes the candidate, if there
 * is one. */
static dcrf_status draw(dcrf_solver *solver, dcrf_rng *rng, size_t draws, dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(solver->problem.workspace);
    const double began_s = dcrf_time_s();
    struct dcrf_marginals rows;
    TRY(find_rows(solver, &rows, error));
    dcrf_status status = DCRF_OK;
    dcrf_thresholds_observe(solver->thresholds, &rows);
    dcrf_rng best = *rng; /* the state that drew the best */
    double lowest = INFINITY;
    for (size_t k = 0; k < draws && status == DCRF_OK && !dcrf_stop_is_due(&solver->stop); k++) {
        const dcrf_rng before = *rng;
        dcrf_energy energy;
        dcrf_round_threshold(solver->thresholds, &rows, pool, rng, solver->candidate);
        status = dcrf_solver_consider(solver, solver->candidate, &energy, error);
        if (status == DCRF_OK && energy.total < lowest) {
            lowest = energy.total;
            best = before;
        }
    }
    if (status == DCRF_OK && lowest < (double)INFINITY)
        dcrf_round_threshold(solver->thresholds, &rows, pool, &best, solver->candidate);
    solver->info.round_s += dcrf_time_s() - began_s;
    return status;
}

/* For a method with a bound, labellings are also polished during the iterations, so that a poor
 * labelling does not keep the gap open. Its marginals contain more information than the largest of
 * them, so some threshold roundings are tried as well (docs/explain/relaxations.md). */
#define MOVES_EVERY 16
#define DRAWS 6

static bool is_time_for_moves(const dcrf_solver *solver) {
    return solver->settings.gap > 0 && solver->polisher && solver->method->lower_bound &&
           solver->info.iterations % MOVES_EVERY == 0;
}

static dcrf_status try_moves(dcrf_solver *solver, dcrf_error *error) {
    TRY(round_largest(solver, error));
    TRY(polish_copy(solver, solver->candidate, error));
    if (!dcrf_stop_is_due(&solver->stop))
        TRY(draw(solver, &solver->rng, DRAWS, error));
    TRY(polish_copy(solver, solver->candidate, error));
    return is_gap_open(solver) ? dcrf_solver_refine(solver, error) : DCRF_OK;
}

/* Do what the start has postponed (candidates.c). */
static dcrf_status catch_up(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_status status = dcrf_solver_try_annealing(solver, error);
    return status == DCRF_OK ? polish_first(solver, error) : status;
}

dcrf_status dcrf_solver_step(dcrf_solver *solver, dcrf_error *error) {
    TRY(dcrf_solver_check(solver, error));
    dcrf_solver_info *info = &solver->info;
    DCRF_ENTER(solver->problem.workspace, error);
    dcrf_status status = begin(solver, error);
    if (status != DCRF_OK || (status = dcrf_stop_reason(&solver->stop)) != DCRF_OK)
        return info->stop = status;
    DCRF_WATCH(solver->problem.workspace, &solver->stop.interrupt);
    struct dcrf_step_report report = {(double)NAN, (double)NAN, (double)NAN, NULL};
    const double began_s = dcrf_time_s();
    status = solver->method->step(solver->state, &report, error);
    info->solve_s += dcrf_time_s() - began_s;
    if (status < 0)
        return info->stop = reason_for(solver, status);
    info->iterations++;
    solver->run_iterations++;
    info->objective = report.objective;
    take_bound(solver, report.lower_bound);
    info->rounded = DCRF_UNKNOWN_ENERGY;
    if ((is_due(solver) || report.labels) &&
        (status = dcrf_unless_interrupted(evaluate(solver, report.labels, error))) < 0)
        return info->stop = status;

    if (solver->candidates.is_annealing_due && info->iterations >= MOVES_EVERY &&
        is_gap_open(solver) && (status = catch_up(solver, error)) < 0)
        return info->stop = status;
    if (is_time_for_moves(solver) &&
        (status = dcrf_solver_leave_out(solver, try_moves(solver, error))) < 0)
        return info->stop = status;
    measure_gap(info);
    const dcrf_moment moment = this_moment(solver, DCRF_STAGE_SOLVE);
    say(solver, &moment, "iteration");
    return info->stop = dcrf_solver_tell(solver, &moment) ? DCRF_STOP_CANCELLED
                        : is_reference_close(solver)
                            ? DCRF_STOP_GAP
                            : dcrf_stop_decide(&solver->stop, solver->run_iterations,
                                               report.stationarity, info->relative_gap);
}

/* ---- the end -------------------------------------------------------------------------------- */

static dcrf_status round_by_thresholds(dcrf_solver *solver, dcrf_error *error) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, solver->settings.seed);
    return draw(solver, &rng, solver->settings.rounding_draws, error);
}

/* Polish the labellings of mean field, if any, so that no method ends above it. With weights that
 * overwhelm the unaries, the LP ends at a constant labelling that is far from the best and that no
 * move can leave: then an early labelling of mean field helps too. */
static dcrf_status polish_mean_field(dcrf_solver *solver, dcrf_error *error) {
    const struct dcrf_candidates *candidates = &solver->candidates;
    if (is_gap_open(solver))
        TRY(dcrf_solver_try_mean_field(solver, error));
    for (size_t k = 0; k < DCRF_SNAPSHOTS; k++)
        if (candidates->has_snapshot[k] && (k != DCRF_SNAPSHOT_EARLY || is_gap_open(solver)))
            TRY(polish_copy(solver, candidates->snapshots[k], error));
    return DCRF_OK;
}

/* The method's own labelling is polished even if another one (a constant one, say) is better: moves
 * can get from it to labellings that they cannot reach from the other. After a fast start, mean
 * field is skipped: with exact operators moves are slow, and the fast start has covered it. */
static dcrf_status polish(dcrf_solver *solver, dcrf_error *error) {
    TRY(round_largest(solver, error));
    TRY(polish_copy(solver, solver->candidate, error));
    if (!solver->info.candidates[DCRF_CANDIDATE_FAST].was_tried)
        TRY(polish_mean_field(solver, error));
    return polish_best(solver, error);
}

static dcrf_status find_left_out(dcrf_solver *solver, dcrf_error *error) {
    dcrf_solver_info *info = &solver->info;
    return dcrf_solver_leave_out(solver,
                                 dcrf_solver_find_left_out(solver, solver->best, info->energy.total,
                                                           &info->bound_left_out, error));
}

dcrf_status dcrf_solver_finish(dcrf_solver *solver, dcrf_error *error) {
    TRY(dcrf_solver_check(solver, error));
    dcrf_solver_info *info = &solver->info;
    struct dcrf_proven proven = {0};
    DCRF_ENTER(solver->problem.workspace, error);
    dcrf_status status = begin(solver, error);
    DCRF_WATCH(solver->problem.workspace, &solver->stop.interrupt);
    if (status == DCRF_OK && isnan(info->rounded.total) && !dcrf_stop_is_due(&solver->stop))
        status = dcrf_solver_leave_out(solver, evaluate(solver, NULL, error));
    /* Stop promptly when cancelled: every loop from here on checks first. */
    if (status == DCRF_OK && solver->settings.rounding_draws > 0)
        status = dcrf_solver_leave_out(solver, round_by_thresholds(solver, error));
    if (status == DCRF_OK && solver->polisher && !dcrf_stop_is_due(&solver->stop))
        status = dcrf_solver_leave_out(solver, polish(solver, error));
    if (status >= 0)
        status = dcrf_solver_measure(solver, error);
    if (status == DCRF_OK)
        status = find_left_out(solver, error);
    if (status == DCRF_OK && solver->has_started && solver->method->lower_bound)
        status = solver->method->count_proven(solver->state, info->energy.total, solver->best,
                                              &proven, error);
    info->proven = proven.right;
    info->proof_s = 0;
    info->proof_stop = DCRF_OK;
    dcrf_proof_free(&solver->proof);
    measure_gap(info);
    const dcrf_moment moment = dcrf_solver_tell_now(solver, DCRF_STAGE_FINISH);
    say(solver, &moment, "finished after iteration");
    solver->is_running = false;
    return status < 0 ? status : DCRF_OK;
}

/* ---- the proof ------------------------------------------------------------------------------ */

void dcrf_solver_take_proof(dcrf_solver *solver, const uint16_t *labels, const dcrf_energy *energy,
                            double lower_bound, double relative_gap, size_t proven) {
    const size_t variables = solver->problem.model->variables;
    dcrf_solver_info *info = &solver->info;
    memcpy(solver->best, labels, variables * sizeof *labels);
    info->energy = *energy;
    info->is_constant = dcrf_labels_are_constant(labels, variables);
    info->proven = proven;
    take_bound(solver, fmin(lower_bound, energy->total));
    measure_gap(info);
    info->relative_gap = fmin(info->relative_gap, relative_gap);
}

/* In the time that is left. An earlier proof is replaced once there is a new one. */
static dcrf_status prove(dcrf_solver *solver, dcrf_error *error) {
    dcrf_solver_info *info = &solver->info;
    const double began_s = dcrf_time_s();
    dcrf_proof *made = NULL;
    info->proof_stop = solver->has_started ? dcrf_stop_reason(&solver->stop) : info->stop;
    if (info->proof_stop == DCRF_OK)
        info->proof_stop = reason_for(solver, dcrf_proof_new(&made, solver, error));
    /* The proof may have found another labelling. */
    const dcrf_status measured = made ? find_left_out(solver, error) : DCRF_OK;
    if (info->proof_stop == DCRF_OK)
        info->proof_stop = measured;
    if (info->proof_stop == DCRF_OK)
        info->proof_stop = dcrf_stop_reason(&solver->stop);
    info->proof_s = dcrf_time_s() - began_s;
    if (made) {
        dcrf_proof_free(&solver->proof);
        solver->proof = made;
        const dcrf_moment moment = dcrf_solver_tell_now(solver, DCRF_STAGE_PROOF);
        say(solver, &moment, "proof after iteration");
    }
    return info->proof_stop;
}

dcrf_status dcrf_solver_prove(dcrf_solver *solver, dcrf_error *error) {
    TRY(dcrf_solver_check(solver, error));
    DCRF_ENTER(solver->problem.workspace, error);
    if (!solver->method->lower_bound)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "a proof needs the dual of the LP; the solver's method is %s",
                         dcrf_method_name(solver->settings.method));
    if (!solver->has_started)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the solver has not run: there is nothing to prove yet");
    if (solver->is_running)
        TRY(dcrf_solver_finish(solver, error));
    begin_clock(solver);
    return prove(solver, error);
}

/* The bound from the start may already be sufficient. */
static dcrf_status stop_before_iterations(dcrf_solver *solver) {
    if (solver->settings.iterations == 0)
        return DCRF_STOP_ITERATIONS;
    return solver->settings.gap > 0 && solver->info.relative_gap <= solver->settings.gap
               ? DCRF_STOP_GAP
               : DCRF_OK;
}

dcrf_status dcrf_solver_run(dcrf_solver *solver, dcrf_error *error) {
    TRY(dcrf_solver_check(solver, error));
    DCRF_ENTER(solver->problem.workspace, error);
    solver->is_running = false;
    dcrf_status stop = begin(solver, error);
    if (stop == DCRF_OK)
        stop = stop_before_iterations(solver);
    solver->info.stop = stop;
    while (stop == DCRF_OK)
        stop = dcrf_solver_step(solver, error);
    if (stop < 0) {
        solver->is_running = false;
        return stop;
    }
    dcrf_status status = dcrf_solver_finish(solver, error);
    if (status == DCRF_OK && solver->settings.proof != DCRF_PROVE_BY_GAP)
        status = dcrf_solver_or_end(solver, prove(solver, error));
    return status < 0 ? status : stop;
}
