/* A proof that a constant labelling is optimal, by potential flow.
 *
 * For every label i solve (D - K) u_i = phi_i - mean(phi_i), D = diag(K 1). If max u_i - min u_i <=
 * 1, alpha_ab:i = K_ab (u_ai - u_bi) is feasible, A alpha = (D - K) u, and every reduced cost of
 * the label becomes mean(phi_i): the bound is the energy of the best constant labelling. If the
 * spread is larger, u_i is scaled down to a spread of 1, which is feasible too but proves less.
 *
 * Conjugate gradients with the preconditioner 1 / D, all labels together: one plain filter
 * application per iteration. K is smooth, so D - K has few eigenvalues away from D and a few dozen
 * iterations are enough. The recursion's residual only says when to check; the bound is recomputed
 * from u in double, where the rounding of (D - K) u is negligible even for row sums in the
 * thousands. The conjugate gradients run on a backend (backend/backend.h). */
#include "lp/potential_flow.h"

#include "backend/make.h"
#include "core/error.h"
#include "core/memory.h"
#include "filter/plan.h"

#include <math.h>

#define MOST_ITERATIONS 100
#define ITERATIONS_PER_CHECK 4
/* Good enough: relative to the energy. */
#define WANTED 2e-6
/* The equations are solved when the squared preconditioned residual has fallen by this factor. The
 * estimate itself fluctuates and means nothing before the end. */
#define SOLVED 1e-12
/* Labels per application of the operators in double. */
#define DOUBLE_CHANNELS 8

struct flow {
    const struct dcrf_dual_space *space;
    const dcrf_model *model;
    dcrf_pool *pool;
    const struct dcrf_interrupt *interrupt;
    float *u;            /* block */
    float *metric;       /* per variable: D, but at least a small positive value */
    double *low, *scale; /* per label: the smallest u, and the factor for a spread of 1 */
    const struct dcrf_backend_flow_methods *methods;
    dcrf_backend_flow *gradients;
};

/* ---- the proof ------------------------------------------------------------------------------ */

/* The current labels: `count` channels of doubles per variable. */
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

/* A alpha = D u - K u, and the resulting reduced costs. */
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
    dcrf_parallel_rows(c->flow->pool, n, fill_double, c);
    const dcrf_status status = dcrf_plan_sum_double(space->plan, space->workspace, c->in, c->out,
                                                    c->scratch, c->count, error);
    if (status == DCRF_OK)
        dcrf_parallel_rows(c->flow->pool, n, take_costs, c);
    return status;
}

/* Replace u by the scaled potentials, for certificates. */
static void fill_potentials(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct flow *flow = context;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < flow->model->labels; i++) {
            const size_t k = a * flow->model->stride + i;
            flow->u[k] = (float)fmin(1, ((double)flow->u[k] - flow->low[i]) * flow->scale[i]);
        }
}

/* A bound on the roundings to double behind each number of the flow: a sum of at most 2 n + 1000
 * terms, each at most the row sum, and the operations on it. */
static double double_roundings(const struct flow *flow) {
    return 3 * (double)flow->model->variables + 2000;
}

/* The bound that the reduced costs `lowest` prove. The cliques' part of the zero point and the
 * constant cancel. */
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

/* Compute the proof; if interrupted, none. */
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
        dcrf_parallel_rows(flow->pool, n, fill_potentials, flow);
        *proof =
            (struct dcrf_flow_proof){.potentials = flow->u,
                                     .pairwise = pairwise,
                                     .roundings = 2 * double_roundings(flow) * DCRF_DOUBLE_ROUNDING,
                                     .spread = flow->low,
                                     .bound = bound_of(flow, c.lowest)};
        for (size_t i = 0; i < flow->model->labels; i++)
            flow->low[i] = flow->scale[i] < 1 ? 1 / flow->scale[i] : 1;
        flow->u = NULL; /* the proof owns them now */
        flow->low = flow->scale = NULL;
    } else {
        dcrf_release(pairwise);
    }
    dcrf_release(memory);
    return status;
}

/* ---- the attempt ---------------------------------------------------------------------------- */

/* Would more iterations gain nothing? `first` is the initial residual. */
static bool is_done(double missing, double constant_energy, double residual, double first) {
    return !(missing > WANTED * fabs(constant_energy)) || !(residual > SOLVED * first);
}

/* Find u, and its low and scale; *is_whole stays false if interrupted. */
static dcrf_status solve(struct flow *flow, double constant_energy, bool *is_whole,
                         dcrf_error *error) {
    double first, residual, estimate;
    dcrf_status status = flow->methods->iterate(flow->gradients, 0, NULL, &first, &estimate, error);
    for (int k = 0; k < MOST_ITERATIONS && status == DCRF_OK; k += ITERATIONS_PER_CHECK) {
        status = flow->methods->iterate(flow->gradients, ITERATIONS_PER_CHECK, flow->interrupt,
                                        &residual, &estimate, error);
        if (dcrf_is_interrupted(flow->interrupt))
            return status;
        if (is_done(constant_energy - estimate, constant_energy, residual, first))
            break;
    }
    if (status == DCRF_OK)
        status = flow->methods->read(flow->gradients, flow->low, flow->scale, error);
    *is_whole = status == DCRF_OK;
    return status;
}

static dcrf_status attempt(struct flow *flow, double constant_energy, struct dcrf_flow_proof *proof,
                           dcrf_error *error) {
    bool is_whole = false;
    const dcrf_status status = solve(flow, constant_energy, &is_whole, error);
    return status == DCRF_OK && is_whole ? claim(flow, proof, error) : status;
}

/* Uncoupled variables get a small value in the preconditioner. */
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

static bool take_memory(struct flow *flow) {
    const size_t n = flow->model->variables;
    flow->u = dcrf_allocate_zero(n, flow->model->stride * sizeof(float));
    flow->metric = dcrf_allocate(n, sizeof *flow->metric);
    flow->low = dcrf_allocate(flow->model->labels, 2 * sizeof *flow->low);
    flow->scale = flow->low ? flow->low + flow->model->labels : NULL;
    return flow->u && flow->metric && flow->low;
}

static dcrf_status make_gradients(void *user, const struct dcrf_backend *backend,
                                  dcrf_backend_device *device,
                                  const struct dcrf_backend_model *model, dcrf_error *error) {
    struct flow *flow = user;
    flow->methods = backend->flow;
    return flow->methods->make(&flow->gradients, device, model, flow->space->row_sums, flow->metric,
                               flow->u, error);
}

dcrf_status dcrf_potential_flow(const struct dcrf_dual_space *space, double constant_energy,
                                const struct dcrf_interrupt *interrupt,
                                struct dcrf_flow_proof *proof, dcrf_error *error) {
    struct flow flow = {.space = space,
                        .model = space->plan->model,
                        .pool = dcrf_workspace_pool(space->workspace),
                        .interrupt = interrupt};
    dcrf_status status = DCRF_OK;
    *proof = (struct dcrf_flow_proof){0};
    if (!take_memory(&flow))
        status = dcrf_fail_memory(error, "the potential flow");
    if (status == DCRF_OK) {
        make_metric(&flow);
        status =
            dcrf_backend_make(space->plan, space->workspace, NULL, make_gradients, &flow, error);
    }
    if (status == DCRF_OK)
        status = attempt(&flow, constant_energy, proof, error);
    if (flow.gradients)
        flow.methods->free(flow.gradients);
    dcrf_release(flow.u);
    dcrf_release(flow.metric);
    dcrf_release(flow.low);
    return status;
}

void dcrf_flow_proof_clear(struct dcrf_flow_proof *proof) {
    dcrf_release(proof->potentials);
    dcrf_release(proof->pairwise);
    dcrf_release(proof->spread);
    *proof = (struct dcrf_flow_proof){0};
}
