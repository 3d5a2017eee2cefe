/* The inside of a solver. */
#ifndef DCRF_SOLVER_SOLVER_H
#define DCRF_SOLVER_SOLVER_H

#include "round/polish.h"
#include "round/round.h"
#include "solver/candidates.h"
#include "solver/method.h"
#include "solver/trace.h"

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
    dcrf_solver_info info; /* energies are infinite where they are not known yet */
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

/* Let the method begin from y, or where it likes best (NULL). */
dcrf_status dcrf_solver_start(dcrf_solver *solver, const float *y, dcrf_error *error);

#define DCRF_UNKNOWN_ENERGY                                                                        \
    (dcrf_energy) {                                                                                \
        (double)NAN, (double)NAN, (double)NAN, (double)NAN                                         \
    }

#endif
