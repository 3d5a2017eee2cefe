/* A step of the LP in the metric of the cuts. */
#ifndef DCRF_BACKEND_CPU_CUT_STEP_H
#define DCRF_BACKEND_CPU_CUT_STEP_H

#include "backend/dual_space.h"

struct dcrf_cut_step {
    size_t labels, group_count, variables;
    const float *group_sums; /* the space's row sums, group by group */
    float *distances;        /* labels x labels for each group */
};

/* Allocates nothing for Potts. */
dcrf_status dcrf_cut_step_init(struct dcrf_cut_step *step, const struct dcrf_dual_space *space,
                               dcrf_error *error);
void dcrf_cut_step_clear(struct dcrf_cut_step *step);

/* For one variable: move y, a distribution, from its current value to the minimum over the simplex
 * of
 *
 *   <gradient, y> + 1/2 |y - z|^2_Q,   Q = sum_g D_g G_g + own I.
 *
 * `gradient` becomes gradient + Q (y - z), up to a constant. */
void dcrf_cut_step_take(const struct dcrf_cut_step *step, size_t variable, double own,
                        const float *z, float *y, double *gradient);

#endif
