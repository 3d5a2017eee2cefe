/* What the LP's best dual point is a mixture of, for a certificate. */
#ifndef DCRF_LP_LP_MIXTURE_H
#define DCRF_LP_LP_MIXTURE_H

#include "backend/cpu/pair_dual.h"

struct dcrf_lp;

#define DCRF_LP_MOST_PARTS 24

/* alpha_ab:i = K_ab F(y_ai, y_bi), by the shape's line. */
struct dcrf_lp_part {
    double epsilon;
    size_t bins;
    float *y; /* a block with the model's stride */
};

/* Parts in the order in which they came. How much of each is in a dual point say its part_weights.
 */
struct dcrf_lp_mixture {
    bool is_kept;
    size_t count;
    struct dcrf_lp_part parts[DCRF_LP_MOST_PARTS];
};

dcrf_status dcrf_lp_mixture_init(struct dcrf_lp *lp, dcrf_error *error);
void dcrf_lp_mixture_clear(struct dcrf_lp_mixture *mixture);

/* `dual` is the point of y, and nothing else. *y is a block for that y, to be filled; NULL where
 * none is kept. */
dcrf_status dcrf_lp_mixture_add(struct dcrf_lp *lp, struct dcrf_dual *dual,
                                const struct dcrf_pair_shape *shape, float **y, dcrf_error *error);

#endif
