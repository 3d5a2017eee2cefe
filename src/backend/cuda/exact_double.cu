/* Sums over the pairs in double: the row sums with what each tile contributes to another, and the
 * products and lines used by proofs.
 *
 * Features, values and sums are doubles; exp2 has an error of one unit in the last place (CUDA C++
 * Programming Guide, Mathematical Functions). A thread adds EXACT_TILE / SLICES keys of a tile,
 * then the tiles of its part, so with at most 2^12 tiles per part the relative error of a sum is
 * below 2^-40, including the 2^-44 of every row sum that is left out. */
#include "backend/cuda/exact.cuh"

#include <cstdlib>

#define SLICES (THREADS / EXACT_TILE)
#define KEYS (EXACT_TILE / SLICES) /* per tile and thread */
#define TOGETHER 4                 /* keys whose distances are computed together */

enum double_mode { PRODUCT, LINE, MEASURE };

struct double_pass {
    struct exact_metric metric;
    unsigned tiles, parts, states;
    const double *features, *scale;
    const double *values; /* tiles x channels x EXACT_TILE */
    const uint8_t *state;
    double *partials; /* parts x tiles x channels x EXACT_TILE */
    uint8_t *steps;   /* MEASURE: tiles x tiles */
};

/* The kernel values of a row and TOGETHER keys of a tile. */
static __device__ void find_values(const exact_metric &metric, const double *row_features,
                                   const double *key_features, double *kernel) {
    double exponent[TOGETHER] = {}, squared[TOGETHER] = {};
    for (int f = 0; f < metric.features; f++) {
        const double own = row_features[f * EXACT_TILE];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const double difference = own - key_features[f * EXACT_TILE + i];
            squared[i] = fma(difference, difference, squared[i]);
        }
        if (metric.ends >> f & 1) {
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                exponent[i] = fma(-metric.weight_double[f], squared[i], exponent[i]);
                squared[i] = 0;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; i++)
        kernel[i] = exp2(exponent[i]);
}

/* One block per tile of rows and part of all tiles; threads are (row, slice). */
template <int CHANNELS, double_mode MODE>
static __global__ __launch_bounds__(THREADS) void sum_pairs(double_pass p) {
    extern __shared__ double shared[];
    const int features = p.metric.features;
    double *row_features = shared, *key_features = row_features + features * EXACT_TILE;
    double *key_values = key_features + features * EXACT_TILE;
    double *key_scale = key_values + CHANNELS * EXACT_TILE;
    double *sums = key_scale + EXACT_TILE; /* SLICES x CHANNELS x EXACT_TILE */
    unsigned *largest = (unsigned *)(sums + SLICES * CHANNELS * EXACT_TILE);
    const unsigned tile = blockIdx.x, part = blockIdx.y, thread = threadIdx.x;
    const unsigned row = thread % EXACT_TILE, slice = thread / EXACT_TILE;
    const unsigned first = (unsigned)((uint64_t)p.tiles * part / p.parts);
    const unsigned last = (unsigned)((uint64_t)p.tiles * (part + 1) / p.parts);
    const size_t feature_count = (size_t)features * EXACT_TILE;

    for (unsigned i = thread; i < feature_count; i += THREADS)
        row_features[i] = p.features[tile * feature_count + i];
    for (unsigned i = thread; MODE == MEASURE && i < last - first; i += THREADS)
        largest[i] = 0;
    double own[CHANNELS] = {}, total[CHANNELS] = {};
    for (int c = 0; MODE == LINE && c < CHANNELS; c++)
        own[c] = p.values[((size_t)tile * CHANNELS + c) * EXACT_TILE + row];

    for (unsigned t = first; t < last; t++) {
        if (!(p.states >> p.state[(size_t)tile * p.tiles + t] & 1))
            continue;
        __syncthreads();
        for (unsigned i = thread; i < feature_count; i += THREADS)
            key_features[i] = p.features[t * feature_count + i];
        for (unsigned i = thread; i < CHANNELS * EXACT_TILE; i += THREADS)
            key_values[i] = p.values[(size_t)t * CHANNELS * EXACT_TILE + i];
        if (MODE == LINE && thread < EXACT_TILE)
            key_scale[thread] = p.scale[(size_t)t * EXACT_TILE + thread];
        __syncthreads();
        double sum[CHANNELS] = {};
        for (unsigned key = slice * KEYS; key < (slice + 1) * KEYS; key += TOGETHER) {
            double kernel[TOGETHER];
            find_values(p.metric, row_features + row, key_features + key, kernel);
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                if (MODE == LINE)
                    kernel[i] *= key_scale[key + i];
#pragma unroll
                for (int c = 0; c < CHANNELS; c++) {
                    double factor = key_values[c * EXACT_TILE + key + i];
                    if (MODE == LINE)
                        factor = fmin(fmax(factor - own[c], -1.0), 1.0);
                    sum[c] = fma(kernel[i], factor, sum[c]);
                }
            }
        }
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            total[c] += sum[c];
        if (MODE == MEASURE) {
            sums[slice * EXACT_TILE + row] = sum[0];
            __syncthreads();
            if (thread < EXACT_TILE) {
                double of_tile = 0;
                for (int s = 0; s < SLICES; s++)
                    of_tile += sums[s * EXACT_TILE + thread];
                /* Rounded up; nonnegative floats compare like their bits. */
                atomicMax(&largest[t - first], __float_as_uint(__double2float_ru(of_tile)));
            }
        }
    }

    __syncthreads();
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
        sums[(slice * CHANNELS + c) * EXACT_TILE + row] = total[c];
    __syncthreads();
    for (unsigned i = thread; i < CHANNELS * EXACT_TILE; i += THREADS) {
        double all = 0;
        for (int s = 0; s < SLICES; s++)
            all += sums[s * CHANNELS * EXACT_TILE + i];
        p.partials[((size_t)part * p.tiles + tile) * CHANNELS * EXACT_TILE + i] = all;
    }
    for (unsigned i = thread; MODE == MEASURE && i < last - first; i += THREADS)
        p.steps[(size_t)tile * p.tiles + first + i] =
            exact_step((double)__uint_as_float(largest[i]));
}

/* ---- before and after ----------------------------------------------------------------------- */

/* Channels first .. first + CHANNELS - 1 of the caller's rows, as planes of the tiles; zero beyond
 * the last of `channels` and beyond the last variable. in = y = NULL: ones. */
struct double_packing {
    const uint32_t *order;
    const double *scale, *in;
    const float *y;
    double factor; /* of y */
    size_t first, channels, stride;
    uint32_t variables;
    bool is_scaled;
};

template <int CHANNELS> static __global__ void pack(double_packing p, double *values) {
    const size_t tile = blockIdx.x;
    for (unsigned i = threadIdx.x; i < CHANNELS * EXACT_TILE; i += blockDim.x) {
        const unsigned c = i / EXACT_TILE, k = i % EXACT_TILE;
        const size_t place = tile * EXACT_TILE + k;
        double value = 0;
        if (place < p.variables && p.first + c < p.channels) {
            const size_t at = p.order[place] * p.stride + p.first + c;
            /* y / epsilon is rounded to float before anything else (filter/operator.h). */
            value = p.y ? (double)(float)(p.factor * (double)p.y[at]) : p.in ? p.in[at] : 1;
            if (p.is_scaled)
                value *= p.scale[place];
        }
        values[tile * CHANNELS * EXACT_TILE + i] = value;
    }
}

/* The sum over the parts, times the rows' scales if any. */
template <int CHANNELS>
static __global__ void unpack(double_packing p, const double *partials, unsigned tiles,
                              unsigned parts, double *out) {
    const size_t tile = blockIdx.x;
    for (unsigned i = threadIdx.x; i < CHANNELS * EXACT_TILE; i += blockDim.x) {
        const unsigned c = i / EXACT_TILE, k = i % EXACT_TILE;
        const size_t place = tile * EXACT_TILE + k;
        if (place >= p.variables || p.first + c >= p.channels)
            continue;
        double sum = 0;
        for (unsigned part = 0; part < parts; part++)
            sum += partials[(part * (size_t)tiles + tile) * CHANNELS * EXACT_TILE + i];
        const size_t row = p.order ? p.order[place] : place;
        out[row * p.channels + p.first + c] = p.scale ? sum * p.scale[place] : sum;
    }
}

template <int CHANNELS, double_mode MODE>
static dcrf_status run(const struct exact_operator *op, const struct double_packing *packing,
                       unsigned states, uint8_t *steps, double *out, dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    const char *const what = "an exact operator in double";
    const size_t numbers = exact_places(op) * CHANNELS;
    scratch<double> values(device), partials(device);
    TRY(values.take(numbers, what, error));
    TRY(partials.take(numbers * op->parts, what, error));
    const struct double_pass pass = {op->metric, op->tiles, op->parts, states,   op->features,
                                     op->scale,  values,    op->state, partials, steps};
    size_t bytes = (2 * op->metric.features + 1 + CHANNELS + SLICES * CHANNELS) * EXACT_TILE * 8;
    if (MODE == MEASURE)
        bytes += (op->tiles / op->parts + 1) * sizeof(unsigned);
    struct double_packing after = *packing;
    if (MODE == MEASURE) /* by places, without scales */
        after.order = nullptr, after.scale = nullptr;
    TRY(check(cudaFuncSetAttribute(sum_pairs<CHANNELS, MODE>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
              what, error));
    pack<CHANNELS><<<op->tiles, THREADS, 0, device->stream>>>(*packing, values);
    sum_pairs<CHANNELS, MODE><<<dim3(op->tiles, op->parts), THREADS, bytes, device->stream>>>(pass);
    unpack<CHANNELS>
        <<<op->tiles, THREADS, 0, device->stream>>>(after, partials, op->tiles, op->parts, out);
    return check(cudaGetLastError(), what, error);
}

template <double_mode MODE>
static dcrf_status run_channels(const struct exact_operator *op, struct double_packing *packing,
                                unsigned states, double *out, dcrf_error *error) {
    const size_t step = packing->channels == 1 ? 1 : EXACT_CHANNELS_DOUBLE;
    for (; packing->first < packing->channels; packing->first += step)
        TRY(step == 1 ? run<1, MODE>(op, packing, states, nullptr, out, error)
                      : run<EXACT_CHANNELS_DOUBLE, MODE>(op, packing, states, nullptr, out, error));
    return DCRF_OK;
}

static struct double_packing packing_of(const struct exact_operator *op, size_t channels,
                                        size_t stride) {
    struct double_packing packing = {};
    packing.order = op->order;
    packing.scale = op->scale;
    packing.channels = channels;
    packing.stride = stride;
    packing.variables = (uint32_t)op->base.base.variables;
    return packing;
}

dcrf_status exact_measure(struct exact_operator *op, uint8_t *steps, dcrf_error *error) {
    const struct double_packing packing = packing_of(op, 1, 1);
    return run<1, MEASURE>(op, &packing, 1u << EXACT_IN_DOUBLE | 1u << EXACT_IN_BOTH, steps,
                           op->row_sums, error);
}

dcrf_status exact_apply_double(const struct exact_operator *op, const double *in, double *out,
                               size_t channels, unsigned states, dcrf_error *error) {
    struct double_packing packing = packing_of(op, channels, channels);
    packing.in = in;
    packing.is_scaled = true;
    return run_channels<PRODUCT>(op, &packing, states, out, error);
}

dcrf_status exact_line_double(const struct exact_operator *op, double epsilon, const float *y,
                              size_t stride, double *out, size_t channels, dcrf_error *error) {
    struct double_packing packing = packing_of(op, channels, stride);
    packing.y = y;
    packing.factor = exact_line_factor(epsilon);
    return run_channels<LINE>(op, &packing, 1u << EXACT_IN_DOUBLE | 1u << EXACT_IN_BOTH, out,
                              error);
}
