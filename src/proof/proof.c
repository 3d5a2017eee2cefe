/* Proofs for single variables (proof_search.c), and what they imply for the gap: in the end it is
 * that of the undecided variables alone. */
#include "core/error.h"
#include "core/owned.h"
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
    size_t labels;
    dcrf_proof_info info;
    uint8_t *certificate; /* NULL: none */
    size_t certificate_size;
};

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
    struct dcrf_conclusion *found = &run->conclusion;
    double excess = INFINITY, error_of;
    TRY(known->distance ? DCRF_OK : dcrf_groups_excess(&run->groups, &excess, error));
    TRY(dcrf_energy_in_double(known->plan, known->workspace, known->labels, &found->energy, NULL, 0,
                              &error_of, error));
    const double floor = run->solver->info.unary_floor;
    const double bound = fmax(run->solver->info.lower_bound, run->kept_bound);
    const bool is_only_one = count_possible(known, info);
    dcrf_energy_round_up(&found->energy, error_of);
    if (!run->is_certificate) /* a certificate does not contain the proof of rest.c */
        excess = fmin(excess, run->excess);
    if (is_only_one)
        excess = 0;
    /* The gap is that of the rest; errors of the energy enter only the bound. */
    found->lower_bound = found->energy.total - excess - 3 * error_of;
    found->relative_gap =
        dcrf_relative_gap(found->energy.total, found->energy.total - excess, floor);
    if (run->is_certificate) {
        dcrf_proof_claim(run, error_of, excess, is_only_one, found);
    } else if (bound > found->lower_bound) {
        found->lower_bound = bound;
        found->relative_gap =
            fmin(found->relative_gap, dcrf_relative_gap(found->energy.total, bound, floor));
    }
    found->proven = info->proven;
    info->sweeps = (size_t)ceil(run->groups.sweeps);
    return DCRF_OK;
}

static bool wants_certificate(const dcrf_solver *solver) {
    return solver->settings.proof == DCRF_PROVE_CERTIFICATE;
}

/* A certificate is checked against matrices to the last digits of a double. Where other machines do
 * not have the plan's, it is made with matrices built on the CPU. *plan and *workspace stay NULL if
 * the solver's will do. */
static dcrf_status choose_plan(const dcrf_solver *solver, dcrf_plan **plan,
                               dcrf_workspace **workspace, dcrf_error *error) {
    const dcrf_plan *usual = solver->problem.plan;
    if (!wants_certificate(solver) || dcrf_plan_is_reproducible(usual))
        return DCRF_OK;
    const size_t threads = dcrf_workspace_threads(solver->problem.workspace);
    TRY(dcrf_workspace_new(workspace, threads, error));
    return dcrf_plan_new(plan, usual->model, DCRF_OPERATOR_FAST, *workspace, error);
}

static dcrf_status prove(struct dcrf_proof_run *run, dcrf_proof *made, dcrf_error *error) {
    dcrf_status status = dcrf_proof_search(run, &made->info.proven_by_gap, error);
    if (status == DCRF_OK)
        status = conclude(run, &made->info, error);
    if (status == DCRF_OK && run->is_certificate)
        status = dcrf_proof_encode(run, &run->conclusion, &made->certificate,
                                   &made->certificate_size, error);
    dcrf_groups_clear(&run->groups);
    dcrf_certificate_mixture_clear(&run->kept);
    return status;
}

/* The solver takes the proof's labelling. The search started from the solver's own, which is kept
 * only if its energy is lower, no certificate was made and not all variables are proven. */
static void hand_over(const struct dcrf_proof_run *run, dcrf_solver *solver) {
    const struct dcrf_conclusion *found = &run->conclusion;
    if (run->is_certificate) /* report only what the certificate proves */
        solver->info.lower_bound = (double)NAN;
    if (found->energy.total <= solver->info.energy.total || run->is_certificate ||
        found->proven == run->known->model->variables)
        dcrf_solver_take_proof(solver, run->known->labels, &found->energy, found->lower_bound,
                               found->relative_gap, found->proven);
    else
        dcrf_solver_take_proof(solver, solver->best, &solver->info.energy, found->lower_bound,
                               (double)INFINITY, found->proven);
}

dcrf_status dcrf_proof_new(dcrf_proof **out, dcrf_solver *solver, dcrf_error *error) {
    const double began_s = dcrf_time_s(), left_s = solver->stop.deadline_s - began_s;
    const struct dcrf_problem *problem = &solver->problem;
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_plan_free) dcrf_plan *plan = NULL;
    DCRF_AT_END(dcrf_proof_free) dcrf_proof *proof = dcrf_allocate_zero(1, sizeof *proof);
    *out = NULL;
    if (!proof)
        return dcrf_fail_memory(error, "a proof");
    proof->labels = problem->model->labels;
    struct dcrf_proof_run run = {.known = &proof->known,
                                 .solver = solver,
                                 .lp = solver->state,
                                 .is_certificate = wants_certificate(solver),
                                 .stop = &solver->stop,
                                 .until_s = began_s + SEARCHING_PART * left_s,
                                 .is_exact = dcrf_plan_is_exact(problem->plan),
                                 .gap = (double)INFINITY,
                                 .excess = (double)INFINITY,
                                 .kept_bound = -(double)INFINITY,
                                 .scale = 1};
    TRY(dcrf_method_fetch(solver->method, solver->state, error));
    TRY(dcrf_lp_fetch_best(solver->state, error));
    TRY(choose_plan(solver, &plan, &workspace, error));
    TRY(dcrf_knowledge_init(&proof->known, plan ? plan : problem->plan,
                            plan ? workspace : problem->workspace, solver->best, error));
    TRY(prove(&run, proof, error));
    hand_over(&run, solver);
    dcrf_knowledge_keep_result(&proof->known);
    *out = DCRF_PASS_ON(proof);
    return DCRF_OK;
}

void dcrf_proof_free(dcrf_proof **proof) {
    if (!proof || !*proof)
        return;
    dcrf_knowledge_clear(&(*proof)->known);
    dcrf_release((*proof)->certificate);
    dcrf_release(*proof);
    *proof = NULL;
}

void dcrf_proof_count(const dcrf_proof *proof, uint16_t *counts) {
    for (size_t a = 0; a < proof->info.variables; a++)
        counts[a] =
            (uint16_t)dcrf_count_possible(proof->known.possible + a * proof->labels, proof->labels);
}

void dcrf_proof_get_info(const dcrf_proof *proof, dcrf_proof_info *info) {
    *info = proof ? proof->info : (dcrf_proof_info){0};
}

const uint8_t *dcrf_proof_possible(const dcrf_proof *proof) {
    return proof ? proof->known.possible : NULL;
}

const uint8_t *dcrf_proof_certificate(const dcrf_proof *proof, size_t *size) {
    *size = proof ? proof->certificate_size : 0;
    return proof ? proof->certificate : NULL;
}
