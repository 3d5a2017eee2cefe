/* The dual points of the cliques: projections onto their set, and its vertices. */
#ifndef DCRF_BACKEND_CPU_CLIQUE_DUAL_H
#define DCRF_BACKEND_CPU_CLIQUE_DUAL_H

#include "backend/dual.h"

/* Scratch memory: per worker, one column of values of a clique. */
struct dcrf_clique_dual {
    const struct dcrf_dual_space *space;
    float *columns; /* workers x the largest clique's members */
    double *labels; /* workers x labels: the centres m_i of the spread form */
};

dcrf_status dcrf_clique_dual_init(struct dcrf_clique_dual *cliques,
                                  const struct dcrf_dual_space *space, dcrf_error *error);
void dcrf_clique_dual_clear(struct dcrf_clique_dual *cliques);

/* out = the projection of base - step * y onto the set of v (backend/dual_space.h), clique by
 * clique; base = NULL means zero. epsilon > 0: step = stiffness_p / epsilon, so that v, as a
 * function of y, is minus the gradient of the smoothed clique term; otherwise `step` is used. Rows
 * outside the cliques are set to zero. */
void dcrf_clique_project(const struct dcrf_clique_dual *cliques, const double *base, const float *y,
                         double epsilon, double step, struct dcrf_dual *out);

/* out = the vertex of the set with the smallest <v, y>: the conditional gradient. */
void dcrf_clique_vertex(const struct dcrf_clique_dual *cliques, const float *y,
                        struct dcrf_dual *out);

#endif
