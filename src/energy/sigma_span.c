/* Derivatives with respect to the sigmas of lattices and grids, over all steps at once. They are
 * sums over the steps t,
 *
 *   sum_t G_t . K' q_t,   K' = dK/dln sigma,
 *
 * with one or two filters per step. But the q_t change slowly: with every third of them, from the
 * last one on,
 *
 *   q_t ~ sum_r c_tr u_r,   sum_t G_t . K' q_t ~ sum_r (sum_t c_tr G_t) . K' u_r,
 *
 * so that a third of the steps remain, though at least two. c_tr is nonzero for the two u_r around
 * q_t only, and from least squares over a sample of variables. Up to two steps, nothing is
 * approximated. docs/howto/train.md has figures; the error is small beside the lattice's own.
 * Everything in a derivative is computed from the same steps: in
 *
 *   (f_a - f_b)^2 = f_a^2 + f_b^2 - 2 f_a f_b
 *
 * the terms on the right are much larger than their sum. K u and K sum_t c_tr G_t are sums of what
 * the steps compute anyway. */
#include "core/error.h"
#include "core/owned.h"
#include "energy/pair_gradient.h"

#include <string.h>

/* Steps from one u to the next. */
#define STRIDE 3
/* Variables in the sample. */
#define SAMPLED 4096
/* (1 - cosine^2) of the angle between two u below which they count as equal. */
#define EQUAL 1e-10
#define FLOATS_PER_CHUNK 16384

/* q_t ~ c[0] u_first + c[1] u_{first + 1} */
struct combination {
    size_t first;
    double c[2];
};

struct sums {
    float **filtered; /* K u_r */
    float **returned; /* K G_r */
};

struct dcrf_sigma_span {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    size_t rank;
    size_t *basis;                    /* which steps are u, from the last to the first */
    struct combination *combinations; /* one per step */
    struct dcrf_pair_step *steps;     /* u and its e */
    struct sums *kernels;
    float *in, *out; /* f u and f e */
    double *own;     /* per variable */
    float *feature;  /* per variable: f of one axis, relative to its mean */
    struct dcrf_owned owned;
};

/* ---- the span ------------------------------------------------------------------------------- */

static double sampled_dot(const dcrf_model *model, const float *x, const float *y) {
    const size_t step = (model->variables + SAMPLED - 1) / SAMPLED;
    double sum = 0;
    for (size_t at = 0; at < model->variables * model->stride; at += step * model->stride)
        sum += dcrf_row_dot(model->labels, x + at, y + at, y + at, 0);
    return sum;
}

static void combine(const dcrf_model *model, const float *q, const float *const u[2],
                    struct combination *out) {
    const double first = sampled_dot(model, u[0], u[0]), second = sampled_dot(model, u[1], u[1]);
    const double both = sampled_dot(model, u[0], u[1]);
    const double inverse = first > 0 ? 1 / first : 0;
    const double rest = second - both * both * inverse; /* of u_1, beside u_0 */
    const double along = sampled_dot(model, q, u[0]);
    if (rest > EQUAL * second)
        out->c[1] = (sampled_dot(model, q, u[1]) - along * inverse * both) / rest;
    out->c[0] = (along - out->c[1] * both) * inverse;
}

/* How many u there are for a number of steps. */
static size_t rank_of(size_t steps) {
    const size_t least = steps < 2 ? steps : 2, rank = (steps + STRIDE - 1) / STRIDE;
    return rank < least ? least : rank;
}

static void find_combinations(struct dcrf_sigma_span *span, const float *const *q, size_t count) {
    for (size_t r = 0; r < span->rank; r++)
        span->basis[r] = r * STRIDE < count ? count - 1 - r * STRIDE : count / STRIDE;
    for (size_t t = 0; t < count; t++) {
        struct combination *combination = &span->combinations[t];
        while (combination->first + 2 < span->rank && span->basis[combination->first + 1] > t)
            combination->first++;
        const size_t next = span->rank > 1 ? combination->first + 1 : 0;
        const float *const u[2] = {q[span->basis[combination->first]], q[span->basis[next]]};
        combine(span->plan->model, q[t], u, combination);
    }
}

static float *take_block(struct dcrf_sigma_span *span) {
    const dcrf_model *model = span->plan->model;
    return dcrf_own_zero(&span->owned, model->variables, model->stride * sizeof(float));
}

static float **take_blocks(struct dcrf_sigma_span *span) {
    float **blocks = dcrf_own(&span->owned, span->rank, sizeof *blocks);
    for (size_t r = 0; r < span->rank && blocks; r++)
        blocks[r] = take_block(span);
    return blocks;
}

bool dcrf_sigma_span_has(const dcrf_plan *plan, size_t kernel) {
    return plan->model->kernels[kernel].features.kind != DCRF_KERNEL_FEATURES &&
           dcrf_operator_kind_of(plan->kernels[kernel].op) != DCRF_OPERATOR_EXACT;
}

static bool take_memory(struct dcrf_sigma_span *span, size_t count) {
    const dcrf_model *model = span->plan->model;
    struct dcrf_owned *owned = &span->owned;
    span->basis = dcrf_own(owned, span->rank, sizeof *span->basis);
    span->combinations = dcrf_own_zero(owned, count, sizeof *span->combinations);
    span->steps = dcrf_own_zero(owned, span->rank, sizeof *span->steps);
    span->kernels = dcrf_own_zero(owned, model->kernel_count, sizeof *span->kernels);
    span->own = dcrf_own(owned, model->variables, sizeof *span->own);
    span->feature = dcrf_own(owned, model->variables, sizeof *span->feature);
    span->in = take_block(span);
    span->out = take_block(span);
    for (size_t r = 0; r < span->rank && !owned->is_short; r++)
        span->steps[r].e = take_block(span);
    for (size_t m = 0; m < model->kernel_count && !owned->is_short; m++)
        if (dcrf_sigma_span_has(span->plan, m)) {
            span->kernels[m].filtered = take_blocks(span);
            span->kernels[m].returned = take_blocks(span);
        }
    return !owned->is_short;
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
    span->rank = rank_of(count);
    if (!take_memory(span, count)) {
        dcrf_sigma_span_free(out);
        return dcrf_fail_memory(error, "derivatives");
    }
    find_combinations(span, q, count);
    for (size_t r = 0; r < span->rank; r++) {
        span->steps[r].q = q[span->basis[r]];
        span->steps[r].factor = 1;
    }
    return DCRF_OK;
}

void dcrf_sigma_span_free(struct dcrf_sigma_span **pointer) {
    if (!*pointer)
        return;
    dcrf_disown(&(*pointer)->owned);
    dcrf_release(*pointer);
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

/* to_r += c_tr from, for both r of step t. */
static void add_blocks(const struct dcrf_sigma_span *span, size_t t, double factor,
                       const float *from, float *first, float *second) {
    add_block(span, factor * span->combinations[t].c[0], from, first);
    add_block(span, factor * span->combinations[t].c[1], from, second);
}

void dcrf_sigma_span_add_step(struct dcrf_sigma_span *span, size_t t, const float *e,
                              double factor) {
    const size_t r = span->combinations[t].first, next = span->rank > 1 ? r + 1 : r;
    add_blocks(span, t, factor, e, span->steps[r].e, span->steps[next].e);
}

void dcrf_sigma_span_add_kernel(struct dcrf_sigma_span *span, size_t t, size_t kernel,
                                const float *filtered, const float *returned) {
    const dcrf_model *model = span->plan->model;
    const struct sums *sums = &span->kernels[kernel];
    const size_t first = span->combinations[t].first, next = span->rank > 1 ? first + 1 : first;
    add_blocks(span, t, 1, returned, sums->returned[first], sums->returned[next]);
    for (size_t r = 0; r < span->rank; r++)
        if (t == span->basis[r])
            memcpy(sums->filtered[r], filtered,
                   model->variables * model->stride * sizeof *filtered);
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
    const struct dcrf_plan_kernel *planned = &span->plan->kernels[kernel];
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
            TRY(dcrf_pair_products(span->plan, span->workspace, kernel, planned->op,
                                   planned->diagonal, &step, 1, scratch, &mixed, error));
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
