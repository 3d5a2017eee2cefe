/* The LP's work on rows: what lp/lp_huber.c and backend/cpu/dual.c do for one variable after
 * the other. */
#include "backend/cuda/lp.cuh"
#include "backend/cuda/sums.cuh"

#include <cfloat>

#define WHAT "the LP"
/* Threads to a row, and the labels that each of them holds. */
#define FEW_LANES 8
#define FEW_ITEMS 4
#define MANY_LANES 32
#define MANY_ITEMS (LP_MOST_LABELS / MANY_LANES)

enum { OBJECTIVE, UPHILL, UNARY, DESCENT_SUMS };

static bool has_few_labels(const dcrf_backend_lp *lp) {
    return lp->label_count <= FEW_LANES * FEW_ITEMS;
}

size_t lp_row_partials(size_t variables) {
    return blocks_for(variables * MANY_LANES) * (size_t)DESCENT_SUMS;
}

/* ---- labels that are alive ------------------------------------------------------------------ */

/* The launch has a multiple of `stride` threads, so each of them sees one label only: the largest
 * value that it has seen. Positive floats are ordered as their bits are. */
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
    const dcrf_status status = check(
        cudaMemsetAsync(lp->answer->largest, 0, sizeof lp->answer->largest, stream), WHAT, error);
    if (status < 0)
        return status;
    find_largest<<<blocks_of_columns(lp), THREADS, 0, stream>>>(
        lp->z, lp->variables * lp->stride, (uint32_t)lp->stride, (uint32_t)lp->label_count,
        lp->answer->largest);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- the step ------------------------------------------------------------------------------- */

struct projection {
    const float *z, *previous, *metric;
    struct lp_dual current;
    float epsilon;
    float *y;
    uint16_t *labels; /* of the largest entries of y, the first of equals */
    struct lp_answer *answer;
    double *partial;
    unsigned *blocks_done;
};

/* The threshold of the projection onto the simplex (backend/cpu/simplex.c) for the rows of a warp:
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
static __global__ void project_rows(struct lp_rows r, struct projection p) {
    const size_t a = this_thread() / LANES;
    const uint32_t lane = threadIdx.x % LANES;
    const bool is_there = a < r.variables;
    const float metric = is_there ? p.metric[a] : 1;
    const float tau = p.epsilon / metric;
    float z[ITEMS], value[ITEMS];
    bool has[ITEMS];
    double sums[DESCENT_SUMS] = {0, 0, 0}, totals[DESCENT_SUMS];
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t label = lane + (uint32_t)item * LANES;
        has[item] = is_there && label < r.labels;
        const size_t at = a * r.stride + label;
        const float unary = has[item] ? r.unary[at] : 0;
        const double dual = has[item] ? dual_at(p.current, at) : 0;
        z[item] = has[item] ? p.z[at] : 0;
        value[item] = z[item] + tau * ((float)dual - unary);
        sums[OBJECTIVE] += (double)z[item] * ((double)unary - dual);
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
    if (is_there && lane == 0) {
        p.labels[a] = (uint16_t)best;
        if (!p.answer->occurs[best])
            p.answer->occurs[best] = 1; /* by whomever: it is the same */
        sums[UNARY] = (double)r.unary[a * r.stride + best];
    }
    sums[UPHILL] = (double)(metric * uphill);
    if (sum_of_launch<DESCENT_SUMS, THREADS>(sums, p.partial, p.blocks_done, totals) &&
        threadIdx.x == 0) {
        p.answer->objective = totals[OBJECTIVE];
        p.answer->uphill = totals[UPHILL];
        p.answer->unary = totals[UNARY];
    }
}

static void project(const dcrf_backend_lp *lp, float epsilon) {
    const struct projection p = {
        lp->z,       lp->previous,   lp->metric, lp->dual[DCRF_BACKEND_CURRENT],
        epsilon,     lp->y,          lp->labels, lp->answer,
        lp->partial, lp->blocks_done};
    const struct lp_rows rows = lp_rows_of(lp);
    const unsigned blocks =
        blocks_for(lp->variables * (has_few_labels(lp) ? FEW_LANES : MANY_LANES));
    if (has_few_labels(lp))
        project_rows<FEW_LANES, FEW_ITEMS><<<blocks, THREADS, 0, lp->device->stream>>>(rows, p);
    else
        project_rows<MANY_LANES, MANY_ITEMS><<<blocks, THREADS, 0, lp->device->stream>>>(rows, p);
}

struct extrapolation {
    const float *y, *previous;
    float beta;
    const double *uphill;
    float *z;
    uint32_t *largest;
};

/* z and its largest entries, in a launch as find_largest has. */
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
    project(lp, (float)how->epsilon);
    const struct extrapolation e = {lp->y, lp->previous,       how->beta, &lp->answer->uphill,
                                    lp->z, lp->answer->largest};
    extrapolate<<<blocks_of_columns(lp), THREADS, 0, lp->device->stream>>>(lp_rows_of(lp), e);
    return check(cudaGetLastError(), WHAT, error);
}
