/* Internals of a solver. */
#ifndef DCRF_SOLVER_SOLVER_H
#define DCRF_SOLVER_SOLVER_H

#include "method/method.h"
#include "round/polish.h"
#include "round/round.h"
#include "solver/candidates.h"
#include "solver/refine.h"
#include "solver/trace.h"

#include <dcrf/proof.h>

/* A labelling to be certified. It is a candidate of the run, which stops when it is proven to be
 * within a relative gap. */
struct dcrf_reference {
    const uint16_t *labels; /* NULL: none */
    double gap;             /* 0: never stop */
    dcrf_energy energy;     /* rounded up; NaN until it is known */
};

struct dcrf_solver {
    dcrf_settings settings;
    struct dcrf_problem problem;
    size_t model_revision; /* of the model when the solver was made */
    struct dcrf_stop stop;
    const struct dcrf_method_interface *method;
    void *state;
    struct dcrf_candidates candidates;
    struct dcrf_reference reference;
    bool has_started; /* the method has an iterate */
    bool is_running;  /* the clock of the run is ticking */
    bool is_polishing;
    size_t run_iterations;
    uint16_t *best;                     /* labels */
    uint16_t *candidate;                /* labels */
    float *start;                       /* block: the user's start; NULL until there is one */
    struct dcrf_polisher *polisher;     /* NULL: off */
    struct dcrf_thresholds *thresholds; /* NULL: no threshold roundings */
    dcrf_rng rng;                       /* for threshold roundings during the iterations */
    struct dcrf_refiner refiner;
    double energy_s; /* longest time taken by the energy of a labelling */
    struct dcrf_trace trace;
    dcrf_proof *proof;        /* NULL: none */
    size_t most_sweeps;       /* of a proof; smaller ones are for tests */
    double unary_floor_error; /* bound on the error of info.unary_floor */
    dcrf_solver_info info;    /* energies are infinite until they are known */
};

/* Keep labels of a known energy if they are the best so far. */
void dcrf_solver_take(dcrf_solver *solver, const uint16_t *labels, const dcrf_energy *energy);

/* Is there a solver, and is its model unchanged since the solver was made? Checked by every public
 * call that continues a run. */
dcrf_status dcrf_solver_check(const dcrf_solver *solver, dcrf_error *error);

/* Compute the energy of the labels and keep them if they are the best so far. */
dcrf_status dcrf_solver_consider(dcrf_solver *solver, const uint16_t *labels, dcrf_energy *energy,
                                 dcrf_error *error);

/* The labels with the largest marginals, given as a block with the model's stride, or as the state
 * of a method: the solver's own or another. */
void dcrf_solver_round(const dcrf_solver *solver, const float *marginals, uint16_t *labels);
dcrf_status dcrf_solver_round_method(const dcrf_solver *solver,
                                     const struct dcrf_method_interface *method, void *state,
                                     uint16_t *labels, dcrf_error *error);

/* Consider the labels after polishing them; they are changed. */
dcrf_status dcrf_solver_polish(dcrf_solver *solver, uint16_t *labels, dcrf_error *error);

/* The status of an optional computation: running out of memory is recorded and becomes DCRF_OK, as
 * does an interruption. */
dcrf_status dcrf_solver_leave_out(dcrf_solver *solver, dcrf_status status);

/* An interrupted computation just has no result; whether to stop is decided elsewhere. */
static inline dcrf_status dcrf_unless_interrupted(dcrf_status status) {
    return status == DCRF_ERROR_INTERRUPTED ? DCRF_OK : status;
}

/* Record a moment and tell it to the user; returns whether that has cancelled the run. */
bool dcrf_solver_tell(dcrf_solver *solver, const dcrf_moment *moment);

/* Tell what is known now, at the end of a candidate or of a stage. */
dcrf_moment dcrf_solver_tell_now(dcrf_solver *solver, dcrf_stage stage);

/* A proof within the time limit of the solver's run, NULL on failure; and the number of possible
 * labels of every variable (src/proof/proof.c). */
dcrf_status dcrf_proof_new(dcrf_proof **proof, dcrf_solver *solver, dcrf_error *error);
void dcrf_proof_free(dcrf_proof **proof);
void dcrf_proof_count(const dcrf_proof *proof, uint16_t *counts);

/* The results of a proof: the better of the two labellings, its energy rounded up, a lower bound,
 * and a bound on its relative distance from the optimum. */
void dcrf_solver_take_proof(dcrf_solver *solver, const uint16_t *labels, const dcrf_energy *energy,
                            double lower_bound, double relative_gap, size_t proven);

/* Start the method from y, or, if NULL, from a point that it chooses. */
dcrf_status dcrf_solver_start(dcrf_solver *solver, const float *y, dcrf_error *error);

/* ---- measure.c ------------------------------------------------------------------------------ */

/* What may interrupt the computation of an energy; NULL for one that is short. */
const struct dcrf_interrupt *dcrf_solver_energy_interrupt(const dcrf_solver *solver);

/* The status of an optional part: DCRF_OK if it failed for lack of time or memory. */
dcrf_status dcrf_solver_or_end(dcrf_solver *solver, dcrf_status status);

/* Replace the energy of the best labelling by an upper bound on it. */
dcrf_status dcrf_solver_measure(dcrf_solver *solver, dcrf_error *error);

/* What the bound leaves out, and of these labels' energy; nothing without a bound. */
dcrf_status dcrf_solver_find_left_out(dcrf_solver *solver, const uint16_t *labels, double energy,
                                      dcrf_left_out *left_out, dcrf_error *error);

/* ---- settings.c ----------------------------------------------------------------------------- */

/* Is every field in its range? */
dcrf_status dcrf_settings_check(const dcrf_settings *settings, dcrf_error *error);

/* ---- fast_start.c: for exact operators ------------------------------------------------------ */

/* Are the operators exact, and are there enough variables for the fast ones to save time? */
bool dcrf_wants_fast_start(const dcrf_solver *solver);

/* Solve the same problem with the fast operators, and leave the labelling in solver->candidate.
 * Allocates and frees its own memory. */
dcrf_status dcrf_fast_start(dcrf_solver *solver, dcrf_error *error);

/* Sweeps over all labels that a proof makes at most. */
#define DCRF_MOST_SWEEPS 500

#define DCRF_UNKNOWN_ENERGY                                                                        \
    (dcrf_energy) {                                                                                \
        (double)NAN, (double)NAN, (double)NAN, (double)NAN                                         \
    }

#endif
