/* The ordered filter (dcrf/operator.h) on a device: what lattice and grid share. A channel becomes
 * one histogram per variable, which the operator filters; then every variable reads what it sees.
 */
#ifndef DCRF_CUDA_ORDERED_CUH
#define DCRF_CUDA_ORDERED_CUH

#include "cuda/device.cuh"

/* A channel on the device, from values to results. */
struct ordered_channel {
    size_t variables, bins;
    size_t row; /* floats in a histogram: bins, padded as the table's rows are */
    const uint8_t *bin;
    const float *fraction, *table; /* NULL: F is the sign */
    const float *histograms;       /* one row per variable: one bin, or two that share it */
    float *out;
    size_t out_stride;
};

/* The methods of operators with an ordered_on_device, which filters the histograms and writes what
 * the variables see: one channel that is in bins already, and a block of channels. */
dcrf_status operator_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                             const struct dcrf_ordered *channel, dcrf_error *error);
dcrf_status operator_ordered_block(const dcrf_operator *op, const dcrf_levels *levels,
                                   const float *y, float *out, size_t channels, size_t stride,
                                   dcrf_error *error);

#endif
