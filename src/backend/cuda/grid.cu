/* The grid operator on a device: a spatial kernel as convolutions along the axes, with the taps of
 * filter/grid/grid_taps.h and the same matrix as filter/grid/grid.c.
 *
 * A thread computes OUTPUTS consecutive outputs along the axis for four channels. The lanes of a
 * warp are adjacent across the axis, and the warps of a block along it: the block loads the inputs
 * of all its warps into shared memory, TILE at a time, so that no thread waits for a single input.
 * All lanes of a warp are at the same position on the axis, so each input needs only one new tap,
 * and OUTPUTS taps stay in registers. */
#include "backend/cuda/device.cuh"
#include "backend/cuda/ordered.cuh"
#include "filter/grid/grid_taps.h"

#include <cstdlib>

#define OUTPUTS 8
#define WARP 32
#define WARPS 4 /* per block */
#define TILE (WARPS * OUTPUTS)
#define MOST_WIDTH 128
#define WHAT "a grid convolution"

struct device_grid {
    struct device_operator op;
    dcrf_grid shape;
    size_t radius[DCRF_MAX_AXES];
    float *taps[DCRF_MAX_AXES]; /* radius + 1 from the centre outwards, and 2 OUTPUTS zeros */
    float *buffer[2];
    size_t buffer_floats;
};

/* ---- one axis ------------------------------------------------------------------------------- */

struct pass {
    const float *taps;
    int radius;
    int length;                   /* of the axis */
    uint32_t segments;            /* of TILE outputs, per line */
    uint32_t inner;               /* variables between neighbours along the axis */
    uint32_t width;               /* in float4 */
    uint32_t across;              /* float4s at one position on the axis */
    size_t in_stride, out_stride; /* in float4 */
    const float4 *in;
    float4 *out;
    const float *in_scale, *out_scale; /* one per variable, or NULL */
    float factor;
    bool accumulate;
};

static __device__ float4 operator*(float s, float4 v) {
    return make_float4(s * v.x, s * v.y, s * v.z, s * v.w);
}

static __device__ void add(float4 *sum, float tap, float4 v) {
    sum->x += tap * v.x;
    sum->y += tap * v.y;
    sum->z += tap * v.z;
    sum->w += tap * v.w;
}

static __global__ void convolve(struct pass p) {
    __shared__ float4 tile[TILE][WARP];
    extern __shared__ float taps[];
    for (int t = (int)threadIdx.x; t <= p.radius + 2 * OUTPUTS; t += WARPS * WARP)
        taps[t] = p.taps[t];
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int begin = (int)(blockIdx.x % p.segments) * TILE, first = begin + warp * OUTPUTS;
    const uint32_t at_across = blockIdx.x / p.segments * WARP + (uint32_t)lane;
    const uint32_t column = at_across % p.width, place = at_across / p.width;
    const size_t line = (size_t)(place / p.inner) * (size_t)p.length * p.inner + place % p.inner;
    const bool is_inside = at_across < p.across;
    float4 sum[OUTPUTS];
    float window[OUTPUTS]; /* the tap from input j to output k is at (j - k) mod OUTPUTS */
#pragma unroll
    for (int k = 0; k < OUTPUTS; k++) {
        sum[k] = make_float4(0, 0, 0, 0);
        window[k] = 0;
    }
    const int inputs = 2 * p.radius + OUTPUTS; /* per thread; a block has TILE - OUTPUTS more */
    for (int part = 0; part < 2 * p.radius + TILE; part += TILE) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i += WARPS) {
            const int at = begin - p.radius + part + i + warp;
            float4 v = make_float4(0, 0, 0, 0);
            if (is_inside && at >= 0 && at < p.length) {
                const size_t variable = line + (size_t)at * p.inner;
                v = p.in[variable * p.in_stride + column];
                if (p.in_scale)
                    v = p.in_scale[variable] * v;
            }
            tile[i + warp][lane] = v;
        }
        __syncthreads();
        for (int i = 0; i < TILE; i += OUTPUTS) {
            const int input = part + i - warp * OUTPUTS; /* relative to this thread's first */
            if (input < 0 || input >= inputs)
                continue;
#pragma unroll
            for (int j = 0; j < OUTPUTS; j++) {
                window[j] = taps[abs(input + j - p.radius)];
                const float4 v = tile[i + j][lane];
#pragma unroll
                for (int k = 0; k < OUTPUTS; k++)
                    add(&sum[k], window[(j - k + OUTPUTS) % OUTPUTS], v);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < OUTPUTS; k++) {
        if (!is_inside || first + k >= p.length)
            break;
        const size_t variable = line + (size_t)(first + k) * p.inner;
        const float s = p.factor * (p.out_scale ? p.out_scale[variable] : 1);
        float4 *out = &p.out[variable * p.out_stride + column];
        const float4 v = s * sum[k];
        *out =
            p.accumulate ? make_float4(out->x + v.x, out->y + v.y, out->z + v.z, out->w + v.w) : v;
    }
}

static dcrf_status need_buffers(struct device_grid *grid, size_t floats, dcrf_error *error) {
    if (grid->buffer_floats >= floats)
        return DCRF_OK;
    dcrf_status status = DCRF_OK;
    for (size_t i = 0; i < 2 && status == DCRF_OK; i++) {
        device_release(grid->op.device, grid->buffer[i]);
        grid->buffer[i] = nullptr;
        if (i + 1 < grid->shape.axes)
            status = device_array(grid->op.device, &grid->buffer[i], floats, WHAT, error);
    }
    grid->buffer_floats = status == DCRF_OK ? floats : 0;
    return status;
}

/* All axes for `width` channels: in and out are rows of `stride` floats. */
static dcrf_status convolve_axes(struct device_grid *grid, const float *in, float *out,
                                 size_t stride, size_t width, float factor, bool accumulate,
                                 dcrf_error *error) {
    const size_t n = grid->op.base.variables;
    TRY(need_buffers(grid, n * width, error));
    struct pass p = {};
    p.width = (uint32_t)(width / 4);
    p.inner = 1;
    for (size_t axis = 0; axis < grid->shape.axes; axis++) {
        const bool is_first = axis == 0, is_last = axis + 1 == grid->shape.axes;
        const size_t length = grid->shape.size[axis], across = n / length * p.width;
        if (across > UINT32_MAX - WARP)
            return fail(error, DCRF_ERROR_UNSUPPORTED,
                        "a grid of %zu variables is not on this device yet: use the CPU", n);
        p.taps = grid->taps[axis];
        p.radius = (int)grid->radius[axis];
        p.length = (int)length;
        p.segments = (uint32_t)((length + TILE - 1) / TILE);
        p.across = (uint32_t)across;
        p.in = reinterpret_cast<const float4 *>(is_first ? in : grid->buffer[(axis - 1) % 2]);
        p.out = reinterpret_cast<float4 *>(is_last ? out : grid->buffer[axis % 2]);
        p.in_stride = (is_first ? stride : width) / 4;
        p.out_stride = (is_last ? stride : width) / 4;
        p.in_scale = is_first ? grid->op.scales : nullptr;
        p.out_scale = is_last ? grid->op.scales : nullptr;
        p.factor = is_last ? factor : 1;
        p.accumulate = is_last && accumulate;
        const size_t blocks = (across + WARP - 1) / WARP * p.segments;
        convolve<<<(unsigned)blocks, WARPS * WARP,
                   ((size_t)p.radius + 2 * OUTPUTS + 1) * sizeof(float), grid->op.device->stream>>>(
            p);
        p.inner *= (uint32_t)length;
    }
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status grid_apply(struct device_operator *op,
                              const struct dcrf_application *application, dcrf_error *error) {
    struct device_grid *grid = reinterpret_cast<struct device_grid *>(op);
    const size_t padded = (application->channels + 3) / 4 * 4;
    for (size_t channel = 0; channel < padded; channel += MOST_WIDTH) {
        const size_t width = padded - channel < MOST_WIDTH ? padded - channel : MOST_WIDTH;
        TRY(convolve_axes(grid, application->in + channel, application->out + channel,
                          application->stride, width, application->factor, application->accumulate,
                          error));
    }
    return DCRF_OK;
}

/* ---- the ordered filter --------------------------------------------------------------------- */

/* The result for a variable: sum_k F(own value, k) of the convolved histogram. */
static __global__ void read_histograms(const float *seen, struct ordered_batch o) {
    const size_t i = this_thread();
    if (i >= o.variables * o.channels)
        return;
    const uint32_t bin = o.bin[i];
    const float fraction = o.fraction ? o.fraction[i] : 0;
    const uint32_t next = fraction > 0 ? bin + 1 : bin;
    double sum = 0;
    for (uint32_t k = 0; k < o.bins; k++) {
        const float low = o.is_sign ? (k > bin) - (float)(k < bin) : o.table[bin * o.row + k];
        const float high = o.is_sign ? (k > next) - (float)(k < next) : o.table[next * o.row + k];
        sum += (double)((low + fraction * (high - low)) * seen[i * o.row + k]);
    }
    o.out[i / o.channels * o.out_stride + i % o.channels] = (float)sum;
}

static dcrf_status filter_ordered(struct device_operator *op, const struct ordered_batch *o,
                                  dcrf_error *error) {
    struct device_grid *grid = reinterpret_cast<struct device_grid *>(op);
    const size_t row = o->channels * o->row;
    scratch<float> seen(op->device);
    TRY(seen.take(o->variables * row, WHAT, error));
    for (size_t first = 0; first < row; first += MOST_WIDTH) {
        const size_t width = row - first < MOST_WIDTH ? row - first : MOST_WIDTH;
        TRY(convolve_axes(grid, o->histograms + first, seen + first, row, width, 1, false, error));
    }
    read_histograms<<<blocks_for(o->variables * o->channels), THREADS, 0, op->device->stream>>>(
        seen, *o);
    return DCRF_OK;
}

/* Roundings: 1 - fraction; the scales before and after; the products and sums along each axis; F
 * between two nodes (four), the product, and one to float after the sum over the bins in double. */
static size_t ordered_roundings(const dcrf_operator *base, size_t, bool) {
    const struct device_grid *grid = (const struct device_grid *)base;
    size_t roundings = 1 + 1 + 2 + 4 + 1 + 2;
    for (size_t axis = 0; axis < grid->shape.axes; axis++)
        roundings += 2 * grid->radius[axis] + 2;
    return roundings;
}

/* ---- the diagonal, and in double ------------------------------------------------------------ */

static dcrf_status diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                            dcrf_error *error) {
    (void)workspace;
    struct device_grid *grid = (struct device_grid *)base;
    if (!grid->op.scales) {
        for (size_t a = 0; a < base->variables; a++)
            out[a] = 1;
        return DCRF_OK;
    }
    TRY(device_enter(grid->op.device, error));
    TRY(device_download(grid->op.device, out, grid->op.scales, base->variables * sizeof *out,
                        error));
    for (size_t a = 0; a < base->variables; a++)
        out[a] *= out[a];
    return DCRF_OK;
}

/* The squares of the scales, or ones. */
static __global__ void square_scales(const float *scales, size_t variables, float *out) {
    const size_t a = this_thread();
    if (a < variables)
        out[a] = scales ? scales[a] * scales[a] : 1;
}

static dcrf_status diagonal_on_device(struct device_operator *op, float *out, dcrf_error *error) {
    square_scales<<<blocks_for(op->base.variables), THREADS, 0, op->device->stream>>>(
        op->scales, op->base.variables, out);
    return check(cudaGetLastError(), WHAT, error);
}

struct double_pass {
    const float *taps, *scales; /* scales: NULL if not normalized */
    int radius, length;
    size_t inner, variables, channels;
    bool scales_input, scales_output;
    const double *in;
    double *out;
};

static __global__ void convolve_double(struct double_pass p) {
    const size_t i = this_thread();
    if (i >= p.variables * p.channels)
        return;
    const size_t a = i / p.channels, column = i % p.channels;
    const int at = (int)(a / p.inner % (size_t)p.length);
    const size_t line = a - (size_t)at * p.inner;
    double sum = 0;
    for (int k = max(at - p.radius, 0); k <= min(at + p.radius, p.length - 1); k++) {
        const size_t b = line + (size_t)k * p.inner;
        const double scale = p.scales && p.scales_input ? (double)p.scales[b] : 1.0;
        sum += (double)p.taps[abs(k - at)] * (scale * p.in[b * p.channels + column]);
    }
    p.out[i] = sum * (p.scales && p.scales_output ? (double)p.scales[a] : 1.0);
}

static dcrf_status apply_double(struct device_operator *op, const double *in, double *out,
                                size_t channels, dcrf_error *error) {
    struct device_grid *grid = (struct device_grid *)op;
    const size_t axes = grid->shape.axes, count = op->base.variables * channels;
    scratch<double> between(op->device);
    TRY(between.take(count, WHAT, error));
    struct double_pass p = {};
    p.scales = op->scales;
    p.variables = op->base.variables;
    p.channels = channels;
    p.inner = 1;
    p.in = in;
    for (size_t axis = 0; axis < axes; axis++) {
        p.taps = grid->taps[axis];
        p.radius = (int)grid->radius[axis];
        p.length = (int)grid->shape.size[axis];
        p.scales_input = axis == 0;
        p.scales_output = axis + 1 == axes;
        p.out = (axes - axis) % 2 == 1 ? out : between; /* the last pass writes to out */
        convolve_double<<<blocks_for(count), THREADS, 0, op->device->stream>>>(p);
        p.in = p.out;
        p.inner *= (size_t)p.length;
        TRY(check(cudaGetLastError(), WHAT, error));
    }
    return DCRF_OK;
}

/* ---- the plan ------------------------------------------------------------------------------- */

static void grid_free(dcrf_operator *base) {
    struct device_grid *grid = (struct device_grid *)base;
    dcrf_backend_device *device = grid->op.device;
    cudaSetDevice((int)device->index);
    for (float *taps : grid->taps)
        device_release(device, taps);
    for (float *buffer : grid->buffer)
        device_release(device, buffer);
    operator_clear(&grid->op);
    free(grid);
}

static struct dcrf_operator_methods make_methods() {
    struct dcrf_operator_methods methods = {};
    methods.kind = DCRF_OPERATOR_GRID;
    methods.apply = operator_apply;
    methods.ordered = operator_ordered;
    methods.ordered_block = operator_ordered_block;
    methods.apply_double = operator_apply_double;
    methods.disagreement = operator_disagreement;
    methods.ordered_roundings = ordered_roundings;
    methods.diagonal = diagonal;
    methods.free = grid_free;
    return methods;
}

static const struct dcrf_operator_methods methods = make_methods();

static dcrf_status make_taps(struct device_grid *grid, const struct dcrf_features *features,
                             size_t axis, dcrf_error *error) {
    const double factor = features->axis_factor[axis];
    const size_t radius = dcrf_grid_radius(factor, features->grid.size[axis], features->grid.axes);
    const size_t count = radius + 1 + 2 * OUTPUTS;
    float *taps = static_cast<float *>(calloc(count, sizeof *taps));
    if (!taps)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for a grid operator");
    for (size_t k = 0; k <= radius; k++)
        taps[k] = (float)dcrf_grid_tap(factor, (double)k);
    grid->radius[axis] = radius;
    dcrf_status status =
        count * sizeof *taps > 32 * 1024 /* shared memory left beside the tile */
            ? fail(error, DCRF_ERROR_UNSUPPORTED,
                   "a spatial kernel that reaches %zu variables is not on this device yet: use the "
                   "CPU",
                   radius)
            : device_array(grid->op.device, &grid->taps[axis], count, "a grid operator", error);
    if (status == DCRF_OK)
        status =
            device_upload(grid->op.device, grid->taps[axis], taps, count * sizeof *taps, error);
    free(taps);
    return status;
}

static dcrf_status normalize(struct device_grid *grid, dcrf_error *error) {
    scratch<float> sums(grid->op.device);
    TRY(operator_sum_rows(&grid->op, sums, error));
    return operator_make_scales(&grid->op, sums, error);
}

dcrf_status grid_new(struct device_operator **out, dcrf_backend_device *device,
                     const struct dcrf_features *features, dcrf_normalization normalization,
                     dcrf_error *error) {
    *out = nullptr;
    struct device_grid *grid =
        static_cast<struct device_grid *>(calloc(1, sizeof(struct device_grid)));
    if (!grid)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for a grid operator");
    grid->op.base.methods = &methods;
    grid->op.base.variables = features->variables;
    grid->op.base.bytes = sizeof *grid;
    grid->op.base.device = device;
    grid->op.device = device;
    grid->op.apply_on_device = grid_apply;
    grid->op.ordered_on_device = filter_ordered;
    grid->op.apply_double_on_device = apply_double;
    grid->op.diagonal_on_device = diagonal_on_device;
    grid->shape = features->grid;
    device_hold(device);
    dcrf_status status = DCRF_OK;
    for (size_t axis = 0; axis < features->grid.axes && status == DCRF_OK; axis++)
        status = make_taps(grid, features, axis, error);
    if (status == DCRF_OK && normalization == DCRF_NORMALIZE_SYMMETRIC)
        status = normalize(grid, error);
    if (status < 0) {
        grid_free(&grid->op.base);
        return status;
    }
    *out = &grid->op;
    return DCRF_OK;
}
