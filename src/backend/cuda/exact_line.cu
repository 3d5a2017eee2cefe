/* The clipped line in float.
 *
 * A block of WARPS warps works on the ROWS = EXACT_TILE rows of one tile and a part of the tiles
 * that count for it. Each warp takes its own SLICE keys of every such tile: it copies them to
 * shared memory while it works on those of the previous tile, computes the SLICE x ROWS kernel
 * values, and accumulates, without waiting for other warps. A thread has 8 rows and a quarter of
 * the channels, so that values from shared memory are reused: per key, 8 kernel values and CHANNELS
 * values of the key update 8 CHANNELS sums.
 *
 * Every FLUSH tiles the warps' sums are written to shared memory, added pairwise, and accumulated
 * in double: a sum has FLUSH SLICE + log2(WARPS) = ADDITIONS additions in float.
 *
 * The clipped line F = clip(y_b - y_a) to [-1, 1] is 1 - 2 S with S = (1 - y_b + y_a) / 2,
 * saturated to [0, 1], which is free on the device: given y / 2 and 1/2 - y / 2 it is one addition.
 * So each pair and channel costs an addition and a multiply-add, and
 *
 *   sum_b K_ab F(a, b) = sum_b K_ab - 2 sum_b K_ab S(a, b).
 *
 * The first sum, of the same kernel values, is computed once (S = 1), before the first line. If y
 * >= 0, 1/2 - y / 2 is rounded by at most 2^-26 (not at all if y / 2 >= 1/4: the last place of the
 * result is no coarser), and S by 2^-25 more. If some y is negative or above 2^22, the difference
 * is computed first: one rounding of it and one of S, and one more instruction. Either way the
 * error of F is at most 1.5 * 2^-24.
 *
 * Kernel values are computed as in dsp/pairs.h, with the device's exp2; squared distances of
 * integers come from tensor cores, with the same result (exact_digits.cu). */
#include "backend/cuda/exact.cuh"
#include "backend/cuda/exact_tensor.cuh"

#define WARPS 8
#define PAIR_THREADS (32 * WARPS)
#define SLICE (EXACT_TILE / WARPS)
#define FLUSH 2
#define HALF (EXACT_TILE / 2)
#define SIXTEENS (EXACT_TILE / 16)
/* A thread's share: the rows 4 r .. 4 r + 3 of each half, and one of the groups of channels. */
#define ROW_THREADS 8
#define ROWS_EACH 8
#define GROUPS 4
/* Floats between two keys' kernel values, padded so that stores of tensor-core results hit
 * different banks. */
#define KERNEL_STEP (EXACT_TILE + 4)
static_assert(WARPS == 8, "three sums in pairs add up the warps'");
static_assert(SLICE == 8, "a slice is the columns of a product");
static_assert(ROW_THREADS * GROUPS == 32 && 2 * HALF == EXACT_TILE, "all lanes have work");

/* Two roundings per kernel value: of the key's scale and of the product with it. Then a sum and
 * twice a sum that is not larger, each with its additions and the rounding of its parts; 1 - 2 S;
 * and the result. */
#define ADDITIONS (FLUSH * SLICE + 3)
double exact_line_roundings(void) {
    return 2 + 3 * (ADDITIONS + 1) + 2 + 1;
}

struct pair_task {
    struct exact_metric metric;
    float digit_weight[EXACT_DIGIT_GROUPS];
    int digit_groups;
    unsigned tiles, parts;
    const float *features, *scale;
    const uint32_t *row_digits, *key_digits;
    const uint32_t *near_begin, *near;
    const float *keys, *rows; /* places x GROUPS x (channels of a group, padded) */
    const int *is_hard;       /* the difference must be computed first */
    float *partials;          /* parts x tiles x channels x EXACT_TILE */
};

/* Channels of a group in memory, padded to vectors of four. */
template <int CHANNELS> static __host__ __device__ constexpr int padded() {
    return (CHANNELS + 3) / 4 * 4;
}

/* The number of floats, or words of digits, of a tile's rows and of the 16 or SLICE keys that a
 * warp copies. */
static __host__ __device__ inline int row_floats(const struct exact_metric &metric, int groups) {
    return groups > 0 ? groups * SIXTEENS * 64 : metric.features * EXACT_TILE;
}

static __host__ __device__ inline int key_floats(const struct exact_metric &metric, int groups) {
    return groups > 0 ? groups * 64 : metric.features * SLICE;
}

/* Start copying a warp's keys of a tile: their channels, scales, and features or digits. */
template <int CHANNELS>
static __device__ void copy_keys(const pair_task &task, unsigned tile, unsigned warp, unsigned lane,
                                 float *stage) {
    constexpr unsigned WIDTH = GROUPS * padded<CHANNELS>();
    const float *keys = task.keys + ((size_t)tile * EXACT_TILE + warp * SLICE) * WIDTH;
    for (unsigned i = lane; i < SLICE * WIDTH / 4; i += 32)
        copy_later(stage + 4 * i, keys + 4 * i);
    stage += SLICE * WIDTH;
    if (lane < SLICE / 4)
        copy_later(stage + 4 * lane,
                   task.scale + (size_t)tile * EXACT_TILE + warp * SLICE + 4 * lane);
    stage += SLICE;
    if (task.digit_groups > 0) {
        const uint32_t *from =
            task.key_digits + exact_key_digits(task.digit_groups, tile, warp / 2);
        if (lane < (unsigned)task.digit_groups * 16)
            copy_later(stage + 4 * lane, from + 4 * lane);
    } else {
        const unsigned features = (unsigned)task.metric.features;
        const float *at = task.features + (size_t)tile * features * EXACT_TILE + warp * SLICE;
        for (unsigned i = lane; i < features * (SLICE / 4); i += 32) {
            const unsigned f = i / (SLICE / 4), k = i % (SLICE / 4) * 4;
            copy_later(stage + f * SLICE + k, at + f * EXACT_TILE + k);
        }
    }
    end_copies();
}

/* kernel[key * KERNEL_STEP + row] for the keys of a slice, by differences; times their scales. */
static __device__ void find_kernel(const exact_metric &metric, const float *row_features,
                                   const float *scale, const float *key_features, unsigned lane,
                                   float *kernel) {
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
        for (int k = 0; k < SLICE; k++)
            kernel[k * KERNEL_STEP + row] = power(exponent[k]) * scale[k];
    }
}

/* By digits; `second`: the slice is the second half of 16 keys. */
static __device__ void find_kernel(const pair_task &task, const uint32_t *row_digits,
                                   const float *scale, const uint32_t *key_digits, unsigned second,
                                   unsigned lane, float *kernel) {
    const unsigned g = lane / 4, t = lane % 4;
    const float2 own_scale = ((const float2 *)scale)[t];
    const bool has_two = task.digit_groups == 2;
    const uint32_t *const own_key = key_digits + 2 * task.digit_groups * lane + second;
    const uint32_t key[2] = {own_key[0], has_two ? own_key[2] : 0};
#pragma unroll
    for (int m = 0; m < SIXTEENS; m++) {
        float squared[4], exponent[4];
        multiply_8(squared, ((const uint2 *)row_digits)[m * 32 + lane], key[0]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            exponent[i] = -task.digit_weight[0] * squared[i];
        if (has_two) {
            multiply_8(squared, ((const uint2 *)row_digits)[(SIXTEENS + m) * 32 + lane], key[1]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                exponent[i] = fmaf(-task.digit_weight[1], squared[i], exponent[i]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            kernel[(2 * t + i % 2) * KERNEL_STEP + 16 * m + g + i / 2 * 8] =
                power(exponent[i]) * (i % 2 ? own_scale.y : own_scale.x);
    }
}

/* Add the keys of a slice to the sums of a thread's rows and channels. */
template <int CHANNELS, bool IS_HARD>
static __device__ void add_keys(const float *kernel, const float *keys, unsigned row_thread,
                                unsigned group, const float (&own)[ROWS_EACH][CHANNELS],
                                float (&sum)[ROWS_EACH][CHANNELS]) {
    constexpr int PADDED = padded<CHANNELS>();
#pragma unroll 2
    for (int k = 0; k < SLICE; k++) {
        float value[ROWS_EACH], key[PADDED];
        *(float4 *)value = *(const float4 *)(kernel + k * KERNEL_STEP + 4 * row_thread);
        *(float4 *)(value + 4) =
            *(const float4 *)(kernel + k * KERNEL_STEP + HALF + 4 * row_thread);
#pragma unroll
        for (int c = 0; c < PADDED; c += 4)
            *(float4 *)(key + c) = *(const float4 *)(keys + (k * GROUPS + group) * PADDED + c);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
#pragma unroll
            for (int i = 0; i < ROWS_EACH; i++) {
                const float factor = IS_HARD ? __saturatef(fmaf(own[i][c] - key[c], 0.5f, 0.5f))
                                             : __saturatef(key[c] + own[i][c]);
                sum[i][c] = fmaf(value[i], factor, sum[i][c]);
            }
    }
}

/* Row i of a thread, which has four rows of each half. */
static __device__ unsigned row_of(unsigned row_thread, int i) {
    return (i / 4) * HALF + 4 * row_thread + i % 4;
}

/* Floats per warp: shared by its kernel values and its sums, which are never needed at the same
 * time. */
template <int CHANNELS> static __host__ __device__ constexpr int room_floats() {
    constexpr int SUMS = GROUPS * CHANNELS * EXACT_TILE, KERNEL = SLICE * KERNEL_STEP;
    return SUMS > KERNEL ? SUMS : KERNEL;
}

/* Add the warps' sums to the totals in double. A thread owns row thread % 64 of the channels thread
 * / 64 + 4 i. */
template <int CHANNELS>
static __device__ void flush(float *room, double *totals, unsigned thread,
                             float (&sum)[ROWS_EACH][CHANNELS]) {
    constexpr int ROOM = room_floats<CHANNELS>();
    const unsigned warp = thread / 32, lane = thread % 32;
    const unsigned row_thread = lane % ROW_THREADS, group = lane / ROW_THREADS;
    float *own = room + warp * ROOM;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
#pragma unroll
        for (int i = 0; i < ROWS_EACH; i += 4) {
            *(float4 *)(own + (group * CHANNELS + c) * EXACT_TILE + row_of(row_thread, i)) =
                make_float4(sum[i][c], sum[i + 1][c], sum[i + 2][c], sum[i + 3][c]);
            sum[i][c] = sum[i + 1][c] = sum[i + 2][c] = sum[i + 3][c] = 0;
        }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        const unsigned at = thread + i * PAIR_THREADS;
        const float *from = room + at;
        totals[at] +=
            (double)(((from[0 * ROOM] + from[1 * ROOM]) + (from[2 * ROOM] + from[3 * ROOM])) +
                     ((from[4 * ROOM] + from[5 * ROOM]) + (from[6 * ROOM] + from[7 * ROOM])));
    }
    __syncthreads();
}

/* Sizes in shared memory, in floats. */
template <int CHANNELS>
static __host__ __device__ size_t stage_floats(const struct exact_metric &metric, int groups) {
    return SLICE * (GROUPS * padded<CHANNELS>() + 1) + key_floats(metric, groups);
}

template <int CHANNELS> static size_t shared_floats(const struct exact_metric &metric, int groups) {
    return row_floats(metric, groups) + 2 * GROUPS * CHANNELS * EXACT_TILE +
           WARPS * (room_floats<CHANNELS>() + 2 * stage_floats<CHANNELS>(metric, groups));
}

/* CHANNELS channels in each of the GROUPS. */
template <int CHANNELS, bool HAS_DIGITS>
static __global__ __launch_bounds__(PAIR_THREADS,
                                    CHANNELS <= 6 ? 2 : 1) void sum_pairs(pair_task task) {
    constexpr int PADDED = padded<CHANNELS>(), SIZE = GROUPS * CHANNELS * EXACT_TILE;
    extern __shared__ float4 shared[];
    const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const unsigned row_thread = lane % ROW_THREADS, group = lane / ROW_THREADS;
    const unsigned tile = blockIdx.x, part = blockIdx.y;
    const int own_floats = row_floats(task.metric, task.digit_groups);
    const size_t stage_size = stage_floats<CHANNELS>(task.metric, task.digit_groups);
    float *own_features = (float *)shared, *room = own_features + own_floats;
    float *kernel = room + warp * room_floats<CHANNELS>();
    double *totals = (double *)(room + WARPS * room_floats<CHANNELS>());
    float *stage = (float *)(totals + SIZE) + warp * 2 * stage_size;

    const uint32_t begin = task.near_begin[tile], count = task.near_begin[tile + 1] - begin;
    const uint32_t first = begin + (uint32_t)((uint64_t)count * part / task.parts);
    const uint32_t last = begin + (uint32_t)((uint64_t)count * (part + 1) / task.parts);
    if (first < last)
        copy_keys<CHANNELS>(task, task.near[first], warp, lane, stage);
    const float *from = task.digit_groups > 0 ? (const float *)task.row_digits : task.features;
    for (int i = thread; i < own_floats; i += PAIR_THREADS)
        own_features[i] = from[(size_t)tile * own_floats + i];
    const bool is_hard = *task.is_hard;
    float own[ROWS_EACH][CHANNELS], sum[ROWS_EACH][CHANNELS] = {};
    for (int i = thread; i < SIZE; i += PAIR_THREADS)
        totals[i] = 0;
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
            wait_for_copies<1>();
        } else {
            wait_for_copies<0>();
        }
        __syncwarp();
        const float *scale = now + SLICE * GROUPS * PADDED;
        if (HAS_DIGITS)
            find_kernel(task, (const uint32_t *)own_features, scale,
                        (const uint32_t *)(scale + SLICE), warp % 2, lane, kernel);
        else
            find_kernel(task.metric, own_features, scale, scale + SLICE, lane, kernel);
        __syncwarp();
        if (is_hard)
            add_keys<CHANNELS, true>(kernel, now, row_thread, group, own, sum);
        else
            add_keys<CHANNELS, false>(kernel, now, row_thread, group, own, sum);
        __syncwarp();
        if ((at - first) % FLUSH == FLUSH - 1 || at + 1 == last)
            flush<CHANNELS>(room, totals, thread, sum);
    }

    /* The last flush synchronized all threads; if there was none, the totals are still zero. */
#pragma unroll
    for (int i = 0; i < CHANNELS; i++)
        task.partials[((size_t)part * task.tiles + tile) * SIZE + i * PAIR_THREADS + thread] =
            (float)totals[i * PAIR_THREADS + thread];
}

/* ---- before and after ----------------------------------------------------------------------- */

/* The channels to process: `count` of them from `first` on, in rows of floats; or S = 1 if `y` is
 * NULL. */
struct line_channels {
    const uint32_t *order;
    const double *scale, *sums;
    uint32_t variables;
    const float *y;
    float *out;
    size_t first, count, stride;
    double factor; /* of y */
    const uint8_t *wanted;
};

/* Whether any scaled y is negative or above 2^22. */
static __global__ void find_hard(line_channels c, int *is_hard) {
    bool found = false;
    const size_t numbers = c.variables * c.count, step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < numbers; i += step) {
        const float y =
            (float)(c.factor * (double)c.y[i / c.count * c.stride + c.first + i % c.count]);
        found |= !(y >= 0 && y <= 0x1p22f);
    }
    if (__syncthreads_or(found) && threadIdx.x == 0)
        atomicOr(is_hard, 1);
}

/* One block per tile. */
template <int CHANNELS>
static __global__ void pack(line_channels c, const int *is_hard, float *keys, float *rows) {
    constexpr int PADDED = padded<CHANNELS>(), WIDTH = GROUPS * PADDED;
    const size_t tile = blockIdx.x;
    for (unsigned i = threadIdx.x; i < EXACT_TILE * WIDTH; i += blockDim.x) {
        const size_t place = tile * EXACT_TILE + i / WIDTH;
        const unsigned group = i % WIDTH / PADDED, k = i % PADDED;
        const unsigned channel = group * CHANNELS + k;
        float key = c.y ? 0 : 1, row = 0;
        if (c.y && k < CHANNELS && channel < c.count && place < c.variables) {
            /* y / epsilon is rounded to float before anything else (filter/operator.h). */
            key = row =
                (float)(c.factor * (double)c.y[c.order[place] * c.stride + c.first + channel]);
            if (!*is_hard) {
                row *= 0.5f;
                key = 0.5f - row;
            }
        }
        keys[tile * EXACT_TILE * WIDTH + i] = key;
        rows[tile * EXACT_TILE * WIDTH + i] = row;
    }
}

/* The sum over the parts, in order. */
template <int CHANNELS>
static __global__ void unpack(line_channels c, const float *partials, unsigned tiles,
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
        if (!c.wanted || c.wanted[variable])
            c.out[variable * c.stride + c.first + channel] =
                (float)((c.sums[place] - 2 * sums[i / c.count * (WIDTH + 1) + channel]) *
                        c.scale[place]);
    }
}

/* The sums of the first channel, per place. */
static __global__ void add_parts(const float *partials, unsigned tiles, unsigned parts,
                                 double *sums) {
    const size_t place = this_thread(), tile = place / EXACT_TILE;
    if (tile >= tiles)
        return;
    double sum = 0;
    for (unsigned part = 0; part < parts; part++)
        sum += (double)
            partials[(part * (size_t)tiles + tile) * GROUPS * EXACT_TILE + place % EXACT_TILE];
    sums[place] = sum;
}

template <int CHANNELS, bool HAS_DIGITS>
static dcrf_status run_pairs(struct exact_operator *op, const struct line_channels *c,
                             dcrf_error *error) {
    const cudaStream_t stream = op->base.device->stream;
    const size_t bytes = shared_floats<CHANNELS>(op->metric, op->digit_groups) * sizeof(float);
    TRY(check(cudaFuncSetAttribute(sum_pairs<CHANNELS, HAS_DIGITS>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
              "an exact operator", error));
    const struct pair_task task = {op->metric,       {op->digit_weight[0], op->digit_weight[1]},
                                   op->digit_groups, op->tiles,
                                   op->parts,        op->features_single,
                                   op->scale_single, op->row_digits,
                                   op->key_digits,   op->near_begin,
                                   op->near,         op->keys,
                                   op->rows,         op->flag,
                                   op->partials};
    pack<CHANNELS><<<op->tiles, PAIR_THREADS, 0, stream>>>(*c, op->flag, op->keys, op->rows);
    sum_pairs<CHANNELS, HAS_DIGITS>
        <<<dim3(op->tiles, op->parts), PAIR_THREADS, bytes, stream>>>(task);
    if (c->y)
        unpack<CHANNELS>
            <<<op->tiles, PAIR_THREADS, 0, stream>>>(*c, op->partials, op->tiles, op->parts);
    return check(cudaGetLastError(), "an exact operator", error);
}

template <int CHANNELS>
static dcrf_status run(struct exact_operator *op, const struct line_channels *c,
                       dcrf_error *error) {
    return op->digit_groups > 0 ? run_pairs<CHANNELS, true>(op, c, error)
                                : run_pairs<CHANNELS, false>(op, c, error);
}

/* In blocks of channels, each with the narrowest variant that holds it. */
static dcrf_status run_channels(struct exact_operator *op, struct line_channels *c, size_t channels,
                                dcrf_error *error) {
    for (; c->first < channels; c->first += c->count) {
        const size_t left = channels - c->first;
        c->count = left < EXACT_CHANNELS ? left : EXACT_CHANNELS;
        if (c->count <= 1 * GROUPS)
            TRY(run<1>(op, c, error));
        else if (c->count <= 2 * GROUPS)
            TRY(run<2>(op, c, error));
        else if (c->count <= 4 * GROUPS)
            TRY(run<4>(op, c, error));
        else if (c->count <= 6 * GROUPS)
            TRY(run<6>(op, c, error));
        else
            TRY(run<8>(op, c, error));
    }
    return DCRF_OK;
}

static dcrf_status clear_flag(struct exact_operator *op, dcrf_error *error) {
    return check(cudaMemsetAsync(op->flag, 0, sizeof *op->flag, op->base.device->stream),
                 "an exact operator", error);
}

dcrf_status exact_fill_line_sums(struct exact_operator *op, dcrf_error *error) {
    struct line_channels c = {};
    TRY(clear_flag(op, error));
    TRY(run<1>(op, &c, error));
    add_parts<<<blocks_for(exact_places(op)), THREADS, 0, op->base.device->stream>>>(
        op->partials, op->tiles, op->parts, op->line_sums);
    op->has_line_sums = true;
    return check(cudaGetLastError(), "an exact operator", error);
}

dcrf_status exact_line(struct exact_operator *op, const struct dcrf_line *line, dcrf_error *error) {
    struct line_channels c = {};
    c.order = op->order;
    c.scale = op->scale;
    c.sums = op->line_sums;
    c.variables = (uint32_t)op->base.base.variables;
    c.y = line->y;
    c.out = line->out;
    c.stride = line->stride;
    c.factor = exact_line_factor(line->epsilon);
    c.wanted = line->wanted;
    c.count = line->channels;
    if (!op->has_line_sums)
        TRY(exact_fill_line_sums(op, error));
    TRY(clear_flag(op, error));
    find_hard<<<4 * op->base.device->multiprocessors, PAIR_THREADS, 0, op->base.device->stream>>>(
        c, op->flag);
    return run_channels(op, &c, line->channels, error);
}
