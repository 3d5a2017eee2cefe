/* The inside of the LP method: what its two schedules share.
 *
 *   lp.c              memory, the start, the method's interface
 *   lp_huber.c        one accelerated step on the Huber-smoothed problem (the default)
 *   lp_proximal.c     one proximal step by dual Frank-Wolfe (the paper)
 *   potential_flow.c  the proof for constant labellings
 *   lp_record.c       what a verifier needs
 *   dual.c, pair_dual.c, clique_dual.c    points of the dual and what they prove */
#ifndef DCRF_SOLVER_LP_H
#define DCRF_SOLVER_LP_H

#include "solver/clique_dual.h"
#include "solver/dual.h"
#include "solver/lp_record.h"
#include "solver/method.h"
#include "solver/pair_dual.h"

struct dcrf_lp {
    const struct dcrf_problem *problem;
    struct dcrf_dual_space space;
    struct dcrf_pair_filter pairs;
    struct dcrf_clique_dual cliques;
    void *mean_field; /* the state of the method that finds a start */
    uint16_t *labels;

    float *y;        /* the iterate: rows are distributions */
    float *previous; /* Huber: the y before; proximal: y^k */
    float *z;        /* Huber: where the gradient is taken; proximal: y~ */
    float *metric;   /* per variable, the curvature of the smoothed problem times epsilon */

    struct dcrf_dual current; /* of z */
    struct dcrf_dual other;   /* Huber: the average of `current`; proximal: the vertex s */
    struct dcrf_dual best;
    double bound; /* what `best` proves; -infinity at first */

    double epsilon;
    size_t steps_at_epsilon;
    double momentum;       /* t_k of the accelerated method */
    double average_weight; /* sum of the weights in `other` */
    double lambda;
    struct dcrf_lp_record record; /* empty: none is kept */
};

/* Begin at lp->y. */
void dcrf_lp_huber_start(struct dcrf_lp *lp);
void dcrf_lp_proximal_start(struct dcrf_lp *lp);

dcrf_status dcrf_lp_huber_step(struct dcrf_lp *lp, struct dcrf_step_report *report,
                               dcrf_error *error);
dcrf_status dcrf_lp_proximal_step(struct dcrf_lp *lp, struct dcrf_step_report *report,
                                  dcrf_error *error);

/* Try to prove that the best constant labelling, of energy `constant_energy`, is optimal. Takes the
 * result into lp->best and lp->bound; uses the other blocks as scratch. */
dcrf_status dcrf_lp_potential_flow(struct dcrf_lp *lp, double constant_energy, dcrf_error *error);

/* Where a record is kept: enter the point that `dual` is. */
dcrf_status dcrf_lp_record_point(struct dcrf_lp *lp, struct dcrf_dual *dual,
                                 const struct dcrf_pair_shape *shape, const float *y,
                                 const size_t *alive, size_t alive_count, dcrf_error *error);
void dcrf_lp_record_clear(struct dcrf_lp_record *record);

#endif
