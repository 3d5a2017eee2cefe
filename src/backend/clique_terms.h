/* The terms of one clique and one label in mean field and in QP: formulas shared by host and
 * device.
 *
 * Mean field (meanfield/mean_field.c) needs products over all members of a clique except one,
 * computed from the logarithm of the product over all. Q is clamped to at least DCRF_SMALLEST_Q, so
 * nothing is divided by zero; logarithms are taken of products of DCRF_FACTORS_PER_LOG members,
 * which fit in a double.
 *
 * For z and h of QP see qp/qp.c. */
#ifndef DCRF_BACKEND_CLIQUE_TERMS_H
#define DCRF_BACKEND_CLIQUE_TERMS_H

#include "backend/backend.h"

#include <math.h>

#define DCRF_SMALLEST_Q 1e-37f /* ln = -85.2 */
#define DCRF_FACTORS_PER_LOG 8 /* smallest product 1e-37^8, above the smallest double */
/* A product below exp of this counts as zero even without one of its members. */
#define DCRF_LOG_OF_NOTHING -200.

DCRF_BACKEND_HOST_AND_DEVICE static inline float dcrf_positive(float q) {
    return q > DCRF_SMALLEST_Q ? q : DCRF_SMALLEST_Q;
}

DCRF_BACKEND_HOST_AND_DEVICE static inline bool dcrf_is_nothing(double log_of_product) {
    return log_of_product < DCRF_LOG_OF_NOTHING;
}

/* The product without a member whose value is q. */
DCRF_BACKEND_HOST_AND_DEVICE static inline double dcrf_without(double log_of_product, float q) {
    return exp(log_of_product - log((double)dcrf_positive(q)));
}

/* The contributions of one label of a clique of cost 1 to f, L and Q, up to a constant in f. */
enum { DCRF_QP_OBJECTIVE, DCRF_QP_LINEAR, DCRF_QP_QUADRATIC, DCRF_QP_PARTS };

/* The optimal z for h: the vertex of the linear minimizer. */
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
