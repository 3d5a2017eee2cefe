/* The inside of a solver. */
#ifndef DCRF_SOLVER_SOLVER_H
#define DCRF_SOLVER_SOLVER_H

#include "round/polish.h"
#include "round/round.h"
#include "solver/candidates.h"
#include "solver/method.h"
#include "solver/trace.h"

#include <dcrf/proof.h>

struct dcrf_solver {
    dcrf_settings settings;
    struct dcrf_problem problem;
    size_t model_revision; /* of the model when the solver was made */
    struct dcrf_stop stop;
    const struct dcrf_method_interface *method;
    void *state;
    struct dcrf_candidates candidates;
    bool has_started; /* the method has an iterate */
    bool is_running;  /* the clock of the run goes */
    bool is_polishing;
    size_t run_iterations;
    uint16_t *best;      /* labels */
    uint16_t *candidate; /* labels */
    float *start;        /* block: a start on its way to the method; NULL until there is one */
    struct dcrf_polisher *polisher;     /* NULL: off */
    struct dcrf_thresholds *thresholds; /* NULL: nothing is drawn */
    dcrf_rng rng;                       /* of what is drawn on the way */
    double energy_s;                    /* what the energy of a labelling has taken, at most */
    struct dcrf_trace trace;
    dcrf_proof *proof;        /* of the last run; NULL: none */
    double unary_floor_error; /* how far info.unary_floor can be off */
    dcrf_solver_info info;    /* energies are infinite where they are not known yet */
};

/* Keep labels of a known energy if they are the best so far. */
void dcrf_solver_take(dcrf_solver *solver, const uint16_t *labels, const dcrf_energy *energy);

/* Is there a solver, and is its model as it was when the solver was made? Asked by every public
 * call that goes on with the run. */
dcrf_status dcrf_solver_check(const dcrf_solver *solver, dcrf_error *error);

/* Compute the energy of the labels and keep them if they are the best so far. */
dcrf_status dcrf_solver_consider(dcrf_solver *solver, const uint16_t *labels, dcrf_energy *energy,
                                 dcrf_error *error);

/* The labels of the largest marginals, a block with the model's stride; or those of a method: the
 * solver's own, or another. */
void dcrf_solver_round(const dcrf_solver *solver, const float *marginals, uint16_t *labels);
dcrf_status dcrf_solver_round_method(const dcrf_solver *solver,
                                     const struct dcrf_method_interface *method, void *state,
                                     uint16_t *labels, dcrf_error *error);

/* Consider the labels after polishing them; they are changed. */
dcrf_status dcrf_solver_polish(dcrf_solver *solver, uint16_t *labels, dcrf_error *error);

/* The status of something that the result can do without: want of memory is noted and is DCRF_OK.
 */
dcrf_status dcrf_solver_leave_out(dcrf_solver *solver, dcrf_status status);

/* The proof of a run, made by its clock (src/proof/proof.c). What it finds is taken by
 * dcrf_solver_take_proof: labels that are the best of the two, their energy rounded up, a bound,
 * and how far they are from the optimum at most, relatively. */
dcrf_status dcrf_proof_of_run(dcrf_proof **proof, dcrf_solver *solver, dcrf_error *error);
void dcrf_solver_take_proof(dcrf_solver *solver, const uint16_t *labels, const dcrf_energy *energy,
                            double lower_bound, double relative_gap, size_t proven);

/* Energies on the way are those of floats, and of operators that leave pairs out. Where there is a
 * bound, round that of the best labelling up to what it can be at most, so that the gap is one of
 * the model. */
dcrf_status dcrf_solver_measure(dcrf_solver *solver, dcrf_error *error);

/* The clock of a run starts, before its first step. */
void dcrf_solver_begin(dcrf_solver *solver);

/* Let the method begin from y, or where it likes best (NULL). */
dcrf_status dcrf_solver_start(dcrf_solver *solver, const float *y, dcrf_error *error);

#define DCRF_UNKNOWN_ENERGY                                                                        \
    (dcrf_energy) {                                                                                \
        (double)NAN, (double)NAN, (double)NAN, (double)NAN                                         \
    }

#endif
