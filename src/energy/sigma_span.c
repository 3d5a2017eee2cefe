/* Derivatives with respect to the sigmas of lattices and grids, over all steps at once. They are
 * sums over the steps t,
 *
 *   sum_t G_t . K' q_t,   K' = dK/dln sigma,
 *
 * with one or two filters per step. But the q_t are close to each other: with two of them,
 *
 *   q_t ~ c_t1 u_1 + c_t2 u_2,   sum_t G_t . K' q_t ~ sum_r (sum_t c_tr G_t) . K' u_r,
 *
 * so that two steps remain. u_1 is the last q and u_2 the one after a third of the steps; the c are
 * from least squares over a sample of variables. Up to two steps, nothing is approximated. On crops
 * of photographs with 5 and 10 steps, derivatives change by 0.2 % at the median and by 3 % at most,
 * which is little beside the lattice's own error (docs/howto/train.md). Everything in a derivative
 * is computed from the same two steps: in
 *
 *   (f_a - f_b)^2 = f_a^2 + f_b^2 - 2 f_a f_b
 *
 * the terms on the right are much larger than their sum. K u and K sum_t c_tr G_t are sums of what
 * the steps compute anyway. */
#include "core/error.h"
#include "core/memory.h"
#include "energy/pair_gradient.h"

#include <string.h>

#define RANK 2
/* Variables in the sample. */
#define SAMPLED 4096
/* (1 - cosine^2) of the angle between u_1 and u_2 below which they count as equal. */
#define EQUAL 1e-10
#define FLOATS_PER_CHUNK 16384

struct sums {
    float *filtered[RANK]; /* K u_r */
    float *returned[RANK]; /* K G_r */
};

struct dcrf_sigma_span {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    size_t rank, basis[RANK]; /* which steps are u */
    double *coefficients;     /* steps x RANK */
    struct dcrf_pair_step steps[RANK];
    struct sums *kernels;
    float *in, *out; /* f u and f e */
    double *own;     /* per variable */
    float *feature;  /* per variable: f of one axis, relative to its mean */
};

/* ---- the span ------------------------------------------------------------------------------- */

static double sampled_dot(const dcrf_model *model, const float *x, const float *y) {
    const size_t step = (model->variables + SAMPLED - 1) / SAMPLED;
    double sum = 0;
    for (size_t at = 0; at < model->variables * model->stride; at += step * model->stride)
        sum += dcrf_row_dot(model->labels, x + at, y + at, y + at, 0);
    return sum;
}

static void find_coefficients(struct dcrf_sigma_span *span, const float *const *q, size_t count) {
    const dcrf_model *model = span->plan->model;
    const float *u[RANK] = {q[span->basis[0]], q[span->basis[1]]};
    const double first = sampled_dot(model, u[0], u[0]), second = sampled_dot(model, u[1], u[1]);
    const double both = sampled_dot(model, u[0], u[1]);
    const double rest = first > 0 ? second - both * both / first : 0; /* of u_2, beside u_1 */
    for (size_t t = 0; t < count; t++) {
        double *c = span->coefficients + t * RANK;
        const double along = first > 0 ? sampled_dot(model, q[t], u[0]) / first : 0;
        c[1] = rest > EQUAL * second ? (sampled_dot(model, q[t], u[1]) - along * both) / rest : 0;
        c[0] = first > 0 ? along - c[1] * both / first : 0;
    }
    if (!(rest > EQUAL * second))
        span->rank = 1;
}

static bool take_blocks(const dcrf_model *model, float **blocks, size_t count) {
    bool is_complete = true;
    for (size_t r = 0; r < count; r++) {
        blocks[r] = dcrf_allocate_zero(model->variables, model->stride * sizeof(float));
        is_complete = is_complete && blocks[r];
    }
    return is_complete;
}

bool dcrf_sigma_span_has(const dcrf_plan *plan, size_t kernel) {
    return plan->model->kernels[kernel].features.kind != DCRF_KERNEL_FEATURES &&
           dcrf_operator_kind_of(plan->kernels[kernel].op) != DCRF_OPERATOR_EXACT;
}

static bool take_memory(struct dcrf_sigma_span *span, size_t count) {
    const dcrf_model *model = span->plan->model;
    span->coefficients = dcrf_allocate(count, RANK * sizeof *span->coefficients);
    span->kernels = dcrf_allocate_zero(model->kernel_count, sizeof *span->kernels);
    span->own = dcrf_allocate(model->variables, sizeof *span->own);
    span->feature = dcrf_allocate(model->variables, sizeof *span->feature);
    if (!span->coefficients || !span->kernels || !span->own || !span->feature)
        return false;
    bool is_complete = take_blocks(model, &span->in, 1) && take_blocks(model, &span->out, 1);
    for (size_t r = 0; r < span->rank && is_complete; r++)
        is_complete = take_blocks(model, &span->steps[r].e, 1);
    for (size_t m = 0; m < model->kernel_count && is_complete; m++)
        if (dcrf_sigma_span_has(span->plan, m))
            is_complete = take_blocks(model, span->kernels[m].filtered, span->rank) &&
                          take_blocks(model, span->kernels[m].returned, span->rank);
    return is_complete;
}

dcrf_status dcrf_sigma_span_new(struct dcrf_sigma_span **out, const dcrf_plan *plan,
                                dcrf_workspace *workspace, const float *const *q, size_t count,
                                dcrf_error *error) {
    struct dcrf_sigma_span *span = dcrf_allocate_zero(1, sizeof *span);
    *out = span;
    if (!span)
        return dcrf_fail_memory(error, "derivatives");
    span->plan = plan;
    span->workspace = workspace;
    span->rank = count < RANK ? count : RANK;
    span->basis[0] = count > 0 ? count - 1 : 0;
    span->basis[1] = count / 3;
    if (!take_memory(span, count)) {
        dcrf_sigma_span_free(out);
        return dcrf_fail_memory(error, "derivatives");
    }
    if (count > 0)
        find_coefficients(span, q, count);
    for (size_t r = 0; r < span->rank; r++) {
        span->steps[r].q = q[span->basis[r]];
        span->steps[r].factor = 1;
    }
    return DCRF_OK;
}

void dcrf_sigma_span_free(struct dcrf_sigma_span **pointer) {
    struct dcrf_sigma_span *span = *pointer;
    if (!span)
        return;
    for (size_t r = 0; r < RANK; r++) {
        dcrf_release(span->steps[r].e);
        for (size_t m = 0; span->kernels && m < span->plan->kernel_count; m++) {
            dcrf_release(span->kernels[m].filtered[r]);
            dcrf_release(span->kernels[m].returned[r]);
        }
    }
    dcrf_release(span->coefficients);
    dcrf_release(span->kernels);
    dcrf_release(span->in);
    dcrf_release(span->out);
    dcrf_release(span->own);
    dcrf_release(span->feature);
    dcrf_release(span);
    *pointer = NULL;
}

/* ---- one step ------------------------------------------------------------------------------- */

struct addition {
    float factor;
    const float *from;
    float *to;
};

static void add_floats(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct addition *addition = context;
    for (size_t k = begin; k < end; k++)
        addition->to[k] += addition->factor * addition->from[k];
}

static void add_block(const struct dcrf_sigma_span *span, double factor, const float *from,
                      float *to) {
    const dcrf_model *model = span->plan->model;
    struct addition addition = {.factor = (float)factor, .from = from, .to = to};
    if (factor != 0)
        dcrf_parallel_for(dcrf_workspace_pool(span->workspace), model->variables * model->stride,
                          FLOATS_PER_CHUNK, add_floats, &addition);
}

void dcrf_sigma_span_add_step(struct dcrf_sigma_span *span, size_t t, const float *e,
                              double factor) {
    for (size_t r = 0; r < span->rank; r++)
        add_block(span, factor * span->coefficients[t * RANK + r], e, span->steps[r].e);
}

void dcrf_sigma_span_add_kernel(struct dcrf_sigma_span *span, size_t t, size_t kernel,
                                const float *filtered, const float *returned) {
    const dcrf_model *model = span->plan->model;
    struct sums *sums = &span->kernels[kernel];
    for (size_t r = 0; r < span->rank; r++) {
        if (t == span->basis[r])
            memcpy(sums->filtered[r], filtered,
                   model->variables * model->stride * sizeof *filtered);
        add_block(span, span->coefficients[t * RANK + r], returned, sums->returned[r]);
    }
}

/* ---- positions ------------------------------------------------------------------------------ */

struct axis {
    const struct dcrf_sigma_span *span;
    size_t kernel, feature, r;
    double mean;
};

static void centre_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct axis *axis = context;
    float row[DCRF_MAX_FEATURES];
    for (size_t a = begin; a < end; a++) {
        dcrf_features_row(&axis->span->plan->model->kernels[axis->kernel].features, a, row);
        axis->span->feature[a] = (float)((double)row[axis->feature] - axis->mean);
    }
}

/* own_a = sum_r (G . (K - diag) u + u . (K - diag) G)_a */
static void own_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct axis *axis = context;
    const struct dcrf_sigma_span *span = axis->span;
    const dcrf_model *model = span->plan->model;
    const struct dcrf_model_kernel *kernel = &model->kernels[axis->kernel];
    const float *diagonal = span->plan->kernels[axis->kernel].diagonal;
    for (size_t a = begin; a < end; a++) {
        double sum = 0;
        for (size_t r = 0; r < span->rank; r++) {
            const struct sums *sums = &span->kernels[axis->kernel];
            const size_t at = a * model->stride;
            float *adjoint = span->in + at;
            const float *u = span->steps[r].q + at, *returned = sums->returned[r] + at;
            sum += kernel->weight * dcrf_pair_row(kernel, model->labels, span->steps[r].e + at, u,
                                                  sums->filtered[r] + at, diagonal[a],
                                                  kernel->weight, adjoint);
            for (size_t i = 0; i < model->labels; i++)
                sum +=
                    (double)u[i] * ((double)returned[i] - (double)diagonal[a] * (double)adjoint[i]);
        }
        span->own[a] = sum;
    }
}

static double square_rows(void *context, size_t begin, size_t end) {
    const struct axis *axis = context;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const double f = (double)axis->span->feature[a];
        sum += f * f * axis->span->own[a];
    }
    return sum;
}

static void multiply_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct axis *axis = context;
    const struct dcrf_sigma_span *span = axis->span;
    const dcrf_model *model = span->plan->model;
    for (size_t a = begin; a < end; a++) {
        const float f = span->feature[a];
        for (size_t k = a * model->stride; k < a * model->stride + model->labels; k++) {
            span->in[k] = f * span->steps[axis->r].q[k];
            span->out[k] = f * span->steps[axis->r].e[k];
        }
    }
}

dcrf_status dcrf_sigma_span_positions(const struct dcrf_sigma_span *span, size_t kernel,
                                      const double *mean, float *scratch, double *by_log_sigma,
                                      double *h, dcrf_error *error) {
    const dcrf_model *model = span->plan->model;
    const struct dcrf_plan_kernel *there = &span->plan->kernels[kernel];
    dcrf_pool *pool = dcrf_workspace_pool(span->workspace);
    struct axis axis = {.span = span, .kernel = kernel};
    dcrf_parallel_for(pool, model->variables, DCRF_SIGMA_ROWS, own_rows, &axis);
    for (size_t a = 0; h && a < model->variables; a++)
        h[a] = -span->own[a] / 2;
    for (axis.feature = 0; axis.feature < model->kernels[kernel].features.axes; axis.feature++) {
        axis.mean = mean[axis.feature];
        dcrf_parallel_for(pool, model->variables, DCRF_SIGMA_ROWS, centre_rows, &axis);
        by_log_sigma[axis.feature] += dcrf_parallel_sum(pool, model->variables, square_rows, &axis);
        for (axis.r = 0; axis.r < span->rank; axis.r++) {
            double mixed;
            dcrf_parallel_for(pool, model->variables, DCRF_SIGMA_ROWS, multiply_rows, &axis);
            const struct dcrf_pair_step step = {.q = span->in, .e = span->out, .factor = 1};
            const dcrf_status status =
                dcrf_pair_products(span->plan, span->workspace, kernel, there->op, there->diagonal,
                                   &step, 1, scratch, &mixed, error);
            if (status < 0)
                return status;
            by_log_sigma[axis.feature] -= 2 * model->kernels[kernel].weight * mixed;
        }
    }
    return DCRF_OK;
}

dcrf_status dcrf_sigma_span_channels(const struct dcrf_sigma_span *span, size_t kernel,
                                     bool is_shared, float *scratch, double *sigma,
                                     dcrf_error *error) {
    return dcrf_sigma_differences(span->plan, span->workspace, kernel, span->steps, span->rank,
                                  is_shared, scratch, sigma, error);
}
