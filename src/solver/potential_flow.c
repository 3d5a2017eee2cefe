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
 * in the thousands. Where the plan is on a device the gradients run there, and u comes here. */
#include "solver/potential_flow.h"

#include "core/error.h"
#include "core/memory.h"
#include "solver/lp_device.h"

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

struct flow {
    const struct dcrf_dual_space *space;
    const dcrf_model *model;
    dcrf_pool *pool;
    const struct dcrf_interrupt *interrupt;
    float *u, *residual, *direction, *image; /* blocks; on a device there is u only */
    float *metric;                           /* per variable: D, or a little where it is zero */
    double *partial;                         /* chunks x labels */
    double *mean, *rho, *curvature, *low, *scale, *excess;
    const float *left, *right; /* blocks of a product in hand; right = NULL: ones */
    const float *divisor;      /* per variable, or NULL */

    const struct dcrf_backend_flow_methods *methods;
    dcrf_backend_flow *there; /* NULL: here */
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
            sums[i] += factor * (double)flow->left[a * stride + i] *
                       (flow->right ? (double)flow->right[a * stride + i] : 1);
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

/* image = (D - K) direction */
static void finish_image(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct flow *flow = context;
    const size_t stride = flow->model->stride;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * stride + i;
            flow->image[k] = flow->space->row_sums[a] * flow->direction[k] - flow->image[k];
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

/* The residual sums to zero, since D - K maps everything to what does. Rounding adds a constant to
 * it, which no flow can take away: left there, it keeps the recursion from its end, and in the end
 * it is all that the directions are made of. */
static void center(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct flow *flow = context;
    const double n = (double)flow->model->variables;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < flow->model->labels; i++)
            flow->residual[a * flow->model->stride + i] -= (float)(flow->excess[i] / n);
}

/* direction = residual / D + beta direction; `curvature` holds beta. */
static void turn(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct flow *flow = context;
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

static void begin_flow(struct flow *flow) {
    const size_t n = flow->model->variables, stride = flow->model->stride;
    const size_t labels = flow->model->labels;
    memset(flow->u, 0, n * stride * sizeof(float));
    memset(flow->direction, 0, n * stride * sizeof(float));
    memset(flow->residual, 0, n * stride * sizeof(float));
    memset(flow->image, 0, n * stride * sizeof(float));
    memset(flow->mean, 0, labels * sizeof *flow->mean);
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++)
            flow->mean[i] += (double)flow->model->unary[a * stride + i] / (double)n;
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++)
            flow->residual[a * stride + i] =
                (float)((double)flow->model->unary[a * stride + i] - flow->mean[i]);
    multiply(flow, flow->residual, flow->residual, flow->metric, flow->rho);
    memset(flow->curvature, 0, labels * sizeof *flow->curvature);
    dcrf_parallel_for(flow->pool, n, GRAIN, turn, flow);
}

static dcrf_status iterate(struct flow *flow, dcrf_error *error) {
    const size_t n = flow->model->variables;
    const dcrf_plan *plan = flow->space->plan;
    const dcrf_status status =
        dcrf_plan_sum(plan, flow->space->workspace, NULL, plan->kernel_count, flow->direction,
                      flow->image, flow->model->labels, flow->model->stride, error);
    if (status < 0)
        return status;
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

/* Some labels in hand: `count` channels of doubles a variable. */
struct claim {
    struct flow *flow;
    double *pairwise; /* out */
    size_t first, count;
    double *in, *out, *scratch;
    double *lowest; /* per variable: the smallest reduced cost so far */
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
        }
}

/* A alpha = D u - K u, and the reduced costs that it leaves. */
static void take_costs(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct claim *c = context;
    const dcrf_model *model = c->flow->model;
    for (size_t a = begin; a < end; a++)
        for (size_t k = 0; k < c->count; k++) {
            const size_t at = a * model->stride + c->first + k;
            const double flow =
                c->flow->space->sums[a] * c->in[a * c->count + k] - c->out[a * c->count + k];
            const double cost = (double)model->unary[at] - flow;
            c->pairwise[at] = flow;
            c->lowest[a] = cost < c->lowest[a] ? cost : c->lowest[a];
        }
}

static dcrf_status claim_labels(struct claim *c, dcrf_error *error) {
    const struct dcrf_dual_space *space = c->flow->space;
    const size_t n = c->flow->model->variables;
    dcrf_parallel_for(c->flow->pool, n, GRAIN, fill_double, c);
    const dcrf_status status = dcrf_plan_sum_double(space->plan, space->workspace, c->in, c->out,
                                                    c->scratch, c->count, error);
    if (status == DCRF_OK)
        dcrf_parallel_for(c->flow->pool, n, GRAIN, take_costs, c);
    return status;
}

/* The flow as it was claimed, for the verifier. */
static void fill_potentials(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct flow *flow = context;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * flow->model->stride + i;
            flow->u[k] = (float)fmin(1, ((double)flow->u[k] - flow->low[i]) * flow->scale[i]);
        }
}

/* Roundings to double on the way to a number of the flow: a sum of at most 2 n + 1000 terms of at
 * most the row sum, and what is made of it. */
static double double_roundings(const struct flow *flow) {
    return 3 * (double)flow->model->variables + 2000;
}

/* What is proven by reduced costs `lowest`. The cliques' part of the zero point adds up to nothing
 * with the constant. */
static double bound_of(const struct flow *flow, const double *lowest) {
    const size_t n = flow->model->variables;
    const double relative = double_roundings(flow) * 0x1p-53;
    double sum = 0, error_bound = 0;
    for (size_t a = 0; a < n; a++) {
        sum += lowest[a];
        error_bound += relative * (fabs(lowest[a]) + 2 * flow->space->sums[a]);
    }
    return sum - error_bound;
}

/* What the flow proves; nothing where it is interrupted. */
static dcrf_status claim(struct flow *flow, struct dcrf_flow_proof *proof, dcrf_error *error) {
    const size_t n = flow->model->variables;
    double *memory = dcrf_allocate(n, (3 * DOUBLE_CHANNELS + 1) * sizeof *memory);
    double *pairwise = dcrf_allocate_zero(n, flow->model->stride * sizeof *pairwise);
    if (!memory || !pairwise) {
        dcrf_release(memory);
        dcrf_release(pairwise);
        return dcrf_fail_memory(error, "the potential flow");
    }
    struct claim c = {.flow = flow,
                      .pairwise = pairwise,
                      .in = memory,
                      .out = memory + DOUBLE_CHANNELS * n,
                      .scratch = memory + 2 * DOUBLE_CHANNELS * n,
                      .lowest = memory + 3 * DOUBLE_CHANNELS * n};
    dcrf_status status = DCRF_OK;
    bool is_whole = true;
    for (size_t a = 0; a < n; a++)
        c.lowest[a] = INFINITY;
    for (; c.first < flow->model->labels && status == DCRF_OK && is_whole; c.first += c.count) {
        const size_t left = flow->model->labels - c.first;
        c.count = left < DOUBLE_CHANNELS ? left : DOUBLE_CHANNELS;
        status = claim_labels(&c, error);
        is_whole =
            c.first + c.count >= flow->model->labels || !dcrf_is_interrupted(flow->interrupt);
    }
    if (status == DCRF_OK && is_whole) {
        dcrf_parallel_for(flow->pool, n, GRAIN, fill_potentials, flow);
        *proof =
            (struct dcrf_flow_proof){.potentials = flow->u,
                                     .pairwise = pairwise,
                                     .roundings = 2 * double_roundings(flow) * DCRF_DOUBLE_ROUNDING,
                                     .bound = bound_of(flow, c.lowest)};
        flow->u = NULL; /* the proof's now */
    } else {
        dcrf_release(pairwise);
    }
    dcrf_release(memory);
    return status;
}

static double sum_labels(const struct flow *flow, const double *values) {
    double sum = 0;
    for (size_t i = 0; i < flow->model->labels; i++)
        sum += values[i];
    return sum;
}

/* ---- the attempt ---------------------------------------------------------------------------- */

/* Is there nothing to be gained by more iterations? `first` is the residual at the start. */
static bool is_done(double missing, double constant_energy, double residual, double first) {
    return !(missing > WANTED * fabs(constant_energy)) || !(residual > SOLVED * first);
}

/* Both find u, and its low and scale; *is_whole: unless they are interrupted. */
static dcrf_status solve_here(struct flow *flow, double constant_energy, bool *is_whole,
                              dcrf_error *error) {
    begin_flow(flow);
    const double first = sum_labels(flow, flow->rho);
    for (int k = 1; k <= MOST_ITERATIONS; k++) {
        const dcrf_status status = iterate(flow, error);
        if (status < 0)
            return status;
        if (dcrf_is_interrupted(flow->interrupt))
            return DCRF_OK;
        if (k % LOOK_EVERY != 0)
            continue;
        measure_spread(flow);
        const double estimate =
            dcrf_parallel_sum(flow->pool, flow->model->variables, estimate_rows, flow);
        if (is_done(constant_energy - estimate, constant_energy, sum_labels(flow, flow->rho),
                    first))
            break;
    }
    *is_whole = true;
    return DCRF_OK;
}

static dcrf_status solve_there(struct flow *flow, double constant_energy, bool *is_whole,
                               dcrf_error *error) {
    const struct dcrf_backend_flow_methods *methods = flow->methods;
    double first, residual, estimate;
    dcrf_status status = methods->iterate(flow->there, 0, &first, &estimate, error);
    for (int k = 0; k < MOST_ITERATIONS && status == DCRF_OK; k += LOOK_EVERY) {
        status = methods->iterate(flow->there, LOOK_EVERY, &residual, &estimate, error);
        if (dcrf_is_interrupted(flow->interrupt))
            return status;
        if (is_done(constant_energy - estimate, constant_energy, residual, first))
            break;
    }
    if (status == DCRF_OK)
        status = methods->read(flow->there, flow->u, flow->low, flow->scale, error);
    *is_whole = status == DCRF_OK;
    return status;
}

static dcrf_status attempt(struct flow *flow, double constant_energy, struct dcrf_flow_proof *proof,
                           dcrf_error *error) {
    bool is_whole = false;
    const dcrf_status status = flow->there ? solve_there(flow, constant_energy, &is_whole, error)
                                           : solve_here(flow, constant_energy, &is_whole, error);
    return status == DCRF_OK && is_whole ? claim(flow, proof, error) : status;
}

static bool take_memory(struct flow *flow) {
    const size_t n = flow->model->variables, labels = flow->model->labels;
    const size_t row = flow->model->stride * sizeof(float);
    flow->u = dcrf_allocate_zero(n, row);
    flow->partial = dcrf_allocate(chunk_count(flow) + 6, labels * sizeof *flow->partial);
    if (!flow->u || !flow->partial)
        return false;
    if (!flow->there) {
        flow->residual = dcrf_allocate(n, row);
        flow->direction = dcrf_allocate(n, row);
        flow->image = dcrf_allocate(n, row);
        if (!flow->residual || !flow->direction || !flow->image)
            return false;
    }
    double **const rows[] = {&flow->mean, &flow->rho,   &flow->curvature,
                             &flow->low,  &flow->scale, &flow->excess};
    for (size_t k = 0; k < 6; k++)
        *rows[k] = flow->partial + (chunk_count(flow) + k) * labels;
    return true;
}

/* Variables that nothing holds get a small weight in the preconditioner. */
static void make_metric(struct flow *flow) {
    const size_t n = flow->model->variables;
    double mean = 0;
    for (size_t a = 0; a < n; a++)
        mean += flow->space->sums[a] / (double)n;
    const float floor = mean > 0 ? (float)(1e-3 * mean) : 1e-3f;
    for (size_t a = 0; a < n; a++) {
        const float sum = flow->space->row_sums[a];
        flow->metric[a] = sum > floor ? sum : floor;
    }
}

/* Have the gradients on the workspace's device, where there is one that can do it. */
static dcrf_status try_device(struct flow *flow, dcrf_error *error) {
    struct dcrf_lp_there there;
    dcrf_status status =
        dcrf_lp_there_init(&there, flow->space->plan, flow->space->workspace, error);
    if (status == DCRF_OK && there.device) {
        flow->methods = &there.device->backend->flow;
        status = flow->methods->make(&flow->there, there.device->opened, &there.model,
                                     flow->space->row_sums, flow->metric, error);
        if (status == DCRF_ERROR_UNSUPPORTED)
            status = DCRF_OK; /* here, then */
    }
    dcrf_lp_there_clear(&there);
    return status;
}

dcrf_status dcrf_potential_flow(const struct dcrf_dual_space *space, double constant_energy,
                                const struct dcrf_interrupt *interrupt,
                                struct dcrf_flow_proof *proof, dcrf_error *error) {
    const size_t n = space->plan->model->variables;
    struct flow flow = {.space = space,
                        .model = space->plan->model,
                        .pool = dcrf_workspace_pool(space->workspace),
                        .interrupt = interrupt,
                        .metric = dcrf_allocate(n, sizeof *flow.metric)};
    *proof = (struct dcrf_flow_proof){0};
    dcrf_status status = DCRF_OK;
    if (flow.metric) {
        make_metric(&flow);
        status = try_device(&flow, error);
    }
    if (status == DCRF_OK)
        status = flow.metric && take_memory(&flow) ? attempt(&flow, constant_energy, proof, error)
                                                   : dcrf_fail_memory(error, "the potential flow");
    if (flow.there)
        flow.methods->free(flow.there);
    dcrf_release(flow.u);
    dcrf_release(flow.residual);
    dcrf_release(flow.direction);
    dcrf_release(flow.image);
    dcrf_release(flow.metric);
    dcrf_release(flow.partial);
    return status;
}

void dcrf_flow_proof_clear(struct dcrf_flow_proof *proof) {
    dcrf_release(proof->potentials);
    dcrf_release(proof->pairwise);
    *proof = (struct dcrf_flow_proof){0};
}
