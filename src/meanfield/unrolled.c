/* Mean field with a fixed number of updates, and its derivatives by backpropagation through them:
 *
 *   q_t = softmax(-s_t),  s_0 = phi,  s_t = phi + 2 sum_m w_m mu_m (K_m - diag) q_{t-1}.
 *
 * A derivative g of the loss with respect to q_t gives e_i = dL/ds_i = -q_i (g_i - sum_k q_k g_k)
 * row by row, and one with respect to ln q_t gives e_i = -g_i + q_i sum_k g_k, which does not
 * require q_i > 0; e is added to the derivative of phi, and energy/pair_gradient.h propagates it to
 * the parameters and to q_{t-1}. Every q_t is kept; its filtered versions are recomputed. */
#include "core/error.h"
#include "core/memory.h"
#include "dsp/dsp.h"
#include "energy/pair_gradient.h"
#include "energy/update.h"

#include <math.h>
#include <string.h>

struct dcrf_unrolled {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    struct dcrf_coupling *coupling; /* of the last forward run */
    size_t iterations;
    float **q;      /* iterations + 1 blocks of the model's stride */
    float *message; /* a block; holds e in the backward pass */
    float *logits;  /* a block: -s of the last update */
    float *derivative;
    bool has_run;
    size_t model_revision; /* of the model in that run */
};

static dcrf_status check_cliques(const dcrf_model *model, dcrf_error *error) {
    if (model->cliques.count == 0)
        return DCRF_OK;
    return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                     "mean field with derivatives knows no cliques; the model has %zu",
                     model->cliques.count);
}

dcrf_status dcrf_unrolled_new(dcrf_unrolled **out, const dcrf_plan *plan, dcrf_workspace *workspace,
                              size_t iterations, dcrf_error *error) {
    if (!out || !plan || !workspace)
        return dcrf_fail_null(error, "the place for the run, the plan or the workspace");
    DCRF_ENTER(workspace, error);
    const dcrf_model *model = plan->model;
    *out = NULL;
    TRY(dcrf_plan_check(plan, error));
    TRY(check_cliques(model, error));
    dcrf_unrolled *u = dcrf_allocate_zero(1, sizeof *u);
    if (!u)
        return dcrf_fail_memory(error, "mean field with derivatives");
    u->plan = plan;
    dcrf_plan_hold(plan);
    u->workspace = workspace;
    dcrf_workspace_hold(workspace);
    u->iterations = iterations;
    const size_t row = model->stride * sizeof(float);
    u->q = iterations < SIZE_MAX ? dcrf_allocate_zero(iterations + 1, sizeof *u->q) : NULL;
    u->message = dcrf_allocate_zero(model->variables, row);
    u->logits = dcrf_allocate_zero(model->variables, row);
    u->derivative = dcrf_allocate_zero(model->variables, row);
    bool is_complete = u->q && u->message && u->logits && u->derivative;
    for (size_t t = 0; is_complete && t <= iterations; t++) {
        u->q[t] = dcrf_allocate_zero(model->variables, row);
        is_complete = u->q[t] != NULL;
    }
    if (!is_complete) {
        dcrf_unrolled_free(&u);
        return dcrf_fail_memory(error, "mean field with derivatives");
    }
    *out = u;
    return DCRF_OK;
}

void dcrf_unrolled_free(dcrf_unrolled **pointer) {
    if (!pointer || !*pointer)
        return;
    dcrf_unrolled *u = *pointer;
    dcrf_plan *plan = (dcrf_plan *)u->plan;
    dcrf_workspace *workspace = u->workspace;
    for (size_t t = 0; u->q && t <= u->iterations; t++)
        dcrf_release(u->q[t]);
    dcrf_release(u->q);
    dcrf_release(u->message);
    dcrf_release(u->logits);
    dcrf_release(u->derivative);
    dcrf_coupling_free(&u->coupling);
    dcrf_release(u);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    *pointer = NULL;
}

static dcrf_status check_stride(const dcrf_model *model, size_t stride, dcrf_error *error) {
    if (stride < model->stride || stride % DCRF_NARROW_LANES != 0)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "a block of %zu labels needs a stride of at least %zu floats that is a "
                         "multiple of %d, not %zu",
                         model->labels, model->stride, DCRF_NARROW_LANES, stride);
    return DCRF_OK;
}

/* Has the caller's array room for a block, padding included? */
static dcrf_status check_block(const dcrf_model *model, const float *block, size_t count,
                               size_t stride, const char *what, dcrf_error *error) {
    TRY(check_stride(model, stride, error));
    return dcrf_check_rows(block, count, model->variables, stride, stride, what, error);
}

/* ---- forward -------------------------------------------------------------------------------- */

/* q_t from q_{t-1}, or the first from the unary energies alone. */
static dcrf_status update(dcrf_unrolled *u, size_t t, dcrf_error *error) {
    const struct dcrf_update update = {.coupling = u->coupling,
                                       .unary = u->plan->model->unary,
                                       .coldness = 1,
                                       .message = u->message,
                                       .logits = t == u->iterations ? u->logits : NULL,
                                       .q = u->q[t > 0 ? t - 1 : 0],
                                       .next = u->q[t]};
    if (t > 0)
        return dcrf_update_step(&update, NULL, error);
    dcrf_update_start(&update, NULL);
    return DCRF_OK;
}

static void clear_masked(const dcrf_model *model, const uint8_t *mask, float *q) {
    for (size_t a = 0; mask && a < model->variables; a++)
        if (!mask[a])
            memset(q + a * model->stride, 0, model->stride * sizeof *q);
}

dcrf_status dcrf_unrolled_forward(dcrf_unrolled *u, const uint8_t *mask, float *q, size_t count,
                                  size_t stride, dcrf_error *error) {
    if (!u)
        return dcrf_fail_null(error, "the run");
    DCRF_ENTER(u->workspace, error);
    const dcrf_model *model = u->plan->model;
    struct dcrf_coupling *coupling;
    TRY(check_cliques(model, error)); /* which may have been added since */
    TRY(check_block(model, q, count, stride, "q", error));
    TRY(dcrf_coupling_new(&coupling, u->plan, u->workspace, error));
    dcrf_coupling_free(&u->coupling);
    u->coupling = coupling;
    u->has_run = false;
    memset(u->message, 0, model->variables * model->stride * sizeof *u->message);
    for (size_t t = 0; t <= u->iterations; t++) {
        TRY(update(u, t, error));
        clear_masked(model, mask, u->q[t]);
    }
    for (size_t a = 0; a < model->variables; a++)
        memcpy(q + a * stride, u->q[u->iterations] + a * model->stride, model->stride * sizeof *q);
    u->has_run = true;
    u->model_revision = model->revision;
    return DCRF_OK;
}

struct logarithms {
    const dcrf_unrolled *unrolled;
    float *out;
    size_t stride;
};

static void log_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct logarithms *logarithms = context;
    const dcrf_unrolled *u = logarithms->unrolled;
    const size_t stride = u->plan->model->stride, labels = u->plan->model->labels;
    for (size_t a = begin; a < end; a++) {
        const float *s = u->logits + a * stride, *q = u->q[u->iterations] + a * stride;
        float *out = logarithms->out + a * logarithms->stride, most = s[0], total = 0;
        double sum = 0;
        for (size_t i = 0; i < labels; i++) {
            most = s[i] > most ? s[i] : most;
            total += q[i];
        }
        for (size_t i = 0; i < labels; i++)
            sum += exp((double)s[i] - (double)most);
        const double lowered = (double)most + log(sum);
        for (size_t i = 0; i < logarithms->stride; i++)
            out[i] = i < labels && total > 0 ? (float)((double)s[i] - lowered) : 0;
    }
}

dcrf_status dcrf_unrolled_log_q(dcrf_unrolled *u, float *log_q, size_t count, size_t stride,
                                dcrf_error *error) {
    if (!u)
        return dcrf_fail_null(error, "the run");
    DCRF_ENTER(u->workspace, error);
    TRY(check_block(u->plan->model, log_q, count, stride, "ln q", error));
    if (!u->has_run)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the forward run comes first");
    struct logarithms logarithms = {.unrolled = u, .out = log_q, .stride = stride};
    dcrf_parallel_rows(dcrf_workspace_pool(u->workspace), u->plan->model->variables, log_rows,
                       &logarithms);
    return DCRF_OK;
}

/* ---- backward ------------------------------------------------------------------------------- */

struct back {
    const dcrf_model *model;
    const float *q;
    const float *derivative; /* of the loss with respect to q or ln q */
    bool is_by_logarithm;
    float *e;
    float *unary; /* e is added to it; may be NULL */
    size_t unary_stride;
};

static void back_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct back *back = context;
    const size_t stride = back->model->stride, labels = back->model->labels;
    for (size_t a = begin; a < end; a++) {
        const float *q = back->q + a * stride, *g = back->derivative + a * stride;
        float *e = back->e + a * stride;
        double mean = 0, total = 0;
        /* Where q is zero, the derivative may be anything, even NaN if the loss contains a
         * logarithm. */
        for (size_t i = 0; i < labels; i++) {
            total += (double)q[i];
            if (back->is_by_logarithm)
                mean += (double)g[i];
            else if (q[i] > 0)
                mean += (double)q[i] * (double)g[i];
        }
        for (size_t i = 0; i < labels; i++) {
            if (back->is_by_logarithm)
                e[i] = total > 0 ? (float)((double)q[i] * mean - (double)g[i]) : 0;
            else
                e[i] = q[i] > 0 ? (float)(-(double)q[i] * ((double)g[i] - mean)) : 0;
            if (back->unary)
                back->unary[a * back->unary_stride + i] += e[i];
        }
        for (size_t i = labels; i < stride; i++)
            e[i] = 0;
    }
}

static dcrf_status go_back(dcrf_unrolled *u, const float *q_derivative, bool is_by_logarithm,
                           size_t stride, const dcrf_derivatives *derivatives, dcrf_error *error) {
    if (!u || !q_derivative || !derivatives)
        return dcrf_fail_null(error, "the run, the derivative or the place for others");
    DCRF_ENTER(u->workspace, error);
    const dcrf_model *model = u->plan->model;
    struct dcrf_pair_gradient *pairs;
    TRY(check_stride(model, stride, error));
    if (!u->has_run)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the forward run comes first");
    if (model->revision != u->model_revision)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the model has changed since the forward run: run it again");
    if (derivatives->unary)
        TRY(check_block(model, derivatives->unary, derivatives->unary_count, stride,
                        "the derivatives by unary energies", error));
    TRY(dcrf_pair_gradient_new(&pairs, u->plan, u->workspace, derivatives,
                               (const float *const *)u->q, u->iterations, error));
    dcrf_status status = DCRF_OK;
    struct back back = {.model = model,
                        .derivative = u->derivative,
                        .is_by_logarithm = is_by_logarithm,
                        .e = u->message,
                        .unary = derivatives->unary,
                        .unary_stride = stride};
    for (size_t a = 0; a < model->variables; a++) {
        memcpy(u->derivative + a * model->stride, q_derivative + a * stride,
               model->labels * sizeof *u->derivative);
        if (back.unary)
            memset(back.unary + a * stride, 0, stride * sizeof *back.unary);
    }
    for (size_t t = u->iterations + 1; t-- > 0 && status == DCRF_OK;) {
        back.q = u->q[t];
        dcrf_parallel_rows(dcrf_workspace_pool(u->workspace), model->variables, back_rows, &back);
        back.is_by_logarithm = false;
        if (t > 0)
            status = dcrf_pair_gradient_add(pairs, t - 1, u->message, 2, u->derivative, error);
    }
    if (status == DCRF_OK)
        status = dcrf_pair_gradient_finish(pairs, error);
    dcrf_pair_gradient_free(&pairs);
    return status;
}

dcrf_status dcrf_unrolled_backward(dcrf_unrolled *u, const float *q_derivative, size_t stride,
                                   const dcrf_derivatives *derivatives, dcrf_error *error) {
    return go_back(u, q_derivative, false, stride, derivatives, error);
}

dcrf_status dcrf_unrolled_backward_log_q(dcrf_unrolled *u, const float *log_q_derivative,
                                         size_t stride, const dcrf_derivatives *derivatives,
                                         dcrf_error *error) {
    return go_back(u, log_q_derivative, true, stride, derivatives, error);
}
