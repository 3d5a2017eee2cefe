/* The blocks of the LP by Huber continuation on a device, and the steps on them. */
#ifndef DCRF_LP_LP_DEVICE_H
#define DCRF_LP_LP_DEVICE_H

#include "backend/placed_model.h"
#include "lp/dual.h"
#include "lp/pair_dual.h"

struct dcrf_lp;
struct dcrf_start;

/* Which of the host's blocks are older than the device's is noted; the others need not be there. */
struct dcrf_lp_device {
    const struct dcrf_backend_lp_methods *methods;
    dcrf_backend_lp *state; /* NULL: the LP is on the CPU */
    bool is_y_old, is_best_old;
    bool has_stepped; /* since the start: so the device knows labels of y */
};

/* Have the LP on the workspace's device, where there is one that can do it. */
dcrf_status dcrf_lp_device_init(struct dcrf_lp *lp, dcrf_error *error);
void dcrf_lp_device_clear(struct dcrf_lp_device *device);

/* lp->best becomes the first point there, with its bound; or what it is here. */
dcrf_status dcrf_lp_device_reset_best(struct dcrf_lp *lp, dcrf_error *error);
dcrf_status dcrf_lp_device_take_best(struct dcrf_lp *lp, dcrf_error *error);
/* The start's marginals, or labels, and what steps need go there; the average becomes zero. */
dcrf_status dcrf_lp_device_start(struct dcrf_lp *lp, const struct dcrf_start *start,
                                 dcrf_error *error);

/* Bring lp->y or lp->best here, where they are old. Both do nothing for an LP on the CPU. */
dcrf_status dcrf_lp_device_fetch_y(struct dcrf_lp *lp, dcrf_error *error);
dcrf_status dcrf_lp_device_fetch_best(struct dcrf_lp *lp, dcrf_error *error);

/* The parts of a step (lp_huber.c): as dcrf_pair_dual, and huber.z is here where a record is kept;
 * as dcrf_clique_project; and the rest: the average, as dcrf_dual_mix, the best point, as
 * dcrf_dual_improve towards the point and, where it is another one, the average; y, the objective,
 * and z, for which beta is 0 where *uphill > 0. */
dcrf_status dcrf_lp_device_point(struct dcrf_lp *lp, const struct dcrf_pair_shape *shape,
                                 double threshold, dcrf_error *error);
dcrf_status dcrf_lp_device_cliques(struct dcrf_lp *lp, dcrf_error *error);
dcrf_status dcrf_lp_device_advance(struct dcrf_lp *lp, double average_weight, bool has_average,
                                   float beta, double *uphill, dcrf_error *error);

#endif
