/* Certifying a labelling: a run of the LP that stops when its bound is close enough to the
 * labelling's energy. */
#include "core/error.h"
#include "core/owned.h"
#include "core/timer.h"
#include "energy/energy.h"
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

/* The run's own gap, that of its best labelling, is no reason to stop. */
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

/* Count the labels proven right and wrong, by the run's proof or by the gap alone. */
static dcrf_status count_proven(const dcrf_solver *solver, const uint16_t *labels,
                                dcrf_certify_info *certificate, dcrf_error *error) {
    const size_t label_count = solver->problem.model->labels;
    const uint8_t *row = dcrf_proof_possible(solver->proof);
    struct dcrf_proven proven = {0};
    if (!row)
        TRY(solver->method->count_proven(solver->state, certificate->best_energy, labels, &proven,
                                         error));
    for (size_t a = 0; row && a < solver->problem.model->variables; a++, row += label_count) {
        proven.wrong += !row[labels[a]];
        proven.right += row[labels[a]] && dcrf_count_possible(row, label_count) == 1;
    }
    certificate->right = proven.right;
    certificate->wrong = proven.wrong;
    return DCRF_OK;
}

static dcrf_status read(const dcrf_solver *solver, dcrf_certify_info *certificate,
                        dcrf_error *error) {
    const dcrf_solver_info *info = &solver->info;
    const double energy = solver->reference.energy.total;
    /* Before the LP has begun, the only bound comes from pairs and cliques costing at least 0. */
    const double bound = isnan(info->lower_bound) ? info->unary_floor - solver->unary_floor_error
                                                  : info->lower_bound;
    certificate->energy = solver->reference.energy;
    certificate->best_energy = fmin(energy, info->energy.total);
    certificate->lower_bound = fmin(bound, certificate->best_energy);
    certificate->relative_gap =
        dcrf_relative_gap(energy, certificate->lower_bound, info->unary_floor);
    certificate->is_constant =
        dcrf_labels_are_constant(solver->reference.labels, solver->problem.model->variables);
    certificate->iterations = info->iterations;
    certificate->stop = info->stop;
    return solver->has_started ? count_proven(solver, solver->reference.labels, certificate, error)
                               : DCRF_OK;
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
    TRY(check(settings, error));
    const dcrf_settings lp = solver_settings(plan, settings);
    TRY(dcrf_solver_new(&solver, plan, workspace, &lp, error));
    solver->reference = (struct dcrf_reference){labels, settings->gap, DCRF_UNKNOWN_ENERGY};
    TRY(dcrf_solver_run(solver, error));
    if (isnan(solver->reference.energy.total))
        return dcrf_fail_interrupted(workspace, "certifying a labelling", error);
    TRY(dcrf_solver_find_left_out(solver, labels, solver->reference.energy.total,
                                  &made.bound_left_out, error));
    TRY(read(solver, &made, error));
    made.time_s = dcrf_time_s() - began_s;
    *certificate = made;
    return DCRF_OK;
}
