/* Internals of the LP method: what its schedules share.
 *
 *   lp.c              the blocks, the start, the method's interface
 *   lp_huber.c        one accelerated step on the Huber-smoothed problem (the default)
 *   lp_inner.c        how many inner steps it gets
 *   lp_lift.c         where it starts if the best labelling is constant
 *   lp_proximal.c     one proximal step by dual Frank-Wolfe (the paper)
 *   lp_mixture.c      what a certificate needs
 *   potential_flow.c  the proof for constant labellings, a candidate of the solver
 *
 * Points of the dual and what they prove: backend/dual_space.h. */
#ifndef DCRF_LP_LP_H
#define DCRF_LP_LP_H

#include "backend/backend.h"
#include "backend/dual.h"
#include "lp/lp_experiment.h"
#include "lp/lp_inner.h"
#include "lp/lp_lift.h"
#include "lp/lp_mixture.h"
#include "method/method.h"

struct dcrf_lp;

/* The interface of a schedule, which begins at the given start, moves y, and improves the best dual
 * point and lp->bound. It marks what it moved: is_y_old, is_best_old. */
struct dcrf_lp_schedule_interface {
    dcrf_status (*start)(struct dcrf_lp *lp, const struct dcrf_start *from, dcrf_error *error);
    dcrf_status (*step)(struct dcrf_lp *lp, struct dcrf_step_report *report, dcrf_error *error);
};

extern const struct dcrf_lp_schedule_interface dcrf_lp_huber, dcrf_lp_proximal;

/* Huber continuation; see lp_huber.c. */
struct dcrf_lp_huber {
    bool has_stepped;         /* since the start */
    struct dcrf_dual current; /* of z; without its blocks, like `average` */
    struct dcrf_dual average; /* average of `current` since epsilon last changed */
    double average_weight;    /* sum of the weights in it */
    double epsilon;
    size_t steps_at_epsilon;
    double unary_floor;  /* of the model */
    double bound_before; /* the bound when last checked for stalling */
    double objective;    /* smoothed, at the z of the last step */
    double roundings;    /* of the last point computed in floats */
    double momentum;     /* t_k of the accelerated method */
    struct dcrf_lp_inner inner;
    struct dcrf_lp_lift lift;
};

/* Proximal steps; see lp_proximal.c. */
struct dcrf_lp_proximal {
    struct dcrf_dual current; /* moved by the Frank-Wolfe steps; without its blocks */
    double lambda;
};

/* The blocks belong to a backend; the host reads y and the best point in place, or from copies. */
struct dcrf_lp {
    const struct dcrf_problem *problem;
    const struct dcrf_lp_schedule_interface *schedule;
    struct dcrf_lp_experiment experiment;
    struct dcrf_dual_space space;
    const struct dcrf_backend_lp_methods *methods;
    dcrf_backend_lp *blocks;
    /* Empty until first needed, or if the host can read the originals. */
    float *y_copy;
    struct dcrf_dual best_copy;
    bool is_y_old, is_best_old;
    bool is_measured;   /* row sums and what follows from them are known */
    const float *y;     /* the iterate, as last fetched: rows are distributions */
    float *metric;      /* per variable, the curvature of the smoothed problem times epsilon */
    double mean_metric; /* before the floor for uncoupled variables was applied */
    bool has_best;
    struct dcrf_dual best; /* its blocks: as last fetched */
    double bound;          /* the best proven so far; rounding error may put `best` below it */

    struct dcrf_lp_huber huber;       /* all zero with another schedule */
    struct dcrf_lp_proximal proximal; /* all zero with another schedule */
    struct dcrf_lp_mixture mixture;   /* empty if none is kept */
};

/* The width after `now`: half of it, down to what the usual number of bins resolves; then what
 * twice the bins do. */
double dcrf_lp_next_width(const struct dcrf_lp *lp, double now);

/* Bring the blocks of lp->best up to date. */
dcrf_status dcrf_lp_fetch_best(struct dcrf_lp *lp, dcrf_error *error);

#endif
