/* The terms of one clique and one label in mean field and in QP: formulas that are the same on the
 * CPU and on a device.
 *
 * Mean field (meanfield/mean_field.c) has products over all members of a clique but one, from the
 * logarithm of the product over all. Q below DCRF_SMALLEST_Q counts as that, so nothing is divided
 * by zero; logarithms are taken of products of DCRF_FACTORS_PER_LOG members, which fit in a double.
 *
 * QP (qp/qp.c) has z and h. */
#ifndef DCRF_ENERGY_CLIQUE_TERMS_H
#define DCRF_ENERGY_CLIQUE_TERMS_H

#include "backend/backend.h"

#include <math.h>

#define DCRF_SMALLEST_Q 1e-37f /* ln = -85.2 */
#define DCRF_FACTORS_PER_LOG 8 /* smallest product 1e-37^8, above the smallest double */
/* A product below exp of this is zero even without one member. */
#define DCRF_LOG_OF_NOTHING -200.

DCRF_BACKEND_HOST_AND_DEVICE static inline float dcrf_positive(float q) {
    return q > DCRF_SMALLEST_Q ? q : DCRF_SMALLEST_Q;
}

DCRF_BACKEND_HOST_AND_DEVICE static inline bool dcrf_is_nothing(double log_of_product) {
    return log_of_product < DCRF_LOG_OF_NOTHING;
}

/* The product without the member that has q. */
DCRF_BACKEND_HOST_AND_DEVICE static inline double dcrf_without(double log_of_product, float q) {
    return exp(log_of_product - log((double)dcrf_positive(q)));
}

/* What one label of a clique of cost 1 adds to f, L and Q, up to a constant in f. */
enum { DCRF_QP_OBJECTIVE, DCRF_QP_LINEAR, DCRF_QP_QUADRATIC, DCRF_QP_PARTS };

/* The z that is best for h: the vertex of the linear minimizer. */
DCRF_BACKEND_HOST_AND_DEVICE static inline double dcrf_best_z(double h) {
    return h > 1 ? 1 : 0;
}

DCRF_BACKEND_HOST_AND_DEVICE static inline void dcrf_add_qp_terms(double z, double h,
                                                                  double vertex_h, double *parts) {
    const double change = dcrf_best_z(h) - z;
    parts[DCRF_QP_OBJECTIVE] += z + (1 - z) * h;
    parts[DCRF_QP_LINEAR] += change * (1 - h);
    parts[DCRF_QP_QUADRATIC] -= change * (vertex_h - h);
}

#endif
