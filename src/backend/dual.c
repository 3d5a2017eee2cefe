/* The bound of a dual point, rounded down (backend/dual_space.h), and the best mixture of two
 * points. */
#include "backend/dual.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

/* ---- a point -------------------------------------------------------------------------------- */

dcrf_status dcrf_dual_init(struct dcrf_dual *dual, const struct dcrf_dual_space *space,
                           dcrf_error *error) {
    *dual = (struct dcrf_dual){0};
    dual->pairwise = dcrf_allocate(space->variables, space->stride * sizeof(double));
    if (space->clique_cost)
        dual->clique = dcrf_allocate(space->variables, space->stride * sizeof(double));
    if (!dual->pairwise || (space->clique_cost && !dual->clique)) {
        dcrf_dual_clear(dual);
        return dcrf_fail_memory(error, "a point of the dual");
    }
    return DCRF_OK;
}

void dcrf_dual_forget(struct dcrf_dual *dual, const struct dcrf_dual_space *space) {
    dual->roundings = (struct dcrf_roundings){.clique = space->clique_cost ? 2 : 0};
    for (size_t k = 0; k < dual->part_room; k++)
        dual->part_weights[k] = 0;
}

void dcrf_dual_reset(struct dcrf_dual *dual, const struct dcrf_dual_space *space) {
    dcrf_parallel_clear(dcrf_workspace_pool(space->workspace), dual->pairwise,
                        space->variables * space->stride * sizeof *dual->pairwise);
    dcrf_dual_forget(dual, space);
    if (!dual->clique)
        return;
    for (size_t a = 0; a < space->variables; a++)
        for (size_t i = 0; i < space->stride; i++)
            dual->clique[a * space->stride + i] =
                space->form == DCRF_CLIQUE_MIN ? (double)space->clique_weight[a] : 0;
}

void dcrf_dual_clear(struct dcrf_dual *dual) {
    dcrf_release(dual->pairwise);
    dcrf_release(dual->clique);
    dcrf_release(dual->part_weights);
    *dual = (struct dcrf_dual){0};
}

/* ---- the bound ------------------------------------------------------------------------------ */

struct bound_context {
    const struct dcrf_dual_space *space;
    const struct dcrf_dual *dual;
    const float *unary;
    double pairwise_error, clique_error; /* relative */
};

static struct bound_context make_context(const struct dcrf_dual_space *space,
                                         const struct dcrf_dual *dual) {
    return (struct bound_context){
        .space = space,
        .dual = dual,
        .unary = dcrf_dual_unary(space),
        .pairwise_error = dual->roundings.pairwise * DCRF_DUAL_UNIT * (1 + DCRF_DUAL_SLACK),
        .clique_error = dual->roundings.clique * DCRF_DUAL_UNIT * (1 + DCRF_DUAL_SLACK),
    };
}

/* A reduced cost, without the error bounds that all labels of the variable share. */
static inline double reduced_cost(const struct bound_context *c, size_t a, size_t label) {
    const size_t at = a * c->space->stride + label;
    const size_t k =
        c->dual->column_of ? a * c->dual->column_stride + c->dual->column_of[label] : at;
    const double cost = (double)c->unary[at] - c->dual->pairwise[k];
    if (!c->dual->clique)
        return cost;
    const double per_value = c->space->form == DCRF_CLIQUE_MIN ? c->clique_error : 0;
    return cost - c->dual->clique[k] * (1 + per_value); /* v >= 0 in the min form */
}

static double lowest_reduced_cost(const struct bound_context *c, size_t a) {
    const size_t labels = c->space->labels;
    double lowest = INFINITY;
    for (size_t i = 0; i < labels; i++) {
        const double cost = reduced_cost(c, a, i);
        lowest = cost < lowest ? cost : lowest;
    }
    if (c->dual->clique && c->space->form == DCRF_CLIQUE_SPREAD)
        lowest -= c->clique_error * (double)c->space->clique_cost[a];
    return lowest;
}

enum { BOUND, MAGNITUDE, BOUND_SUMS };

static void sum_bound(void *context, size_t begin, size_t end, double *sums) {
    const struct bound_context *c = context;
    for (size_t a = begin; a < end; a++) {
        const double cost = lowest_reduced_cost(c, a), row_sum = (double)c->space->row_sums[a];
        sums[BOUND] += cost - c->pairwise_error * row_sum - DCRF_DUAL_TINY;
        sums[MAGNITUDE] += fabs(cost) + row_sum;
    }
}

double dcrf_dual_bound(const struct dcrf_dual_space *space, const struct dcrf_dual *dual) {
    const size_t n = space->variables;
    dcrf_pool *pool = dcrf_workspace_pool(space->workspace);
    struct bound_context context = make_context(space, dual);
    double sums[BOUND_SUMS];
    dcrf_parallel_sums(pool, n, sum_bound, &context, sums, BOUND_SUMS);
    return space->constant + sums[BOUND] -
           ((double)n + 8) * DCRF_DOUBLE_UNIT *
               (sums[MAGNITUDE] + fabs(space->constant) + fabs(sums[BOUND]));
}

static double lowest_cost(const struct bound_context *context, size_t variable) {
    double lowest = INFINITY;
    for (size_t i = 0; i < context->space->labels; i++) {
        const double cost = reduced_cost(context, variable, i);
        lowest = cost < lowest ? cost : lowest;
    }
    return lowest;
}

/* Both costs are sums of three terms; the difference is rounded once more. */
static bool is_excluded(const struct bound_context *context, size_t variable, size_t label,
                        double lowest, double excess) {
    const double cost = reduced_cost(context, variable, label);
    return cost - lowest > excess + 8 * DCRF_DOUBLE_UNIT * (fabs(cost) + fabs(lowest)) +
                               0x1p-40 * (double)context->space->row_sums[variable];
}

void dcrf_dual_exclude(const struct dcrf_dual_space *space, const struct dcrf_dual *dual,
                       size_t variable, double excess, uint8_t *possible) {
    const struct bound_context context = make_context(space, dual);
    const double lowest = lowest_cost(&context, variable);
    for (size_t i = 0; i < space->labels; i++)
        if (is_excluded(&context, variable, i, lowest, excess))
            possible[i] = 0;
}

size_t dcrf_dual_count(const struct dcrf_dual_space *space, const struct dcrf_dual *dual,
                       size_t variable, double excess, size_t label, bool *has_label) {
    const struct bound_context context = make_context(space, dual);
    const double lowest = lowest_cost(&context, variable);
    size_t count = 0;
    for (size_t i = 0; i < space->labels; i++) {
        const bool is_possible = !is_excluded(&context, variable, i, lowest, excess);
        count += is_possible;
        if (i == label)
            *has_label = is_possible;
    }
    return count;
}

/* ---- mixtures ------------------------------------------------------------------------------- */

struct mix_context {
    const struct dcrf_dual_space *space;
    double *into;
    const double *from;
    double weight;
};

static void mix_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct mix_context *c = context;
    const size_t stride = c->space->stride;
    for (size_t k = begin * stride; k < end * stride; k++)
        c->into[k] += c->weight * (c->from[k] - c->into[k]);
}

static void mix_blocks(const struct dcrf_dual_space *space, double *into, const double *from,
                       double weight) {
    struct mix_context context = {space, into, from, weight};
    dcrf_parallel_rows(dcrf_workspace_pool(space->workspace), space->variables, mix_rows, &context);
}

void dcrf_dual_mix_errors(struct dcrf_dual *into, const struct dcrf_dual *from, double weight) {
    into->roundings = dcrf_roundings_mix(into->roundings, from->roundings, weight);
    for (size_t k = 0; k < into->part_room; k++)
        into->part_weights[k] += weight * (from->part_weights[k] - into->part_weights[k]);
}

void dcrf_dual_mix(const struct dcrf_dual_space *space, struct dcrf_dual *into,
                   const struct dcrf_dual *from, double weight) {
    mix_blocks(space, into->pairwise, from->pairwise, weight);
    if (into->clique)
        mix_blocks(space, into->clique, from->clique, weight);
    dcrf_dual_mix_errors(into, from, weight);
}

struct line_context {
    const struct dcrf_dual_space *space;
    const struct dcrf_dual *from, *to;
    const float *unary;
    double at;
};

/* The reduced cost of an entry at t is base - t change. */
static inline void find_line(const struct line_context *c, size_t k, double *base, double *change) {
    const double from = c->from->pairwise[k];
    *change = c->to->pairwise[k] - from;
    *base = (double)c->unary[k] - from;
    if (c->from->clique) {
        *change += c->to->clique[k] - c->from->clique[k];
        *base -= c->from->clique[k];
    }
}

/* The slopes of min_i at both ends of the line. Costs are linear in t, so the slope of their
 * minimum is non-increasing: if it is the same at both ends, it is constant. For these variables,
 * the great majority, it is settled; for the others, only the slope at the far end is summed. */
enum { SETTLED, FAR_END, LINE_SUMS };

static void split_variables(void *context, size_t begin, size_t end, double *sums) {
    const struct line_context *c = context;
    const size_t labels = c->space->labels, stride = c->space->stride;
    for (size_t a = begin; a < end; a++) {
        double lowest_near = INFINITY, lowest_far = INFINITY, near = 0, far = 0;
        for (size_t k = a * stride; k < a * stride + labels; k++) {
            double base, change;
            find_line(c, k, &base, &change);
            near = base < lowest_near ? -change : near;
            lowest_near = base < lowest_near ? base : lowest_near;
            far = base - change < lowest_far ? -change : far;
            lowest_far = base - change < lowest_far ? base - change : lowest_far;
        }
        const bool is_open = near > far || near < far;
        c->space->is_open[a] = is_open;
        sums[is_open ? FAR_END : SETTLED] += far;
    }
}

static double sum_open_slopes(void *context, size_t begin, size_t end) {
    const struct line_context *c = context;
    const size_t labels = c->space->labels, stride = c->space->stride;
    const uint8_t *is_open = c->space->is_open, *found = is_open + begin;
    double sum = 0;
    for (; (found = memchr(found, true, (size_t)(is_open + end - found))); found++) {
        const size_t a = (size_t)(found - is_open);
        double lowest = INFINITY, slope = 0;
        for (size_t k = a * stride; k < a * stride + labels; k++) {
            double base, change;
            find_line(c, k, &base, &change);
            slope = base - c->at * change < lowest ? -change : slope;
            lowest = base - c->at * change < lowest ? base - c->at * change : lowest;
        }
        sum += slope;
    }
    return sum;
}

void dcrf_dual_keep(const struct dcrf_dual_space *space, struct dcrf_dual *best,
                    const struct dcrf_dual *candidate, double *bound) {
    const size_t bytes = space->variables * space->stride * sizeof *best->pairwise;
    const double proven = dcrf_dual_bound(space, candidate);
    if (!(proven > *bound))
        return;
    *bound = proven;
    dcrf_pool *pool = dcrf_workspace_pool(space->workspace);
    dcrf_parallel_copy(pool, best->pairwise, candidate->pairwise, bytes);
    if (best->clique)
        dcrf_parallel_copy(pool, best->clique, candidate->clique, bytes);
    best->roundings = candidate->roundings;
}

/* Bisections of the interval that contains the maximum: few, since the bound is flat there. */
#define HALVINGS 7

/* The slope of the bound includes that of the subtracted rounding error: a point from a more
 * precise filter is worth more. */
double dcrf_dual_improve(const struct dcrf_dual_space *space, struct dcrf_dual *best,
                         const struct dcrf_dual *candidate, double *bound) {
    const size_t n = space->variables;
    dcrf_pool *pool = dcrf_workspace_pool(space->workspace);
    struct line_context line = {space, best, candidate, dcrf_dual_unary(space), 1};
    double low = 0, high = 1, sums[LINE_SUMS];
    dcrf_parallel_sums(pool, n, split_variables, &line, sums, LINE_SUMS);
    const double settled =
        sums[SETTLED] - dcrf_dual_error_slope(space, best->roundings, candidate->roundings);
    if (settled + sums[FAR_END] < 0)
        for (int i = 0; i < HALVINGS; i++) {
            line.at = (low + high) / 2;
            if (settled + dcrf_parallel_sum(pool, n, sum_open_slopes, &line) > 0)
                low = line.at;
            else
                high = line.at;
        }
    else
        low = 1;
    if (low == 0)
        return 0;
    dcrf_dual_mix(space, best, candidate, low);
    /* The old bound stays valid, even if the rounding error of the mixture exceeds its gain. */
    *bound = fmax(*bound, dcrf_dual_bound(space, best));
    return low;
}
