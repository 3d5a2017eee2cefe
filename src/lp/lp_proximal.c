/* The LP by proximal steps, each solved by Frank-Wolfe on its dual (Joy et al., section 5).
 *
 *   y^{k+1} = argmin_y  LP(y) + |y - y^k|^2 / (2 lambda)
 *
 * With beta and gamma eliminated, the dual is a smooth function h of A alpha + v, and
 *
 *   y~ = P( y^k + lambda (A alpha + v - phi) )
 *
 * is both the primal point of (alpha, v) and minus the gradient of h. One Frank-Wolfe step: s from
 * the ordered filter at y~ with F = sign, and a vertex of the cliques' set, or the projection of v
 * - y~ / lambda onto it; then (alpha, v) moves towards s by delta. With D = (A alpha + v) - s,
 * h'(delta) = -<D, y~(delta)>: a few projections find its root. The conservative step of the paper
 * is the first guess, <D, y~> / (lambda |D|^2). */
#include "backend/cpu/simplex.h"
#include "core/error.h"
#include "core/memory.h"
#include "lp/lp.h"
#include "round/round.h"

#include <math.h>
#include <string.h>

static dcrf_status init(struct dcrf_lp *lp, dcrf_error *error) {
    struct dcrf_lp_proximal *proximal = &lp->proximal;
    const dcrf_model *model = lp->problem->model;
    const size_t row = model->stride * sizeof(float);
    lp->y = proximal->y = dcrf_allocate_zero(model->variables, row);
    proximal->centre = dcrf_allocate_zero(model->variables, row);
    proximal->trial = dcrf_allocate_zero(model->variables, row);
    if (!proximal->y || !proximal->centre || !proximal->trial)
        return dcrf_fail_memory(error, "the LP relaxation");
    dcrf_status status = dcrf_pair_filter_init(&proximal->pairs, &lp->space, error);
    if (status < 0 || (status = dcrf_clique_dual_init(&proximal->cliques, &lp->space, error)) < 0 ||
        (status = dcrf_dual_init(&lp->best, &lp->space, error)) < 0 ||
        (status = dcrf_dual_init(&proximal->current, &lp->space, error)) < 0)
        return status;
    proximal->pairs.interrupt = &lp->problem->stop->interrupt;
    return dcrf_dual_init(&proximal->vertex, &lp->space, error);
}

static void clear(struct dcrf_lp *lp) {
    dcrf_pair_filter_clear(&lp->proximal.pairs);
    dcrf_clique_dual_clear(&lp->proximal.cliques);
    dcrf_release(lp->proximal.y);
    dcrf_release(lp->proximal.centre);
    dcrf_release(lp->proximal.trial);
    dcrf_dual_clear(&lp->proximal.current);
    dcrf_dual_clear(&lp->proximal.vertex);
}

static dcrf_status reset_best(struct dcrf_lp *lp, dcrf_error *error) {
    (void)error;
    dcrf_dual_reset(&lp->best, &lp->space);
    lp->bound = dcrf_dual_bound(&lp->space, &lp->best);
    return DCRF_OK;
}

static dcrf_status write_best(struct dcrf_lp *lp, const double *pairwise, dcrf_error *error) {
    (void)error;
    const dcrf_model *model = lp->problem->model;
    memcpy(lp->best.pairwise, pairwise, model->variables * model->stride * sizeof *pairwise);
    return DCRF_OK;
}

/* Everything is in host memory. */
static dcrf_status fetch(struct dcrf_lp *lp, dcrf_error *error) {
    (void)lp, (void)error;
    return DCRF_OK;
}

static bool is_as_printed(const struct dcrf_lp *lp) {
    return lp->problem->settings->lp.schedule == DCRF_LP_SCHEDULE_PAPER;
}

static dcrf_status start(struct dcrf_lp *lp, const struct dcrf_start *from, dcrf_error *error) {
    (void)error;
    const dcrf_model *model = lp->problem->model;
    if (from->y)
        memcpy(lp->proximal.y, from->y, model->variables * model->stride * sizeof *from->y);
    else
        dcrf_round_inverse(from->labels, model->variables, model->stride, lp->proximal.y);
    const double lambda = lp->experiment.lambda;
    lp->proximal.lambda = lambda > 0 ? lambda : lp->mean_metric > 0 ? 2 / lp->mean_metric : 1;
    dcrf_dual_reset(&lp->proximal.current, &lp->space);
    return DCRF_OK;
}

struct projection {
    struct dcrf_lp *lp;
    double delta;
    float *out; /* a block */
};

static float dual_value(const struct dcrf_dual *dual, size_t at) {
    return (float)(dual->pairwise[at] + (dual->clique ? dual->clique[at] : 0));
}

/* Project the rows of y~(delta); the sum is <D, y~(delta)>. */
static double project_rows(void *context, size_t begin, size_t end) {
    const struct projection *p = context;
    const struct dcrf_lp *lp = p->lp;
    const dcrf_model *model = lp->problem->model;
    const float lambda = (float)lp->proximal.lambda, delta = (float)p->delta;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const size_t row = a * model->stride;
        float *y = p->out + row;
        for (size_t i = 0; i < model->labels; i++) {
            const float now = dual_value(&lp->proximal.current, row + i);
            const float towards = delta == 0 ? 0 : dual_value(&lp->proximal.vertex, row + i) - now;
            y[i] = lp->proximal.centre[row + i] +
                   lambda * (now + delta * towards - model->unary[row + i]);
        }
        dcrf_simplex_project(y, model->labels);
        for (size_t i = 0; i < model->labels; i++)
            sum += (double)y[i] * ((double)dual_value(&lp->proximal.current, row + i) -
                                   (double)dual_value(&lp->proximal.vertex, row + i));
    }
    return sum;
}

static double project_all(struct dcrf_lp *lp, double delta, float *out) {
    struct projection projection = {lp, delta, out};
    return dcrf_parallel_sum(dcrf_workspace_pool(lp->problem->workspace),
                             lp->problem->model->variables, project_rows, &projection);
}

static double sum_squares(void *context, size_t begin, size_t end) {
    const struct dcrf_lp *lp = context;
    const dcrf_model *model = lp->problem->model;
    double sum = 0;
    for (size_t a = begin; a < end; a++)
        for (size_t k = a * model->stride; k < a * model->stride + model->labels; k++) {
            const double difference = (double)dual_value(&lp->proximal.current, k) -
                                      (double)dual_value(&lp->proximal.vertex, k);
            sum += difference * difference;
        }
    return sum;
}

/* <D, y~>: the Frank-Wolfe gap of the proximal problem's dual. */
static double sum_gap(void *context, size_t begin, size_t end) {
    const struct dcrf_lp *lp = context;
    const dcrf_model *model = lp->problem->model;
    double sum = 0;
    for (size_t a = begin; a < end; a++)
        for (size_t k = a * model->stride; k < a * model->stride + model->labels; k++)
            sum += (double)lp->proximal.trial[k] * ((double)dual_value(&lp->proximal.current, k) -
                                                    (double)dual_value(&lp->proximal.vertex, k));
    return sum;
}

/* phi'y~ - <s, y~>: the LP's objective at y~, except for pairs in the same bin and, if s is a
 * projection or the clique vertex of the spread form, the difference from the true vertex. */
static double sum_objective(void *context, size_t begin, size_t end) {
    const struct dcrf_lp *lp = context;
    const dcrf_model *model = lp->problem->model;
    double sum = 0;
    for (size_t a = begin; a < end; a++)
        for (size_t k = a * model->stride; k < a * model->stride + model->labels; k++)
            sum += (double)lp->proximal.trial[k] *
                   ((double)model->unary[k] - (double)dual_value(&lp->proximal.vertex, k));
    return sum;
}

/* The most projections for the exact step. */
#define TRIALS 8
/* The step counts as exact when the slope has fallen to this fraction of its first value. */
#define FLAT 0.02

static double choose_delta(struct dcrf_lp *lp) {
    const size_t n = lp->problem->model->variables;
    dcrf_pool *pool = dcrf_workspace_pool(lp->problem->workspace);
    const double gap = dcrf_parallel_sum(pool, n, sum_gap, lp);
    const double squares = dcrf_parallel_sum(pool, n, sum_squares, lp);
    if (!(gap > 0) || !(squares > 0))
        return 0;
    const double guess = fmin(1, gap / (lp->proximal.lambda * squares));
    if (is_as_printed(lp))
        return guess;
    /* y serves as scratch memory here; the slopes are those of -h. */
    double low = 0, low_slope = gap, high = 1, at = guess;
    double high_slope = 0;
    bool has_high = false;
    for (int k = 0; k < TRIALS; k++) {
        const double slope = project_all(lp, at, lp->proximal.y);
        if (fabs(slope) <= FLAT * gap)
            return at;
        if (slope > 0) {
            low = at;
            low_slope = slope;
            if (at >= 1)
                return 1;
        } else {
            high = at;
            high_slope = slope;
            has_high = true;
        }
        if (!has_high)
            at = fmin(1, 2 * at);
        else {
            /* Regula falsi, kept away from the ends. */
            const double middle = low + (high - low) * low_slope / (low_slope - high_slope);
            at = fmin(fmax(middle, low + 0.1 * (high - low)), high - 0.1 * (high - low));
        }
    }
    return low > 0 ? low : at;
}

static dcrf_status take_vertex(struct dcrf_lp *lp, dcrf_error *error) {
    struct dcrf_lp_proximal *proximal = &lp->proximal;
    const struct dcrf_pair_shape shape = {.epsilon = 0, .bins = lp->experiment.bins};
    const dcrf_status status =
        dcrf_pair_dual(&proximal->pairs, &shape, proximal->trial, 0, &proximal->vertex, error);
    if (status == DCRF_OK && proximal->vertex.clique) {
        if (is_as_printed(lp))
            dcrf_clique_vertex(&proximal->cliques, proximal->trial, &proximal->vertex);
        else
            dcrf_clique_project(&proximal->cliques, proximal->current.clique, proximal->trial, 0,
                                1 / proximal->lambda, &proximal->vertex);
    }
    return status;
}

static dcrf_status step(struct dcrf_lp *lp, struct dcrf_step_report *report, dcrf_error *error) {
    struct dcrf_lp_proximal *proximal = &lp->proximal;
    const dcrf_model *model = lp->problem->model;
    dcrf_pool *pool = dcrf_workspace_pool(lp->problem->workspace);
    memcpy(proximal->centre, proximal->y, model->variables * model->stride * sizeof *proximal->y);
    if (is_as_printed(lp))
        dcrf_dual_reset(&proximal->current, &lp->space);
    for (size_t t = 0; t < lp->experiment.inner_steps; t++) {
        project_all(lp, 0, proximal->trial);
        const dcrf_status status = take_vertex(lp, error);
        if (status < 0)
            return status;
        report->objective =
            lp->space.constant + dcrf_parallel_sum(pool, model->variables, sum_objective, lp);
        const double delta = choose_delta(lp);
        if (delta > 0)
            dcrf_dual_mix(&lp->space, &proximal->current, &proximal->vertex, delta);
        dcrf_dual_keep(&lp->space, &lp->best, &proximal->current, &lp->bound);
        if (delta == 0 || dcrf_stop_is_due(lp->problem->stop))
            break;
    }
    project_all(lp, 0, proximal->y);
    return DCRF_OK;
}

const struct dcrf_lp_schedule_interface dcrf_lp_proximal = {
    .init = init,
    .clear = clear,
    .reset_best = reset_best,
    .write_best = write_best,
    .start = start,
    .step = step,
    .fetch_y = fetch,
    .fetch_best = fetch,
};
