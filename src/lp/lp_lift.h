/* A start off the corner for constant labellings (the mathematics: lp/lp_lift.c). */
#ifndef DCRF_LP_LP_LIFT_H
#define DCRF_LP_LP_LIFT_H

#include <dcrf/status.h>
#include <stdbool.h>
#include <stddef.h>

struct dcrf_lp;
struct dcrf_start;

/* Is y lifted, off which labelling? */
struct dcrf_lp_lift {
    bool is_on;
    size_t constant; /* its label */
    double energy;   /* of the labelling */
};

/* Make *y a lifted start, for *epsilon, and *epsilon at most what it was; NULL if there is no flow,
 * or none that helps. The caller releases it. */
dcrf_status dcrf_lp_lift_new(struct dcrf_lp *lp, const struct dcrf_start *from, float **y,
                             double *epsilon, dcrf_error *error);

/* Before epsilon shrinks by `factor`: keep the flows, as long as no better labelling is known. */
dcrf_status dcrf_lp_lift_narrow(struct dcrf_lp *lp, double factor, dcrf_error *error);

#endif
