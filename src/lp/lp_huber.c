/* The LP by Huber continuation with acceleration.
 *
 * |t| is replaced by the Huber function of width epsilon and the clique terms correspondingly (see
 * backend/cpu/clique_dual.c). The smoothed problem is minimized over the product of simplices by
 * accelerated projected gradient steps (Beck and Teboulle 2009, restarted as O'Donoghue and Candes
 * 2015)
 *
 *   y^{k+1} = P( z^k - tau_a grad F_eps(z^k) ),   tau_a = epsilon / D_a,
 *   z^{k+1} = y^{k+1} + (t_k - 1) / t_{k+1} (y^{k+1} - y^k)   clipped to [0, 1],
 *
 * with D_a the row sums: one step length per variable, so the projection stays the plain one. Then
 * epsilon is halved: after a few steps if the gap is already small, otherwise once solving the
 * smoothed problem further no longer pays off.
 *
 * -grad F_eps(z) - phi is A alpha + v at the feasible dual point alpha_ab = K_ab clip((z_b - z_a) /
 * epsilon): every step yields a feasible dual point for free. Averages of these points are feasible
 * too. Weighted by t_k, as in the convergence proof of the method, they are much better than the
 * last point, which jumps about when epsilon is small. The best dual point is moved by exact line
 * search towards each new point and each new average: two sweeps over the variables and no filter.
 *
 * For whatever varies slowly over the picture, D is far above the curvature D - K, and with strong
 * kernels y crawls. So after some steps, each step is followed by inner steps in the metric D - K
 * (backend/cpu/lp_majorant.c), as many as pay off (lp_inner.c).
 *
 * The blocks and the passes over them belong to a backend (backend/backend.h). */
#include "lp/lp.h"

#include "core/error.h"
#include "core/owned.h"

#include <math.h>

#define STEPS_PER_EPSILON 8
#define FEWEST_BINS 8
/* Half the finest width that 256 bins resolve, for operators that need no bins. */
#define FINEST_EPSILON (1.0 / 511)
/* Objective minus bound, without the rounding error, is the duality gap of the smoothed problem. A
 * width is exhausted when that is at most this fraction of the gap to the best labelling
 * (docs/explain/relaxations.md). */
#define EXHAUSTED 0.3
/* A width may be left earlier if the relative gap is at most this times epsilon. With a wider gap y
 * is far from its optimum, and steps, whose length is proportional to epsilon, would never get
 * there. */
#define NARROW_GAP 0.4
/* In that case a width has stalled if this many steps have raised the bound by at most this
 * fraction of the gap. With cuts the narrow widths are left only when exhausted: y goes on moving
 * there, and the bound with it, after stalls that are longer than this (docs/notes/lp.md). */
#define STALL_STEPS 16
#define STALLED 0.1
/* Points are computed in double if the error bound in float exceeds this fraction of the gap. */
#define IMPRECISE 0.5

/* ---- widths --------------------------------------------------------------------------------- */

/* Restart the momentum and the average at y. */
static dcrf_status begin_at(struct dcrf_lp *lp, double epsilon, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    huber->epsilon = epsilon;
    huber->steps_at_epsilon = 0;
    huber->inner.quiet = 0;
    huber->bound_before = lp->bound;
    huber->momentum = 1;
    huber->average_weight = 0;
    return lp->methods->restart(lp->blocks, error);
}

static dcrf_status start(struct dcrf_lp *lp, const struct dcrf_start *from, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    double epsilon = lp->experiment.epsilon;
    DCRF_SCOPED float *lifted = NULL;
    huber->unary_floor = from->unary_floor;
    huber->has_stepped = false;
    dcrf_dual_forget(&huber->average, &lp->space);
    TRY(dcrf_lp_lift_new(lp, from, &lifted, &epsilon, error));
    huber->inner = dcrf_lp_inner_begin(lifted);
    TRY(lp->methods->start(lp->blocks, lifted ? lifted : from->y, from->labels, lp->metric, error));
    return begin_at(lp, epsilon, error);
}

/* The width that a number of bins just resolves: the distance between two nodes. F is linear
 * between nodes, so a narrower one would only make the steps shorter. */
static double width_of(size_t bins) {
    return 1 / (double)(bins - 1);
}

/* Two nodes within epsilon, or as many as resolve it. */
static size_t choose_bins(const struct dcrf_lp *lp) {
    const double epsilon = lp->huber.epsilon;
    const double resolving = fmin(round(1 / epsilon) + 1, DCRF_MAX_BINS);
    const double most = fmax(resolving, (double)lp->experiment.bins);
    return (size_t)fmin(fmax(ceil(2 / epsilon), FEWEST_BINS), most);
}

double dcrf_lp_next_width(const struct dcrf_lp *lp, double now) {
    const double usual = width_of(lp->experiment.bins);
    return now > usual ? fmax(now / 2, usual) : 1 / (2 * round(1 / now) + 1);
}

/* What is subtracted from the bound of a point with so many roundings. */
static double rounding_error(const struct dcrf_lp *lp, double roundings) {
    return roundings * 0x1p-24 * lp->space.total;
}

/* Widths that the usual number of bins resolves with room to spare are left after a few steps if
 * the gap allows it: the next one is as good for y and better for the bound. */
static bool is_exhausted(struct dcrf_lp *lp) {
    struct dcrf_lp_huber *huber = &lp->huber;
    const double energy = *lp->problem->best_energy, gap = energy - lp->bound;
    bool has_stalled = huber->epsilon > width_of(lp->experiment.bins);
    if (huber->steps_at_epsilon % STALL_STEPS == 0) {
        has_stalled |= lp->space.is_potts && lp->bound - huber->bound_before <= STALLED * gap;
        huber->bound_before = lp->bound;
    }
    const double precise_bound = lp->bound + rounding_error(lp, lp->best.roundings.pairwise);
    return huber->objective - precise_bound <= EXHAUSTED * gap ||
           (has_stalled && dcrf_relative_gap(energy, lp->bound, huber->unary_floor) <=
                               NARROW_GAP * huber->epsilon);
}

static dcrf_status narrow(struct dcrf_lp *lp, dcrf_error *error) {
    const double epsilon = lp->huber.epsilon;
    if (lp->huber.steps_at_epsilon < STEPS_PER_EPSILON || epsilon <= FINEST_EPSILON ||
        !is_exhausted(lp))
        return DCRF_OK;
    const double next = dcrf_lp_next_width(lp, epsilon);
    TRY(dcrf_lp_lift_narrow(lp, next / epsilon, error));
    return begin_at(lp, next, error);
}

/* Is the subtracted rounding error a large part of the remaining gap? */
static bool needs_precision(const struct dcrf_lp *lp) {
    return rounding_error(lp, lp->huber.roundings) >
           IMPRECISE * (*lp->problem->best_energy - lp->bound);
}

/* ---- the step ------------------------------------------------------------------------------- */

/* `current` becomes the point of z, which is also added to the parts for a certificate. */
static dcrf_status find_point(struct dcrf_lp *lp, const struct dcrf_pair_shape *shape,
                              dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    float *z;
    dcrf_status status = lp->methods->find_point(
        lp->blocks, shape, DCRF_DEAD_SHARE * huber->epsilon, &lp->problem->stop->interrupt, error);
    if (status != DCRF_OK)
        return status;
    huber->current.roundings.pairwise = dcrf_pair_roundings(&lp->space, shape);
    status = dcrf_lp_mixture_add(lp, &huber->current, shape, &z, error);
    return status == DCRF_OK && z ? lp->methods->read(lp->blocks, DCRF_BACKEND_Z, z, error)
                                  : status;
}

/* The cliques' part of `current`. */
static dcrf_status find_cliques(struct dcrf_lp *lp, dcrf_error *error) {
    if (lp->problem->model->cliques.count == 0)
        return DCRF_OK;
    lp->huber.current.roundings.clique = dcrf_clique_roundings(&lp->space);
    return lp->methods->find_cliques(lp->blocks, lp->huber.epsilon, error);
}

/* The weight of the next point in the average, and whether the average differs from that point. */
static double next_weight(struct dcrf_lp_huber *huber, bool *has_average) {
    huber->average_weight += huber->momentum;
    *has_average = huber->average_weight > huber->momentum;
    return huber->momentum / huber->average_weight;
}

static float beta_of(double momentum) {
    return (float)((momentum - 1) / dcrf_next_momentum(momentum));
}

/* Record that the best point has moved by `weight` towards another one. */
static void take_mixture(struct dcrf_lp *lp, const struct dcrf_dual *towards, double weight,
                         double bound) {
    if (weight == 0)
        return;
    dcrf_dual_mix_errors(&lp->best, towards, weight);
    lp->bound = fmax(lp->bound, bound); /* the old bound stays valid */
}

/* Update the bound, y and z. */
static dcrf_status advance(struct dcrf_lp *lp, size_t bins, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    struct dcrf_backend_advanced done;
    bool has_average;
    const double weight = next_weight(huber, &has_average);
    const double energy = *lp->problem->best_energy;
    const struct dcrf_lp_progress now = {energy, lp->bound,
                                         dcrf_relative_gap(energy, lp->bound, huber->unary_floor),
                                         huber->objective};
    dcrf_dual_mix_errors(&huber->average, &huber->current, weight);
    const struct dcrf_backend_advance how = {
        .average_weight = weight,
        .has_average = has_average,
        .roundings = {[DCRF_BACKEND_CURRENT] = huber->current.roundings,
                      [DCRF_BACKEND_AVERAGE] = huber->average.roundings,
                      [DCRF_BACKEND_BEST] = lp->best.roundings},
        .epsilon = huber->epsilon,
        .beta = beta_of(huber->momentum),
        .inner_steps = lp->space.is_potts ? dcrf_lp_inner_choose(&huber->inner, &now) : 0};
    const dcrf_status status = lp->methods->advance(lp->blocks, &how, &done, error);
    lp->is_y_old = lp->is_best_old = true;
    huber->has_stepped = status == DCRF_OK;
    if (status < 0)
        return status;
    take_mixture(lp, &huber->current, done.weights[DCRF_BACKEND_TO_CURRENT],
                 done.bounds[DCRF_BACKEND_TO_CURRENT]);
    if (has_average)
        take_mixture(lp, &huber->average, done.weights[DCRF_BACKEND_TO_AVERAGE],
                     done.bounds[DCRF_BACKEND_TO_AVERAGE]);
    dcrf_lp_inner_adapt(&huber->inner, how.inner_steps, bins, done.decrease);
    huber->objective = done.objective + lp->space.constant;
    huber->momentum = dcrf_next_momentum(done.uphill > 0 ? 1 : huber->momentum);
    return DCRF_OK;
}

static dcrf_status step(struct dcrf_lp *lp, struct dcrf_step_report *report, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    dcrf_status status = narrow(lp, error);
    if (status < 0)
        return status;
    const struct dcrf_pair_shape shape = {
        .epsilon = huber->epsilon, .bins = choose_bins(lp), .is_precise = needs_precision(lp)};
    status = find_point(lp, &shape, error);
    report->objective = huber->objective;
    if (status > 0)
        return DCRF_OK; /* interrupted: nothing has moved */
    if (status < 0 || (status = find_cliques(lp, error)) < 0)
        return status;
    if (!shape.is_precise)
        huber->roundings = huber->current.roundings.pairwise;
    if ((status = advance(lp, shape.bins, error)) < 0)
        return status;
    report->objective = huber->objective;
    huber->steps_at_epsilon++;
    return DCRF_OK;
}

const struct dcrf_lp_schedule_interface dcrf_lp_huber = {.start = start, .step = step};
