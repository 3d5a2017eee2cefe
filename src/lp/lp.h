/* The inside of the LP method: what its schedules share.
 *
 *   lp.c              memory, the start, the method's interface
 *   lp_huber.c        one accelerated step on the Huber-smoothed problem (the default)
 *   lp_device.c       its blocks and steps on a device
 *   lp_proximal.c     one proximal step by dual Frank-Wolfe (the paper)
 *   lp_mixture.c      what a certificate needs
 *   dual.c, pair_dual.c, clique_dual.c    points of the dual and what they prove
 *   potential_flow.c  the proof for constant labellings, a candidate of the solver */
#ifndef DCRF_LP_LP_H
#define DCRF_LP_LP_H

#include "lp/clique_dual.h"
#include "lp/dual.h"
#include "lp/lp_device.h"
#include "lp/lp_experiment.h"
#include "lp/lp_mixture.h"
#include "lp/pair_dual.h"
#include "solver/method.h"

struct dcrf_lp;

/* What a schedule supplies; it begins at lp->y, or where the start says and the device has y, moves
 * it, and improves lp->best and lp->bound. */
struct dcrf_lp_schedule_interface {
    dcrf_status (*init)(struct dcrf_lp *lp, dcrf_error *error);
    dcrf_status (*start)(struct dcrf_lp *lp, const struct dcrf_start *from, dcrf_error *error);
    dcrf_status (*step)(struct dcrf_lp *lp, struct dcrf_step_report *report, dcrf_error *error);
    void (*clear)(struct dcrf_lp *lp);
};

extern const struct dcrf_lp_schedule_interface dcrf_lp_huber, dcrf_lp_proximal;

/* Huber continuation; see lp_huber.c. */
struct dcrf_lp_huber {
    float *previous;          /* y before the last step */
    float *z;                 /* where the gradient is taken */
    struct dcrf_dual current; /* of z */
    struct dcrf_dual average; /* of `current` since the last change of epsilon */
    double average_weight;    /* sum of the weights in it */
    double epsilon;
    size_t steps_at_epsilon;
    double unary_floor;  /* of the model */
    double bound_before; /* when it was last asked whether the bound has stalled */
    double objective;    /* smoothed, at the z of the last step */
    double roundings;    /* of the last point that was computed in floats */
    double momentum;     /* t_k of the accelerated method */
};

/* Proximal steps; see lp_proximal.c. */
struct dcrf_lp_proximal {
    float *centre;            /* y^k */
    float *trial;             /* y~ */
    struct dcrf_dual current; /* what the Frank-Wolfe steps move */
    struct dcrf_dual vertex;  /* where they move it to */
    double lambda;
};

struct dcrf_lp {
    const struct dcrf_problem *problem;
    const struct dcrf_lp_schedule_interface *schedule;
    struct dcrf_lp_experiment experiment;
    struct dcrf_dual_space space;
    bool is_measured; /* row sums and what follows from them are there */
    struct dcrf_pair_filter pairs;
    struct dcrf_clique_dual cliques;
    float *y;           /* the iterate: rows are distributions */
    float *metric;      /* per variable, the curvature of the smoothed problem times epsilon */
    double mean_metric; /* before variables that nothing holds got theirs */
    bool has_best;
    struct dcrf_dual best;
    double bound; /* what `best` proves, or has proven before its last roundings */

    struct dcrf_lp_device device;     /* has y, best and what is of huber, where it is one */
    struct dcrf_lp_huber huber;       /* all zero but for its schedule */
    struct dcrf_lp_proximal proximal; /* likewise */
    struct dcrf_lp_mixture mixture;   /* empty: none is kept */
};

/* The space of the LP's dual points, measured; for proofs that come before the LP starts. */
dcrf_status dcrf_lp_space(void *state, const struct dcrf_dual_space **space, dcrf_error *error);

/* Its row sums with the weights, in total; infinite before they are measured. */
double dcrf_lp_row_sums(const void *state);

/* What the best dual point says of a labelling, with the energy of any: how many of its labels are
 * those of every optimal labelling and how many of none, and the number of possible labels of each
 * variable (may be NULL). */
struct dcrf_judgement {
    size_t right, wrong;
    uint16_t *counts;
};
dcrf_status dcrf_lp_judge(void *state, double energy, const uint16_t *labels,
                          struct dcrf_judgement *judgement, dcrf_error *error);

#endif
