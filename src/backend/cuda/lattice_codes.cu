/* Points on the lattice: their extent, the codes of their vertices, and their weights, rounded
 * exactly as in filter/lattice/lattice_embed.c. */
#include "backend/cuda/lattice_codes.cuh"

#include <cmath>
#include <math_constants.h>

#define WHAT "the plan of a lattice"

/* ---- the extent ----------------------------------------------------------------------------- */

/* Maps floats to integers in the same order. */
static __device__ int ordered_bits(float value) {
    const int bits = __float_as_int(value);
    return bits < 0 ? bits ^ 0x7fffffff : bits;
}

static __device__ float from_ordered_bits(int ordered) {
    return __int_as_float(ordered < 0 ? ordered ^ 0x7fffffff : ordered);
}

/* The smallest and largest value of every feature; the order of integer atomics does not matter. */
static __global__ void find_extent(const float *rows, size_t variables, int dimension,
                                   int *extent) {
    for (int i = 0; i < dimension; i++) {
        int low = 0x7fffffff, high = (int)0x80000000;
        for (size_t a = this_thread(); a < variables; a += (size_t)gridDim.x * blockDim.x) {
            const int value = ordered_bits(rows[a * (size_t)dimension + (size_t)i]);
            low = min(low, value);
            high = max(high, value);
        }
        low = __reduce_min_sync(0xffffffffu, low);
        high = __reduce_max_sync(0xffffffffu, high);
        if (threadIdx.x % 32 == 0) {
            atomicMin(&extent[2 * i], low);
            atomicMax(&extent[2 * i + 1], high);
        }
    }
}

static __global__ void clear_extent(int dimension, int *extent) {
    if ((int)threadIdx.x < dimension) {
        extent[2 * threadIdx.x] = 0x7fffffff;
        extent[2 * threadIdx.x + 1] = (int)0x80000000;
    }
}

/* More than the relative rounding error of a coordinate in single precision, as in
 * filter/lattice/lattice_embed.c. */
#define COORDINATE_ERROR 0x1p-19

/* Coordinates of the embedding are linear in the features, so the extremes bound them. A corner of
 * the simplex is within two steps of the point, a neighbour within three; one step is spare. In
 * single precision, coordinates must be small enough that rounding errors are a fraction of that
 * step. Runs on the device, in one thread, so that the host need not wait for the extremes. */
static __global__ void choose_coding(struct coding coding, size_t pictures, const int *extent,
                                     struct coding *out) {
    const int dimension = coding.dimension;
    const double corners = (double)(dimension + 1), margin = 4;
    double low = 0, high = 0, size = 0; /* of the sum over higher coordinates */
    double digits[DCRF_MAX_FEATURES];
    coding.is_failed = CODING_IS_RIGHT;
    for (int i = dimension; i >= 0; i--) {
        double along_low = 0, along_high = 0; /* of the feature of coordinate i */
        if (i > 0) {
            along_low = (double)from_ordered_bits(extent[2 * (i - 1)]) * coding.factor[i - 1];
            along_high = (double)from_ordered_bits(extent[2 * i - 1]) * coding.factor[i - 1];
        }
        const double from = low - (double)i * along_high, to = high - (double)i * along_low;
        const double own_size = fmax(fabs(along_low), fabs(along_high));
        if (!(fabs(from) < 1e9 && fabs(to) < 1e9))
            coding.is_failed = CODING_TOO_LARGE;
        else if (coding.is_single && (size + (double)i * own_size) * COORDINATE_ERROR > corners / 4)
            coding.is_failed = CODING_TOO_LARGE_SINGLE;
        if (coding.is_failed)
            break;
        if (i < dimension) {
            coding.low[i] = (long long)floor(from / corners - margin);
            digits[i] = ceil(to / corners + margin) - (double)coding.low[i] + 1;
        }
        low += along_low;
        high += along_high;
        size += own_size;
    }
    double place = corners;
    for (int i = dimension; i >= 0 && !coding.is_failed; i--) {
        if (i > 0)
            coding.place[i - 1] = (unsigned long long)place;
        else
            coding.picture_place = (unsigned long long)place;
        place *= i > 0 ? digits[i - 1] : (double)pictures;
        if (place > 0x1p62)
            coding.is_failed = CODING_TOO_WIDE;
    }
    coding.bits = coding.is_failed ? 64 : (int)ceil(log2(place)) + 1;
    *out = coding;
}

dcrf_status coding_choose(struct coding **on_device, dcrf_backend_device *device, size_t dimension,
                          bool is_single, const float *rows, size_t points, size_t pictures,
                          dcrf_error *error) {
    scratch<int> extent(device);
    struct coding coding = {};
    double units = sqrt(1.0 / 2 + 1.0 / 6) * (double)(dimension + 1);
    if (is_single)
        units = (double)(float)units;
    coding.dimension = (int)dimension;
    coding.picture_points = points / pictures;
    coding.is_single = is_single;
    for (size_t i = 0; i < dimension; i++)
        coding.factor[i] = 1 / sqrt((double)((i + 1) * (i + 2))) * units;
    TRY(device_array(device, on_device, 1, WHAT, error));
    TRY(extent.take(2 * dimension, WHAT, error));
    clear_extent<<<1, 32, 0, device->stream>>>((int)dimension, extent);
    find_extent<<<(unsigned)device->multiprocessors * 2, THREADS, 0, device->stream>>>(
        rows, points, (int)dimension, extent);
    choose_coding<<<1, 1, 0, device->stream>>>(coding, pictures, extent, *on_device);
    return check(cudaGetLastError(), WHAT, error);
}

dcrf_status coding_download(struct coding *coding, const struct coding *on_device,
                            dcrf_backend_device *device, dcrf_error *error) {
    const dcrf_status status = device_download(device, coding, on_device, sizeof *coding, error);
    if (status < 0 || coding->is_failed == CODING_IS_RIGHT)
        return status;
    if (coding->is_failed == CODING_TOO_LARGE)
        return fail(
            error, DCRF_ERROR_ARGUMENT,
            "a feature is too large for its sigma: the lattice would need more than 32 bits");
    if (coding->is_failed == CODING_TOO_LARGE_SINGLE)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "features this large for their sigmas, in single precision, are not on this "
                    "device yet: use the CPU, or larger sigmas");
    return fail(error, DCRF_ERROR_UNSUPPORTED,
                "a lattice of this extent in %d dimensions is not on this device yet: use the CPU, "
                "or larger sigmas",
                coding->dimension);
}

/* ---- embedding ------------------------------------------------------------------------------ */

/* Sums and products that are never fused. */
static __device__ double times(double a, double b) {
    return __dmul_rn(a, b);
}

static __device__ float times(float a, float b) {
    return __fmul_rn(a, b);
}

static __device__ double plus(double a, double b) {
    return __dadd_rn(a, b);
}

static __device__ float plus(float a, float b) {
    return __fadd_rn(a, b);
}

static __device__ double minus(double a, double b) {
    return __dsub_rn(a, b);
}

static __device__ float minus(float a, float b) {
    return __fsub_rn(a, b);
}

/* The nearest integer: halves round away from zero in double, to even in single precision. */
static __device__ int nearest(double value) {
    return (int)__dadd_rn(value, value < 0 ? -0.5 : 0.5);
}

static __device__ int nearest(float value) {
    return __float2int_rn(value);
}

/* dsp/dsp_embed.h for one variable, with the same rounding: in double, or in single precision,
 * where the differences are taken from the final origin and the weights are not clamped. */
template <int MOST, typename T>
static __device__ void embed(const struct coding &coding, int d, const float *feature, int *origin,
                             int *rank, float *weight) {
    constexpr bool IS_SINGLE = sizeof(T) == sizeof(float);
    const T corners = (T)(d + 1), inverse = 1 / corners;
    T elevated[MOST + 1], difference[MOST + 1];
    T above = 0;
    for (int i = d; i > 0; i--) {
        const T along = times((T)feature[i - 1], (T)coding.factor[i - 1]);
        elevated[i] = minus(above, times((T)i, along));
        above = plus(above, along);
    }
    elevated[0] = above;
    int excess = 0;
    for (int i = 0; i <= d; i++) {
        const int rounded = nearest(times(elevated[i], inverse));
        origin[i] = rounded;
        difference[i] = minus(elevated[i], (T)(rounded * (d + 1)));
        excess += rounded;
        rank[i] = 0;
    }
    for (int i = 0; i < d; i++)
        for (int j = i + 1; j <= d; j++) {
            const int smaller = difference[i] < difference[j];
            rank[i] += smaller;
            rank[j] += 1 - smaller;
        }
    for (int i = 0; i <= d; i++) {
        rank[i] += excess;
        const int step = (rank[i] < 0) - (rank[i] > d);
        rank[i] += step * (d + 1);
        origin[i] += step;
        difference[i] = IS_SINGLE ? minus(elevated[i], (T)(origin[i] * (d + 1)))
                                  : minus(difference[i], (T)step * corners);
    }
    T barycentric[MOST + 2];
    for (int k = 0; k <= d + 1; k++)
        barycentric[k] = 0;
    for (int i = 0; i <= d; i++) {
        const T share = times(difference[i], inverse);
        for (int k = 0; k <= d; k++) /* registers cannot be indexed */
            if (k == d - rank[i]) {
                barycentric[k] = plus(barycentric[k], share);
                barycentric[k + 1] = minus(barycentric[k + 1], share);
            }
    }
    T last = 0;
    for (int k = 0; k <= d + 1; k++)
        if (k == d + 1)
            last = barycentric[k];
    barycentric[0] = plus(barycentric[0], plus((T)1, last));
    for (int k = 0; k <= d; k++)
        weight[k] = IS_SINGLE || barycentric[k] > 0 ? (float)barycentric[k] : 0;
}

template <int FIXED, typename T> static __global__ void embed_all(struct embedding e) {
    constexpr int MOST = FIXED > 0 ? FIXED : DCRF_MAX_FEATURES;
    const int d = FIXED > 0 ? FIXED : e.dimension;
    const size_t a = this_thread();
    if (a >= e.points)
        return;
    const struct coding &coding = *e.coding;
    float feature[MOST], weight[MOST + 1];
    int origin[MOST + 1], rank[MOST + 1];
    bool is_right = coding.is_failed == CODING_IS_RIGHT;
    for (int i = 0; i < d; i++) {
        feature[i] = e.rows[a * (size_t)d + (size_t)i];
        is_right = is_right && isfinite(feature[i]);
    }
    embed<MOST, T>(coding, d, feature, origin, rank, weight);
    const unsigned long long picture = a / coding.picture_points;
    for (int k = 0; k <= d; k++) {
        unsigned long long code = (unsigned long long)k + picture * coding.picture_place;
        for (int i = 0; i < d; i++) {
            const long long digit = origin[i] - (rank[i] > d - k) - coding.low[i];
            code += (unsigned long long)digit * coding.place[i];
        }
        const size_t entry = a * (size_t)(d + 1) + (size_t)k;
        e.codes[entry] = code;
        e.entries[entry] = (uint32_t)entry;
        e.weights[entry] = is_right ? weight[k] : CUDART_NAN_F;
    }
}

template <typename T> static void launch_embed(const struct embedding &e, cudaStream_t stream) {
    const unsigned blocks = blocks_for(e.points);
    switch (e.dimension) {
    case 2:
        embed_all<2, T><<<blocks, THREADS, 0, stream>>>(e);
        break;
    case 3:
        embed_all<3, T><<<blocks, THREADS, 0, stream>>>(e);
        break;
    case 5:
        embed_all<5, T><<<blocks, THREADS, 0, stream>>>(e);
        break;
    case 6:
        embed_all<6, T><<<blocks, THREADS, 0, stream>>>(e);
        break;
    default:
        embed_all<0, T><<<blocks, THREADS, 0, stream>>>(e);
        break;
    }
}

void embedding_launch(const struct embedding &e, cudaStream_t stream) {
    if (e.is_single)
        launch_embed<float>(e, stream);
    else
        launch_embed<double>(e, stream);
}
