#include "solver/candidates.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/timer.h"
#include "energy/labelling.h"
#include "meanfield/anneal.h"
#include "solver/solver.h"

#include <math.h>
#include <stdio.h>

bool dcrf_candidates_init(struct dcrf_candidates *candidates, dcrf_method method,
                          size_t variables) {
    *candidates = (struct dcrf_candidates){0};
    for (size_t k = 0; k < DCRF_CANDIDATE_KINDS; k++)
        candidates->energies[k] = DCRF_UNKNOWN_ENERGY;
    bool is_done = true;
    for (size_t k = 0; k < DCRF_SNAPSHOTS && method != DCRF_METHOD_MF; k++) {
        candidates->snapshots[k] = dcrf_allocate(variables, sizeof(uint16_t));
        is_done &= candidates->snapshots[k] != NULL;
    }
    return is_done;
}

void dcrf_candidates_clear(struct dcrf_candidates *candidates) {
    for (size_t k = 0; k < DCRF_SNAPSHOTS; k++)
        dcrf_release(candidates->snapshots[k]);
    dcrf_flow_proof_clear(&candidates->flow);
    *candidates = (struct dcrf_candidates){0};
}

/* The labelling to be certified. */
static dcrf_status measure_reference(dcrf_solver *solver, dcrf_error *error) {
    struct dcrf_reference *reference = &solver->reference;
    dcrf_energy energy;
    if (!reference->labels)
        return DCRF_OK;
    TRY(dcrf_solver_consider(solver, reference->labels, &energy, error));
    TRY(dcrf_energy_at_most(solver->problem.plan, solver->problem.workspace, reference->labels,
                            &energy, NULL, 0, error));
    reference->energy = energy;
    return DCRF_OK;
}

/* ---- simple labellings ---------------------------------------------------------------------- */

static dcrf_status try_unary(dcrf_solver *solver, dcrf_energy *energy, dcrf_error *error) {
    uint16_t *labels = solver->best; /* the unary minimum while the solver is new */
    if (isfinite(solver->info.energy.total))
        dcrf_unary_minimum(solver->problem.model, dcrf_workspace_pool(solver->problem.workspace),
                           labels = solver->candidate);
    return dcrf_solver_consider(solver, labels, energy, error);
}

static dcrf_status try_constant(dcrf_solver *solver, dcrf_energy *energy, dcrf_error *error) {
    uint16_t *label = &solver->info.constant_label;
    TRY(dcrf_best_constant(solver->problem.plan, solver->problem.workspace, label, energy, error));
    for (size_t a = 0; a < solver->problem.model->variables; a++)
        solver->candidate[a] = *label;
    dcrf_solver_take(solver, solver->candidate, energy);
    return DCRF_OK;
}

/* ---- proofs --------------------------------------------------------------------------------- */

/* It has no labelling, so no energy. */
static dcrf_status try_flow(dcrf_solver *solver, dcrf_energy *energy, dcrf_error *error) {
    (void)energy;
    const double constant = solver->info.candidates[DCRF_CANDIDATE_CONSTANT].energy;
    const struct dcrf_dual_space *space;
    TRY(solver->method->dual_space(solver->state, &space, error));
    TRY(dcrf_potential_flow(space, constant, &solver->stop.interrupt, &solver->candidates.flow,
                            error));
    if (solver->candidates.flow.pairwise)
        solver->info.candidates[DCRF_CANDIDATE_FLOW].lower_bound = solver->candidates.flow.bound;
    return DCRF_OK;
}

/* ---- mean field ----------------------------------------------------------------------------- */

#define EARLY_UPDATES 5
/* The limit before the LP. */
#define MOST_UPDATES 100

static dcrf_status take_snapshot(dcrf_solver *solver, size_t which, void *state,
                                 dcrf_error *error) {
    const dcrf_status status = dcrf_solver_round_method(solver, &dcrf_mean_field, state,
                                                        solver->candidates.snapshots[which], error);
    solver->candidates.has_snapshot[which] |= status == DCRF_OK;
    return status;
}

static dcrf_status update_mean_field(dcrf_solver *solver, void *state, dcrf_error *error) {
    const struct dcrf_start nowhere = {0};
    const size_t usual = DCRF_DEFAULT_MF_ITERATIONS;
    const size_t most = solver->settings.method == DCRF_METHOD_LP ? MOST_UPDATES : usual;
    struct dcrf_step_report report = {.stationarity = (double)INFINITY};
    TRY(dcrf_mean_field.start(state, &nowhere, error));
    size_t k = 0;
    while (k < most && report.stationarity > DCRF_DEFAULT_MF_STATIONARITY &&
           !dcrf_stop_is_due(&solver->stop)) {
        TRY(dcrf_mean_field.step(state, &report, error));
        k++;
        if (k == EARLY_UPDATES || k == usual)
            TRY(take_snapshot(solver, k == usual ? DCRF_SNAPSHOT_USUAL : DCRF_SNAPSHOT_EARLY, state,
                              error));
    }
    return take_snapshot(solver, k <= usual ? DCRF_SNAPSHOT_USUAL : DCRF_SNAPSHOT_CONVERGED, state,
                         error);
}

/* The labelling after the most updates. */
const uint16_t *dcrf_candidates_mean_field(const struct dcrf_candidates *candidates) {
    for (size_t k = DCRF_SNAPSHOTS; k-- > DCRF_SNAPSHOT_USUAL;)
        if (candidates->has_snapshot[k])
            return candidates->snapshots[k];
    return NULL;
}

static dcrf_status try_mean_field(dcrf_solver *solver, dcrf_energy *energy, dcrf_error *error) {
    void *state;
    TRY(dcrf_mean_field.init(&state, &solver->problem, error));
    dcrf_status status = update_mean_field(solver, state, error);
    dcrf_mean_field.free(state);
    return status < 0 ? status
                      : dcrf_solver_consider(
                            solver, dcrf_candidates_mean_field(&solver->candidates), energy, error);
}

static dcrf_status try_annealing(dcrf_solver *solver, dcrf_energy *energy, dcrf_error *error) {
    TRY(dcrf_anneal(&solver->problem, solver->candidate, error));
    return dcrf_solver_consider(solver, solver->candidate, energy, error);
}

static dcrf_status try_fast(dcrf_solver *solver, dcrf_energy *energy, dcrf_error *error) {
    TRY(dcrf_fast_start(solver, error));
    return dcrf_solver_consider(solver, solver->candidate, energy, error);
}

/* ---- the stage ------------------------------------------------------------------------------ */

/* Writes the energy of its labelling. */
typedef dcrf_status (*attempt)(dcrf_solver *solver, dcrf_energy *energy, dcrf_error *error);

static void say(const dcrf_solver *solver, dcrf_candidate_kind kind) {
    const dcrf_candidate *candidate = &solver->info.candidates[kind];
    char line[128];
    if (!solver->settings.log)
        return;
    snprintf(line, sizeof line, "%s, candidate %s: energy %.9g, bound %.9g, %.3f s",
             solver->method->name, dcrf_candidate_kind_name(kind), candidate->energy,
             candidate->lower_bound, candidate->time_s);
    solver->settings.log(solver->settings.log_user, line);
}

/* Each at most once; returns errors other than running out of memory. */
static dcrf_status try_once(dcrf_solver *solver, dcrf_candidate_kind kind, attempt make,
                            dcrf_error *error) {
    dcrf_candidate *candidate = &solver->info.candidates[kind];
    if (candidate->was_tried)
        return DCRF_OK;
    const double began_s = dcrf_time_s();
    candidate->was_tried = 1;
    dcrf_energy energy = DCRF_UNKNOWN_ENERGY;
    const dcrf_status status = make(solver, &energy, error);
    if (status == DCRF_OK) {
        solver->candidates.energies[kind] = energy;
        candidate->energy = energy.total;
    }
    candidate->time_s = dcrf_time_s() - began_s;
    candidate->was_tried = status != DCRF_ERROR_INTERRUPTED;
    candidate->status =
        status < 0 && candidate->was_tried ? status : dcrf_stop_reason(&solver->stop);
    solver->info.start_s += candidate->time_s;
    say(solver, kind);
    return dcrf_solver_leave_out(solver, status);
}

dcrf_status dcrf_solver_try_mean_field(dcrf_solver *solver, dcrf_error *error) {
    return try_once(solver, DCRF_CANDIDATE_MEAN_FIELD, try_mean_field, error);
}

/* A relative gap this small is not worth closing further. */
#define PROVEN 1e-5

/* The flow can only prove constant labellings optimal; it is not worth trying if a better labelling
 * is known. */
static bool wants_flow(const dcrf_solver *solver) {
    const double constant = solver->info.candidates[DCRF_CANDIDATE_CONSTANT].energy;
    return solver->settings.method == DCRF_METHOD_LP &&
           dcrf_model_require_potts(solver->problem.model, "the flow", NULL) == DCRF_OK &&
           solver->settings.lp.schedule != DCRF_LP_SCHEDULE_PAPER &&
           constant <= solver->info.energy.total + PROVEN * fabs(constant);
}

static bool is_proven(const dcrf_solver *solver) {
    return dcrf_relative_gap(solver->info.energy.total,
                             solver->info.candidates[DCRF_CANDIDATE_FLOW].lower_bound,
                             solver->info.unary_floor) <= PROVEN;
}

static bool is_slow(const dcrf_solver *solver) {
    return solver->info.candidates[DCRF_CANDIDATE_FAST].status >= 0 &&
           dcrf_wants_fast_start(solver);
}

/* A loose gap is often closed before annealing and the first moves pay off, so they wait for the
 * first steps of the LP; but not if mean field is little better than a constant labelling, from
 * where the LP would not get far. */
#define LOOSE_GAP 5e-4
#define MUCH_BETTER 0.5

static bool can_wait(const dcrf_solver *solver) {
    const dcrf_candidate *candidates = solver->info.candidates;
    const double floor = solver->info.unary_floor;
    return solver->settings.gap >= LOOSE_GAP &&
           candidates[DCRF_CANDIDATE_MEAN_FIELD].energy - floor <
               MUCH_BETTER * (candidates[DCRF_CANDIDATE_CONSTANT].energy - floor);
}

/* Try a candidate of this stage, and tell. */
static dcrf_status try_now(dcrf_solver *solver, dcrf_candidate_kind kind, attempt make,
                           dcrf_error *error) {
    TRY(try_once(solver, kind, make, error));
    dcrf_solver_tell_now(solver, DCRF_STAGE_CANDIDATES);
    return DCRF_OK;
}

/* The same if it is wanted and the run need not stop. */
static dcrf_status try_if(bool is_wanted, dcrf_solver *solver, dcrf_candidate_kind kind,
                          attempt make, dcrf_error *error) {
    return is_wanted && !dcrf_stop_is_due(&solver->stop) ? try_now(solver, kind, make, error)
                                                         : DCRF_OK;
}

dcrf_status dcrf_solver_candidates(dcrf_solver *solver, bool has_start, dcrf_error *error) {
    struct dcrf_candidates *candidates = &solver->candidates;
    if (candidates->have_run)
        return DCRF_OK;
    candidates->have_run = true;
    TRY(measure_reference(solver, error));
    /* The first candidate gives the solver an energy; without one the run stops here. */
    dcrf_status status = try_now(solver, DCRF_CANDIDATE_UNARY, try_unary, error);
    if (status == DCRF_OK && !isfinite(solver->info.energy.total))
        status = solver->info.candidates[DCRF_CANDIDATE_UNARY].status;
    if (status == DCRF_OK)
        status = try_if(true, solver, DCRF_CANDIDATE_CONSTANT, try_constant, error);
    /* A start for the QP or the LP: with the fast operators if the solver's own are slow. */
    const bool needs_start = !has_start && solver->settings.method != DCRF_METHOD_MF;
    if (status == DCRF_OK)
        status =
            try_if(needs_start && is_slow(solver), solver, DCRF_CANDIDATE_FAST, try_fast, error);
    if (status == DCRF_OK)
        status = try_if(needs_start && !is_slow(solver), solver, DCRF_CANDIDATE_MEAN_FIELD,
                        try_mean_field, error);
    if (status == DCRF_OK)
        status = try_if(wants_flow(solver), solver, DCRF_CANDIDATE_FLOW, try_flow, error);
    const bool needs_annealing = needs_start && !is_slow(solver) && !is_proven(solver) &&
                                 solver->settings.method == DCRF_METHOD_LP;
    candidates->is_annealing_due = needs_annealing && can_wait(solver);
    if (status == DCRF_OK)
        status = try_if(needs_annealing && !candidates->is_annealing_due, solver,
                        DCRF_CANDIDATE_ANNEALING, try_annealing, error);
    candidates->have_run = status == DCRF_OK;
    return status;
}

dcrf_status dcrf_solver_try_annealing(dcrf_solver *solver, dcrf_error *error) {
    solver->candidates.is_annealing_due = false;
    return dcrf_stop_is_due(&solver->stop)
               ? DCRF_OK
               : try_once(solver, DCRF_CANDIDATE_ANNEALING, try_annealing, error);
}
