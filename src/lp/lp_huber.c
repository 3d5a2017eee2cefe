/* The LP by Huber continuation with acceleration.
 *
 * |t| is replaced by the Huber function of width epsilon and the clique terms by the like (see
 * clique_dual.c). The smoothed problem is minimized over the product of simplices by accelerated
 * projected gradient steps (Beck and Teboulle 2009, restarted as O'Donoghue and Candes 2015)
 *
 *   y^{k+1} = P( z^k - tau_a grad F_eps(z^k) ),   tau_a = epsilon / D_a,
 *   z^{k+1} = y^{k+1} + (t_k - 1) / t_{k+1} (y^{k+1} - y^k)   clipped to [0, 1],
 *
 * with D_a the row sums: one step length a variable, so the projection stays the plain one. Then
 * epsilon is halved: after a few steps where the gap is small already, else when the smoothed
 * problem is solved as far as it pays.
 *
 * -grad F_eps(z) - phi is A alpha + v at the feasible dual point alpha_ab = K_ab clip((z_b - z_a) /
 * epsilon): every step brings a dual point for free. So are averages of them, weighted by t_k as
 * the method's own convergence proof does, and they are much better than the last one, which jumps
 * about while epsilon is small. The best dual point is moved by exact line search towards each new
 * point and each new average: two sweeps over the variables and no filter. */
#include "core/error.h"
#include "core/memory.h"
#include "lp/lp.h"
#include "lp/simplex.h"

#include <math.h>
#include <string.h>

#define STEPS_PER_EPSILON 8
#define FEWEST_BINS 8
/* Where 256 bins resolve it no more. */
#define FINEST_EPSILON (1.0 / 512)
/* Objective minus bound is the duality gap of the smoothed problem. A width is exhausted when that
 * is at most this part of the gap to the best labelling (docs/lp.md). */
#define EXHAUSTED 0.3
/* A width may be left earlier where the relative gap is at most this times epsilon. Where it is
 * wider y is far from its optimum, and steps, which are as long as epsilon, would never lead there.
 */
#define NARROW_GAP 0.4
/* Then a width has stalled when so many steps have not brought the bound nearer by this part of the
 * gap. */
#define STALL_STEPS 16
#define STALLED 0.1
/* Points are computed in double where the error of floats is this part of the gap. */
#define IMPRECISE 0.7
/* A label is dead while all its entries are below this part of epsilon: its alpha would be small
 * anyhow. */
#define DEAD 0.0625

static dcrf_status init(struct dcrf_lp *lp, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    const dcrf_model *model = lp->problem->model;
    const size_t row = model->stride * sizeof(float);
    if (lp->device.state) { /* z comes here now and then, the other never */
        huber->z = dcrf_allocate(model->variables, row);
    } else {
        huber->previous = dcrf_allocate_zero(model->variables, row);
        huber->z = dcrf_allocate_zero(model->variables, row);
    }
    if (!huber->z || !(huber->previous || lp->device.state))
        return dcrf_fail_memory(error, "the LP relaxation");
    const dcrf_status status = dcrf_dual_init(&huber->current, &lp->space, error);
    return status < 0 ? status : dcrf_dual_init(&huber->average, &lp->space, error);
}

static void clear(struct dcrf_lp *lp) {
    dcrf_release(lp->huber.previous);
    dcrf_release(lp->huber.z);
    dcrf_dual_clear(&lp->huber.current);
    dcrf_dual_clear(&lp->huber.average);
}

/* The momentum and the average start anew, at y. */
static dcrf_status begin_at(struct dcrf_lp *lp, double epsilon, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    const dcrf_model *model = lp->problem->model;
    dcrf_status status = DCRF_OK;
    if (lp->device.state)
        status = lp->device.methods->restart(lp->device.state, error);
    else
        memcpy(huber->z, lp->y, model->variables * model->stride * sizeof *huber->z);
    huber->epsilon = epsilon;
    huber->steps_at_epsilon = 0;
    huber->bound_before = lp->bound;
    huber->momentum = 1;
    huber->average_weight = 0;
    return status;
}

static dcrf_status start(struct dcrf_lp *lp, const struct dcrf_start *from, dcrf_error *error) {
    lp->huber.unary_floor = from->unary_floor;
    if (lp->device.state) {
        const dcrf_status status = dcrf_lp_device_start(lp, from, error);
        if (status < 0)
            return status;
    } else {
        dcrf_dual_reset(&lp->huber.average, &lp->space);
    }
    return begin_at(lp, lp->experiment.epsilon, error);
}

/* Two nodes within epsilon are enough for the clipped line. */
static size_t choose_bins(const struct dcrf_lp *lp) {
    const double resolved = 0.5 / lp->huber.epsilon;
    const size_t usual = lp->experiment.bins;
    const size_t most = resolved > (double)usual ? (size_t)resolved : usual;
    const double wanted = ceil(2 / lp->huber.epsilon);
    const size_t bins = wanted > (double)FEWEST_BINS ? (size_t)wanted : FEWEST_BINS;
    return bins < most ? bins : most;
}

/* The widths down to `usual` are left after a few steps where the gap allows it: the next one is as
 * good for y and better for the bound. */
static bool is_exhausted(struct dcrf_lp *lp, double usual) {
    struct dcrf_lp_huber *huber = &lp->huber;
    const double energy = *lp->problem->best_energy, gap = energy - lp->bound;
    bool has_stalled = huber->epsilon > usual;
    if (huber->steps_at_epsilon % STALL_STEPS == 0) {
        has_stalled |= lp->bound - huber->bound_before <= STALLED * gap;
        huber->bound_before = lp->bound;
    }
    return huber->objective - lp->bound <= EXHAUSTED * gap ||
           (has_stalled && dcrf_relative_gap(energy, lp->bound, huber->unary_floor) <=
                               NARROW_GAP * huber->epsilon);
}

static dcrf_status narrow(struct dcrf_lp *lp, dcrf_error *error) {
    const double usual = 0.5 / (double)lp->experiment.bins, now = lp->huber.epsilon;
    return lp->huber.steps_at_epsilon >= STEPS_PER_EPSILON && now > FINEST_EPSILON &&
                   is_exhausted(lp, usual)
               ? begin_at(lp, now > usual ? fmax(now / 2, usual) : now / 2, error)
               : DCRF_OK;
}

/* Is the rounding error that is subtracted a large part of what is left to prove? */
static bool needs_precision(const struct dcrf_lp *lp) {
    return lp->huber.roundings * 0x1p-24 * lp->space.total >
           IMPRECISE * (*lp->problem->best_energy - lp->bound);
}

/* The weight of the next point in the average, and whether the average is another point. */
static double next_weight(struct dcrf_lp_huber *huber, bool *has_average) {
    huber->average_weight += huber->momentum;
    *has_average = huber->average_weight > huber->momentum;
    return huber->momentum / huber->average_weight;
}

static void improve_bound(struct dcrf_lp *lp) {
    struct dcrf_lp_huber *huber = &lp->huber;
    bool has_average;
    dcrf_dual_mix(&lp->space, &huber->average, &huber->current, next_weight(huber, &has_average));
    dcrf_dual_improve(&lp->space, &lp->best, &huber->current, &lp->bound);
    if (has_average)
        dcrf_dual_improve(&lp->space, &lp->best, &huber->average, &lp->bound);
}

/* phi'z + the smoothed pairwise and clique terms as the dual point sees them. */
static double sum_objective(void *context, size_t begin, size_t end) {
    const struct dcrf_lp *lp = context;
    const dcrf_model *model = lp->problem->model;
    double sum = 0;
    for (size_t a = begin; a < end; a++)
        for (size_t k = a * model->stride; k < a * model->stride + model->labels; k++) {
            const double dual = lp->huber.current.pairwise[k] +
                                (lp->huber.current.clique ? lp->huber.current.clique[k] : 0);
            sum += (double)lp->huber.z[k] * ((double)model->unary[k] - dual);
        }
    return sum;
}

/* y = P(z + tau (A alpha + v - phi)); returns sum_a D_a <z - y, y - previous>, which is positive
 * where the momentum points uphill. */
static double descend(void *context, size_t begin, size_t end) {
    struct dcrf_lp *lp = context;
    const dcrf_model *model = lp->problem->model;
    double uphill = 0;
    for (size_t a = begin; a < end; a++) {
        const size_t row = a * model->stride;
        const float tau = (float)lp->huber.epsilon / lp->metric[a];
        float *y = lp->y + row;
        const float *z = lp->huber.z + row;
        for (size_t i = 0; i < model->labels; i++)
            y[i] =
                z[i] + tau * ((float)lp->huber.current.pairwise[row + i] - model->unary[row + i]);
        if (lp->huber.current.clique)
            for (size_t i = 0; i < model->labels; i++)
                y[i] += tau * (float)lp->huber.current.clique[row + i];
        dcrf_simplex_project(y, model->labels);
        float sum = 0;
        for (size_t i = 0; i < model->labels; i++)
            sum += (z[i] - y[i]) * (y[i] - lp->huber.previous[row + i]);
        uphill += (double)(lp->metric[a] * sum);
    }
    return uphill;
}

struct extrapolation {
    struct dcrf_lp *lp;
    float beta;
};

static void extrapolate(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct extrapolation *e = context;
    const size_t stride = e->lp->problem->model->stride;
    const float *y = e->lp->y, *previous = e->lp->huber.previous;
    for (size_t k = begin * stride; k < end * stride; k++) {
        const float value = y[k] + e->beta * (y[k] - previous[k]);
        e->lp->huber.z[k] = value < 0 ? 0 : value > 1 ? 1 : value;
    }
}

#define GRAIN 1024

/* `current` becomes the point of z. */
static dcrf_status find_point(struct dcrf_lp *lp, const struct dcrf_pair_shape *shape,
                              dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    const double threshold = DEAD * huber->epsilon;
    return lp->device.state
               ? dcrf_lp_device_point(lp, shape, threshold, error)
               : dcrf_pair_dual(&lp->pairs, shape, huber->z, threshold, &huber->current, error);
}

/* And its cliques. */
static dcrf_status find_cliques(struct dcrf_lp *lp, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    if (!huber->current.clique)
        return DCRF_OK;
    if (lp->device.state)
        return dcrf_lp_device_cliques(lp, error);
    dcrf_clique_project(&lp->cliques, NULL, huber->z, huber->epsilon, 0, &huber->current);
    return DCRF_OK;
}

static double next_momentum(double momentum) {
    return (1 + sqrt(1 + 4 * momentum * momentum)) / 2;
}

static float beta_of(double momentum) {
    return (float)((momentum - 1) / next_momentum(momentum));
}

/* The bound, y and z move on. */
static dcrf_status advance(struct dcrf_lp *lp, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    const size_t n = lp->problem->model->variables;
    dcrf_pool *pool = dcrf_workspace_pool(lp->problem->workspace);
    double uphill = 0;
    if (lp->device.state) {
        bool has_average;
        const double weight = next_weight(huber, &has_average);
        const dcrf_status status = dcrf_lp_device_advance(lp, weight, has_average,
                                                          beta_of(huber->momentum), &uphill, error);
        if (status < 0)
            return status;
    } else {
        improve_bound(lp);
        huber->objective = dcrf_parallel_sum(pool, n, sum_objective, lp);
        float *swap = huber->previous;
        huber->previous = lp->y;
        lp->y = swap;
        uphill = dcrf_parallel_sum(pool, n, descend, lp);
    }
    huber->objective += lp->space.constant;
    if (uphill > 0)
        huber->momentum = 1;
    struct extrapolation extrapolation = {lp, beta_of(huber->momentum)};
    huber->momentum = next_momentum(huber->momentum);
    if (!lp->device.state)
        dcrf_parallel_for(pool, n, GRAIN, extrapolate, &extrapolation);
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
    if (status == DCRF_OK)
        status = dcrf_lp_mixture_add(lp, &huber->current, &shape, huber->z, error);
    if (status < 0)
        return status;
    status = find_cliques(lp, error);
    if (status < 0)
        return status;
    if (!shape.is_precise)
        huber->roundings = huber->current.pairwise_roundings;
    if ((status = advance(lp, error)) < 0)
        return status;
    report->objective = huber->objective;
    huber->steps_at_epsilon++;
    return DCRF_OK;
}

const struct dcrf_lp_schedule_interface dcrf_lp_huber = {
    .init = init,
    .start = start,
    .step = step,
    .clear = clear,
};
