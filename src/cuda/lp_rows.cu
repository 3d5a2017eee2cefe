/* The LP's work on rows: what solver/lp_huber.c and solver/dual.c do for one variable after the
 * other. */
#include "cuda/lp.cuh"
#include "cuda/sums.cuh"

#include <cfloat>

#define WHAT "the LP"
/* Rows that a block of as many threads takes through shared memory, CHUNK labels at a time. */
#define ROWS 128
#define CHUNK 8
/* Threads to a row, and the labels that each of them holds. */
#define FEW_LANES 8
#define FEW_ITEMS 4
#define MANY_LANES 32
#define MANY_ITEMS (LP_MOST_LABELS / MANY_LANES)

static bool has_few_labels(const dcrf_backend_lp *lp) {
    return lp->labels <= FEW_LANES * FEW_ITEMS;
}

size_t lp_partial_sums(size_t variables) {
    const size_t by_rows = (variables + ROWS - 1) / ROWS * DCRF_BACKEND_SLOPES;
    const size_t by_lanes = blocks_for(variables * MANY_LANES) * (size_t)2;
    return by_rows > by_lanes ? by_rows : by_lanes;
}

/* Add up the blocks' sums, and have them sent to device->few. */
static dcrf_status send_sums(dcrf_backend_lp *lp, size_t blocks, size_t count, dcrf_error *error) {
    cudaStream_t stream = lp->device->stream;
    add_block_sums<<<(unsigned)count, THREADS, 0, stream>>>(lp->partial, blocks, lp->sums);
    const dcrf_status status = check(cudaGetLastError(), WHAT, error);
    return status < 0 ? status
                      : check(cudaMemcpyAsync(lp->device->few, lp->sums, count * sizeof(double),
                                              cudaMemcpyDeviceToHost, stream),
                              WHAT, error);
}

/* ---- labels that are alive ------------------------------------------------------------------ */

/* The launch has a multiple of `stride` threads, so each of them sees one label only. Positive
 * floats are ordered as their bits are. */
static __global__ void find_largest(const float *z, size_t floats, uint32_t stride, uint32_t labels,
                                    uint32_t *largest) {
    __shared__ uint32_t mine[LP_MOST_LABELS];
    for (uint32_t i = threadIdx.x; i < labels; i += THREADS)
        mine[i] = 0;
    __syncthreads();
    const size_t first = this_thread();
    const uint32_t label = (uint32_t)(first % stride);
    float most = 0;
    for (size_t i = first; i < floats; i += (size_t)gridDim.x * THREADS)
        most = z[i] > most ? z[i] : most;
    if (label < labels)
        atomicMax(&mine[label], __float_as_uint(most));
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < labels; i += THREADS)
        if (mine[i] > 0)
            atomicMax(&largest[i], mine[i]);
}

dcrf_status lp_find_largest(dcrf_backend_lp *lp, dcrf_error *error) {
    cudaStream_t stream = lp->device->stream;
    const size_t bytes = lp->labels * sizeof *lp->largest, turns = 512 / lp->stride;
    const dcrf_status status = check(cudaMemsetAsync(lp->largest, 0, bytes, stream), WHAT, error);
    if (status < 0)
        return status;
    find_largest<<<(unsigned)(lp->stride * (turns > 0 ? turns : 1)), THREADS, 0, stream>>>(
        lp->z, lp->variables * lp->stride, (uint32_t)lp->stride, (uint32_t)lp->labels, lp->largest);
    return check(
        cudaMemcpyAsync(lp->device->few, lp->largest, bytes, cudaMemcpyDeviceToHost, stream), WHAT,
        error);
}

/* ---- the line search ------------------------------------------------------------------------ */

struct rows {
    size_t variables;
    uint32_t labels, stride;
    const float *unary;
};

static struct rows rows_of(const dcrf_backend_lp *lp) {
    return {lp->variables, (uint32_t)lp->labels, (uint32_t)lp->stride, lp->unary};
}

/* A thread per row: the label with the lowest reduced cost at each t, the first of equals. */
template <int POINTS>
static __global__ void sum_slopes(struct rows r, struct lp_dual from, struct lp_dual to,
                                  double first, double step, double *partial) {
    __shared__ double costs[ROWS][CHUNK + 1], changes[ROWS][CHUNK + 1];
    double lowest[POINTS], slope[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; p++) {
        lowest[p] = DBL_MAX;
        slope[p] = 0;
    }
    for (uint32_t begin = 0; begin < r.labels; begin += CHUNK) {
        const uint32_t count = min((uint32_t)CHUNK, r.labels - begin);
        for (uint32_t i = threadIdx.x; i < ROWS * CHUNK; i += ROWS) {
            const size_t a = (size_t)blockIdx.x * ROWS + i / CHUNK;
            if (a < r.variables && i % CHUNK < count) {
                const size_t at = a * r.stride + begin + i % CHUNK;
                const double start = dual_at(from, at);
                costs[i / CHUNK][i % CHUNK] = (double)r.unary[at] - start;
                changes[i / CHUNK][i % CHUNK] = dual_at(to, at) - start;
            }
        }
        __syncthreads();
        for (uint32_t k = 0; k < count; k++) {
            const double cost = costs[threadIdx.x][k], change = changes[threadIdx.x][k];
#pragma unroll
            for (int p = 0; p < POINTS; p++) {
                const double here = cost - (first + p * step) * change;
                slope[p] = here < lowest[p] ? -change : slope[p];
                lowest[p] = here < lowest[p] ? here : lowest[p];
            }
        }
        __syncthreads();
    }
    if ((size_t)blockIdx.x * ROWS + threadIdx.x >= r.variables)
#pragma unroll
        for (int p = 0; p < POINTS; p++)
            slope[p] = 0;
    write_block_sums<POINTS, ROWS>(slope, partial);
}

dcrf_status lp_sum_slopes(dcrf_backend_lp *lp, const struct lp_dual *to, double first, double step,
                          size_t count, dcrf_error *error) {
    const size_t blocks = (lp->variables + ROWS - 1) / ROWS;
    const struct lp_dual from = lp->dual[DCRF_BACKEND_BEST];
    cudaStream_t stream = lp->device->stream;
    const bool is_half = count <= DCRF_BACKEND_SLOPES / 2;
    if (is_half)
        sum_slopes<DCRF_BACKEND_SLOPES / 2><<<(unsigned)blocks, ROWS, 0, stream>>>(
            rows_of(lp), from, *to, first, step, lp->partial);
    else
        sum_slopes<DCRF_BACKEND_SLOPES><<<(unsigned)blocks, ROWS, 0, stream>>>(
            rows_of(lp), from, *to, first, step, lp->partial);
    return send_sums(lp, blocks, is_half ? DCRF_BACKEND_SLOPES / 2 : DCRF_BACKEND_SLOPES, error);
}

/* ---- the bound ------------------------------------------------------------------------------ */

/* FEW_LANES threads per row. */
static __global__ void sum_lowest(struct rows r, struct lp_dual dual, double *partial) {
    const size_t a = this_thread() / FEW_LANES;
    double lowest = DBL_MAX;
    for (uint32_t i = threadIdx.x % FEW_LANES; a < r.variables && i < r.labels; i += FEW_LANES)
        lowest = fmin(lowest, (double)r.unary[a * r.stride + i] - dual_at(dual, a * r.stride + i));
#pragma unroll
    for (int distance = 1; distance < FEW_LANES; distance *= 2)
        lowest = fmin(lowest, __shfl_xor_sync(0xffffffffu, lowest, distance));
    double sums[DCRF_BACKEND_BOUND_SUMS] = {0, 0};
    if (a < r.variables && threadIdx.x % FEW_LANES == 0) {
        sums[DCRF_BACKEND_LOWEST] = lowest;
        sums[DCRF_BACKEND_MAGNITUDE] = fabs(lowest);
    }
    write_block_sums<DCRF_BACKEND_BOUND_SUMS, THREADS>(sums, partial);
}

dcrf_status lp_sum_lowest(dcrf_backend_lp *lp, dcrf_error *error) {
    const unsigned blocks = blocks_for(lp->variables * FEW_LANES);
    sum_lowest<<<blocks, THREADS, 0, lp->device->stream>>>(rows_of(lp), lp->dual[DCRF_BACKEND_BEST],
                                                           lp->partial);
    return send_sums(lp, blocks, DCRF_BACKEND_BOUND_SUMS, error);
}

/* ---- the step ------------------------------------------------------------------------------- */

struct projection {
    const float *z, *previous, *metric;
    struct lp_dual current;
    float epsilon;
    float *y;
};

/* The threshold of the projection onto the simplex (solver/simplex.c) for the rows of a warp: a row
 * that is done waits for the others. */
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
static __global__ void project_rows(struct rows r, struct projection p, double *partial) {
    const size_t a = this_thread() / LANES;
    const uint32_t lane = threadIdx.x % LANES;
    const bool is_there = a < r.variables;
    const float metric = is_there ? p.metric[a] : 1;
    const float tau = p.epsilon / metric;
    float z[ITEMS], value[ITEMS];
    bool has[ITEMS];
    double sums[DCRF_BACKEND_DESCENT_SUMS] = {0, 0};
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t label = lane + (uint32_t)item * LANES;
        has[item] = is_there && label < r.labels;
        const size_t at = a * r.stride + label;
        const float unary = has[item] ? r.unary[at] : 0;
        const double dual = has[item] ? dual_at(p.current, at) : 0;
        z[item] = has[item] ? p.z[at] : 0;
        value[item] = z[item] + tau * ((float)dual - unary);
        sums[DCRF_BACKEND_OBJECTIVE] += (double)z[item] * ((double)unary - dual);
    }
    const double theta = find_threshold<LANES, ITEMS>(value, has, (int)r.labels);
    float uphill = 0;
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const size_t at = a * r.stride + lane + (size_t)item * LANES;
        const double above = (double)value[item] - theta;
        const float y = above > 0 ? (float)above : 0;
        if (has[item]) {
            uphill += (z[item] - y) * (y - p.previous[at]);
            p.y[at] = y;
        }
    }
    sums[DCRF_BACKEND_UPHILL] = (double)(metric * uphill);
    write_block_sums<DCRF_BACKEND_DESCENT_SUMS, THREADS>(sums, partial);
}

dcrf_status lp_project(dcrf_backend_lp *lp, float epsilon, dcrf_error *error) {
    const struct projection p = {lp->z,   lp->previous, lp->metric, lp->dual[DCRF_BACKEND_CURRENT],
                                 epsilon, lp->y};
    const unsigned blocks =
        blocks_for(lp->variables * (has_few_labels(lp) ? FEW_LANES : MANY_LANES));
    if (has_few_labels(lp))
        project_rows<FEW_LANES, FEW_ITEMS>
            <<<blocks, THREADS, 0, lp->device->stream>>>(rows_of(lp), p, lp->partial);
    else
        project_rows<MANY_LANES, MANY_ITEMS>
            <<<blocks, THREADS, 0, lp->device->stream>>>(rows_of(lp), p, lp->partial);
    return send_sums(lp, blocks, DCRF_BACKEND_DESCENT_SUMS, error);
}
