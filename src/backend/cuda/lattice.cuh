/* The permutohedral lattice on a device, with the same vertices, weights and matrix as
 * filter/lattice/lattice.h.
 *
 * The plan is made by sorting. A vertex is one number, its code: corner k of a simplex has the
 * coordinates key_i = (d + 1) m_i + k, i < d, and its code is the number with the digits m_0, ...,
 * m_{d-1}, k in the mixed radix of the lattice's extent. All (variable, corner) pairs are sorted by
 * code; equal codes are one vertex, vertices are numbered in the order of their codes, and the
 * entries of a vertex are contiguous, in the order of the variables. A step along an axis is a
 * difference of codes, so a neighbour is found by bisection.
 *
 * Several pictures share one lattice: the picture is an additional leading digit, so no vertex has
 * a neighbour in another picture. The order of a picture's codes, and so every sum, is the same as
 * for that picture alone.
 *
 * The lattice of the compatible mean field (dcrf/densecrf.h) is embedded in single precision, may
 * include the origin as an additional point, and is a different operator: a single pass through the
 * lattice, whatever direction is asked for, times its gain. It has one picture. */
#ifndef DCRF_BACKEND_CUDA_LATTICE_CUH
#define DCRF_BACKEND_CUDA_LATTICE_CUH

#include "backend/cuda/device.cuh"
#include "filter/lattice/lattice.h"

/* Entries of a vertex that one warp sums. Vertices with more are summed in pieces, which are then
 * added in order. */
#define PIECE 32

/* Indices into `counts`. */
enum lattice_count { COUNT_VERTICES, COUNT_PIECES, COUNT_SHARED, COUNT_KINDS };

/* Kernels whose work is counted on the device loop over it, with enough blocks to fill the device
 * but no more than `most` items can use. */
static inline unsigned looping_blocks(const dcrf_backend_device *device, size_t most) {
    const size_t wanted = (most + THREADS - 1) / THREADS,
                 all = (size_t)device->multiprocessors * 16;
    return (unsigned)(wanted < all ? wanted : all);
}

struct device_lattice {
    struct device_operator op;
    /* Capacities for vertices, pieces and vertices of more than one piece: the actual counts, or
     * upper bounds if the counts were not waited for. */
    size_t dimension, corners, vertices, pieces, shared_count;
    uint32_t *counts;        /* on the device: the actual counts */
    float gain;              /* of the compatible operator; 0: this is the symmetric one */
    size_t entries;          /* corners of all points */
    uint32_t *corner_vertex; /* points x corners */
    float *corner_weight;
    uint32_t *first; /* vertices + 1 */
    uint32_t *entry_variable;
    float *entry_weight;
    uint32_t *neighbours; /* corners x vertices x 2; `vertices`: missing */

    uint32_t *piece_first;  /* vertices + 1 entries: the first piece of each vertex */
    uint32_t *piece_vertex; /* of each piece */
    uint32_t *shared;       /* vertices of more than one piece */

    float *buffer; /* for the blur: see lattice_apply.cu */
    size_t buffer_floats;
    float *partial; /* sums of the pieces of shared vertices */
    size_t partial_floats;
};

/* lattice_normalize.cu; `rows` are the features. */
dcrf_status lattice_normalize(struct device_lattice *lattice, const float *rows, size_t pictures,
                              dcrf_normalization normalization, dcrf_error *error);
dcrf_status lattice_normalize_compatible(struct device_lattice *lattice,
                                         dcrf_densecrf_normalization normalization,
                                         dcrf_error *error);
/* lattice_proof.cu: methods. */
dcrf_status lattice_diagonal_on_device(struct device_operator *op, float *out, dcrf_error *error);
dcrf_status lattice_diagonal(const dcrf_operator *op, dcrf_workspace *workspace, float *diagonal,
                             dcrf_error *error);
dcrf_status lattice_apply_double(struct device_operator *op, const double *in, double *out,
                                 size_t channels, dcrf_error *error);
/* lattice_apply.cu */
extern const struct dcrf_operator_methods device_lattice_methods;
dcrf_status lattice_apply(struct device_operator *op, const struct dcrf_application *application,
                          dcrf_error *error);
dcrf_status lattice_ordered(struct device_operator *op, const struct ordered_batch *batch,
                            dcrf_error *error);

#endif
