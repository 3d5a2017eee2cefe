/* QP on a device: the Frank-Wolfe method of qp/qp.c, with y, its field, the vertex and the cliques'
 * z and h on the device. The host gets f and L at a point, and Q along the segment to its vertex,
 * and chooses the step. */
#include "backend/clique_terms.h"
#include "backend/cuda/iterate.cuh"
#include "backend/cuda/sums.cuh"

#define WHAT "the QP relaxation"
/* Threads per row. */
#define LANES 8

/* What the host gets: the sums at a point, then its cliques' parts, then the sum along the
 * segment. */
enum { POINT, CLIQUES = POINT + DCRF_BACKEND_QP_SUMS, WAY = CLIQUES + DCRF_QP_PARTS, SUMS };

/* Device blocks, in float4. */
struct rows {
    size_t variables;
    uint32_t labels, stride;
    const float4 *unary;
    float4 *y, *field, *vertex;
    struct field_parts vertex_field;
    float step, slope, same_label_factor, all_factor;
    /* NULL without cliques. */
    const uint32_t *clique_of;
    const double *z, *costs;
};

static struct rows rows_of(const dcrf_backend_iterate *it) {
    struct rows r = {};
    r.variables = it->variables;
    r.labels = (uint32_t)it->labels;
    r.stride = (uint32_t)(it->stride / 4);
    r.unary = reinterpret_cast<const float4 *>(it->unary);
    r.y = reinterpret_cast<float4 *>(it->y);
    r.field = reinterpret_cast<float4 *>(it->qp.field);
    r.vertex = reinterpret_cast<float4 *>(it->qp.vertex);
    r.slope = 2 * it->same_label_factor;
    r.same_label_factor = it->same_label_factor;
    r.all_factor = it->all_factor;
    return r;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static __device__ float4 between(float4 from, float4 to, float step) {
    return make_float4(from.x + step * (to.x - from.x), from.y + step * (to.y - from.y),
                       from.z + step * (to.z - from.z), from.w + step * (to.w - from.w));
}

/* Take the step, then compute f, L and the vertex at the new y. The old vertex's field is in the
 * first part of vertex_field. */
static __global__ void move_rows(struct rows r, double *partial) {
    const size_t row = this_thread() / LANES;
    const uint32_t lane = threadIdx.x % LANES;
    const bool has_row = row < r.variables;
    const uint32_t clique = has_row && r.clique_of ? r.clique_of[row] : DCRF_NO_CLIQUE;
    const double *z = clique != DCRF_NO_CLIQUE ? r.z + (size_t)clique * 4 * r.stride : nullptr;
    const double cost = z ? r.costs[clique] : 0;
    float smallest = INFINITY;
    uint32_t best = UINT32_MAX;
    double sums[DCRF_BACKEND_QP_SUMS] = {0};
    for (uint32_t column = lane; has_row && column < r.stride; column += LANES) {
        const size_t at = row * r.stride + column;
        const float4 y4 = between(r.y[at], r.vertex[at], r.step);
        const float4 field4 = between(r.field[at], r.vertex_field.part[0][at], r.step);
        const float4 unary4 = r.unary[at];
        r.y[at] = y4;
        r.field[at] = field4;
        const float y[4] = {y4.x, y4.y, y4.z, y4.w};
        const float field[4] = {field4.x, field4.y, field4.z, field4.w};
        const float unary[4] = {unary4.x, unary4.y, unary4.z, unary4.w};
        for (uint32_t i = 0; i < 4 && 4 * column + i < r.labels; i++) {
            float gradient = unary[i] + r.slope * field[i];
            if (z)
                gradient -= (float)(cost * (1 - z[4 * column + i]));
            if (gradient < smallest) {
                smallest = gradient;
                best = 4 * column + i;
            }
            sums[DCRF_BACKEND_QP_OBJECTIVE] +=
                (double)y[i] * (double)unary[i] +
                (double)field[i] *
                    ((double)r.all_factor + (double)r.same_label_factor * (double)y[i]);
            sums[DCRF_BACKEND_QP_LINEAR] -= (double)y[i] * (double)gradient;
        }
    }
    lowest_of_lanes<LANES>(&smallest, &best);
    best = best < r.labels ? best : 0; /* if no gradient is finite */
    for (uint32_t column = lane; has_row && column < r.stride; column += LANES)
        r.vertex[row * r.stride + column] =
            make_float4(best == 4 * column, best == 4 * column + 1, best == 4 * column + 2,
                        best == 4 * column + 3);
    if (has_row && lane == 0)
        sums[DCRF_BACKEND_QP_LINEAR] += (double)smallest;
    write_block_sums<DCRF_BACKEND_QP_SUMS, THREADS>(sums, partial);
}

/* The field of y, from its parts; one thread per four labels. */
static __global__ void finish_field(struct rows r, struct field_parts parts) {
    const size_t at = this_thread(), row = at / r.stride;
    if (row < r.variables)
        r.field[at] = field_at(parts, row, at, r.y[at]);
}

/* Write the field of the vertex s into the first of its parts, and sum (s - y) (field of s - field
 * of y). */
static __global__ void bend_rows(struct rows r, double *partial) {
    const size_t at = this_thread(), row = at / r.stride;
    double sums[1] = {0};
    if (row < r.variables) {
        const float4 s = r.vertex[at], y = r.y[at], field = r.field[at];
        const float4 of_vertex = field_at(r.vertex_field, row, at, s);
        r.vertex_field.part[0][at] = of_vertex;
        sums[0] = ((double)s.x - (double)y.x) * ((double)of_vertex.x - (double)field.x) +
                  ((double)s.y - (double)y.y) * ((double)of_vertex.y - (double)field.y) +
                  ((double)s.z - (double)y.z) * ((double)of_vertex.z - (double)field.z) +
                  ((double)s.w - (double)y.w) * ((double)of_vertex.w - (double)field.w);
    }
    write_block_sums<1, THREADS>(sums, partial);
}

/* ---- launches ------------------------------------------------------------------------------- */

static size_t move_blocks(const dcrf_backend_iterate *it) {
    return blocks_for(it->variables * LANES);
}

static size_t column_blocks(const dcrf_backend_iterate *it) {
    return blocks_for(it->variables * it->stride / 4);
}

static dcrf_status send_sums(dcrf_backend_iterate *it, size_t first, size_t count,
                             dcrf_error *error) {
    return check(cudaMemcpyAsync(it->device->few + first, it->qp.sums + first,
                                 count * sizeof(double), cudaMemcpyDeviceToHost,
                                 it->device->stream),
                 WHAT, error);
}

/* Take a step and find the vertex at the new point, with or without the cliques. */
static dcrf_status launch_move(dcrf_backend_iterate *it, double step, bool with_cliques,
                               dcrf_error *error) {
    struct rows r = rows_of(it);
    cudaStream_t stream = it->device->stream;
    r.vertex_field.part[0] = reinterpret_cast<float4 *>(it->kernels.messages[0]);
    r.step = (float)step;
    if (with_cliques) {
        r.clique_of = it->cliques.clique_of;
        r.z = it->cliques.z;
        r.costs = it->cliques.costs;
    }
    move_rows<<<(unsigned)move_blocks(it), THREADS, 0, stream>>>(r, it->qp.partial);
    add_block_sums<<<DCRF_BACKEND_QP_SUMS, THREADS, 0, stream>>>(it->qp.partial, move_blocks(it),
                                                                 it->qp.sums + POINT);
    TRY(check(cudaGetLastError(), WHAT, error));
    return with_cliques
               ? cliques_see_vertex(&it->cliques, it->qp.vertex, it->qp.sums + CLIQUES, error)
               : DCRF_OK;
}

static dcrf_status launch_bend(dcrf_backend_iterate *it, dcrf_error *error) {
    struct rows r = rows_of(it);
    cudaStream_t stream = it->device->stream;
    const size_t blocks = column_blocks(it);
    TRY(field_send(&it->kernels, it->qp.vertex, &r.vertex_field, error));
    bend_rows<<<(unsigned)blocks, THREADS, 0, stream>>>(r, it->qp.partial);
    add_block_sums<<<1, THREADS, 0, stream>>>(it->qp.partial, blocks, it->qp.sums + WAY);
    TRY(check(cudaGetLastError(), WHAT, error));
    return send_sums(it, WAY, 1, error);
}

/* ---- the interface -------------------------------------------------------------------------- */

void qp_release(dcrf_backend_iterate *it) {
    struct qp *qp = &it->qp;
    if (qp->bend)
        cudaGraphExecDestroy(qp->bend);
    void *const held[] = {qp->field, qp->vertex, qp->partial, qp->sums};
    for (void *memory : held)
        device_release(it->device, memory);
    *qp = {};
}

static dcrf_status take_memory(dcrf_backend_iterate *it, dcrf_error *error) {
    dcrf_backend_device *device = it->device;
    struct qp *qp = &it->qp;
    const size_t floats = it->variables * it->stride;
    const size_t of_rows = move_blocks(it) * DCRF_BACKEND_QP_SUMS, of_columns = column_blocks(it);
    TRY(device_array(device, &qp->field, floats, WHAT, error));
    TRY(device_array(device, &qp->vertex, floats, WHAT, error));
    TRY(device_array(device, &qp->partial, of_rows > of_columns ? of_rows : of_columns, WHAT,
                     error));
    /* The cliques' parts stay zero without cliques. */
    return device_zeros(device, &qp->sums, SUMS, WHAT, error);
}

static dcrf_status need_memory(dcrf_backend_iterate *it, dcrf_error *error) {
    if (it->qp.sums)
        return DCRF_OK;
    const dcrf_status status = take_memory(it, error);
    if (status < 0)
        qp_release(it);
    return status;
}

/* The minimum of the unaries is the vertex at y = 0 with a zero field. */
static dcrf_status begin_by_unary(dcrf_backend_iterate *it, dcrf_error *error) {
    const size_t bytes = it->variables * it->stride * sizeof(float);
    cudaStream_t stream = it->device->stream;
    for (float *block : {it->y, it->qp.field, it->qp.vertex, it->kernels.messages[0]})
        TRY(check(cudaMemsetAsync(block, 0, bytes, stream), WHAT, error));
    TRY(launch_move(it, 0, false, error));
    return check(cudaMemcpyAsync(it->y, it->qp.vertex, bytes, cudaMemcpyDeviceToDevice, stream),
                 WHAT, error);
}

/* f and L at the last point, including the cliques' parts. */
static dcrf_status read_point(dcrf_backend_iterate *it, double *sums, dcrf_error *error) {
    TRY(send_sums(it, POINT, WAY - POINT, error));
    TRY(check(cudaStreamSynchronize(it->device->stream), WHAT, error));
    const double *few = it->device->few;
    sums[DCRF_BACKEND_QP_OBJECTIVE] =
        few[POINT + DCRF_BACKEND_QP_OBJECTIVE] + few[CLIQUES + DCRF_QP_OBJECTIVE];
    sums[DCRF_BACKEND_QP_LINEAR] =
        few[POINT + DCRF_BACKEND_QP_LINEAR] + few[CLIQUES + DCRF_QP_LINEAR];
    it->qp.quadratic = few[CLIQUES + DCRF_QP_QUADRATIC];
    return DCRF_OK;
}

dcrf_status qp_start(dcrf_backend_iterate *it, const float *y, double *sums, dcrf_error *error) {
    const bool has_cliques = it->cliques.count > 0;
    const size_t bytes = it->variables * it->stride * sizeof(float);
    struct field_parts parts;
    TRY(device_enter(it->device, error));
    TRY(need_memory(it, error));
    TRY(y ? device_upload(it->device, it->y, y, bytes, error) : begin_by_unary(it, error));
    TRY(field_send(&it->kernels, it->y, &parts, error));
    finish_field<<<(unsigned)column_blocks(it), THREADS, 0, it->device->stream>>>(rows_of(it),
                                                                                  parts);
    TRY(check(cudaGetLastError(), WHAT, error));
    if (y) /* a step of zero still reads the vertex */
        TRY(check(cudaMemsetAsync(it->qp.vertex, 0, bytes, it->device->stream), WHAT, error));
    if (has_cliques)
        TRY(cliques_start(&it->cliques, it->y, error));
    TRY(launch_move(it, 0, has_cliques, error));
    return read_point(it, sums, error);
}

dcrf_status qp_bend(dcrf_backend_iterate *it, double *quadratic, dcrf_error *error) {
    TRY(device_enter(it->device, error));
    TRY(iterate_repeat(it, launch_bend, &it->qp.bend, error));
    TRY(check(cudaStreamSynchronize(it->device->stream), WHAT, error));
    *quadratic = (double)it->same_label_factor * it->device->few[WAY] + it->qp.quadratic;
    return DCRF_OK;
}

dcrf_status qp_move(dcrf_backend_iterate *it, double step, double *sums, dcrf_error *error) {
    const bool has_cliques = it->cliques.count > 0;
    TRY(device_enter(it->device, error));
    if (has_cliques)
        TRY(cliques_move(&it->cliques, step, error));
    TRY(launch_move(it, step, has_cliques, error));
    return read_point(it, sums, error);
}
