/* The LP's work on rows for distances between labels: the columns of the cuts, and the step in
 * their metric (backend/cpu/cut_step.c), by one warp per variable. */
#include "backend/cuda/lp.cuh"
#include "backend/cuda/sums.cuh"
#include "backend/cut_moves.h"

#include <cfloat>
#include <cstring>

#define WHAT "the LP"

/* ---- columns -------------------------------------------------------------------------------- */

/* The launch has a multiple of `stride` threads, so each thread has only one column. Nonnegative
 * floats compare like their bits. */
static __global__ void find_ranges(const float *columns, size_t floats, uint32_t stride,
                                   uint32_t count, struct lp_ranges *ranges) {
    __shared__ struct lp_ranges mine;
    const size_t first = this_thread();
    const uint32_t column = (uint32_t)(first % stride);
    float smallest = 1, largest = 0;
    for (size_t i = first; i < floats; i += (size_t)gridDim.x * THREADS) {
        smallest = fminf(smallest, columns[i]);
        largest = fmaxf(largest, columns[i]);
    }
    for (uint32_t c = threadIdx.x; c < count; c += THREADS) {
        mine.smallest[c] = UINT32_MAX;
        mine.largest[c] = 0;
    }
    __syncthreads();
    if (column < count) {
        atomicMin(&mine.smallest[column], __float_as_uint(smallest));
        atomicMax(&mine.largest[column], __float_as_uint(largest));
    }
    __syncthreads();
    for (uint32_t c = threadIdx.x; c < count; c += THREADS) {
        atomicMin(&ranges->smallest[c], mine.smallest[c]);
        atomicMax(&ranges->largest[c], mine.largest[c]);
    }
}

static dcrf_status begin_ranges(dcrf_backend_lp *lp, dcrf_error *error) {
    cudaStream_t stream = lp->device->stream;
    TRY(check(cudaMemsetAsync(lp->ranges->smallest, 0xff, sizeof lp->ranges->smallest, stream),
              WHAT, error));
    return check(cudaMemsetAsync(lp->ranges->largest, 0, sizeof lp->ranges->largest, stream), WHAT,
                 error);
}

static dcrf_status read_ranges(dcrf_backend_lp *lp, struct lp_ranges *ranges, dcrf_error *error) {
    static_assert(sizeof *ranges <= DEVICE_FEW * sizeof *lp->device->few, "few is enough");
    cudaStream_t stream = lp->device->stream;
    TRY(check(cudaMemcpyAsync(lp->device->few, lp->ranges, sizeof *ranges, cudaMemcpyDeviceToHost,
                              stream),
              WHAT, error));
    TRY(check(cudaStreamSynchronize(stream), WHAT, error));
    memcpy(ranges, lp->device->few, sizeof *ranges);
    return DCRF_OK;
}

dcrf_status lp_find_columns(dcrf_backend_lp *lp, const struct lp_group *group,
                            struct lp_ranges *ranges, dcrf_error *error) {
    const size_t stride = padded_channels(group->cuts.count), turns = 512 / stride;
    const unsigned blocks = (unsigned)(stride * (turns > 0 ? turns : 1));
    TRY(begin_ranges(lp, error));
    TRY(cuts_columns(&group->cuts, lp->device, lp->variables, lp->z, lp->stride, lp->columns,
                     stride, error));
    find_ranges<<<blocks, THREADS, 0, lp->device->stream>>>(
        lp->columns, lp->variables * stride, (uint32_t)stride, group->cuts.count, lp->ranges);
    TRY(check(cudaGetLastError(), WHAT, error));
    return read_ranges(lp, ranges, error);
}

/* ---- the metric ----------------------------------------------------------------------------- */

/* The metric of all variables. */
struct cut_metric {
    const float *group_sums, *distances;
    uint32_t groups;
};

/* A variable's row: the labels lane, lane + CUTS_WARP, ... are this thread's. */
template <int ITEMS> struct cut_row {
    double mass[ITEMS];  /* y */
    double slope[ITEMS]; /* the derivatives; infinite beyond the labels */
};

/* The metric Q of one variable. */
struct own_metric {
    const struct cut_metric &all;
    size_t variable, variables;
    uint32_t labels, lane;
    double own;

    __device__ double sum_of(uint32_t group) const {
        return (double)all.group_sums[group * variables + variable];
    }
    __device__ const float *distances_of(uint32_t group, uint32_t label) const {
        return all.distances + ((size_t)group * labels + label) * labels;
    }
};

/* slope += Q e_label mass, up to a constant. */
template <int ITEMS>
static __device__ void add_mass(const struct own_metric &m, uint32_t label, double mass,
                                struct cut_row<ITEMS> &row) {
    for (uint32_t g = 0; g < m.all.groups; g++) {
        const double factor = mass * m.sum_of(g);
        const float *distances = m.distances_of(g, label);
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const uint32_t i = m.lane + (uint32_t)item * CUTS_WARP;
            if (i < m.labels)
                row.slope[item] -= factor * (double)distances[i];
        }
    }
#pragma unroll
    for (int item = 0; item < ITEMS; item++)
        if (m.lane + (uint32_t)item * CUTS_WARP == label)
            row.slope[item] += m.own * mass;
}

/* A label chosen by the warp, and numbers of it. */
struct chosen {
    uint32_t label; /* UINT32_MAX: none */
    double slope, mass;
};

/* The label with the largest derivative among those with mass; the first on a tie. */
template <int ITEMS>
static __device__ struct chosen find_giver(const struct own_metric &m,
                                           const struct cut_row<ITEMS> &row, double *lowest) {
    double negative = DBL_MAX, mass = 0, least = DBL_MAX;
    uint32_t label = UINT32_MAX;
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        least = fmin(least, row.slope[item]);
        if (row.mass[item] > 0 && -row.slope[item] < negative) {
            negative = -row.slope[item];
            mass = row.mass[item];
            label = m.lane + (uint32_t)item * CUTS_WARP;
        }
    }
    lowest_of_lanes<CUTS_WARP>(&negative, &label);
    for (int distance = 1; distance < CUTS_WARP; distance *= 2)
        least = fmin(least, __shfl_xor_sync(0xffffffffu, least, distance));
    *lowest = least;
    return {label, -negative, __shfl_sync(0xffffffffu, mass, (int)(label % CUTS_WARP))};
}

/* The label that gains most from the giver; the first on a tie. `mass` is how much to move. */
template <int ITEMS>
static __device__ struct chosen find_taker(const struct own_metric &m,
                                           const struct cut_row<ITEMS> &row,
                                           const struct chosen &giver) {
    double curvature[ITEMS], most = 0, mass = 0;
    uint32_t label = UINT32_MAX;
#pragma unroll
    for (int item = 0; item < ITEMS; item++)
        curvature[item] = m.own;
    for (uint32_t g = 0; g < m.all.groups; g++) {
        const double factor = m.sum_of(g);
        const float *distances = m.distances_of(g, giver.label);
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const uint32_t i = m.lane + (uint32_t)item * CUTS_WARP;
            if (i < m.labels)
                curvature[item] += factor * (double)distances[i];
        }
    }
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const double slope = giver.slope - row.slope[item];
        const double gain = dcrf_cut_gain(slope, curvature[item]);
        if (gain > most) {
            most = gain;
            mass = dcrf_cut_mass(slope, curvature[item], giver.mass);
            label = m.lane + (uint32_t)item * CUTS_WARP;
        }
    }
    double negative = -most;
    lowest_of_lanes<CUTS_WARP>(&negative, &label);
    return {label, 0, __shfl_sync(0xffffffffu, mass, (int)(label % CUTS_WARP))};
}

/* Moves y to the minimum (dcrf_cut_step_take). */
template <int ITEMS>
static __device__ void move_mass(const struct own_metric &m, struct cut_row<ITEMS> &row) {
    double scale = m.own;
    for (uint32_t g = 0; g < m.all.groups; g++)
        scale += m.sum_of(g);
    for (int move = 0; move < DCRF_CUT_MOST_MOVES; move++) {
        double lowest;
        const struct chosen giver = find_giver(m, row, &lowest);
        if (giver.label == UINT32_MAX || giver.slope - lowest <= DCRF_CUT_EQUAL * scale)
            break;
        const struct chosen taker = find_taker(m, row, giver);
        if (taker.label == UINT32_MAX)
            break;
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const uint32_t i = m.lane + (uint32_t)item * CUTS_WARP;
            row.mass[item] += i == taker.label ? taker.mass : 0;
            row.mass[item] -= i == giver.label ? taker.mass : 0;
        }
        add_mass(m, taker.label, taker.mass, row);
        add_mass(m, giver.label, -taker.mass, row);
    }
}

/* slope += Q (y - z): most differences are zero. */
template <int ITEMS>
static __device__ void add_difference(const struct own_metric &m, const double (&difference)[ITEMS],
                                      struct cut_row<ITEMS> &row) {
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        uint32_t left = __ballot_sync(0xffffffffu, difference[item] < 0 || difference[item] > 0);
        while (left) {
            const int source = __ffs((int)left) - 1;
            left &= left - 1;
            add_mass(m, (uint32_t)source + (uint32_t)item * CUTS_WARP,
                     __shfl_sync(0xffffffffu, difference[item], source), row);
        }
    }
}

/* ---- the step ------------------------------------------------------------------------------- */

template <int ITEMS>
static __global__ void step_rows(struct lp_rows r, struct lp_descent p, struct cut_metric metric) {
    const size_t a = this_thread() / CUTS_WARP;
    const uint32_t lane = threadIdx.x % CUTS_WARP;
    double sums[LP_DESCENT_SUMS] = {0, 0, 0};
    if (a < r.variables) { /* the whole warp */
        const struct own_metric m = {metric, a, r.variables, r.labels, lane, (double)p.metric[a]};
        struct cut_row<ITEMS> row;
        double before[ITEMS], difference[ITEMS], total = 0;
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const uint32_t i = lane + (uint32_t)item * CUTS_WARP;
            const size_t at = a * r.stride + i;
            const bool has = i < r.labels;
            const double cost = has ? (double)r.unary[at] - dual_at(p.current, at) : 0;
            const double z = has ? (double)p.z[at] : 0;
            row.mass[item] = has ? (double)p.previous[at] : 0;
            row.slope[item] = has ? p.epsilon * cost : DBL_MAX;
            before[item] = row.slope[item];
            difference[item] = row.mass[item] - z;
            sums[LP_OBJECTIVE] += z * cost;
        }
        add_difference(m, difference, row);
        move_mass(m, row);
#pragma unroll
        for (int item = 0; item < ITEMS; item++)
            total += row.mass[item];
        total = sum_of_lanes<CUTS_WARP>(total);
        float lowest = FLT_MAX; /* of -y */
        uint32_t best = UINT32_MAX;
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const uint32_t i = lane + (uint32_t)item * CUTS_WARP;
            const size_t at = a * r.stride + i;
            const float y = (float)(row.mass[item] / total);
            if (i >= r.labels)
                continue;
            p.y[at] = y;
            sums[LP_UPHILL] +=
                (before[item] - row.slope[item]) * ((double)y - (double)p.previous[at]);
            if (-y < lowest) {
                lowest = -y;
                best = i;
            }
        }
        lowest_of_lanes<CUTS_WARP>(&lowest, &best);
        if (lane == 0)
            sums[LP_UNARY] = keep_label(r, p, a, best);
    }
    end_descent(p, sums);
}

dcrf_status lp_step_cuts(dcrf_backend_lp *lp, double epsilon, dcrf_error *error) {
    const struct cut_metric metric = {lp->group_sums, lp->distances, (uint32_t)lp->group_count};
    const struct lp_rows rows = lp_rows_of(lp);
    const struct lp_descent p = lp_descent_of(lp, epsilon);
    const unsigned blocks = blocks_for(lp->variables * CUTS_WARP);
    cudaStream_t stream = lp->device->stream;
    if (lp->label_count <= 2 * CUTS_WARP)
        step_rows<2><<<blocks, THREADS, 0, stream>>>(rows, p, metric);
    else if (lp->label_count <= 4 * CUTS_WARP)
        step_rows<4><<<blocks, THREADS, 0, stream>>>(rows, p, metric);
    else
        step_rows<LP_MOST_LABELS / CUTS_WARP><<<blocks, THREADS, 0, stream>>>(rows, p, metric);
    return check(cudaGetLastError(), WHAT, error);
}
