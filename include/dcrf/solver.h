/* Minimizing the energy: mean field, the QP relaxation and the LP relaxation behind one handle.
 *
 *   dcrf_settings settings;
 *   dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
 *   dcrf_solver_new(&solver, plan, workspace, &settings, &error);
 *   dcrf_solver_run(solver, &error);
 *   dcrf_solver_labels(solver, labels, variables, &error);
 *   dcrf_solver_free(&solver);
 *
 * A solver always holds the labelling of lowest energy found so far. The candidates include the
 * unary minimum, the best constant labelling, the result of mean field and the given start. The
 * labelling can be read however a run ends: by convergence, a limit, a callback or an error.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_SOLVER_H
#define DCRF_SOLVER_H

#include <dcrf/compatibility.h>
#include <dcrf/labelling.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings ------------------------------------------------------------------------------- */

typedef enum dcrf_method {
    DCRF_METHOD_MF = 0, /* mean field with parallel updates */
    DCRF_METHOD_QP,     /* the quadratic relaxation, by Frank-Wolfe: a local minimum */
    DCRF_METHOD_LP      /* the linear relaxation, with a lower bound; Potts and distances */
} dcrf_method;
/* "mf", "qp", "lp". */
DCRF_API const char *dcrf_method_name(dcrf_method method);
DCRF_API int dcrf_method_from_name(const char *name, dcrf_method *method);

/* The stages of a run, in order. */
typedef enum dcrf_stage {
    DCRF_STAGE_CANDIDATES = 0, /* labellings and proofs that are cheap to find */
    DCRF_STAGE_FAST,           /* with exact operators, among the candidates: the same problem with
                                * the fast ones */
    DCRF_STAGE_SOLVE,          /* the method's iterations */
    DCRF_STAGE_FINISH,         /* rounding and polishing */
    DCRF_STAGE_PROOF           /* of single variables, if the settings ask for it */
} dcrf_stage;
/* "candidates", "fast", "solve", "finish", "proof". */
DCRF_API const char *dcrf_stage_name(dcrf_stage stage);
DCRF_API int dcrf_stage_from_name(const char *name, dcrf_stage *stage);

/* The state of a run at one moment. Unknown values are NaN. */
typedef struct dcrf_moment {
    double time_s; /* wall time since the run began */
    size_t iteration;
    double objective;    /* the quantity the method minimizes */
    double energy;       /* of the last iteration's labelling, if computed */
    double best_energy;  /* of the best labelling so far */
    double lower_bound;  /* the best bound so far on the energy of every labelling */
    double relative_gap; /* dcrf_relative_gap of the two */
    dcrf_stage stage;
    unsigned char reserved[64];
} dcrf_moment;

/* Called after every candidate of the first stage, after every iteration, and at the end of the
 * stages that follow. A nonzero return stops the run; it is not called again after that. */
typedef int (*dcrf_progress_callback)(void *user, const dcrf_moment *moment);

/* Called often, by the thread that runs the solver: at least once per pass over the data, in every
 * stage. A nonzero return stops the run. */
typedef int (*dcrf_cancel_callback)(void *user);

/* Receives one line without a newline. */
typedef void (*dcrf_log_callback)(void *user, const char *line);

/* What a run of the LP proves about single variables (dcrf/proof.h). */
typedef enum dcrf_proving {
    DCRF_PROVE_BY_GAP = 0, /* what follows from the bound at once */
    DCRF_PROVE_VARIABLES,  /* everything provable, by dcrf_solver_prove as a last stage; the
                            * iterations leave it 30% of a time limit. With fast operators on the
                            * CPU the run stores the parts of its bound, which take as much memory
                            * as some tens of marginals */
    DCRF_PROVE_CERTIFICATE /* the same in a form that others can check; the run always stores the
                            * parts */
} dcrf_proving;
/* "gap", "variables", "certificate". */
DCRF_API const char *dcrf_proving_name(dcrf_proving proving);
DCRF_API int dcrf_proving_from_name(const char *name, dcrf_proving *proving);

/* For studies of the LP: values of dcrf_lp_schedule and dcrf_clique_form (dcrf/experimental.h). */
typedef struct dcrf_lp_settings {
    int schedule;    /* 0: the default */
    int clique_form; /* 0: the default */
    unsigned char reserved[64];
} dcrf_lp_settings;

/* All options of a run. dcrf_settings_defaults sets every field. `reserved` must stay zero. */
typedef struct dcrf_settings {
    dcrf_method method;
    size_t iterations;     /* maximum; mean-field updates, Frank-Wolfe steps, proximal steps */
    double time_limit_s;   /* wall time of a run with all its stages; the iterations leave up to 10%
                            * of it for polishing. 0: no limit */
    double gap;            /* stop at this dcrf_relative_gap or below; 0: never */
    double stationarity;   /* stop when the method's own measure is at most this; 0: never. Mean
                            * field: mean over variables of sum_i |change of Q_i|. QP: Frank-Wolfe
                            * gap / |objective|. LP: relative change of the bound. */
    double damping;        /* mean field: fraction of the old logits that is kept, 0 <= damping < 1;
                            * DCRF_DAMPING_AUTO: 0 until the free energy rises */
    size_t evaluate_every; /* iterations between evaluations of the method's labelling; 0: only at
                            * the end of the run, or always if there is a trace */
    size_t rounding_draws; /* threshold roundings of the last marginals; the best is a candidate */
    uint64_t seed;         /* for rounding */
    int polish;            /* improve labellings by discrete moves: at the end of the run the best
                            * one, the method's own and that of mean field; if the run may stop by
                            * its gap, others on the way too */
    size_t polish_rounds;  /* maximum */
    int trace;             /* record the moments that `progress` is told */
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

/* Set every field to the value that is best for most models with this method. */
DCRF_API void dcrf_settings_defaults(dcrf_settings *settings, dcrf_method method);

/* ---- the solver ----------------------------------------------------------------------------- */

typedef struct dcrf_solver dcrf_solver;

/* A solver for a plan and its model. Checks and copies the settings and allocates the method's
 * memory, but computes nothing yet. If the model changes later, calls that would continue the run
 * fail; results can still be read. Candidates and the workspace allocate memory on first use: a
 * candidate that gets none is skipped (see dcrf_solver_info). Whatever else fails, the best
 * labelling so far can be read. */
DCRF_API dcrf_status dcrf_solver_new(dcrf_solver **solver, const dcrf_plan *plan,
                                     dcrf_workspace *workspace, const dcrf_settings *settings,
                                     dcrf_error *error);
DCRF_API void dcrf_solver_free(dcrf_solver **solver);

/* Start (or restart) from a labelling, or from a block of distributions over labels (as in
 * dcrf/grid.h, one channel per label). Otherwise the method chooses its starting point. The
 * labelling, or the label of the largest entry in every row, becomes a candidate: the result is
 * never worse. */
DCRF_API dcrf_status dcrf_solver_start_labels(dcrf_solver *solver, const uint16_t *labels,
                                              dcrf_error *error);
DCRF_API dcrf_status dcrf_solver_start_marginals(dcrf_solver *solver, const float *marginals,
                                                 size_t stride, dcrf_error *error);

/* One iteration. Returns DCRF_OK to continue, a positive status if a stopping rule is met (further
 * calls still work), or a negative one on error. */
DCRF_API dcrf_status dcrf_solver_step(dcrf_solver *solver, dcrf_error *error);

/* Round and polish the current result. A stage that runs out of memory is skipped. */
DCRF_API dcrf_status dcrf_solver_finish(dcrf_solver *solver, dcrf_error *error);

/* Prove everything provable about single variables (dcrf/proof.h), after a run of the LP or its
 * steps; dcrf_solver_finish comes first if it is due. The proof is a certificate if the settings
 * ask for one. Labels, energy, bound and what is proven become those of the proof. Has the time
 * limit of the settings for itself. Returns DCRF_OK, or why the proof is incomplete: what has been
 * proven by then is kept. */
DCRF_API dcrf_status dcrf_solver_prove(dcrf_solver *solver, dcrf_error *error);

/* Try candidates, step until a stopping rule is met, then call dcrf_solver_finish (without
 * polishing if a callback cancelled) and make the proof the settings ask for, all within one time
 * limit. Returns why it stopped. A proof that runs out of time or memory is skipped: see
 * `proof_stop`. */
DCRF_API dcrf_status dcrf_solver_run(dcrf_solver *solver, dcrf_error *error);

/* ---- results -------------------------------------------------------------------------------- */

/* Labellings and proofs tried before the iterations, or after the first few. */
typedef enum dcrf_candidate_kind {
    DCRF_CANDIDATE_UNARY = 0,  /* the label of lowest unary energy at every variable */
    DCRF_CANDIDATE_CONSTANT,   /* the best constant labelling */
    DCRF_CANDIDATE_FLOW,       /* a proof by potential flow that the constant one is optimal: LP, if
                                * no better labelling is known */
    DCRF_CANDIDATE_MEAN_FIELD, /* QP and LP, if no start was given or the gap stays open */
    DCRF_CANDIDATE_ANNEALING,  /* LP, likewise: mean field with a high initial temperature */
    DCRF_CANDIDATE_FAST        /* LP with exact operators, replacing both: the same problem solved
                                * with the fast ones */
} dcrf_candidate_kind;
#define DCRF_CANDIDATE_KINDS (DCRF_CANDIDATE_FAST + 1)
/* "unary", "constant", "flow", "mean field", "annealing", "fast". */
DCRF_API const char *dcrf_candidate_kind_name(dcrf_candidate_kind kind);
DCRF_API int dcrf_candidate_kind_from_name(const char *name, dcrf_candidate_kind *kind);

typedef struct dcrf_candidate {
    int was_tried;
    dcrf_status status; /* DCRF_OK, why it stopped early, or why it was skipped */
    double energy;      /* NaN: none */
    double lower_bound; /* NaN: none */
    double time_s;
    unsigned char reserved[64];
} dcrf_candidate;

#define DCRF_CANDIDATE_ROOM 8

typedef struct dcrf_solver_info {
    dcrf_method method;
    size_t iterations;
    dcrf_status stop;       /* why the last run stopped; DCRF_OK before the first */
    dcrf_energy energy;     /* of the labelling from dcrf_solver_labels; NaN before a run. After a
                             * run with a bound it is an upper bound: `pairwise` includes the
                             * possible effect of rounding and omitted pairs */
    dcrf_energy unpolished; /* of the best labelling before any polishing */
    dcrf_energy rounded;    /* of the method's own last labelling; NaN if there is none */
    double objective;       /* NaN before the first iteration */
    double lower_bound;     /* NaN if the method has none */
    double relative_gap;    /* dcrf_relative_gap of the two; NaN without a bound */
    double unary_floor;     /* dcrf_unary_floor of the model */
    int is_constant;        /* only one label: the kernels outweigh the unary energies */
    dcrf_status left_out;   /* DCRF_OK, or the error of an optional stage that was skipped */
    double start_s;         /* wall time in seconds: candidates */
    double solve_s;         /* the method's iterations */
    double evaluate_s;      /* energies of its labellings */
    double round_s;         /* rounding */
    double polish_s;        /* polishing */
    dcrf_candidate candidates[DCRF_CANDIDATE_ROOM]; /* indexed by dcrf_candidate_kind */
    size_t proven;                /* variables with one possible label; 0 without a bound */
    double proof_s;               /* wall time of the proof in seconds */
    dcrf_status proof_stop;       /* DCRF_OK, or why the requested proof is incomplete */
    uint16_t constant_label;      /* of the best constant labelling, if its energy is known */
    dcrf_left_out bound_left_out; /* by lower_bound; its energy is that of the labelling */
    unsigned char reserved[32];
} dcrf_solver_info;

DCRF_API void dcrf_solver_get_info(const dcrf_solver *solver, dcrf_solver_info *info);

/* The energy of a candidate's labelling, term by term; NaN if it is not known. After a run none is
 * below that of the result. */
DCRF_API void dcrf_solver_candidate_energy(const dcrf_solver *solver, dcrf_candidate_kind kind,
                                           dcrf_energy *energy);

/* Arrays for results come with the number of elements they hold. Too few: an error, and nothing is
 * written.
 *
 * The best labelling found, at first the unary minimum: one label per variable. */
DCRF_API dcrf_status dcrf_solver_labels(const dcrf_solver *solver, uint16_t *labels, size_t count,
                                        dcrf_error *error);

/* The number of labels per variable that an optimal labelling can have, as far as the run has
 * proven: 1 means decided. Without a bound all labels are possible. */
DCRF_API dcrf_status dcrf_solver_labels_left(const dcrf_solver *solver, uint16_t *counts,
                                             size_t count, dcrf_error *error);

/* The method's last iterate: a block of distributions over labels, `count` floats in all. */
DCRF_API dcrf_status dcrf_solver_marginals(const dcrf_solver *solver, float *marginals,
                                           size_t count, size_t stride, dcrf_error *error);

/* The recorded moments, *count of them, oldest first; valid until the next step. A long run keeps
 * every second one, then every fourth, and so on. */
DCRF_API const dcrf_moment *dcrf_solver_trace(const dcrf_solver *solver, size_t *count);

#ifdef __cplusplus
}
#endif
#endif
