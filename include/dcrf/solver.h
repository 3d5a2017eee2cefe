/* Minimizing the energy: mean field, the QP relaxation and the LP relaxation behind one handle.
 *
 *   dcrf_settings settings;
 *   dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
 *   dcrf_solver_new(&solver, plan, workspace, &settings, &error);
 *   dcrf_solver_run(solver, &error);
 *   dcrf_solver_labels(solver, labels);
 *   dcrf_solver_free(&solver);
 *
 * A solver always holds a labelling: the best one seen by the energy of the model, among them the
 * unary minimum, the best constant labelling and the start it was given. Whatever ends a run
 * (convergence, a limit, a callback, an error), that labelling can be read.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_SOLVER_H
#define DCRF_SOLVER_H

#include <dcrf/energy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings ------------------------------------------------------------------------------- */

typedef enum dcrf_method {
    DCRF_METHOD_MF = 0, /* mean field, all variables at once */
    DCRF_METHOD_QP,     /* the quadratic relaxation, Frank-Wolfe; a local minimum */
    DCRF_METHOD_LP      /* the linear relaxation, with a lower bound; Potts only */
} dcrf_method;

/* "mf", "qp", "lp"; NULL for a value that is none. The inverse returns 1 and sets *method, or 0. */
DCRF_API const char *dcrf_method_name(dcrf_method method);
DCRF_API int dcrf_method_from_name(const char *name, dcrf_method *method);

/* One moment of a run. Values that are not known at that moment are NaN. */
typedef struct dcrf_moment {
    double time_s; /* since the run began */
    size_t iteration;
    double objective;   /* what the method minimizes */
    double energy;      /* of this iteration's labelling, where it was computed */
    double best_energy; /* of the best labelling so far */
    double lower_bound; /* on the energy of every labelling: the best so far */
} dcrf_moment;

/* Called after every iteration; a value other than 0 stops the run. */
typedef int (*dcrf_progress_callback)(void *user, const dcrf_moment *moment);

/* One line without a newline. */
typedef void (*dcrf_log_callback)(void *user, const char *line);

/* How the LP's dual Frank-Wolfe chooses its step. */
typedef enum dcrf_lp_step {
    DCRF_LP_STEP_EXACT = 0,   /* the minimum along the line */
    DCRF_LP_STEP_CONSERVATIVE /* the paper's closed form */
} dcrf_lp_step;

/* How the LP moves the dual variables of the cliques. */
typedef enum dcrf_lp_clique_step {
    DCRF_LP_CLIQUE_PROJECTION = 0, /* the exact projection onto their set */
    DCRF_LP_CLIQUE_VERTEX          /* the paper's sparse vertex, one label a clique */
} dcrf_lp_clique_step;

typedef enum dcrf_lp_schedule {
    DCRF_LP_SCHEDULE_PROXIMAL = 0, /* proximal steps, each a dual Frank-Wolfe */
    DCRF_LP_SCHEDULE_HUBER         /* Huber continuation with acceleration */
} dcrf_lp_schedule;

typedef struct dcrf_lp_settings {
    size_t inner_steps; /* proximal: Frank-Wolfe steps to one iteration of the solver */
    double lambda;      /* proximal weight; 0: from the scale of the model */
    double epsilon;     /* first Huber width, in units of y; 0: 1/4 */
    size_t bins;        /* of the ordered filter, at most; Huber widths end at 1 / (2 bins) */
    int adaptive_bins;  /* place half of the bins where the values are */
    dcrf_clique_form clique_form;
    dcrf_lp_clique_step clique_step;
    dcrf_lp_step step;
    dcrf_lp_schedule schedule;
    int restart; /* proximal: set the dual variables to zero at every proximal step, as the paper */
    int potential_flow; /* try the potential-flow proof first */
    unsigned char reserved[64];
} dcrf_lp_settings;

/* Everything that can be chosen about a run. dcrf_settings_defaults sets every field; `reserved`
 * must stay zero. */
typedef struct dcrf_settings {
    dcrf_method method;
    size_t iterations;     /* at most; mean-field updates, Frank-Wolfe steps, proximal steps */
    double time_limit_s;   /* of a run, polishing not counted; 0: none */
    double gap;            /* stop when (energy - bound) / |energy| is at most this; 0: never */
    double stationarity;   /* stop when the method's own measure is at most this; 0: never.
                            * Mean field: mean over variables of sum_i |change of Q_i|.
                            * QP: Frank-Wolfe gap / |objective|. LP: relative change of the bound. */
    double damping;        /* mean field: 0 <= damping < 1 of the old field is kept;
                            * DCRF_DAMPING_AUTO: 0 until the free energy rises */
    size_t evaluate_every; /* iterations between energies of the method's labelling; 0: only when
                            * the run ends, or always when there is a trace */
    size_t rounding_draws; /* threshold roundings of the last marginals; the best is a candidate */
    uint64_t seed;         /* of the rounding */
    int polish;            /* improve labellings by discrete moves: the best and the method's own
                            * when the run ends, the first one when it may stop by its gap, and
                            * that of a short mean field when the gap stays open */
    size_t polish_rounds;  /* at most */
    int trace;             /* keep a moment for every iteration */
    dcrf_log_callback log; /* NULL: none */
    void *log_user;
    dcrf_progress_callback progress; /* NULL: none */
    void *progress_user;
    dcrf_lp_settings lp;
    unsigned char reserved[64];
} dcrf_settings;

#define DCRF_DAMPING_AUTO (-1.0)

#define DCRF_DEFAULT_MF_ITERATIONS 10
#define DCRF_DEFAULT_QP_ITERATIONS 100
#define DCRF_DEFAULT_LP_ITERATIONS 40
#define DCRF_DEFAULT_TIME_LIMIT_S 0.0
#define DCRF_DEFAULT_GAP 0.0
#define DCRF_DEFAULT_LP_GAP 1e-4
#define DCRF_DEFAULT_MF_STATIONARITY 1e-5
#define DCRF_DEFAULT_QP_STATIONARITY 1e-6
#define DCRF_DEFAULT_LP_STATIONARITY 0.0
#define DCRF_DEFAULT_DAMPING DCRF_DAMPING_AUTO
#define DCRF_DEFAULT_EVALUATE_EVERY 0
#define DCRF_DEFAULT_LP_EVALUATE_EVERY 1
#define DCRF_DEFAULT_ROUNDING_DRAWS 0
#define DCRF_DEFAULT_SEED 1
#define DCRF_DEFAULT_POLISH 1
#define DCRF_DEFAULT_POLISH_ROUNDS 50
#define DCRF_DEFAULT_TRACE 0
#define DCRF_DEFAULT_LP_INNER_STEPS 10
#define DCRF_DEFAULT_LP_LAMBDA 0.0
#define DCRF_DEFAULT_LP_EPSILON 0.0
#define DCRF_DEFAULT_LP_BINS 16
#define DCRF_DEFAULT_LP_ADAPTIVE_BINS 0
#define DCRF_DEFAULT_LP_CLIQUE_FORM DCRF_CLIQUE_MIN
#define DCRF_DEFAULT_LP_CLIQUE_STEP DCRF_LP_CLIQUE_PROJECTION
#define DCRF_DEFAULT_LP_STEP DCRF_LP_STEP_EXACT
#define DCRF_DEFAULT_LP_SCHEDULE DCRF_LP_SCHEDULE_HUBER
#define DCRF_DEFAULT_LP_RESTART 0
#define DCRF_DEFAULT_LP_POTENTIAL_FLOW 1

/* Set every field to what is best for most models with this method. */
DCRF_API void dcrf_settings_defaults(dcrf_settings *settings, dcrf_method method);

/* ---- the solver ----------------------------------------------------------------------------- */

typedef struct dcrf_solver dcrf_solver;

/* A solver for a plan and its model, which must outlive it and must not change meanwhile. Checks
 * and copies the settings and takes all memory of the run; only the workspace may still grow when
 * it is first used, and a gap that stays open asks for the memory of mean field at the end. */
DCRF_API dcrf_status dcrf_solver_new(dcrf_solver **solver, const dcrf_plan *plan,
                                     dcrf_workspace *workspace, const dcrf_settings *settings,
                                     dcrf_error *error);
DCRF_API void dcrf_solver_free(dcrf_solver **solver);

/* Begin (again) from a labelling, or from a block of distributions over labels (as in
 * dcrf/operator.h, one channel a label). Without either, a run begins where the method likes best.
 * A labelling, or the label of the largest entry in every row, becomes a candidate: the run never
 * ends worse than that. */
DCRF_API dcrf_status dcrf_solver_start_labels(dcrf_solver *solver, const uint16_t *labels,
                                              dcrf_error *error);
DCRF_API dcrf_status dcrf_solver_start_marginals(dcrf_solver *solver, const float *marginals,
                                                 size_t stride, dcrf_error *error);

/* One iteration: DCRF_OK to go on, a positive status when a stopping rule is met (another call
 * would still work), a negative one on an error. */
DCRF_API dcrf_status dcrf_solver_step(dcrf_solver *solver, dcrf_error *error);

/* Round and polish what there is. */
DCRF_API dcrf_status dcrf_solver_finish(dcrf_solver *solver, dcrf_error *error);

/* Steps until a stopping rule is met, then dcrf_solver_finish (without polishing where a callback
 * cancelled). Returns why it stopped. */
DCRF_API dcrf_status dcrf_solver_run(dcrf_solver *solver, dcrf_error *error);

/* ---- results -------------------------------------------------------------------------------- */

typedef struct dcrf_solver_info {
    dcrf_method method;
    size_t iterations;
    dcrf_status stop;       /* why the last run stopped; DCRF_OK while there was none */
    dcrf_energy energy;     /* of the labelling that dcrf_solver_labels gives */
    dcrf_energy unpolished; /* of the best labelling that no move has touched */
    dcrf_energy rounded;    /* of the method's own last labelling; NaN while there is none */
    double objective;       /* NaN before the first iteration */
    double lower_bound;     /* NaN where the method has none */
    double relative_gap;    /* (energy - lower_bound) / |energy|; NaN where there is no bound */
    int is_constant;        /* the labelling has one label only: the weights drown the unaries */
    double start_s;         /* seconds: first candidates, */
    double solve_s;         /* the method's iterations, */
    double evaluate_s;      /* energies of its labellings, */
    double round_s;         /* rounding */
    double polish_s;        /* and moves */
} dcrf_solver_info;

DCRF_API void dcrf_solver_get_info(const dcrf_solver *solver, dcrf_solver_info *info);

/* The best labelling seen: one label a variable. */
DCRF_API void dcrf_solver_labels(const dcrf_solver *solver, uint16_t *labels);

/* The method's last iterate: a block of distributions over labels. */
DCRF_API dcrf_status dcrf_solver_marginals(const dcrf_solver *solver, float *marginals,
                                           size_t stride, dcrf_error *error);

/* The moments kept, *count of them, oldest first; valid until the next step. A long run keeps every
 * second one, then every fourth, and so on. */
DCRF_API const dcrf_moment *dcrf_solver_trace(const dcrf_solver *solver, size_t *count);

#ifdef __cplusplus
}
#endif
#endif
