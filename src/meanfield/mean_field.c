/* Mean field: the distribution prod_a Q_a(x_a) closest to exp(-E) in Kullback-Leibler divergence.
 *
 * It minimizes the free energy
 *
 *   F(Q) = sum_ai Q_ai phi_ai + Q' Psi Q + sum_p C_p (1 - sum_i prod_{a in p} Q_ai)
 *        + sum_ai Q_ai ln Q_ai
 *
 * (Psi: energy/coupling.h; pairs are ordered, so the gradient of Q' Psi Q is 2 Psi Q). Its
 * stationary points are the fixed points of the update of all variables at once (Kraehenbuehl and
 * Koltun 2011; the clique term: Vineet, Warrell and Torr 2012)
 *
 *   s_ai = -phi_ai - 2 (Psi Q)_ai + C_p prod_{b in p, b != a} Q_bi,   Q_a = softmax(s_a).
 *
 * The clique term is C_p minus the expected cost of label i given the other members. A product over
 * 10,000 members is exp of a sum of logarithms; the logarithms are taken of products of
 * DCRF_FACTORS_PER_LOG members, which fit in a double.
 *
 * Updating all at once can oscillate. Damping keeps a fraction of the old s: this is a step of
 * proximal gradient descent with the Kullback-Leibler divergence as distance, which decreases F
 * when the step is small enough (Baque, Bagautdinov, Fleuret and Fua 2016). Automatic damping
 * starts at zero and increases when F does.
 *
 * A backend (backend/backend.h) performs the updates and keeps Q; F and the damping are computed
 * here. */
#include "backend/iterate.h"
#include "core/error.h"
#include "method/method.h"

#include <math.h>

#define MOST_DAMPING 0.95
#define FREE_ENERGY_TOLERANCE 1e-6 /* relative: rounding can raise F by this much */

struct mean_field {
    struct dcrf_iterate marginals; /* first: see backend/iterate.h */
    const struct dcrf_problem *problem;
    double damping;
    double entropy;     /* of q */
    double free_energy; /* of the previous q */
};

static dcrf_status mean_field_init(void **state, const struct dcrf_problem *problem,
                                   dcrf_error *error) {
    TRY(dcrf_iterate_new(state, sizeof(struct mean_field), problem->coupling,
                         DCRF_BACKEND_FOR_MEAN_FIELD, error));
    ((struct mean_field *)*state)->problem = problem;
    return DCRF_OK;
}

static dcrf_status mean_field_start(void *state, const struct dcrf_start *start,
                                    dcrf_error *error) {
    struct mean_field *mf = state;
    struct dcrf_iterate *q = &mf->marginals;
    mf->damping = fmax(mf->problem->settings->damping, 0); /* automatic: starts at 0 */
    mf->free_energy = (double)INFINITY;
    q->is_copy_old = true;
    return q->methods->mean_field_start(q->iterate, start->y, 1, &mf->entropy, error);
}

static dcrf_status mean_field_step(void *state, struct dcrf_step_report *report,
                                   dcrf_error *error) {
    struct mean_field *mf = state;
    struct dcrf_iterate *q = &mf->marginals;
    const struct dcrf_backend_update how = {.damping = (float)mf->damping, .coldness = 1};
    double sums[DCRF_BACKEND_UPDATE_SUMS];
    q->is_copy_old = true;
    const dcrf_status status = q->methods->mean_field_step(q->iterate, &how, sums, error);
    if (status < 0)
        return status;

    const double free_energy =
        sums[DCRF_SOFTMAX_ENERGY] + sums[DCRF_BACKEND_CLIQUE_COST] + mf->entropy;
    const bool rises =
        free_energy > mf->free_energy + FREE_ENERGY_TOLERANCE * fabs(mf->free_energy);
    if (mf->problem->settings->damping == DCRF_DAMPING_AUTO && rises)
        mf->damping = fmin((1 + mf->damping) / 2, MOST_DAMPING);
    mf->entropy = sums[DCRF_SOFTMAX_ENTROPY];
    mf->free_energy = free_energy;
    report->objective = free_energy;
    report->stationarity = sums[DCRF_SOFTMAX_CHANGE] / (double)mf->problem->model->variables;
    return DCRF_OK;
}

const struct dcrf_method_interface dcrf_mean_field = {
    .name = "mean field",
    .init = mean_field_init,
    .start = mean_field_start,
    .step = mean_field_step,
    .fetch = dcrf_iterate_fetch,
    .labels = dcrf_iterate_labels,
    .marginals = dcrf_iterate_view,
    .free = dcrf_iterate_free,
};
