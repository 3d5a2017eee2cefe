/* The ordered filter (dcrf/operator.h) on a device: what lattice and grid share. A channel becomes
 * one histogram per variable, which the operator filters; then every variable reads what it sees.
 * The histograms of some channels go side by side, so that they share launches. */
#ifndef DCRF_BACKEND_CUDA_ORDERED_CUH
#define DCRF_BACKEND_CUDA_ORDERED_CUH

#include "backend/cuda/device.cuh"
#include "dsp/dsp.h"

/* Levels on the device. */
struct ordered_levels {
    size_t bins;
    size_t row;    /* floats in a histogram: bins, padded */
    float *levels; /* nodes, or thresholds */
    float *table;  /* bins rows; NULL: F is the sign */
};

dcrf_status ordered_levels_take(struct ordered_levels *levels, dcrf_backend_device *device,
                                const dcrf_levels *from, dcrf_error *error);
void ordered_levels_release(struct ordered_levels *levels, dcrf_backend_device *device);

/* Some channels on the device, from values to results. */
struct ordered_group {
    size_t variables, channels, bins, row;
    const uint8_t *bin;            /* variables x channels */
    const float *fraction, *table; /* NULL: F is the sign */
    const float *histograms;       /* rows of channels x row: one bin each, or two that share it */
    float *out;
    size_t out_stride;
};

/* out = sum_b K_ab F(y_a, y_b) for arrays of the device; only puts work into the stream. */
dcrf_status ordered_filter(struct device_operator *op, const struct ordered_levels *levels,
                           const float *y, float *out, size_t channels, size_t stride,
                           dcrf_error *error);

/* The methods of operators with an ordered_on_device, which filters the histograms and writes what
 * the variables see: one channel that is in bins already, and a block of channels. */
dcrf_status operator_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                             const struct dcrf_ordered *channel, dcrf_error *error);
dcrf_status operator_ordered_block(const dcrf_operator *op, const dcrf_levels *levels,
                                   const float *y, float *out, size_t channels, size_t stride,
                                   dcrf_error *error);

#endif
