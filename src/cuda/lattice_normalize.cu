/* The normalization of a lattice: the weights of its corners are multiplied by the scales, or by
 * one factor per picture, the calibration. */
#include "cuda/lattice.cuh"

#include <cmath>
#include <vector>

#define WHAT "the plan of a lattice"

/* The scale of each variable, or the factor of its picture. */
struct rescaling {
    const float *scales;  /* or NULL */
    const float *factors; /* of the pictures */
    size_t picture_variables;
};

static __device__ float scale_of(const struct rescaling &r, size_t variable) {
    return r.scales ? r.scales[variable] : r.factors[variable / r.picture_variables];
}

static __global__ void rescale(struct rescaling r, const uint32_t *entry_variable, size_t count,
                               uint32_t corners, float *corner_weight, float *entry_weight) {
    const size_t e = this_thread();
    if (e >= count)
        return;
    corner_weight[e] *= scale_of(r, e / corners);
    entry_weight[e] *= scale_of(r, entry_variable[e]);
}

struct sampled_sums {
    double exact, found; /* found: the operator's */
};

/* One block per sample (x) and picture (y): the exact row sum of a variable, and the operator's. */
static __global__ void sum_sampled(const float *all_rows, const float *raw_sums, size_t variables,
                                   int dimension, const uint32_t *sampled, sampled_sums *sums) {
    __shared__ float own[DCRF_MAX_FEATURES];
    __shared__ double partial[THREADS];
    const size_t first = blockIdx.y * variables, variable = sampled[blockIdx.x];
    const float *rows = all_rows + first * (size_t)dimension;
    if ((int)threadIdx.x < dimension)
        own[threadIdx.x] = rows[variable * (size_t)dimension + threadIdx.x];
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
        sums[blockIdx.y * (size_t)gridDim.x + blockIdx.x] = {
            partial[0], (double)raw_sums[(first + variable) * DCRF_NARROW_LANES]};
}

/* As dcrf_lattice_calibrate: in each picture the operator's row sums are those of the formula on
 * the average over the same sample of variables. *factors is the caller's to release. */
static dcrf_status calibrate(struct device_lattice *lattice, const float *rows,
                             const float *raw_sums, size_t pictures, float **factors,
                             dcrf_error *error) {
    dcrf_backend_device *device = lattice->op.device;
    const size_t n = lattice->op.base.variables / pictures;
    size_t samples = DCRF_CALIBRATION_TERMS / n > DCRF_CALIBRATION_SAMPLES
                         ? DCRF_CALIBRATION_TERMS / n
                         : DCRF_CALIBRATION_SAMPLES;
    samples = samples < n ? samples : n;
    std::vector<uint32_t> sampled(samples);
    std::vector<sampled_sums> sums(samples * pictures);
    std::vector<float> found(pictures);
    uint32_t *sampled_there = nullptr;
    sampled_sums *sums_there = nullptr;
    for (size_t i = 0; i < samples; i++)
        sampled[i] = samples == n
                         ? (uint32_t)i
                         : (uint32_t)(fmod((double)i * 0.6180339887498949, 1.0) * (double)n);
    dcrf_status status = device_array(device, factors, pictures, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &sampled_there, samples, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &sums_there, sums.size(), WHAT, error);
    if (status == DCRF_OK)
        status =
            device_upload(device, sampled_there, sampled.data(), samples * sizeof(uint32_t), error);
    if (status == DCRF_OK) {
        const dim3 blocks((unsigned)samples, (unsigned)pictures);
        sum_sampled<<<blocks, THREADS, 0, device->stream>>>(
            rows, raw_sums, n, (int)lattice->dimension, sampled_there, sums_there);
        status = check(cudaGetLastError(), WHAT, error);
    }
    if (status == DCRF_OK)
        status = device_download(device, sums.data(), sums_there,
                                 sums.size() * sizeof(sampled_sums), error);
    for (size_t p = 0; p < pictures && status == DCRF_OK; p++) {
        double exact = 0, raw = 0;
        for (size_t i = 0; i < samples; i++) {
            exact += sums[p * samples + i].exact;
            raw += sums[p * samples + i].found;
        }
        found[p] = (float)sqrt(exact / raw);
    }
    if (status == DCRF_OK)
        status = device_upload(device, *factors, found.data(), pictures * sizeof(float), error);
    device_release(device, sampled_there);
    device_release(device, sums_there);
    return status;
}

dcrf_status lattice_normalize(struct device_lattice *lattice, const float *rows, size_t pictures,
                              dcrf_normalization normalization, dcrf_error *error) {
    dcrf_backend_device *device = lattice->op.device;
    const size_t entries = lattice->op.base.variables * lattice->corners;
    float *sums = nullptr, *factors = nullptr;
    dcrf_status status = operator_sum_rows(&lattice->op, &sums, error);
    if (status == DCRF_OK)
        status = normalization == DCRF_NORMALIZE_SYMMETRIC
                     ? operator_make_scales(&lattice->op, sums, error)
                     : calibrate(lattice, rows, sums, pictures, &factors, error);
    if (status == DCRF_OK) {
        const struct rescaling r = {lattice->op.scales, factors,
                                    lattice->op.base.variables / pictures};
        rescale<<<blocks_for(entries), THREADS, 0, device->stream>>>(
            r, lattice->entry_variable, entries, (uint32_t)lattice->corners, lattice->corner_weight,
            lattice->entry_weight);
        status = check(cudaGetLastError(), WHAT, error);
    }
    device_release(device, sums);
    device_release(device, factors);
    return status;
}
