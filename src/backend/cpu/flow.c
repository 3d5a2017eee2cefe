/* The conjugate gradients of the potential flow on the CPU (the mathematics:
 * lp/potential_flow.c). */
#include "backend/cpu/cpu.h"
#include "core/error.h"
#include "core/owned.h"
#include "filter/plan.h"

#include <math.h>
#include <string.h>

#define GRAIN 1024

struct dcrf_backend_flow {
    const dcrf_plan *plan;
    const dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_pool *pool;
    const float *row_sums, *metric;          /* per variable, the caller's */
    float *u, *residual, *direction, *image; /* blocks; u is the caller's */
    double *partial;                         /* chunks x 2 x labels */
    double *mean, *rho, *curvature, *low, *scale, *excess;
    const float *left, *right; /* factors of the current product; right = NULL: ones */
    const float *divisor;      /* per variable, or NULL */
    struct dcrf_owned owned;
};

static size_t chunk_count(const dcrf_backend_flow *flow) {
    return (flow->model->variables + GRAIN - 1) / GRAIN;
}

/* ---- products per label --------------------------------------------------------------------- */

static void multiply_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_flow *flow = context;
    const size_t labels = flow->model->labels, stride = flow->model->stride;
    double *sums = flow->partial + begin / GRAIN * labels;
    memset(sums, 0, labels * sizeof *sums);
    for (size_t a = begin; a < end; a++) {
        const double factor = flow->divisor ? 1 / (double)flow->divisor[a] : 1;
        for (size_t i = 0; i < labels; i++)
            sums[i] += factor * (double)flow->left[a * stride + i] *
                       (flow->right ? (double)flow->right[a * stride + i] : 1);
    }
}

/* products[i] = sum_a left_ai right_ai / divisor_a */
static void multiply(dcrf_backend_flow *flow, const float *left, const float *right,
                     const float *divisor, double *products) {
    const size_t labels = flow->model->labels;
    flow->left = left;
    flow->right = right;
    flow->divisor = divisor;
    dcrf_parallel_for(flow->pool, flow->model->variables, GRAIN, multiply_rows, flow);
    memset(products, 0, labels * sizeof *products);
    for (size_t chunk = 0; chunk < chunk_count(flow); chunk++)
        for (size_t i = 0; i < labels; i++)
            products[i] += flow->partial[chunk * labels + i];
}

/* ---- conjugate gradients -------------------------------------------------------------------- */

/* image = (D - K) direction */
static void finish_image(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_flow *flow = context;
    const size_t stride = flow->model->stride;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * stride + i;
            flow->image[k] = flow->row_sums[a] * flow->direction[k] - flow->image[k];
        }
}

/* u += t direction, residual -= t image, with t = rho / curvature. */
static void advance(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_flow *flow = context;
    const size_t stride = flow->model->stride;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * stride + i;
            const float t = (float)(flow->curvature[i] > 0 ? flow->rho[i] / flow->curvature[i] : 0);
            flow->u[k] += t * flow->direction[k];
            flow->residual[k] -= t * flow->image[k];
        }
}

/* The residual sums to zero, since the image of D - K does. Rounding adds a constant, which no flow
 * can remove: if left in, it keeps the recursion from converging and finally dominates the
 * directions. */
static void center(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_flow *flow = context;
    const double n = (double)flow->model->variables;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < flow->model->labels; i++)
            flow->residual[a * flow->model->stride + i] -= (float)(flow->excess[i] / n);
}

/* direction = residual / D + beta direction; `curvature` holds beta. */
static void turn(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_flow *flow = context;
    const size_t stride = flow->model->stride;
    for (size_t a = begin; a < end; a++) {
        const float inverse = 1 / flow->metric[a];
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * stride + i;
            flow->direction[k] =
                flow->residual[k] * inverse + (float)flow->curvature[i] * flow->direction[k];
        }
    }
}

/* residual = unary - the label's mean; everything else is zero. */
static void fill_residual(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_flow *flow = context;
    const size_t stride = flow->model->stride, labels = flow->model->labels;
    const size_t first = begin * stride, bytes = (end - begin) * stride * sizeof(float);
    memset(flow->u + first, 0, bytes);
    memset(flow->direction + first, 0, bytes);
    memset(flow->image + first, 0, bytes);
    memset(flow->residual + first, 0, bytes);
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < labels; i++)
            flow->residual[a * stride + i] =
                (float)((double)flow->model->unary[a * stride + i] - flow->mean[i]);
}

static void begin_flow(dcrf_backend_flow *flow) {
    const size_t n = flow->model->variables, labels = flow->model->labels;
    multiply(flow, flow->model->unary, NULL, NULL, flow->mean);
    for (size_t i = 0; i < labels; i++)
        flow->mean[i] /= (double)n;
    dcrf_parallel_for(flow->pool, n, GRAIN, fill_residual, flow);
    multiply(flow, flow->residual, flow->residual, flow->metric, flow->rho);
    memset(flow->curvature, 0, labels * sizeof *flow->curvature);
    dcrf_parallel_for(flow->pool, n, GRAIN, turn, flow);
}

static dcrf_status step(dcrf_backend_flow *flow, dcrf_error *error) {
    const size_t n = flow->model->variables;
    TRY(dcrf_plan_sum(flow->plan, flow->workspace, NULL, flow->plan->kernel_count, flow->direction,
                      flow->image, flow->model->labels, flow->model->stride, error));
    dcrf_parallel_for(flow->pool, n, GRAIN, finish_image, flow);
    multiply(flow, flow->direction, flow->image, NULL, flow->curvature);
    dcrf_parallel_for(flow->pool, n, GRAIN, advance, flow);
    multiply(flow, flow->residual, NULL, NULL, flow->excess);
    dcrf_parallel_for(flow->pool, n, GRAIN, center, flow);
    /* curvature becomes beta = new rho / old rho. */
    multiply(flow, flow->residual, flow->residual, flow->metric, flow->curvature);
    for (size_t i = 0; i < flow->model->labels; i++) {
        const double rho = flow->curvature[i];
        flow->curvature[i] = flow->rho[i] > 0 ? rho / flow->rho[i] : 0;
        flow->rho[i] = rho;
    }
    dcrf_parallel_for(flow->pool, n, GRAIN, turn, flow);
    return DCRF_OK;
}

/* ---- the predicted bound -------------------------------------------------------------------- */

/* The smallest and the largest u of each label among some variables. */
static void find_range(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_flow *flow = context;
    const size_t labels = flow->model->labels, stride = flow->model->stride;
    double *low = flow->partial + 2 * (begin / GRAIN) * labels, *high = low + labels;
    for (size_t i = 0; i < labels; i++) {
        low[i] = (double)INFINITY;
        high[i] = -(double)INFINITY;
    }
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < labels; i++) {
            const double value = (double)flow->u[a * stride + i];
            low[i] = value < low[i] ? value : low[i];
            high[i] = value > high[i] ? value : high[i];
        }
}

/* scale[i] = 1, or the factor that reduces the spread of u_i to 1. */
static void measure_spread(dcrf_backend_flow *flow) {
    const size_t labels = flow->model->labels;
    dcrf_parallel_for(flow->pool, flow->model->variables, GRAIN, find_range, flow);
    for (size_t i = 0; i < labels; i++) {
        double low = (double)INFINITY, high = -(double)INFINITY;
        for (size_t chunk = 0; chunk < chunk_count(flow); chunk++) {
            const double *range = flow->partial + 2 * chunk * labels;
            low = range[i] < low ? range[i] : low;
            high = range[labels + i] > high ? range[labels + i] : high;
        }
        const double spread = high - low;
        flow->low[i] = low;
        /* A NaN gives 0: no flow. */
        flow->scale[i] = spread <= 1 ? 1 : spread > 1 && isfinite(spread) ? 1 / spread : 0;
    }
}

/* The bound from the recursion's residual; reduced costs are phi - scale (phi - mean - residual).
 */
static double estimate_rows(void *context, size_t begin, size_t end) {
    const dcrf_backend_flow *flow = context;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        double lowest = INFINITY;
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * flow->model->stride + i;
            const double unary = (double)flow->model->unary[k];
            const double cost =
                unary - flow->scale[i] * (unary - flow->mean[i] - (double)flow->residual[k]);
            lowest = cost < lowest ? cost : lowest;
        }
        sum += lowest;
    }
    return sum;
}

static double sum_labels(const dcrf_backend_flow *flow, const double *values) {
    double sum = 0;
    for (size_t i = 0; i < flow->model->labels; i++)
        sum += values[i];
    return sum;
}

/* ---- the methods ---------------------------------------------------------------------------- */

static void free_flow(dcrf_backend_flow *flow) {
    dcrf_disown(&flow->owned);
    dcrf_release(flow);
}

static bool take_memory(dcrf_backend_flow *flow) {
    const size_t n = flow->model->variables, labels = flow->model->labels;
    const size_t row = flow->model->stride * sizeof(float), chunks = chunk_count(flow);
    flow->residual = dcrf_own(&flow->owned, n, row);
    flow->direction = dcrf_own(&flow->owned, n, row);
    flow->image = dcrf_own(&flow->owned, n, row);
    flow->partial = dcrf_own(&flow->owned, 2 * chunks + 6, labels * sizeof *flow->partial);
    if (flow->owned.is_short)
        return false;
    double **const rows[] = {&flow->mean, &flow->rho,   &flow->curvature,
                             &flow->low,  &flow->scale, &flow->excess};
    for (size_t k = 0; k < 6; k++)
        *rows[k] = flow->partial + (2 * chunks + k) * labels;
    return true;
}

static dcrf_status make_flow(dcrf_backend_flow **out, dcrf_backend_device *device,
                             const struct dcrf_backend_model *model, const float *row_sums,
                             const float *metric, float *u, dcrf_error *error) {
    (void)device;
    dcrf_backend_flow *flow = dcrf_allocate_zero(1, sizeof *flow);
    *out = NULL;
    if (!flow)
        return dcrf_fail_memory(error, "the potential flow");
    flow->plan = model->plan;
    flow->model = model->plan->model;
    flow->workspace = model->workspace;
    flow->pool = dcrf_workspace_pool(model->workspace);
    flow->row_sums = row_sums;
    flow->metric = metric;
    flow->u = u;
    if (!take_memory(flow)) {
        free_flow(flow);
        return dcrf_fail_memory(error, "the potential flow");
    }
    begin_flow(flow);
    *out = flow;
    return DCRF_OK;
}

static dcrf_status iterate(dcrf_backend_flow *flow, size_t iterations,
                           const struct dcrf_interrupt *interrupt, double *residual,
                           double *estimate, dcrf_error *error) {
    for (size_t k = 0; k < iterations && !dcrf_is_interrupted(interrupt); k++)
        TRY(step(flow, error));
    measure_spread(flow);
    *residual = sum_labels(flow, flow->rho);
    *estimate = dcrf_parallel_sum(flow->pool, flow->model->variables, estimate_rows, flow);
    return DCRF_OK;
}

static dcrf_status read_flow(dcrf_backend_flow *flow, double *low, double *scale,
                             dcrf_error *error) {
    (void)error;
    memcpy(low, flow->low, flow->model->labels * sizeof *low);
    memcpy(scale, flow->scale, flow->model->labels * sizeof *scale);
    return DCRF_OK;
}

const struct dcrf_backend_flow_methods dcrf_cpu_flow = {
    .make = make_flow, .free = free_flow, .iterate = iterate, .read = read_flow};
