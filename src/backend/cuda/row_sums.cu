/* Row sums of an operator and the scales of the symmetric normalization. */
#include "backend/cuda/device.cuh"

#define WHAT "the normalization of a kernel"

static __global__ void fill_ones(float *block, size_t variables) {
    const size_t i = this_thread();
    if (i < variables * DCRF_NARROW_LANES)
        block[i] = i % DCRF_NARROW_LANES == 0;
}

dcrf_status operator_sum_rows(struct device_operator *op, scratch<float> &sums, dcrf_error *error) {
    const size_t n = op->base.variables, floats = n * DCRF_NARROW_LANES;
    scratch<float> ones(op->device);
    TRY(ones.take(floats, WHAT, error));
    TRY(sums.take(floats, WHAT, error));
    fill_ones<<<blocks_for(floats), THREADS, 0, op->device->stream>>>(ones, n);
    const struct dcrf_application application = {DCRF_SYMMETRIC,    ones, sums, 1,
                                                 DCRF_NARROW_LANES, 1,    false};
    return op->apply_on_device(op, &application, error);
}

/* A row whose sum was lost to rounding gets scale 0. */
static __global__ void make_scales(const float *sums, size_t variables, float *scales) {
    const size_t a = this_thread();
    if (a < variables) {
        const float sum = sums[a * DCRF_NARROW_LANES];
        scales[a] = sum > 0 ? 1 / sqrtf(sum) : 0;
    }
}

dcrf_status operator_make_scales(struct device_operator *op, const float *sums, dcrf_error *error) {
    const size_t n = op->base.variables;
    TRY(device_array(op->device, &op->scales, n, WHAT, error));
    make_scales<<<blocks_for(n), THREADS, 0, op->device->stream>>>(sums, n, op->scales);
    return check(cudaGetLastError(), WHAT, error);
}
