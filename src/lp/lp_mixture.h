/* The parts that the LP's best dual point is mixed from, for a certificate. */
#ifndef DCRF_LP_LP_MIXTURE_H
#define DCRF_LP_LP_MIXTURE_H

#include "backend/dual.h"

struct dcrf_lp;

#define DCRF_LP_MOST_PARTS 24

/* alpha_ab:i = K_ab F(y_ai, y_bi), with F the clipped line of the shape. */
struct dcrf_lp_part {
    double epsilon;
    size_t bins;
    float *y; /* a block with the model's stride */
};

/* Parts, oldest first. The part_weights of a dual point are their weights in it. */
struct dcrf_lp_mixture {
    bool is_kept;
    size_t count;
    struct dcrf_lp_part parts[DCRF_LP_MOST_PARTS];
};

dcrf_status dcrf_lp_mixture_init(struct dcrf_lp *lp, dcrf_error *error);
void dcrf_lp_mixture_clear(struct dcrf_lp_mixture *mixture);

/* Make `dual` the point of a new part alone. *y is a block for the caller to fill with its y; NULL
 * if no parts are kept. */
dcrf_status dcrf_lp_mixture_add(struct dcrf_lp *lp, struct dcrf_dual *dual,
                                const struct dcrf_pair_shape *shape, float **y, dcrf_error *error);

#endif
