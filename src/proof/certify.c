/* Certifying a labelling: the LP method runs until its bound is close enough to the labelling's
 * energy, or the time is up. */
#include "core/error.h"
#include "core/owned.h"
#include "core/timer.h"
#include "energy/sums.h"
#include "lp/lp.h"
#include "proof/knowledge.h"
#include "solver/solver.h"

#include <dcrf/certify.h>
#include <dcrf/proof.h>
#include <math.h>
#include <string.h>

void dcrf_certify_settings_defaults(dcrf_certify_settings *settings) {
    if (!settings)
        return;
    memset(settings, 0, sizeof *settings);
    settings->time_limit_s = DCRF_DEFAULT_CERTIFY_TIME_LIMIT_S;
    settings->gap = DCRF_DEFAULT_CERTIFY_GAP;
    settings->iterations = DCRF_DEFAULT_CERTIFY_ITERATIONS;
}

static dcrf_status check(const dcrf_certify_settings *settings, dcrf_error *error) {
    if (!(settings->time_limit_s >= 0 && isfinite(settings->time_limit_s)) ||
        !(settings->gap >= 0 && isfinite(settings->gap)))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the time limit (%g s) and the gap (%g) of a certificate must be 0 or "
                         "positive",
                         settings->time_limit_s, settings->gap);
    if (settings->iterations == 0)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a certificate needs at least one iteration");
    return dcrf_check_reserved(settings->reserved, sizeof settings->reserved,
                               "the settings of a certificate", error);
}

/* Can more be proven than what follows from the gap? */
static bool can_prove_more(const dcrf_plan *plan) {
    return dcrf_model_require_potts(plan->model, "a proof for single variables", NULL) == DCRF_OK;
}

/* The solver's gap is that of the best labelling it knows, not of the one to be certified, so run()
 * checks the gap itself. */
static dcrf_settings solver_settings(const dcrf_plan *plan, const dcrf_certify_settings *settings) {
    dcrf_settings lp;
    dcrf_settings_defaults(&lp, DCRF_METHOD_LP);
    lp.gap = 0;
    lp.iterations = settings->iterations;
    lp.time_limit_s = settings->time_limit_s;
    lp.evaluate_every = 10;
    lp.polish = 0;
    lp.proof = can_prove_more(plan) ? DCRF_PROVE_VARIABLES : DCRF_PROVE_BY_GAP;
    lp.progress = settings->progress;
    lp.progress_user = settings->progress_user;
    lp.cancel = settings->cancel;
    lp.cancel_user = settings->cancel_user;
    return lp;
}

static dcrf_status run(dcrf_solver *solver, const dcrf_certify_settings *settings,
                       dcrf_certify_info *certificate, dcrf_error *error) {
    const double energy = certificate->energy.total;
    for (;;) {
        dcrf_solver_info info;
        dcrf_status status = dcrf_solver_step(solver, error);
        if (status < 0)
            return status;
        dcrf_solver_get_info(solver, &info);
        /* Before the LP has begun, the only bound comes from pairs and cliques costing at least
         * 0. */
        certificate->lower_bound = isnan(info.lower_bound) ? info.unary_floor : info.lower_bound;
        certificate->relative_gap =
            dcrf_relative_gap(energy, certificate->lower_bound, info.unary_floor);
        certificate->best_energy = fmin(energy, info.energy.total);
        certificate->iterations = info.iterations;
        if (settings->gap > 0 && certificate->relative_gap <= settings->gap)
            status = DCRF_STOP_GAP;
        certificate->stop = status;
        if (status != DCRF_OK)
            return DCRF_OK;
    }
}

/* Count the labels proven by the gap alone, which takes no time. */
static dcrf_status prove_by_gap(const dcrf_solver *solver, const uint16_t *labels,
                                dcrf_certify_info *certificate, dcrf_error *error) {
    struct dcrf_proven proven = {0};
    const dcrf_status status = solver->method->count_proven(solver->state, certificate->best_energy,
                                                            labels, &proven, error);
    certificate->right = proven.right;
    certificate->wrong = proven.wrong;
    return status;
}

/* Prove labels, and with them a smaller gap, in the remaining time. */
static dcrf_status prove(dcrf_solver *solver, const uint16_t *labels,
                         dcrf_certify_info *certificate, dcrf_error *error) {
    DCRF_AT_END(dcrf_proof_free) dcrf_proof *proof = NULL;
    const size_t label_count = solver->problem.model->labels;
    TRY(dcrf_solver_measure(solver, error));
    certificate->best_energy = fmin(certificate->energy.total, solver->info.energy.total);
    if (dcrf_stop_is_due(&solver->stop) || !can_prove_more(solver->problem.plan))
        return prove_by_gap(solver, labels, certificate, error);
    dcrf_status status = dcrf_proof_new(&proof, solver, error);
    if (status < 0)
        return dcrf_stop_is_due(&solver->stop) ? prove_by_gap(solver, labels, certificate, error)
                                               : status;
    const uint8_t *possible = dcrf_proof_possible(proof);
    for (size_t a = 0; a < solver->problem.model->variables; a++) {
        const uint8_t *row = possible + a * label_count;
        certificate->wrong += !row[labels[a]];
        certificate->right += row[labels[a]] && dcrf_count_possible(row, label_count) == 1;
    }
    certificate->best_energy = fmin(certificate->energy.total, solver->info.energy.total);
    certificate->lower_bound = fmin(solver->info.lower_bound, certificate->best_energy);
    certificate->relative_gap = dcrf_relative_gap(
        certificate->energy.total, certificate->lower_bound, solver->info.unary_floor);
    return DCRF_OK;
}

/* The energy of the labelling, rounded up so that the gap is never understated. */
static dcrf_status measure(dcrf_solver *solver, const uint16_t *labels, dcrf_energy *energy,
                           dcrf_error *error) {
    DCRF_WATCH(solver->problem.workspace, &solver->stop.interrupt);
    /* The labelling is one candidate among others: the LP starts from the best. */
    TRY(dcrf_solver_consider(solver, labels, energy, error));
    return dcrf_energy_at_most(solver->problem.plan, solver->problem.workspace, labels, energy,
                               NULL, 0, error);
}

dcrf_status dcrf_certify(const dcrf_plan *plan, dcrf_workspace *workspace, const uint16_t *labels,
                         const dcrf_certify_settings *settings, dcrf_certify_info *certificate,
                         dcrf_error *error) {
    if (!plan || !workspace || !labels || !settings || !certificate)
        return dcrf_fail_null(error, "the plan, the workspace, the labelling, the settings or the "
                                     "certificate");
    DCRF_ENTER(workspace, error);
    const double began_s = dcrf_time_s();
    dcrf_certify_info made = {0};
    DCRF_AT_END(dcrf_solver_free) dcrf_solver *solver = NULL;
    const dcrf_settings lp = solver_settings(plan, settings);
    TRY(check(settings, error));
    TRY(dcrf_solver_new(&solver, plan, workspace, &lp, error));
    dcrf_solver_begin(solver);
    TRY(measure(solver, labels, &made.energy, error));
    TRY(run(solver, settings, &made, error));
    if (solver->has_started)
        TRY(prove(solver, labels, &made, error));
    TRY(dcrf_solver_find_left_out(solver, labels, made.energy.total, &made.bound_left_out, error));
    const size_t variables = dcrf_model_variables(dcrf_plan_model(plan));
    made.is_constant = dcrf_labels_are_constant(labels, variables);
    made.time_s = dcrf_time_s() - began_s;
    *certificate = made;
    return DCRF_OK;
}
