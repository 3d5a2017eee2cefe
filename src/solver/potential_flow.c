/* A proof that a constant labelling is optimal, by potential flow.
 *
 * For every label i solve (D - K) u_i = phi_i - mean(phi_i), D = diag(K 1). Where max u_i - min u_i
 * <= 1, alpha_ab:i = K_ab (u_ai - u_bi) is feasible, A alpha = (D - K) u, and every reduced cost of
 * the label becomes mean(phi_i): the bound is the energy of the best constant labelling. Where the
 * spread is larger, u_i is scaled down to 1, which is feasible too and proves less.
 *
 * Conjugate gradients with the preconditioner 1 / D, all labels together: one plain filter
 * application an iteration. K is smooth, so D - K has few eigenvalues away from D and a few dozen
 * iterations are enough. The recursion's residual only says when to look; what is claimed is
 * computed from u again, in double, where the rounding of (D - K) u costs nothing even for row sums
 * in the thousands. */
#include "core/error.h"
#include "core/memory.h"
#include "solver/lp.h"

#include <math.h>
#include <string.h>

#define MOST_ITERATIONS 100
#define LOOK_EVERY 4
/* Good enough: relative to the energy. */
#define WANTED 2e-6
/* The equations are solved when the residual, squared and preconditioned, has fallen by this. The
 * estimate itself rises and falls on the way and says nothing before the end. */
#define SOLVED 1e-12
#define GRAIN 1024
/* Labels taken through the operators in double at a time. */
#define DOUBLE_CHANNELS 8

/* The blocks are those of the LP, which has not started yet. */
struct flow {
    struct dcrf_lp *lp;
    const dcrf_model *model;
    dcrf_pool *pool;
    float *u, *residual, *direction, *image;
    double *partial; /* chunks x labels */
    double *mean, *rho, *curvature, *low, *scale;
    const float *left, *right; /* blocks of a product in hand */
    const float *divisor;      /* per variable, or NULL */
};

static size_t chunk_count(const struct flow *flow) {
    return (flow->model->variables + GRAIN - 1) / GRAIN;
}

/* ---- products per label --------------------------------------------------------------------- */

static void multiply_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct flow *flow = context;
    const size_t labels = flow->model->labels, stride = flow->model->stride;
    double *sums = flow->partial + begin / GRAIN * labels;
    memset(sums, 0, labels * sizeof *sums);
    for (size_t a = begin; a < end; a++) {
        const double factor = flow->divisor ? 1 / (double)flow->divisor[a] : 1;
        for (size_t i = 0; i < labels; i++)
            sums[i] +=
                factor * (double)flow->left[a * stride + i] * (double)flow->right[a * stride + i];
    }
}

/* products[i] = sum_a left_ai right_ai / divisor_a */
static void multiply(struct flow *flow, const float *left, const float *right, const float *divisor,
                     double *products) {
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

/* image = K direction; the D part is added where it is used. */
static dcrf_status apply_kernels(struct flow *flow, dcrf_error *error) {
    const dcrf_plan *plan = flow->lp->problem->plan;
    bool is_first = true;
    for (size_t m = 0; m < plan->kernel_count; m++) {
        if (flow->model->kernels[m].weight == 0)
            continue;
        const struct dcrf_application application = {.direction = DCRF_SYMMETRIC,
                                                     .in = flow->direction,
                                                     .out = flow->image,
                                                     .channels = flow->model->labels,
                                                     .stride = flow->model->stride,
                                                     .factor =
                                                         (float)flow->model->kernels[m].weight,
                                                     .accumulate = !is_first};
        const dcrf_status status = dcrf_operator_run(
            plan->kernels[m].op, flow->lp->problem->workspace, &application, error);
        if (status < 0)
            return status;
        is_first = false;
    }
    return DCRF_OK;
}

static void finish_image(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct flow *flow = context;
    const size_t stride = flow->model->stride;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * stride + i;
            flow->image[k] = flow->lp->space.row_sums[a] * flow->direction[k] - flow->image[k];
        }
}

/* u += t direction, residual -= t image, with t = rho / curvature. */
static void advance(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct flow *flow = context;
    const size_t stride = flow->model->stride;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * stride + i;
            const float t = (float)(flow->curvature[i] > 0 ? flow->rho[i] / flow->curvature[i] : 0);
            flow->u[k] += t * flow->direction[k];
            flow->residual[k] -= t * flow->image[k];
        }
}

/* direction = residual / D + beta direction; `curvature` holds beta. */
static void turn(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct flow *flow = context;
    const size_t stride = flow->model->stride;
    for (size_t a = begin; a < end; a++) {
        const float inverse = 1 / flow->lp->metric[a];
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * stride + i;
            flow->direction[k] =
                flow->residual[k] * inverse + (float)flow->curvature[i] * flow->direction[k];
        }
    }
}

static void begin_flow(struct flow *flow) {
    const size_t n = flow->model->variables, stride = flow->model->stride;
    const size_t labels = flow->model->labels;
    memset(flow->u, 0, n * stride * sizeof(float));
    memset(flow->direction, 0, n * stride * sizeof(float));
    memset(flow->residual, 0, n * stride * sizeof(float));
    memset(flow->mean, 0, labels * sizeof *flow->mean);
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++)
            flow->mean[i] += (double)flow->model->unary[a * stride + i] / (double)n;
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++)
            flow->residual[a * stride + i] =
                (float)((double)flow->model->unary[a * stride + i] - flow->mean[i]);
    multiply(flow, flow->residual, flow->residual, flow->lp->metric, flow->rho);
    memset(flow->curvature, 0, labels * sizeof *flow->curvature);
    dcrf_parallel_for(flow->pool, n, GRAIN, turn, flow);
}

static dcrf_status iterate(struct flow *flow, dcrf_error *error) {
    const size_t n = flow->model->variables;
    const dcrf_status status = apply_kernels(flow, error);
    if (status < 0)
        return status;
    dcrf_parallel_for(flow->pool, n, GRAIN, finish_image, flow);
    multiply(flow, flow->direction, flow->image, NULL, flow->curvature);
    dcrf_parallel_for(flow->pool, n, GRAIN, advance, flow);
    /* curvature becomes beta = new rho / old rho. */
    multiply(flow, flow->residual, flow->residual, flow->lp->metric, flow->curvature);
    for (size_t i = 0; i < flow->model->labels; i++) {
        const double rho = flow->curvature[i];
        flow->curvature[i] = flow->rho[i] > 0 ? rho / flow->rho[i] : 0;
        flow->rho[i] = rho;
    }
    dcrf_parallel_for(flow->pool, n, GRAIN, turn, flow);
    return DCRF_OK;
}

/* ---- what it proves ------------------------------------------------------------------------- */

/* scale[i] = 1, or what brings the spread of u_i down to 1. */
static void measure_spread(struct flow *flow) {
    const size_t stride = flow->model->stride;
    for (size_t i = 0; i < flow->model->labels; i++) {
        float low = INFINITY, high = -INFINITY;
        for (size_t a = 0; a < flow->model->variables; a++) {
            const float value = flow->u[a * stride + i];
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        const double spread = (double)high - (double)low;
        flow->low[i] = (double)low;
        /* A NaN gives 0: no flow. */
        flow->scale[i] = spread <= 1 ? 1 : spread > 1 && isfinite(spread) ? 1 / spread : 0;
    }
}

/* The bound by the recursion's residual: the reduced cost is phi - scale (phi - mean - residual).
 */
static double estimate_rows(void *context, size_t begin, size_t end) {
    const struct flow *flow = context;
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

struct claim {
    struct flow *flow;
    size_t first, count; /* labels in hand */
    double *in, *out, *total;
    double *lowest;
};

/* u - min u, scaled: values in [0, 1], so that differences are at most 1 exactly. */
static void fill_double(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct claim *c = context;
    for (size_t a = begin; a < end; a++)
        for (size_t k = 0; k < c->count; k++) {
            const size_t i = c->first + k;
            const double value =
                ((double)c->flow->u[a * c->flow->model->stride + i] - c->flow->low[i]) *
                c->flow->scale[i];
            c->in[a * c->count + k] = value < 1 ? value : 1;
            c->total[a * c->count + k] = 0;
        }
}

static dcrf_status claim_labels(struct claim *c, dcrf_error *error) {
    struct flow *flow = c->flow;
    const dcrf_plan *plan = flow->lp->problem->plan;
    const size_t n = flow->model->variables;
    double *ones = c->in + n * c->count; /* one channel more: the row sums come along */
    dcrf_parallel_for(flow->pool, n, GRAIN, fill_double, c);
    for (size_t m = 0; m < plan->kernel_count; m++) {
        const double weight = flow->model->kernels[m].weight;
        const dcrf_operator *op = plan->kernels[m].op;
        if (weight == 0)
            continue;
        dcrf_status status = op->methods->apply_double(op, flow->lp->problem->workspace, c->in,
                                                       c->out, c->count, error);
        if (status < 0)
            return status;
        for (size_t a = 0; a < n; a++)
            for (size_t k = 0; k < c->count; k++)
                c->total[a * c->count + k] -= weight * c->out[a * c->count + k];
        for (size_t a = 0; a < n; a++)
            ones[a] = 1;
        status =
            op->methods->apply_double(op, flow->lp->problem->workspace, ones, c->out, 1, error);
        if (status < 0)
            return status;
        for (size_t a = 0; a < n; a++)
            for (size_t k = 0; k < c->count; k++)
                c->total[a * c->count + k] += weight * c->out[a] * c->in[a * c->count + k];
    }
    for (size_t a = 0; a < n; a++)
        for (size_t k = 0; k < c->count; k++) {
            const size_t at = a * flow->model->stride + c->first + k;
            const double cost = (double)flow->model->unary[at] - c->total[a * c->count + k];
            flow->lp->best.pairwise[at] = (float)c->total[a * c->count + k];
            c->lowest[a] = cost < c->lowest[a] ? cost : c->lowest[a];
        }
    return DCRF_OK;
}

/* For the verifier: the flow as it was claimed, in the unused block. */
static dcrf_status record(struct flow *flow, dcrf_error *error) {
    const struct dcrf_pair_shape is_flow = {.epsilon = 1, .bins = 0};
    const size_t n = flow->model->variables, labels = flow->model->labels;
    if (flow->lp->record.capacity == 0)
        return DCRF_OK;
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++) {
            const size_t k = a * flow->model->stride + i;
            flow->image[k] = (float)fmin(1, ((double)flow->u[k] - flow->low[i]) * flow->scale[i]);
        }
    size_t *all = dcrf_allocate(labels, sizeof *all);
    if (!all)
        return dcrf_fail_memory(error, "the record of the LP");
    for (size_t i = 0; i < labels; i++)
        all[i] = i;
    const dcrf_status status =
        dcrf_lp_record_point(flow->lp, &flow->lp->best, &is_flow, flow->image, all, labels, error);
    dcrf_release(all);
    return status;
}

/* The flow becomes lp->best, and what it proves lp->bound. */
static dcrf_status claim(struct flow *flow, dcrf_error *error) {
    struct dcrf_lp *lp = flow->lp;
    const size_t n = flow->model->variables;
    double *memory = dcrf_allocate(n, (3 * DOUBLE_CHANNELS + 2) * sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "the potential flow");
    struct claim c = {.flow = flow, .lowest = memory + (3 * DOUBLE_CHANNELS + 1) * n};
    dcrf_status status = DCRF_OK;
    for (size_t a = 0; a < n; a++)
        c.lowest[a] = INFINITY;
    for (c.first = 0; c.first < flow->model->labels && status == DCRF_OK; c.first += c.count) {
        const size_t left = flow->model->labels - c.first;
        c.count = left < DOUBLE_CHANNELS ? left : DOUBLE_CHANNELS;
        c.out = memory;
        c.total = c.out + n * c.count;
        c.in = c.total + n * c.count;
        status = claim_labels(&c, error);
    }
    if (status == DCRF_OK) {
        /* Each number is a sum of at most 2 n + 1000 terms of at most the row sum. The cliques'
         * part of the zero point adds up to nothing with the constant. */
        const double relative = (3 * (double)n + 2000) * 0x1p-53;
        double sum = 0, error_bound = 0;
        for (size_t a = 0; a < n; a++) {
            sum += c.lowest[a];
            error_bound += relative * (fabs(c.lowest[a]) + 2 * (double)lp->space.row_sums[a]);
        }
        lp->best.pairwise_roundings = 1; /* to float */
        lp->bound = fmax(lp->bound, sum - error_bound);
    } else {
        dcrf_dual_reset(&lp->best, &lp->space);
    }
    dcrf_release(memory);
    return status == DCRF_OK ? record(flow, error) : status;
}

static double sum_labels(const struct flow *flow, const double *values) {
    double sum = 0;
    for (size_t i = 0; i < flow->model->labels; i++)
        sum += values[i];
    return sum;
}

/* ---- the attempt ---------------------------------------------------------------------------- */

static dcrf_status attempt(struct flow *flow, double constant_energy, dcrf_error *error) {
    begin_flow(flow);
    const double first = sum_labels(flow, flow->rho);
    for (int k = 1; k <= MOST_ITERATIONS; k++) {
        const dcrf_status status = iterate(flow, error);
        if (status < 0)
            return status;
        if (k % LOOK_EVERY != 0)
            continue;
        measure_spread(flow);
        const double missing =
            constant_energy -
            dcrf_parallel_sum(flow->pool, flow->model->variables, estimate_rows, flow);
        if (!(missing > WANTED * fabs(constant_energy)) ||
            !(sum_labels(flow, flow->rho) > SOLVED * first) ||
            dcrf_stop_is_time(flow->lp->problem->stop))
            break;
    }
    return claim(flow, error);
}

dcrf_status dcrf_lp_potential_flow(struct dcrf_lp *lp, double constant_energy, dcrf_error *error) {
    const dcrf_model *model = lp->problem->model;
    const size_t chunks = (model->variables + GRAIN - 1) / GRAIN;
    double *memory = dcrf_allocate(chunks + 5, model->labels * sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "the potential flow");
    double *row = memory + chunks * model->labels;
    struct flow flow = {.lp = lp,
                        .model = model,
                        .pool = dcrf_workspace_pool(lp->problem->workspace),
                        .u = lp->y,
                        .residual = lp->previous,
                        .direction = lp->z,
                        .image = lp->current.pairwise,
                        .partial = memory,
                        .mean = row,
                        .rho = row + model->labels,
                        .curvature = row + 2 * model->labels,
                        .low = row + 3 * model->labels,
                        .scale = row + 4 * model->labels};
    const dcrf_status status = attempt(&flow, constant_energy, error);
    dcrf_release(memory);
    return status;
}
