/* The best dual point is a mixture of all points so far, some hundreds. Only a few parts are kept:
 * the two consecutive parts of equal epsilon with the least weight are replaced by the point of
 * their mean y. This is not the mean of their points, but F is linear where it is not clipped, and
 * if both are clipped on the same side, so is the mean: little is lost, and less with more parts
 * (docs/reference/certificate.md has figures). Every y gives a feasible point, so the kept parts
 * prove a valid bound of their own. */
#include "lp/lp_mixture.h"

#include "core/error.h"
#include "core/memory.h"
#include "lp/lp.h"

#include <math.h>
#include <string.h>

enum { BEST, AVERAGE, CURRENT, DUALS };

static void find_duals(struct dcrf_lp *lp, struct dcrf_dual **duals) {
    duals[BEST] = &lp->best;
    duals[AVERAGE] = &lp->huber.average;
    duals[CURRENT] = &lp->huber.current;
}

/* A proof that is no certificate sums up the parts in double too, where that is not slow, and pays:
 * exact operators sum with less rounding error than the fast ones, and in double only pair by
 * pair. */
static bool wants_parts(const struct dcrf_lp *lp) {
    const dcrf_plan *plan = lp->problem->plan;
    const dcrf_proving proof = lp->problem->settings->proof;
    return lp->schedule == &dcrf_lp_huber &&
           (proof == DCRF_PROVE_CERTIFICATE ||
            (proof == DCRF_PROVE_VARIABLES && dcrf_plan_is_reproducible(plan) &&
             !dcrf_plan_is_exact(plan)));
}

dcrf_status dcrf_lp_mixture_init(struct dcrf_lp *lp, dcrf_error *error) {
    struct dcrf_dual *duals[DUALS];
    if (!wants_parts(lp))
        return DCRF_OK;
    find_duals(lp, duals);
    for (size_t d = 0; d < DUALS; d++) {
        dcrf_release(duals[d]->part_weights);
        duals[d]->part_weights =
            dcrf_allocate_zero(DCRF_LP_MOST_PARTS, sizeof *duals[d]->part_weights);
        if (!duals[d]->part_weights)
            return dcrf_fail_memory(error, "the LP's dual point");
        duals[d]->part_room = DCRF_LP_MOST_PARTS;
    }
    lp->mixture.is_kept = true;
    return DCRF_OK;
}

void dcrf_lp_mixture_clear(struct dcrf_lp_mixture *mixture) {
    for (size_t k = 0; k < mixture->count; k++)
        dcrf_release(mixture->parts[k].y);
    *mixture = (struct dcrf_lp_mixture){0};
}

static double weight_of(struct dcrf_dual **duals, size_t part) {
    return duals[BEST]->part_weights[part] + duals[AVERAGE]->part_weights[part];
}

static void drop(struct dcrf_lp_mixture *mixture, struct dcrf_dual **duals, size_t part) {
    const size_t behind = mixture->count - part - 1;
    dcrf_release(mixture->parts[part].y);
    memmove(mixture->parts + part, mixture->parts + part + 1, behind * sizeof *mixture->parts);
    mixture->count--;
    for (size_t d = 0; d < DUALS; d++) {
        double *weights = duals[d]->part_weights;
        memmove(weights + part, weights + part + 1, behind * sizeof *weights);
        weights[mixture->count] = 0;
    }
}

/* Part `at` becomes the weighted mean of itself and the next one. */
static void merge(struct dcrf_lp *lp, struct dcrf_dual **duals, size_t at) {
    const size_t cells = lp->problem->model->variables * lp->problem->model->stride;
    float *into = lp->mixture.parts[at].y;
    const float *from = lp->mixture.parts[at + 1].y;
    const double one = weight_of(duals, at), other = weight_of(duals, at + 1);
    const float share = (float)(one + other > 0 ? other / (one + other) : 0.5);
    for (size_t k = 0; k < cells; k++)
        into[k] += share * (from[k] - into[k]);
    for (size_t d = 0; d < DUALS; d++)
        duals[d]->part_weights[at] += duals[d]->part_weights[at + 1];
    drop(&lp->mixture, duals, at + 1);
}

/* Make room for one more part. */
static void make_room(struct dcrf_lp *lp, struct dcrf_dual **duals) {
    struct dcrf_lp_mixture *mixture = &lp->mixture;
    for (size_t k = mixture->count; k-- > 0;)
        if (!(weight_of(duals, k) > 0))
            drop(mixture, duals, k);
    if (mixture->count < DCRF_LP_MOST_PARTS)
        return;
    size_t least = 0;
    double least_weight = INFINITY;
    for (size_t k = 0; k + 1 < mixture->count; k++) {
        const double weight = weight_of(duals, k) + weight_of(duals, k + 1);
        const bool is_one = mixture->parts[k].epsilon == mixture->parts[k + 1].epsilon;
        if (weight + (is_one ? 0 : 4) < least_weight) {
            least = k;
            least_weight = weight + (is_one ? 0 : 4);
        }
    }
    merge(lp, duals, least);
}

dcrf_status dcrf_lp_mixture_add(struct dcrf_lp *lp, struct dcrf_dual *dual,
                                const struct dcrf_pair_shape *shape, float **y, dcrf_error *error) {
    struct dcrf_lp_mixture *mixture = &lp->mixture;
    const size_t cells = lp->problem->model->variables * lp->problem->model->stride;
    struct dcrf_dual *duals[DUALS];
    *y = NULL;
    if (!mixture->is_kept)
        return DCRF_OK;
    find_duals(lp, duals);
    memset(dual->part_weights, 0, dual->part_room * sizeof *dual->part_weights);
    make_room(lp, duals);
    struct dcrf_lp_part *part = &mixture->parts[mixture->count];
    *part = (struct dcrf_lp_part){.epsilon = shape->epsilon, .bins = shape->bins};
    part->y = dcrf_allocate(cells, sizeof *part->y);
    if (!part->y)
        return dcrf_fail_memory(error, "the LP's dual point");
    *y = part->y;
    dual->part_weights[mixture->count++] = 1;
    return DCRF_OK;
}
