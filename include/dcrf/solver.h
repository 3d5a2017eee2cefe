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
 * unary minimum, the best constant labelling, that of mean field and the start it was given.
 * Whatever ends a run (convergence, a limit, a callback, an error), that labelling can be read.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_SOLVER_H
#define DCRF_SOLVER_H

#include <dcrf/labelling.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings ------------------------------------------------------------------------------- */

typedef enum dcrf_method {
    DCRF_METHOD_MF = 0, /* mean field, all variables at once */
    DCRF_METHOD_QP,     /* the quadratic relaxation, Frank-Wolfe; a local minimum */
    DCRF_METHOD_LP      /* the linear relaxation, with a lower bound; Potts and distances */
} dcrf_method;
/* "mf", "qp", "lp". */
DCRF_API const char *dcrf_method_name(dcrf_method method);
DCRF_API int dcrf_method_from_name(const char *name, dcrf_method *method);

/* What a run does, one after the other. */
typedef enum dcrf_stage {
    DCRF_STAGE_CANDIDATES = 0, /* labellings that are easy to find, and proofs that are */
    DCRF_STAGE_FAST,           /* where the operators are exact: the same with the fast ones */
    DCRF_STAGE_SOLVE,          /* the method's iterations */
    DCRF_STAGE_FINISH          /* roundings and moves */
} dcrf_stage;
/* "candidates", "fast", "solve", "finish". */
DCRF_API const char *dcrf_stage_name(dcrf_stage stage);
DCRF_API int dcrf_stage_from_name(const char *name, dcrf_stage *stage);

/* One moment of a run. Values that are not known at that moment are NaN. */
typedef struct dcrf_moment {
    double time_s; /* since the run began */
    size_t iteration;
    double objective;    /* what the method minimizes */
    double energy;       /* of this iteration's labelling, where it was computed */
    double best_energy;  /* of the best labelling so far */
    double lower_bound;  /* on the energy of every labelling: the best so far */
    double relative_gap; /* between the two: dcrf_relative_gap */
    dcrf_stage stage;
    unsigned char reserved[64];
} dcrf_moment;

/* Called after every iteration; a value other than 0 stops the run. */
typedef int (*dcrf_progress_callback)(void *user, const dcrf_moment *moment);

/* Asked often, by the thread that runs the solver: at least once with every pass over the data, in
 * every stage. A value other than 0 stops the run. */
typedef int (*dcrf_cancel_callback)(void *user);

/* One line without a newline. */
typedef void (*dcrf_log_callback)(void *user, const char *line);

/* How the LP relaxation measures disagreement inside a clique. */
typedef enum dcrf_clique_form {
    DCRF_CLIQUE_MIN = 0, /* C_p (1 - sum_i min_a y_ai): never below the other */
    DCRF_CLIQUE_SPREAD   /* C_p max_i (max_a y_ai - min_a y_ai): the paper's */
} dcrf_clique_form;
/* "min", "spread". */
DCRF_API const char *dcrf_clique_form_name(dcrf_clique_form form);
DCRF_API int dcrf_clique_form_from_name(const char *name, dcrf_clique_form *form);

/* How the LP is solved. */
typedef enum dcrf_lp_schedule {
    DCRF_LP_SCHEDULE_HUBER = 0, /* Huber continuation with acceleration */
    DCRF_LP_SCHEDULE_PROXIMAL,  /* proximal steps, each a dual Frank-Wolfe with exact steps */
    DCRF_LP_SCHEDULE_PAPER      /* the same as the paper prints it: the dual restarts at zero, steps
                                 * are conservative and a clique moves one label. What else the
                                 * paper has is a setting: clique_form = DCRF_CLIQUE_SPREAD. */
} dcrf_lp_schedule;
/* "huber", "proximal", "paper". */
DCRF_API const char *dcrf_lp_schedule_name(dcrf_lp_schedule schedule);
DCRF_API int dcrf_lp_schedule_from_name(const char *name, dcrf_lp_schedule *schedule);

/* What a run of the LP proves about single variables (dcrf/proof.h). */
typedef enum dcrf_proving {
    DCRF_PROVE_BY_GAP = 0, /* what the bound says at once */
    DCRF_PROVE_VARIABLES,  /* all that can be: a stage of its own, for which the iterations leave
                            * three tenths of a time limit */
    DCRF_PROVE_CERTIFICATE /* the same so that others can check it; the run keeps what its bound is
                            * made of, some tens of marginals */
} dcrf_proving;
/* "gap", "variables", "certificate". */
DCRF_API const char *dcrf_proving_name(dcrf_proving proving);
DCRF_API int dcrf_proving_from_name(const char *name, dcrf_proving *proving);

typedef struct dcrf_lp_settings {
    dcrf_lp_schedule schedule;
    dcrf_clique_form clique_form;
    unsigned char reserved[64];
} dcrf_lp_settings;

/* Everything that can be chosen about a run. dcrf_settings_defaults sets every field; `reserved`
 * must stay zero. */
typedef struct dcrf_settings {
    dcrf_method method;
    size_t iterations;     /* at most; mean-field updates, Frank-Wolfe steps, proximal steps */
    double time_limit_s;   /* of a run with all its stages; the iterations leave up to a tenth of it
                            * to polishing. 0: none */
    double gap;            /* stop when dcrf_relative_gap is at most this; 0: never */
    double stationarity;   /* stop when the method's own measure is at most this; 0: never.
                            * Mean field: mean over variables of sum_i |change of Q_i|.
                            * QP: Frank-Wolfe gap / |objective|. LP: relative change of the bound. */
    double damping;        /* mean field: 0 <= damping < 1 of the old logits is kept;
                            * DCRF_DAMPING_AUTO: 0 until the free energy rises */
    size_t evaluate_every; /* iterations between energies of the method's labelling; 0: only when
                            * the run ends, or always when there is a trace */
    size_t rounding_draws; /* threshold roundings of the last marginals; the best is a candidate */
    uint64_t seed;         /* of the rounding */
    int polish;            /* improve labellings by discrete moves: the best, the method's own and
                            * that of mean field when the run ends, and the first one when the run
                            * may stop by its gap */
    size_t polish_rounds;  /* at most */
    int trace;             /* keep a moment for every iteration */
    dcrf_log_callback log; /* NULL: none */
    void *log_user;
    dcrf_progress_callback progress; /* NULL: none */
    void *progress_user;
    dcrf_cancel_callback cancel; /* NULL: none */
    void *cancel_user;
    dcrf_lp_settings lp;
    dcrf_proving proof;
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
#define DCRF_DEFAULT_LP_CLIQUE_FORM DCRF_CLIQUE_MIN
#define DCRF_DEFAULT_LP_SCHEDULE DCRF_LP_SCHEDULE_HUBER

/* Set every field to what is best for most models with this method. */
DCRF_API void dcrf_settings_defaults(dcrf_settings *settings, dcrf_method method);

/* ---- the solver ----------------------------------------------------------------------------- */

typedef struct dcrf_solver dcrf_solver;

/* A solver for a plan and its model. Where the model changes meanwhile, every call that would go on
 * fails; what was found can still be read. Checks and copies the settings and takes the memory of
 * the method; it computes nothing yet. Candidates and the workspace take theirs when they are first
 * used: a candidate that gets none is left out (see dcrf_solver_info), and whatever else fails, the
 * best labelling so far can be read. */
DCRF_API dcrf_status dcrf_solver_new(dcrf_solver **solver, const dcrf_plan *plan,
                                     dcrf_workspace *workspace, const dcrf_settings *settings,
                                     dcrf_error *error);
DCRF_API void dcrf_solver_free(dcrf_solver **solver);

/* Begin (again) from a labelling, or from a block of distributions over labels (as in
 * dcrf/experimental.h, one channel per label). Without either, a run begins where the method likes
 * best. A labelling, or the label of the largest entry in every row, becomes a candidate: the run
 * never ends worse than that. */
DCRF_API dcrf_status dcrf_solver_start_labels(dcrf_solver *solver, const uint16_t *labels,
                                              dcrf_error *error);
DCRF_API dcrf_status dcrf_solver_start_marginals(dcrf_solver *solver, const float *marginals,
                                                 size_t stride, dcrf_error *error);

/* One iteration: DCRF_OK to go on, a positive status when a stopping rule is met (another call
 * would still work), a negative one on an error. */
DCRF_API dcrf_status dcrf_solver_step(dcrf_solver *solver, dcrf_error *error);

/* Round and polish what there is. A stage that runs out of memory is left out. */
DCRF_API dcrf_status dcrf_solver_finish(dcrf_solver *solver, dcrf_error *error);

/* Candidates, steps until a stopping rule is met, then dcrf_solver_finish (without polishing where
 * a callback cancelled), then the proof that the settings ask for, all by one clock. Returns why it
 * stopped. A proof that runs out of time or memory is left out: see `proof_stop`. */
DCRF_API dcrf_status dcrf_solver_run(dcrf_solver *solver, dcrf_error *error);

/* ---- results -------------------------------------------------------------------------------- */

/* What the stage before the iterations tries. */
typedef enum dcrf_candidate_kind {
    DCRF_CANDIDATE_UNARY = 0,  /* every variable has its smallest unary */
    DCRF_CANDIDATE_CONSTANT,   /* the best of the constant labellings */
    DCRF_CANDIDATE_FLOW,       /* a proof by potential flow that the constant one is optimal: LP,
                                * where nothing better is known */
    DCRF_CANDIDATE_MEAN_FIELD, /* QP and LP, where no start was given or the gap stays open */
    DCRF_CANDIDATE_ANNEALING,  /* LP, likewise: mean field that begins hot */
    DCRF_CANDIDATE_FAST,       /* LP with exact operators, in place of both: the same problem solved
                                * with the fast ones */
    DCRF_CANDIDATE_KINDS
} dcrf_candidate_kind;
/* "unary", "constant", "flow", "mean field", "annealing", "fast". */
DCRF_API const char *dcrf_candidate_kind_name(dcrf_candidate_kind kind);
DCRF_API int dcrf_candidate_kind_from_name(const char *name, dcrf_candidate_kind *kind);

typedef struct dcrf_candidate {
    int was_tried;
    dcrf_status status; /* DCRF_OK, why it was cut short, or the error that it was left out for */
    double energy;      /* NaN: none */
    double lower_bound; /* NaN: none */
    double time_s;
} dcrf_candidate;

#define DCRF_CANDIDATE_ROOM 8

typedef struct dcrf_solver_info {
    dcrf_method method;
    size_t iterations;
    dcrf_status stop;       /* why the last run stopped; DCRF_OK while there was none */
    dcrf_energy energy;     /* of the labelling that dcrf_solver_labels gives; NaN before a run. At
                             * the end of a run with a bound no less than the true one, with what
                             * rounding and pairs that were left out can add to `pairwise` */
    dcrf_energy unpolished; /* of the best labelling that no move has touched */
    dcrf_energy rounded;    /* of the method's own last labelling; NaN while there is none */
    double objective;       /* NaN before the first iteration */
    double lower_bound;     /* NaN where the method has none */
    double relative_gap;    /* dcrf_relative_gap of the two; NaN where there is no bound */
    double unary_floor;     /* dcrf_unary_floor of the model */
    int is_constant;        /* the labelling has one label only: the weights drown the unaries */
    dcrf_status left_out;   /* DCRF_OK, or the error of a stage that the result could do without */
    double start_s;         /* seconds: candidates, */
    double solve_s;         /* the method's iterations, */
    double evaluate_s;      /* energies of its labellings, */
    double round_s;         /* rounding */
    double polish_s;        /* and moves */
    dcrf_candidate candidates[DCRF_CANDIDATE_ROOM]; /* by dcrf_candidate_kind */
    size_t proven;          /* variables with one possible label; 0 without a bound */
    double proof_s;         /* seconds of the proof's stage */
    dcrf_status proof_stop; /* DCRF_OK, or what cut the proof short that the settings ask for */
    unsigned char reserved[64];
} dcrf_solver_info;

DCRF_API void dcrf_solver_get_info(const dcrf_solver *solver, dcrf_solver_info *info);

/* The best labelling seen: one label a variable. */
DCRF_API void dcrf_solver_labels(const dcrf_solver *solver, uint16_t *labels);

/* How many labels an optimal labelling can have, one number for every variable, as far as the run
 * has proven it: 1 is proven, and all are possible where there is no bound. */
DCRF_API dcrf_status dcrf_solver_labels_left(const dcrf_solver *solver, uint16_t *counts,
                                             dcrf_error *error);

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
