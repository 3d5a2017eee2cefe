/* The stage before the iterations: labellings and proofs that are easy to find.
 *
 * It tries the unary minimum and the best constant labelling; for the QP and the LP, mean field,
 * unless the user gave a start; and for the LP, if nothing better than a constant labelling is
 * known, the potential flow. It runs once. The results are in the solver's best labelling and in
 * info.candidates; what later stages can use is kept here. */
#ifndef DCRF_SOLVER_CANDIDATES_H
#define DCRF_SOLVER_CANDIDATES_H

#include "lp/potential_flow.h"

#include <dcrf/solver.h>

/* Labellings of mean field: after the method's default number of updates and, for the LP, after
 * convergence, so that no other method ends above it; and after fewer updates, before weights that
 * overwhelm the unaries have taken over. */
enum { DCRF_SNAPSHOT_EARLY, DCRF_SNAPSHOT_USUAL, DCRF_SNAPSHOT_CONVERGED, DCRF_SNAPSHOTS };

struct dcrf_candidates {
    bool have_run;
    dcrf_energy energies[DCRF_CANDIDATE_KINDS]; /* total = NaN: not known */
    bool is_annealing_due;               /* annealing and moves wait for the method's first steps */
    uint16_t *snapshots[DCRF_SNAPSHOTS]; /* labels; NULL if the method is mean field itself */
    bool has_snapshot[DCRF_SNAPSHOTS];
    struct dcrf_flow_proof flow; /* pairwise = NULL: none */
};

bool dcrf_candidates_init(struct dcrf_candidates *candidates, dcrf_method method, size_t variables);
void dcrf_candidates_clear(struct dcrf_candidates *candidates);

/* Run the stage, unless it has already run. Candidates that run out of memory are left out. */
dcrf_status dcrf_solver_candidates(dcrf_solver *solver, bool has_start, dcrf_error *error);

/* The mean field labelling after the most updates; NULL: there is none. */
const uint16_t *dcrf_candidates_mean_field(const struct dcrf_candidates *candidates);

/* Try a single candidate, unless it has already been tried. */
dcrf_status dcrf_solver_try_mean_field(dcrf_solver *solver, dcrf_error *error);
dcrf_status dcrf_solver_try_annealing(dcrf_solver *solver, dcrf_error *error);

#endif
