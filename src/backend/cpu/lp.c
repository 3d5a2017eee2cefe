/* The steps of the LP by Huber continuation on the CPU (the mathematics: lp/lp_huber.c). */
#include "backend/cpu/clique_dual.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/pair_dual.h"
#include "backend/cpu/simplex.h"
#include "core/error.h"
#include "core/memory.h"
#include "round/round.h"

#include <math.h>
#include <string.h>

#define GRAIN 1024

struct dcrf_backend_lp {
    const struct dcrf_dual_space *space;
    const dcrf_model *model;
    dcrf_pool *pool;
    struct dcrf_pair_filter pairs;
    struct dcrf_clique_dual cliques;
    struct dcrf_dual dual[DCRF_BACKEND_DUALS];
    float *y;            /* the iterate: rows are distributions */
    float *previous;     /* y before the last step */
    float *z;            /* where the gradient is taken */
    const float *metric; /* the caller's */
    double epsilon;      /* of the step in hand */
    float beta;          /* likewise */
};

/* ---- memory --------------------------------------------------------------------------------- */

static void free_lp(dcrf_backend_lp *lp) {
    dcrf_pair_filter_clear(&lp->pairs);
    dcrf_clique_dual_clear(&lp->cliques);
    for (size_t k = 0; k < DCRF_BACKEND_DUALS; k++)
        dcrf_dual_clear(&lp->dual[k]);
    dcrf_release(lp->y);
    dcrf_release(lp->previous);
    dcrf_release(lp->z);
    dcrf_release(lp);
}

static dcrf_status take_memory(dcrf_backend_lp *lp, dcrf_error *error) {
    const size_t n = lp->model->variables, row = lp->model->stride * sizeof(float);
    lp->y = dcrf_allocate_zero(n, row);
    lp->previous = dcrf_allocate_zero(n, row);
    lp->z = dcrf_allocate_zero(n, row);
    if (!lp->y || !lp->previous || !lp->z)
        return dcrf_fail_memory(error, "the LP relaxation");
    dcrf_status status = dcrf_pair_filter_init(&lp->pairs, lp->space, error);
    if (status == DCRF_OK)
        status = dcrf_clique_dual_init(&lp->cliques, lp->space, error);
    for (size_t k = 0; k < DCRF_BACKEND_DUALS && status == DCRF_OK; k++)
        status = dcrf_dual_init(&lp->dual[k], lp->space, error);
    return status;
}

static dcrf_status make_lp(dcrf_backend_lp **out, dcrf_backend_device *device,
                           const struct dcrf_backend_model *model,
                           const struct dcrf_dual_space *space, dcrf_error *error) {
    (void)device;
    *out = NULL;
    dcrf_backend_lp *lp = dcrf_allocate_zero(1, sizeof *lp);
    if (!lp)
        return dcrf_fail_memory(error, "the LP relaxation");
    lp->space = space;
    lp->model = model->plan->model;
    lp->pool = dcrf_workspace_pool(model->workspace);
    const dcrf_status status = take_memory(lp, error);
    if (status < 0)
        free_lp(lp);
    else
        *out = lp;
    return status;
}

/* ---- from and to the caller ----------------------------------------------------------------- */

static dcrf_status start(dcrf_backend_lp *lp, const float *y, const uint16_t *labels,
                         const float *metric, dcrf_error *error) {
    (void)error;
    const dcrf_model *model = lp->model;
    lp->metric = metric;
    dcrf_dual_reset(&lp->dual[DCRF_BACKEND_AVERAGE], lp->space);
    if (y)
        memcpy(lp->y, y, model->variables * model->stride * sizeof *y);
    else
        dcrf_round_inverse(labels, model->variables, model->stride, lp->y);
    return DCRF_OK;
}

static dcrf_status restart(dcrf_backend_lp *lp, dcrf_error *error) {
    (void)error;
    memcpy(lp->z, lp->y, lp->model->variables * lp->model->stride * sizeof *lp->z);
    return DCRF_OK;
}

static const float *view(const dcrf_backend_lp *lp) {
    return lp->y;
}

static dcrf_status read_marginals(dcrf_backend_lp *lp, enum dcrf_backend_marginals which,
                                  float *block, dcrf_error *error) {
    (void)error;
    memcpy(block, which == DCRF_BACKEND_Y ? lp->y : lp->z,
           lp->model->variables * lp->model->stride * sizeof *block);
    return DCRF_OK;
}

static dcrf_status read_labels(dcrf_backend_lp *lp, uint16_t *labels, dcrf_error *error) {
    (void)error;
    const dcrf_model *model = lp->model;
    const struct dcrf_marginals rows = {lp->y, model->variables, model->labels, model->stride};
    dcrf_round_largest(&rows, lp->pool, labels);
    return DCRF_OK;
}

static bool view_best(const dcrf_backend_lp *lp, double **pairwise, double **clique) {
    *pairwise = lp->dual[DCRF_BACKEND_BEST].pairwise;
    *clique = lp->dual[DCRF_BACKEND_BEST].clique;
    return true;
}

static dcrf_status read_best(dcrf_backend_lp *lp, double *pairwise, double *clique,
                             dcrf_error *error) {
    (void)error;
    const struct dcrf_dual *best = &lp->dual[DCRF_BACKEND_BEST];
    const size_t bytes = lp->model->variables * lp->model->stride * sizeof *pairwise;
    memcpy(pairwise, best->pairwise, bytes);
    if (best->clique)
        memcpy(clique, best->clique, bytes);
    return DCRF_OK;
}

static dcrf_status reset_best(dcrf_backend_lp *lp, struct dcrf_roundings roundings, double *bound,
                              dcrf_error *error) {
    (void)error;
    struct dcrf_dual *best = &lp->dual[DCRF_BACKEND_BEST];
    dcrf_dual_reset(best, lp->space);
    best->roundings = roundings;
    *bound = dcrf_dual_bound(lp->space, best);
    return DCRF_OK;
}

static dcrf_status write_best(dcrf_backend_lp *lp, const double *pairwise, dcrf_error *error) {
    (void)error;
    memcpy(lp->dual[DCRF_BACKEND_BEST].pairwise, pairwise,
           lp->model->variables * lp->model->stride * sizeof *pairwise);
    return DCRF_OK;
}

/* ---- the point of z ------------------------------------------------------------------------- */

static dcrf_status find_point(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                              double threshold, const struct dcrf_interrupt *interrupt,
                              dcrf_error *error) {
    lp->pairs.interrupt = interrupt;
    return dcrf_pair_dual(&lp->pairs, shape, lp->z, threshold, &lp->dual[DCRF_BACKEND_CURRENT],
                          error);
}

static dcrf_status find_cliques(dcrf_backend_lp *lp, double epsilon, dcrf_error *error) {
    (void)error;
    dcrf_clique_project(&lp->cliques, NULL, lp->z, epsilon, 0, &lp->dual[DCRF_BACKEND_CURRENT]);
    return DCRF_OK;
}

/* ---- the step ------------------------------------------------------------------------------- */

/* phi'z + the smoothed pairwise and clique terms as the dual point sees them. */
static double sum_objective(void *context, size_t begin, size_t end) {
    const dcrf_backend_lp *lp = context;
    const dcrf_model *model = lp->model;
    const struct dcrf_dual *current = &lp->dual[DCRF_BACKEND_CURRENT];
    double sum = 0;
    for (size_t a = begin; a < end; a++)
        for (size_t k = a * model->stride; k < a * model->stride + model->labels; k++) {
            const double dual = current->pairwise[k] + (current->clique ? current->clique[k] : 0);
            sum += (double)lp->z[k] * ((double)model->unary[k] - dual);
        }
    return sum;
}

/* y = P(z + tau (A alpha + v - phi)); returns sum_a D_a <z - y, y - previous>, which is positive
 * where the momentum points uphill. */
static double descend(void *context, size_t begin, size_t end) {
    const dcrf_backend_lp *lp = context;
    const dcrf_model *model = lp->model;
    const struct dcrf_dual *current = &lp->dual[DCRF_BACKEND_CURRENT];
    double uphill = 0;
    for (size_t a = begin; a < end; a++) {
        const size_t row = a * model->stride;
        const float tau = (float)lp->epsilon / lp->metric[a];
        float *y = lp->y + row;
        const float *z = lp->z + row;
        for (size_t i = 0; i < model->labels; i++)
            y[i] = z[i] + tau * ((float)current->pairwise[row + i] - model->unary[row + i]);
        if (current->clique)
            for (size_t i = 0; i < model->labels; i++)
                y[i] += tau * (float)current->clique[row + i];
        dcrf_simplex_project(y, model->labels);
        float sum = 0;
        for (size_t i = 0; i < model->labels; i++)
            sum += (z[i] - y[i]) * (y[i] - lp->previous[row + i]);
        uphill += (double)(lp->metric[a] * sum);
    }
    return uphill;
}

static void extrapolate(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_lp *lp = context;
    const size_t stride = lp->model->stride;
    const float *y = lp->y, *previous = lp->previous, beta = lp->beta;
    float *z = lp->z;
    for (size_t k = begin * stride; k < end * stride; k++) {
        const float value = y[k] + beta * (y[k] - previous[k]);
        z[k] = value < 0 ? 0 : value > 1 ? 1 : value;
    }
}

static void improve(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                    struct dcrf_backend_advanced *done) {
    static const enum dcrf_backend_dual targets[] = {DCRF_BACKEND_CURRENT, DCRF_BACKEND_AVERAGE};
    dcrf_dual_mix(lp->space, &lp->dual[DCRF_BACKEND_AVERAGE], &lp->dual[DCRF_BACKEND_CURRENT],
                  how->average_weight);
    for (size_t k = 0; k < DCRF_BACKEND_DUALS; k++)
        lp->dual[k].roundings = how->roundings[k];
    for (size_t t = 0; t < DCRF_BACKEND_TARGETS; t++) {
        done->weights[t] = 0;
        done->bounds[t] = -(double)INFINITY;
        if (t == DCRF_BACKEND_TO_CURRENT || how->has_average)
            done->weights[t] = dcrf_dual_improve(lp->space, &lp->dual[DCRF_BACKEND_BEST],
                                                 &lp->dual[targets[t]], &done->bounds[t]);
    }
}

static dcrf_status advance(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                           struct dcrf_backend_advanced *done, dcrf_error *error) {
    (void)error;
    const size_t n = lp->model->variables;
    float *swap = lp->previous;
    improve(lp, how, done);
    done->objective = dcrf_parallel_sum(lp->pool, n, sum_objective, lp);
    lp->previous = lp->y;
    lp->y = swap;
    lp->epsilon = how->epsilon;
    done->uphill = dcrf_parallel_sum(lp->pool, n, descend, lp);
    lp->beta = done->uphill > 0 ? 0 : how->beta;
    dcrf_parallel_for(lp->pool, n, GRAIN, extrapolate, lp);
    return DCRF_OK;
}

const struct dcrf_backend_lp_methods dcrf_cpu_lp = {
    .make = make_lp,
    .free = free_lp,
    .start = start,
    .restart = restart,
    .view = view,
    .read = read_marginals,
    .labels = read_labels,
    .view_best = view_best,
    .read_best = read_best,
    .reset_best = reset_best,
    .write_best = write_best,
    .find_point = find_point,
    .find_cliques = find_cliques,
    .advance = advance,
};
