#include "lp/lp_device.h"

#include "core/error.h"
#include "core/memory.h"
#include "lp/lp.h"

#include <math.h>

dcrf_status dcrf_lp_device_init(struct dcrf_lp *lp, dcrf_error *error) {
    const dcrf_settings *settings = lp->problem->settings;
    struct dcrf_placed_lp_model placed;
    if (settings->lp.schedule != DCRF_LP_SCHEDULE_HUBER ||
        (lp->problem->model->cliques.count > 0 && settings->lp.clique_form != DCRF_CLIQUE_MIN))
        return DCRF_OK;
    dcrf_status status =
        dcrf_placed_lp_model_init(&placed, lp->problem->plan, lp->problem->workspace, error);
    if (status == DCRF_OK && placed.place.device) {
        lp->device.methods = placed.place.backend->lp;
        status =
            lp->device.methods->make(&lp->device.state, placed.place.device, &placed.model, error);
        if (dcrf_place_falls_back(&placed.place, status))
            status = DCRF_OK;
    }
    dcrf_placed_lp_model_clear(&placed);
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

/* Of the host's block only the cliques' part is touched. */
dcrf_status dcrf_lp_device_reset_best(struct dcrf_lp *lp, dcrf_error *error) {
    dcrf_dual_forget(&lp->best);
    dcrf_dual_reset_cliques(&lp->best, &lp->space);
    lp->device.is_best_old = true;
    const dcrf_status status = lp->device.methods->write_dual(lp->device.state, DCRF_BACKEND_BEST,
                                                              NULL, lp->best.clique, error);
    return status < 0 ? status : find_bound(lp, &lp->bound, error);
}

dcrf_status dcrf_lp_device_take_best(struct dcrf_lp *lp, dcrf_error *error) {
    lp->device.is_best_old = false;
    return lp->device.methods->write_dual(lp->device.state, DCRF_BACKEND_BEST, lp->best.pairwise,
                                          lp->best.clique, error);
}

dcrf_status dcrf_lp_device_start(struct dcrf_lp *lp, const struct dcrf_start *start,
                                 dcrf_error *error) {
    dcrf_dual_forget(&lp->huber.average);
    lp->device.is_y_old = !start->y;
    lp->device.has_stepped = false;
    return lp->device.methods->start(lp->device.state, start->y, start->labels, lp->metric,
                                     lp->cliques.stiffness, error);
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
    return status == DCRF_OK && lp->mixture.is_kept
               ? methods->read(lp->device.state, DCRF_BACKEND_Z, lp->huber.z, error)
               : status;
}

dcrf_status dcrf_lp_device_cliques(struct dcrf_lp *lp, dcrf_error *error) {
    lp->huber.current.clique_roundings = dcrf_clique_roundings(&lp->cliques);
    return lp->device.methods->find_cliques(lp->device.state, lp->huber.epsilon, error);
}

/* ---- the step ------------------------------------------------------------------------------- */

/* The best point has come `weight` of the way to another one. */
static void take_mixture(struct dcrf_lp *lp, const struct dcrf_dual *towards, double weight,
                         const double *sums) {
    if (weight == 0)
        return;
    dcrf_dual_mix_errors(&lp->best, towards, weight);
    lp->device.is_best_old = true;
    const double bound = dcrf_dual_bound_of_sums(&lp->space, &lp->best, sums[DCRF_BACKEND_LOWEST],
                                                 sums[DCRF_BACKEND_MAGNITUDE]);
    lp->bound = fmax(lp->bound, bound); /* what was proven stays proven */
}

dcrf_status dcrf_lp_device_advance(struct dcrf_lp *lp, double average_weight, bool has_average,
                                   float beta, double *uphill, dcrf_error *error) {
    struct dcrf_lp_huber *huber = &lp->huber;
    struct dcrf_backend_advanced done;
    dcrf_dual_mix_errors(&huber->average, &huber->current, average_weight);
    const struct dcrf_dual zero = {0};
    const struct dcrf_backend_advance how = {
        .average_weight = average_weight,
        .has_average = has_average,
        .errors = {[DCRF_BACKEND_CURRENT] =
                       dcrf_dual_error_slope(&lp->space, &zero, &huber->current),
                   [DCRF_BACKEND_AVERAGE] =
                       dcrf_dual_error_slope(&lp->space, &zero, &huber->average),
                   [DCRF_BACKEND_BEST] = dcrf_dual_error_slope(&lp->space, &zero, &lp->best)},
        .epsilon = huber->epsilon,
        .beta = beta};
    const dcrf_status status = lp->device.methods->advance(lp->device.state, &how, &done, error);
    lp->device.is_y_old = true;
    lp->device.has_stepped = status == DCRF_OK;
    if (status < 0)
        return status;
    take_mixture(lp, &huber->current, done.weights[DCRF_BACKEND_TO_CURRENT],
                 done.bounds[DCRF_BACKEND_TO_CURRENT]);
    if (has_average)
        take_mixture(lp, &huber->average, done.weights[DCRF_BACKEND_TO_AVERAGE],
                     done.bounds[DCRF_BACKEND_TO_AVERAGE]);
    huber->objective = done.objective;
    *uphill = done.uphill;
    return DCRF_OK;
}
