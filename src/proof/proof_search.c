/* Proofs for single variables, in this order:
 *
 * 1. by the gap: with reduced costs r of the LP's best dual point, of bound LB, every labelling x
 *    has E(x) >= LB + sum_a (r_a(x_a) - min_i r_ai). A label whose reduced cost exceeds the
 *    smallest by more than E - LB, for the energy E of any labelling, occurs in no optimal one;
 * 2. by dead ends (knowledge.c) and for groups (groups.c), which need no gap, with the LP's y. If
 *    that leaves much, and rounding to float takes much of LB, step 1 is done again in double;
 * 3. when that decides no more, the relaxation of the undecided rest is solved a little further,
 *    with a handicap for the labelling, so that its margins become positive where it stays optimal,
 *    and step 2 is tried again. */
#include "proof/proof_run.h"

#include "core/error.h"
#include "core/owned.h"
#include "core/timer.h"
#include "energy/energy_double.h"
#include "proof/blobs.h"
#include "proof/rest.h"

#include <math.h>
#include <string.h>

/* Width of the line for the bound of the rest. */
#define BOUND_EPSILON (1.0 / (DCRF_VALUE_NODES - 1))
#define RELAX_STEPS 12
#define MOST_FRUITLESS 3
/* The first handicap, as a fraction of the mean row sum; halved after every relaxation. */
#define FIRST_HANDICAP 0.125
/* A round that decides less than this fraction of the rest is the last with its dual point. */
#define WORTHWHILE 0.05
/* The bound is summed up in double if rounding to float takes this part of the gap or more, and
 * more than this part of the variables is undecided: after the float bound, and after groups. */
#define WORTH_DOUBLE (1.0 / 256)
#define MOST_LEFT 0.5
#define MUCH_LEFT 0.05

/* ---- by the gap ----------------------------------------------------------------------------- */

struct exclusion {
    const struct dcrf_proof_run *run;
    double excess;
};

static void exclude(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct exclusion *e = context;
    struct dcrf_knowledge *known = e->run->known;
    for (size_t a = begin; a < end; a++)
        dcrf_dual_exclude(&e->run->lp->space, &e->run->lp->best, a, e->excess,
                          known->possible + a * known->model->labels);
}

/* By the LP's best point as it is, in float. */
static dcrf_status exclude_in_float(struct dcrf_proof_run *run, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    dcrf_energy energy;
    double error_of;
    TRY(dcrf_energy_in_double(known->plan, known->workspace, known->labels, &energy, NULL, 0,
                              &error_of, error));
    run->gap = energy.total + error_of - dcrf_dual_bound(&run->lp->space, &run->lp->best);
    struct exclusion exclusion = {run, run->gap};
    if (run->gap >= 0) /* otherwise the bound is inconsistent: claim nothing */
        dcrf_parallel_for(dcrf_workspace_pool(known->workspace), known->model->variables, 1024,
                          exclude, &exclusion);
    return known->distance ? DCRF_OK : dcrf_knowledge_decide(known, NULL, error);
}

/* In double, by the parts of that point, which the LP has kept; as the check of a certificate
 * does. */
static dcrf_status exclude_in_double(struct dcrf_proof_run *run, dcrf_error *error) {
    const struct dcrf_knowledge *known = run->known;
    dcrf_energy energy;
    double error_of;
    TRY(dcrf_energy_in_double(known->plan, known->workspace, known->labels, &energy, NULL, 0,
                              &error_of, error));
    TRY(dcrf_proof_exclude_by_kept(run, energy.total - error_of, error));
    if (!run->is_certificate)
        dcrf_certificate_mixture_clear(&run->kept);
    return DCRF_OK;
}

/* Is so much undecided, would the bound be clearly better in double, and are there parts that have
 * not been summed up yet? */
static bool is_worth_double(const struct dcrf_proof_run *run, double undecided) {
    const struct dcrf_lp *lp = run->lp;
    const double rounding = DCRF_DUAL_UNIT * (lp->best.roundings.pairwise * lp->space.total +
                                              lp->best.roundings.clique * lp->space.clique_total);
    return lp->mixture.is_kept && isinf(run->kept_bound) && rounding >= WORTH_DOUBLE * run->gap &&
           (double)run->known->undecided > undecided * (double)run->known->model->variables;
}

/* Count the variables with one possible label. */
static size_t count_single(const struct dcrf_knowledge *known) {
    const size_t labels = known->model->labels;
    size_t single = 0;
    for (size_t a = 0; a < known->model->variables; a++)
        single += dcrf_count_possible(known->possible + a * labels, labels) == 1;
    return single;
}

/* At first; *by_gap: how many variables have one label left. */
static dcrf_status exclude_by_gap(struct dcrf_proof_run *run, size_t *by_gap, dcrf_error *error) {
    if (run->lp->has_best && !run->is_certificate)
        TRY(exclude_in_float(run, error));
    if (run->lp->has_best && (run->is_certificate || is_worth_double(run, MOST_LEFT)))
        TRY(exclude_in_double(run, error));
    *by_gap = count_single(run->known);
    return DCRF_OK;
}

/* If x is constant, no pair has slack at any dual point, so the best one may prove all variables at
 * once. */
static dcrf_status decide_constant(struct dcrf_proof_run *run, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    const size_t label = known->labels[0], stride = known->model->stride;
    if (!run->lp->has_best || known->model->cliques.count > 0 || run->is_certificate)
        return DCRF_OK;
    const double unit = 2 * run->lp->best.roundings.pairwise * 0x1p-24 * (1 + 1e-3);
    for (size_t a = 0; a < n; a++) {
        const float *unary = known->model->unary + a * stride;
        const double *pairwise = run->lp->best.pairwise + a * stride;
        const double own = (double)unary[label] - pairwise[label];
        if (known->labels[a] != label)
            return DCRF_OK;
        for (size_t i = 0; i < labels; i++)
            if (i != label && !((double)unary[i] - pairwise[i] - own >
                                unit * known->row_sums[a] + known->error[a]))
                return DCRF_OK;
    }
    memset(run->groups.member, 1, n);
    return dcrf_knowledge_decide(known, run->groups.member, error);
}

/* ---- by groups ------------------------------------------------------------------------------ */

static bool is_over(void *user) {
    const struct dcrf_proof_run *run = user;
    return dcrf_time_s() >= run->until_s || run->known->undecided == 0 ||
           run->groups.sweeps >= (double)run->solver->most_sweeps || dcrf_stop_is_due(run->stop);
}

static dcrf_status eliminate(struct dcrf_proof_run *run, dcrf_error *error) {
    const struct dcrf_interrupt interrupt = {is_over, run};
    TRY(dcrf_knowledge_eliminate(run->known, &interrupt, error));
    return dcrf_knowledge_decide(run->known, NULL, error);
}

/* Decide groups and eliminate dead ends until that brings little. */
static dcrf_status decide_groups(struct dcrf_proof_run *run, dcrf_error *error) {
    size_t before = SIZE_MAX;
    while (!is_over(run) && (before == SIZE_MAX || (double)(before - run->known->undecided) >=
                                                       WORTHWHILE * (double)before)) {
        before = run->known->undecided;
        TRY(dcrf_groups_decide(&run->groups, error));
        if (run->known->undecided > 0)
            TRY(eliminate(run, error));
    }
    return DCRF_OK;
}

/* Take the labels of largest y at the undecided variables as x if that lowers the energy. */
static dcrf_status consider_labels(struct dcrf_proof_run *run, double *best, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    dcrf_energy energy;
    DCRF_SCOPED uint16_t *trial = dcrf_allocate(n, sizeof *trial);
    if (!trial)
        return dcrf_fail_memory(error, "a proof");
    memcpy(trial, known->labels, n * sizeof *trial);
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels && known->round[a] == 0; i++)
            if (known->possible[a * labels + i] &&
                run->groups.y[a * labels + i] > run->groups.y[a * labels + trial[a]])
                trial[a] = (uint16_t)i;
    TRY(dcrf_energy_of_labels(known->plan, known->workspace, trial, &energy, NULL, 0, error));
    if (energy.total < *best) {
        *best = energy.total;
        memcpy(known->labels, trial, n * sizeof *trial);
    }
    return DCRF_OK;
}

/* Relax the rest with handicaps as long as that decides variables; then without a handicap and with
 * narrower lines, for a good bound. */
static dcrf_status relax_rest(struct dcrf_proof_run *run, double handicap, double *best,
                              dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    run->groups.epsilon = DCRF_PROOF_REST_EPSILON;
    for (int fruitless = 0; fruitless < MOST_FRUITLESS && !is_over(run); handicap /= 2) {
        const size_t before = known->undecided;
        TRY(dcrf_groups_relax(&run->groups, RELAX_STEPS, handicap, error));
        TRY(consider_labels(run, best, error));
        TRY(decide_groups(run, error));
        if ((double)(before - known->undecided) < WORTHWHILE * (double)before)
            fruitless++;
    }
    for (; !is_over(run) && run->groups.epsilon > BOUND_EPSILON;
         run->groups.epsilon = fmax(run->groups.epsilon / 2, BOUND_EPSILON))
        TRY(dcrf_groups_relax(&run->groups, RELAX_STEPS, 0, error));
    return is_over(run) ? DCRF_OK : dcrf_groups_relax(&run->groups, 2 * RELAX_STEPS, 0, error);
}

/* Improve the labelling of the rest; solve the rest if it is small. */
static dcrf_status solve_rest(struct dcrf_proof_run *run, double *best, bool *is_better,
                              dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    if (!dcrf_rest_is_small(known))
        return dcrf_blobs_move(&run->groups, best, is_better, error);
    const size_t before = known->undecided;
    const bool may_exclude = !run->is_certificate;
    TRY(dcrf_rest_solve(known, run->groups.y, may_exclude, is_better, &run->excess, error));
    if (*is_better) {
        dcrf_energy energy;
        TRY(dcrf_energy_of_labels(known->plan, known->workspace, known->labels, &energy, NULL, 0,
                                  error));
        *best = energy.total;
    }
    if (may_exclude)
        TRY(dcrf_knowledge_decide(known, NULL, error));
    if (!*is_better && known->undecided > 0)
        TRY(dcrf_blobs_move(&run->groups, best, is_better, error));
    *is_better |= known->undecided < before && known->undecided > 0;
    return DCRF_OK;
}

static dcrf_status prove_groups(struct dcrf_proof_run *run, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    const float *y = run->solver->method->marginals(run->solver->state);
    double mean = 0, best = run->solver->info.energy.total;
    for (size_t a = 0; a < n; a++) {
        memcpy(run->groups.y + a * labels, y + a * known->model->stride, labels * sizeof *y);
        mean += known->row_sums[a] / (double)n;
    }
    TRY(decide_constant(run, error));
    if (!is_over(run))
        TRY(eliminate(run, error));
    TRY(decide_groups(run, error));
    if (!is_over(run) && is_worth_double(run, MUCH_LEFT)) {
        TRY(exclude_in_double(run, error));
        TRY(decide_groups(run, error));
    }
    run->first_rounds = known->rounds;
    run->groups.epsilon = DCRF_PROOF_REST_EPSILON;
    /* Variables that remain undecided may have the wrong label in x: try to improve it. */
    bool is_better = true;
    while (is_better && !is_over(run)) {
        TRY(relax_rest(run, FIRST_HANDICAP * mean, &best, error));
        is_better = false;
        if (!is_over(run))
            TRY(solve_rest(run, &best, &is_better, error));
    }
    return DCRF_OK;
}

dcrf_status dcrf_proof_search(struct dcrf_proof_run *run, size_t *by_gap, dcrf_error *error) {
    if (run->known->distance) /* groups require Potts */
        return exclude_by_gap(run, by_gap, error);
    TRY(dcrf_groups_init(&run->groups, run->known, DCRF_PROOF_FIRST_EPSILON, error));
    run->groups.is_over = is_over;
    run->groups.is_over_user = run;
    TRY(exclude_by_gap(run, by_gap, error));
    return prove_groups(run, error);
}
