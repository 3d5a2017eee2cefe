/* How cliques affect the margins of a group.
 *
 * With p the improving mapping of groups.c, a clique of cost C changes by C or -C or nothing:
 *
 * - If every member is in the group or decided, and x has one label on the clique, then p(y) is
 *   unanimous and every change gains C unless it leaves the clique unanimous. For any v_a >= 0 with
 *   sum_a v_a = C, the gain is at least the sum of the v_a of the members that change, less C if
 *   all change to the same label.
 * - Otherwise it loses at most C, and only where y is unanimous, with label i: then all members
 *   with x_a != i change to i.
 *
 * So C is lost only where i is possible at all members, and the loss can be divided freely among
 * those with x_a != i. Divided in proportion to their margins for i, it leaves all of these
 * positive exactly if their sum exceeds C. The gain v goes to the members with the smallest
 * margins. */
#include "proof/groups.h"

#include <math.h>

struct clique {
    struct dcrf_groups *groups;
    const uint32_t *members;
    size_t size;
    double cost;
};

/* The margin of a member for a label, after subtracting a bound on the error. */
static double margin_of(const struct clique *c, size_t a, size_t label) {
    const struct dcrf_knowledge *known = c->groups->known;
    const double *reduced = c->groups->reduced + a * known->model->labels;
    return reduced[label] - reduced[known->labels[a]] - known->error[a];
}

static double smallest_margin(const struct clique *c, size_t a) {
    const struct dcrf_knowledge *known = c->groups->known;
    double smallest = INFINITY;
    for (size_t i = 0; i < known->model->labels; i++)
        if (i != known->labels[a] && known->possible[a * known->model->labels + i])
            smallest = fmin(smallest, margin_of(c, a, i));
    return smallest;
}

/* Are all members in the group or decided, with the same label? */
static int is_kept_whole(const struct clique *c) {
    const struct dcrf_knowledge *known = c->groups->known;
    for (size_t k = 0; k < c->size; k++) {
        const size_t a = c->members[k];
        if ((known->round[a] == 0 && !c->groups->member[a]) ||
            known->labels[a] != known->labels[c->members[0]])
            return 0;
    }
    return 1;
}

/* Raise the smallest margins of the undecided members to a common level, by C in total. */
static void share_gain(const struct clique *c) {
    struct dcrf_groups *groups = c->groups;
    double *margins = groups->known->sum; /* otherwise unused at this point */
    double low = INFINITY, most = 0;
    for (size_t k = 0; k < c->size; k++) {
        const size_t a = c->members[k];
        margins[a] = groups->member[a] ? smallest_margin(c, a) : (double)INFINITY;
        low = fmin(low, margins[a]);
        most = isfinite(margins[a]) ? fmax(most, margins[a]) : most;
    }
    if (!isfinite(low))
        return;
    double high = most + c->cost;
    for (int halving = 0; halving < 60; halving++) {
        const double level = (low + high) / 2;
        double used = 0;
        for (size_t k = 0; k < c->size; k++)
            used += fmax(0, level - margins[c->members[k]]);
        if (used <= c->cost * (1 - 1e-12))
            low = level;
        else
            high = level;
    }
    for (size_t k = 0; k < c->size; k++) {
        const size_t a = c->members[k];
        if (groups->member[a])
            groups->reduced[a * groups->known->model->labels + groups->known->labels[a]] -=
                fmax(0, low - margins[a]);
    }
}

/* Take C from the margins for one label. If they do not suffice, all members that would pay are
 * removed. */
static size_t share_loss(const struct clique *c, size_t label) {
    struct dcrf_groups *groups = c->groups;
    const struct dcrf_knowledge *known = groups->known;
    double sum = 0;
    size_t count = 0;
    for (size_t k = 0; k < c->size; k++) {
        const size_t a = c->members[k];
        if (groups->member[a] && known->labels[a] != label)
            sum += fmax(0, margin_of(c, a, label));
    }
    const double part = c->cost * (1 + 1e-12) / sum;
    for (size_t k = 0; k < c->size; k++) {
        const size_t a = c->members[k];
        if (!groups->member[a] || known->labels[a] == label)
            continue;
        if (part < 1) {
            groups->reduced[a * known->model->labels + label] -=
                part * fmax(0, margin_of(c, a, label));
        } else {
            groups->member[a] = 0;
            count++;
        }
    }
    return count;
}

size_t dcrf_groups_pay_cliques(struct dcrf_groups *groups) {
    const struct dcrf_knowledge *known = groups->known;
    const struct dcrf_cliques *cliques = &known->model->cliques;
    size_t count = 0;
    for (size_t p = 0; p < cliques->count; p++) {
        const struct clique clique = {groups, cliques->members + cliques->offsets[p],
                                      cliques->offsets[p + 1] - cliques->offsets[p],
                                      cliques->costs[p]};
        if (clique.size < 2 || clique.cost == 0)
            continue;
        if (is_kept_whole(&clique))
            share_gain(&clique);
        for (size_t i = 0; i < known->model->labels; i++)
            if (dcrf_knowledge_may_agree(known, p, i))
                count += share_loss(&clique, i);
    }
    return count;
}
