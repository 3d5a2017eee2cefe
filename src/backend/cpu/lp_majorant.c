/* Steps in the metric of the Laplacian.
 *
 * The curvature of the smoothed problem is at most (D - K + S - S B) / epsilon. D are the row sums:
 * |t|_epsilon has a second derivative of at most 1 / epsilon for every pair. S is the stiffness of
 * the cliques, B y the mean of y over the variable's clique: v is a projection onto a set with a
 * fixed sum, so a change common to all members does not affect it. D + S is the metric of the plain
 * steps. So with K for K + S B from here on, and g the gradient at z,
 *
 *   M(y) = <g, y - z> + 1 / (2 epsilon) <y - z, (D + S - K) (y - z)>
 *
 * is an upper bound on F(y) - F(z), and for whatever varies slowly over the picture a much tighter
 * one than the majorant of the plain step, which lacks K. Accelerated projected steps lower M (Beck
 * and Teboulle 2009, restarted as O'Donoghue and Candes 2015), each with one plain filter of w - z:
 *
 *   y' = P( z - epsilon g / (D + S) + K (w - z) / (D + S) ),   w = y + beta (y - y_before).
 *
 * Dead labels (DCRF_DEAD_SHARE) stay as the plain step left them: M is minimized
 * over the others, each row keeping its sum, and only these are filtered. */
#include "backend/cpu/lp_blocks.h"
#include "backend/simplex.h"
#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

/* Cliques per task. */
#define CLIQUES 8

struct majorant {
    const struct dcrf_lp_blocks *blocks;
    const float *metric;
    float epsilon, beta;
    const size_t *moving; /* the columns that move */
    size_t count, stride; /* their number, and the stride of rows that have only them */
    float *next;
    float *difference, *filtered; /* w - z, and K of it: moving columns only */
};

/* The sums: positive where the momentum points uphill, and -M(w). */
enum { UPHILL, DECREASE, SUMS };

/* What is projected replaces the filtered row, and the total that the row keeps is found. */
static double find_goal(const struct majorant *m, size_t a, double *total) {
    const struct dcrf_lp_blocks *blocks = m->blocks;
    const struct dcrf_dual *current = &blocks->dual[DCRF_BACKEND_CURRENT];
    const float *unary = dcrf_dual_unary(&blocks->space);
    const size_t row = a * blocks->space.stride;
    const float metric = m->metric[a], tau = m->epsilon / metric;
    const float *z = blocks->z + row, *y = blocks->y + row;
    const float *difference = m->difference + a * m->stride;
    float *goal = m->filtered + a * m->stride, decrease = 0;
    *total = 0;
    for (size_t k = 0; k < m->count; k++) {
        const size_t i = m->moving[k];
        float dual = (float)current->pairwise[row + i];
        if (current->clique)
            dual += (float)current->clique[row + i];
        const float down = dual - unary[row + i], pull = goal[k] / m->epsilon;
        goal[k] = z[i] + tau * (down + pull);
        decrease += difference[k] * (down + 0.5f * (pull - metric / m->epsilon * difference[k]));
        *total += (double)y[i];
    }
    return (double)decrease;
}

/* y' becomes `next`. */
static double take_goal(const struct majorant *m, size_t a, double theta) {
    const struct dcrf_lp_blocks *blocks = m->blocks;
    const size_t row = a * blocks->space.stride;
    const float *z = blocks->z + row, *y = blocks->y + row;
    const float *goal = m->filtered + a * m->stride, *difference = m->difference + a * m->stride;
    float *next = m->next + row, uphill = 0;
    memcpy(next, y, blocks->space.stride * sizeof *next);
    for (size_t k = 0; k < m->count; k++) {
        const size_t i = m->moving[k];
        const double value = (double)goal[k] - theta;
        next[i] = value > 0 ? (float)value : 0;
        uphill += (z[i] + difference[k] - next[i]) * (next[i] - y[i]);
    }
    return (double)(m->metric[a] * uphill);
}

static void descend(void *context, size_t begin, size_t end, double *sums) {
    const struct majorant *m = context;
    double totals[DCRF_SIMPLEX_ROWS], thetas[DCRF_SIMPLEX_ROWS];
    for (size_t a = begin; a < end; a += DCRF_SIMPLEX_ROWS) {
        const size_t rows = end - a < DCRF_SIMPLEX_ROWS ? end - a : DCRF_SIMPLEX_ROWS;
        for (size_t r = 0; r < rows; r++)
            sums[DECREASE] += find_goal(m, a + r, &totals[r]);
        dcrf_simplex_thresholds(m->filtered + a * m->stride, m->stride, rows, m->count, totals,
                                thetas);
        for (size_t r = 0; r < rows; r++)
            sums[UPHILL] += take_goal(m, a + r, thetas[r]);
    }
}

/* w - z of the next step; y is the latest iterate, `next` the one before. */
static void extrapolate(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct majorant *m = context;
    const size_t stride = m->blocks->space.stride;
    const float *y = m->blocks->y, *before = m->next, *z = m->blocks->z;
    for (size_t a = begin; a < end; a++)
        for (size_t k = 0; k < m->stride; k++) {
            const size_t at = a * stride + m->moving[k < m->count ? k : 0];
            m->difference[a * m->stride + k] =
                k < m->count ? y[at] + m->beta * (y[at] - before[at]) - z[at] : 0;
        }
}

/* filtered += S B (w - z). */
static void add_means(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct majorant *m = context;
    const struct dcrf_dual_space *space = &m->blocks->space;
    const struct dcrf_cliques *cliques = &space->plan->model->cliques;
    for (size_t p = begin; p < end; p++) {
        const uint32_t *members = cliques->members + cliques->offsets[p];
        const size_t size = cliques->offsets[p + 1] - cliques->offsets[p];
        for (size_t i = 0; i < m->count && size > 0; i++) {
            double sum = 0;
            for (size_t k = 0; k < size; k++)
                sum += (double)m->difference[members[k] * m->stride + i];
            const float pull = (float)(space->stiffness[p] * sum / (double)size);
            for (size_t k = 0; k < size; k++)
                m->filtered[members[k] * m->stride + i] += pull;
        }
    }
}

static dcrf_status filter(const struct majorant *m, dcrf_error *error) {
    const struct dcrf_dual_space *space = &m->blocks->space;
    const dcrf_plan *plan = space->plan;
    const dcrf_status status =
        dcrf_plan_sum(plan, space->workspace, NULL, plan->kernel_count, m->difference, m->filtered,
                      m->count, m->stride, error);
    if (status == DCRF_OK)
        dcrf_parallel_for(dcrf_workspace_pool(space->workspace), plan->model->cliques.count,
                          CLIQUES, add_means, (void *)m);
    return status;
}

dcrf_status dcrf_lp_majorant(struct dcrf_lp_blocks *blocks, const float *metric, double epsilon,
                             size_t steps, double *decrease, dcrf_error *error) {
    const struct dcrf_dual_space *space = &blocks->space;
    dcrf_pool *pool = dcrf_workspace_pool(space->workspace);
    if (!blocks->inner)
        blocks->inner = dcrf_allocate(space->variables, space->stride * sizeof *blocks->inner);
    if (!blocks->inner)
        return dcrf_fail_memory(error, "the LP relaxation");
    dcrf_pair_find_live(&blocks->pairs, blocks->y, DCRF_DEAD_SHARE * epsilon);
    decrease[0] = decrease[1] = 0;
    if (blocks->pairs.alive_count == 0)
        return DCRF_OK;
    struct majorant m = {.blocks = blocks,
                         .metric = metric,
                         .epsilon = (float)epsilon,
                         .moving = blocks->pairs.alive,
                         .count = blocks->pairs.alive_count,
                         .stride = dcrf_padded(blocks->pairs.alive_count),
                         .next = blocks->y, /* no extrapolation in the first step */
                         .difference = blocks->pairs.packed,
                         .filtered = blocks->pairs.filtered};
    double momentum = 1, sums[SUMS] = {0, 0};
    for (size_t k = 0; k < steps; k++) {
        dcrf_parallel_rows(pool, space->variables, extrapolate, &m);
        const dcrf_status status = filter(&m, error);
        if (status < 0)
            return status;
        m.next = blocks->inner;
        decrease[0] = sums[DECREASE];
        dcrf_parallel_sums(pool, space->variables, descend, &m, sums, SUMS);
        decrease[1] = sums[DECREASE];
        const double now = sums[UPHILL] > 0 ? 1 : momentum;
        momentum = dcrf_next_momentum(now);
        m.beta = (float)((now - 1) / momentum);
        blocks->inner = blocks->y;
        blocks->y = m.next;
        m.next = blocks->inner;
    }
    return DCRF_OK;
}
