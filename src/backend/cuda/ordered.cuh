/* The ordered filter (dcrf/experimental.h) on a device: the part common to lattice and grid. A
 * channel becomes one histogram per variable, which the operator filters; then every variable
 * evaluates its filtered histogram. The histograms of several channels are stored side by side, to
 * share launches. */
#ifndef DCRF_BACKEND_CUDA_ORDERED_CUH
#define DCRF_BACKEND_CUDA_ORDERED_CUH

#include "backend/cuda/device.cuh"
#include "dsp/dsp.h"

/* Levels on the device. */
struct ordered_levels {
    size_t bins;
    size_t row;    /* floats in a histogram: bins, padded */
    float *levels; /* nodes, or thresholds */
    float *table;  /* bins rows; NULL: F is the sign, and `levels` are thresholds */
    bool is_sign;  /* F is the sign, at least at the nodes */
};

dcrf_status ordered_levels_take(struct ordered_levels *levels, dcrf_backend_device *device,
                                const dcrf_levels *from, dcrf_error *error);
void ordered_levels_release(struct ordered_levels *levels, dcrf_backend_device *device);

/* Some channels on the device, from bins to results. */
struct ordered_batch {
    size_t variables, channels, bins, row;
    const uint8_t *bin;            /* variables x channels */
    const float *fraction, *table; /* NULL: thresholds */
    bool is_sign;
    const float *histograms; /* rows of channels x row: one bin set, or two */
    float *out;
    size_t out_stride;
};

/* out = sum_b K_ab F(y_a, y_b) for device arrays; only enqueues work. */
dcrf_status ordered_filter(struct device_operator *op, const struct ordered_levels *levels,
                           const float *y, float *out, size_t channels, size_t stride,
                           dcrf_error *error);

/* Methods for operators that have ordered_on_device, which filters the histograms and writes the
 * results: for one channel that is already in bins, and for a block of channels. */
dcrf_status operator_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                             const struct dcrf_ordered *channel, dcrf_error *error);
dcrf_status operator_ordered_block(const dcrf_operator *op, const dcrf_levels *levels,
                                   const float *y, float *out, size_t channels, size_t stride,
                                   dcrf_error *error);

#endif
