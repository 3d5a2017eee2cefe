/* The order of the variables: an implicit k-d tree, as in filter/exact/exact_order.c, built level
 * by level. Every piece of a level is cut at the median of its widest feature into two halves of
 * whole tiles; one stable sort by (piece, feature) does this for all pieces. The positions of the
 * cuts do not depend on the features, so the host knows them in advance. */
#include "backend/cuda/exact.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <math.h>
#include <string.h>
#include <vector>

static unsigned blocks_for(size_t count, unsigned threads) {
    return (unsigned)((count + threads - 1) / threads);
}

/* ---- the tree ------------------------------------------------------------------------------- */

static __global__ void fill_numbers(uint32_t *order, uint32_t variables, uint32_t places) {
    const uint32_t place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < places)
        order[place] = place < variables ? place : variables - 1;
}

/* Places beyond the end repeat the last variable. */
static __global__ void repeat_last(uint32_t *order, uint32_t variables, uint32_t places) {
    const uint32_t place = variables + threadIdx.x;
    if (place < places)
        order[place] = order[variables - 1];
}

/* low, high of feature f of a tile at bounds[(tile * dimension + f) * 2]; one warp per tile. */
static __global__ void bound_tiles(const float *rows, const uint32_t *order, uint32_t variables,
                                   unsigned tiles, int dimension, float *bounds) {
    const unsigned tile = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (tile >= tiles)
        return;
    for (int f = 0; f < dimension; f++) {
        float low = INFINITY, high = -INFINITY;
        for (unsigned k = lane; k < EXACT_TILE; k += 32) {
            const uint32_t place = tile * EXACT_TILE + k;
            if (place >= variables)
                break;
            const float value = rows[(size_t)order[place] * dimension + f];
            low = fminf(low, value);
            high = fmaxf(high, value);
        }
        for (int step = 16; step > 0; step /= 2) {
            low = fminf(low, __shfl_xor_sync(~0u, low, step));
            high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
        }
        if (lane == 0) {
            bounds[((size_t)tile * dimension + f) * 2] = low;
            bounds[((size_t)tile * dimension + f) * 2 + 1] = high;
        }
    }
}

/* The widest feature of each piece; ties go to the first. One warp per piece. */
static __global__ void find_widest(const float *bounds, const uint32_t *begin, unsigned pieces,
                                   int dimension, int *widest) {
    const unsigned piece = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (piece >= pieces)
        return;
    int found = 0;
    float width = -1;
    for (int f = 0; f < dimension; f++) {
        float low = INFINITY, high = -INFINITY;
        for (uint32_t tile = begin[piece] + lane; tile < begin[piece + 1]; tile += 32) {
            low = fminf(low, bounds[((size_t)tile * dimension + f) * 2]);
            high = fmaxf(high, bounds[((size_t)tile * dimension + f) * 2 + 1]);
        }
        for (int step = 16; step > 0; step /= 2) {
            low = fminf(low, __shfl_xor_sync(~0u, low, step));
            high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
        }
        if (high - low > width) {
            width = high - low;
            found = f;
        }
    }
    if (lane == 0)
        widest[piece] = found;
}

/* The piece, then the feature's bits, mapped so that they compare like the floats. */
static __global__ void fill_sort_keys(const float *rows, const uint32_t *order,
                                      const uint32_t *piece_of, const int *widest,
                                      uint32_t variables, int dimension, uint64_t *sort_keys) {
    const uint32_t place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= variables)
        return;
    const uint32_t piece = piece_of[place / EXACT_TILE];
    const uint32_t bits =
        __float_as_uint(rows[(size_t)order[place] * dimension + widest[piece]] + 0.0f);
    const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    sort_keys[place] = (uint64_t)piece << 32 | ascending;
}

/* One level: the first tile of each piece, and the piece of each tile. */
struct level {
    std::vector<uint32_t> begin, piece_of;
};

/* All levels in which a piece is cut, with the cuts of filter/exact/exact_order.c. */
static std::vector<level> plan_levels(uint32_t tiles) {
    std::vector<level> levels;
    std::vector<uint32_t> begin = {0, tiles};
    for (;;) {
        level now = {begin, std::vector<uint32_t>(tiles)};
        std::vector<uint32_t> next;
        for (size_t piece = 0; piece + 1 < begin.size(); piece++) {
            const uint32_t count = begin[piece + 1] - begin[piece];
            for (uint32_t tile = begin[piece]; tile < begin[piece + 1]; tile++)
                now.piece_of[tile] = (uint32_t)piece;
            next.push_back(begin[piece]);
            if (count > 1)
                next.push_back(begin[piece] + (count + 1) / 2);
        }
        next.push_back(tiles);
        if (next.size() == begin.size())
            return levels;
        levels.push_back(now);
        begin = next;
    }
}

struct sorting {
    float *rows, *bounds;
    uint64_t *sort_keys, *sorted_keys;
    uint32_t *sorted, *begin, *piece_of;
    int *widest;
    void *room;
    size_t room_bytes;
};

static dcrf_status sort_level(struct exact_operator *op, const struct sorting *s,
                              const level *level, dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    const cudaStream_t stream = device->stream;
    const uint32_t n = (uint32_t)op->base.base.variables;
    const unsigned pieces = (unsigned)level->begin.size() - 1;
    const int dimension = op->metric.features;
    TRY(device_upload(device, s->begin, level->begin.data(), level->begin.size() * sizeof(uint32_t),
                      error));
    TRY(device_upload(device, s->piece_of, level->piece_of.data(),
                      level->piece_of.size() * sizeof(uint32_t), error));
    bound_tiles<<<blocks_for((size_t)op->tiles * 32, THREADS), THREADS, 0, stream>>>(
        s->rows, op->order, n, op->tiles, dimension, s->bounds);
    find_widest<<<blocks_for((size_t)pieces * 32, THREADS), THREADS, 0, stream>>>(
        s->bounds, s->begin, pieces, dimension, s->widest);
    fill_sort_keys<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(
        s->rows, op->order, s->piece_of, s->widest, n, dimension, s->sort_keys);
    int bits = 32;
    while (bits < 64 && (uint64_t)(pieces - 1) >> (bits - 32) != 0)
        bits++;
    size_t room_bytes = s->room_bytes;
    TRY(check(cub::DeviceRadixSort::SortPairs(s->room, room_bytes, s->sort_keys, s->sorted_keys,
                                              op->order, s->sorted, (int)n, 0, bits, stream),
              "sorting variables", error));
    return check(cudaMemcpyAsync(op->order, s->sorted, n * sizeof(uint32_t),
                                 cudaMemcpyDeviceToDevice, stream),
                 "sorting variables", error);
}

static dcrf_status take_memory(struct exact_operator *op, struct sorting *s, dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    const char *const what = "the order of variables";
    const size_t n = op->base.base.variables, tiles = op->tiles;
    TRY(check(cub::DeviceRadixSort::SortPairs(nullptr, s->room_bytes, s->sort_keys, s->sorted_keys,
                                              op->order, s->sorted, (int)n, 0, 64, device->stream),
              what, error));
    TRY(device_take(device, &s->room, s->room_bytes, 1, what, error));
    TRY(device_array(device, &s->bounds, tiles * op->metric.features * 2, what, error));
    TRY(device_array(device, &s->sort_keys, n, what, error));
    TRY(device_array(device, &s->sorted_keys, n, what, error));
    TRY(device_array(device, &s->sorted, n, what, error));
    TRY(device_array(device, &s->begin, tiles + 1, what, error));
    TRY(device_array(device, &s->piece_of, tiles, what, error));
    return device_array(device, &s->widest, tiles, what, error);
}

dcrf_status exact_order(struct exact_operator *op, const struct dcrf_features *features,
                        dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    struct sorting s = {};
    dcrf_status status = features_upload(device, features, 0, &s.rows, error);
    if (status == DCRF_OK)
        status = take_memory(op, &s, error);
    if (status == DCRF_OK) {
        const uint32_t places = (uint32_t)exact_places(op);
        fill_numbers<<<blocks_for(places, THREADS), THREADS, 0, device->stream>>>(
            op->order, (uint32_t)op->base.base.variables, places);
        for (const level &level : plan_levels(op->tiles))
            if (status == DCRF_OK)
                status = sort_level(op, &s, &level, error);
    }
    if (status == DCRF_OK) {
        repeat_last<<<1, EXACT_TILE, 0, device->stream>>>(
            op->order, (uint32_t)op->base.base.variables, (uint32_t)exact_places(op));
        status = check(cudaGetLastError(), "sorting variables", error);
    }
    for (void *memory :
         {(void *)s.rows, (void *)s.bounds, (void *)s.sort_keys, (void *)s.sorted_keys,
          (void *)s.sorted, (void *)s.begin, (void *)s.piece_of, (void *)s.widest, s.room})
        device_release(device, memory);
    return status;
}

/* ---- features ------------------------------------------------------------------------------- */

struct source {
    uint32_t variables;
    int axes, channels, dimension;
    uint32_t size[DCRF_MAX_AXES];
    struct exact_arrangement arrangement;
    const float *channel; /* or: */
    const double *channel_in_double;
};

/* Feature i of a variable, as given by the caller. */
static __device__ double value_of(const source &from, uint32_t variable, int i) {
    if (i >= from.axes) {
        const size_t at = (size_t)variable * from.channels + i - from.axes;
        return from.channel ? from.channel[at] : from.channel_in_double[at];
    }
    uint32_t rest = variable;
    for (int axis = 0; axis < i; axis++)
        rest /= from.size[axis];
    return rest % from.size[i];
}

/* Maxima, as the bits of nonnegative doubles. */
struct seen {
    unsigned long long rounded[DCRF_MAX_FEATURES], largest[DCRF_MAX_FEATURES];
    int fractions; /* nonzero: some feature is not an integer */
};

static __device__ double warp_largest(double value) {
    for (int step = 16; step > 0; step /= 2)
        value = fmax(value, __shfl_xor_sync(~0u, value, step));
    return value;
}

static __device__ double warp_smallest(double value) {
    return -warp_largest(-value);
}

/* One warp per tile and feature. */
static __global__ void fill_planes(source from, const uint32_t *order, unsigned tiles,
                                   double *features, float *features_single, double *box,
                                   seen *all) {
    const unsigned index = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (index >= tiles * from.dimension)
        return;
    const unsigned tile = index / from.dimension, k = index % from.dimension;
    double rounded = 0, largest = 0, low = INFINITY, high = -INFINITY;
    bool has_fractions = false;
    for (unsigned i = lane; i < EXACT_TILE; i += 32) {
        const double raw =
            value_of(from, order[tile * EXACT_TILE + i], from.arrangement.feature[k]);
        const double value = raw * from.arrangement.unit[k];
        features[(size_t)index * EXACT_TILE + i] = value;
        features_single[(size_t)index * EXACT_TILE + i] = (float)value;
        rounded = fmax(rounded, fabs(value - (double)(float)value));
        largest = fmax(largest, fabs(raw));
        has_fractions |= raw != floor(raw);
        low = fmin(low, value);
        high = fmax(high, value);
    }
    rounded = warp_largest(rounded);
    largest = warp_largest(largest);
    low = warp_smallest(low);
    high = warp_largest(high);
    has_fractions = __any_sync(~0u, has_fractions);
    if (lane != 0)
        return;
    box[2 * k * (size_t)tiles + tile] = low * from.arrangement.root[k];
    box[(2 * k + 1) * (size_t)tiles + tile] = high * from.arrangement.root[k];
    atomicMax(&all->rounded[k], (unsigned long long)__double_as_longlong(rounded));
    atomicMax(&all->largest[k], (unsigned long long)__double_as_longlong(largest));
    if (has_fractions)
        atomicOr(&all->fractions, 1);
}

static double from_bits(unsigned long long bits) {
    double value;
    static_assert(sizeof value == sizeof bits, "doubles have 64 bits");
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* As in filter/exact/exact.c. */
static void read_seen(struct exact_operator *op, const struct exact_arrangement *arrangement,
                      const struct seen *all) {
    double squared = 0, reach = 0;
    for (int k = 0; k < op->metric.features; k++) {
        const double rounded = from_bits(all->rounded[k]), largest = from_bits(all->largest[k]);
        squared += rounded * rounded * arrangement->root[k] * arrangement->root[k] * 2 * log(2.0);
        reach += 4 * largest * largest;
    }
    op->rounded_features = sqrt(squared);
    op->has_exact_squares = !all->fractions && reach <= 0x1p24;
}

dcrf_status exact_fill_features(struct exact_operator *op, const struct dcrf_features *features,
                                const struct exact_arrangement *arrangement, dcrf_error *error) {
    dcrf_backend_device *device = op->base.device;
    const size_t numbers = features->variables * features->channels;
    struct source from = {(uint32_t)features->variables,
                          (int)features->axes,
                          (int)features->channels,
                          (int)features->dimension,
                          {},
                          *arrangement,
                          nullptr,
                          nullptr};
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        from.size[axis] = axis < features->axes ? (uint32_t)features->grid.size[axis] : 1;
    scratch<float> channel(device);
    scratch<double> channel_in_double(device);
    scratch<struct seen> all(device);
    struct seen found;
    TRY(all.take(1, "features", error));
    if (features->channel) {
        TRY(channel.take(numbers, "features", error));
        TRY(device_upload(device, channel, features->channel, numbers * sizeof *channel, error));
    } else if (features->channel_in_double) {
        TRY(channel_in_double.take(numbers, "features", error));
        TRY(device_upload(device, channel_in_double, features->channel_in_double,
                          numbers * sizeof *channel_in_double, error));
    }
    TRY(check(cudaMemsetAsync(all, 0, sizeof *all, device->stream), "filling features", error));
    from.channel = channel;
    from.channel_in_double = channel_in_double;
    fill_planes<<<blocks_for((size_t)op->tiles * from.dimension * 32, THREADS), THREADS, 0,
                  device->stream>>>(from, op->order, op->tiles, op->features, op->features_single,
                                    op->box, all);
    TRY(check(cudaGetLastError(), "filling features", error));
    TRY(device_download(device, &found, all, sizeof found, error));
    read_seen(op, arrangement, &found);
    return DCRF_OK;
}
