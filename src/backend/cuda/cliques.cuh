/* Cliques on a device. Everything is a sum over the members of a clique, per label, computed in
 * pieces of a few members; the pieces are then added in order. Rows of labels have the model's
 * stride. */
#ifndef DCRF_BACKEND_CUDA_CLIQUES_CUH
#define DCRF_BACKEND_CUDA_CLIQUES_CUH

#include "backend/cuda/device.cuh"

struct device_cliques {
    dcrf_backend_device *device; /* NULL: no cliques */
    size_t variables, labels, stride;
    size_t count, pieces;
    uint32_t *members;
    uint32_t *first_member; /* per piece; pieces + 1 entries */
    uint32_t *first_piece;  /* per clique; count + 1 entries */
    uint32_t *clique_of;    /* variable -> clique or DCRF_NO_CLIQUE */
    double *costs;
    double *piece_sums; /* one row per piece */
    double *logs;       /* mean field: one row per clique */
    double *z, *h;      /* QP: one row per clique */
    double *vertex_h;
    double *partial; /* sums of thread blocks */
};

/* For marginals with these dimensions. Holds the device. On failure nothing is held. */
dcrf_status device_cliques_take(struct device_cliques *cliques, dcrf_backend_device *device,
                                size_t variables, size_t labels, size_t stride,
                                const struct dcrf_cliques *given, dcrf_error *error);
void device_cliques_release(struct device_cliques *cliques);

/* All of these only enqueue work; sums are written to device memory. */

/* Mean field: what the cliques add to the logits given q, and their expected cost. */
dcrf_status cliques_update(const struct device_cliques *cliques, const float *q, float *extra,
                           double *cost, dcrf_error *error);

/* QP: h and the best z for y; a step of z and h towards the vertex; and h of a new vertex, with the
 * cliques' parts of f, L and Q (backend/clique_terms.h). */
dcrf_status cliques_start(const struct device_cliques *cliques, const float *y, dcrf_error *error);
dcrf_status cliques_move(const struct device_cliques *cliques, double step, dcrf_error *error);
dcrf_status cliques_see_vertex(const struct device_cliques *cliques, const float *vertex,
                               double *parts, dcrf_error *error);

/* The LP: v = the projection of -stiffness / epsilon z, clique by clique, onto the set of the min
 * form (backend/cpu/clique_dual.c). Rows outside the cliques are left unchanged. */
dcrf_status cliques_project(const struct device_cliques *cliques, const double *stiffness,
                            double epsilon, const float *z, double *v, dcrf_error *error);

/* For its inner steps (backend/cpu/lp_majorant.c): out += stiffness times the mean of `in` over the
 * variable's clique. */
dcrf_status cliques_add_means(const struct device_cliques *cliques, const double *stiffness,
                              const float *in, float *out, dcrf_error *error);

#endif
