/* The diagonal of a lattice, and its filter in double. */
#include "backend/cuda/lattice.cuh"
#include "backend/cuda/sums.cuh"

#define WHAT "a lattice filter"

/* ---- the diagonal --------------------------------------------------------------------------- */

struct diagonal {
    const uint32_t *neighbours, *corner_vertex;
    const float *corner_weight;
    uint32_t vertices, corners;
    size_t variables;
    float *out;
};

/* lattice_diagonal.c: the weight that remains of a unit after one step along each axis of a set. */
static __device__ float walk(const struct diagonal &d, uint32_t corners, uint32_t from,
                             uint32_t axes, uint32_t direction) {
    float left = 1;
#pragma unroll
    for (uint32_t axis = 0; axis < corners; axis++) {
        if (axes >> axis & 1) {
            from = d.neighbours[((size_t)axis * d.vertices + from) * 2 + direction];
            if (from == d.vertices)
                return 0;
            left *= DCRF_LATTICE_SIDE;
        } else {
            left *= DCRF_LATTICE_CENTRE;
        }
    }
    return left;
}

/* With FIXED corners (6 for colour images) the arrays stay in registers. */
template <uint32_t FIXED> static __global__ void find_diagonal(struct diagonal d) {
    const uint32_t corners = FIXED > 0 ? FIXED : d.corners;
    const size_t a = this_thread();
    if (a >= d.variables)
        return;
    const uint32_t all = (uint32_t)((1ull << corners) - 1);
    uint32_t step[FIXED > 0 ? FIXED : DCRF_MAX_CORNERS];
    const uint32_t *vertex = d.corner_vertex + a * corners;
    const float *weight = d.corner_weight + a * corners;
#pragma unroll
    for (uint32_t k = 0; k < corners; k++) {
        const uint32_t to = vertex[k + 1 < corners ? k + 1 : 0];
        uint32_t axis = 0;
        while (axis + 1 < corners &&
               d.neighbours[((size_t)axis * d.vertices + vertex[k]) * 2 + 1] != to)
            axis++;
        step[k] = 1u << axis;
    }
    float sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < corners; j++) {
        uint32_t axes = 0;
#pragma unroll
        for (uint32_t i = 0; i < corners; i++) {
            const uint32_t k = j + i < corners ? j + i : j + i - corners;
            float reached =
                walk(d, corners, vertex[j], axes, 1) + walk(d, corners, vertex[j], all & ~axes, 0);
            if (axes == 0)
                reached += walk(d, corners, vertex[j], all, 1);
            sum += weight[j] * weight[k] * reached;
            axes |= step[k];
        }
    }
    d.out[a] = sum;
}

dcrf_status lattice_diagonal_on_device(struct device_operator *op, float *out, dcrf_error *error) {
    struct device_lattice *lattice = reinterpret_cast<struct device_lattice *>(op);
    const size_t n = op->base.variables;
    const struct diagonal d = {lattice->neighbours,
                               lattice->corner_vertex,
                               lattice->corner_weight,
                               (uint32_t)lattice->vertices,
                               (uint32_t)lattice->corners,
                               n,
                               out};
    if (lattice->corners == 6)
        find_diagonal<6><<<blocks_for(n), THREADS, 0, op->device->stream>>>(d);
    else
        find_diagonal<0><<<blocks_for(n), THREADS, 0, op->device->stream>>>(d);
    return check(cudaGetLastError(), "the diagonal of a lattice", error);
}

dcrf_status lattice_diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                             dcrf_error *error) {
    (void)workspace;
    struct device_operator *op = (struct device_operator *)base;
    const device_turn turn(op->device);
    scratch<float> diagonal(op->device);
    size_t index;
    TRY(device_enter(op->device, error));
    TRY(array_find(out, &index, error));
    if (index != SIZE_MAX)
        return lattice_diagonal_on_device(op, out, error);
    TRY(diagonal.take(base->variables, "the diagonal of a lattice", error));
    TRY(lattice_diagonal_on_device(op, diagonal, error));
    return device_download(op->device, out, diagonal, base->variables * sizeof *out, error);
}

/* ---- in double ------------------------------------------------------------------------------ */

/* The same matrix in plain loops, for proofs. */
struct double_rows {
    size_t rows, channels;
    const double *in;
    double *out;
};

/* One warp per vertex and channel: some vertices have thousands of entries. */
static __global__ void splat_double(struct double_rows r, const uint32_t *first,
                                    const uint32_t *entry_variable, const float *entry_weight) {
    const size_t i = this_thread() / SUMS_WARP;
    if (i >= r.rows * r.channels)
        return; /* whole warps */
    const size_t vertex = i / r.channels, column = i % r.channels;
    double sum = 0;
    for (uint32_t e = first[vertex] + threadIdx.x % SUMS_WARP; e < first[vertex + 1];
         e += SUMS_WARP)
        sum += (double)entry_weight[e] * r.in[entry_variable[e] * r.channels + column];
    sum = sum_of_lanes<SUMS_WARP>(sum);
    if (threadIdx.x % SUMS_WARP == 0)
        r.out[i] = sum;
}

static __global__ void blur_double(struct double_rows r, const uint32_t *neighbours) {
    const size_t i = this_thread();
    if (i >= r.rows * r.channels)
        return;
    const size_t vertex = i / r.channels, column = i % r.channels;
    const uint32_t before = neighbours[2 * vertex], after = neighbours[2 * vertex + 1];
    const double low = before < r.rows ? r.in[before * r.channels + column] : 0;
    const double high = after < r.rows ? r.in[after * r.channels + column] : 0;
    r.out[i] = (double)DCRF_LATTICE_CENTRE * r.in[i] + (double)DCRF_LATTICE_SIDE * (low + high);
}

static __global__ void slice_double(struct double_rows r, const uint32_t *corner_vertex,
                                    const float *corner_weight, uint32_t corners, bool accumulate) {
    const size_t i = this_thread();
    if (i >= r.rows * r.channels)
        return;
    const size_t a = i / r.channels, column = i % r.channels;
    double sum = accumulate ? r.out[i] : 0;
    for (size_t e = a * corners; e < (a + 1) * corners; e++)
        sum += 0.5 * (double)corner_weight[e] * r.in[corner_vertex[e] * r.channels + column];
    r.out[i] = sum;
}

dcrf_status lattice_apply_double(struct device_operator *op, const double *in, double *out,
                                 size_t channels, dcrf_error *error) {
    struct device_lattice *lattice = (struct device_lattice *)op;
    dcrf_backend_device *device = op->device;
    cudaStream_t stream = device->stream;
    const size_t n = op->base.variables, count = n * channels;
    const size_t rows = lattice->vertices, axes = lattice->corners;
    scratch<double> buffer(device);
    TRY(buffer.take(3 * rows * channels, WHAT, error));
    double *splat = buffer, *work[2] = {buffer + rows * channels, buffer + 2 * rows * channels};
    splat_double<<<blocks_for(rows * channels * SUMS_WARP), THREADS, 0, stream>>>(
        {rows, channels, in, splat}, lattice->first, lattice->entry_variable,
        lattice->entry_weight);
    for (int upwards = 0; upwards < 2; upwards++) {
        const double *from = splat;
        for (size_t i = 0; i < axes; i++) {
            const size_t axis = upwards ? i : axes - 1 - i;
            blur_double<<<blocks_for(rows * channels), THREADS, 0, stream>>>(
                {rows, channels, from, work[i % 2]}, lattice->neighbours + axis * rows * 2);
            from = work[i % 2];
        }
        slice_double<<<blocks_for(count), THREADS, 0, stream>>>(
            {n, channels, from, out}, lattice->corner_vertex, lattice->corner_weight,
            (uint32_t)axes, upwards == 1);
    }
    return check(cudaGetLastError(), WHAT, error);
}
