/* Cliques on a device. Everything is a sum over the members of a clique, label by label: in pieces
 * of a few members, and the pieces in their order. Rows of labels have the model's stride. */
#ifndef DCRF_BACKEND_CUDA_CLIQUES_CUH
#define DCRF_BACKEND_CUDA_CLIQUES_CUH

#include "backend/cuda/device.cuh"

struct device_cliques {
    dcrf_backend_device *device; /* NULL: there are none */
    size_t variables, labels, stride;
    size_t count, pieces;
    uint32_t *members;
    uint32_t *first_member; /* of a piece; pieces + 1 */
    uint32_t *first_piece;  /* of a clique; count + 1 */
    uint32_t *clique_of;    /* variable -> clique, DCRF_NO_CLIQUE: none */
    double *costs;
    double *piece_sums; /* a row per piece */
    double *logs;       /* of mean field, a row per clique */
    double *z, *h;      /* of QP, likewise */
    double *vertex_h;
    double *partial; /* of blocks of threads */
};

/* Of blocks with so many variables and labels. Holds the device. On failure nothing is held. */
dcrf_status device_cliques_take(struct device_cliques *cliques, dcrf_backend_device *device,
                                size_t variables, size_t labels, size_t stride,
                                const struct dcrf_cliques *given, dcrf_error *error);
void device_cliques_release(struct device_cliques *cliques);

/* All of these only put work into the stream; sums are of the device. */

/* Mean field: what the cliques add to the logits after q, and their expected cost. */
dcrf_status cliques_update(const struct device_cliques *cliques, const float *q, float *extra,
                           double *cost, dcrf_error *error);

/* QP: h and the best z of y; a step of z and h towards the vertex; and h of another vertex, with
 * the parts of f, L and Q (energy/clique_terms.h). */
dcrf_status cliques_start(const struct device_cliques *cliques, const float *y, dcrf_error *error);
dcrf_status cliques_move(const struct device_cliques *cliques, double step, dcrf_error *error);
dcrf_status cliques_see_vertex(const struct device_cliques *cliques, const float *vertex,
                               double *parts, dcrf_error *error);

/* The LP: v = the projection of -stiffness / epsilon z, clique by clique, onto the set of the min
 * form (backend/cpu/clique_dual.c). Rows outside of the cliques stay as they are. */
dcrf_status cliques_project(const struct device_cliques *cliques, const double *stiffness,
                            double epsilon, const float *z, double *v, dcrf_error *error);

/* And for its inner steps (backend/cpu/lp_majorant.c): out += stiffness times the mean of `in` over
 * the variable's clique. */
dcrf_status cliques_add_means(const struct device_cliques *cliques, const double *stiffness,
                              const float *in, float *out, dcrf_error *error);

#endif
