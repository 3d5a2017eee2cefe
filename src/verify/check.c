/* Checks a certificate by the rules of docs/reference/certificate.md.
 *
 * Round by round, the variables that the certificate decides must either have one possible label
 * left (after mixtures and dead ends have excluded others) or be a group whose margins are all
 * positive:
 *
 *   r_ai = cost_ai - sum_{b in group} K_ab F(v_ai, v_bi)
 *          - 2 [i != x_a] sum_{b undecided, not in the group, i possible at b} K_ab,
 *   r_ai > r_a(x_a) for every possible i != x_a,
 *
 * with values that keep F at 1 between v_a(x_b) and v_b(x_b) wherever x_a != x_b. Then they are
 * decided, and 2 K_ab is subtracted from cost_a(x_b) for all others. The problem left at the end
 * has the bound of the best mixture (check_bound.c). This code shares only the layout of a
 * certificate with the solvers and the proofs.
 *
 * Every number compared is a unary minus sums of K_ab times 0 to 2, with each b in one of them: it
 * is rounded twice relative to the unary, and the error of the sums is at most sum_error. The terms
 * of decided variables are kept as a separate sum of positive numbers, so that a unary is not
 * rounded again in every round. */
#include "verify/check.h"

#include "core/error.h"
#include "core/timer.h"

#include <math.h>
#include <string.h>

#define VALUES (DCRF_VALUE_MOST + 1)
/* Bound on a few rounding errors in double, relative. */
#define FEW_ROUNDINGS 0x1p-50

/* ---- numbers -------------------------------------------------------------------------------- */

void dcrf_check_add(struct dcrf_check_total *total, double value) {
    const double sum = total->sum + value;
    total->rest +=
        fabs(total->sum) >= fabs(value) ? (total->sum - sum) + value : (value - sum) + total->sum;
    total->sum = sum;
    total->magnitude += fabs(value);
}

/* The error is below 2^-53 of the sum plus n^2 2^-106 of the magnitudes. */
double dcrf_check_low(const struct dcrf_check_total *total) {
    return total->sum + total->rest - FEW_ROUNDINGS * (fabs(total->sum) + 1e-8 * total->magnitude);
}

double dcrf_check_high(const struct dcrf_check_total *total) {
    return total->sum + total->rest + FEW_ROUNDINGS * (fabs(total->sum) + 1e-8 * total->magnitude);
}

static double unary(const struct dcrf_check *check, size_t a, size_t label) {
    return (double)check->model->unary[a * check->model->stride + label];
}

double dcrf_check_error(const struct dcrf_check *check, size_t a, size_t label) {
    return FEW_ROUNDINGS * fabs(unary(check, a, label)) + check->sum_error[a];
}

static double cost(const struct dcrf_check *check, size_t a, size_t label) {
    return unary(check, a, label) - 2 * check->taken[a * check->model->labels + label];
}

/* ---- dead ends ------------------------------------------------------------------------------ */

bool dcrf_check_may_agree(const struct dcrf_check *check, size_t p, size_t label) {
    const struct dcrf_cliques *cliques = &check->model->cliques;
    for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
        if (!check->possible[cliques->members[k] * check->model->labels + label])
            return false;
    return true;
}

void dcrf_check_fill_undecided(struct dcrf_check *check) {
    for (size_t a = 0; a < check->model->variables; a++)
        check->counts[a] = check->wanted[a] = !check->is_decided[a];
}

/* check->sums becomes an upper bound on what giving up a label can cost a variable. */
static void add_cliques(struct dcrf_check *check) {
    const struct dcrf_cliques *cliques = &check->model->cliques;
    const size_t labels = check->model->labels;
    for (size_t k = 0; k < check->model->variables * labels; k++)
        check->sums[k] *= 2;
    for (size_t p = 0; p < cliques->count; p++)
        for (size_t i = 0; i < labels; i++)
            if (dcrf_check_may_agree(check, p, i))
                for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
                    check->sums[cliques->members[k] * labels + i] +=
                        cliques->costs[p] * (1 + FEW_ROUNDINGS);
}

/* *excluded: the number of labels excluded. */
static dcrf_status eliminate(struct dcrf_check *check, size_t *excluded, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    *excluded = 0;
    dcrf_check_fill_undecided(check);
    check->kind = DCRF_CHECK_POSSIBLE;
    TRY(dcrf_check_add_up(check, error));
    add_cliques(check);
    for (size_t a = 0; a < n; a++) {
        double lowest = INFINITY;
        for (size_t i = 0; i < labels; i++)
            lowest = dcrf_check_least(lowest, cost(check, a, i) + dcrf_check_error(check, a, i));
        for (size_t i = 0; i < labels && !check->is_decided[a]; i++)
            if (check->possible[a * labels + i] &&
                cost(check, a, i) - dcrf_check_error(check, a, i) - lowest >
                    check->sums[a * labels + i] * (1 + FEW_ROUNDINGS) + check->sum_error[a]) {
                check->possible[a * labels + i] = 0;
                ++*excluded;
            }
    }
    return DCRF_OK;
}

/* ---- groups --------------------------------------------------------------------------------- */

/* F of two values: the clipped line at the nodes, linear in between. */
static void fill_line(struct dcrf_check *check, double epsilon) {
    for (size_t v = 0; v < VALUES; v++)
        for (size_t w = 0; w < VALUES; w++) {
            const size_t h = v / DCRF_VALUE_STEPS, k = w / DCRF_VALUE_STEPS;
            double sum = 0;
            for (size_t node = h; node <= h + 1; node++)
                for (size_t other = k; other <= k + 1; other++) {
                    const double line =
                        ((double)other - (double)node) / ((DCRF_VALUE_NODES - 1) * epsilon);
                    sum += dcrf_check_share(v, node) * dcrf_check_share(w, other) *
                           dcrf_check_most(-1, dcrf_check_least(1, line));
                }
            check->line[v * VALUES + w] = sum;
        }
}

/* Pairs of members with different labels must have no slack. */
static bool are_told_apart(const struct dcrf_check *check) {
    size_t smallest_own = DCRF_VALUE_MOST, largest_other = 0;
    for (size_t a = 0; a < check->model->variables; a++)
        for (size_t i = 0; i < check->model->labels && check->member[a]; i++) {
            const size_t value = dcrf_certificate_value(check->content, a, i);
            if (i == check->content->labels[a])
                smallest_own = value < smallest_own ? value : smallest_own;
            else
                largest_other = value > largest_other ? value : largest_other;
        }
    return check->line[largest_other * VALUES + smallest_own] >= 1;
}

/* check->sums becomes the reduced costs r of the members. */
static dcrf_status reduce(struct dcrf_check *check, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    dcrf_check_fill_undecided(check);
    memcpy(check->wanted, check->member, n);
    check->kind = DCRF_CHECK_GROUP;
    check->labels = check->content->labels;
    const dcrf_status status = dcrf_check_add_up(check, error);
    for (size_t k = 0; k < n * labels && status == DCRF_OK; k++)
        check->sums[k] = unary(check, k / labels, k % labels) -
                         (2 * check->taken[k] + (check->wanted[k / labels] ? check->sums[k] : 0));
    return status;
}

static double margin(const struct dcrf_check *check, size_t a, size_t label) {
    const double *reduced = check->sums + a * check->model->labels;
    const size_t own = check->content->labels[a];
    return reduced[label] - dcrf_check_error(check, a, label) -
           (reduced[own] + dcrf_check_error(check, a, own));
}

static double smallest_margin(const struct dcrf_check *check, size_t a) {
    double smallest = INFINITY;
    for (size_t i = 0; i < check->model->labels; i++)
        if (i != check->content->labels[a] && check->possible[a * check->model->labels + i])
            smallest = dcrf_check_least(smallest, margin(check, a, i));
    return smallest;
}

/* A clique that the group keeps unanimous gives its cost to its members, smallest margins first;
 * one that could agree on another label takes its cost from the members that would have to
 * change. */
static bool pay_clique(struct dcrf_check *check, size_t p) {
    const struct dcrf_cliques *cliques = &check->model->cliques;
    const size_t begin = cliques->offsets[p], end = cliques->offsets[p + 1];
    const size_t labels = check->model->labels;
    const uint16_t *x = check->content->labels;
    const double cost = cliques->costs[p];
    bool is_whole = true;
    double low = INFINITY, high = 0;
    for (size_t k = begin; k < end; k++) {
        const size_t a = cliques->members[k];
        is_whole &=
            (check->is_decided[a] || check->member[a]) && x[a] == x[cliques->members[begin]];
        if (check->member[a] && isfinite(smallest_margin(check, a))) {
            low = dcrf_check_least(low, smallest_margin(check, a));
            high = dcrf_check_most(high, smallest_margin(check, a));
        }
    }
    for (int halving = 0; halving < 60 && is_whole && isfinite(low); halving++) {
        const double level = halving == 0 ? high + cost : low + (high - low) / 2;
        double used = 0;
        if (halving == 0) {
            high = level;
            continue;
        }
        for (size_t k = begin; k < end; k++)
            if (check->member[cliques->members[k]])
                used += dcrf_check_most(0, level - smallest_margin(check, cliques->members[k]));
        *(used <= cost * (1 - 1e-12) ? &low : &high) = level;
    }
    for (size_t k = begin; k < end && is_whole && isfinite(low); k++) {
        const size_t a = cliques->members[k];
        if (check->member[a])
            check->sums[a * labels + x[a]] -= dcrf_check_most(0, low - smallest_margin(check, a));
    }
    for (size_t i = 0; i < labels; i++) {
        double sum = 0;
        size_t payers = 0;
        if (!dcrf_check_may_agree(check, p, i))
            continue;
        for (size_t k = begin; k < end; k++) {
            const size_t a = cliques->members[k];
            payers += check->member[a] && x[a] != i;
            sum += check->member[a] && x[a] != i ? dcrf_check_most(0, margin(check, a, i)) : 0;
        }
        if (payers > 0 && !(sum > cost * (1 + 1e-12)))
            return false;
        for (size_t k = begin; k < end; k++) {
            const size_t a = cliques->members[k];
            if (check->member[a] && x[a] != i)
                check->sums[a * labels + i] -=
                    cost * (1 + 1e-12) / sum * dcrf_check_most(0, margin(check, a, i));
        }
    }
    return true;
}

static bool have_margins(struct dcrf_check *check) {
    const struct dcrf_cliques *cliques = &check->model->cliques;
    for (size_t p = 0; p < cliques->count; p++)
        if (cliques->costs[p] > 0 && cliques->offsets[p + 1] - cliques->offsets[p] > 1 &&
            !pay_clique(check, p))
            return false;
    for (size_t a = 0; a < check->model->variables; a++)
        if (check->member[a] && !(smallest_margin(check, a) > 0))
            return false;
    return true;
}

/* Limit on the attempts to exclude more labels: each costs a pass, and few succeed. */
#define MOST_ELIMINATIONS 16

/* ---- rounds --------------------------------------------------------------------------------- */

static bool is_single(const struct dcrf_check *check, size_t a) {
    size_t count = 0;
    for (size_t i = 0; i < check->model->labels; i++)
        count += check->possible[a * check->model->labels + i];
    return count == 1 && check->possible[a * check->model->labels + check->content->labels[a]];
}

/* Does the round hold with what is known so far? */
static dcrf_status try_round(struct dcrf_check *check, size_t round, bool *holds,
                             dcrf_error *error) {
    bool is_easy = true;
    for (size_t a = 0; a < check->model->variables; a++) {
        check->member[a] = check->content->round[a] == round;
        is_easy &= !check->member[a] || is_single(check, a);
        *holds = !check->member[a] ||
                 check->possible[a * check->model->labels + check->content->labels[a]];
        if (!*holds)
            return DCRF_OK;
    }
    *holds = is_easy;
    if (is_easy)
        return DCRF_OK;
    fill_line(check, check->content->epsilon[round - 1]);
    if (!are_told_apart(check))
        return DCRF_OK;
    const dcrf_status status = reduce(check, error);
    *holds = status == DCRF_OK && have_margins(check);
    return status;
}

/* Mark the variables of a round as decided. */
static dcrf_status decide(struct dcrf_check *check, size_t round, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    for (size_t a = 0; a < n; a++)
        if (check->content->round[a] == round) {
            check->is_decided[a] = 1;
            memset(check->possible + a * labels, 0, labels);
            check->possible[a * labels + check->content->labels[a]] = 1;
        }
    for (size_t a = 0; a < n; a++) {
        check->counts[a] = check->content->round[a] == round;
        check->wanted[a] = !check->is_decided[a];
    }
    check->kind = DCRF_CHECK_LABELS;
    check->labels = check->content->labels;
    const dcrf_status status = dcrf_check_add_up(check, error);
    for (size_t k = 0; k < n * labels && status == DCRF_OK; k++)
        check->taken[k] += check->wanted[k / labels] ? check->sums[k] : 0;
    return status;
}

/* A proof excludes labels between its rounds as long as that makes progress. The check does so only
 * where a round does not hold otherwise. */
static dcrf_status check_round(struct dcrf_check *check, size_t round, dcrf_error *error) {
    bool holds = false;
    size_t excluded = 1;
    dcrf_status status = try_round(check, round, &holds, error);
    for (int k = 0; k < MOST_ELIMINATIONS && status == DCRF_OK && !holds && excluded > 0; k++) {
        status = eliminate(check, &excluded, error);
        if (status == DCRF_OK && excluded > 0)
            status = try_round(check, round, &holds, error);
    }
    if (status == DCRF_OK && !holds)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the certificate does not prove what it claims: the variables of round "
                         "%zu lack a margin",
                         round);
    return status < 0 ? status : decide(check, round, error);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static dcrf_status eliminate_rest(struct dcrf_check *check, dcrf_error *error) {
    size_t excluded = 1, undecided = 0;
    dcrf_status status = DCRF_OK;
    if (check->distance) /* dead-end elimination requires Potts */
        return DCRF_OK;
    for (size_t a = 0; a < check->model->variables; a++)
        undecided += !check->is_decided[a];
    for (int k = 0; k < MOST_ELIMINATIONS && undecided > 0 && excluded > 0 && status == DCRF_OK;
         k++)
        status = eliminate(check, &excluded, error);
    return status;
}

static dcrf_status compare_labels(struct dcrf_check *check, const uint16_t *labels,
                                  dcrf_verification *made, dcrf_error *error) {
    const dcrf_model *model = check->model;
    for (size_t a = 0; a < model->variables; a++) {
        if (labels[a] >= model->labels)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the label of variable %zu is %u; there are %zu labels", a,
                             (unsigned)labels[a], model->labels);
        const bool is_possible = check->possible[a * model->labels + labels[a]];
        size_t count = 0;
        for (size_t i = 0; i < model->labels; i++)
            count += check->possible[a * model->labels + i];
        made->wrong += !is_possible;
        made->right += is_possible && count == 1;
    }
    double low, magnitude;
    if (memcmp(labels, check->content->labels, model->variables * sizeof *labels) == 0) {
        made->labels_energy = made->energy;
        made->labels_gap = made->relative_gap;
        return DCRF_OK;
    }
    const dcrf_status status =
        dcrf_check_energy(check, labels, &low, &made->labels_energy, &magnitude, error);
    made->labels_gap =
        dcrf_relative_gap(made->labels_energy, made->lower_bound, dcrf_unary_floor(model));
    return status;
}

static dcrf_status allocate(struct dcrf_check *check, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    check->sum_error = dcrf_own_zero(&check->owned, n, sizeof *check->sum_error);
    check->possible = dcrf_own(&check->owned, n, labels);
    check->is_decided = dcrf_own_zero(&check->owned, n, 1);
    check->taken = dcrf_own_zero(&check->owned, n, labels * sizeof *check->taken);
    check->sums = dcrf_own_zero(&check->owned, n, labels * sizeof *check->sums);
    check->counts = dcrf_own(&check->owned, n, 1);
    check->wanted = dcrf_own(&check->owned, n, 1);
    check->member = dcrf_own(&check->owned, n, 1);
    check->place = dcrf_own(&check->owned, n, sizeof *check->place);
    check->line = dcrf_own(&check->owned, VALUES, VALUES * sizeof *check->line);
    if (check->owned.is_short)
        return dcrf_fail_memory(error, "the check of a certificate");
    memset(check->possible, 1, n * labels);
    check->excess = (double)INFINITY;
    return DCRF_OK;
}

static dcrf_status run(struct dcrf_check *check, const uint16_t *labels, dcrf_verification *made,
                       dcrf_error *error) {
    const struct dcrf_certificate_content *content = check->content;
    size_t next = 0; /* index of the next mixture */
    TRY(allocate(check, error));
    TRY(dcrf_check_kernels_init(check, error));
    for (size_t r = 0; r <= content->rounds; r++) {
        if (r > 0)
            TRY(check_round(check, r, error));
        if (r == content->rounds)
            TRY(eliminate_rest(check, error));
        for (; next < content->mixture_count && content->mixtures[next].after == r; next++)
            TRY(dcrf_check_mixture(check, &content->mixtures[next], error));
    }
    TRY(dcrf_check_conclude(check, made, error));
    return labels ? compare_labels(check, labels, made, error) : DCRF_OK;
}

static void clear(struct dcrf_check *check) {
    dcrf_check_kernels_clear(check);
    dcrf_disown(&check->owned);
}

static dcrf_status run_first(struct dcrf_check *check, dcrf_error *error) {
    TRY(dcrf_check_cuts(check, error));
    TRY(allocate(check, error));
    TRY(dcrf_check_kernels_init(check, error));
    return dcrf_check_mixture(check, &check->content->mixtures[0], error);
}

dcrf_status dcrf_check_first(const struct dcrf_certificate_content *content,
                             const dcrf_model *model, const dcrf_plan *plan,
                             dcrf_workspace *workspace, double *excess, uint8_t *possible,
                             dcrf_error *error) {
    struct dcrf_check check = {
        .model = model, .content = content, .workspace = workspace, .plan = plan};
    const dcrf_status status = run_first(&check, error);
    if (status == DCRF_OK) {
        *excess = check.excess;
        memcpy(possible, check.possible, model->variables * model->labels);
    }
    clear(&check);
    return status;
}

/* Compares the matrices of the fast operators too, which have to be built for that. */
static dcrf_status compare_models(struct dcrf_check *check, dcrf_error *error) {
    const struct dcrf_identity *claimed = &check->content->identity;
    DCRF_AT_END(dcrf_identity_clear) struct dcrf_identity identity = {0};
    TRY(dcrf_identity_of_model(&identity, check->model, claimed->is_exact, check->workspace,
                               error));
    for (size_t m = 0; m < claimed->kernel_count && m < identity.kernel_count; m++)
        memcpy(identity.kernels[m].matrix, claimed->kernels[m].matrix, DCRF_SHA256_BYTES);
    TRY(dcrf_identity_compare(claimed, &identity, error));
    for (size_t m = 0; m < identity.kernel_count; m++)
        memset(identity.kernels[m].matrix, 0, DCRF_SHA256_BYTES);
    if (!claimed->is_exact) {
        TRY(dcrf_plan_new(&check->own_plan, check->model, DCRF_OPERATOR_FAST, check->workspace,
                          error));
        check->plan = check->own_plan;
        TRY(dcrf_identity_take_matrices(&identity, check->plan, check->workspace, error));
    }
    return dcrf_identity_compare(claimed, &identity, error);
}

static dcrf_status verify_on_cpu(const uint8_t *bytes, size_t size, const dcrf_model *model,
                                 dcrf_workspace *workspace, const uint16_t *labels,
                                 uint8_t *possible, dcrf_verification *verification,
                                 dcrf_error *error) {
    const double began_s = dcrf_time_s();
    DCRF_AT_END(dcrf_certificate_clear) struct dcrf_certificate_content content;
    TRY(dcrf_certificate_decode(&content, model->variables, model->labels, bytes, size, workspace,
                                error));
    DCRF_AT_END(clear)
    struct dcrf_check check = {.model = model, .content = &content, .workspace = workspace};
    dcrf_verification made = {.is_exact = content.identity.is_exact,
                              .variables = model->variables,
                              .claimed_energy = content.energy,
                              .claimed_lower_bound = content.lower_bound,
                              .claimed_proven = content.proven,
                              .labels_energy = (double)NAN,
                              .labels_gap = (double)NAN};
    TRY(dcrf_check_cuts(&check, error));
    TRY(compare_models(&check, error));
    TRY(run(&check, labels, &made, error));
    if (possible)
        memcpy(possible, check.possible, model->variables * model->labels);
    made.time_s = dcrf_time_s() - began_s;
    *verification = made;
    return DCRF_OK;
}

dcrf_status dcrf_verify_certificate(const uint8_t *bytes, size_t size, const dcrf_model *model,
                                    dcrf_workspace *workspace, const uint16_t *labels,
                                    uint8_t *possible, size_t count,
                                    dcrf_verification *verification, dcrf_error *error) {
    if (!bytes || !model || !workspace || !verification)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "checking a certificate needs its bytes, a model and a workspace");
    if (possible)
        TRY(dcrf_check_rows(possible, count, model->variables, model->labels, model->labels,
                            "the possible labels", error));
    DCRF_ENTER(workspace, error);
    if (!dcrf_workspace_source(workspace))
        return verify_on_cpu(bytes, size, model, workspace, labels, possible, verification, error);
    /* Results found on a device are checked on the CPU. */
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *own = NULL;
    TRY(dcrf_workspace_new(&own, dcrf_workspace_threads(workspace), error));
    return verify_on_cpu(bytes, size, model, own, labels, possible, verification, error);
}
