/* The plan of the lattice: embed, sort, number, connect, normalize. See lattice.cuh. */
#include "cuda/lattice.cuh"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

/* How vertices become codes: digit i of a code is m_i - low[i], and weighs place[i]. The digit of
 * the remainder is the last one, which weighs 1; that of the picture is the first. */
struct coding {
    int dimension;
    size_t picture_points; /* of each picture */
    unsigned long long picture_place;
    bool is_single;
    double factor[DCRF_MAX_FEATURES]; /* of the embedding */
    long long low[DCRF_MAX_FEATURES];
    unsigned long long place[DCRF_MAX_FEATURES];
};

/* ---- the extent ----------------------------------------------------------------------------- */

/* Floats in the order of integers. */
static __device__ int ordered_bits(float value) {
    const int bits = __float_as_int(value);
    return bits < 0 ? bits ^ 0x7fffffff : bits;
}

static float from_ordered_bits(int ordered) {
    const int bits = ordered < 0 ? ordered ^ 0x7fffffff : ordered;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
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
 * filter/lattice_embed.c. */
#define COORDINATE_ERROR 0x1p-19

/* Coordinates of the embedding are linear in the features, so those of the extremes bound them. A
 * corner of the simplex is within two steps of the point, a neighbour within three; one is spare.
 * In single precision coordinates must be so small that rounding is a part of that one. */
static dcrf_status choose_coding(struct coding *coding, size_t dimension, size_t pictures,
                                 const int *extent, int *bits, dcrf_error *error) {
    const double corners = (double)(dimension + 1), margin = 4;
    double low = 0, high = 0, size = 0; /* of the sum of what is above */
    double digits[DCRF_MAX_FEATURES];
    coding->dimension = (int)dimension;
    double units = sqrt(1.0 / 2 + 1.0 / 6) * corners;
    if (coding->is_single)
        units = (double)(float)units;
    for (size_t i = 0; i < dimension; i++)
        coding->factor[i] = 1 / sqrt((double)((i + 1) * (i + 2))) * units;
    for (size_t i = dimension + 1; i-- > 0;) {
        double along_low = 0, along_high = 0; /* of the feature that makes coordinate i */
        if (i > 0) {
            along_low = (double)from_ordered_bits(extent[2 * (i - 1)]) * coding->factor[i - 1];
            along_high = (double)from_ordered_bits(extent[2 * i - 1]) * coding->factor[i - 1];
        }
        const double from = low - (double)i * along_high, to = high - (double)i * along_low;
        if (!(fabs(from) < 1e9 && fabs(to) < 1e9))
            return fail(error, DCRF_ERROR_ARGUMENT,
                        "a feature is too large for its sigma: the lattice would need more than 32 "
                        "bits");
        const double own_size = fmax(fabs(along_low), fabs(along_high));
        if (coding->is_single && (size + (double)i * own_size) * COORDINATE_ERROR > corners / 4)
            return fail(error, DCRF_ERROR_UNSUPPORTED,
                        "features this large for their sigmas, in single precision, are not on "
                        "this device yet: use the CPU, or larger sigmas");
        if (i < dimension) {
            coding->low[i] = (long long)floor(from / corners - margin);
            digits[i] = ceil(to / corners + margin) - (double)coding->low[i] + 1;
        }
        low += along_low;
        high += along_high;
        size += own_size;
    }
    double place = corners;
    for (size_t i = dimension + 1; i-- > 0;) {
        if (i > 0)
            coding->place[i - 1] = (unsigned long long)place;
        else
            coding->picture_place = (unsigned long long)place;
        place *= i > 0 ? digits[i - 1] : (double)pictures;
        if (place > 0x1p62)
            return fail(error, DCRF_ERROR_UNSUPPORTED,
                        "a lattice of this extent in %zu dimensions is not on this device yet: use "
                        "the CPU, or larger sigmas",
                        dimension);
    }
    *bits = (int)ceil(log2(place)) + 1;
    return DCRF_OK;
}

/* ---- embedding ------------------------------------------------------------------------------ */

/* Sums and products as they are written: none is fused with another. */
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

/* The nearest whole number: halves go away from zero in double, to the even one in single. */
static __device__ int nearest(double value) {
    return (int)__dadd_rn(value, value < 0 ? -0.5 : 0.5);
}

static __device__ int nearest(float value) {
    return __float2int_rn(value);
}

/* dsp/dsp_embed.h for one variable, with the same roundings: in double, or in single precision,
 * whose differences come from the origin as it is in the end, and whose weights are as they come.
 */
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
        for (int k = 0; k <= d; k++) /* registers have no index */
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

/* Points and where their corners go: codes and weights, and entries, which are numbered point *
 * corners + corner. */
struct embedding {
    struct coding coding;
    const float *rows;
    size_t points;
    unsigned long long *codes;
    uint32_t *entries;
    float *weights;
};

template <int FIXED, typename T> static __global__ void embed_all(struct embedding e) {
    constexpr int MOST = FIXED > 0 ? FIXED : DCRF_MAX_FEATURES;
    const int d = FIXED > 0 ? FIXED : e.coding.dimension;
    const size_t a = this_thread();
    if (a >= e.points)
        return;
    float feature[MOST], weight[MOST + 1];
    int origin[MOST + 1], rank[MOST + 1];
    for (int i = 0; i < d; i++)
        feature[i] = e.rows[a * (size_t)d + (size_t)i];
    embed<MOST, T>(e.coding, d, feature, origin, rank, weight);
    const unsigned long long picture = a / e.coding.picture_points;
    for (int k = 0; k <= d; k++) {
        unsigned long long code = (unsigned long long)k + picture * e.coding.picture_place;
        for (int i = 0; i < d; i++) {
            const long long digit = origin[i] - (rank[i] > d - k) - e.coding.low[i];
            code += (unsigned long long)digit * e.coding.place[i];
        }
        const size_t entry = a * (size_t)(d + 1) + (size_t)k;
        e.codes[entry] = code;
        e.entries[entry] = (uint32_t)entry;
        e.weights[entry] = weight[k];
    }
}

template <typename T> static void launch_embed(const struct embedding &e, cudaStream_t stream) {
    const unsigned blocks = blocks_for(e.points);
    switch (e.coding.dimension) {
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

/* ---- numbering ------------------------------------------------------------------------------ */

static __global__ void mark_heads(const unsigned long long *codes, size_t count, uint32_t *heads) {
    const size_t e = this_thread();
    if (e < count)
        heads[e] = e == 0 || codes[e] != codes[e - 1];
}

/* `number` has the count of heads up to and with each entry. Points that are no variables put
 * nothing in. */
static __global__ void number_entries(const unsigned long long *codes, const uint32_t *entries,
                                      const uint32_t *number, const float *weights, size_t count,
                                      uint32_t variables, uint32_t corners,
                                      unsigned long long *vertex_codes, uint32_t *first,
                                      uint32_t *corner_vertex, uint32_t *entry_variable,
                                      float *entry_weight) {
    const size_t e = this_thread();
    if (e >= count)
        return;
    const uint32_t vertex = number[e] - 1, entry = entries[e], point = entry / corners;
    const bool is_variable = point < variables;
    corner_vertex[entry] = vertex;
    entry_variable[e] = is_variable ? point : 0;
    entry_weight[e] = is_variable ? weights[entry] : 0;
    if (e == 0 || number[e - 1] != number[e]) {
        vertex_codes[vertex] = codes[e];
        first[vertex] = (uint32_t)e;
    }
    if (e + 1 == count)
        first[vertex + 1] = (uint32_t)count;
}

/* ---- connection ----------------------------------------------------------------------------- */

static __global__ void clear_neighbours(uint32_t *neighbours, size_t count, uint32_t none) {
    const size_t i = this_thread();
    if (i < count)
        neighbours[i] = none;
}

/* One step ahead along an axis adds 1 to every coordinate but that of the axis, which loses d: the
 * remainder k grows by one and m of the axis falls by one, and where k was d, every m grows by one
 * and k becomes 0. */
static __global__ void connect(struct coding coding, const unsigned long long *codes,
                               uint32_t vertices, uint32_t *neighbours) {
    const size_t v = this_thread();
    const uint32_t axis = blockIdx.y, d = (uint32_t)coding.dimension;
    if (v >= vertices)
        return;
    unsigned long long wanted = codes[v];
    if (wanted % (d + 1) < d) {
        wanted += 1;
    } else {
        wanted -= d;
        for (uint32_t i = 0; i < d; i++)
            wanted += coding.place[i];
    }
    if (axis < d)
        wanted -= coding.place[axis];
    uint32_t low = 0, high = vertices;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (codes[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == vertices || codes[low] != wanted)
        return;
    uint32_t *along = neighbours + (size_t)axis * vertices * 2;
    along[2 * v + 1] = low;
    along[2 * (size_t)low] = (uint32_t)v; /* from one vertex only */
}

/* ---- pieces --------------------------------------------------------------------------------- */

static __global__ void count_pieces(const uint32_t *first, uint32_t vertices, uint32_t *pieces,
                                    uint8_t *is_shared) {
    const size_t v = this_thread();
    if (v >= vertices)
        return;
    pieces[v] = (first[v + 1] - first[v] + PIECE - 1) / PIECE;
    is_shared[v] = pieces[v] > 1;
    if (v + 1 == vertices)
        pieces[vertices] = 0;
}

static __global__ void list_pieces(const uint32_t *piece_first, uint32_t vertices,
                                   uint32_t *piece_vertex) {
    const size_t v = this_thread();
    if (v < vertices)
        for (uint32_t p = piece_first[v]; p < piece_first[v + 1]; p++)
            piece_vertex[p] = (uint32_t)v;
}

/* ---- the stages ----------------------------------------------------------------------------- */

/* What lives while a plan is made. */
struct build {
    struct device_lattice *lattice;
    dcrf_backend_device *device;
    struct coding coding;
    int bits;
    size_t pictures;
    size_t points; /* the variables, and one more where the origin is in */
    size_t entries;
    float *rows;
    int *extent;
    unsigned long long *codes[2];
    uint32_t *entry[2];
    uint32_t *number;
    void *scratch; /* CUB's */
    size_t scratch_bytes;
    unsigned long long *vertex_codes;
    uint32_t *counts;
    uint8_t *is_shared;
};

#define WHAT "the plan of a lattice"

static dcrf_status need_scratch(struct build *b, size_t bytes, dcrf_error *error) {
    if (bytes <= b->scratch_bytes)
        return DCRF_OK;
    device_release(b->device, b->scratch);
    b->scratch = nullptr;
    b->scratch_bytes = 0;
    const dcrf_status status = device_take(b->device, &b->scratch, bytes, 1, WHAT, error);
    if (status == DCRF_OK)
        b->scratch_bytes = bytes;
    return status;
}

/* CUB's calls come twice: the first asks how much scratch memory it takes. */
#define WITH_SCRATCH(b, call)                                                                      \
    do {                                                                                           \
        void *scratch = nullptr;                                                                   \
        size_t bytes = 0;                                                                          \
        status = check(call, WHAT, error);                                                         \
        if (status == DCRF_OK)                                                                     \
            status = need_scratch(b, bytes, error);                                                \
        scratch = (b)->scratch;                                                                    \
        if (status == DCRF_OK)                                                                     \
            status = check(call, WHAT, error);                                                     \
    } while (0)

static dcrf_status find_coding(struct build *b, dcrf_error *error) {
    const size_t d = b->lattice->dimension;
    int extent[2 * DCRF_MAX_FEATURES];
    dcrf_status status = device_array(b->device, &b->extent, 2 * d, WHAT, error);
    if (status < 0)
        return status;
    clear_extent<<<1, 32, 0, b->device->stream>>>((int)d, b->extent);
    find_extent<<<(unsigned)b->device->multiprocessors * 2, THREADS, 0, b->device->stream>>>(
        b->rows, b->points, (int)d, b->extent);
    status = check(cudaGetLastError(), WHAT, error);
    if (status == DCRF_OK)
        status = device_download(b->device, extent, b->extent, 2 * d * sizeof *extent, error);
    b->coding.picture_points = b->points / b->pictures;
    return status < 0 ? status : choose_coding(&b->coding, d, b->pictures, extent, &b->bits, error);
}

static dcrf_status sort_entries(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    dcrf_status status = DCRF_OK;
    for (int i = 0; i < 2 && status == DCRF_OK; i++) {
        status = device_array(b->device, &b->codes[i], b->entries, WHAT, error);
        if (status == DCRF_OK)
            status = device_array(b->device, &b->entry[i], b->entries, WHAT, error);
    }
    if (status == DCRF_OK)
        status = device_array(b->device, &b->number, b->entries, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(b->device, &lattice->corner_weight, b->entries, WHAT, error);
    if (status < 0)
        return status;
    const struct embedding e = {b->coding,   b->rows,     b->points,
                                b->codes[0], b->entry[0], lattice->corner_weight};
    if (b->coding.is_single)
        launch_embed<float>(e, b->device->stream);
    else
        launch_embed<double>(e, b->device->stream);
    status = check(cudaGetLastError(), WHAT, error);
    if (status < 0)
        return status;
    WITH_SCRATCH(b, cub::DeviceRadixSort::SortPairs(
                        scratch, bytes, b->codes[0], b->codes[1], b->entry[0], b->entry[1],
                        b->entries, 0, b->bits < 64 ? b->bits : 64, b->device->stream));
    return status;
}

static dcrf_status number_vertices(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    const unsigned blocks = blocks_for(b->entries);
    cudaStream_t stream = b->device->stream;
    uint32_t vertices = 0;
    uint32_t *heads = b->entry[0]; /* not needed any more */
    mark_heads<<<blocks, THREADS, 0, stream>>>(b->codes[1], b->entries, heads);
    dcrf_status status = check(cudaGetLastError(), WHAT, error);
    if (status < 0)
        return status;
    WITH_SCRATCH(
        b, cub::DeviceScan::InclusiveSum(scratch, bytes, heads, b->number, b->entries, stream));
    if (status == DCRF_OK)
        status = device_download(b->device, &vertices, b->number + b->entries - 1, sizeof vertices,
                                 error);
    if (status < 0)
        return status;
    lattice->vertices = vertices;
    status = device_array(b->device, &b->vertex_codes, vertices, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(b->device, &lattice->first, (size_t)vertices + 1, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(b->device, &lattice->corner_vertex, b->entries, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(b->device, &lattice->entry_variable, b->entries, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(b->device, &lattice->entry_weight, b->entries, WHAT, error);
    if (status < 0)
        return status;
    number_entries<<<blocks, THREADS, 0, stream>>>(
        b->codes[1], b->entry[1], b->number, lattice->corner_weight, b->entries,
        (uint32_t)lattice->op.base.variables, (uint32_t)lattice->corners, b->vertex_codes,
        lattice->first, lattice->corner_vertex, lattice->entry_variable, lattice->entry_weight);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status connect_vertices(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    const size_t count = lattice->vertices * lattice->corners * 2;
    const dcrf_status status = device_array(b->device, &lattice->neighbours, count, WHAT, error);
    if (status < 0)
        return status;
    clear_neighbours<<<blocks_for(count), THREADS, 0, b->device->stream>>>(
        lattice->neighbours, count, (uint32_t)lattice->vertices);
    const dim3 grid(blocks_for(lattice->vertices), (unsigned)lattice->corners);
    connect<<<grid, THREADS, 0, b->device->stream>>>(
        b->coding, b->vertex_codes, (uint32_t)lattice->vertices, lattice->neighbours);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status cut_into_pieces(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    const uint32_t vertices = (uint32_t)lattice->vertices;
    cudaStream_t stream = b->device->stream;
    uint32_t counts[2] = {0, 0}; /* of pieces, of vertices that are shared */
    /* A piece is full but for the last one of its vertex. */
    const size_t most = lattice->vertices + b->entries / PIECE + 1;
    dcrf_status status = device_array(b->device, &b->counts, (size_t)vertices + 2, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(b->device, &b->is_shared, vertices, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(b->device, &lattice->piece_first, (size_t)vertices + 1, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(b->device, &lattice->piece_vertex, most, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(b->device, &lattice->shared, b->entries / PIECE + 1, WHAT, error);
    if (status < 0)
        return status;
    count_pieces<<<blocks_for(vertices), THREADS, 0, stream>>>(lattice->first, vertices, b->counts,
                                                               b->is_shared);
    WITH_SCRATCH(b, cub::DeviceScan::ExclusiveSum(scratch, bytes, b->counts, lattice->piece_first,
                                                  (size_t)vertices + 1, stream));
    if (status < 0)
        return status;
    list_pieces<<<blocks_for(vertices), THREADS, 0, stream>>>(lattice->piece_first, vertices,
                                                              lattice->piece_vertex);
    WITH_SCRATCH(b, cub::DeviceSelect::Flagged(
                        scratch, bytes, thrust::counting_iterator<uint32_t>(0), b->is_shared,
                        lattice->shared, b->counts + vertices + 1, (int)vertices, stream));
    if (status == DCRF_OK)
        status = device_download(b->device, &counts[0], lattice->piece_first + vertices,
                                 sizeof counts[0], error);
    if (status == DCRF_OK)
        status = device_download(b->device, &counts[1], b->counts + vertices + 1, sizeof counts[1],
                                 error);
    lattice->pieces = counts[0];
    lattice->shared_count = counts[1];
    return status;
}

static void build_clear(struct build *b) {
    device_release(b->device, b->rows);
    device_release(b->device, b->extent);
    for (int i = 0; i < 2; i++) {
        device_release(b->device, b->codes[i]);
        device_release(b->device, b->entry[i]);
    }
    device_release(b->device, b->number);
    device_release(b->device, b->scratch);
    device_release(b->device, b->vertex_codes);
    device_release(b->device, b->counts);
    device_release(b->device, b->is_shared);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* All but the normalization. Whatever comes, finish is called next. */
static dcrf_status begin(struct build *b, dcrf_backend_device *device,
                         const struct dcrf_features *features, bool is_compatible, bool has_origin,
                         dcrf_error *error) {
    struct device_lattice *lattice =
        static_cast<struct device_lattice *>(calloc(1, sizeof(struct device_lattice)));
    *b = {};
    if (!lattice)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    lattice->op.base.methods = &device_lattice_methods;
    lattice->op.base.variables = features->variables;
    lattice->op.base.device = device;
    lattice->op.device = device;
    lattice->op.apply_on_device = lattice_apply;
    lattice->op.ordered_on_device = lattice_ordered;
    lattice->op.diagonal_on_device = lattice_diagonal_there;
    lattice->dimension = features->dimension;
    lattice->corners = features->dimension + 1;
    lattice->gain = is_compatible ? (float)(1 / (1 + ldexp(1, -(int)features->dimension))) : 0;
    device_hold(device);
    b->lattice = lattice;
    b->device = device;
    b->coding.is_single = is_compatible;
    b->pictures = features->pictures;
    b->points = features->variables + has_origin;
    b->entries = lattice->entries = b->points * lattice->corners;
    dcrf_status status = DCRF_OK;
    if (b->entries > 0x7fffffff)
        status = fail(error, DCRF_ERROR_SIZE,
                      "a lattice of %zu variables in %zu dimensions is too large for this device",
                      features->variables, features->dimension);
    if (status == DCRF_OK)
        status = features_upload(device, features, has_origin, &b->rows, error);
    if (status == DCRF_OK)
        status = find_coding(b, error);
    if (status == DCRF_OK)
        status = sort_entries(b, error);
    if (status == DCRF_OK)
        status = number_vertices(b, error);
    if (status == DCRF_OK)
        status = connect_vertices(b, error);
    if (status == DCRF_OK)
        status = cut_into_pieces(b, error);
    return status;
}

/* Give the operator out, or free what there is of it. */
static dcrf_status finish(struct build *b, dcrf_status status, struct device_operator **out) {
    struct device_lattice *lattice = b->lattice;
    *out = nullptr;
    if (!lattice)
        return status;
    build_clear(b);
    if (status < 0) {
        lattice->op.base.methods->free(&lattice->op.base);
        return status;
    }
    lattice->op.base.vertices = lattice->vertices;
    lattice->op.base.bytes = b->entries * 2 * (sizeof(uint32_t) + sizeof(float)) +
                             lattice->vertices * (2 * lattice->corners + 2) * sizeof(uint32_t) +
                             lattice->pieces * sizeof(uint32_t);
    *out = &lattice->op;
    return status;
}

dcrf_status lattice_new(struct device_operator **out, dcrf_backend_device *device,
                        const struct dcrf_features *features, dcrf_normalization normalization,
                        dcrf_error *error) {
    struct build b;
    dcrf_status status = begin(&b, device, features, false, false, error);
    if (status == DCRF_OK)
        status = lattice_normalize(b.lattice, b.rows, b.pictures, normalization, error);
    return finish(&b, status, out);
}

dcrf_status lattice_new_compatible(struct device_operator **out, dcrf_backend_device *device,
                                   const struct dcrf_features *features, bool has_origin,
                                   dcrf_densecrf_normalization normalization, dcrf_error *error) {
    struct build b;
    dcrf_status status = begin(&b, device, features, true, has_origin, error);
    if (status == DCRF_OK)
        status = lattice_normalize_compatible(b.lattice, normalization, error);
    return finish(&b, status, out);
}
