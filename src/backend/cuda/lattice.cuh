/* The permutohedral lattice on a device: the same vertices, weights and matrix as
 * filter/lattice/lattice.h.
 *
 * The plan is made by sorting. A vertex is one number, its code: corner k of a simplex has the
 * coordinates key_i = (d + 1) m_i + k, i < d, and its code is the number with the digits m_0, ...,
 * m_{d-1}, k in the mixed radix of the lattice's extent. All (variable, corner) pairs are sorted by
 * code; equal codes are one vertex, vertices are numbered in the order of their codes, and what
 * belongs to one vertex lies together, in the order of the variables. A step along an axis is a
 * difference of codes, so a neighbour is found by bisection.
 *
 * Several pictures share one lattice: the picture is one more digit, the first one, so no vertex
 * has a neighbour of another picture. The order of the codes of a picture, and with it every sum,
 * is that of the picture alone.
 *
 * That of the compatible mean field (dcrf/densecrf.h) is embedded in single precision, may have the
 * vertices of one more point, the origin, and is another operator: one way through the lattice,
 * whatever direction is asked for, times its gain. It has one picture. */
#ifndef DCRF_BACKEND_CUDA_LATTICE_CUH
#define DCRF_BACKEND_CUDA_LATTICE_CUH

#include "backend/cuda/device.cuh"
#include "filter/lattice/lattice.h"

/* Entries of a vertex that are summed up by one warp. Vertices with more are summed up in pieces,
 * and the pieces in their order. */
#define PIECE 32

/* Places in `counts`. */
enum lattice_count { COUNT_VERTICES, COUNT_PIECES, COUNT_SHARED, COUNT_KINDS };

/* Kernels over what is counted on the device have a loop, and blocks for the whole device but no
 * more than there can be work for. */
static inline unsigned looping_blocks(const dcrf_backend_device *device, size_t most) {
    const size_t wanted = (most + THREADS - 1) / THREADS,
                 all = (size_t)device->multiprocessors * 16;
    return (unsigned)(wanted < all ? wanted : all);
}

struct device_lattice {
    struct device_operator op;
    /* There is room for so many vertices, pieces and vertices of more than one piece: as many as
     * there are, or the maximum if the count was not waited for. */
    size_t dimension, corners, vertices, pieces, shared_count;
    uint32_t *counts;        /* on the device: how many of each there are */
    float gain;              /* of the compatible one; 0: it is the symmetric operator */
    size_t entries;          /* all corners of all points */
    uint32_t *corner_vertex; /* points x corners */
    float *corner_weight;
    uint32_t *first; /* vertices + 1 */
    uint32_t *entry_variable;
    float *entry_weight;
    uint32_t *neighbours; /* corners x vertices x 2; a missing one is `vertices` */

    uint32_t *piece_first;  /* vertices + 1: the pieces of a vertex */
    uint32_t *piece_vertex; /* of each piece */
    uint32_t *shared;       /* vertices of more than one piece */

    float *buffer; /* of the blur: see lattice_apply.cu */
    size_t buffer_floats;
    float *partial; /* pieces of vertices that are shared */
    size_t partial_floats;
};

/* lattice_normalize.cu: rows are the features. */
dcrf_status lattice_normalize(struct device_lattice *lattice, const float *rows, size_t pictures,
                              dcrf_normalization normalization, dcrf_error *error);
dcrf_status lattice_normalize_compatible(struct device_lattice *lattice,
                                         dcrf_densecrf_normalization normalization,
                                         dcrf_error *error);
/* lattice_proof.cu: methods. */
dcrf_status lattice_diagonal_there(struct device_operator *op, float *out, dcrf_error *error);
dcrf_status lattice_diagonal(const dcrf_operator *op, dcrf_workspace *workspace, float *diagonal,
                             dcrf_error *error);
dcrf_status lattice_apply_double(struct device_operator *op, const double *in, double *out,
                                 size_t channels, dcrf_error *error);
/* lattice_apply.cu */
extern const struct dcrf_operator_methods device_lattice_methods;
dcrf_status lattice_apply(struct device_operator *op, const struct dcrf_application *application,
                          dcrf_error *error);
dcrf_status lattice_ordered(struct device_operator *op, const struct ordered_group *group,
                            dcrf_error *error);

#endif
