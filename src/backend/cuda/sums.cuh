/* Sums in double over all threads of a launch, always in the same order: a tree in each block, and
 * another over the blocks' sums. Also reductions over neighbouring threads. */
#ifndef DCRF_BACKEND_CUDA_SUMS_CUH
#define DCRF_BACKEND_CUDA_SUMS_CUH

#include "backend/cuda/device.cuh"

#define SUMS_WARP 32

/* The sum over LANES neighbouring threads, for all of them. */
template <int LANES, typename T> static __device__ T sum_of_lanes(T value) {
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

/* The lowest value of LANES neighbouring threads and its index, for all of them; ties go to the
 * lowest index. */
template <int LANES, typename T>
static __device__ void lowest_of_lanes(T *lowest, uint32_t *whose) {
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) {
        const T other = __shfl_xor_sync(0xffffffffu, *lowest, distance);
        const uint32_t others = __shfl_xor_sync(0xffffffffu, *whose, distance);
        if (other < *lowest || (other == *lowest && others < *whose)) {
            *lowest = other;
            *whose = others;
        }
    }
}

/* COUNT sums of a block of BLOCK threads, into its row of `partial`. */
template <int COUNT, int BLOCK>
static __device__ void write_block_sums(const double (&mine)[COUNT], double *partial) {
    constexpr int WARPS = BLOCK / SUMS_WARP;
    __shared__ double sums[COUNT][WARPS];
#pragma unroll
    for (int s = 0; s < COUNT; s++) {
        const double sum = sum_of_lanes<SUMS_WARP>(mine[s]);
        if (threadIdx.x % SUMS_WARP == 0)
            sums[s][threadIdx.x / SUMS_WARP] = sum;
    }
    __syncthreads();
    if (threadIdx.x < COUNT) {
        double sum = 0;
        for (int w = 0; w < WARPS; w++)
            sum += sums[threadIdx.x][w];
        partial[(size_t)blockIdx.x * COUNT + threadIdx.x] = sum;
    }
}

/* COUNT sums of a whole launch with blocks of BLOCK threads: the block that finishes last adds the
 * sums of all blocks. Returns true in its threads, which all get the totals. *blocks_done must be
 * zero before, and is zero afterwards. */
template <int COUNT, int BLOCK>
static __device__ bool sum_of_launch(const double (&mine)[COUNT], double *partial,
                                     unsigned *blocks_done, double (&totals)[COUNT]) {
    constexpr int WARPS = BLOCK / SUMS_WARP;
    __shared__ double sums[COUNT][WARPS];
    __shared__ bool is_last;
    write_block_sums<COUNT, BLOCK>(mine, partial);
    if (threadIdx.x < COUNT)
        __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd(blocks_done, 1) + 1 == gridDim.x;
    __syncthreads();
    if (!is_last)
        return false;
    __threadfence();
#pragma unroll
    for (int s = 0; s < COUNT; s++) {
        double sum = 0;
        for (size_t b = threadIdx.x; b < gridDim.x; b += BLOCK)
            sum += __ldcg(&partial[b * COUNT + (size_t)s]);
        sum = sum_of_lanes<SUMS_WARP>(sum);
        if (threadIdx.x % SUMS_WARP == 0)
            sums[s][threadIdx.x / SUMS_WARP] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int s = 0; s < COUNT; s++) {
        totals[s] = 0;
        for (int w = 0; w < WARPS; w++)
            totals[s] += sums[s][w];
    }
    if (threadIdx.x == 0)
        *blocks_done = 0;
    return true;
}

/* Launch with one block of THREADS per sum. */
static __global__ void add_block_sums(const double *partial, size_t blocks, double *sums) {
    double mine[1] = {0};
    for (size_t b = threadIdx.x; b < blocks; b += THREADS)
        mine[0] += partial[b * gridDim.x + blockIdx.x];
    write_block_sums<1, THREADS>(mine, sums);
}

#endif
