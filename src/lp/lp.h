/* Internals of the LP method: what its schedules share.
 *
 *   lp.c              the start, the method's interface
 *   lp_huber.c        one accelerated step on the Huber-smoothed problem (the default)
 *   lp_inner.c        how many inner steps it gets
 *   lp_proximal.c     one proximal step by dual Frank-Wolfe (the paper), on the host
 *   lp_mixture.c      what a certificate needs
 *   potential_flow.c  the proof for constant labellings, a candidate of the solver
 *
 * Points of the dual and what they prove: backend/dual_space.h. */
#ifndef DCRF_LP_LP_H
#define DCRF_LP_LP_H

#include "backend/backend.h"
#include "backend/cpu/clique_dual.h"
#include "backend/cpu/pair_dual.h"
#include "lp/lp_experiment.h"
#include "lp/lp_inner.h"
#include "lp/lp_mixture.h"
#include "solver/method.h"

struct dcrf_lp;

/* The interface of a schedule, which begins at the given start, moves y, and improves the best dual
 * point and lp->bound. */
struct dcrf_lp_schedule_interface {
    dcrf_status (*init)(struct dcrf_lp *lp, dcrf_error *error);
    void (*clear)(struct dcrf_lp *lp);
    /* Set the best point to the zero point, with its bound; or replace its A alpha. */
    dcrf_status (*reset_best)(struct dcrf_lp *lp, dcrf_error *error);
    dcrf_status (*write_best)(struct dcrf_lp *lp, const double *pairwise, dcrf_error *error);
    dcrf_status (*start)(struct dcrf_lp *lp, const struct dcrf_start *from, dcrf_error *error);
    dcrf_status (*step)(struct dcrf_lp *lp, struct dcrf_step_report *report, dcrf_error *error);
    /* Bring lp->y, or lp->best, up to date on the host. */
    dcrf_status (*fetch_y)(struct dcrf_lp *lp, dcrf_error *error);
    dcrf_status (*fetch_best)(struct dcrf_lp *lp, dcrf_error *error);
    /* As in struct dcrf_method_interface; may be NULL, as there. */
    dcrf_status (*labels)(struct dcrf_lp *lp, uint16_t *labels, dcrf_error *error);
    dcrf_status (*energy)(struct dcrf_lp *lp, dcrf_energy *energy, dcrf_error *error);
};

extern const struct dcrf_lp_schedule_interface dcrf_lp_huber, dcrf_lp_proximal;

/* Huber continuation; see lp_huber.c. Its blocks belong to a backend. The host reads y and the best
 * point in place, or from copies. */
struct dcrf_lp_huber {
    const struct dcrf_backend_lp_methods *methods;
    dcrf_backend_lp *blocks;
    /* Copies of y and of the best point: empty until first needed, or if the host can read the
     * originals. */
    float *y_copy;
    struct dcrf_dual best_copy;
    bool is_y_old, is_best_old;
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
};

/* Proximal steps; see lp_proximal.c. */
struct dcrf_lp_proximal {
    struct dcrf_pair_filter pairs;
    struct dcrf_clique_dual cliques;
    float *y;
    float *centre;            /* y^k */
    float *trial;             /* y~ */
    struct dcrf_dual current; /* moved by the Frank-Wolfe steps */
    struct dcrf_dual vertex;  /* the target of their moves */
    double lambda;
};

struct dcrf_lp {
    const struct dcrf_problem *problem;
    const struct dcrf_lp_schedule_interface *schedule;
    struct dcrf_lp_experiment experiment;
    struct dcrf_dual_space space;
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

/* Bring the blocks of lp->best up to date. */
dcrf_status dcrf_lp_fetch_best(struct dcrf_lp *lp, dcrf_error *error);

/* The space of the LP's dual points, measured; for proofs that come before the LP starts. */
dcrf_status dcrf_lp_space(void *state, const struct dcrf_dual_space **space, dcrf_error *error);

/* The sum of all its weighted row sums; infinite before they are measured. */
double dcrf_lp_row_sums(const void *state);

/* What the best dual point and the energy of any labelling prove about a labelling: how many of its
 * labels occur in every optimal labelling, how many in none, and the number of possible labels of
 * each variable (may be NULL). */
struct dcrf_judgement {
    size_t right, wrong;
    uint16_t *counts;
};
dcrf_status dcrf_lp_judge(void *state, double energy, const uint16_t *labels,
                          struct dcrf_judgement *judgement, dcrf_error *error);

#endif
