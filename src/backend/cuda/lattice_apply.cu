/* The lattice operator: splat, blur along each axis, slice, as described in
 * filter/lattice/lattice.c.
 *
 * There is one thread per row and four channels. The splat sums a vertex in pieces of PIECE
 * entries, one warp each, and the pieces of a vertex in a fixed order, so nothing depends on
 * timing. The same launches blur in both orders of the axes. */
#include "backend/cuda/lattice.cuh"
#include "backend/cuda/ordered.cuh"

#include <cstdlib>

#define WARP 32
/* Channels per pass through the lattice. */
#define MOST_WIDTH (4 * WARP)
/* One for the splat, and two for each order of the axes. */
#define BUFFERS 5
#define WHAT "a lattice filter"

static __device__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static __device__ float4 operator*(float s, float4 a) {
    return make_float4(s * a.x, s * a.y, s * a.z, s * a.w);
}

/* Four sums, in float or double. */
template <typename T> struct four {
    T x, y, z, w;
    __device__ void add(float weight, float4 v) {
        x += (T)weight * (T)v.x;
        y += (T)weight * (T)v.y;
        z += (T)weight * (T)v.z;
        w += (T)weight * (T)v.w;
    }
    __device__ void add_lanes(int distance) {
        x += __shfl_xor_sync(0xffffffffu, x, distance);
        y += __shfl_xor_sync(0xffffffffu, y, distance);
        z += __shfl_xor_sync(0xffffffffu, z, distance);
        w += __shfl_xor_sync(0xffffffffu, w, distance);
    }
    __device__ float4 rounded() const {
        return make_float4((float)x, (float)y, (float)z, (float)w);
    }
};

/* ---- splat ---------------------------------------------------------------------------------- */

struct splat {
    const uint32_t *first, *piece_first, *piece_vertex, *entry_variable;
    const float *entry_weight;
    const float4 *in;
    size_t in_stride; /* in float4 */
    uint32_t width;   /* in float4 */
    const uint32_t *pieces;
    float4 *out;     /* rows of vertices */
    float4 *partial; /* rows of pieces */
};

/* One warp per piece: LANES threads per entry, which take the entries of the piece in turn. */
template <int LANES, typename T>
static __device__ void sum_piece(const struct splat &s, uint32_t piece) {
    const uint32_t lane = threadIdx.x % WARP, column = lane % LANES;
    const uint32_t vertex = s.piece_vertex[piece];
    const uint32_t begin = s.first[vertex] + (piece - s.piece_first[vertex]) * PIECE;
    const uint32_t end = min(begin + PIECE, s.first[vertex + 1]);
    four<T> sum = {0, 0, 0, 0};
    for (uint32_t e = begin + lane / LANES; e < end; e += WARP / LANES)
        if (column < s.width)
            sum.add(s.entry_weight[e], s.in[s.entry_variable[e] * s.in_stride + column]);
#pragma unroll
    for (int distance = LANES; distance < WARP; distance *= 2)
        sum.add_lanes(distance);
    if (lane >= LANES || column >= s.width)
        return;
    const bool is_alone = s.piece_first[vertex + 1] - s.piece_first[vertex] == 1;
    float4 *row = is_alone ? s.out + (size_t)vertex * s.width : s.partial + (size_t)piece * s.width;
    row[column] = sum.rounded();
}

template <int LANES, typename T> static __global__ void sum_pieces(struct splat s) {
    const uint32_t warps = gridDim.x * (THREADS / WARP), pieces = *s.pieces;
    for (uint32_t piece = (uint32_t)(this_thread() / WARP); piece < pieces; piece += warps)
        sum_piece<LANES, T>(s, piece);
}

#define SHARED_THREADS 128

/* One block per vertex of several pieces, in a loop; added in double. */
template <int LANES>
static __global__ void sum_shared(struct splat s, const uint32_t *shared, const uint32_t *count) {
    __shared__ four<double> sums[SHARED_THREADS];
    const uint32_t column = threadIdx.x % LANES, turn = threadIdx.x / LANES;
    for (uint32_t i = blockIdx.x; i < *count; i += gridDim.x) {
        const uint32_t vertex = shared[i];
        four<double> sum = {0, 0, 0, 0};
        for (uint32_t p = s.piece_first[vertex] + turn; p < s.piece_first[vertex + 1];
             p += SHARED_THREADS / LANES)
            if (column < s.width)
                sum.add(1, s.partial[(size_t)p * s.width + column]);
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (turn == 0 && column < s.width) {
            for (uint32_t t = 1; t < SHARED_THREADS / LANES; t++) {
                const four<double> other = sums[t * LANES + column];
                sum.x += other.x;
                sum.y += other.y;
                sum.z += other.z;
                sum.w += other.w;
            }
            s.out[(size_t)vertex * s.width + column] = sum.rounded();
        }
        __syncthreads();
    }
}

template <int LANES>
static void launch_splat(const struct splat &s, const struct device_lattice *lattice,
                         bool is_precise, cudaStream_t stream) {
    const dcrf_backend_device *device = lattice->op.device;
    const unsigned blocks = looping_blocks(device, lattice->pieces * WARP);
    const size_t most = (size_t)device->multiprocessors * 32;
    if (is_precise)
        sum_pieces<LANES, double><<<blocks, THREADS, 0, stream>>>(s);
    else
        sum_pieces<LANES, float><<<blocks, THREADS, 0, stream>>>(s);
    if (lattice->shared_count > 0)
        sum_shared<LANES>
            <<<(unsigned)(lattice->shared_count < most ? lattice->shared_count : most),
               SHARED_THREADS, 0, stream>>>(s, lattice->shared, lattice->counts + COUNT_SHARED);
}

/* ---- blur ----------------------------------------------------------------------------------- */

struct blur {
    const uint32_t *neighbours[2];
    const float4 *in[2];
    float4 *out[2];
    const uint32_t *vertices;
    uint32_t missing, width; /* missing: the number of a missing neighbour */
};

static __device__ float4 blurred_row(const float4 *in, const uint32_t *neighbours, uint32_t vertex,
                                     uint32_t column, uint32_t missing, uint32_t width) {
    const uint2 near = reinterpret_cast<const uint2 *>(neighbours)[vertex];
    const float4 none = make_float4(0, 0, 0, 0);
    const float4 before = near.x < missing ? in[(size_t)near.x * width + column] : none;
    const float4 after = near.y < missing ? in[(size_t)near.y * width + column] : none;
    return DCRF_LATTICE_CENTRE * in[(size_t)vertex * width + column] +
           DCRF_LATTICE_SIDE * (before + after);
}

/* One axis in one order, or in both if gridDim.y = 2. */
static __global__ void blur_axis(struct blur b) {
    const uint32_t order = blockIdx.y;
    const size_t count = (size_t)*b.vertices * b.width;
    for (size_t i = this_thread(); i < count; i += (size_t)gridDim.x * blockDim.x)
        b.out[order][i] = blurred_row(b.in[order], b.neighbours[order], (uint32_t)(i / b.width),
                                      (uint32_t)(i % b.width), b.missing, b.width);
}

/* The last axes of both orders, added. */
static __global__ void blur_last(struct blur b) {
    const size_t count = (size_t)*b.vertices * b.width;
    for (size_t i = this_thread(); i < count; i += (size_t)gridDim.x * blockDim.x) {
        const uint32_t vertex = (uint32_t)(i / b.width), column = (uint32_t)(i % b.width);
        b.out[0][i] = blurred_row(b.in[0], b.neighbours[0], vertex, column, b.missing, b.width) +
                      blurred_row(b.in[1], b.neighbours[1], vertex, column, b.missing, b.width);
    }
}

static float *blur_all(struct device_lattice *lattice, dcrf_direction direction, size_t width) {
    const size_t axes = lattice->corners, floats = lattice->vertices * width;
    cudaStream_t stream = lattice->op.device->stream;
    float4 *buffer[BUFFERS];
    for (size_t i = 0; i < BUFFERS; i++)
        buffer[i] = reinterpret_cast<float4 *>(lattice->buffer + i * floats);
    struct blur b = {};
    b.vertices = lattice->counts + COUNT_VERTICES;
    b.missing = (uint32_t)lattice->vertices;
    b.width = (uint32_t)(width / 4);
    const bool both = direction == DCRF_SYMMETRIC;
    const unsigned blocks = looping_blocks(lattice->op.device, lattice->vertices * b.width);
    const size_t count = both ? axes - 1 : axes;
    const float4 *in[2] = {buffer[0], buffer[0]};
    for (size_t i = 0; i < count; i++) {
        const size_t axis[2] = {direction == DCRF_ADJOINT ? axes - 1 - i : i, axes - 1 - i};
        for (size_t order = 0; order < 2; order++) {
            b.neighbours[order] = lattice->neighbours + axis[order] * lattice->vertices * 2;
            b.in[order] = in[order];
            b.out[order] = buffer[1 + 2 * order + i % 2];
            in[order] = b.out[order];
        }
        blur_axis<<<dim3(blocks, both ? 2 : 1), THREADS, 0, stream>>>(b);
    }
    if (!both)
        return reinterpret_cast<float *>(b.out[0]);
    b.neighbours[0] = lattice->neighbours + (axes - 1) * lattice->vertices * 2;
    b.neighbours[1] = lattice->neighbours;
    b.in[0] = in[0];
    b.in[1] = in[1];
    b.out[0] = buffer[0];
    blur_last<<<blocks, THREADS, 0, stream>>>(b);
    return reinterpret_cast<float *>(b.out[0]);
}

static dcrf_status need(dcrf_backend_device *device, float **memory, size_t *held, size_t floats,
                        dcrf_error *error) {
    if (*held >= floats)
        return DCRF_OK;
    device_release(device, *memory);
    *memory = nullptr;
    *held = 0;
    TRY(device_array(device, memory, floats, WHAT, error));
    *held = floats;
    return DCRF_OK;
}

static dcrf_status spread(struct device_lattice *lattice, dcrf_direction direction, const float *in,
                          size_t in_stride, size_t width, bool is_precise, float **blurred,
                          dcrf_error *error) {
    dcrf_backend_device *device = lattice->op.device;
    TRY(need(device, &lattice->buffer, &lattice->buffer_floats, BUFFERS * lattice->vertices * width,
             error));
    TRY(need(device, &lattice->partial, &lattice->partial_floats,
             lattice->shared_count > 0 ? lattice->pieces * width : 0, error));
    const struct splat s = {lattice->first,
                            lattice->piece_first,
                            lattice->piece_vertex,
                            lattice->entry_variable,
                            lattice->entry_weight,
                            reinterpret_cast<const float4 *>(in),
                            in_stride / 4,
                            (uint32_t)(width / 4),
                            lattice->counts + COUNT_PIECES,
                            reinterpret_cast<float4 *>(lattice->buffer),
                            reinterpret_cast<float4 *>(lattice->partial)};
    if (s.width <= 1)
        launch_splat<1>(s, lattice, is_precise, device->stream);
    else if (s.width <= 2)
        launch_splat<2>(s, lattice, is_precise, device->stream);
    else if (s.width <= 4)
        launch_splat<4>(s, lattice, is_precise, device->stream);
    else if (s.width <= 8)
        launch_splat<8>(s, lattice, is_precise, device->stream);
    else if (s.width <= 16)
        launch_splat<16>(s, lattice, is_precise, device->stream);
    else
        launch_splat<32>(s, lattice, is_precise, device->stream);
    *blurred = blur_all(lattice, direction, width);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- slice ---------------------------------------------------------------------------------- */

struct slice {
    const uint32_t *corner_vertex;
    const float *corner_weight;
    const float4 *blurred;
    uint32_t corners, width;  /* in float4 */
    size_t variables, stride; /* of the output, in float4 */
    float factor;
    bool accumulate;
    float4 *out;
};

static __global__ void slice_rows(struct slice s) {
    const size_t i = this_thread();
    if (i >= s.variables * s.width)
        return;
    const size_t a = i / s.width, column = i % s.width;
    float4 sum = make_float4(0, 0, 0, 0);
    for (uint32_t k = 0; k < s.corners; k++) {
        const size_t e = a * s.corners + k;
        sum = sum + s.corner_weight[e] * s.blurred[(size_t)s.corner_vertex[e] * s.width + column];
    }
    float4 *out = &s.out[a * s.stride + column];
    *out = s.accumulate ? *out + s.factor * sum : s.factor * sum;
}

dcrf_status lattice_apply(struct device_operator *op, const struct dcrf_application *application,
                          dcrf_error *error) {
    struct device_lattice *lattice = reinterpret_cast<struct device_lattice *>(op);
    const dcrf_direction direction = lattice->gain > 0 ? DCRF_FORWARD : application->direction;
    const float factor = lattice->gain > 0             ? lattice->gain
                         : direction == DCRF_SYMMETRIC ? 0.5f /* the mean of both orders */
                                                       : 1.0f;
    const size_t padded = (application->channels + 3) / 4 * 4;
    for (size_t channel = 0; channel < padded; channel += MOST_WIDTH) {
        const size_t width = padded - channel < MOST_WIDTH ? padded - channel : MOST_WIDTH;
        float *blurred;
        TRY(spread(lattice, direction, application->in + channel, application->stride, width, false,
                   &blurred, error));
        const struct slice s = {lattice->corner_vertex,
                                lattice->corner_weight,
                                reinterpret_cast<const float4 *>(blurred),
                                (uint32_t)lattice->corners,
                                (uint32_t)(width / 4),
                                op->base.variables,
                                application->stride / 4,
                                application->factor * factor,
                                application->accumulate,
                                reinterpret_cast<float4 *>(application->out + channel)};
        slice_rows<<<blocks_for(s.variables * s.width), THREADS, 0, op->device->stream>>>(s);
    }
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- the ordered filter --------------------------------------------------------------------- */

/* The result for a variable in each bin h of a vertex: sum_k F(h, k) histogram_k, in double. */
static __global__ void weigh(const float *histograms, const float *table, size_t count,
                             uint32_t bins, uint32_t row, float *seen) {
    const size_t i = this_thread();
    if (i >= count * row)
        return;
    const uint32_t h = (uint32_t)(i % row);
    const float *histogram = histograms + i / row * row;
    double sum = 0;
    for (uint32_t k = 0; k < bins && h < bins; k++)
        sum += (double)table[h * row + k] * (double)histogram[k];
    seen[i] = (float)sum;
}

/* The same where F is the sign of k - h: (all) - (below h) - (up to h), by partial sums. One warp
 * per histogram; `seen` may be `histograms`. */
static __global__ void weigh_by_sign(const float *histograms, size_t count, uint32_t row,
                                     float *seen) {
    const size_t at = this_thread() / WARP * row;
    const uint32_t lane = threadIdx.x % WARP;
    if (at >= count * row)
        return;
    double all = 0, below = 0;
    for (uint32_t k = lane; k < row; k += WARP)
        all += (double)histograms[at + k];
    for (uint32_t reach = WARP / 2; reach > 0; reach /= 2)
        all += __shfl_xor_sync(~0u, all, reach);
    for (uint32_t first = 0; first < row; first += WARP) {
        const uint32_t k = first + lane;
        const double own = k < row ? (double)histograms[at + k] : 0;
        double up_to = own;
        for (uint32_t reach = 1; reach < WARP; reach *= 2) {
            const double left = __shfl_up_sync(~0u, up_to, reach);
            up_to += lane >= reach ? left : 0;
        }
        up_to += below;
        if (k < row)
            seen[at + k] = (float)(all - (up_to - own) - up_to);
        below = __shfl_sync(~0u, up_to, WARP - 1);
    }
}

static __global__ void slice_seen(const float *seen, const uint32_t *corner_vertex,
                                  const float *corner_weight, uint32_t corners,
                                  struct ordered_batch o) {
    const size_t i = this_thread();
    if (i >= o.variables * o.channels)
        return;
    const size_t a = i / o.channels, channel = i % o.channels, width = o.channels * o.row;
    const uint32_t bin = o.bin[i];
    const float fraction = o.fraction ? o.fraction[i] : 0;
    const uint32_t next = fraction > 0 ? bin + 1 : bin;
    float low = 0, high = 0;
    for (uint32_t k = 0; k < corners; k++) {
        const size_t e = a * corners + k, at = corner_vertex[e] * width + channel * o.row;
        low += corner_weight[e] * seen[at + bin];
        high += corner_weight[e] * seen[at + next];
    }
    o.out[a * o.out_stride + channel] = 0.5f * (low + fraction * (high - low));
}

/* Histograms that fit in one pass stay in the blur's buffer; otherwise they are assembled from
 * blocks of bins. */
static dcrf_status blur_histograms(struct device_lattice *lattice, const struct ordered_batch *o,
                                   float *together, float **histograms, dcrf_error *error) {
    const size_t row = o->channels * o->row;
    for (size_t first = 0; first < row; first += MOST_WIDTH) {
        const size_t width = row - first < MOST_WIDTH ? row - first : MOST_WIDTH;
        TRY(spread(lattice, DCRF_SYMMETRIC, o->histograms + first, row, width, true, histograms,
                   error));
        if (width < row)
            TRY(check(cudaMemcpy2DAsync(together + first, row * sizeof(float), *histograms,
                                        width * sizeof(float), width * sizeof(float),
                                        lattice->vertices, cudaMemcpyDeviceToDevice,
                                        lattice->op.device->stream),
                      WHAT, error));
    }
    if (row > MOST_WIDTH)
        *histograms = together;
    return DCRF_OK;
}

dcrf_status lattice_ordered(struct device_operator *op, const struct ordered_batch *o,
                            dcrf_error *error) {
    struct device_lattice *lattice = reinterpret_cast<struct device_lattice *>(op);
    const size_t row = o->channels * o->row, floats = lattice->vertices * row;
    scratch<float> memory(op->device);
    float *histograms = nullptr;
    TRY(memory.take(row > MOST_WIDTH ? 2 * floats : floats, WHAT, error));
    TRY(blur_histograms(lattice, o, memory + floats, &histograms, error));
    const size_t rows = lattice->vertices * o->channels;
    if (o->is_sign)
        weigh_by_sign<<<blocks_for(rows * WARP), THREADS, 0, op->device->stream>>>(
            histograms, rows, (uint32_t)o->row, memory);
    else
        weigh<<<blocks_for(floats), THREADS, 0, op->device->stream>>>(
            histograms, o->table, rows, (uint32_t)o->bins, (uint32_t)o->row, memory);
    slice_seen<<<blocks_for(o->variables * o->channels), THREADS, 0, op->device->stream>>>(
        memory, lattice->corner_vertex, lattice->corner_weight, (uint32_t)lattice->corners, *o);
    return DCRF_OK;
}

/* Roundings: one for 1 - fraction; two to float, after the pieces and after their sum, both in
 * double; two along each axis, and two more where both orders are added; one to float after the sum
 * over the bins, and those in double; the products and sum over the corners; five between two
 * nodes. */
static size_t ordered_roundings(const dcrf_operator *base, size_t, bool) {
    const struct device_lattice *lattice = (const struct device_lattice *)base;
    return 3 + 2 * lattice->corners + 2 + 2 + lattice->corners + 1 + 5;
}

/* ---- the methods ---------------------------------------------------------------------------- */

static void lattice_free(dcrf_operator *base) {
    struct device_lattice *lattice = (struct device_lattice *)base;
    dcrf_backend_device *device = lattice->op.device;
    void *const held[] = {lattice->corner_vertex,  lattice->corner_weight, lattice->first,
                          lattice->entry_variable, lattice->entry_weight,  lattice->neighbours,
                          lattice->piece_first,    lattice->piece_vertex,  lattice->shared,
                          lattice->buffer,         lattice->partial,       lattice->counts};
    cudaSetDevice((int)device->index);
    for (void *memory : held)
        device_release(device, memory);
    operator_clear(&lattice->op);
    free(lattice);
}

static struct dcrf_operator_methods make_methods() {
    struct dcrf_operator_methods methods = {};
    methods.kind = DCRF_OPERATOR_LATTICE;
    methods.apply = operator_apply;
    methods.ordered = operator_ordered;
    methods.ordered_block = operator_ordered_block;
    methods.apply_double = operator_apply_double;
    methods.disagreement = operator_disagreement;
    methods.ordered_roundings = ordered_roundings;
    methods.diagonal = lattice_diagonal;
    methods.free = lattice_free;
    return methods;
}

const struct dcrf_operator_methods device_lattice_methods = make_methods();
