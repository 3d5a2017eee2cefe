/* Which pairs of tiles count, and a bound on what is left out, by the rule of
 * filter/exact/exact_near.c.
 *
 * First, for the sums in double, from the tiles' boxes: no kernel value between two tiles is above
 * 2^-d^2, d the distance of their boxes, and none is below 2^-D^2, D the largest distance between
 * their points. This gives a lower bound on the row sums of a tile, and an upper bound on what
 * another tile contributes to them. Then, for the sums in float, from the measured sums
 * (exact_double.cu).
 *
 * Either way the upper bounds are binned in steps of a quarter of a binary exponent, rounded to the
 * safe side; the limit of a tile is the first step from which on all tiles together stay below a
 * given fraction of its row sums. A pair is left out if it is beyond the limits of both tiles. The
 * histograms count integers, so they do not depend on the order of the atomics. */
#include "backend/cuda/exact.cuh"

#include <cub/device/device_scan.cuh>
#include <math.h>
#include <vector>

/* The fraction of every row sum that may be left out. */
#define MOST_LEFT_OUT 0x1p-22
#define MOST_LEFT_OUT_DOUBLE 0x1p-44
/* Margin for the rounding error of the distances. */
#define SAFE 1e-10
#define BINS (EXACT_STEPS + 1)

static __device__ int step_of(double exponent) {
    const double step = exponent * EXACT_STEPS_PER_BIT;
    return step < EXACT_STEPS ? (int)step : EXACT_STEPS;
}

static __device__ double value_at(int step) {
    return exp2(-(double)step / EXACT_STEPS_PER_BIT);
}

/* The number of places of a tile that hold a variable. */
static __device__ unsigned tile_size(unsigned variables, unsigned tile) {
    return min(variables - tile * EXACT_TILE, EXACT_TILE);
}

struct boxes {
    const double *box;
    int features;
    unsigned tiles, variables;
};

/* Bounds on the squared distances. */
static __device__ void find_distance(const boxes &b, unsigned one, unsigned other, double *nearest,
                                     double *farthest) {
    double near = 0, far = 0;
    for (int f = 0; f < b.features; f++) {
        const double *low = b.box + 2 * f * (size_t)b.tiles, *high = low + b.tiles;
        const double gap = fmax(fmax(low[other] - high[one], low[one] - high[other]), 0.0);
        const double reach = fmax(high[other] - low[one], high[one] - low[other]);
        near += gap * gap;
        far += reach * reach;
    }
    *nearest = near * (1 - SAFE);
    *farthest = far * (1 + SAFE);
}

/* The limit of the histogram: the sum of mass[step] from it on is at most `allowed`. */
static __device__ uint16_t find_limit(const double *mass, double allowed) {
    int step = EXACT_STEPS + 1;
    double sum = 0;
    while (step > 0 && sum + mass[step - 1] <= allowed)
        sum += mass[--step];
    return (uint16_t)step;
}

/* One block per tile. */
static __global__ void find_box_limits(boxes b, uint16_t *limit) {
    __shared__ unsigned near_count[BINS], far_count[BINS];
    __shared__ double mass[BINS], least[BINS];
    const unsigned tile = blockIdx.x, bin = threadIdx.x;
    near_count[bin] = far_count[bin] = 0;
    __syncthreads();
    for (unsigned t = threadIdx.x; t < b.tiles; t += THREADS) {
        double nearest, farthest;
        find_distance(b, tile, t, &nearest, &farthest);
        atomicAdd(&near_count[step_of(nearest)], tile_size(b.variables, t));
        atomicAdd(&far_count[step_of(farthest)], tile_size(b.variables, t));
    }
    __syncthreads();
    mass[bin] = near_count[bin] * value_at((int)bin);
    least[bin] = bin < EXACT_STEPS ? far_count[bin] * value_at((int)bin + 1) : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        double row_sum = 0;
        for (int step = 0; step < BINS; step++)
            row_sum += least[step];
        /* A row includes its diagonal. */
        limit[tile] = find_limit(mass, MOST_LEFT_OUT_DOUBLE * fmax(row_sum, 1.0));
    }
}

static __device__ bool is_left_out(const uint16_t *limit, unsigned one, unsigned other, int step) {
    return step >= limit[one] && step >= limit[other];
}

/* Tiles `other` along x, `one` along y. */
static __global__ void find_box_states(boxes b, const uint16_t *limit, uint8_t *state) {
    const unsigned one = blockIdx.y, other = blockIdx.x * blockDim.x + threadIdx.x;
    if (other >= b.tiles)
        return;
    double nearest, farthest;
    find_distance(b, one, other, &nearest, &farthest);
    state[(size_t)one * b.tiles + other] =
        is_left_out(limit, one, other, step_of(nearest)) ? EXACT_LEFT_OUT : EXACT_IN_DOUBLE;
}

static struct boxes boxes_of(const struct exact_operator *op) {
    return {op->box, op->metric.features, op->tiles, (unsigned)op->base.base.variables};
}

static dim3 square_of(const struct exact_operator *op) {
    return dim3((op->tiles + THREADS - 1) / THREADS, op->tiles);
}

dcrf_status exact_find_near(struct exact_operator *op, dcrf_error *error) {
    const cudaStream_t stream = op->base.device->stream;
    find_box_limits<<<op->tiles, THREADS, 0, stream>>>(boxes_of(op), op->limit);
    find_box_states<<<square_of(op), THREADS, 0, stream>>>(boxes_of(op), op->limit, op->state);
    return check(cudaGetLastError(), "finding tiles that are near", error);
}

/* ---- from measured sums --------------------------------------------------------------------- */

/* The step that bounds what two tiles contribute to a row of each other. */
static __device__ int step_between(const uint8_t *steps, unsigned tiles, unsigned one,
                                   unsigned other) {
    return min(steps[(size_t)one * tiles + other], steps[(size_t)other * tiles + one]);
}

/* A lower bound on the row sums of a tile, and its limit; one block per tile. */
static __global__ void find_measured_limits(const double *row_sums, const uint8_t *state,
                                            const uint8_t *steps, unsigned tiles,
                                            unsigned variables, double *least, uint16_t *limit) {
    __shared__ unsigned count[BINS];
    __shared__ double mass[BINS];
    const unsigned tile = blockIdx.x, bin = threadIdx.x;
    count[bin] = 0;
    __syncthreads();
    for (unsigned t = threadIdx.x; t < tiles; t += THREADS)
        if (state[(size_t)tile * tiles + t] != EXACT_LEFT_OUT)
            atomicAdd(&count[step_between(steps, tiles, tile, t)], 1);
    __syncthreads();
    mass[bin] = EXACT_TILE * value_at((int)bin) * count[bin];
    __syncthreads();
    if (threadIdx.x == 0) {
        double smallest = INFINITY;
        for (unsigned k = 0; k < tile_size(variables, tile); k++)
            smallest = fmin(smallest, row_sums[(size_t)tile * EXACT_TILE + k]);
        least[tile] = smallest * (1 - 0x1p-30);
        limit[tile] = find_limit(mass, MOST_LEFT_OUT * least[tile]);
    }
}

static __global__ void find_measured_states(const uint8_t *steps, const uint16_t *limit,
                                            unsigned tiles, uint8_t *state) {
    const unsigned one = blockIdx.y, other = blockIdx.x * blockDim.x + threadIdx.x;
    if (other >= tiles)
        return;
    uint8_t *at = &state[(size_t)one * tiles + other];
    if (*at == EXACT_IN_DOUBLE &&
        !is_left_out(limit, one, other, step_between(steps, tiles, one, other)))
        *at = EXACT_IN_BOTH;
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* One warp per tile. */
static __global__ void count_near(const uint8_t *state, unsigned tiles, uint32_t *counts) {
    const unsigned tile = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (tile > tiles)
        return;
    unsigned count = 0;
    for (unsigned t = lane; t < tiles && tile < tiles; t += 32)
        count += state[(size_t)tile * tiles + t] == EXACT_IN_BOTH;
    count = __reduce_add_sync(~0u, count);
    if (lane == 0)
        counts[tile] = count; /* zero for the one past the end */
}

static __global__ void fill_near(const uint8_t *state, unsigned tiles, const uint32_t *begin,
                                 uint32_t *near) {
    const unsigned tile = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (tile >= tiles)
        return;
    uint32_t at = begin[tile];
    for (unsigned first = 0; first < tiles; first += 32) {
        const unsigned t = first + lane;
        const bool counts = t < tiles && state[(size_t)tile * tiles + t] == EXACT_IN_BOTH;
        const unsigned all = __ballot_sync(~0u, counts);
        if (counts)
            near[at + __popc(all & ((1u << lane) - 1))] = t;
        at += __popc(all);
    }
}

static dcrf_status list_near(struct exact_operator *op, dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    const char *const what = "lists of tiles that are near";
    const unsigned warps = THREADS / 32;
    scratch<uint32_t> counts(device);
    scratch<char> room(device);
    uint32_t all = 0;
    size_t room_bytes = 0;
    TRY(counts.take((size_t)op->tiles + 1, what, error));
    TRY(check(cub::DeviceScan::ExclusiveSum(nullptr, room_bytes, (uint32_t *)counts, op->near_begin,
                                            (int)op->tiles + 1, device->stream),
              what, error));
    TRY(room.take(room_bytes, what, error));
    count_near<<<op->tiles / warps + 1, THREADS, 0, device->stream>>>(op->state, op->tiles, counts);
    TRY(check(cub::DeviceScan::ExclusiveSum(room, room_bytes, (uint32_t *)counts, op->near_begin,
                                            (int)op->tiles + 1, device->stream),
              what, error));
    TRY(device_download(device, &all, op->near_begin + op->tiles, sizeof all, error));
    op->near_pairs = all;
    TRY(device_array(device, &op->near, op->near_pairs, what, error));
    fill_near<<<op->tiles / warps + 1, THREADS, 0, device->stream>>>(op->state, op->tiles,
                                                                     op->near_begin, op->near);
    return check(cudaGetLastError(), what, error);
}

dcrf_status exact_refine(struct exact_operator *op, const uint8_t *steps, dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    scratch<double> least(device);
    scratch<uint16_t> limit(device);
    std::vector<double> found(op->tiles);
    TRY(least.take(op->tiles, "row sums", error));
    TRY(limit.take(op->tiles, "row sums", error));
    find_measured_limits<<<op->tiles, THREADS, 0, device->stream>>>(
        op->row_sums, op->state, steps, op->tiles, (unsigned)op->base.base.variables, least, limit);
    find_measured_states<<<square_of(op), THREADS, 0, device->stream>>>(steps, limit, op->tiles,
                                                                        op->state);
    TRY(check(cudaGetLastError(), "finding tiles that are near", error));
    TRY(device_download(device, found.data(), least, op->tiles * sizeof(double), error));
    op->least_row_sum = INFINITY;
    op->sum_of_scales = 0;
    for (double row_sum : found) {
        op->least_row_sum = fmin(op->least_row_sum, row_sum);
        op->sum_of_scales += EXACT_TILE * (op->is_normalized ? 1 / sqrt(row_sum) : 1);
    }
    return list_near(op, error);
}

/* ---- what is left out ----------------------------------------------------------------------- */

/* The sum of the scales of a tile; one thread per tile. */
static __global__ void sum_scales(const double *scale, unsigned tiles, double *sums) {
    const unsigned tile = blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= tiles)
        return;
    double sum = 0;
    for (unsigned k = 0; k < EXACT_TILE; k++)
        sum += scale[(size_t)tile * EXACT_TILE + k];
    sums[tile] = sum;
}

/* One block per tile. */
static __global__ void sum_box_mass(boxes b, const uint8_t *state, const double *scale,
                                    const double *scale_sums, double *mass) {
    __shared__ double part[THREADS];
    const unsigned tile = blockIdx.x;
    double sum = 0;
    for (unsigned t = threadIdx.x; t < b.tiles; t += THREADS) {
        double nearest, farthest;
        if (state[(size_t)tile * b.tiles + t] != EXACT_LEFT_OUT)
            continue;
        find_distance(b, tile, t, &nearest, &farthest);
        sum += value_at(step_of(nearest)) * scale_sums[t];
    }
    part[threadIdx.x] = sum;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    if (threadIdx.x < EXACT_TILE) {
        const size_t place = (size_t)tile * EXACT_TILE + threadIdx.x;
        mass[place] = part[0] * scale[place] * (1 + SAFE);
    }
}

dcrf_status exact_box_mass(const struct exact_operator *op, double *mass, dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    scratch<double> scale_sums(device);
    TRY(scale_sums.take(op->tiles, "what an exact operator leaves out", error));
    sum_scales<<<(op->tiles + THREADS - 1) / THREADS, THREADS, 0, device->stream>>>(
        op->scale, op->tiles, scale_sums);
    sum_box_mass<<<op->tiles, THREADS, 0, device->stream>>>(boxes_of(op), op->state, op->scale,
                                                            scale_sums, mass);
    return check(cudaGetLastError(), "what an exact operator leaves out", error);
}
