/* The normalization of a lattice: the weights of its corners are multiplied by the scales, or by
 * one calibration factor per picture. In the compatible lattice, the splat weights (stored by
 * vertex) and the slice weights (stored by variable) are each scaled or not. */
#include "backend/cuda/lattice.cuh"

#include <cmath>
#include <vector>

#define WHAT "the plan of a lattice"

/* For splat and slice: the scale of each variable, or the factor of its picture, or nothing. */
struct rescaling {
    const float *in, *out;
    const float *factors;
    size_t picture_variables;
};

static __device__ float scale_of(const struct rescaling &r, const float *scales, size_t variable) {
    return scales ? scales[variable] : r.factors ? r.factors[variable / r.picture_variables] : 1;
}

/* For a point that is not a variable, corners are never read and entries have weight 0. */
static __global__ void rescale(struct rescaling r, size_t corner_count, size_t entry_count,
                               uint32_t corners, const uint32_t *entry_variable,
                               float *corner_weight, float *entry_weight) {
    const size_t e = this_thread();
    if (e < corner_count)
        corner_weight[e] *= scale_of(r, r.out, e / corners);
    if (e < entry_count)
        entry_weight[e] *= scale_of(r, r.in, entry_variable[e]);
}

static dcrf_status rescale_weights(struct device_lattice *lattice, const struct rescaling &r,
                                   dcrf_error *error) {
    const size_t corners = lattice->corners;
    rescale<<<blocks_for(lattice->entries), THREADS, 0, lattice->op.device->stream>>>(
        r, lattice->op.base.variables * corners, lattice->entries, (uint32_t)corners,
        lattice->entry_variable, lattice->corner_weight, lattice->entry_weight);
    return check(cudaGetLastError(), WHAT, error);
}

struct sampled_sums {
    double exact, found; /* found: by the operator */
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

/* As dcrf_lattice_calibrate: in each picture, make the operator's row sums equal to the exact ones
 * on average over the same sample of variables. The caller releases *factors. */
static dcrf_status calibrate(struct device_lattice *lattice, const float *rows,
                             const float *raw_sums, size_t pictures, scratch<float> &factors,
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
    scratch<uint32_t> sampled_on_device(device);
    scratch<sampled_sums> sums_on_device(device);
    for (size_t i = 0; i < samples; i++)
        sampled[i] = samples == n
                         ? (uint32_t)i
                         : (uint32_t)(fmod((double)i * 0.6180339887498949, 1.0) * (double)n);
    TRY(factors.take(pictures, WHAT, error));
    TRY(sampled_on_device.take(samples, WHAT, error));
    TRY(sums_on_device.take(sums.size(), WHAT, error));
    TRY(device_upload(device, sampled_on_device, sampled.data(), samples * sizeof(uint32_t),
                      error));
    const dim3 blocks((unsigned)samples, (unsigned)pictures);
    sum_sampled<<<blocks, THREADS, 0, device->stream>>>(rows, raw_sums, n, (int)lattice->dimension,
                                                        sampled_on_device, sums_on_device);
    TRY(check(cudaGetLastError(), WHAT, error));
    TRY(device_download(device, sums.data(), sums_on_device, sums.size() * sizeof(sampled_sums),
                        error));
    for (size_t p = 0; p < pictures; p++) {
        double exact = 0, raw = 0;
        for (size_t i = 0; i < samples; i++) {
            exact += sums[p * samples + i].exact;
            raw += sums[p * samples + i].found;
        }
        found[p] = (float)sqrt(exact / raw);
    }
    return device_upload(device, factors, found.data(), pictures * sizeof(float), error);
}

dcrf_status lattice_normalize(struct device_lattice *lattice, const float *rows, size_t pictures,
                              dcrf_normalization normalization, dcrf_error *error) {
    scratch<float> sums(lattice->op.device), factors(lattice->op.device);
    TRY(operator_sum_rows(&lattice->op, sums, error));
    TRY(normalization == DCRF_NORMALIZE_SYMMETRIC
            ? operator_make_scales(&lattice->op, sums, error)
            : calibrate(lattice, rows, sums, pictures, factors, error));
    const struct rescaling r = {lattice->op.scales, lattice->op.scales, factors,
                                lattice->op.base.variables / pictures};
    return rescale_weights(lattice, r, error);
}

/* ---- the compatible lattice ----------------------------------------------------------------- */

/* Added to row sums by the original. */
#define ROW_SUM_FLOOR 1e-20f

static __global__ void invert_sums(const float *sums, size_t variables, bool is_symmetric,
                                   float *scales) {
    const size_t a = this_thread();
    if (a >= variables)
        return;
    const float sum = sums[a * DCRF_NARROW_LANES] + ROW_SUM_FLOOR;
    scales[a] = 1 / (is_symmetric ? sqrtf(sum) : sum);
}

dcrf_status lattice_normalize_compatible(struct device_lattice *lattice,
                                         dcrf_densecrf_normalization normalization,
                                         dcrf_error *error) {
    dcrf_backend_device *device = lattice->op.device;
    const size_t n = lattice->op.base.variables;
    scratch<float> sums(device), scales(device);
    if (normalization == DCRF_DENSECRF_NONE)
        return DCRF_OK;
    TRY(operator_sum_rows(&lattice->op, sums, error));
    TRY(scales.take(n, WHAT, error));
    invert_sums<<<blocks_for(n), THREADS, 0, device->stream>>>(
        sums, n, normalization == DCRF_DENSECRF_SYMMETRIC, scales);
    const float *all = scales;
    const struct rescaling r = {normalization == DCRF_DENSECRF_AFTER ? nullptr : all,
                                normalization == DCRF_DENSECRF_BEFORE ? nullptr : all, nullptr, n};
    return rescale_weights(lattice, r, error);
}
