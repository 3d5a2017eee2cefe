/* Products with the kernel in float, by tensor cores.
 *
 * A thread block works on the rows of one tile and a part of the tiles that count for it; their
 * keys are copied to shared memory STAGES - 1 tiles ahead. A warp has 16 rows. It computes their
 * kernel values with 16 keys, K' = 2^SCALE_BITS K, in the layout of the tensor cores
 * (exact_tensor.cuh), and splits each into two numbers of 11 bits, K' = H + L. The values Y of the
 * keys have been split before: Y = h + l, scaled by a power of two such that the largest |y| of a
 * channel is between 2^14 and 2^15. Then K' Y = H h + (H l + L h): three products of 16-bit floats
 * with sums in float. H h is accumulated over CHAIN products and then added to a sum; the others,
 * which are 2^-10 as large, are summed separately for FLUSH tiles. Then both are added to a total
 * in double. Every sum has one owner and a fixed order.
 *
 * Errors, in units of 2^-24 of sum_b K_ab |y_b| (and so of the row sum times the largest |y| of the
 * channel), in addition to those of the distance and of exp2 (exact.cu):
 *
 * - The exponent is a sum that includes SCALE_BITS = 15. A number below 16 is rounded by at most
 *   2^-21, so each rounding in which the 15 takes part costs 8 ln 2 < 6 units; beyond 16 the number
 *   is smaller than what was subtracted, and the rounding is one of the exponent's.
 * - H is K' rounded to nearest, with an error of at most 2^(e-11) where 2^e <= K'; L is that error,
 *   which is exact in float, rounded to 11 bits: 2^(e-23) is left, 2 units. The same for Y. L l, at
 *   most 2^-22 of K' Y, is dropped: 4 units. So SPLIT_ROUNDINGS = 8.
 *   16-bit floats end at 2^-24, so 2^-25 can be lost in any case: 2^-40 of a K, and of a Y 2^-39 of
 *   the largest |y| (lost_roundings in exact.cu).
 * - Tensor cores multiply exactly, align the products of a step and the sum so far to the largest
 *   of them, truncate what is below 24 bits of it (newer ones keep a bit or two more), add, and
 *   truncate again. This was measured by Fasi, Higham, Mikaitis and Pranesh (Numerical behavior of
 *   NVIDIA tensor cores, PeerJ Computer Science 7, 2021), with steps of 4 or 8 products; later
 *   chips have 16. With n products per step, n numbers are truncated, each by less than 2^-23 of
 *   the largest, and the result by 2^-23 of itself: 2 (n + 1) units of the sum of all magnitudes,
 *   and for 16 / n steps at most 40, n = 4 being the worst. So CHAIN products cost 40 CHAIN units,
 *   and 8 FLUSH products of the small ones 40 * 8 FLUSH / 2^10.
 * - FLUSH * 4 / CHAIN additions of floats, then one of the two sums: one unit each. */
#include "backend/cuda/exact.cuh"
#include "backend/cuda/exact_tensor.cuh"

#include <float.h>
#include <math.h>

#define STAGES 3
#define CHAIN 2
#define FLUSH 8
#define SCALE_BITS 15
#define SIXTEENS (EXACT_TILE / 16)
#define PRODUCT_THREADS (32 * SIXTEENS)
#define COLUMNS 8 /* of a product */
static_assert(SIXTEENS % CHAIN == 0, "a chain is within a tile");

#define SPLIT_ROUNDINGS 8
#define STEP_ROUNDINGS 40
#define OFFSET_ROUNDINGS 6

double exact_product_roundings(const struct exact_operator *op) {
    const double offset = OFFSET_ROUNDINGS * (op->digit_groups > 0 ? op->digit_groups : 1);
    const double small = STEP_ROUNDINGS * 2.0 * SIXTEENS * FLUSH * 0x1p-10;
    return offset + SPLIT_ROUNDINGS + STEP_ROUNDINGS * CHAIN + small + FLUSH * SIXTEENS / CHAIN + 1;
}

struct product_task {
    struct exact_metric metric;
    float weight[EXACT_DIGIT_GROUPS];
    unsigned tiles, parts;
    const uint32_t *near_begin, *near;
    const float *features;
    const uint32_t *row_digits, *key_digits;
    const uint4 *keys; /* tiles x SIXTEENS x BLOCKS x lanes: h, h, l, l of 4 keys and a column */
    float *partials;   /* parts x places x BLOCKS x COLUMNS */
};

/* Bytes of a tile's keys in shared memory: their values, then digits or features. */
template <int BLOCKS> static __host__ __device__ constexpr unsigned value_bytes() {
    return SIXTEENS * BLOCKS * 32 * (unsigned)sizeof(uint4);
}

template <int BLOCKS, int GROUPS> static __host__ __device__ unsigned stage_bytes(int features) {
    return value_bytes<BLOCKS>() +
           (unsigned)(GROUPS > 0 ? GROUPS * SIXTEENS * 64 : features * EXACT_TILE) * 4;
}

/* Then the totals, and the features of the rows if there are no digits. */
template <int BLOCKS, int GROUPS> static unsigned shared_bytes(int features) {
    return STAGES * stage_bytes<BLOCKS, GROUPS>(features) + PRODUCT_THREADS * BLOCKS * 4 * 8 +
           (GROUPS > 0 ? 0 : features * EXACT_TILE * 4);
}

/* Copied by all threads, 16 bytes at a time. */
template <unsigned BYTES> static __device__ void copy_together(char *to, const char *from) {
#pragma unroll
    for (unsigned i = 0; i < BYTES; i += PRODUCT_THREADS * 16)
        if (BYTES - i >= PRODUCT_THREADS * 16 || threadIdx.x * 16 < BYTES - i)
            copy_later(to + i + threadIdx.x * 16, from + i + threadIdx.x * 16);
}

template <int BLOCKS, int GROUPS>
static __device__ void copy_keys(const product_task &task, unsigned tile, char *stage) {
    constexpr unsigned VALUES = value_bytes<BLOCKS>(), DIGITS = GROUPS * SIXTEENS * 64 * 4;
    copy_together<VALUES>(stage, (const char *)task.keys + (size_t)tile * VALUES);
    stage += VALUES;
    if constexpr (GROUPS > 0) {
        copy_together<DIGITS>(stage, (const char *)task.key_digits + (size_t)tile * DIGITS);
    } else {
        const unsigned bytes = task.metric.features * EXACT_TILE * 4;
        const char *from = (const char *)task.features + (size_t)tile * bytes;
        for (unsigned i = threadIdx.x * 16; i < bytes; i += PRODUCT_THREADS * 16)
            copy_later(stage + i, from + i);
    }
}

/* The exponents of 16 rows and 16 keys, by digits: of keys 2 t, 2 t + 1 and rows g, g + 8, then of
 * the keys 8 further. */
template <int GROUPS>
static __device__ void find_exponents(const product_task &task,
                                      const uint2 (&rows)[GROUPS > 0 ? GROUPS : 1],
                                      const uint32_t *keys, float (&exponent)[2][4]) {
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            float squared[4];
            multiply_8(squared, rows[group], keys[2 * group + half]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                exponent[half][i] = fmaf(-task.weight[group], squared[i],
                                         group == 0 ? SCALE_BITS : exponent[half][i]);
        }
}

/* By differences; rows and keys point to this lane's first values. */
static __device__ void find_exponents(const exact_metric &metric, const float *rows,
                                      const float *keys, float (&exponent)[2][4]) {
    float squared[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            exponent[half][i] = 0;
#pragma unroll 1
    for (int f = 0; f < metric.features; f++) {
        const float own[2] = {rows[f * EXACT_TILE], rows[f * EXACT_TILE + 8]};
        const bool is_end = metric.ends >> f & 1;
        const float weight = -metric.weight[f];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float2 key = *(const float2 *)(keys + f * EXACT_TILE + 8 * half);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float difference = own[i / 2] - (i % 2 ? key.y : key.x);
                squared[half][i] = fmaf(difference, difference, squared[half][i]);
                if (is_end) {
                    exponent[half][i] = fmaf(weight, squared[half][i], exponent[half][i]);
                    squared[half][i] = 0;
                }
            }
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            exponent[half][i] += SCALE_BITS;
}

/* Kernel values of 16 rows and 16 keys as H and L. */
struct split_values {
    uint32_t high[4], low[4];
};

static __device__ split_values split(const float (&exponent)[2][4]) {
    split_values values;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float first = power(exponent[i / 2][i % 2 * 2]);
        const float second = power(exponent[i / 2][i % 2 * 2 + 1]);
        const __half2 rounded = __floats2half2_rn(first, second);
        const float2 back = __half22float2(rounded);
        values.high[i] = word_of(rounded);
        values.low[i] = word_of(__floats2half2_rn(first - back.x, second - back.y));
    }
    return values;
}

/* The kernel values of a warp's rows, whose digits are `own`, or whose features begin at `rows`. */
template <int BLOCKS, int GROUPS>
static __device__ split_values find_kernel(const product_task &task,
                                           const uint2 (&own)[GROUPS > 0 ? GROUPS : 1],
                                           const float *rows, const char *stage, int sixteen) {
    const char *const keys = stage + value_bytes<BLOCKS>();
    const unsigned lane = threadIdx.x % 32;
    float exponent[2][4];
    if constexpr (GROUPS > 0) {
        uint32_t digits[2 * GROUPS];
        if (GROUPS == 2)
            *(uint4 *)digits = ((const uint4 *)keys)[sixteen * 32 + lane];
        else
            *(uint2 *)digits = ((const uint2 *)keys)[sixteen * 32 + lane];
        find_exponents<GROUPS>(task, own, digits, exponent);
    } else {
        find_exponents(task.metric, rows, (const float *)keys + sixteen * 16 + lane % 4 * 2,
                       exponent);
    }
    return split(exponent);
}

/* A thread's sums for its rows and channels. */
template <int BLOCKS> struct product_sums { float of[BLOCKS][4]; };

/* chain += H h, small += H l + L h */
template <int BLOCKS>
static __device__ void multiply_keys(const split_values &kernel, const char *stage, int sixteen,
                                     product_sums<BLOCKS> &chain, product_sums<BLOCKS> &small) {
    uint4 value[BLOCKS];
#pragma unroll
    for (int n = 0; n < BLOCKS; n++)
        value[n] = ((const uint4 *)stage)[(sixteen * BLOCKS + n) * 32 + threadIdx.x % 32];
#pragma unroll
    for (int n = 0; n < BLOCKS; n++) {
        multiply_16(small.of[n], kernel.high, value[n].z, value[n].w);
        multiply_16(chain.of[n], kernel.high, value[n].x, value[n].y);
    }
#pragma unroll
    for (int n = 0; n < BLOCKS; n++)
        multiply_16(small.of[n], kernel.low, value[n].x, value[n].y);
}

/* BLOCKS of COLUMNS channels. GROUPS of digits; 0: differences. */
template <int BLOCKS, int GROUPS>
static __global__ __launch_bounds__(PRODUCT_THREADS,
                                    BLOCKS <= 3 ? 4 : 2) void multiply(product_task task) {
    extern __shared__ uint4 shared[];
    const int features = task.metric.features;
    const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const unsigned g = lane / 4, t = lane % 4, tile = blockIdx.x, part = blockIdx.y;
    const unsigned stage_size = stage_bytes<BLOCKS, GROUPS>(features);
    char *const stages = (char *)shared;
    double *const totals = (double *)(stages + STAGES * stage_size) + thread;
    float *const all_features =
        (float *)(stages + STAGES * stage_size + PRODUCT_THREADS * BLOCKS * 4 * 8);
    float *const row_features = all_features + warp * 16 + g;

    const uint32_t begin = task.near_begin[tile], count = task.near_begin[tile + 1] - begin;
    const uint32_t first = begin + (uint32_t)((uint64_t)count * part / task.parts);
    const uint32_t last = begin + (uint32_t)((uint64_t)count * (part + 1) / task.parts);
#pragma unroll
    for (unsigned i = 0; i < STAGES - 1; i++) {
        if (first + i < last)
            copy_keys<BLOCKS, GROUPS>(task, task.near[first + i], stages + i * stage_size);
        end_copies();
    }
    /* Loaded one tile before its copies begin. */
    uint32_t next = first + STAGES - 1 < last ? task.near[first + STAGES - 1] : 0;

    uint2 own[GROUPS > 0 ? GROUPS : 1] = {};
#pragma unroll
    for (int group = 0; group < GROUPS; group++)
        own[group] =
            ((const uint2 *)(task.row_digits + exact_row_digits(GROUPS, tile, group, warp)))[lane];
    if (GROUPS == 0)
        for (int i = thread; i < features * EXACT_TILE; i += PRODUCT_THREADS)
            all_features[i] = task.features[(size_t)tile * features * EXACT_TILE + i];

    product_sums<BLOCKS> sum = {}, small = {}, chain = {};
#pragma unroll
    for (int i = 0; i < BLOCKS * 4; i++)
        totals[i * PRODUCT_THREADS] = 0;

    unsigned slot = 0;
    for (uint32_t at = first; at < last; at++) {
        wait_for_copies<STAGES - 2>();
        __syncthreads(); /* this tile has arrived, and all threads are done with the previous one */
        if (at + STAGES - 1 < last)
            copy_keys<BLOCKS, GROUPS>(task, next,
                                      stages + (slot == 0 ? STAGES - 1 : slot - 1) * stage_size);
        end_copies();
        next = at + STAGES < last ? task.near[at + STAGES] : 0;
        const char *const stage = stages + slot * stage_size;
        slot = slot + 1 == STAGES ? 0 : slot + 1;

        /* Compute the next kernel values while these are multiplied. */
        split_values kernel[2];
        kernel[0] = find_kernel<BLOCKS, GROUPS>(task, own, row_features, stage, 0);
#pragma unroll
        for (int sixteen = 0; sixteen < SIXTEENS; sixteen++) {
            if (sixteen + 1 < SIXTEENS)
                kernel[(sixteen + 1) % 2] =
                    find_kernel<BLOCKS, GROUPS>(task, own, row_features, stage, sixteen + 1);
            multiply_keys<BLOCKS>(kernel[sixteen % 2], stage, sixteen, chain, small);
            if (sixteen % CHAIN == CHAIN - 1) {
#pragma unroll
                for (int i = 0; i < BLOCKS * 4; i++)
                    sum.of[i / 4][i % 4] += chain.of[i / 4][i % 4];
                chain = {};
            }
        }

        if ((at - first) % FLUSH == FLUSH - 1 || at + 1 == last) {
#pragma unroll
            for (int i = 0; i < BLOCKS * 4; i++)
                totals[i * PRODUCT_THREADS] +=
                    (double)(sum.of[i / 4][i % 4] + small.of[i / 4][i % 4]);
            sum = small = {};
        }
    }

#pragma unroll
    for (int n = 0; n < BLOCKS; n++)
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            const size_t place = (size_t)tile * EXACT_TILE + warp * 16 + g + 4 * i;
            const double *total = totals + (n * 4 + i) * PRODUCT_THREADS;
            *(float2 *)(task.partials +
                        ((size_t)part * task.tiles * EXACT_TILE + place) * BLOCKS * COLUMNS +
                        n * COLUMNS + 2 * t) =
                make_float2((float)total[0], (float)total[PRODUCT_THREADS]);
        }
}

/* ---- before and after ----------------------------------------------------------------------- */

/* The channels to multiply: `count` of them from `first` on, in rows of floats. */
struct product_channels {
    const uint32_t *order;
    const double *scale;
    uint32_t variables;
    unsigned tiles, parts;
    const float *in;
    float *out;
    size_t first, count, stride;
    double factor;
    bool accumulate;
};

/* The largest magnitude of each channel. A thread always has the same channel. Nonnegative floats
 * compare like their bits. */
static __global__ void find_largest(product_channels c, unsigned *largest) {
    __shared__ unsigned found[EXACT_CHANNELS];
    const unsigned channel = threadIdx.x % EXACT_CHANNELS, row = threadIdx.x / EXACT_CHANNELS;
    const unsigned rows = blockDim.x / EXACT_CHANNELS;
    if (threadIdx.x < EXACT_CHANNELS)
        found[threadIdx.x] = 0;
    __syncthreads();
    float mine = 0;
    if (channel < c.count) {
#pragma unroll 4
        for (size_t a = blockIdx.x * rows + row; a < c.variables; a += gridDim.x * rows)
            mine = fmaxf(mine, fabsf(c.in[a * c.stride + c.first + channel]));
        atomicMax(&found[channel], __float_as_uint(mine));
    }
    __syncthreads();
    if (threadIdx.x < c.count)
        atomicMax(&largest[threadIdx.x], found[threadIdx.x]);
}

/* The power of two that a channel is scaled by, or its inverse (sign = -1). */
static __device__ double channel_factor(const unsigned *largest, unsigned channel, int sign) {
    const float value = __uint_as_float(largest[channel]);
    return value > 0 ? scalbn(1.0, sign * (14 - ilogbf(fminf(value, FLT_MAX)))) : 1;
}

/* One block per tile; each loop iteration of a thread packs four keys of a channel. */
template <int BLOCKS>
static __global__ void pack(product_channels c, const unsigned *largest, uint4 *keys) {
    const size_t tile = blockIdx.x;
    for (unsigned i = threadIdx.x; i < SIXTEENS * BLOCKS * 32; i += blockDim.x) {
        const unsigned lane = i % 32, n = i / 32 % BLOCKS, sixteen = i / 32 / BLOCKS;
        const unsigned channel = n * COLUMNS + lane / 4;
        const double factor = channel < c.count ? channel_factor(largest, channel, 1) : 0;
        __half high[4], low[4];
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            const size_t place =
                tile * EXACT_TILE + sixteen * 16 + lane % 4 * 2 + k % 2 + k / 2 * 8;
            double value = 0;
            if (channel < c.count && place < c.variables)
                value = (double)c.in[c.order[place] * c.stride + c.first + channel] *
                        c.scale[place] * factor;
            high[k] = __double2half(value);
            low[k] = __double2half(value - (double)__half2float(high[k]));
        }
        keys[tile * SIXTEENS * BLOCKS * 32 + i] = make_uint4(
            word_of(__halves2half2(high[0], high[1])), word_of(__halves2half2(high[2], high[3])),
            word_of(__halves2half2(low[0], low[1])), word_of(__halves2half2(low[2], low[3])));
    }
}

/* The sum over the parts, in order; one thread per place and channel. */
template <int BLOCKS>
static __global__ void unpack(product_channels c, const unsigned *largest, const float *partials) {
    constexpr unsigned WIDTH = BLOCKS * COLUMNS;
    const size_t i = this_thread(), place = i / WIDTH;
    const unsigned channel = i % WIDTH;
    if (place >= c.variables || channel >= c.count)
        return;
    const size_t step = (size_t)c.tiles * EXACT_TILE * WIDTH;
    double sum = 0;
    for (unsigned part = 0; part < c.parts; part++)
        sum += (double)partials[part * step + i];
    float *out = c.out + c.order[place] * c.stride + c.first + channel;
    const double value = sum * c.scale[place] * c.factor * channel_factor(largest, channel, -1) *
                         (1.0 / (1 << SCALE_BITS));
    *out = (float)(c.accumulate ? (double)*out + value : value);
}

template <int BLOCKS, int GROUPS>
static dcrf_status run(struct exact_operator *op, const struct product_channels *c,
                       dcrf_error *error) {
    const cudaStream_t stream = op->base.device->stream;
    const char *const what = "an exact operator";
    const unsigned bytes = shared_bytes<BLOCKS, GROUPS>(op->metric.features);
    TRY(check(cudaFuncSetAttribute(multiply<BLOCKS, GROUPS>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
              what, error));
    TRY(check(cudaMemsetAsync(op->largest, 0, EXACT_CHANNELS * sizeof *op->largest, stream), what,
              error));
    const struct product_task task = {
        op->metric,          {op->digit_weight[0], op->digit_weight[1]},
        op->tiles,           op->parts,
        op->near_begin,      op->near,
        op->features_single, op->row_digits,
        op->key_digits,      (const uint4 *)op->keys,
        op->partials};
    find_largest<<<4 * op->base.device->multiprocessors, 8 * EXACT_CHANNELS, 0, stream>>>(
        *c, op->largest);
    pack<BLOCKS><<<op->tiles, THREADS, 0, stream>>>(*c, op->largest, (uint4 *)op->keys);
    multiply<BLOCKS, GROUPS><<<dim3(op->tiles, op->parts), PRODUCT_THREADS, bytes, stream>>>(task);
    unpack<BLOCKS><<<blocks_for(c->variables * (size_t)(BLOCKS * COLUMNS)), THREADS, 0, stream>>>(
        *c, op->largest, op->partials);
    return check(cudaGetLastError(), what, error);
}

template <int BLOCKS>
static dcrf_status run_groups(struct exact_operator *op, const struct product_channels *c,
                              dcrf_error *error) {
    static_assert(EXACT_DIGIT_GROUPS == 2, "all numbers of groups");
    return op->digit_groups == 2   ? run<BLOCKS, 2>(op, c, error)
           : op->digit_groups == 1 ? run<BLOCKS, 1>(op, c, error)
                                   : run<BLOCKS, 0>(op, c, error);
}

/* In blocks of channels, each with the narrowest variant that holds it. */
dcrf_status exact_apply(struct exact_operator *op, const struct dcrf_application *application,
                        dcrf_error *error) {
    static_assert(EXACT_CHANNELS == 4 * COLUMNS, "all numbers of blocks");
    struct product_channels c = {};
    c.order = op->order;
    c.scale = op->scale;
    c.variables = (uint32_t)op->base.base.variables;
    c.tiles = op->tiles;
    c.parts = op->parts;
    c.in = application->in;
    c.out = application->out;
    c.stride = application->stride;
    c.factor = (double)application->factor;
    c.accumulate = application->accumulate;
    for (; c.first < application->channels; c.first += c.count) {
        const size_t left = application->channels - c.first;
        c.count = left < EXACT_CHANNELS ? left : EXACT_CHANNELS;
        if (c.count <= 1 * COLUMNS)
            TRY(run_groups<1>(op, &c, error));
        else if (c.count <= 2 * COLUMNS)
            TRY(run_groups<2>(op, &c, error));
        else if (c.count <= 3 * COLUMNS)
            TRY(run_groups<3>(op, &c, error));
        else
            TRY(run_groups<4>(op, &c, error));
    }
    return DCRF_OK;
}
