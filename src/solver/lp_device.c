/* The line search along the way from the best point to another one asks for the slope of the bound
 * at sixteen points at once, and then at seven between two of them: the halvings that
 * dcrf_dual_improve makes one after the other, at the price of two passes. */
#include "solver/lp_device.h"

#include "core/error.h"
#include "core/memory.h"
#include "solver/lp.h"

#include <math.h>

/* ---- having it there ------------------------------------------------------------------------ */

static bool can_be_there(const struct dcrf_problem *problem, const struct dcrf_device *device) {
    const dcrf_plan *plan = problem->plan;
    bool can =
        device && problem->settings->lp.schedule == DCRF_LP_SCHEDULE_HUBER &&
        (plan->model->cliques.count == 0 || problem->settings->lp.clique_form == DCRF_CLIQUE_MIN);
    for (size_t m = 0; m < plan->kernel_count && can; m++)
        can = plan->kernels[m].op->device == device->opened;
    return can;
}

dcrf_status dcrf_lp_device_init(struct dcrf_lp *lp, dcrf_error *error) {
    const dcrf_plan *plan = lp->problem->plan;
    const dcrf_model *model = plan->model;
    const struct dcrf_device *device = dcrf_workspace_find_device(lp->problem->workspace);
    if (!can_be_there(lp->problem, device))
        return DCRF_OK;
    dcrf_operator **operators = dcrf_allocate(plan->kernel_count + 1, sizeof *operators);
    double *weights = dcrf_allocate(plan->kernel_count + 1, sizeof *weights);
    dcrf_status status = DCRF_OK;
    if (!operators || !weights)
        status = dcrf_fail_memory(error, "the LP relaxation");
    struct dcrf_backend_lp_model what = {.variables = model->variables,
                                         .labels = model->labels,
                                         .stride = model->stride,
                                         .unary = model->unary,
                                         .operators = operators,
                                         .weights = weights,
                                         .cliques =
                                             model->cliques.count > 0 ? &model->cliques : NULL};
    for (size_t m = 0; m < plan->kernel_count && status == DCRF_OK; m++)
        if (model->kernels[m].weight != 0) {
            operators[what.kernel_count] = plan->kernels[m].op;
            weights[what.kernel_count++] = model->kernels[m].weight;
        }
    if (status == DCRF_OK) {
        lp->device.methods = &device->backend->lp;
        status = lp->device.methods->make(&lp->device.state, device->opened, &what, error);
        if (status == DCRF_ERROR_UNSUPPORTED)
            status = DCRF_OK; /* here, then */
    }
    dcrf_release(operators);
    dcrf_release(weights);
    return status;
}

void dcrf_lp_device_clear(struct dcrf_lp_device *device) {
    if (device->state)
        device->methods->free(device->state);
    *device = (struct dcrf_lp_device){0};
}

/* ---- blocks --------------------------------------------------------------------------------- */

static dcrf_status find_bound(struct dcrf_lp *lp, double *bound, dcrf_error *error) {
    double sums[DCRF_BACKEND_BOUND_SUMS];
    const dcrf_status status = lp->device.methods->bound_sums(lp->device.state, sums, error);
    if (status == DCRF_OK)
        *bound = dcrf_dual_bound_of_sums(&lp->space, &lp->best, sums[DCRF_BACKEND_LOWEST],
                                         sums[DCRF_BACKEND_MAGNITUDE]);
    return status;
}

dcrf_status dcrf_lp_device_reset_best(struct dcrf_lp *lp, dcrf_error *error) {
    dcrf_dual_reset(&lp->best, &lp->space);
    lp->device.is_best_old = false;
    const dcrf_status status = lp->device.methods->write_dual(lp->device.state, DCRF_BACKEND_BEST,
                                                              NULL, lp->best.clique, error);
    return status < 0 ? status : find_bound(lp, &lp->bound, error);
}

dcrf_status dcrf_lp_device_take_best(struct dcrf_lp *lp, dcrf_error *error) {
    lp->device.is_best_old = false;
    return lp->device.methods->write_dual(lp->device.state, DCRF_BACKEND_BEST, lp->best.pairwise,
                                          lp->best.clique, error);
}

dcrf_status dcrf_lp_device_start(struct dcrf_lp *lp, dcrf_error *error) {
    const struct dcrf_backend_lp_methods *methods = lp->device.methods;
    dcrf_dual_forget(&lp->huber.average);
    lp->device.is_y_old = false;
    const dcrf_status status =
        methods->start(lp->device.state, lp->y, lp->metric, lp->cliques.stiffness, error);
    return status < 0
               ? status
               : methods->write_dual(lp->device.state, DCRF_BACKEND_AVERAGE, NULL, NULL, error);
}

dcrf_status dcrf_lp_device_fetch_y(struct dcrf_lp *lp, dcrf_error *error) {
    if (!lp->device.is_y_old)
        return DCRF_OK;
    const dcrf_status status =
        lp->device.methods->read(lp->device.state, DCRF_BACKEND_Y, lp->y, error);
    lp->device.is_y_old = status < 0;
    return status;
}

dcrf_status dcrf_lp_device_fetch_best(struct dcrf_lp *lp, dcrf_error *error) {
    if (!lp->device.is_best_old)
        return DCRF_OK;
    const dcrf_status status = lp->device.methods->read_dual(
        lp->device.state, DCRF_BACKEND_BEST, lp->best.pairwise, lp->best.clique, error);
    lp->device.is_best_old = status < 0;
    return status;
}

/* ---- the point of z ------------------------------------------------------------------------- */

/* What an operator does in double without the line itself goes through the host. */
static dcrf_status find_point_here(struct dcrf_lp *lp, const struct dcrf_pair_shape *shape,
                                   double threshold, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    dcrf_status status =
        lp->device.methods->read(lp->device.state, DCRF_BACKEND_Z, huber->z, error);
    if (status == DCRF_OK)
        status = dcrf_pair_dual(&lp->pairs, shape, huber->z, threshold, &huber->current, error);
    return status == DCRF_OK
               ? lp->device.methods->write_dual(lp->device.state, DCRF_BACKEND_CURRENT,
                                                huber->current.pairwise, NULL, error)
               : status;
}

dcrf_status dcrf_lp_device_point(struct dcrf_lp *lp, const struct dcrf_pair_shape *shape,
                                 double threshold, dcrf_error *error) {
    const struct dcrf_backend_lp_methods *methods = lp->device.methods;
    const dcrf_plan *plan = lp->problem->plan;
    struct dcrf_pair_filter *pairs = &lp->pairs;
    bool has_line = true;
    for (size_t m = 0; m < plan->kernel_count; m++)
        has_line &= plan->kernels[m].op->methods->line_double != NULL;
    if (shape->is_precise && !has_line)
        return find_point_here(lp, shape, threshold, error);
    const dcrf_levels levels = has_line ? (dcrf_levels){0} : dcrf_pair_levels(pairs, shape);
    const struct dcrf_backend_shape there = {.epsilon = shape->epsilon,
                                             .levels = &levels,
                                             .is_precise = shape->is_precise,
                                             .threshold = threshold};
    const dcrf_status status =
        methods->find_point(lp->device.state, &there, pairs->alive, &pairs->alive_count, error);
    lp->huber.current.pairwise_roundings = dcrf_pair_roundings(plan, shape);
    return status == DCRF_OK && lp->record.capacity > 0
               ? methods->read(lp->device.state, DCRF_BACKEND_Z, lp->huber.z, error)
               : status;
}

dcrf_status dcrf_lp_device_cliques(struct dcrf_lp *lp, dcrf_error *error) {
    lp->huber.current.clique_roundings = dcrf_clique_roundings(&lp->cliques);
    return lp->device.methods->find_cliques(lp->device.state, lp->huber.epsilon, error);
}

/* ---- mixtures ------------------------------------------------------------------------------- */

dcrf_status dcrf_lp_device_average(struct dcrf_lp *lp, double weight, dcrf_error *error) {
    dcrf_dual_mix_errors(&lp->huber.average, &lp->huber.current, weight);
    return lp->device.methods->mix(lp->device.state, DCRF_BACKEND_AVERAGE, DCRF_BACKEND_CURRENT,
                                   weight, error);
}

/* The last of `count` (a power of two) steps where the bound still rises, by halving: 0 where it
 * falls from the first one on. slopes[k] is that of step k + 1. */
static size_t last_rise(const double *slopes, size_t count) {
    size_t low = 0, high = count;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (slopes[middle - 1] > 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#define COARSE 16
#define FINE 8

static dcrf_status find_slopes(struct dcrf_lp *lp, enum dcrf_backend_dual to, double first,
                               double step, size_t count, double *slopes, dcrf_error *error) {
    const struct dcrf_dual *candidate =
        to == DCRF_BACKEND_AVERAGE ? &lp->huber.average : &lp->huber.current;
    const double error_slope = dcrf_dual_error_slope(&lp->space, &lp->best, candidate);
    const dcrf_status status =
        lp->device.methods->slopes(lp->device.state, to, first, step, count, slopes, error);
    for (size_t k = 0; k < count && status == DCRF_OK; k++)
        slopes[k] -= error_slope;
    return status;
}

dcrf_status dcrf_lp_device_improve(struct dcrf_lp *lp, enum dcrf_backend_dual candidate,
                                   dcrf_error *error) {
    double slopes[COARSE], weight = 1;
    dcrf_status status =
        find_slopes(lp, candidate, 1.0 / COARSE, 1.0 / COARSE, COARSE, slopes, error);
    if (status == DCRF_OK && slopes[COARSE - 1] < 0) {
        weight = (double)last_rise(slopes, COARSE) / COARSE;
        const double step = 1.0 / (COARSE * FINE);
        status = find_slopes(lp, candidate, weight + step, step, FINE - 1, slopes, error);
        weight += (double)last_rise(slopes, FINE) * step;
    }
    if (status < 0 || weight == 0)
        return status;
    dcrf_dual_mix_errors(
        &lp->best, candidate == DCRF_BACKEND_AVERAGE ? &lp->huber.average : &lp->huber.current,
        weight);
    lp->device.is_best_old = true;
    status = lp->device.methods->mix(lp->device.state, DCRF_BACKEND_BEST, candidate, weight, error);
    double bound = -(double)INFINITY;
    if (status == DCRF_OK)
        status = find_bound(lp, &bound, error);
    lp->bound = fmax(lp->bound, bound); /* what was proven stays proven */
    return status;
}

/* ---- the step ------------------------------------------------------------------------------- */

dcrf_status dcrf_lp_device_descend(struct dcrf_lp *lp, double *objective, double *uphill,
                                   dcrf_error *error) {
    double sums[DCRF_BACKEND_DESCENT_SUMS];
    const dcrf_status status =
        lp->device.methods->descend(lp->device.state, lp->huber.epsilon, sums, error);
    lp->device.is_y_old = true;
    if (status == DCRF_OK) {
        *objective = sums[DCRF_BACKEND_OBJECTIVE];
        *uphill = sums[DCRF_BACKEND_UPHILL];
    }
    return status;
}
