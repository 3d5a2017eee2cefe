/* The pairwise dual point of marginals y. */
#ifndef DCRF_BACKEND_CPU_PAIR_DUAL_H
#define DCRF_BACKEND_CPU_PAIR_DUAL_H

#include "backend/dual.h"
#include "core/interrupt.h"
#include "energy/columns.h"

/* Scratch memory of the filter. */
struct dcrf_pair_filter {
    const struct dcrf_dual_space *space;
    size_t stride;            /* of blocks with all columns */
    float *packed, *filtered; /* blocks of the live columns: the workspace's, until the next use */
    float *columns;           /* of a group of kernels with cuts; NULL if all columns are labels */
    size_t *alive;            /* the columns with an entry above the threshold */
    size_t alive_count;
    bool is_blank;  /* nothing has been added to the point yet: rows are cleared first */
    float *largest; /* per chunk of `grain` variables and column */
    size_t grain;
    float *nodes, *table;
    const struct dcrf_interrupt *interrupt; /* checked in long computations; NULL: none */
    double *precise; /* blocks of PRECISE_CHANNELS and what is kept of a label; NULL until it is
                        first needed */
};

dcrf_status dcrf_pair_filter_init(struct dcrf_pair_filter *filter,
                                  const struct dcrf_dual_space *space, dcrf_error *error);
void dcrf_pair_filter_clear(struct dcrf_pair_filter *filter);

/* dual->pairwise = A alpha with alpha_ab:i = K_ab F(y_ai, y_bi), or z and cuts in place of y and
 * labels. Labels whose entries are all at most `threshold`, and cuts whose entries all lie within
 * `threshold` of each other, are dead: their alpha is zero, which is feasible, and they are not
 * filtered. Returns DCRF_STOP_CANCELLED, without a point, if interrupted. */
dcrf_status dcrf_pair_dual(struct dcrf_pair_filter *filter, const struct dcrf_pair_shape *shape,
                           const float *y, double threshold, struct dcrf_dual *dual,
                           dcrf_error *error);

/* Set filter->alive to the labels with an entry of y above the threshold, and take the blocks. */
void dcrf_pair_find_live(struct dcrf_pair_filter *filter, const float *y, double threshold);

#endif
