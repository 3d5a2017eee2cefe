/* Sums over the pairs in float: products with the kernel, and the clipped line.
 *
 * A block of WARPS warps has the ROWS = EXACT_TILE rows of one tile and a part of the tiles that
 * count for it. Each warp takes its own SLICE keys of every such tile: it copies them to shared
 * memory while it works on those of the tile before, finds the SLICE x ROWS kernel values, and adds
 * up, without waiting for any other warp. A thread has 8 rows and a quarter of the channels, so
 * that a number from shared memory serves several: per key 8 kernel values and CHANNELS numbers of
 * the key make 8 CHANNELS sums.
 *
 * Every FLUSH tiles the warps' sums go to shared memory, are added up in pairs, and go on in
 * double: a sum has FLUSH SLICE + log2(WARPS) = EXACT_CHAIN additions of floats.
 *
 * The clipped line F = clip(y_b - y_a) to [-1, 1] is 1 - 2 S with S = (1 - y_b + y_a) / 2,
 * saturated to [0, 1], which the device does for nothing: with y / 2 and 1/2 - y / 2 at hand it is
 * one sum. So a pair and a channel cost a sum and a product, and
 *
 *   sum_b K_ab F(a, b) = sum_b K_ab - 2 sum_b K_ab S(a, b),
 *
 * the first sum being of the same kernel values. Where y >= 0, 1/2 - y / 2 is rounded by at most
 * 2^-26 (not at all where y / 2 >= 1/4: the result has a last place that is no coarser), and S by
 * 2^-25 more. Otherwise, or where y is beyond 2^22, the difference is found first: one rounding of
 * it and one of S, and one instruction more. Either way F is off by at most 1.5 * 2^-24.
 *
 * Kernel values: as dsp/pairs.h has it, but for the power, which is the device's own: ex2.approx
 * has a relative error of at most 2^-22 (PTX ISA, ex2; 2 units in the last place, CUDA C++
 * Programming Guide, Mathematical Functions), and values below 2^-126 are zero. */
#include "cuda/exact.cuh"

#define WARPS 8
#define PAIR_THREADS (32 * WARPS)
#define SLICE (EXACT_TILE / WARPS)
#define FLUSH 2
#define HALF (EXACT_TILE / 2)
/* A thread's share: the rows 4 r .. 4 r + 3 of each half, and one of the groups of channels. */
#define ROW_THREADS 8
#define ROWS_EACH 8
#define GROUPS 4
static_assert(FLUSH * SLICE + 3 == EXACT_CHAIN, "three sums in pairs add up 8 warps");
static_assert(ROW_THREADS * GROUPS == 32 && 2 * HALF == EXACT_TILE, "all lanes have work");

enum pair_mode { PRODUCT, LINE };

struct pair_task {
    struct exact_metric metric;
    unsigned tiles, parts;
    const float *features, *scale;
    const uint32_t *near_begin, *near;
    const float *keys, *rows; /* places x GROUPS x (channels of a group, padded) */
    const int *is_hard;       /* the line needs the difference first */
    float *partials;          /* parts x tiles x channels x EXACT_TILE */
};

/* Channels of a group in memory: whole vectors of four. */
template <int CHANNELS> static __host__ __device__ constexpr int padded() {
    return (CHANNELS + 3) / 4 * 4;
}

static __device__ float power(float exponent) {
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(exponent));
    return value;
}

/* Sixteen bytes from global to shared memory, behind this thread's back. */
static __device__ void copy_later(float *to, const float *from) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

/* The keys of a tile that a warp works on: their channels, their features and their scales. */
template <int CHANNELS>
static __device__ void copy_keys(const pair_task &task, unsigned tile, unsigned warp, unsigned lane,
                                 float *stage) {
    constexpr unsigned WIDTH = GROUPS * padded<CHANNELS>();
    const unsigned features = (unsigned)task.metric.features;
    const float *keys = task.keys + ((size_t)tile * EXACT_TILE + warp * SLICE) * WIDTH;
    for (unsigned i = lane; i < SLICE * WIDTH / 4; i += 32)
        copy_later(stage + 4 * i, keys + 4 * i);
    stage += SLICE * WIDTH;
    const float *at = task.features + (size_t)tile * features * EXACT_TILE + warp * SLICE;
    for (unsigned i = lane; i < features * (SLICE / 4); i += 32) {
        const unsigned f = i / (SLICE / 4), k = i % (SLICE / 4) * 4;
        copy_later(stage + f * SLICE + k, at + f * EXACT_TILE + k);
    }
    stage += features * SLICE;
    if (lane < SLICE / 4)
        copy_later(stage + 4 * lane,
                   task.scale + (size_t)tile * EXACT_TILE + warp * SLICE + 4 * lane);
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* kernel[key * EXACT_TILE + row] for the keys of a slice; `sums`: of the lane's two rows. */
template <pair_mode MODE>
static __device__ void find_kernel(const exact_metric &metric, const float *row_features,
                                   const float *key_features, unsigned lane, float *kernel,
                                   float *sums) {
    const float *scale = key_features + metric.features * SLICE;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const unsigned row = lane + half * HALF;
        float exponent[SLICE] = {}, squared[SLICE] = {};
#pragma unroll 1
        for (int f = 0; f < metric.features; f++) {
            const float own = row_features[f * EXACT_TILE + row];
            float at[SLICE];
#pragma unroll
            for (int k = 0; k < SLICE; k += 4)
                *(float4 *)(at + k) = *(const float4 *)(key_features + f * SLICE + k);
#pragma unroll
            for (int k = 0; k < SLICE; k++) {
                const float difference = own - at[k];
                squared[k] = fmaf(difference, difference, squared[k]);
            }
            if (metric.ends >> f & 1) {
                const float weight = -metric.weight[f];
#pragma unroll
                for (int k = 0; k < SLICE; k++) {
                    exponent[k] = fmaf(weight, squared[k], exponent[k]);
                    squared[k] = 0;
                }
            }
        }
#pragma unroll
        for (int k = 0; k < SLICE; k++) {
            float value = power(exponent[k]);
            if (MODE == LINE) {
                value *= scale[k];
                sums[half] += value;
            }
            kernel[k * EXACT_TILE + row] = value;
        }
    }
}

/* The sums of a thread's rows and channels over the keys of a slice. */
template <int CHANNELS, pair_mode MODE, bool IS_HARD>
static __device__ void add_keys(const float *kernel, const float *keys, unsigned row_thread,
                                unsigned group, const float (&own)[ROWS_EACH][CHANNELS],
                                float (&sum)[ROWS_EACH][CHANNELS]) {
    constexpr int PADDED = padded<CHANNELS>();
#pragma unroll 2
    for (int k = 0; k < SLICE; k++) {
        float value[ROWS_EACH], key[PADDED];
        *(float4 *)value = *(const float4 *)(kernel + k * EXACT_TILE + 4 * row_thread);
        *(float4 *)(value + 4) = *(const float4 *)(kernel + k * EXACT_TILE + HALF + 4 * row_thread);
#pragma unroll
        for (int c = 0; c < PADDED; c += 4)
            *(float4 *)(key + c) = *(const float4 *)(keys + (k * GROUPS + group) * PADDED + c);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
#pragma unroll
            for (int i = 0; i < ROWS_EACH; i++) {
                float factor = key[c];
                if (MODE == LINE)
                    factor = IS_HARD ? __saturatef(fmaf(own[i][c] - key[c], 0.5f, 0.5f))
                                     : __saturatef(key[c] + own[i][c]);
                sum[i][c] = fmaf(value[i], factor, sum[i][c]);
            }
    }
}

/* The rows of a thread, which has a share of each half. */
static __device__ unsigned row_of(unsigned row_thread, int i) {
    return (i / 4) * HALF + 4 * row_thread + i % 4;
}

/* What the warps have goes on in double, in the places that a thread owns: row thread % 64 of the
 * channels thread / 64 + 4 i, and for thread < 64 the sum of the kernel values of its row. */
template <int CHANNELS, pair_mode MODE>
static __device__ void flush(float *room, double *totals, unsigned thread,
                             float (&sum)[ROWS_EACH][CHANNELS], float (&row_sum)[2]) {
    constexpr int SIZE = (GROUPS * CHANNELS + 1) * EXACT_TILE, ROW_SUMS = SIZE - EXACT_TILE;
    const unsigned warp = thread / 32, lane = thread % 32;
    const unsigned row_thread = lane % ROW_THREADS, group = lane / ROW_THREADS;
    float *own = room + warp * SIZE;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
#pragma unroll
        for (int i = 0; i < ROWS_EACH; i += 4) {
            *(float4 *)(own + (group * CHANNELS + c) * EXACT_TILE + row_of(row_thread, i)) =
                make_float4(sum[i][c], sum[i + 1][c], sum[i + 2][c], sum[i + 3][c]);
            sum[i][c] = sum[i + 1][c] = sum[i + 2][c] = sum[i + 3][c] = 0;
        }
    if (MODE == LINE)
        for (int half = 0; half < 2; half++) {
            own[ROW_SUMS + half * HALF + lane] = row_sum[half];
            row_sum[half] = 0;
        }
    __syncthreads();
#pragma unroll
    for (int i = 0; i <= CHANNELS; i++) {
        const unsigned at = thread + i * PAIR_THREADS;
        const float *from = room + at;
        if (i < CHANNELS || (MODE == LINE && thread < EXACT_TILE))
            totals[at] +=
                (double)(((from[0 * SIZE] + from[1 * SIZE]) + (from[2 * SIZE] + from[3 * SIZE])) +
                         ((from[4 * SIZE] + from[5 * SIZE]) + (from[6 * SIZE] + from[7 * SIZE])));
    }
    __syncthreads();
}

/* Floats of shared memory. */
template <int CHANNELS> static __host__ __device__ size_t stage_floats(int features) {
    return SLICE * (GROUPS * padded<CHANNELS>() + features + 1);
}

template <int CHANNELS> static size_t shared_floats(int features) {
    return features * EXACT_TILE + (WARPS + 2) * (GROUPS * CHANNELS + 1) * EXACT_TILE +
           WARPS * (SLICE * EXACT_TILE + 2 * stage_floats<CHANNELS>(features));
}

/* CHANNELS of each of the GROUPS. */
template <int CHANNELS, pair_mode MODE>
static __global__ __launch_bounds__(PAIR_THREADS,
                                    CHANNELS <= 6 ? 2 : 1) void sum_pairs(pair_task task) {
    constexpr int PADDED = padded<CHANNELS>();
    extern __shared__ float4 shared[];
    const int features = task.metric.features;
    const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const unsigned row_thread = lane % ROW_THREADS, group = lane / ROW_THREADS;
    const unsigned tile = blockIdx.x, part = blockIdx.y;
    const size_t stage_size = stage_floats<CHANNELS>(features);
    float *row_features = (float *)shared, *room = row_features + features * EXACT_TILE;
    constexpr int SIZE = (GROUPS * CHANNELS + 1) * EXACT_TILE;
    double *totals = (double *)(room + WARPS * SIZE);
    float *kernel = room + (WARPS + 2) * SIZE + warp * (SLICE * EXACT_TILE + 2 * stage_size);
    float *stage = kernel + SLICE * EXACT_TILE;

    const uint32_t begin = task.near_begin[tile], count = task.near_begin[tile + 1] - begin;
    const uint32_t first = begin + (uint32_t)((uint64_t)count * part / task.parts);
    const uint32_t last = begin + (uint32_t)((uint64_t)count * (part + 1) / task.parts);
    if (first < last)
        copy_keys<CHANNELS>(task, task.near[first], warp, lane, stage);
    for (int i = thread; i < features * EXACT_TILE; i += PAIR_THREADS)
        row_features[i] = task.features[(size_t)tile * features * EXACT_TILE + i];
    const bool is_hard = MODE == LINE && *task.is_hard;
    float own[ROWS_EACH][CHANNELS] = {}, sum[ROWS_EACH][CHANNELS] = {}, row_sum[2] = {};
    for (int i = thread; i < SIZE; i += PAIR_THREADS)
        totals[i] = 0;
    if (MODE == LINE)
#pragma unroll
        for (int i = 0; i < ROWS_EACH; i++) {
            const float *row =
                task.rows +
                (((size_t)tile * EXACT_TILE + row_of(row_thread, i)) * GROUPS + group) * PADDED;
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                own[i][c] = row[c];
        }
    __syncthreads();

    for (uint32_t at = first; at < last; at++) {
        float *now = stage + ((at - first) & 1) * stage_size;
        if (at + 1 < last) {
            copy_keys<CHANNELS>(task, task.near[at + 1], warp, lane,
                                stage + ((at - first + 1) & 1) * stage_size);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncwarp();
        find_kernel<MODE>(task.metric, row_features, now + SLICE * GROUPS * PADDED, lane, kernel,
                          row_sum);
        __syncwarp();
        if (is_hard)
            add_keys<CHANNELS, MODE, true>(kernel, now, row_thread, group, own, sum);
        else
            add_keys<CHANNELS, MODE, false>(kernel, now, row_thread, group, own, sum);
        __syncwarp();
        if ((at - first) % FLUSH == FLUSH - 1 || at + 1 == last)
            flush<CHANNELS, MODE>(room, totals, thread, sum, row_sum);
    }

    /* The last flush waited for all threads; without one, totals are zero since the first wait. */
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        const double total = totals[i * PAIR_THREADS + thread];
        const double result =
            MODE == LINE ? totals[SIZE - EXACT_TILE + thread % EXACT_TILE] - 2 * total : total;
        task.partials[((size_t)part * task.tiles + tile) * GROUPS * CHANNELS * EXACT_TILE +
                      i * PAIR_THREADS + thread] = (float)result;
    }
}

/* ---- before and after ----------------------------------------------------------------------- */

/* What goes through the pairs: `count` channels from `first` on of rows of floats. */
struct pair_channels {
    const uint32_t *order;
    const double *scale;
    uint32_t variables;
    const float *in;
    float *out;
    size_t first, count, stride;
    double factor; /* of y for the line, else of the result */
    bool accumulate;
    const uint8_t *wanted;
};

/* Is there a y < 0, or one beyond 2^22? */
static __global__ void find_hard(pair_channels c, int *is_hard) {
    bool found = false;
    const size_t numbers = c.variables * c.count, step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < numbers; i += step) {
        const float y =
            (float)(c.factor * (double)c.in[i / c.count * c.stride + c.first + i % c.count]);
        found |= !(y >= 0 && y <= 0x1p22f);
    }
    if (__syncthreads_or(found) && threadIdx.x == 0)
        atomicOr(is_hard, 1);
}

/* One block for a tile. Scales are part of a product's numbers. */
template <int CHANNELS, pair_mode MODE>
static __global__ void pack(pair_channels c, const int *is_hard, float *keys, float *rows) {
    constexpr int PADDED = padded<CHANNELS>(), WIDTH = GROUPS * PADDED;
    const size_t tile = blockIdx.x;
    const bool hard = MODE == LINE && *is_hard;
    for (unsigned i = threadIdx.x; i < EXACT_TILE * WIDTH; i += blockDim.x) {
        const size_t place = tile * EXACT_TILE + i / WIDTH;
        const unsigned group = i % WIDTH / PADDED, k = i % PADDED;
        const unsigned channel = group * CHANNELS + k;
        float key = 0, row = 0;
        if (k < CHANNELS && channel < c.count && place < c.variables) {
            const double value = c.in[c.order[place] * c.stride + c.first + channel];
            if (MODE == PRODUCT) {
                key = (float)(value * c.scale[place]);
            } else {
                /* y / epsilon is rounded to float before anything else (filter/operator.h). */
                key = row = (float)(c.factor * value);
                if (!hard) {
                    row *= 0.5f;
                    key = 0.5f - row;
                }
            }
        }
        keys[tile * EXACT_TILE * WIDTH + i] = key;
        if (MODE == LINE)
            rows[tile * EXACT_TILE * WIDTH + i] = row;
    }
}

/* The sum over the parts, in their order. */
template <int CHANNELS, pair_mode MODE>
static __global__ void unpack(pair_channels c, const float *partials, unsigned tiles,
                              unsigned parts) {
    constexpr int WIDTH = GROUPS * CHANNELS;
    __shared__ double sums[EXACT_TILE * (WIDTH + 1)];
    const size_t tile = blockIdx.x;
    for (unsigned i = threadIdx.x; i < WIDTH * EXACT_TILE; i += blockDim.x) {
        double sum = 0;
        for (unsigned part = 0; part < parts; part++)
            sum += (double)partials[(part * (size_t)tiles + tile) * WIDTH * EXACT_TILE + i];
        sums[i % EXACT_TILE * (WIDTH + 1) + i / EXACT_TILE] = sum;
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < c.count * EXACT_TILE; i += blockDim.x) {
        const size_t place = tile * EXACT_TILE + i / c.count;
        const unsigned channel = i % c.count;
        if (place >= c.variables)
            break;
        const uint32_t variable = c.order[place];
        if (c.wanted && !c.wanted[variable])
            continue;
        float *out = c.out + variable * c.stride + c.first + channel;
        double value = sums[i / c.count * (WIDTH + 1) + channel] * c.scale[place];
        if (MODE == PRODUCT)
            value *= c.factor;
        *out = (float)(c.accumulate ? (double)*out + value : value);
    }
}

template <int CHANNELS, pair_mode MODE>
static dcrf_status run(struct exact_operator *op, const struct pair_channels *c,
                       dcrf_error *error) {
    const cudaStream_t stream = op->base.device->stream;
    const size_t bytes = shared_floats<CHANNELS>(op->metric.features) * sizeof(float);
    const dcrf_status status =
        check(cudaFuncSetAttribute(sum_pairs<CHANNELS, MODE>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
              "an exact operator", error);
    if (status < 0)
        return status;
    const struct pair_task task = {
        op->metric,       op->tiles,      op->parts,   op->features_single,
        op->scale_single, op->near_begin, op->near,    op->keys,
        op->rows,         op->flag,       op->partials};
    pack<CHANNELS, MODE><<<op->tiles, PAIR_THREADS, 0, stream>>>(*c, op->flag, op->keys, op->rows);
    sum_pairs<CHANNELS, MODE><<<dim3(op->tiles, op->parts), PAIR_THREADS, bytes, stream>>>(task);
    unpack<CHANNELS, MODE>
        <<<op->tiles, PAIR_THREADS, 0, stream>>>(*c, op->partials, op->tiles, op->parts);
    return check(cudaGetLastError(), "an exact operator", error);
}

/* In blocks of channels, each with the narrowest loop that holds it. */
template <pair_mode MODE>
static dcrf_status run_channels(struct exact_operator *op, struct pair_channels *c, size_t channels,
                                dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    for (; c->first < channels && status == DCRF_OK; c->first += c->count) {
        const size_t left = channels - c->first;
        c->count = left < EXACT_CHANNELS ? left : EXACT_CHANNELS;
        if (c->count <= 1 * GROUPS)
            status = run<1, MODE>(op, c, error);
        else if (c->count <= 2 * GROUPS)
            status = run<2, MODE>(op, c, error);
        else if (c->count <= 4 * GROUPS)
            status = run<4, MODE>(op, c, error);
        else if (c->count <= 6 * GROUPS)
            status = run<6, MODE>(op, c, error);
        else
            status = run<8, MODE>(op, c, error);
    }
    return status;
}

static struct pair_channels channels_of(const struct exact_operator *op, const float *in,
                                        float *out, size_t stride) {
    struct pair_channels c = {};
    c.order = op->order;
    c.scale = op->scale;
    c.variables = (uint32_t)op->base.base.variables;
    c.in = in;
    c.out = out;
    c.stride = stride;
    return c;
}

dcrf_status exact_apply(struct exact_operator *op, const struct dcrf_application *application,
                        dcrf_error *error) {
    struct pair_channels c =
        channels_of(op, application->in, application->out, application->stride);
    c.factor = (double)application->factor;
    c.accumulate = application->accumulate;
    return run_channels<PRODUCT>(op, &c, application->channels, error);
}

dcrf_status exact_line(struct exact_operator *op, const struct dcrf_line *line, dcrf_error *error) {
    const cudaStream_t stream = op->base.device->stream;
    struct pair_channels c = channels_of(op, line->y, line->out, line->stride);
    c.factor = exact_line_factor(line->epsilon);
    c.wanted = line->wanted;
    c.count = line->channels;
    const dcrf_status status =
        check(cudaMemsetAsync(op->flag, 0, sizeof *op->flag, stream), "an exact operator", error);
    if (status < 0)
        return status;
    find_hard<<<4 * op->base.device->multiprocessors, PAIR_THREADS, 0, stream>>>(c, op->flag);
    return run_channels<LINE>(op, &c, line->channels, error);
}
