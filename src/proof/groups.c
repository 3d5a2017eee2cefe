/* Proofs for groups of variables: a dual point that proves a whole group without any gap.
 *
 * Let x be a labelling and A a group of undecided variables. Let p(y) be y with x on A. If
 * E(y) > E(p(y)) for every y that differs from x on A, then every optimal labelling equals x there
 * (an improving mapping: Shekhovtsov, "Maximum persistency in energy minimization", CVPR 2014;
 * Swoboda et al., "Partial optimality by pruning for MAP-inference with general graphical models",
 * CVPR 2014). For every y, alpha_ab:i = K_ab clip((y_bi - y_ai) / epsilon) is
 * antisymmetric and at most K_ab, and
 *
 *   2 K_ab [i != j] + alpha_ab:i - alpha_ab:j >= 0,
 *                                              = 0 where i = j,
 *                                              = 0 at (x_a, x_b) where y tells the two apart.
 *
 * To ensure the latter, y_a(x_a) is kept at or above a half plus epsilon / 2, and the others as far
 * below. So inside A the pairs of x have no slack, and in the worst case for the b outside A,
 *
 *   E(y) - E(p(y)) >= sum_{a in A, y_a != x_a} margin_a(y_a),
 *   margin_ai = r_ai - r_a(x_a),
 *   r_ai = cost_ai - sum_{b in A} alpha_ab:i
 *          - [i != x_a] sum_{b undecided, not in A, i possible} 2 K_ab.
 *
 * The group is proven if all margins are positive. Removing a variable lowers the margins of the
 * others, so repeatedly removing the variables without positive margins leaves the largest group.
 * No global bound or energy is involved: every margin is tested on its own, so only local rounding
 * errors matter. */
#include "proof/groups.h"

#include "backend/simplex.h"
#include "core/error.h"
#include "dsp/dsp.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define GRAIN 1024
#define LAST_NODE (DCRF_VALUE_NODES - 1)
enum { MAY = DCRF_VALUE_NODES, OUT, NODES };

dcrf_status dcrf_groups_init(struct dcrf_groups *groups, struct dcrf_knowledge *known,
                             double epsilon, dcrf_error *error) {
    const size_t n = known->model->variables, labels = known->model->labels;
    *groups = (struct dcrf_groups){.known = known, .epsilon = epsilon};
    groups->y = dcrf_own(&groups->owned, n, labels * sizeof *groups->y);
    groups->value = dcrf_own_zero(&groups->owned, n, labels);
    groups->member = dcrf_own(&groups->owned, n, 1);
    groups->reduced = dcrf_own(&groups->owned, n, labels * sizeof *groups->reduced);
    groups->pairs = dcrf_own(&groups->owned, n, sizeof *groups->pairs);
    if (!groups->owned.is_short)
        return DCRF_OK;
    dcrf_groups_clear(groups);
    return dcrf_fail_memory(error, "a proof for groups of variables");
}

void dcrf_groups_clear(struct dcrf_groups *groups) {
    dcrf_disown(&groups->owned);
    *groups = (struct dcrf_groups){0};
}

/* ---- the dual point ------------------------------------------------------------------------- */

/* The two nodes around the middle that are at least epsilon apart. */
static size_t low_node(const struct dcrf_groups *groups, size_t *high) {
    const double wanted = ceil(groups->epsilon * LAST_NODE - 1e-9);
    const size_t span = wanted < 1 ? 1 : wanted > LAST_NODE ? LAST_NODE : (size_t)wanted;
    const size_t low = (LAST_NODE - span) / 2;
    *high = low + span;
    return low;
}

/* The clipped line between the nodes of values; column MAY is what members see of variables outside
 * the group that may have the label. */
static void fill_table(const struct dcrf_groups *groups, float *table) {
    size_t high;
    const size_t low = low_node(groups, &high), row = dcrf_bin_row(NODES);
    memset(table, 0, NODES * row * sizeof *table);
    for (size_t h = 0; h < DCRF_VALUE_NODES; h++) {
        for (size_t k = 0; k < DCRF_VALUE_NODES; k++) {
            const double line = ((double)k - (double)h) / (LAST_NODE * groups->epsilon);
            table[h * row + k] = (float)fmax(-1, fmin(1, line));
        }
        table[h * row + MAY] = h <= low ? 2 : 0;
        table[MAY * row + h] =
            -table[h * row + MAY]; /* never read; the filter requires an antisymmetric table */
    }
}

static void take_values(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct dcrf_groups *groups = context;
    const size_t labels = groups->known->model->labels;
    size_t high;
    const size_t low = low_node(groups, &high);
    for (size_t a = begin; a < end; a++)
        /* Decided variables keep the values that decided them. */
        for (size_t i = 0; i < labels && groups->known->round[a] == 0; i++) {
            const double steps = rint((double)groups->y[a * labels + i] * DCRF_VALUE_MOST);
            size_t value = steps > 0 ? (size_t)steps : 0; /* a NaN gives 0 */
            value = value < DCRF_VALUE_MOST ? value : DCRF_VALUE_MOST;
            if (groups->is_free)
                ;
            else if (groups->known->labels[a] == i)
                value = value > high * DCRF_VALUE_STEPS ? value : high * DCRF_VALUE_STEPS;
            else
                value = value < low * DCRF_VALUE_STEPS ? value : low * DCRF_VALUE_STEPS;
            groups->value[a * labels + i] = (uint8_t)value;
        }
}

/* The cost of a sweep over the members, relative to one over all variables. */
static double share_of_rest(const struct dcrf_knowledge *known) {
    return (double)known->member_count / (double)known->model->variables;
}

/* ---- margins -------------------------------------------------------------------------------- */

struct channel {
    const struct dcrf_groups *groups;
    size_t label;
};

/* Set the nodes of one label; returns how many variables contribute to the sums of others. */
static double place(void *context, size_t begin, size_t end) {
    const struct channel *c = context;
    const struct dcrf_groups *groups = c->groups;
    struct dcrf_knowledge *known = groups->known;
    const size_t labels = known->model->labels;
    size_t seen = 0;
    for (size_t a = begin; a < end; a++) {
        known->bin[a] = OUT;
        known->fraction[a] = 0;
        if (known->round[a] != 0)
            continue;
        if (groups->member[a]) {
            const uint8_t value = groups->value[a * labels + c->label];
            known->bin[a] = value / DCRF_VALUE_STEPS;
            known->fraction[a] = (float)(value % DCRF_VALUE_STEPS) / DCRF_VALUE_STEPS;
            seen += value > 0;
        } else if (known->possible[a * labels + c->label]) {
            known->bin[a] = MAY;
            seen++;
        }
    }
    return (double)seen;
}

static void reduce(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct channel *c = context;
    const size_t labels = c->groups->known->model->labels;
    for (size_t a = begin; a < end; a++)
        c->groups->reduced[a * labels + c->label] =
            c->groups->known->cost[a * labels + c->label] - c->groups->known->sum[a];
}

/* The reduced costs of the current group. */
static dcrf_status reduce_all(struct dcrf_groups *groups, dcrf_error *error) {
    struct dcrf_knowledge *known = groups->known;
    dcrf_pool *pool = dcrf_workspace_pool(known->workspace);
    const size_t n = known->model->variables;
    fill_table(groups, known->table);
    for (size_t i = 0; i < known->model->labels; i++) {
        struct channel channel = {groups, i};
        if (dcrf_parallel_sum(pool, n, place, &channel) > 0) {
            TRY(dcrf_knowledge_sum(known, NODES, known->table, error));
        } else {
            memset(known->sum, 0, n * sizeof *known->sum);
        }
        dcrf_parallel_for(pool, n, GRAIN, reduce, &channel);
    }
    groups->sweeps += share_of_rest(known);
    return DCRF_OK;
}

/* Remove the members without a positive margin. */
static double put_out(void *context, size_t begin, size_t end) {
    struct dcrf_groups *groups = context;
    const struct dcrf_knowledge *known = groups->known;
    const size_t labels = known->model->labels;
    size_t count = 0;
    for (size_t a = begin; a < end; a++) {
        if (!groups->member[a])
            continue;
        const double *reduced = groups->reduced + a * labels;
        const double own = reduced[known->labels[a]] + known->error[a];
        for (size_t i = 0; i < labels; i++)
            if (i != known->labels[a] && known->possible[a * labels + i] && !(reduced[i] > own)) {
                groups->member[a] = 0;
                count++;
                break;
            }
    }
    return (double)count;
}

static bool is_over(const struct dcrf_groups *groups) {
    return groups->is_over && groups->is_over(groups->is_over_user);
}

dcrf_status dcrf_groups_decide(struct dcrf_groups *groups, dcrf_error *error) {
    struct dcrf_knowledge *known = groups->known;
    dcrf_pool *pool = dcrf_workspace_pool(known->workspace);
    const size_t n = known->model->variables;
    double out = 1;
    dcrf_parallel_for(pool, n, GRAIN, take_values, groups);
    for (size_t a = 0; a < n; a++)
        groups->member[a] = known->round[a] == 0;
    while (out > 0) {
        if (is_over(groups))
            return DCRF_OK;
        TRY(reduce_all(groups, error));
        out = (double)dcrf_groups_pay_cliques(groups);
        out += dcrf_parallel_sum(pool, n, put_out, groups);
    }
    return dcrf_knowledge_decide(known, groups->member, error);
}

/* ---- relaxing what is undecided ------------------------------------------------------------- */

/* Set the nodes of one label; returns how many undecided variables may have it. */
static double place_all(void *context, size_t begin, size_t end) {
    const struct channel *c = context;
    struct dcrf_knowledge *known = c->groups->known;
    const size_t labels = known->model->labels;
    size_t possible = 0;
    for (size_t a = begin; a < end; a++) {
        const float at = c->groups->y[a * labels + c->label] * (float)LAST_NODE;
        const float node = at < 0 ? 0 : at > LAST_NODE - 1 ? LAST_NODE - 1 : floorf(at);
        const bool counts = known->round[a] == 0;
        known->bin[a] = counts ? (uint8_t)node : OUT;
        known->fraction[a] = counts ? fminf(fmaxf(at - node, 0), 1) : 0;
        possible += counts && known->possible[a * labels + c->label];
    }
    return (double)possible;
}

/* y = P(y - tau r) over the possible labels; tau = epsilon / (sum over the undecided of K_ab). */
static void descend(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_groups *groups = context;
    const struct dcrf_knowledge *known = groups->known;
    const size_t labels = known->model->labels;
    const double epsilon = fmax(groups->epsilon, 1.0 / LAST_NODE);
    for (size_t a = begin; a < end; a++) {
        if (known->round[a] != 0)
            continue;
        float *y = groups->y + a * labels;
        const double *reduced = groups->reduced + a * labels;
        const double tau = epsilon / fmax(known->indicated[a], 1e-3 * known->row_sums[a] + 1e-30);
        double lowest = INFINITY;
        groups->reduced[a * labels + known->labels[a]] += groups->handicap;
        for (size_t i = 0; i < labels; i++)
            lowest = known->possible[a * labels + i] ? fmin(lowest, reduced[i]) : lowest;
        for (size_t i = 0; i < labels; i++)
            y[i] = known->possible[a * labels + i]
                       ? (float)fmax(y[i] - tau * (reduced[i] - lowest), -1e3)
                       : -1e6f;
        dcrf_simplex_project(y, labels);
    }
}

dcrf_status dcrf_groups_relax(struct dcrf_groups *groups, size_t steps, double handicap,
                              dcrf_error *error) {
    struct dcrf_knowledge *known = groups->known;
    dcrf_pool *pool = dcrf_workspace_pool(known->workspace);
    const size_t n = known->model->variables;
    groups->handicap = handicap;
    dcrf_status status = dcrf_knowledge_sum_undecided(known, error);
    for (size_t step = 0; step < steps && status == DCRF_OK && !is_over(groups); step++) {
        fill_table(groups, known->table);
        for (size_t i = 0; i < known->model->labels; i++) {
            struct channel channel = {groups, i};
            /* A label that is possible nowhere has y = 0, and its reduced costs are not used. */
            if (dcrf_parallel_sum(pool, n, place_all, &channel) == 0)
                continue;
            TRY(dcrf_knowledge_sum(known, NODES, known->table, error));
            dcrf_parallel_for(pool, n, GRAIN, reduce, &channel);
        }
        groups->sweeps += share_of_rest(known);
        dcrf_parallel_for(pool, n, GRAIN, descend, groups);
    }
    return status;
}

/* ---- what is left --------------------------------------------------------------------------- */

/* For any values, sum_a min_i r_ai is a lower bound on the energy of the undecided variables, so x
 * is at most sum_a (cost_a(x_a) + sum_b K_ab [x_a != x_b] - min_i r_ai) above the optimum.
 * known->sum holds the pairs of x. */
static double sum_excess(void *context, size_t begin, size_t end) {
    const struct dcrf_groups *groups = context;
    const struct dcrf_knowledge *known = groups->known;
    const size_t labels = known->model->labels;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        if (known->round[a] != 0)
            continue;
        const double *reduced = groups->reduced + a * labels;
        double lowest = INFINITY;
        for (size_t i = 0; i < labels; i++)
            if (known->possible[a * labels + i])
                lowest = fmin(lowest, reduced[i]);
        sum +=
            known->cost[a * labels + known->labels[a]] + known->sum[a] - lowest + known->error[a];
    }
    return sum;
}

/* A clique that x breaks may be unanimous in the optimum. */
static double sum_broken(const struct dcrf_knowledge *known) {
    const struct dcrf_cliques *cliques = &known->model->cliques;
    double sum = 0;
    for (size_t p = 0; p < cliques->count; p++) {
        const uint32_t *members = cliques->members + cliques->offsets[p];
        const size_t size = cliques->offsets[p + 1] - cliques->offsets[p];
        bool is_broken = false, may_agree = false;
        for (size_t k = 1; k < size; k++)
            is_broken |= known->labels[members[k]] != known->labels[members[0]];
        for (size_t i = 0; is_broken && i < known->model->labels; i++)
            may_agree |= dcrf_knowledge_may_agree(known, p, i);
        sum += may_agree ? cliques->costs[p] : 0;
    }
    return sum;
}

/* known->sum[a] = sum_{b undecided} K_ab [x_a != x_b] for undecided a. */
static dcrf_status sum_pairs(struct dcrf_groups *groups, dcrf_error *error) {
    struct dcrf_knowledge *known = groups->known;
    const size_t n = known->model->variables, labels = known->model->labels;
    /* At node 0, the sum counts the variables with the label, at node 1. */
    float table[3 * DCRF_LANES] = {0, 1};
    table[DCRF_LANES] = -1;
    double *pairs = groups->pairs;
    memset(pairs, 0, n * sizeof *pairs);
    memset(known->fraction, 0, n * sizeof *known->fraction);
    for (size_t i = 0; i < labels; i++) {
        size_t count = 0;
        for (size_t a = 0; a < n; a++) {
            known->bin[a] = known->round[a] != 0 ? 2 : known->labels[a] == i;
            count += known->bin[a] == 1;
        }
        if (count == 0)
            continue;
        TRY(dcrf_knowledge_sum(known, 3, table, error));
        for (size_t a = 0; a < n; a++)
            pairs[a] += known->bin[a] == 0 ? known->sum[a] : 0;
    }
    memcpy(known->sum, pairs, n * sizeof *pairs);
    return DCRF_OK;
}

/* A label whose reduced cost exceeds the smallest by more than the excess is in no optimal
 * labelling. */
static void exclude(struct dcrf_groups *groups, double excess) {
    struct dcrf_knowledge *known = groups->known;
    const size_t labels = known->model->labels;
    for (size_t a = 0; a < known->model->variables; a++) {
        const double *reduced = groups->reduced + a * labels;
        double lowest = INFINITY;
        if (known->round[a] != 0)
            continue;
        for (size_t i = 0; i < labels; i++)
            if (known->possible[a * labels + i])
                lowest = fmin(lowest, reduced[i]);
        for (size_t i = 0; i < labels; i++)
            if (reduced[i] - lowest > excess + known->error[a])
                known->possible[a * labels + i] = 0;
    }
}

dcrf_status dcrf_groups_excess(struct dcrf_groups *groups, double *excess, dcrf_error *error) {
    struct dcrf_knowledge *known = groups->known;
    dcrf_pool *pool = dcrf_workspace_pool(known->workspace);
    const size_t n = known->model->variables;
    *excess = 0;
    if (known->undecided == 0)
        return DCRF_OK;
    groups->is_free = true;
    dcrf_parallel_for(pool, n, GRAIN, take_values, groups);
    groups->is_free = false;
    for (size_t a = 0; a < n; a++)
        groups->member[a] = known->round[a] == 0;
    TRY(reduce_all(groups, error));
    TRY(sum_pairs(groups, error));
    *excess = (dcrf_parallel_sum(pool, n, sum_excess, groups) + sum_broken(known)) * (1 + 0x1p-20);
    *excess = fmax(*excess, 0);
    exclude(groups, *excess);
    return DCRF_OK;
}
