/* A step of the LP in the metric of the cuts. */
#ifndef DCRF_BACKEND_CPU_CUT_STEP_H
#define DCRF_BACKEND_CPU_CUT_STEP_H

#include "backend/dual_space.h"

/* For one variable: move y, a distribution, from its current value to the minimum over the simplex
 * of
 *
 *   <gradient, y> + 1/2 |y - z|^2_Q,   Q = sum_g D_g G_g + own I.
 *
 * `gradient` becomes gradient + Q (y - z), up to a constant. */
void dcrf_cut_step_take(const struct dcrf_dual_space *space, size_t variable, double own,
                        const float *z, float *y, double *gradient);

#endif
