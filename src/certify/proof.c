/* Proofs for single variables, one after the other:
 *
 * 1. by the gap: with reduced costs r of the LP's best dual point, of bound LB, every labelling x
 *    has E(x) >= LB + sum_a (r_a(x_a) - min_i r_ai). A label whose reduced cost exceeds the
 * smallest by more than E - LB, for the energy E of any labelling, occurs in no optimal one;
 * 2. by dead ends (knowledge.c) and for groups (groups.c), which need no gap, with the LP's y;
 * 3. where that comes to an end, the relaxation of the undecided rest is solved a little further,
 * with a handicap for the labelling, so that its margins become positive where it stays optimal,
 * and the rest is tried again.
 *
 * At the end the gap is that of the undecided rest alone. */
#include "certify/blobs.h"
#include "certify/check.h"
#include "certify/groups.h"
#include "certify/kept.h"
#include "certify/rest.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/timer.h"
#include "energy/energy_double.h"
#include "solver/lp.h"
#include "solver/solver.h"

#include <dcrf/proof.h>
#include <math.h>
#include <string.h>

/* The y of the LP comes from widths down to this; the rest is relaxed with a wider line, whose
 * values are told apart by more steps. */
#define FIRST_EPSILON 0.03125
#define REST_EPSILON 0.25
#define BOUND_EPSILON (1.0 / (DCRF_VALUE_NODES - 1))
#define RELAX_STEPS 12
#define MOST_FRUITLESS 3
/* The first handicap, as a part of the mean row sum; halved from one relaxation to the next. */
#define FIRST_HANDICAP 0.125
/* A round that decides less than this part of the rest is the last with its dual point. */
#define WORTHWHILE 0.05
/* Of the time that a run has left; the rest is for the conclusion. */
#define SEARCHING_PART 0.8

struct dcrf_proof {
    struct dcrf_knowledge known;
    dcrf_workspace *own_workspace; /* of a certificate that is not made with the solver's; NULL */
    dcrf_plan *own_plan;
    size_t labels;
    dcrf_proof_info info;
    double error_of_energy;
    uint8_t *certificate; /* NULL: none */
    size_t certificate_size;
};

struct run {
    struct dcrf_certificate_mixture kept; /* of a certificate: the LP's dual point */
    double kept_bound;                    /* what it proves */
    struct dcrf_knowledge *known;
    struct dcrf_groups groups;
    const dcrf_solver *solver;
    const struct dcrf_lp *lp;
    dcrf_proof_settings settings;
    struct dcrf_stop *stop; /* of the solver's run; NULL: the proof has a clock of its own */
    double until_s;         /* by that: then the time that is left is for the conclusion */
    size_t first_rounds;    /* with the first epsilon */
    double excess;          /* of the labelling over the optimum, at most, if the rest was solved */
    double began_s;
};

void dcrf_proof_settings_defaults(dcrf_proof_settings *settings) {
    memset(settings, 0, sizeof *settings);
    settings->time_limit_s = DCRF_DEFAULT_PROOF_TIME_LIMIT_S;
    settings->sweeps = DCRF_DEFAULT_PROOF_SWEEPS;
}

static dcrf_status check(const dcrf_solver *solver, const dcrf_proof_settings *settings,
                         dcrf_error *error) {
    if (!solver || !settings)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a proof needs a %s",
                         solver ? "settings" : "solver");
    const dcrf_status usable = dcrf_solver_check(solver, error);
    if (usable < 0)
        return usable;
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

/* ---- by the gap ----------------------------------------------------------------------------- */

struct exclusion {
    const struct run *run;
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

static bool is_exact(const dcrf_plan *plan) {
    for (size_t m = 0; m < plan->kernel_count; m++)
        if (plan->kernels[m].op->methods->kind != DCRF_OPERATOR_EXACT)
            return false;
    return true;
}

/* Sums in double differ by no more than this, whoever adds them up (check_sums.c). */
static double allowance(const struct run *run) {
    const dcrf_model *model = run->known->model;
    const double n = (double)model->variables;
    double rows = 0, weights = 0, unaries = 0;
    for (size_t a = 0; a < model->variables; a++) {
        rows += run->known->row_sums[a];
        unaries += fabs((double)model->unary[a * model->stride + run->known->labels[a]]);
    }
    for (size_t m = 0; m < model->kernel_count; m++)
        weights += fabs(model->kernels[m].weight);
    return 16 * ((3 * n + 2000) * 0x1p-52 + 1e-12) * rows + 16 * n * n * 5e-18 * weights +
           0x1p-46 * unaries;
}

static bool has_no_time(void *user) {
    const struct run *run = user;
    return (run->stop && dcrf_stop_is_due(run->stop)) ||
           (run->settings.cancel && run->settings.cancel(run->settings.cancel_user) != 0) ||
           (run->settings.time_limit_s > 0 &&
            dcrf_time_s() - run->began_s >= run->settings.time_limit_s);
}

/* The dual point that a certificate can hold, and what the check will say of it. Where there is no
 * time for that, the certificate does without. */
static dcrf_status exclude_by_kept(struct run *run, double energy, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    const bool exact = is_exact(known->plan);
    dcrf_status status = dcrf_kept_mixture(run->lp, exact, &run->kept, error);
    if (status < 0)
        return status;
    struct dcrf_certificate_content content = {
        .identity = {.is_exact = exact}, .labels = known->labels, .mixtures = &run->kept};
    const struct dcrf_interrupt interrupt = {has_no_time, run};
    double excess = INFINITY;
    dcrf_plan *plan = exact ? NULL : (dcrf_plan *)known->plan;
    DCRF_WATCH(known->workspace, &interrupt);
    status = dcrf_check_first(&content, known->model, plan, known->workspace, &excess,
                              known->possible, error);
    if (status == DCRF_ERROR_INTERRUPTED) {
        run->kept.size = 0; /* not checked, not claimed */
        return DCRF_OK;
    }
    run->kept_bound = energy - excess - 2 * allowance(run);
    return status < 0 ? status : dcrf_knowledge_decide(known, NULL, error);
}

static dcrf_status exclude_by_gap(struct run *run, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    dcrf_energy energy;
    double error_of;
    if (!run->lp->has_best)
        return DCRF_OK;
    const dcrf_status status = dcrf_energy_in_double(known->plan, known->workspace, known->labels,
                                                     &energy, NULL, &error_of, error);
    if (status < 0)
        return status;
    if (run->settings.certificate)
        return exclude_by_kept(run, energy.total - error_of, error);
    struct exclusion exclusion = {run, energy.total + error_of -
                                           dcrf_dual_bound(&run->lp->space, &run->lp->best)};
    if (exclusion.excess >= 0) /* else something is wrong with the bound: claim nothing */
        dcrf_parallel_for(dcrf_workspace_pool(known->workspace), known->model->variables, 1024,
                          exclude, &exclusion);
    return dcrf_knowledge_decide(known, NULL, error);
}

/* Where x is constant no pair has a slack, whatever the dual point: the best one may show that
 * every variable has its label. */
static dcrf_status decide_constant(struct run *run, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    const size_t label = known->labels[0], stride = known->model->stride;
    if (!run->lp->has_best || known->model->cliques.count > 0 || run->settings.certificate)
        return DCRF_OK;
    const double unit = 2 * run->lp->best.pairwise_roundings * 0x1p-24 * (1 + 1e-3);
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
    const struct run *run = user;
    return (run->stop && (dcrf_time_s() >= run->until_s || dcrf_stop_is_due(run->stop))) ||
           run->known->undecided == 0 || run->groups.sweeps >= (double)run->settings.sweeps ||
           (run->settings.cancel && run->settings.cancel(run->settings.cancel_user) != 0) ||
           (run->settings.time_limit_s > 0 &&
            dcrf_time_s() - run->began_s >= run->settings.time_limit_s);
}

static dcrf_status eliminate(struct run *run, dcrf_error *error) {
    const struct dcrf_interrupt interrupt = {is_over, run};
    const dcrf_status status = dcrf_knowledge_eliminate(run->known, &interrupt, error);
    return status < 0 ? status : dcrf_knowledge_decide(run->known, NULL, error);
}

/* Groups and dead ends until they bring little. */
static dcrf_status decide_groups(struct run *run, dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    size_t before = SIZE_MAX;
    while (status == DCRF_OK && !is_over(run) &&
           (before == SIZE_MAX ||
            (double)(before - run->known->undecided) >= WORTHWHILE * (double)before)) {
        before = run->known->undecided;
        status = dcrf_groups_decide(&run->groups, error);
        if (status == DCRF_OK && run->known->undecided > 0)
            status = eliminate(run, error);
    }
    return status;
}

/* Let the labels of the largest y among the undecided be those of x, if they are better. */
static dcrf_status consider_labels(struct run *run, double *best, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    dcrf_energy energy;
    uint16_t *trial = dcrf_allocate(n, sizeof *trial);
    if (!trial)
        return dcrf_fail_memory(error, "a proof");
    memcpy(trial, known->labels, n * sizeof *trial);
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels && known->round[a] == 0; i++)
            if (known->possible[a * labels + i] &&
                run->groups.y[a * labels + i] > run->groups.y[a * labels + trial[a]])
                trial[a] = (uint16_t)i;
    const dcrf_status status =
        dcrf_energy_of_labels(known->plan, known->workspace, trial, &energy, NULL, error);
    if (status == DCRF_OK && energy.total < *best) {
        *best = energy.total;
        memcpy(known->labels, trial, n * sizeof *trial);
    }
    dcrf_release(trial);
    return status;
}

/* The relaxation of the rest with handicaps, as long as it decides something; then without, because
 * a good bound needs none, and a narrow line. */
static dcrf_status relax_rest(struct run *run, double handicap, double *best, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    dcrf_status status = DCRF_OK;
    run->groups.epsilon = REST_EPSILON;
    for (int fruitless = 0; fruitless < MOST_FRUITLESS && status == DCRF_OK && !is_over(run);
         handicap /= 2) {
        const size_t before = known->undecided;
        status = dcrf_groups_relax(&run->groups, RELAX_STEPS, handicap, error);
        if (status == DCRF_OK)
            status = consider_labels(run, best, error);
        if (status == DCRF_OK)
            status = decide_groups(run, error);
        if ((double)(before - known->undecided) < WORTHWHILE * (double)before)
            fruitless++;
    }
    for (; status == DCRF_OK && !is_over(run) && run->groups.epsilon > BOUND_EPSILON;
         run->groups.epsilon = fmax(run->groups.epsilon / 2, BOUND_EPSILON))
        status = dcrf_groups_relax(&run->groups, RELAX_STEPS, 0, error);
    if (status == DCRF_OK && !is_over(run))
        status = dcrf_groups_relax(&run->groups, 2 * RELAX_STEPS, 0, error);
    return status;
}

/* A better labelling of the rest, and if it is small, all that can be known about it. */
static dcrf_status solve_rest(struct run *run, double *best, bool *is_better, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    dcrf_status status = DCRF_OK;
    if (!dcrf_rest_is_small(known))
        return dcrf_blobs_move(&run->groups, best, is_better, error);
    const size_t before = known->undecided;
    const bool may_exclude = !run->settings.certificate;
    status = dcrf_rest_solve(known, run->groups.y, may_exclude, is_better, &run->excess, error);
    if (status == DCRF_OK && *is_better) {
        dcrf_energy energy;
        status = dcrf_energy_of_labels(known->plan, known->workspace, known->labels, &energy, NULL,
                                       error);
        *best = status == DCRF_OK ? energy.total : *best;
    }
    if (status == DCRF_OK && may_exclude)
        status = dcrf_knowledge_decide(known, NULL, error);
    *is_better |= known->undecided < before && known->undecided > 0;
    return status;
}

static dcrf_status prove_groups(struct run *run, dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    const float *y = run->solver->method->marginals(run->solver->state);
    double mean = 0, best = run->solver->info.energy.total;
    for (size_t a = 0; a < n; a++) {
        memcpy(run->groups.y + a * labels, y + a * known->model->stride, labels * sizeof *y);
        mean += known->row_sums[a] / (double)n;
    }
    dcrf_status status = decide_constant(run, error);
    if (status == DCRF_OK && !is_over(run))
        status = eliminate(run, error);
    if (status == DCRF_OK)
        status = decide_groups(run, error);
    run->first_rounds = known->rounds;
    run->groups.epsilon = REST_EPSILON;
    /* A rest that resists may have another label than that of x. */
    bool is_better = true;
    while (is_better && status == DCRF_OK && !is_over(run)) {
        status = relax_rest(run, FIRST_HANDICAP * mean, &best, error);
        is_better = false;
        if (status == DCRF_OK && !is_over(run))
            status = solve_rest(run, &best, &is_better, error);
    }
    return status;
}

/* ---- the result ----------------------------------------------------------------------------- */

/* What a certificate claims: the energy from above, and a bound that is still one after the errors
 * that a check in double allows for. */
static void claim(const struct run *run, double error_of, double excess, bool is_only_one,
                  dcrf_proof_info *info) {
    const double floor = dcrf_unary_floor(run->known->model), allowed = allowance(run);
    info->lower_bound = info->energy.total - excess - error_of - allowed;
    if (!is_only_one)
        info->lower_bound = fmax(info->lower_bound, fmax(run->kept_bound, floor - allowed));
    info->energy.total += error_of;
    info->relative_gap =
        is_only_one ? 0 : dcrf_relative_gap(info->energy.total, info->lower_bound, floor);
}

static dcrf_status conclude(struct run *run, dcrf_proof_info *info, double *error_of,
                            dcrf_error *error) {
    struct dcrf_knowledge *known = run->known;
    double excess;
    dcrf_status status = dcrf_groups_excess(&run->groups, &excess, error);
    /* In a certificate a round is a group or follows from dead ends; this does not. */
    if (status == DCRF_OK && !run->settings.certificate)
        status = dcrf_knowledge_decide(known, NULL, error);
    if (status == DCRF_OK)
        status = dcrf_energy_in_double(known->plan, known->workspace, known->labels, &info->energy,
                                       NULL, error_of, error);
    if (status < 0)
        return status;
    const double floor = dcrf_unary_floor(known->model), bound = run->solver->info.lower_bound;
    bool is_only_one = true; /* this labelling is left */
    info->variables = known->model->variables;
    for (size_t a = 0; a < info->variables; a++) {
        size_t count = 0;
        for (size_t i = 0; i < known->model->labels; i++)
            count += known->possible[a * known->model->labels + i];
        info->proven += count == 1;
        info->possible += count;
        is_only_one &= count == 1 && known->possible[a * known->model->labels + known->labels[a]];
    }
    if (!run->settings.certificate) /* which does not hold that proof */
        excess = fmin(excess, run->excess);
    if (is_only_one)
        excess = 0;
    /* The gap is that of the rest; the errors of the energy are in the bound alone. */
    info->lower_bound = info->energy.total - excess - 2 * *error_of;
    info->relative_gap = dcrf_relative_gap(info->energy.total, info->energy.total - excess, floor);
    if (run->settings.certificate) {
        claim(run, *error_of, excess, is_only_one, info);
        *error_of = 0; /* it is in the energy now */
    }
    if (bound > info->lower_bound && !run->settings.certificate) {
        info->lower_bound = bound;
        info->relative_gap =
            fmin(info->relative_gap, dcrf_relative_gap(info->energy.total, bound, floor));
    }
    info->sweeps = (size_t)ceil(run->groups.sweeps);
    info->time_s = dcrf_time_s() - run->began_s;
    return DCRF_OK;
}

/* ---- the certificate ------------------------------------------------------------------------ */

/* The planes of labels that have values at a variable that `of` marks; how many. */
static size_t find_planes(const struct run *run, bool of_rest, uint16_t *plane) {
    const size_t n = run->known->model->variables, labels = run->known->model->labels;
    size_t count = 0;
    for (size_t i = 0; i < labels; i++) {
        size_t a = 0;
        while (a < n &&
               ((of_rest && run->known->round[a] != 0) || run->groups.value[a * labels + i] == 0))
            a++;
        plane[i] = a < n ? (uint16_t)++count : 0;
    }
    return count;
}

/* The values, one plane for each label that has some. */
static bool pack_values(const struct run *run, struct dcrf_certificate_content *content) {
    const size_t n = run->known->model->variables, labels = run->known->model->labels;
    content->plane = dcrf_allocate_zero(labels, sizeof *content->plane);
    if (!content->plane)
        return false;
    content->plane_count = find_planes(run, false, content->plane);
    content->values = dcrf_allocate(content->plane_count, n);
    for (size_t i = 0; i < labels && content->values; i++)
        for (size_t a = 0; a < n && content->plane[i] > 0; a++)
            content->values[(content->plane[i] - (size_t)1) * n + a] =
                run->groups.value[a * labels + i];
    return content->values != NULL;
}

/* The bound of the rest is that of one dual point, whose values are those of the rest. */
static bool pack_rest(const struct run *run, struct dcrf_certificate_content *content) {
    const struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    if (known->undecided == 0)
        return true;
    struct dcrf_certificate_mixture *rest = &content->mixtures[content->mixture_count];
    rest->after = known->rounds;
    rest->size = known->undecided;
    rest->points = dcrf_allocate_zero(1, sizeof *rest->points);
    if (!rest->points)
        return false;
    content->mixture_count++;
    rest->point_count = 1;
    struct dcrf_certificate_point *point = rest->points;
    point->weight = 1;
    point->epsilon = run->groups.epsilon;
    point->nodes = DCRF_VALUE_NODES;
    point->levels = DCRF_VALUE_MOST;
    point->plane = dcrf_allocate_zero(labels, sizeof *point->plane);
    if (!point->plane)
        return false;
    point->plane_count = find_planes(run, true, point->plane);
    point->values = dcrf_allocate(point->plane_count, rest->size * sizeof *point->values);
    for (size_t i = 0; i < labels && point->values; i++) {
        uint32_t *values = point->values + (point->plane[i] - (size_t)1) * rest->size;
        for (size_t a = 0; a < n && point->plane[i] > 0; a++)
            if (known->round[a] == 0)
                *values++ = run->groups.value[a * labels + i];
    }
    return point->values != NULL;
}

static struct dcrf_certificate_mixture take_kept(struct run *run) {
    const struct dcrf_certificate_mixture kept = run->kept;
    run->kept = (struct dcrf_certificate_mixture){0};
    return kept;
}

static dcrf_status make_certificate(struct run *run, dcrf_proof *made, dcrf_error *error) {
    const struct dcrf_knowledge *known = run->known;
    const size_t n = known->model->variables;
    struct dcrf_certificate_content content = {.energy = made->info.energy.total,
                                               .lower_bound = made->info.lower_bound,
                                               .proven = made->info.proven,
                                               .rounds = known->rounds};
    dcrf_status status =
        dcrf_identity_of_model(&content.identity, known->model, is_exact(known->plan), error);
    if (status < 0)
        return status;
    if (!content.identity.is_exact)
        status =
            dcrf_identity_take_matrices(&content.identity, known->plan, known->workspace, error);
    if (status < 0) {
        dcrf_certificate_clear(&content);
        return status;
    }
    content.epsilon = dcrf_allocate(known->rounds, sizeof *content.epsilon);
    content.mixtures = dcrf_allocate_zero(2, sizeof *content.mixtures);
    if (content.mixtures && run->kept.size > 0)
        content.mixtures[content.mixture_count++] = take_kept(run);
    content.labels = dcrf_allocate(n, sizeof *content.labels);
    content.round = dcrf_allocate(n, sizeof *content.round);
    if (content.epsilon && content.mixtures && content.labels && content.round &&
        pack_values(run, &content) && pack_rest(run, &content)) {
        for (size_t r = 0; r < known->rounds; r++)
            content.epsilon[r] = r < run->first_rounds ? FIRST_EPSILON : REST_EPSILON;
        memcpy(content.labels, known->labels, n * sizeof *content.labels);
        memcpy(content.round, known->round, n * sizeof *content.round);
        status =
            dcrf_certificate_encode(&content, &made->certificate, &made->certificate_size, error);
    } else {
        status = dcrf_fail_memory(error, "a certificate");
    }
    dcrf_certificate_clear(&content);
    return status;
}

/* A certificate about fast operators is checked with the matrices that the CPU makes, to the last
 * digits of a double. Those of a device differ from them by rounding: then the certificate is made
 * with operators of the CPU. Exact operators are the formula wherever they are. */
static dcrf_status choose_plan(dcrf_proof *proof, const dcrf_solver *solver, bool is_certificate,
                               dcrf_error *error) {
    const dcrf_plan *plan = solver->problem.plan;
    bool is_elsewhere = false;
    for (size_t m = 0; m < plan->kernel_count; m++)
        is_elsewhere |= plan->kernels[m].op->device != NULL;
    if (!is_certificate || !is_elsewhere || is_exact(plan))
        return DCRF_OK;
    const size_t threads = dcrf_workspace_threads(solver->problem.workspace);
    const dcrf_status status = dcrf_workspace_new(&proof->own_workspace, threads, error);
    return status < 0 ? status
                      : dcrf_plan_new(&proof->own_plan, plan->model, DCRF_OPERATOR_FAST,
                                      proof->own_workspace, error);
}

static dcrf_status prove(struct run *run, dcrf_proof *made, dcrf_error *error) {
    dcrf_status status = dcrf_groups_init(&run->groups, run->known, FIRST_EPSILON, error);
    if (status < 0)
        return status;
    run->groups.is_over = is_over;
    run->groups.is_over_user = run;
    status = exclude_by_gap(run, error);
    made->info.proven_by_gap = run->known->model->variables - run->known->undecided;
    if (status == DCRF_OK)
        status = prove_groups(run, error);
    if (status == DCRF_OK)
        status = conclude(run, &made->info, &made->error_of_energy, error);
    if (status == DCRF_OK && run->settings.certificate)
        status = make_certificate(run, made, error);
    dcrf_groups_clear(&run->groups);
    dcrf_certificate_mixture_clear(&run->kept);
    return status;
}

/* The solver has one labelling, that of the proof: it began with the solver's, which is kept only
 * where it is better by double sums and nothing says that it must not be. */
static void hand_over(const dcrf_proof *proof, bool is_certificate, dcrf_solver *solver) {
    dcrf_energy energy = proof->info.energy;
    energy.pairwise += proof->error_of_energy;
    energy.total += proof->error_of_energy;
    if (is_certificate) /* what it proves is what is said */
        solver->info.lower_bound = (double)NAN;
    if (energy.total <= solver->info.energy.total || is_certificate ||
        proof->info.proven == proof->info.variables)
        dcrf_solver_take_proof(solver, proof->known.labels, &energy, proof->info.lower_bound,
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
    dcrf_status status = check(solver, settings, error);
    if (status < 0)
        return status;
    dcrf_proof *proof = dcrf_allocate_zero(1, sizeof *proof);
    if (!proof)
        return dcrf_fail_memory(error, "a proof");
    proof->labels = solver->problem.model->labels;
    struct run run = {.known = &proof->known,
                      .solver = solver,
                      .lp = solver->state,
                      .settings = *settings,
                      .stop = stop,
                      .excess = (double)INFINITY,
                      .kept_bound = -(double)INFINITY,
                      .began_s = began_s};
    if (stop)
        run.until_s = began_s + SEARCHING_PART * (stop->deadline_s - began_s);
    status = dcrf_method_fetch(solver->method, solver->state, error);
    if (status == DCRF_OK)
        status = dcrf_lp_device_fetch_best(solver->state, error);
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

void dcrf_proof_labels(const dcrf_proof *proof, uint16_t *labels) {
    if (proof && labels)
        memcpy(labels, proof->known.labels, proof->info.variables * sizeof *labels);
}

const uint8_t *dcrf_proof_possible(const dcrf_proof *proof) {
    return proof ? proof->known.possible : NULL;
}

const uint8_t *dcrf_proof_certificate(const dcrf_proof *proof, size_t *size) {
    *size = proof ? proof->certificate_size : 0;
    return proof ? proof->certificate : NULL;
}

void dcrf_proof_counts(const dcrf_proof *proof, uint16_t *counts) {
    const size_t labels = proof ? proof->labels : 0; /* the model may be gone */
    for (size_t a = 0; proof && counts && a < proof->info.variables; a++) {
        counts[a] = 0;
        for (size_t i = 0; i < labels; i++)
            counts[a] = (uint16_t)(counts[a] + proof->known.possible[a * labels + i]);
    }
}
