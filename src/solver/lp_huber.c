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
 * epsilon is halved, down to what the bins resolve.
 *
 * -grad F_eps(z) - phi is A alpha + v at the feasible dual point alpha_ab = K_ab clip((z_b - z_a) /
 * epsilon): every step brings a dual point for free. So are averages of them, weighted by t_k as
 * the method's own convergence proof does, and they are much better than the last one, which jumps
 * about while epsilon is small. The best dual point is moved by exact line search towards each new
 * point and each new average: two sweeps over the variables and no filter. */
#include "solver/lp.h"

#include "solver/simplex.h"

#include <math.h>
#include <string.h>

#define FIRST_EPSILON 0.25
#define STEPS_PER_EPSILON 8
#define FEWEST_BINS 8
/* A label is dead while all its entries are below this part of epsilon: its alpha would be small
 * anyhow. */
#define DEAD 0.0625

void dcrf_lp_huber_start(struct dcrf_lp *lp) {
    const dcrf_model *model = lp->problem->model;
    const double epsilon = lp->problem->settings->lp.epsilon;
    memcpy(lp->z, lp->y, model->variables * model->stride * sizeof *lp->z);
    lp->epsilon = epsilon > 0 ? epsilon : FIRST_EPSILON;
    lp->steps_at_epsilon = 0;
    lp->momentum = 1;
    lp->average_weight = 0;
}

/* Two nodes within epsilon are enough for the clipped line. */
static size_t choose_bins(const struct dcrf_lp *lp) {
    const size_t most = lp->problem->settings->lp.bins;
    const double wanted = ceil(2 / lp->epsilon);
    const size_t bins = wanted > (double)FEWEST_BINS ? (size_t)wanted : FEWEST_BINS;
    return bins < most ? bins : most;
}

static void narrow(struct dcrf_lp *lp) {
    const dcrf_model *model = lp->problem->model;
    const double finest = 0.5 / (double)lp->problem->settings->lp.bins;
    if (lp->steps_at_epsilon < STEPS_PER_EPSILON || lp->epsilon <= finest)
        return;
    lp->epsilon = fmax(lp->epsilon / 2, finest);
    lp->steps_at_epsilon = 0;
    lp->momentum = 1;
    lp->average_weight = 0;
    memcpy(lp->z, lp->y, model->variables * model->stride * sizeof *lp->z);
}

static void improve_bound(struct dcrf_lp *lp) {
    lp->average_weight += lp->momentum;
    dcrf_dual_mix(&lp->space, &lp->other, &lp->current, lp->momentum / lp->average_weight);
    dcrf_dual_improve(&lp->space, &lp->best, &lp->current, &lp->bound);
    if (lp->average_weight > lp->momentum) /* else the average is the point itself */
        dcrf_dual_improve(&lp->space, &lp->best, &lp->other, &lp->bound);
}

/* phi'z + the smoothed pairwise and clique terms as the dual point sees them. */
static double sum_objective(void *context, size_t begin, size_t end) {
    const struct dcrf_lp *lp = context;
    const dcrf_model *model = lp->problem->model;
    double sum = 0;
    for (size_t a = begin; a < end; a++)
        for (size_t k = a * model->stride; k < a * model->stride + model->labels; k++) {
            const float dual =
                lp->current.pairwise[k] + (lp->current.clique ? lp->current.clique[k] : 0);
            sum += (double)lp->z[k] * (double)(model->unary[k] - dual);
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
        const float tau = (float)lp->epsilon / lp->metric[a];
        float *y = lp->y + row;
        const float *z = lp->z + row;
        for (size_t i = 0; i < model->labels; i++)
            y[i] = z[i] + tau * (lp->current.pairwise[row + i] - model->unary[row + i]);
        if (lp->current.clique)
            for (size_t i = 0; i < model->labels; i++)
                y[i] += tau * lp->current.clique[row + i];
        dcrf_simplex_project(y, model->labels);
        float sum = 0;
        for (size_t i = 0; i < model->labels; i++)
            sum += (z[i] - y[i]) * (y[i] - lp->previous[row + i]);
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
    const float *y = e->lp->y, *previous = e->lp->previous;
    for (size_t k = begin * stride; k < end * stride; k++) {
        const float value = y[k] + e->beta * (y[k] - previous[k]);
        e->lp->z[k] = value < 0 ? 0 : value > 1 ? 1 : value;
    }
}

#define GRAIN 1024

dcrf_status dcrf_lp_huber_step(struct dcrf_lp *lp, struct dcrf_step_report *report,
                               dcrf_error *error) {
    const dcrf_model *model = lp->problem->model;
    dcrf_pool *pool = dcrf_workspace_pool(lp->problem->workspace);
    narrow(lp);
    const struct dcrf_pair_shape shape = {.epsilon = lp->epsilon,
                                          .bins = choose_bins(lp),
                                          .is_adaptive =
                                              lp->problem->settings->lp.adaptive_bins != 0};
    dcrf_status status =
        dcrf_pair_dual(&lp->pairs, &shape, lp->z, DEAD * lp->epsilon, &lp->current, error);
    if (status == DCRF_OK)
        status = dcrf_lp_record_point(lp, &lp->current, &shape, lp->z, lp->pairs.alive,
                                      lp->pairs.alive_count, error);
    if (status < 0)
        return status;
    if (lp->current.clique)
        dcrf_clique_project(&lp->cliques, NULL, lp->z, lp->epsilon, 0, &lp->current);
    improve_bound(lp);
    report->objective =
        lp->space.constant + dcrf_parallel_sum(pool, model->variables, sum_objective, lp);

    float *swap = lp->previous;
    lp->previous = lp->y;
    lp->y = swap;
    const double uphill = dcrf_parallel_sum(pool, model->variables, descend, lp);
    if (uphill > 0)
        lp->momentum = 1;
    const double next = (1 + sqrt(1 + 4 * lp->momentum * lp->momentum)) / 2;
    struct extrapolation extrapolation = {lp, (float)((lp->momentum - 1) / next)};
    dcrf_parallel_for(pool, model->variables, GRAIN, extrapolate, &extrapolation);
    lp->momentum = next;
    lp->steps_at_epsilon++;
    return DCRF_OK;
}
