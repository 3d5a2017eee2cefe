#include "backend/cuda/cliques.cuh"

#include "backend/clique_terms.h"
#include "backend/cuda/sums.cuh"

#include <vector>

#define WHAT "cliques"
/* Members per piece: a multiple of DCRF_FACTORS_PER_LOG, so that products are grouped as on the
 * CPU. */
#define MEMBERS_PER_PIECE (4 * DCRF_FACTORS_PER_LOG)

/* ---- memory --------------------------------------------------------------------------------- */

void device_cliques_release(struct device_cliques *cliques) {
    if (!cliques->device)
        return;
    void *const held[] = {
        cliques->members, cliques->first_member, cliques->first_piece, cliques->clique_of,
        cliques->costs,   cliques->piece_sums,   cliques->logs,        cliques->z,
        cliques->h,       cliques->vertex_h,     cliques->partial};
    for (void *memory : held)
        device_release(cliques->device, memory);
    device_drop(cliques->device);
    *cliques = {};
}

/* Cut the cliques into pieces. */
static dcrf_status take_pieces(struct device_cliques *cliques, const struct dcrf_cliques *given,
                               dcrf_error *error) {
    std::vector<uint32_t> first_member, first_piece, clique_of(cliques->variables, DCRF_NO_CLIQUE);
    for (size_t p = 0; p < given->count; p++) {
        first_piece.push_back((uint32_t)first_member.size());
        for (size_t c = given->offsets[p]; c < given->offsets[p + 1]; c += MEMBERS_PER_PIECE)
            first_member.push_back((uint32_t)c);
        for (size_t c = given->offsets[p]; c < given->offsets[p + 1]; c++)
            clique_of[given->members[c]] = (uint32_t)p;
    }
    cliques->pieces = first_member.size();
    first_piece.push_back((uint32_t)first_member.size());
    first_member.push_back((uint32_t)given->offsets[given->count]);
    dcrf_backend_device *device = cliques->device;
    TRY(device_copy(device, &cliques->first_member, first_member.data(), first_member.size(), WHAT,
                    error));
    TRY(device_copy(device, &cliques->first_piece, first_piece.data(), first_piece.size(), WHAT,
                    error));
    return device_copy(device, &cliques->clique_of, clique_of.data(), clique_of.size(), WHAT,
                       error);
}

static size_t entries(const struct device_cliques *cliques) {
    return cliques->count * cliques->stride;
}

static dcrf_status take(struct device_cliques *cliques, const struct dcrf_cliques *given,
                        dcrf_error *error) {
    dcrf_backend_device *device = cliques->device;
    const size_t rows = entries(cliques), members = given->offsets[given->count];
    TRY(take_pieces(cliques, given, error));
    TRY(device_copy<uint32_t>(device, &cliques->members, given->members, members, WHAT, error));
    TRY(device_copy<double>(device, &cliques->costs, given->costs, given->count, WHAT, error));
    TRY(device_array(device, &cliques->piece_sums, cliques->pieces * cliques->stride, WHAT, error));
    for (double **block : {&cliques->logs, &cliques->z, &cliques->h, &cliques->vertex_h})
        TRY(device_array(device, block, rows, WHAT, error));
    return device_array(device, &cliques->partial, blocks_for(rows) * (size_t)DCRF_QP_PARTS, WHAT,
                        error);
}

dcrf_status device_cliques_take(struct device_cliques *cliques, dcrf_backend_device *device,
                                size_t variables, size_t labels, size_t stride,
                                const struct dcrf_cliques *given, dcrf_error *error) {
    *cliques = {device, variables, labels, stride, given->count};
    device_hold(device);
    const dcrf_status status = take(cliques, given, error);
    if (status < 0)
        device_cliques_release(cliques);
    return status;
}

/* ---- sums over members ---------------------------------------------------------------------- */

enum term { LOGARITHM, MISSING }; /* ln q; 1 - y */

/* One thread per piece and label. */
template <enum term TERM>
static __global__ void sum_pieces(struct device_cliques cliques, const float *block) {
    const size_t at = this_thread(), piece = at / cliques.stride;
    if (piece >= cliques.pieces)
        return;
    const float *column = block + at % cliques.stride;
    const uint32_t end = cliques.first_member[piece + 1];
    double sum = 0;
    for (uint32_t first = cliques.first_member[piece]; first < end; first += DCRF_FACTORS_PER_LOG) {
        const uint32_t last = min(first + DCRF_FACTORS_PER_LOG, end);
        double product = 1;
        for (uint32_t c = first; c < last; c++) {
            const float value = column[cliques.members[c] * cliques.stride];
            if (TERM == LOGARITHM)
                product *= (double)dcrf_positive(value);
            else
                sum += 1 - (double)value;
        }
        if (TERM == LOGARITHM)
            sum += log(product);
    }
    cliques.piece_sums[at] = sum;
}

/* The sum for a clique and a label, from its pieces. */
static __device__ double sum_of_pieces(const struct device_cliques &cliques, size_t clique,
                                       size_t label) {
    double sum = 0;
    for (uint32_t piece = cliques.first_piece[clique]; piece < cliques.first_piece[clique + 1];
         piece++)
        sum += cliques.piece_sums[piece * cliques.stride + label];
    return sum;
}

static dcrf_status launch_pieces(const struct device_cliques *cliques, enum term term,
                                 const float *block, dcrf_error *error) {
    const unsigned blocks = blocks_for(cliques->pieces * cliques->stride);
    cudaStream_t stream = cliques->device->stream;
    if (term == LOGARITHM)
        sum_pieces<LOGARITHM><<<blocks, THREADS, 0, stream>>>(*cliques, block);
    else
        sum_pieces<MISSING><<<blocks, THREADS, 0, stream>>>(*cliques, block);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- mean field ----------------------------------------------------------------------------- */

/* One thread per clique and label: its part of C (1 - sum_i prod Q). */
static __global__ void sum_logarithms(struct device_cliques cliques) {
    const size_t at = this_thread(), clique = at / cliques.stride, label = at % cliques.stride;
    double cost[1] = {0};
    if (clique < cliques.count && label < cliques.labels) {
        const double sum = sum_of_pieces(cliques, clique, label);
        cliques.logs[at] = sum;
        cost[0] = cliques.costs[clique] * ((label == 0) - exp(sum));
    }
    write_block_sums<1, THREADS>(cost, cliques.partial);
}

/* One thread per variable and label. */
static __global__ void find_extra(struct device_cliques cliques, const float *q, float *extra) {
    const size_t at = this_thread(), variable = at / cliques.stride, label = at % cliques.stride;
    if (variable >= cliques.variables)
        return;
    const uint32_t clique = cliques.clique_of[variable];
    double value = 0;
    if (clique != DCRF_NO_CLIQUE && label < cliques.labels) {
        const double sum = cliques.logs[clique * cliques.stride + label];
        if (!dcrf_is_nothing(sum))
            value = cliques.costs[clique] * dcrf_without(sum, q[at]);
    }
    extra[at] = (float)value;
}

dcrf_status cliques_update(const struct device_cliques *cliques, const float *q, float *extra,
                           double *cost, dcrf_error *error) {
    cudaStream_t stream = cliques->device->stream;
    const unsigned blocks = blocks_for(entries(cliques));
    TRY(launch_pieces(cliques, LOGARITHM, q, error));
    sum_logarithms<<<blocks, THREADS, 0, stream>>>(*cliques);
    add_block_sums<<<1, THREADS, 0, stream>>>(cliques->partial, blocks, cost);
    find_extra<<<blocks_for(cliques->variables * cliques->stride), THREADS, 0, stream>>>(*cliques,
                                                                                         q, extra);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- QP ------------------------------------------------------------------------------------- */

static __global__ void begin(struct device_cliques cliques) {
    const size_t at = this_thread();
    if (at >= cliques.count * cliques.stride)
        return;
    const double h = sum_of_pieces(cliques, at / cliques.stride, at % cliques.stride);
    cliques.h[at] = h;
    cliques.z[at] = dcrf_best_z(h);
}

dcrf_status cliques_start(const struct device_cliques *cliques, const float *y, dcrf_error *error) {
    TRY(launch_pieces(cliques, MISSING, y, error));
    begin<<<blocks_for(entries(cliques)), THREADS, 0, cliques->device->stream>>>(*cliques);
    return check(cudaGetLastError(), WHAT, error);
}

static __global__ void take_step(struct device_cliques cliques, double step) {
    const size_t at = this_thread();
    if (at >= cliques.count * cliques.stride)
        return;
    const double z = cliques.z[at], h = cliques.h[at];
    cliques.z[at] = z + step * (dcrf_best_z(h) - z);
    cliques.h[at] = h + step * (cliques.vertex_h[at] - h);
}

dcrf_status cliques_move(const struct device_cliques *cliques, double step, dcrf_error *error) {
    take_step<<<blocks_for(entries(cliques)), THREADS, 0, cliques->device->stream>>>(*cliques,
                                                                                     step);
    return check(cudaGetLastError(), WHAT, error);
}

static __global__ void sum_parts(struct device_cliques cliques) {
    const size_t at = this_thread(), clique = at / cliques.stride, label = at % cliques.stride;
    double parts[DCRF_QP_PARTS] = {0};
    if (clique < cliques.count) {
        const double vertex_h = sum_of_pieces(cliques, clique, label);
        cliques.vertex_h[at] = vertex_h;
        if (label < cliques.labels) {
            parts[DCRF_QP_OBJECTIVE] = label > 0 ? -1 : 0; /* the constant -(M - 1) */
            dcrf_add_qp_terms(cliques.z[at], cliques.h[at], vertex_h, parts);
            for (int part = 0; part < DCRF_QP_PARTS; part++)
                parts[part] *= cliques.costs[clique];
        }
    }
    write_block_sums<DCRF_QP_PARTS, THREADS>(parts, cliques.partial);
}

dcrf_status cliques_see_vertex(const struct device_cliques *cliques, const float *vertex,
                               double *parts, dcrf_error *error) {
    cudaStream_t stream = cliques->device->stream;
    const unsigned blocks = blocks_for(entries(cliques));
    TRY(launch_pieces(cliques, MISSING, vertex, error));
    sum_parts<<<blocks, THREADS, 0, stream>>>(*cliques);
    add_block_sums<<<DCRF_QP_PARTS, THREADS, 0, stream>>>(cliques->partial, blocks, parts);
    return check(cudaGetLastError(), WHAT, error);
}
