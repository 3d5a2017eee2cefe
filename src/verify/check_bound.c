/* Energy and bound for the check of a certificate.
 *
 * For weights that sum to at most 1, alpha = sum_k weight_k K_ab F_k(v_ai, v_bi) is antisymmetric
 * and at most K_ab. With v_ai = C_p share_ai / sum_{b in p} share_bi for the cliques (or v = 0, and
 * then without the C_p), every labelling y has, over the undecided variables U,
 *
 *   E(y) >= known + sum_p C_p + sum_{a in U} min_{i possible} r_ai,
 *   r_ai = phi_ai - 2 taken_ai - sum_{b in U} alpha_ab:i - v_ai.
 *
 * The difference between E(x) and this bound is the excess of x: an upper bound on how far x is
 * above the least energy. A labelling with label i at a exceeds the bound by at least
 * r_ai - min_j r_aj; if that is more than the excess, no optimal labelling has the label. Each r is
 * rounded down. */
#include "core/error.h"
#include "verify/check.h"

#include <math.h>
#include <string.h>

#define FEW_ROUNDINGS 0x1p-50

/* ---- the energy ----------------------------------------------------------------------------- */

static bool is_broken(const struct dcrf_cliques *cliques, size_t p, const uint16_t *labels) {
    for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
        if (labels[cliques->members[k]] != labels[cliques->members[cliques->offsets[p]]])
            return true;
    return false;
}

/* The cost of the pairs of variable a, from the sums per label of the others. */
static double pairs_of(const struct dcrf_check *check, size_t a, size_t label) {
    const size_t labels = check->model->labels;
    double sum = 0;
    for (size_t i = 0; i < labels; i++)
        sum += check->distance
                   ? (double)check->distance[label * labels + i] * check->sums[a * labels + i]
               : i != label ? check->sums[a * labels + i]
                            : 0;
    return sum;
}

dcrf_status dcrf_check_energy(struct dcrf_check *check, const uint16_t *labels, double *low,
                              double *high, double *magnitude, dcrf_error *error) {
    const struct dcrf_cliques *cliques = &check->model->cliques;
    const size_t n = check->model->variables;
    struct dcrf_check_total energy = {0}, errors = {0};
    memset(check->counts, 1, n);
    memset(check->wanted, 1, n);
    check->kind = DCRF_CHECK_LABELS;
    check->labels = labels;
    const dcrf_status status = dcrf_check_add_up(check, error);
    for (size_t a = 0; a < n && status == DCRF_OK; a++) {
        dcrf_check_add(&energy, (double)check->model->unary[a * check->model->stride + labels[a]]);
        dcrf_check_add(&energy, pairs_of(check, a, labels[a]));
        dcrf_check_add(&errors, check->sum_error[a]);
    }
    for (size_t p = 0; p < cliques->count; p++)
        dcrf_check_add(&energy, is_broken(cliques, p, labels) ? cliques->costs[p] : 0);
    *magnitude = energy.magnitude;
    *low = dcrf_check_low(&energy) - dcrf_check_high(&errors);
    *high = dcrf_check_high(&energy) + dcrf_check_high(&errors);
    return status;
}

/* ---- the bound ------------------------------------------------------------------------------ */

/* check->sums += v. Rounding can make v slightly infeasible; add_cliques allows for that. */
static void add_shares(struct dcrf_check *check, const uint32_t *shares) {
    const struct dcrf_cliques *cliques = &check->model->cliques;
    const size_t n = check->model->variables, labels = check->model->labels;
    for (size_t p = 0; p < cliques->count; p++)
        for (size_t i = 0; i < labels; i++) {
            const size_t begin = cliques->offsets[p], end = cliques->offsets[p + 1];
            double sum = 0; /* exact: integers */
            for (size_t k = begin; k < end; k++)
                sum += (double)shares[i * n + cliques->members[k]];
            for (size_t k = begin; k < end; k++)
                check->sums[cliques->members[k] * labels + i] +=
                    sum > 0 ? cliques->costs[p] * (double)shares[i * n + cliques->members[k]] / sum
                            : cliques->costs[p] / (double)(end - begin);
        }
}

/* The cliques' part of the excess. With shares, the bound contains all of C_p, up to rounding;
 * without, it contains nothing, and only the cliques matter that x breaks and that may agree. */
static void add_cliques(const struct dcrf_check *check, const uint32_t *shares,
                        struct dcrf_check_total *excess) {
    const struct dcrf_cliques *cliques = &check->model->cliques;
    for (size_t p = 0; p < cliques->count; p++) {
        const double cost = cliques->costs[p];
        const bool breaks = is_broken(cliques, p, check->content->labels);
        bool may_agree = false;
        for (size_t i = 0; i < check->model->labels && !shares && breaks && !may_agree; i++)
            may_agree = dcrf_check_may_agree(check, p, i);
        if (shares ? breaks : may_agree)
            dcrf_check_add(excess, cost);
        if (shares && cliques->offsets[p + 1] > cliques->offsets[p]) {
            dcrf_check_add(excess, -cost);
            dcrf_check_add(excess, cost * FEW_ROUNDINGS *
                                       (double)(4 + cliques->offsets[p + 1] - cliques->offsets[p]));
        }
    }
}

/* A lower bound on r, from the sums that are subtracted. */
static double reduced(const struct dcrf_check *check, size_t a, size_t i) {
    const size_t k = a * check->model->labels + i;
    const double sum = 2 * check->taken[k] + check->sums[k];
    return (double)check->model->unary[a * check->model->stride + i] - sum -
           dcrf_check_error(check, a, i) - FEW_ROUNDINGS * fabs(sum);
}

static double lowest(const struct dcrf_check *check, size_t a) {
    double least = INFINITY;
    for (size_t i = 0; i < check->model->labels; i++)
        if (check->possible[a * check->model->labels + i])
            least = dcrf_check_least(least, reduced(check, a, i));
    return least;
}

/* An upper bound on what x pays at the undecided variables. */
static dcrf_status add_labelling(struct dcrf_check *check, struct dcrf_check_total *excess,
                                 dcrf_error *error) {
    const size_t labels = check->model->labels;
    check->kind = DCRF_CHECK_LABELS;
    check->labels = check->content->labels;
    const dcrf_status status = dcrf_check_add_up(check, error);
    for (size_t a = 0; a < check->model->variables && status == DCRF_OK; a++)
        if (check->wanted[a]) {
            const size_t own = check->content->labels[a];
            dcrf_check_add(excess, (double)check->model->unary[a * check->model->stride + own]);
            dcrf_check_add(excess, -2 * check->taken[a * labels + own]);
            dcrf_check_add(excess, pairs_of(check, a, own));
            dcrf_check_add(excess, check->sum_error[a]);
        }
    return status;
}

/* The weights must not sum to more than 1, and fast operators need nodes. */
static dcrf_status check_mixture(const struct dcrf_check *check,
                                 const struct dcrf_certificate_mixture *mixture,
                                 dcrf_error *error) {
    double sum = 0;
    bool has_nodes = true;
    for (size_t k = 0; k < mixture->point_count; k++) {
        sum += mixture->points[k].weight;
        has_nodes &= mixture->points[k].nodes > 0;
    }
    if (!(sum <= 1))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the certificate does not prove what it claims: the weights of a mixture "
                         "are more than 1");
    if (!has_nodes && check->plan)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the certificate does not prove what it claims: dual points of the fast "
                         "operators have nodes");
    return DCRF_OK;
}

static dcrf_status sum_mixture(struct dcrf_check *check,
                               const struct dcrf_certificate_mixture *mixture, dcrf_error *error) {
    size_t place = 0;
    for (size_t a = 0; a < check->model->variables; a++)
        if (!check->is_decided[a])
            check->place[a] = (uint32_t)place++;
    check->mixture = mixture;
    check->kind = DCRF_CHECK_MIXTURE;
    const dcrf_status status = dcrf_check_add_up(check, error);
    if (status == DCRF_OK && mixture->shares)
        add_shares(check, mixture->shares);
    return status;
}

dcrf_status dcrf_check_mixture(struct dcrf_check *check,
                               const struct dcrf_certificate_mixture *mixture, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    struct dcrf_check_total total = {0};
    TRY(check_mixture(check, mixture, error));
    dcrf_check_fill_undecided(check);
    TRY(add_labelling(check, &total, error));
    TRY(sum_mixture(check, mixture, error));
    add_cliques(check, mixture->shares, &total);
    for (size_t a = 0; a < n; a++)
        if (!check->is_decided[a])
            dcrf_check_add(&total, -lowest(check, a));
    const double excess = dcrf_check_most(0, dcrf_check_high(&total));
    if (!(excess < INFINITY)) /* no information */
        return DCRF_OK;
    check->excess = dcrf_check_least(check->excess, excess);
    for (size_t a = 0; a < n; a++) {
        const double least = lowest(check, a);
        for (size_t i = 0; i < labels && !check->is_decided[a]; i++) {
            const double more = reduced(check, a, i) - least;
            if (more * (1 - FEW_ROUNDINGS) - FEW_ROUNDINGS * fabs(least) > excess)
                check->possible[a * labels + i] = 0;
        }
    }
    return DCRF_OK;
}

/* ---- the conclusion ------------------------------------------------------------------------- */

/* The sum of the lowest unaries, also a lower bound. */
static double find_floor(const dcrf_model *model) {
    struct dcrf_check_total floor = {0};
    for (size_t a = 0; a < model->variables; a++) {
        double least = INFINITY;
        for (size_t i = 0; i < model->labels; i++)
            least = dcrf_check_least(least, (double)model->unary[a * model->stride + i]);
        dcrf_check_add(&floor, least);
    }
    return dcrf_check_low(&floor);
}

/* The number of variables with one possible label; *is_only_one: x has it everywhere. */
static size_t count_proven(const struct dcrf_check *check, bool *is_only_one) {
    const size_t labels = check->model->labels;
    size_t proven = 0;
    *is_only_one = true;
    for (size_t a = 0; a < check->model->variables; a++) {
        size_t count = 0;
        for (size_t i = 0; i < labels; i++)
            count += check->possible[a * labels + i];
        proven += count == 1;
        *is_only_one &= count == 1 && check->possible[a * labels + check->content->labels[a]];
    }
    return proven;
}

/* The claimed energy may be too high by what an operator leaves out, and is not refused within the
 * errors of the sums. */
static bool is_energy(double claimed, double low, double high, double magnitude) {
    return claimed >= low && claimed <= high + 1e-6 * magnitude;
}

dcrf_status dcrf_check_conclude(struct dcrf_check *check, dcrf_verification *made,
                                dcrf_error *error) {
    double low, high, magnitude;
    bool is_only_one;
    TRY(dcrf_check_energy(check, check->content->labels, &low, &high, &magnitude, error));
    made->proven = count_proven(check, &is_only_one);
    const double excess = is_only_one ? 0 : check->excess;
    const double bound =
        dcrf_check_most(low - excess * (1 + FEW_ROUNDINGS), find_floor(check->model));
    if (!is_energy(made->claimed_energy, low, high, magnitude) ||
        !(made->claimed_lower_bound <= bound) || !isfinite(made->claimed_lower_bound) ||
        made->claimed_proven > made->proven)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the certificate claims more than it proves: energy %.10g, bound %.10g, "
                         "%zu variables proven, where %.10g, %.10g and %zu were found",
                         made->claimed_energy, made->claimed_lower_bound, made->claimed_proven,
                         high, bound, made->proven);
    /* The claims hold, so report the same numbers as when the certificate was made. */
    made->energy = made->claimed_energy;
    made->lower_bound = made->claimed_lower_bound;
    made->relative_gap = is_only_one ? 0
                                     : dcrf_relative_gap(made->energy, made->lower_bound,
                                                         dcrf_unary_floor(check->model));
    return DCRF_OK;
}
