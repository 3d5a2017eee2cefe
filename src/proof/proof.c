/* Proofs for single variables (proof_search.c), and what they imply for the gap: in the end it is
 * that of the undecided variables alone. */
#include "core/error.h"
#include "core/memory.h"
#include "core/timer.h"
#include "energy/energy_double.h"
#include "proof/proof_run.h"

#include <dcrf/proof.h>
#include <math.h>
#include <string.h>

/* Fraction of a run's remaining time for the search; the rest is for the conclusion. */
#define SEARCHING_PART 0.8

struct dcrf_proof {
    struct dcrf_knowledge known;
    dcrf_workspace *own_workspace; /* for a certificate that cannot use the solver's; else NULL */
    dcrf_plan *own_plan;
    size_t labels;
    dcrf_proof_info info;
    uint8_t *certificate; /* NULL: none */
    size_t certificate_size;
};

void dcrf_proof_settings_defaults(dcrf_proof_settings *settings) {
    if (!settings)
        return;
    memset(settings, 0, sizeof *settings);
    settings->time_limit_s = DCRF_DEFAULT_PROOF_TIME_LIMIT_S;
    settings->sweeps = DCRF_DEFAULT_PROOF_SWEEPS;
}

static dcrf_status check(const dcrf_solver *solver, const dcrf_proof_settings *settings,
                         dcrf_error *error) {
    if (!solver || !settings)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a proof needs a %s",
                         solver ? "settings" : "solver");
    TRY(dcrf_solver_check(solver, error));
    if (solver->settings.method != DCRF_METHOD_LP)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "a proof needs the dual of the LP; the solver's method is %s",
                         dcrf_method_name(solver->settings.method));
    if (!solver->has_started)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the solver has not run: there is nothing to prove yet");
    if (!(settings->time_limit_s >= 0 && isfinite(settings->time_limit_s)))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the time limit of a proof is %g s; it must be 0 or positive",
                         settings->time_limit_s);
    return dcrf_check_reserved(settings->reserved, sizeof settings->reserved,
                               "the settings of a proof", error);
}

bool dcrf_proof_is_cut_short(void *user) {
    const struct dcrf_proof_run *run = user;
    return (run->stop && dcrf_stop_is_due(run->stop)) ||
           (run->settings.cancel && run->settings.cancel(run->settings.cancel_user) != 0) ||
           (run->settings.time_limit_s > 0 &&
            dcrf_time_s() - run->began_s >= run->settings.time_limit_s);
}

static bool is_exact(const dcrf_plan *plan) {
    for (size_t m = 0; m < plan->kernel_count; m++)
        if (plan->kernels[m].op->methods->kind != DCRF_OPERATOR_EXACT)
            return false;
    return true;
}

/* ---- the result ----------------------------------------------------------------------------- */

/* Count the possible labels; returns whether the labelling is the only one left. */
static bool count_possible(const struct dcrf_knowledge *known, dcrf_proof_info *info) {
    const size_t labels = known->model->labels;
    bool is_only_one = true;
    info->variables = known->model->variables;
    for (size_t a = 0; a < info->variables; a++) {
        const uint8_t *possible = known->possible + a * labels;
        const size_t count = dcrf_count_possible(possible, labels);
        info->proven += count == 1;
        info->possible += count;
        is_only_one &= count == 1 && possible[known->labels[a]];
    }
    return is_only_one;
}

static dcrf_status conclude(struct dcrf_proof_run *run, dcrf_proof_info *info, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    double excess = INFINITY, error_of;
    TRY(known->distance ? DCRF_OK : dcrf_groups_excess(&run->groups, &excess, error));
    TRY(dcrf_energy_in_double(known->plan, known->workspace, known->labels, &info->energy, NULL, 0,
                              &error_of, error));
    const double floor = run->solver->info.unary_floor, bound = run->solver->info.lower_bound;
    const bool is_only_one = count_possible(known, info);
    dcrf_energy_round_up(&info->energy, error_of);
    if (!run->settings.certificate) /* a certificate does not contain the proof of rest.c */
        excess = fmin(excess, run->excess);
    if (is_only_one)
        excess = 0;
    /* The gap is that of the rest; errors of the energy enter only the bound. */
    info->lower_bound = info->energy.total - excess - 3 * error_of;
    info->relative_gap = dcrf_relative_gap(info->energy.total, info->energy.total - excess, floor);
    if (run->settings.certificate) {
        dcrf_proof_claim(run, error_of, excess, is_only_one, info);
    } else if (bound > info->lower_bound) {
        info->lower_bound = bound;
        info->relative_gap =
            fmin(info->relative_gap, dcrf_relative_gap(info->energy.total, bound, floor));
    }
    info->sweeps = (size_t)ceil(run->groups.sweeps);
    info->time_s = dcrf_time_s() - run->began_s;
    return DCRF_OK;
}

/* A certificate is checked against matrices to the last digits of a double. Where other machines do
 * not have the plan's, it is made with matrices built on the CPU. */
static dcrf_status choose_plan(dcrf_proof *proof, const dcrf_solver *solver, bool is_certificate,
                               dcrf_error *error) {
    const dcrf_plan *plan = solver->problem.plan;
    if (!is_certificate || dcrf_plan_is_reproducible(plan))
        return DCRF_OK;
    const size_t threads = dcrf_workspace_threads(solver->problem.workspace);
    TRY(dcrf_workspace_new(&proof->own_workspace, threads, error));
    return dcrf_plan_new(&proof->own_plan, plan->model, DCRF_OPERATOR_FAST, proof->own_workspace,
                         error);
}

static dcrf_status prove(struct dcrf_proof_run *run, dcrf_proof *made, dcrf_error *error) {
    dcrf_status status = dcrf_proof_search(run, &made->info.proven_by_gap, error);
    if (status == DCRF_OK)
        status = conclude(run, &made->info, error);
    if (status == DCRF_OK && run->settings.certificate)
        status =
            dcrf_proof_encode(run, &made->info, &made->certificate, &made->certificate_size, error);
    dcrf_groups_clear(&run->groups);
    dcrf_certificate_mixture_clear(&run->kept);
    return status;
}

/* The solver takes the proof's labelling. The search started from the solver's own, which is kept
 * only if its energy is lower, no certificate was made and not all variables are proven. */
static void hand_over(const dcrf_proof *proof, bool is_certificate, dcrf_solver *solver) {
    const dcrf_energy *energy = &proof->info.energy;
    if (is_certificate) /* report only what the certificate proves */
        solver->info.lower_bound = (double)NAN;
    if (energy->total <= solver->info.energy.total || is_certificate ||
        proof->info.proven == proof->info.variables)
        dcrf_solver_take_proof(solver, proof->known.labels, energy, proof->info.lower_bound,
                               proof->info.relative_gap, proof->info.proven);
    else
        dcrf_solver_take_proof(solver, solver->best, &solver->info.energy, proof->info.lower_bound,
                               (double)INFINITY, proof->info.proven);
}

static dcrf_status make(dcrf_proof **out, dcrf_solver *solver, const dcrf_proof_settings *settings,
                        struct dcrf_stop *stop, dcrf_error *error) {
    const double began_s = dcrf_time_s();
    if (!out)
        return dcrf_fail_null(error, "the place for the proof");
    *out = NULL;
    TRY(check(solver, settings, error));
    dcrf_proof *proof = dcrf_allocate_zero(1, sizeof *proof);
    if (!proof)
        return dcrf_fail_memory(error, "a proof");
    proof->labels = solver->problem.model->labels;
    struct dcrf_proof_run run = {.known = &proof->known,
                                 .solver = solver,
                                 .lp = solver->state,
                                 .settings = *settings,
                                 .stop = stop,
                                 .is_exact = is_exact(solver->problem.plan),
                                 .excess = (double)INFINITY,
                                 .kept_bound = -(double)INFINITY,
                                 .scale = 1,
                                 .began_s = began_s};
    if (stop)
        run.until_s = began_s + SEARCHING_PART * (stop->deadline_s - began_s);
    dcrf_status status = dcrf_method_fetch(solver->method, solver->state, error);
    if (status == DCRF_OK)
        status = dcrf_lp_fetch_best(solver->state, error);
    if (status == DCRF_OK)
        status = choose_plan(proof, solver, settings->certificate, error);
    if (status == DCRF_OK)
        status = dcrf_knowledge_init(
            &proof->known, proof->own_plan ? proof->own_plan : solver->problem.plan,
            proof->own_plan ? proof->own_workspace : solver->problem.workspace, solver->best,
            error);
    if (status == DCRF_OK)
        status = prove(&run, proof, error);
    dcrf_knowledge_keep_result(&proof->known);
    dcrf_plan_free(&proof->own_plan);
    dcrf_workspace_free(&proof->own_workspace);
    if (status == DCRF_OK)
        hand_over(proof, settings->certificate, solver);
    else
        dcrf_proof_free(&proof);
    *out = proof;
    return status;
}

dcrf_status dcrf_proof_new(dcrf_proof **out, dcrf_solver *solver,
                           const dcrf_proof_settings *settings, dcrf_error *error) {
    return make(out, solver, settings, NULL, error);
}

dcrf_status dcrf_proof_of_run(dcrf_proof **out, dcrf_solver *solver, dcrf_error *error) {
    dcrf_proof_settings settings;
    dcrf_proof_settings_defaults(&settings);
    settings.certificate = solver->settings.proof == DCRF_PROVE_CERTIFICATE;
    return make(out, solver, &settings, &solver->stop, error);
}

void dcrf_proof_free(dcrf_proof **proof) {
    if (!proof || !*proof)
        return;
    dcrf_knowledge_clear(&(*proof)->known);
    dcrf_release((*proof)->certificate);
    dcrf_release(*proof);
    *proof = NULL;
}

void dcrf_proof_get_info(const dcrf_proof *proof, dcrf_proof_info *info) {
    *info = proof ? proof->info : (dcrf_proof_info){0};
}

dcrf_status dcrf_proof_labels(const dcrf_proof *proof, uint16_t *labels, size_t count,
                              dcrf_error *error) {
    if (!proof)
        return dcrf_fail_null(error, "the proof");
    const dcrf_status status =
        dcrf_check_room(labels, count, proof->info.variables, "the labels", error);
    if (status == DCRF_OK)
        memcpy(labels, proof->known.labels, proof->info.variables * sizeof *labels);
    return status;
}

const uint8_t *dcrf_proof_possible(const dcrf_proof *proof) {
    return proof ? proof->known.possible : NULL;
}

const uint8_t *dcrf_proof_certificate(const dcrf_proof *proof, size_t *size) {
    *size = proof ? proof->certificate_size : 0;
    return proof ? proof->certificate : NULL;
}

dcrf_status dcrf_proof_counts(const dcrf_proof *proof, uint16_t *counts, size_t count,
                              dcrf_error *error) {
    if (!proof)
        return dcrf_fail_null(error, "the proof");
    const dcrf_status status =
        dcrf_check_room(counts, count, proof->info.variables, "the counts", error);
    const size_t labels = proof->labels; /* the model may have been freed */
    for (size_t a = 0; status == DCRF_OK && a < proof->info.variables; a++)
        counts[a] = (uint16_t)dcrf_count_possible(proof->known.possible + a * labels, labels);
    return status;
}
