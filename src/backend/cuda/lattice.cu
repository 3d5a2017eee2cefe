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

/* `number` is the inclusive count of heads. Points that are not variables get weight 0. */
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

/* blockIdx.y is the axis; there is memory for `room` vertices per axis. */
static __global__ void clear_neighbours(uint32_t *neighbours, const uint32_t *vertices,
                                        uint32_t room) {
    uint2 *along = reinterpret_cast<uint2 *>(neighbours) + (size_t)blockIdx.y * room;
    for (size_t v = this_thread(); v < *vertices; v += (size_t)gridDim.x * blockDim.x)
        along[v] = make_uint2(room, room);
}

/* One step ahead along an axis adds 1 to every coordinate except that of the axis, which decreases
 * by d: the remainder k grows by 1 and m of the axis falls by 1; if k was d, every m grows by 1 and
 * k becomes 0. */
static __device__ unsigned long long step_ahead(const struct coding &coding,
                                                unsigned long long code, uint32_t axis) {
    const uint32_t d = (uint32_t)coding.dimension;
    if (code % (d + 1) < d) {
        code += 1;
    } else {
        code -= d;
        for (uint32_t i = 0; i < d; i++)
            code += coding.place[i];
    }
    return axis < d ? code - coding.place[axis] : code;
}

static __global__ void connect(const struct coding *coding, const unsigned long long *codes,
                               const uint32_t *count, uint32_t room, uint32_t *neighbours) {
    const uint32_t vertices = *count, axis = blockIdx.y;
    uint32_t *along = neighbours + (size_t)axis * room * 2;
    for (size_t v = this_thread(); v < vertices; v += (size_t)gridDim.x * blockDim.x) {
        const unsigned long long wanted = step_ahead(*coding, codes[v], axis);
        uint32_t low = 0, high = vertices;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (codes[middle] < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == vertices || codes[low] != wanted)
            continue;
        along[2 * v + 1] = low;
        along[2 * (size_t)low] = (uint32_t)v; /* no race: only one vertex has this neighbour */
    }
}

/* ---- pieces --------------------------------------------------------------------------------- */

/* No pieces beyond the last vertex. */
static __global__ void count_pieces(const uint32_t *first, const uint32_t *count, uint32_t room,
                                    uint32_t *pieces, uint8_t *is_shared) {
    const uint32_t vertices = *count;
    for (size_t v = this_thread(); v <= room; v += (size_t)gridDim.x * blockDim.x) {
        pieces[v] = v < vertices ? (first[v + 1] - first[v] + PIECE - 1) / PIECE : 0;
        if (v < room)
            is_shared[v] = pieces[v] > 1;
    }
}

static __global__ void list_pieces(const uint32_t *piece_first, const uint32_t *count,
                                   uint32_t room, uint32_t *piece_vertex, uint32_t *pieces) {
    for (size_t v = this_thread(); v < *count; v += (size_t)gridDim.x * blockDim.x)
        for (uint32_t p = piece_first[v]; p < piece_first[v + 1]; p++)
            piece_vertex[p] = (uint32_t)v;
    if (this_thread() == 0)
        *pieces = piece_first[room];
}

/* ---- the stages ----------------------------------------------------------------------------- */

/* State while a plan is being made. */
struct build {
    struct device_lattice *lattice;
    dcrf_backend_device *device;
    bool is_waiting;       /* for the counts, to size memory and launches */
    struct coding *coding; /* on the device */
    bool is_single;
    int bits; /* of codes */
    size_t pictures;
    size_t points; /* the variables, and the origin if included */
    size_t entries;
    float *own_rows; /* NULL: `rows` are the caller's */
    const float *rows;
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
    TRY(device_take(b->device, &b->scratch, bytes, 1, WHAT, error));
    b->scratch_bytes = bytes;
    return DCRF_OK;
}

/* CUB functions are called twice: first to ask for the size of the scratch memory. */
#define WITH_SCRATCH(b, call)                                                                      \
    do {                                                                                           \
        void *scratch = nullptr;                                                                   \
        size_t bytes = 0;                                                                          \
        TRY(check(call, WHAT, error));                                                             \
        TRY(need_scratch(b, bytes, error));                                                        \
        scratch = (b)->scratch;                                                                    \
        TRY(check(call, WHAT, error));                                                             \
    } while (0)

static dcrf_status sort_entries(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    for (int i = 0; i < 2; i++) {
        TRY(device_array(b->device, &b->codes[i], b->entries, WHAT, error));
        TRY(device_array(b->device, &b->entry[i], b->entries, WHAT, error));
    }
    TRY(device_array(b->device, &b->number, b->entries, WHAT, error));
    TRY(device_array(b->device, &lattice->corner_weight, b->entries, WHAT, error));
    const struct embedding e = {
        b->coding,   (int)lattice->dimension, b->is_single, b->rows, b->points, b->codes[0],
        b->entry[0], lattice->corner_weight};
    embedding_launch(e, b->device->stream);
    TRY(check(cudaGetLastError(), WHAT, error));
    WITH_SCRATCH(b, cub::DeviceRadixSort::SortPairs(scratch, bytes, b->codes[0], b->codes[1],
                                                    b->entry[0], b->entry[1], b->entries, 0,
                                                    b->bits, b->device->stream));
    return DCRF_OK;
}

static dcrf_status number_vertices(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    const unsigned blocks = blocks_for(b->entries);
    cudaStream_t stream = b->device->stream;
    uint32_t vertices = 0;
    uint32_t *heads = b->entry[0]; /* no longer needed */
    mark_heads<<<blocks, THREADS, 0, stream>>>(b->codes[1], b->entries, heads);
    TRY(check(cudaGetLastError(), WHAT, error));
    WITH_SCRATCH(
        b, cub::DeviceScan::InclusiveSum(scratch, bytes, heads, b->number, b->entries, stream));
    TRY(check(cudaMemcpyAsync(lattice->counts + COUNT_VERTICES, b->number + b->entries - 1,
                              sizeof vertices, cudaMemcpyDeviceToDevice, stream),
              WHAT, error));
    if (b->is_waiting)
        TRY(device_download(b->device, &vertices, lattice->counts + COUNT_VERTICES, sizeof vertices,
                            error));
    lattice->vertices = b->is_waiting ? vertices : b->entries;
    TRY(device_array(b->device, &b->vertex_codes, lattice->vertices, WHAT, error));
    TRY(device_array(b->device, &lattice->first, lattice->vertices + 1, WHAT, error));
    TRY(device_array(b->device, &lattice->corner_vertex, b->entries, WHAT, error));
    TRY(device_array(b->device, &lattice->entry_variable, b->entries, WHAT, error));
    TRY(device_array(b->device, &lattice->entry_weight, b->entries, WHAT, error));
    number_entries<<<blocks, THREADS, 0, stream>>>(
        b->codes[1], b->entry[1], b->number, lattice->corner_weight, b->entries,
        (uint32_t)lattice->op.base.variables, (uint32_t)lattice->corners, b->vertex_codes,
        lattice->first, lattice->corner_vertex, lattice->entry_variable, lattice->entry_weight);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status connect_vertices(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    const uint32_t room = (uint32_t)lattice->vertices, *count = lattice->counts + COUNT_VERTICES;
    TRY(device_array(b->device, &lattice->neighbours, lattice->vertices * lattice->corners * 2,
                     WHAT, error));
    const dim3 grid(looping_blocks(b->device, room), (unsigned)lattice->corners);
    clear_neighbours<<<grid, THREADS, 0, b->device->stream>>>(lattice->neighbours, count, room);
    connect<<<grid, THREADS, 0, b->device->stream>>>(b->coding, b->vertex_codes, count, room,
                                                     lattice->neighbours);
    return check(cudaGetLastError(), WHAT, error);
}

/* All pieces of a vertex are full except the last, which bounds their number. */
static dcrf_status take_pieces(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    const size_t room = lattice->vertices;
    lattice->pieces = room + b->entries / PIECE + 1;
    lattice->shared_count = b->entries / PIECE + 1;
    TRY(device_array(b->device, &b->counts, room + 1, WHAT, error));
    TRY(device_array(b->device, &b->is_shared, room, WHAT, error));
    TRY(device_array(b->device, &lattice->piece_first, room + 1, WHAT, error));
    TRY(device_array(b->device, &lattice->piece_vertex, lattice->pieces, WHAT, error));
    return device_array(b->device, &lattice->shared, lattice->shared_count, WHAT, error);
}

static dcrf_status cut_into_pieces(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    const uint32_t room = (uint32_t)lattice->vertices;
    uint32_t *counts = lattice->counts, found[COUNT_KINDS] = {0, 0, 0};
    cudaStream_t stream = b->device->stream;
    TRY(take_pieces(b, error));
    const unsigned blocks = looping_blocks(b->device, (size_t)room + 1);
    count_pieces<<<blocks, THREADS, 0, stream>>>(lattice->first, counts + COUNT_VERTICES, room,
                                                 b->counts, b->is_shared);
    WITH_SCRATCH(b, cub::DeviceScan::ExclusiveSum(scratch, bytes, b->counts, lattice->piece_first,
                                                  (size_t)room + 1, stream));
    list_pieces<<<blocks, THREADS, 0, stream>>>(lattice->piece_first, counts + COUNT_VERTICES, room,
                                                lattice->piece_vertex, counts + COUNT_PIECES);
    WITH_SCRATCH(b, cub::DeviceSelect::Flagged(
                        scratch, bytes, thrust::counting_iterator<uint32_t>(0), b->is_shared,
                        lattice->shared, counts + COUNT_SHARED, (int)room, stream));
    if (!b->is_waiting)
        return DCRF_OK;
    TRY(device_download(b->device, found, counts, sizeof found, error));
    lattice->pieces = found[COUNT_PIECES];
    lattice->shared_count = found[COUNT_SHARED];
    return DCRF_OK;
}

static void build_clear(struct build *b) {
    device_release(b->device, b->own_rows);
    device_release(b->device, b->coding);
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

static struct device_lattice *make_lattice(dcrf_backend_device *device, size_t variables,
                                           size_t dimension, bool is_compatible) {
    struct device_lattice *lattice =
        static_cast<struct device_lattice *>(calloc(1, sizeof(struct device_lattice)));
    if (!lattice)
        return nullptr;
    lattice->op.base.methods = &device_lattice_methods;
    lattice->op.base.variables = variables;
    lattice->op.base.device = device;
    lattice->op.device = device;
    lattice->op.apply_on_device = lattice_apply;
    lattice->op.ordered_on_device = lattice_ordered;
    lattice->op.apply_double_on_device = lattice_apply_double;
    lattice->op.diagonal_on_device = lattice_diagonal_on_device;
    lattice->dimension = dimension;
    lattice->corners = dimension + 1;
    lattice->gain = is_compatible ? (float)(1 / (1 + ldexp(1, -(int)dimension))) : 0;
    device_hold(device);
    return lattice;
}

/* Everything that depends on the rows. */
static dcrf_status build_rows(struct build *b, dcrf_error *error) {
    struct device_lattice *lattice = b->lattice;
    struct coding coding;
    TRY(device_array(b->device, &lattice->counts, COUNT_KINDS, WHAT, error));
    TRY(coding_choose(&b->coding, b->device, lattice->dimension, b->is_single, b->rows, b->points,
                      b->pictures, error));
    b->bits = 64;
    if (b->is_waiting) {
        TRY(coding_download(&coding, b->coding, b->device, error));
        b->bits = coding.bits < 64 ? coding.bits : 64;
    }
    TRY(sort_entries(b, error));
    TRY(number_vertices(b, error));
    TRY(connect_vertices(b, error));
    return cut_into_pieces(b, error);
}

/* Start a build. `finish` must be called even on failure. */
static dcrf_status begin(struct build *b, dcrf_backend_device *device, size_t variables,
                         size_t dimension, size_t pictures, bool is_compatible, bool has_origin,
                         dcrf_error *error) {
    *b = {};
    b->lattice = make_lattice(device, variables, dimension, is_compatible);
    if (!b->lattice)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    b->device = device;
    b->is_waiting = true;
    b->is_single = is_compatible;
    b->pictures = pictures;
    b->points = variables + has_origin;
    b->entries = b->lattice->entries = b->points * b->lattice->corners;
    if (b->entries > 0x7fffffff)
        return fail(error, DCRF_ERROR_SIZE,
                    "a lattice of %zu variables in %zu dimensions is too large for this device",
                    variables, dimension);
    return DCRF_OK;
}

/* Everything except the normalization. */
static dcrf_status build_features(struct build *b, dcrf_backend_device *device,
                                  const struct dcrf_features *features, bool is_compatible,
                                  bool has_origin, dcrf_error *error) {
    TRY(begin(b, device, features->variables, features->dimension, features->pictures,
              is_compatible, has_origin, error));
    TRY(features_upload(device, features, has_origin, &b->own_rows, error));
    b->rows = b->own_rows;
    return build_rows(b, error);
}

/* Return the operator, or free it on failure. */
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
    dcrf_status status = build_features(&b, device, features, false, false, error);
    if (status == DCRF_OK)
        status = lattice_normalize(b.lattice, b.rows, b.pictures, normalization, error);
    return finish(&b, status, out);
}

dcrf_status lattice_new_compatible(struct device_operator **out, dcrf_backend_device *device,
                                   const struct dcrf_features *features, bool has_origin,
                                   dcrf_densecrf_normalization normalization, dcrf_error *error) {
    struct build b;
    dcrf_status status = build_features(&b, device, features, true, has_origin, error);
    if (status == DCRF_OK)
        status = lattice_normalize_compatible(b.lattice, normalization, error);
    return finish(&b, status, out);
}

dcrf_status lattice_of_rows(dcrf_operator **out, dcrf_backend_device *device, const float *rows,
                            size_t variables, size_t dimension, size_t pictures, bool is_symmetric,
                            bool is_waiting, dcrf_error *error) {
    const device_turn turn(device);
    struct build b;
    struct device_operator *op = nullptr;
    *out = nullptr;
    dcrf_status status = device_enter(device, error);
    if (status < 0)
        return status;
    status = begin(&b, device, variables, dimension, pictures, false, false, error);
    b.is_waiting = is_waiting;
    b.rows = rows;
    if (status == DCRF_OK)
        status = build_rows(&b, error);
    if (status == DCRF_OK && is_symmetric)
        status = lattice_normalize(b.lattice, rows, pictures, DCRF_NORMALIZE_SYMMETRIC, error);
    status = finish(&b, status, &op);
    if (status == DCRF_OK)
        *out = &op->base;
    return status;
}
