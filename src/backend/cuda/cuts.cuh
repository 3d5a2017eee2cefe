/* Distances between labels as cuts (model/cuts.h) on a device: prefix sums over the labels, by one
 * warp per variable. */
#ifndef DCRF_BACKEND_CUDA_CUTS_CUH
#define DCRF_BACKEND_CUDA_CUTS_CUH

#include "backend/cuda/device.cuh"

#define CUTS_WARP 32
#define CUTS_WARPS (THREADS / CUTS_WARP)

/* All arrays are on the device. An end is a place where a run of a cut begins, or where it ends,
 * with a negative weight; the ends at the last place are left out. */
struct device_cuts {
    uint32_t labels, count;
    uint16_t *order;           /* the label at each place */
    uint32_t *offsets;         /* count + 1: where the runs of a cut begin */
    struct dcrf_cut_run *runs; /* places */
    double *lengths;           /* per cut */
    uint32_t *first_end;       /* labels + 1: where the ends at a place begin */
    uint16_t *end_cut;
    double *end_weight; /* 2 length, or -2 length */
};

dcrf_status device_cuts_take(struct device_cuts *cuts, dcrf_backend_device *device,
                             const struct dcrf_cuts *from, dcrf_error *error);
void device_cuts_release(struct device_cuts *cuts, dcrf_backend_device *device);

/* columns = z of the rows y, clamped to [0, 1]; their padding is zero. Only enqueues work. */
dcrf_status cuts_columns(const struct device_cuts *cuts, dcrf_backend_device *device,
                         size_t variables, const float *y, size_t stride, float *columns,
                         size_t columns_stride, dcrf_error *error);

/* field += sum_j d(i, j) (message - diagonal in)_j, or = if is_first; rows of `stride`. */
struct cuts_message {
    size_t variables, stride;
    const float *message, *in, *diagonal; /* diagonal: NULL: it is not subtracted */
    float *field;
    bool is_first;
};
dcrf_status cuts_apply(const struct device_cuts *cuts, dcrf_backend_device *device,
                       const struct cuts_message *message, dcrf_error *error);

#ifdef __CUDACC__
/* The sum of the values of this lane and those before it. */
static __device__ inline double prefix_of_warp(double value) {
    const uint32_t lane = threadIdx.x % CUTS_WARP;
#pragma unroll
    for (uint32_t distance = 1; distance < CUTS_WARP; distance *= 2) {
        const double before = __shfl_up_sync(0xffffffffu, value, distance);
        value += lane >= distance ? before : 0;
    }
    return value;
}

/* For a warp: carried + the sum over the places up to each lane's; `carried` becomes the last. */
static __device__ inline double carry_prefix(double value, double *carried) {
    const double sum = *carried + prefix_of_warp(value);
    *carried = __shfl_sync(0xffffffffu, sum, CUTS_WARP - 1);
    return sum;
}
#endif

#endif
