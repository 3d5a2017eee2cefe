/* Made problems for the exact operator of the device, and what its check and its benchmark share.
 */
#ifndef DCRF_TESTS_CUDA_EXACT_SCENE_CUH
#define DCRF_TESTS_CUDA_EXACT_SCENE_CUH

#include "backend/cuda/exact.cuh"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

/* ---- problems ------------------------------------------------------------------------------- */

static uint64_t seed = 1;
static double uniform() {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) * 0x1p-53;
}

struct problem {
    char name[96];
    struct dcrf_features features;
    std::vector<double> channel;
    dcrf_normalization normalization;
};

/* Patches with soft edges, a gradient and grain: whole numbers from 0 to 255. */
static void fill_photograph(std::vector<double> &channel, size_t width, size_t height) {
    const size_t patches = 40;
    std::vector<double> centre(patches * 2), colour(patches * 3);
    for (double &x : centre)
        x = uniform();
    for (double &x : colour)
        x = 30 + 190 * uniform();
    channel.resize(width * height * 3);
    for (size_t a = 0; a < width * height; a++) {
        const double x = (double)(a % width) / (double)width;
        const double y = (double)(a / width) / (double)height;
        double sum = 0, mixed[3] = {0, 0, 0};
        for (size_t p = 0; p < patches; p++) {
            const double dx = x - centre[2 * p], dy = y - centre[2 * p + 1];
            const double weight = exp(-(dx * dx + dy * dy) * 400) + 1e-9;
            sum += weight;
            for (int c = 0; c < 3; c++)
                mixed[c] += weight * colour[3 * p + c];
        }
        const double texture = 15 * sin(40 * x) * cos(31 * y);
        const double grain = 24 * (uniform() + uniform() + uniform() - 1.5);
        for (int c = 0; c < 3; c++)
            channel[a * 3 + c] = std::min(
                255.0,
                std::max(0.0, floor(mixed[c] / sum + texture + grain + 6 * (uniform() - 0.5))));
    }
}

static void finish(problem &p, dcrf_kernel_kind kind, size_t axes, const size_t *size,
                   size_t channels, double sigma, double channel_sigma,
                   dcrf_normalization normalization) {
    p.normalization = normalization;
    p.features = {};
    p.features.kind = kind;
    p.features.pictures = 1;
    p.features.grid.axes = axes;
    p.features.variables = 1;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        p.features.grid.size[axis] = axis < axes ? size[axis] : 1;
        p.features.grid.spacing[axis] = 1;
        p.features.variables *= p.features.grid.size[axis];
    }
    p.features.axes = kind == DCRF_KERNEL_FEATURES ? 0 : axes;
    p.features.channels = channels;
    p.features.dimension = p.features.axes + channels;
    for (size_t i = 0; i < p.features.axes; i++)
        p.features.axis_factor[i] = 1 / sigma;
    for (size_t c = 0; c < channels; c++)
        p.features.channel_factor[c] = 1 / channel_sigma;
    p.features.channel_in_double = channels ? p.channel.data() : nullptr;
}

static void make_photograph(problem &p, size_t width, size_t height, double sigma,
                            double channel_sigma, dcrf_normalization normalization) {
    snprintf(p.name, sizeof p.name, "photograph %zux%zu, %g/%g%s", width, height, sigma,
             channel_sigma, normalization == DCRF_NORMALIZE_NONE ? "" : ", symmetric");
    const size_t size[] = {width, height};
    fill_photograph(p.channel, width, height);
    finish(p, DCRF_KERNEL_BILATERAL, 2, size, 3, sigma, channel_sigma, normalization);
}

/* Clouds of points in `dimension` features that are no whole numbers. */
inline void make_clouds(problem &p, size_t count, size_t dimension, double width,
                        dcrf_normalization normalization) {
    snprintf(p.name, sizeof p.name, "%zu points in %zu dimensions%s", count, dimension,
             normalization == DCRF_NORMALIZE_NONE ? "" : ", symmetric");
    std::vector<double> centre(20 * dimension);
    for (double &x : centre)
        x = width * uniform();
    p.channel.resize(count * dimension);
    for (size_t a = 0; a < count; a++)
        for (size_t i = 0; i < dimension; i++)
            p.channel[a * dimension + i] =
                centre[a * 7919 % 20 * dimension + i] + 2 * (uniform() + uniform() - 1);
    finish(p, DCRF_KERNEL_FEATURES, 1, &count, dimension, 1, 1, normalization);
}

/* Whole numbers, as large as digits can hold. */
inline void make_whole(problem &p, size_t count, size_t dimension, double largest, double sigma,
                       dcrf_normalization normalization) {
    snprintf(p.name, sizeof p.name, "%zu whole points in %zu dimensions up to %g%s", count,
             dimension, largest, normalization == DCRF_NORMALIZE_NONE ? "" : ", symmetric");
    p.channel.resize(count * dimension);
    for (double &x : p.channel)
        x = floor((2 * uniform() - 1) * (largest + 1));
    finish(p, DCRF_KERNEL_FEATURES, 1, &count, dimension, 1, sigma, normalization);
}

inline void make_space(problem &p, size_t x, size_t y, size_t z, double sigma,
                       dcrf_normalization normalization) {
    const size_t size[] = {x, y, z}, axes = z > 1 ? 3 : 2;
    snprintf(p.name, sizeof p.name, "space %zux%zux%zu, %g%s", x, y, z, sigma,
             normalization == DCRF_NORMALIZE_NONE ? "" : ", symmetric");
    finish(p, DCRF_KERNEL_SPATIAL, axes, size, 0, sigma, 1, normalization);
}

/* ---- the device ----------------------------------------------------------------------------- */

static dcrf_error why;

static void need(dcrf_status status) {
    if (status < 0) {
        printf("FAILED: %s\n", why.message);
        exit(1);
    }
}

static void need_cuda(cudaError_t result) {
    need(check(result, "the check", &why));
}

template <typename T> static T *to_device(const std::vector<T> &from) {
    T *memory;
    need_cuda(cudaMalloc(&memory, std::max<size_t>(1, from.size() * sizeof(T))));
    need_cuda(cudaMemcpy(memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    need_cuda(cudaDeviceSynchronize());
    return memory;
}

static struct exact_operator *build(dcrf_backend_device *device, const problem &p) {
    struct device_operator *op = nullptr;
    need(exact_new(&op, device, &p.features, p.normalization, &why));
    need_cuda(cudaDeviceSynchronize());
    return (struct exact_operator *)op;
}

static double shown_fraction(const struct exact_operator *op) {
    return (double)op->near_pairs / ((double)op->tiles * (double)op->tiles);
}

static std::vector<float> new_block(size_t n, size_t stride, double low, double high) {
    std::vector<float> block(n * stride);
    for (float &x : block)
        x = (float)(low + (high - low) * uniform());
    return block;
}

/* Marginals: some 0 and some 1, in whole stretches and alone. */
static std::vector<float> new_marginals(size_t n, size_t stride) {
    std::vector<float> y = new_block(n, stride, 0, 1);
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < stride; c++)
            if (c % 3 == 1 || (c % 3 == 2 && a % 5 < 3))
                y[a * stride + c] = (float)((a / 70 + c) % 2);
    return y;
}

extern "C" const struct dcrf_backend *dcrf_backend_cuda(void);

/* NULL: there is none. Its stream does not wait for the checks' own work, so they do. */
static dcrf_backend_device *open_device() {
    const struct dcrf_backend *backend = dcrf_backend_cuda();
    dcrf_backend_device *device = nullptr;
    size_t count = 0;
    if (backend->count(&count, &why) < 0 || count == 0) {
        printf("skipped: there is no CUDA device\n");
        return nullptr;
    }
    need(backend->open(&device, 0, &why));
    cudaDeviceProp properties;
    need_cuda(cudaGetDeviceProperties(&properties, 0));
    printf("%s\n", properties.name);
    return device;
}

#endif
