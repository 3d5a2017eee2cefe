/* The plan of a grid operator: what grid.c and grid_double.c share. */
#ifndef DCRF_FILTER_GRID_H
#define DCRF_FILTER_GRID_H

#include "filter/grid_taps.h"
#include "filter/operator.h"

struct dcrf_grid_plan {
    dcrf_operator base;
    dcrf_grid shape;
    size_t radius[DCRF_MAX_AXES];
    float *taps[DCRF_MAX_AXES]; /* radius + 1, from the centre on */
    float *scale;               /* NULL: ones */
};

/* The operator in double, for proofs. */
dcrf_status dcrf_grid_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                   const double *in, double *out, size_t channels,
                                   dcrf_error *error);

#endif
