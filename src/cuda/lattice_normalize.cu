/* The normalization of a lattice: the weights of its corners are multiplied by the scales, or by
 * one factor, the calibration. */
#include "cuda/lattice.cuh"

#include <cmath>
#include <cstdlib>

#define WHAT "the plan of a lattice"

static __global__ void rescale(const float *scales, float factor, const uint32_t *entry_variable,
                               size_t count, uint32_t corners, float *corner_weight,
                               float *entry_weight) {
    const size_t e = this_thread();
    if (e >= count)
        return;
    corner_weight[e] *= scales ? scales[e / corners] : factor;
    entry_weight[e] *= scales ? scales[entry_variable[e]] : factor;
}

/* One block per sample: the exact row sum of a variable. */
static __global__ void sum_sampled(const float *rows, size_t variables, int dimension,
                                   const uint32_t *sampled, double *sums) {
    __shared__ float own[DCRF_MAX_FEATURES];
    __shared__ double partial[THREADS];
    if ((int)threadIdx.x < dimension)
        own[threadIdx.x] = rows[(size_t)sampled[blockIdx.x] * (size_t)dimension + threadIdx.x];
    __syncthreads();
    double sum = 0;
    for (size_t b = threadIdx.x; b < variables; b += THREADS) {
        float square = 0;
        for (int i = 0; i < dimension; i++) {
            const float difference = rows[b * (size_t)dimension + (size_t)i] - own[i];
            square += difference * difference;
        }
        sum += (double)expf(-0.5f * square);
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = partial[0];
}

/* As dcrf_lattice_calibrate: the operator's row sums are those of the formula on the average over
 * the same sample of variables. */
static dcrf_status calibrate(struct device_lattice *lattice, const float *rows,
                             const float *raw_sums, float *factor, dcrf_error *error) {
    dcrf_backend_device *device = lattice->op.device;
    const size_t n = lattice->op.base.variables;
    size_t samples = DCRF_CALIBRATION_TERMS / n > DCRF_CALIBRATION_SAMPLES
                         ? DCRF_CALIBRATION_TERMS / n
                         : DCRF_CALIBRATION_SAMPLES;
    samples = samples < n ? samples : n;
    uint32_t *sampled = static_cast<uint32_t *>(malloc(samples * sizeof *sampled));
    double *sums = static_cast<double *>(malloc(samples * sizeof *sums));
    float *raw = static_cast<float *>(malloc(n * DCRF_NARROW_LANES * sizeof *raw));
    uint32_t *device_sampled = nullptr;
    double *device_sums = nullptr;
    dcrf_status status = DCRF_OK;
    if (!sampled || !sums || !raw)
        status = fail(error, DCRF_ERROR_MEMORY, "out of memory for the calibration of a lattice");
    if (status == DCRF_OK)
        status = device_array(device, &device_sampled, samples, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &device_sums, samples, WHAT, error);
    if (status == DCRF_OK) {
        for (size_t i = 0; i < samples; i++)
            sampled[i] = samples == n
                             ? (uint32_t)i
                             : (uint32_t)(fmod((double)i * 0.6180339887498949, 1.0) * (double)n);
        status = device_upload(device, device_sampled, sampled, samples * sizeof *sampled, error);
    }
    if (status == DCRF_OK) {
        sum_sampled<<<(unsigned)samples, THREADS, 0, device->stream>>>(
            rows, n, (int)lattice->dimension, device_sampled, device_sums);
        status = check(cudaGetLastError(), WHAT, error);
    }
    if (status == DCRF_OK)
        status = device_download(device, sums, device_sums, samples * sizeof *sums, error);
    if (status == DCRF_OK)
        status = device_download(device, raw, raw_sums, n * DCRF_NARROW_LANES * sizeof *raw, error);
    if (status == DCRF_OK) {
        double exact = 0, found = 0;
        for (size_t i = 0; i < samples; i++) {
            exact += sums[i];
            found += (double)raw[(size_t)sampled[i] * DCRF_NARROW_LANES];
        }
        *factor = (float)sqrt(exact / found);
    }
    device_release(device, device_sampled);
    device_release(device, device_sums);
    free(sampled);
    free(sums);
    free(raw);
    return status;
}

dcrf_status lattice_normalize(struct device_lattice *lattice, const float *rows,
                              dcrf_normalization normalization, dcrf_error *error) {
    dcrf_backend_device *device = lattice->op.device;
    const size_t entries = lattice->op.base.variables * lattice->corners;
    float *sums = nullptr, factor = 1;
    dcrf_status status = operator_sum_rows(&lattice->op, &sums, error);
    if (status == DCRF_OK)
        status = normalization == DCRF_NORMALIZE_SYMMETRIC
                     ? operator_make_scales(&lattice->op, sums, error)
                     : calibrate(lattice, rows, sums, &factor, error);
    if (status == DCRF_OK) {
        rescale<<<blocks_for(entries), THREADS, 0, device->stream>>>(
            lattice->op.scales, factor, lattice->entry_variable, entries,
            (uint32_t)lattice->corners, lattice->corner_weight, lattice->entry_weight);
        status = check(cudaGetLastError(), WHAT, error);
    }
    device_release(device, sums);
    return status;
}
