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
 * Updating all at once can oscillate. Damping keeps a part of the old s: a step of proximal
 * gradient descent with the Kullback-Leibler divergence as distance, which decreases F when the
 * step is small enough (Baque, Bagautdinov, Fleuret and Fua 2016). Automatic damping begins at zero
 * and rises when F does.
 *
 * Where the plan is on a device, the updates are made there, and Q stays there until somebody asks
 * for it; F, damping and the stop are the same. */
#include "core/error.h"
#include "core/memory.h"
#include "dsp/dsp.h"
#include "energy/clique_terms.h"
#include "energy/coupling.h"
#include "solver/iterate.h"
#include "solver/method.h"

#include <math.h>
#include <string.h>

#define ROWS_PER_CHUNK 1024
#define CLIQUES_PER_CHUNK 8
#define MOST_DAMPING 0.95
#define FREE_ENERGY_TOLERANCE 1e-6 /* relative: what rounding can add to F */

struct mean_field {
    const struct dcrf_problem *problem;
    struct dcrf_coupling *coupling;
    float *q;
    float *message;
    float *logits; /* s of the last update; where damping is possible */
    double damping;
    bool has_logits;
    double entropy;     /* of q */
    double free_energy; /* of the q before */

    /* Cliques; NULL where there are none. */
    float *extra;      /* block: their part of s, zero for variables in none */
    double *scratch;   /* two rows of M a worker */
    double *agreement; /* per clique, sum_i prod_a Q_ai */

    struct dcrf_iterate device;
};

static void mean_field_free(void *state) {
    struct mean_field *mf = state;
    if (!mf)
        return;
    dcrf_iterate_clear(&mf->device);
    dcrf_coupling_free(&mf->coupling);
    dcrf_release(mf->q);
    dcrf_release(mf->message);
    dcrf_release(mf->logits);
    dcrf_release(mf->extra);
    dcrf_release(mf->scratch);
    dcrf_release(mf->agreement);
    dcrf_release(mf);
}

static bool take_memory(struct mean_field *mf) {
    const dcrf_model *model = mf->problem->model;
    const size_t row = model->stride * sizeof(float);
    if (mf->device.there) /* it comes here as a whole, or never */
        return (mf->q = dcrf_allocate(model->variables, row));
    mf->q = dcrf_allocate_zero(model->variables, row);
    if (!mf->q)
        return false;
    mf->message = dcrf_allocate_zero(model->variables, row);
    if (!mf->message)
        return false;
    if (mf->problem->settings->damping != 0 && !(mf->logits = dcrf_allocate(model->variables, row)))
        return false;
    if (model->cliques.count == 0)
        return true;
    mf->extra = dcrf_allocate_zero(model->variables, row);
    mf->scratch = dcrf_allocate(dcrf_workspace_threads(mf->problem->workspace),
                                2 * model->labels * sizeof(double));
    mf->agreement = dcrf_allocate(model->cliques.count, sizeof(double));
    return mf->extra && mf->scratch && mf->agreement;
}

static dcrf_status mean_field_init(void **state, const struct dcrf_problem *problem,
                                   dcrf_error *error) {
    *state = NULL;
    struct mean_field *mf = dcrf_allocate_zero(1, sizeof *mf);
    if (!mf)
        return dcrf_fail_memory(error, "mean field");
    mf->problem = problem;
    dcrf_status status = dcrf_coupling_new(&mf->coupling, problem->plan, problem->workspace, error);
    if (status == DCRF_OK)
        status = dcrf_iterate_try(&mf->device, mf->coupling, error);
    if (status == DCRF_OK && !take_memory(mf))
        status = dcrf_fail_memory(error, "mean field");
    if (status < 0) {
        mean_field_free(mf);
        return status;
    }
    *state = mf;
    return DCRF_OK;
}

/* ---- the update ----------------------------------------------------------------------------- */

static void update_rows(void *context, size_t begin, size_t end, double *sums) {
    dcrf_dsp()->softmax(context, begin, end, sums);
}

/* Q = softmax of the logits that belong to the message, with the sums of the pass. */
static void update(struct mean_field *mf, float factor, const float *diagonal, double *sums) {
    const dcrf_model *model = mf->problem->model;
    struct dcrf_softmax softmax = {.labels = model->labels,
                                   .stride = model->stride,
                                   .unary = model->unary,
                                   .message = mf->message,
                                   .diagonal = diagonal,
                                   .extra = factor != 0 ? mf->extra : NULL,
                                   .factor = factor,
                                   .own_factor = mf->coupling->own_factor,
                                   .all_factor = mf->coupling->all_factor,
                                   .damping = (float)mf->damping,
                                   .logits = mf->has_logits ? mf->logits : NULL,
                                   .q = mf->q,
                                   .next = mf->q};
    dcrf_parallel_sums(dcrf_workspace_pool(mf->problem->workspace), model->variables, update_rows,
                       &softmax, sums, DCRF_SOFTMAX_SUMS);
    mf->entropy = sums[DCRF_SOFTMAX_ENTROPY];
}

/* s = ln q, up to a constant a row: the logits that give q. */
static void recover_logits(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct mean_field *mf = context;
    const size_t stride = mf->problem->model->stride;
    for (size_t k = begin * stride; k < end * stride; k++)
        mf->logits[k] = logf(dcrf_positive(mf->q[k]));
}

static double entropy_rows(void *context, size_t begin, size_t end) {
    const struct mean_field *mf = context;
    const size_t stride = mf->problem->model->stride;
    double sum = 0;
    for (size_t k = begin * stride; k < end * stride; k++)
        if (mf->q[k] > 0)
            sum += (double)mf->q[k] * log((double)mf->q[k]);
    return sum;
}

static void set_damping(struct mean_field *mf, double damping) {
    const dcrf_model *model = mf->problem->model;
    mf->damping = damping;
    if (damping > 0 && !mf->has_logits && !mf->device.there) {
        dcrf_parallel_for(dcrf_workspace_pool(mf->problem->workspace), model->variables,
                          ROWS_PER_CHUNK, recover_logits, mf);
        mf->has_logits = true;
    }
}

static dcrf_status start_here(struct mean_field *mf, const struct dcrf_start *start) {
    const dcrf_model *model = mf->problem->model;
    double sums[DCRF_SOFTMAX_SUMS];
    if (!start->y) {
        update(mf, 0, NULL, sums); /* softmax(-unary) */
        return DCRF_OK;
    }
    memcpy(mf->q, start->y, model->variables * model->stride * sizeof *mf->q);
    mf->entropy = dcrf_parallel_sum(dcrf_workspace_pool(mf->problem->workspace), model->variables,
                                    entropy_rows, mf);
    return DCRF_OK;
}

static dcrf_status start_on_device(struct mean_field *mf, const struct dcrf_start *start,
                                   dcrf_error *error) {
    mf->device.is_ahead = true;
    return mf->device.methods->mean_field_start(mf->device.there, start->y, 1, &mf->entropy, error);
}

static dcrf_status mean_field_start(void *state, const struct dcrf_start *start,
                                    dcrf_error *error) {
    struct mean_field *mf = state;
    const double damping = mf->problem->settings->damping;
    mf->has_logits = false;
    mf->damping = 0;
    mf->free_energy = (double)INFINITY;
    const dcrf_status status =
        mf->device.there ? start_on_device(mf, start, error) : start_here(mf, start);
    if (status < 0)
        return status;
    set_damping(mf, damping > 0 ? damping : 0);
    return DCRF_OK;
}

/* ---- cliques -------------------------------------------------------------------------------- */

/* logs[i] = sum over the members of ln Q_ai */
static void sum_logarithms(const struct mean_field *mf, const uint32_t *members, size_t count,
                           double *logs, double *product) {
    const dcrf_model *model = mf->problem->model;
    const size_t labels = model->labels;
    memset(logs, 0, labels * sizeof *logs);
    for (size_t first = 0; first < count; first += DCRF_FACTORS_PER_LOG) {
        const size_t end =
            count - first < DCRF_FACTORS_PER_LOG ? count : first + DCRF_FACTORS_PER_LOG;
        for (size_t i = 0; i < labels; i++)
            product[i] = 1;
        for (size_t c = first; c < end; c++) {
            const float *q = mf->q + members[c] * model->stride;
            for (size_t i = 0; i < labels; i++)
                product[i] *= (double)dcrf_positive(q[i]);
        }
        for (size_t i = 0; i < labels; i++)
            logs[i] += log(product[i]);
    }
}

static void update_cliques(void *context, size_t begin, size_t end, size_t worker) {
    const struct mean_field *mf = context;
    const dcrf_model *model = mf->problem->model;
    const struct dcrf_cliques *cliques = &model->cliques;
    double *logs = mf->scratch + worker * 2 * model->labels;
    for (size_t p = begin; p < end; p++) {
        const uint32_t *members = cliques->members + cliques->offsets[p];
        const size_t count = cliques->offsets[p + 1] - cliques->offsets[p];
        sum_logarithms(mf, members, count, logs, logs + model->labels);
        for (size_t c = 0; c < count; c++)
            memset(mf->extra + members[c] * model->stride, 0, model->stride * sizeof(float));
        mf->agreement[p] = 0;
        for (size_t i = 0; i < model->labels; i++) {
            mf->agreement[p] += exp(logs[i]);
            if (dcrf_is_nothing(logs[i]))
                continue;
            for (size_t c = 0; c < count; c++) {
                const size_t at = members[c] * model->stride + i;
                mf->extra[at] = (float)(cliques->costs[p] * dcrf_without(logs[i], mf->q[at]));
            }
        }
    }
}

/* The clique part of s into `extra`; returns the expected cost of the cliques. */
static double add_cliques(struct mean_field *mf) {
    const struct dcrf_cliques *cliques = &mf->problem->model->cliques;
    double cost = 0;
    dcrf_parallel_for(dcrf_workspace_pool(mf->problem->workspace), cliques->count,
                      CLIQUES_PER_CHUNK, update_cliques, mf);
    for (size_t p = 0; p < cliques->count; p++)
        cost += cliques->costs[p] * (1 - mf->agreement[p]);
    return cost;
}

/* ---- the step ------------------------------------------------------------------------------- */

/* Both update q, with the sums of filter/backend.h. */
static dcrf_status step_here(struct mean_field *mf, double *sums, dcrf_error *error) {
    const dcrf_model *model = mf->problem->model;
    const bool is_potts = dcrf_coupling_is_potts(mf->coupling);
    /* For Potts the diagonal comes off in the pass of the softmax. */
    const dcrf_status status = is_potts
                                   ? dcrf_coupling_sum(mf->coupling, 0, mf->q, mf->message,
                                                       model->labels, model->stride, error)
                                   : dcrf_coupling_field(mf->coupling, mf->q, mf->message, error);
    if (status < 0)
        return status;
    sums[DCRF_BACKEND_CLIQUE_COST] = add_cliques(mf);
    update(mf, 2 * mf->coupling->own_factor, is_potts ? mf->coupling->groups[0].diagonal : NULL,
           sums);
    return DCRF_OK;
}

static dcrf_status step_on_device(struct mean_field *mf, double *sums, dcrf_error *error) {
    mf->device.is_ahead = true;
    const struct dcrf_backend_update how = {.damping = (float)mf->damping, .coldness = 1};
    const dcrf_status status =
        mf->device.methods->mean_field_step(mf->device.there, &how, sums, error);
    if (status == DCRF_OK)
        mf->entropy = sums[DCRF_SOFTMAX_ENTROPY];
    return status;
}

static dcrf_status mean_field_step(void *state, struct dcrf_step_report *report,
                                   dcrf_error *error) {
    struct mean_field *mf = state;
    const dcrf_model *model = mf->problem->model;
    const double entropy = mf->entropy;
    double sums[DCRF_BACKEND_UPDATE_SUMS];
    const dcrf_status status =
        mf->device.there ? step_on_device(mf, sums, error) : step_here(mf, sums, error);
    if (status < 0)
        return status;

    const double free_energy = sums[DCRF_SOFTMAX_ENERGY] + sums[DCRF_BACKEND_CLIQUE_COST] + entropy;
    const bool rises =
        free_energy > mf->free_energy + FREE_ENERGY_TOLERANCE * fabs(mf->free_energy);
    if (mf->problem->settings->damping == DCRF_DAMPING_AUTO && rises)
        set_damping(mf, fmin((1 + mf->damping) / 2, MOST_DAMPING));
    mf->free_energy = free_energy;
    report->objective = free_energy;
    report->stationarity = sums[DCRF_SOFTMAX_CHANGE] / (double)model->variables;
    return DCRF_OK;
}

static dcrf_status mean_field_fetch(void *state, dcrf_error *error) {
    struct mean_field *mf = state;
    return dcrf_iterate_fetch(&mf->device, mf->q, error);
}

static dcrf_status mean_field_labels(void *state, uint16_t *labels, dcrf_error *error) {
    return dcrf_iterate_labels(&((struct mean_field *)state)->device, labels, error);
}

static const float *mean_field_marginals(const void *state) {
    return ((const struct mean_field *)state)->q;
}

const struct dcrf_method_interface dcrf_mean_field = {
    .name = "mean field",
    .init = mean_field_init,
    .start = mean_field_start,
    .step = mean_field_step,
    .fetch = mean_field_fetch,
    .labels = mean_field_labels,
    .marginals = mean_field_marginals,
    .free = mean_field_free,
};
