/* The plan of the lattice: embed, sort, number, connect, normalize. See lattice.cuh. */
#include "backend/cuda/lattice.cuh"
#include "backend/cuda/lattice_codes.cuh"

#include <cmath>
#include <cstdlib>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

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
    size_t pictures;
    size_t points; /* the variables, and one more where the origin is in */
    size_t entries;
    float *rows;
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
    embedding_launch(e, b->device->stream);
    status = check(cudaGetLastError(), WHAT, error);
    if (status < 0)
        return status;
    WITH_SCRATCH(b, cub::DeviceRadixSort::SortPairs(scratch, bytes, b->codes[0], b->codes[1],
                                                    b->entry[0], b->entry[1], b->entries, 0,
                                                    b->coding.bits < 64 ? b->coding.bits : 64,
                                                    b->device->stream));
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
    lattice->op.apply_double_on_device = lattice_apply_double;
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
        status = coding_find(&b->coding, device, lattice->dimension, b->rows, b->points,
                             b->pictures, error);
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
