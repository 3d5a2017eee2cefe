/* The LP's work on rows: what lp/lp_huber.c and backend/dual.c do variable by variable. */
#include "backend/cuda/lp.cuh"

#include <cfloat>

#define WHAT "the LP"
/* Threads per row, and labels per thread. */
#define FEW_LANES 8
#define FEW_ITEMS 4
#define MANY_LANES 32
#define MANY_ITEMS (LP_MOST_LABELS / MANY_LANES)

/* Sums of an inner step; INNER_UPHILL is that of the inner iteration. */
enum { DECREASE, INNER_UPHILL, INNER_UNARY, OUTER_UPHILL, INNER_SUMS };

static bool has_few_labels(const dcrf_backend_lp *lp) {
    return lp->label_count <= FEW_LANES * FEW_ITEMS;
}

size_t lp_row_partials(size_t variables) {
    return blocks_for(variables * MANY_LANES) * (size_t)INNER_SUMS;
}

/* ---- labels that are alive ------------------------------------------------------------------ */

/* The launch has a multiple of `stride` threads, so each thread has only one label; `most` is its
 * largest value. Nonnegative floats compare like their bits. */
static __device__ void keep_largest(float most, uint32_t label, uint32_t labels,
                                    uint32_t *largest) {
    __shared__ uint32_t mine[LP_MOST_LABELS];
    for (uint32_t i = threadIdx.x; i < labels; i += THREADS)
        mine[i] = 0;
    __syncthreads();
    if (label < labels)
        atomicMax(&mine[label], __float_as_uint(most));
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < labels; i += THREADS)
        if (mine[i] > 0)
            atomicMax(&largest[i], mine[i]);
}

static unsigned blocks_of_columns(const dcrf_backend_lp *lp) {
    const size_t turns = 512 / lp->stride;
    return (unsigned)(lp->stride * (turns > 0 ? turns : 1));
}

static __global__ void find_largest(const float *z, size_t floats, uint32_t stride, uint32_t labels,
                                    uint32_t *largest) {
    const size_t first = this_thread();
    float most = 0;
    for (size_t i = first; i < floats; i += (size_t)gridDim.x * THREADS)
        most = z[i] > most ? z[i] : most;
    keep_largest(most, (uint32_t)(first % stride), labels, largest);
}

dcrf_status lp_find_largest(dcrf_backend_lp *lp, dcrf_error *error) {
    cudaStream_t stream = lp->device->stream;
    TRY(check(cudaMemsetAsync(lp->answer->largest, 0, sizeof lp->answer->largest, stream), WHAT,
              error));
    find_largest<<<blocks_of_columns(lp), THREADS, 0, stream>>>(
        lp->z, lp->variables * lp->stride, (uint32_t)lp->stride, (uint32_t)lp->label_count,
        lp->answer->largest);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- the step ------------------------------------------------------------------------------- */

/* The threshold of the projection onto the simplex (backend/simplex.c) for the rows of a warp;
 * a row that is done waits for the others. */
template <int LANES, int ITEMS>
static __device__ double find_threshold(const float (&value)[ITEMS], const bool (&has)[ITEMS],
                                        int labels) {
    double sum = 0;
#pragma unroll
    for (int item = 0; item < ITEMS; item++)
        sum += has[item] ? (double)value[item] : 0;
    sum = sum_of_lanes<LANES>(sum);
    int kept = labels;
    double theta = 0;
    bool is_done = false;
    while (__any_sync(0xffffffffu, !is_done)) {
        const double next = is_done ? theta : (sum - 1) / kept;
        int above = 0;
        double left = 0;
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const bool is_above = has[item] && (double)value[item] > next;
            above += is_above;
            left += is_above ? (double)value[item] : 0;
        }
        above = sum_of_lanes<LANES>(above);
        left = sum_of_lanes<LANES>(left);
        theta = next;
        is_done |= above >= kept || above == 0;
        if (!is_done) {
            kept = above;
            sum = left;
        }
    }
    return theta;
}

template <int LANES, int ITEMS>
static __global__ void project_rows(struct lp_rows r, struct lp_descent p) {
    const size_t a = this_thread() / LANES;
    const uint32_t lane = threadIdx.x % LANES;
    const bool has_row = a < r.variables;
    const float metric = has_row ? p.metric[a] : 1;
    const float tau = (float)p.epsilon / metric;
    float z[ITEMS], value[ITEMS];
    bool has[ITEMS];
    double sums[LP_DESCENT_SUMS] = {0, 0, 0};
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t label = lane + (uint32_t)item * LANES;
        has[item] = has_row && label < r.labels;
        const size_t at = a * r.stride + label;
        const float unary = has[item] ? r.unary[at] : 0;
        const double dual = has[item] ? dual_at(p.current, at) : 0;
        z[item] = has[item] ? p.z[at] : 0;
        value[item] = z[item] + tau * ((float)dual - unary);
        sums[LP_OBJECTIVE] += (double)z[item] * ((double)unary - dual);
    }
    const double theta = find_threshold<LANES, ITEMS>(value, has, (int)r.labels);
    float uphill = 0, lowest = FLT_MAX; /* of -y */
    uint32_t best = UINT32_MAX;
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t label = lane + (uint32_t)item * LANES;
        const size_t at = a * r.stride + label;
        const double above = (double)value[item] - theta;
        const float y = above > 0 ? (float)above : 0;
        if (has[item]) {
            uphill += (z[item] - y) * (y - p.previous[at]);
            p.y[at] = y;
        }
        if (has[item] && -y < lowest) {
            lowest = -y;
            best = label;
        }
    }
    lowest_of_lanes<LANES>(&lowest, &best);
    if (has_row && lane == 0)
        sums[LP_UNARY] = keep_label(r, p, a, best);
    sums[LP_UPHILL] = (double)(metric * uphill);
    end_descent(p, sums);
}

static dcrf_status project(const dcrf_backend_lp *lp, double epsilon, dcrf_error *error) {
    const struct lp_descent p = lp_descent_of(lp, epsilon);
    const struct lp_rows rows = lp_rows_of(lp);
    const unsigned blocks =
        blocks_for(lp->variables * (has_few_labels(lp) ? FEW_LANES : MANY_LANES));
    if (has_few_labels(lp))
        project_rows<FEW_LANES, FEW_ITEMS><<<blocks, THREADS, 0, lp->device->stream>>>(rows, p);
    else
        project_rows<MANY_LANES, MANY_ITEMS><<<blocks, THREADS, 0, lp->device->stream>>>(rows, p);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- inner steps (backend/cpu/lp_majorant.c) ------------------------------------------------- */

struct inner_step {
    const float *z, *previous, *y, *metric;
    const float *difference, *filtered; /* w - z, and K (w - z) */
    struct lp_dual current;
    float epsilon;
    float *next;
    uint16_t *labels; /* of the largest entries of `next`; ties go to the first */
    struct lp_answer *answer;
    double *partial;
    unsigned *blocks_done;
};

/* Prepare the next step; called by one thread when the sums are complete. */
static __device__ void end_inner_step(struct lp_answer *answer, const double *totals) {
    const double now = totals[INNER_UPHILL] > 0 ? 1 : fmax(answer->momentum, 1.0);
    answer->momentum = (1 + sqrt(1 + 4 * now * now)) / 2;
    answer->beta = (now - 1) / answer->momentum;
    answer->decrease[0] = answer->decrease[1];
    answer->decrease[1] = totals[DECREASE];
    answer->uphill = totals[OUTER_UPHILL];
    answer->unary = totals[INNER_UNARY];
}

template <int LANES, int ITEMS>
static __global__ void project_inner(struct lp_rows r, struct inner_step p) {
    const size_t a = this_thread() / LANES;
    const uint32_t lane = threadIdx.x % LANES;
    const bool has_row = a < r.variables;
    const float metric = has_row ? p.metric[a] : 1;
    const float tau = p.epsilon / metric;
    float z[ITEMS], difference[ITEMS], value[ITEMS], decrease = 0;
    bool has[ITEMS];
    double sums[INNER_SUMS] = {0, 0, 0, 0}, totals[INNER_SUMS];
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t label = lane + (uint32_t)item * LANES;
        has[item] = has_row && label < r.labels;
        const size_t at = a * r.stride + label;
        const float down = has[item] ? (float)dual_at(p.current, at) - r.unary[at] : 0;
        const float pull = has[item] ? p.filtered[at] / p.epsilon : 0;
        z[item] = has[item] ? p.z[at] : 0;
        difference[item] = has[item] ? p.difference[at] : 0;
        value[item] = z[item] + tau * (down + pull);
        decrease +=
            difference[item] * (down + 0.5f * (pull - metric / p.epsilon * difference[item]));
    }
    const double theta = find_threshold<LANES, ITEMS>(value, has, (int)r.labels);
    float uphill = 0, outer = 0, lowest = FLT_MAX; /* of -y */
    uint32_t best = UINT32_MAX;
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t label = lane + (uint32_t)item * LANES;
        const size_t at = a * r.stride + label;
        const double above = (double)value[item] - theta;
        const float y = above > 0 ? (float)above : 0;
        if (has[item]) {
            uphill += (z[item] + difference[item] - y) * (y - p.y[at]);
            outer += (z[item] - y) * (y - p.previous[at]);
            p.next[at] = y;
        }
        if (has[item] && -y < lowest) {
            lowest = -y;
            best = label;
        }
    }
    lowest_of_lanes<LANES>(&lowest, &best);
    if (has_row && lane == 0) {
        p.labels[a] = (uint16_t)best;
        if (!p.answer->occurs[best])
            p.answer->occurs[best] = 1; /* all threads write the same value */
        sums[INNER_UNARY] = (double)r.unary[a * r.stride + best];
    }
    sums[DECREASE] = (double)decrease;
    sums[INNER_UPHILL] = (double)(metric * uphill);
    sums[OUTER_UPHILL] = (double)(metric * outer);
    if (sum_of_launch<INNER_SUMS, THREADS>(sums, p.partial, p.blocks_done, totals) &&
        threadIdx.x == 0)
        end_inner_step(p.answer, totals);
}

/* w - z, where y is the newer of the last two steps. */
static __global__ void find_difference(size_t floats, const float *y, const float *before,
                                       const float *z, const double *beta, float *difference) {
    const size_t i = this_thread();
    if (i < floats)
        difference[i] = y[i] + (float)*beta * (y[i] - before[i]) - z[i];
}

static dcrf_status take_inner(dcrf_backend_lp *lp, dcrf_error *error) {
    if (lp->inner)
        return DCRF_OK; /* the padding of rows is also read */
    return device_zeros(lp->device, &lp->inner, lp->variables * lp->stride, WHAT, error);
}

static dcrf_status filter_difference(dcrf_backend_lp *lp, dcrf_error *error) {
    if (lp->kernel_count == 0)
        TRY(device_clear(lp->device, lp->filtered[0], lp->variables * lp->stride, WHAT, error));
    for (size_t m = 0; m < lp->kernel_count; m++) {
        const struct dcrf_application application = {
            DCRF_SYMMETRIC,        lp->packed, lp->filtered[0], lp->label_count, lp->stride,
            (float)lp->weights[m], m > 0};
        TRY(lp->operators[m]->apply_on_device(lp->operators[m], &application, error));
    }
    return lp->cliques.count > 0
               ? cliques_add_means(&lp->cliques, lp->stiffness, lp->packed, lp->filtered[0], error)
               : DCRF_OK;
}

static dcrf_status step_inside(dcrf_backend_lp *lp, float epsilon, bool is_first,
                               dcrf_error *error) {
    const size_t floats = lp->variables * lp->stride;
    cudaStream_t stream = lp->device->stream;
    find_difference<<<blocks_for(floats), THREADS, 0, stream>>>(
        floats, lp->y, is_first ? lp->y : lp->inner, lp->z, &lp->answer->beta, lp->packed);
    TRY(filter_difference(lp, error));
    const struct inner_step p = {lp->z,
                                 lp->previous,
                                 lp->y,
                                 lp->metric,
                                 lp->packed,
                                 lp->filtered[0],
                                 lp->dual[DCRF_BACKEND_CURRENT],
                                 epsilon,
                                 lp->inner,
                                 lp->labels,
                                 lp->answer,
                                 lp->partial,
                                 lp->blocks_done};
    const struct lp_rows rows = lp_rows_of(lp);
    if (has_few_labels(lp))
        project_inner<FEW_LANES, FEW_ITEMS>
            <<<blocks_for(lp->variables * FEW_LANES), THREADS, 0, stream>>>(rows, p);
    else
        project_inner<MANY_LANES, MANY_ITEMS>
            <<<blocks_for(lp->variables * MANY_LANES), THREADS, 0, stream>>>(rows, p);
    float *const swap = lp->inner;
    lp->inner = lp->y;
    lp->y = swap;
    return check(cudaGetLastError(), WHAT, error);
}

struct extrapolation {
    const float *y, *previous;
    float beta;
    const double *uphill;
    float *z;
    uint32_t *largest;
};

/* z and its largest entries; launched like find_largest. */
static __global__ void extrapolate(struct lp_rows r, struct extrapolation e) {
    const size_t first = this_thread(), floats = r.variables * r.stride;
    const float beta = *e.uphill > 0 ? 0 : e.beta;
    float most = 0;
    for (size_t i = first; i < floats; i += (size_t)gridDim.x * THREADS) {
        const float y = e.y[i], value = y + beta * (y - e.previous[i]);
        const float z = value < 0 ? 0 : value > 1 ? 1 : value;
        e.z[i] = z;
        most = z > most ? z : most;
    }
    keep_largest(most, (uint32_t)(first % r.stride), r.labels, e.largest);
}

dcrf_status lp_descend(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                       dcrf_error *error) {
    float *const swap = lp->previous;
    lp->previous = lp->y;
    lp->y = swap;
    TRY(lp->space->is_potts ? project(lp, how->epsilon, error)
                            : lp_step_cuts(lp, how->epsilon, error));
    if (how->inner_steps > 0)
        TRY(take_inner(lp, error));
    for (size_t k = 0; k < how->inner_steps; k++)
        TRY(step_inside(lp, (float)how->epsilon, k == 0, error));
    const struct extrapolation e = {lp->y, lp->previous,       how->beta, &lp->answer->uphill,
                                    lp->z, lp->answer->largest};
    extrapolate<<<blocks_of_columns(lp), THREADS, 0, lp->device->stream>>>(lp_rows_of(lp), e);
    return check(cudaGetLastError(), WHAT, error);
}
