/* The update of mean field on the CPU (the mathematics: meanfield/mean_field.c): the cliques' part,
 * the message through the operators, and one pass that computes the logits, their softmax and the
 * sums of the free energy (energy/update.c). */
#include "backend/clique_terms.h"
#include "backend/cpu/iterate.h"
#include "core/error.h"
#include "core/memory.h"
#include "dsp/dsp.h"
#include "energy/energy.h"
#include "energy/update.h"

#include <math.h>
#include <string.h>

struct mean_field {
    dcrf_backend_iterate base;
    float *message; /* the workspace's memory, taken anew for every pass */
    float *logits;  /* of the last update; NULL: none was damped yet */
    bool has_logits;
    float *cold_unary; /* the unaries times the coldness; NULL: the coldness is always 1 */
    float coldness;

    /* Cliques; NULL if there are none. */
    float *extra;      /* block: their part of the logits, zero for variables in none */
    double *scratch;   /* two rows of labels per worker */
    double *agreement; /* per clique, sum_i prod_a Q_ai */
};

static struct mean_field *mean_field_of(dcrf_backend_iterate *iterate) {
    return (struct mean_field *)iterate;
}

static void free_mean_field(dcrf_backend_iterate *iterate) {
    struct mean_field *mf = mean_field_of(iterate);
    dcrf_release(mf->base.y);
    dcrf_release(mf->logits);
    dcrf_release(mf->cold_unary);
    dcrf_release(mf->extra);
    dcrf_release(mf->scratch);
    dcrf_release(mf->agreement);
    dcrf_release(mf);
}

static bool take_cliques(struct mean_field *mf) {
    const dcrf_model *model = mf->base.model;
    const size_t cliques = dcrf_cpu_clique_count(&mf->base);
    const size_t threads = dcrf_workspace_threads(mf->base.coupling->workspace);
    if (cliques == 0)
        return true;
    mf->extra = dcrf_allocate_zero(model->variables, model->stride * sizeof(float));
    mf->scratch = dcrf_allocate(threads, 2 * model->labels * sizeof(double));
    mf->agreement = dcrf_allocate(cliques, sizeof(double));
    return mf->extra && mf->scratch && mf->agreement;
}

static dcrf_status take_message(struct mean_field *mf, dcrf_error *error) {
    const dcrf_model *model = mf->base.model;
    mf->message = dcrf_workspace_slot(mf->base.coupling->workspace, &dcrf_filtered_slot,
                                      model->variables, model->stride * sizeof(float));
    return mf->message ? DCRF_OK : dcrf_fail_memory(error, "mean field");
}

static bool take_memory(struct mean_field *mf, enum dcrf_backend_use use) {
    const size_t n = mf->base.model->variables, row = mf->base.model->stride * sizeof(float);
    mf->base.y = dcrf_allocate(n, row);
    if (!mf->base.y)
        return false;
    dcrf_parallel_clear(mf->base.pool, mf->base.y, n * row);
    if (use == DCRF_BACKEND_FOR_ANNEALING && !(mf->cold_unary = dcrf_allocate(n, row)))
        return false;
    return take_cliques(mf);
}

dcrf_status dcrf_cpu_mean_field_make(dcrf_backend_iterate **out,
                                     const struct dcrf_backend_model *model,
                                     enum dcrf_backend_use use, dcrf_error *error) {
    struct mean_field *mf = dcrf_allocate_zero(1, sizeof *mf);
    *out = NULL;
    if (!mf)
        return dcrf_fail_memory(error, "mean field");
    dcrf_cpu_iterate_init(&mf->base, model, free_mean_field);
    if (!take_memory(mf, use)) {
        free_mean_field(&mf->base);
        return dcrf_fail_memory(error, "mean field");
    }
    *out = &mf->base;
    return DCRF_OK;
}

/* ---- logits and coldness -------------------------------------------------------------------- */

static struct dcrf_update update_of(const struct mean_field *mf, float damping) {
    return (struct dcrf_update){.coupling = mf->base.coupling,
                                .unary = mf->cold_unary ? mf->cold_unary : mf->base.model->unary,
                                .extra = mf->extra,
                                .coldness = mf->coldness,
                                .damping = damping,
                                .message = mf->message,
                                .logits = mf->has_logits ? mf->logits : NULL,
                                .q = mf->base.y,
                                .next = mf->base.y};
}

/* s = ln q, up to a constant per row: the logits that give q. */
static void recover_logits(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct mean_field *mf = context;
    const size_t stride = mf->base.model->stride;
    for (size_t k = begin * stride; k < end * stride; k++)
        mf->logits[k] = logf(dcrf_positive(mf->base.y[k]));
}

static void cool_unary(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct mean_field *mf = context;
    const size_t stride = mf->base.model->stride;
    for (size_t k = begin * stride; k < end * stride; k++)
        mf->cold_unary[k] = mf->coldness * mf->base.model->unary[k];
}

static void set_coldness(struct mean_field *mf, float coldness) {
    mf->coldness = coldness;
    if (mf->cold_unary)
        dcrf_parallel_rows(mf->base.pool, mf->base.model->variables, cool_unary, mf);
}

static double entropy_rows(void *context, size_t begin, size_t end) {
    const struct mean_field *mf = context;
    const size_t stride = mf->base.model->stride;
    double sum = 0;
    for (size_t k = begin * stride; k < end * stride; k++)
        if (mf->base.y[k] > 0)
            sum += (double)mf->base.y[k] * log((double)mf->base.y[k]);
    return sum;
}

dcrf_status dcrf_cpu_mean_field_start(dcrf_backend_iterate *iterate, const float *q, float coldness,
                                      double *entropy, dcrf_error *error) {
    (void)error;
    struct mean_field *mf = mean_field_of(iterate);
    const dcrf_model *model = iterate->model;
    double sums[DCRF_SOFTMAX_SUMS];
    mf->has_logits = false;
    if (q) {
        dcrf_parallel_copy(iterate->pool, iterate->y, q,
                           model->variables * model->stride * sizeof *q);
        if (entropy)
            *entropy = dcrf_parallel_sum(iterate->pool, model->variables, entropy_rows, mf);
        return DCRF_OK;
    }
    mf->message = iterate->y; /* finite numbers, whose factor is zero */
    set_coldness(mf, coldness);
    const struct dcrf_update update = update_of(mf, 0);
    dcrf_update_start(&update, entropy ? sums : NULL);
    if (entropy)
        *entropy = sums[DCRF_SOFTMAX_ENTROPY];
    return DCRF_OK;
}

/* ---- cliques -------------------------------------------------------------------------------- */

/* logs[i] = sum over the members of ln Q_ai */
static void sum_logarithms(const struct mean_field *mf, const uint32_t *members, size_t count,
                           double *logs, double *product) {
    const dcrf_model *model = mf->base.model;
    const size_t labels = model->labels;
    memset(logs, 0, labels * sizeof *logs);
    for (size_t first = 0; first < count; first += DCRF_FACTORS_PER_LOG) {
        const size_t end =
            count - first < DCRF_FACTORS_PER_LOG ? count : first + DCRF_FACTORS_PER_LOG;
        for (size_t i = 0; i < labels; i++)
            product[i] = 1;
        for (size_t c = first; c < end; c++) {
            const float *q = mf->base.y + members[c] * model->stride;
            for (size_t i = 0; i < labels; i++)
                product[i] *= (double)dcrf_positive(q[i]);
        }
        for (size_t i = 0; i < labels; i++)
            logs[i] += log(product[i]);
    }
}

static void update_cliques(void *context, size_t begin, size_t end, size_t worker) {
    const struct mean_field *mf = context;
    const dcrf_model *model = mf->base.model;
    const struct dcrf_cliques *cliques = mf->base.cliques;
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
                mf->extra[at] = (float)(cliques->costs[p] * dcrf_without(logs[i], mf->base.y[at]));
            }
        }
    }
}

/* The clique part of the logits into `extra`; returns the expected cost of the cliques. */
static double add_cliques(struct mean_field *mf) {
    const size_t count = dcrf_cpu_clique_count(&mf->base);
    double cost = 0;
    dcrf_parallel_for(mf->base.pool, count, DCRF_CLIQUES_PER_CHUNK, update_cliques, mf);
    for (size_t p = 0; p < count; p++)
        cost += mf->base.cliques->costs[p] * (1 - mf->agreement[p]);
    return cost;
}

/* ---- the step ------------------------------------------------------------------------------- */

dcrf_status dcrf_cpu_mean_field_step(dcrf_backend_iterate *iterate,
                                     const struct dcrf_backend_update *how, double *sums,
                                     dcrf_error *error) {
    struct mean_field *mf = mean_field_of(iterate);
    const dcrf_model *model = iterate->model;
    double found[DCRF_BACKEND_UPDATE_SUMS];
    dcrf_status status = take_message(mf, error);
    if (status < 0)
        return status;
    if (how->damping > 0 && !mf->logits &&
        !(mf->logits = dcrf_allocate(model->variables, model->stride * sizeof *mf->logits)))
        return dcrf_fail_memory(error, "damped mean field");
    if (how->damping > 0 && !mf->has_logits) {
        dcrf_parallel_rows(iterate->pool, model->variables, recover_logits, mf);
        mf->has_logits = true;
    }
    set_coldness(mf, how->coldness);
    found[DCRF_BACKEND_CLIQUE_COST] = add_cliques(mf);
    const struct dcrf_update update = update_of(mf, how->damping);
    status = dcrf_update_step(&update, sums ? found : NULL, error);
    if (status == DCRF_OK && sums)
        memcpy(sums, found, sizeof found);
    return status;
}
