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
#include "lp/lp.h"

#include <math.h>

/* The paper's step, and its vertices also for cliques. */
static bool is_as_printed(const struct dcrf_lp *lp) {
    return lp->problem->settings->lp.schedule == DCRF_LP_SCHEDULE_PAPER;
}

static dcrf_status start(struct dcrf_lp *lp, const struct dcrf_start *from, dcrf_error *error) {
    const double lambda = lp->experiment.lambda;
    lp->proximal.lambda = lambda > 0 ? lambda : lp->mean_metric > 0 ? 2 / lp->mean_metric : 1;
    dcrf_dual_forget(&lp->proximal.current, &lp->space);
    return lp->methods->start(lp->blocks, from->y, from->labels, lp->metric, error);
}

/* The most projections for the exact step. */
#define TRIALS 8
/* The step counts as exact when the slope has fallen to this fraction of its first value. */
#define FLAT 0.02

/* The root of the slope, `gap` at 0, from a first guess. y serves as scratch memory. */
static dcrf_status find_root(struct dcrf_lp *lp, double gap, double *delta, dcrf_error *error) {
    double low = 0, low_slope = gap, high = 1, high_slope = 0, at = *delta;
    bool has_high = false;
    for (int k = 0; k < TRIALS; k++) {
        double slope;
        const dcrf_status status = lp->methods->proximal->project(
            lp->blocks, DCRF_BACKEND_Y, lp->proximal.lambda, at, &slope, error);
        if (status < 0)
            return status;
        *delta = at;
        if (fabs(slope) <= FLAT * gap || (slope > 0 && at >= 1))
            return DCRF_OK;
        if (slope > 0) {
            low = at;
            low_slope = slope;
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
    *delta = low > 0 ? low : at;
    return DCRF_OK;
}

static dcrf_status choose_delta(struct dcrf_lp *lp, const double *sums, double *delta,
                                dcrf_error *error) {
    const double gap = sums[DCRF_BACKEND_FW_GAP], squares = sums[DCRF_BACKEND_FW_SQUARES];
    *delta = 0;
    if (!(gap > 0) || !(squares > 0))
        return DCRF_OK;
    *delta = fmin(1, gap / (lp->proximal.lambda * squares));
    return is_as_printed(lp) ? DCRF_OK : find_root(lp, gap, delta, error);
}

/* y~, and the vertex there. */
static dcrf_status find_vertex(struct dcrf_lp *lp, struct dcrf_dual *vertex, dcrf_error *error) {
    const struct dcrf_pair_shape shape = {.epsilon = 0, .bins = lp->experiment.bins};
    const double lambda = lp->proximal.lambda;
    dcrf_status status =
        lp->methods->proximal->project(lp->blocks, DCRF_BACKEND_Z, lambda, 0, NULL, error);
    if (status == DCRF_OK)
        status =
            lp->methods->find_point(lp->blocks, &shape, 0, &lp->problem->stop->interrupt, error);
    if (status != DCRF_OK)
        return status;
    vertex->roundings.pairwise = dcrf_pair_roundings(&lp->space, &shape);
    if (lp->problem->model->cliques.count == 0)
        return DCRF_OK;
    vertex->roundings.clique = dcrf_clique_roundings(&lp->space);
    return lp->methods->proximal->find_cliques(lp->blocks, is_as_printed(lp) ? 0 : 1 / lambda,
                                               error);
}

/* Move towards the vertex; *is_done: there is nothing to gain. */
static dcrf_status move(struct dcrf_lp *lp, const struct dcrf_dual *vertex, double *objective,
                        bool *is_done, dcrf_error *error) {
    struct dcrf_dual *current = &lp->proximal.current;
    double sums[DCRF_BACKEND_FW_SUMS], delta = 0;
    const double before = lp->bound;
    dcrf_status status = lp->methods->proximal->measure(lp->blocks, sums, error);
    if (status == DCRF_OK)
        status = choose_delta(lp, sums, &delta, error);
    if (status < 0)
        return status;
    /* Except for pairs in the same bin, and, where s is a projection or the clique vertex of the
     * spread form, the difference from the true vertex. */
    *objective = lp->space.constant + sums[DCRF_BACKEND_FW_OBJECTIVE];
    *is_done = delta == 0;
    if (delta > 0)
        dcrf_dual_mix_errors(current, vertex, delta);
    status = lp->methods->proximal->mix(lp->blocks, delta, current->roundings, &lp->bound, error);
    if (lp->bound > before)
        lp->best.roundings = current->roundings;
    return status;
}

static dcrf_status step(struct dcrf_lp *lp, struct dcrf_step_report *report, dcrf_error *error) {
    const struct dcrf_backend_proximal_methods *methods = lp->methods->proximal;
    struct dcrf_dual vertex = {0};
    bool is_done = false;
    dcrf_status status = methods->begin(lp->blocks, is_as_printed(lp), error);
    if (is_as_printed(lp))
        dcrf_dual_forget(&lp->proximal.current, &lp->space);
    lp->is_y_old = lp->is_best_old = true;
    for (size_t t = 0; t < lp->experiment.inner_steps && status == DCRF_OK && !is_done; t++) {
        status = find_vertex(lp, &vertex, error);
        if (status == DCRF_OK)
            status = move(lp, &vertex, &report->objective, &is_done, error);
        is_done |= dcrf_stop_is_due(lp->problem->stop);
    }
    return status < 0
               ? status
               : methods->project(lp->blocks, DCRF_BACKEND_Y, lp->proximal.lambda, 0, NULL, error);
}

const struct dcrf_lp_schedule_interface dcrf_lp_proximal = {.start = start, .step = step};
