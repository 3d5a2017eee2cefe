/* The stage before the iterations: labellings that are easy to find, and proofs that are.
 *
 * The unary minimum and the best constant labelling; for the LP, where nothing better than a
 * constant labelling is known, the potential flow; for the QP and the LP mean field, unless the
 * user gave a start. It runs once. What it found is in the solver's best labelling and in
 * info.candidates; what later stages can use is kept here. */
#ifndef DCRF_SOLVER_CANDIDATES_H
#define DCRF_SOLVER_CANDIDATES_H

#include "lp/potential_flow.h"

#include <dcrf/solver.h>

/* Labellings of mean field on its way: after as many updates as the method makes by default and,
 * for the LP, where it has converged, so that no other method ends above it; and after fewer, where
 * weights that drown the unaries have not yet had their way. */
enum { DCRF_SNAPSHOT_EARLY, DCRF_SNAPSHOT_USUAL, DCRF_SNAPSHOT_CONVERGED, DCRF_SNAPSHOTS };

struct dcrf_candidates {
    bool have_run;
    bool is_annealing_due; /* it waits until the method has made some steps, and moves with it */
    uint16_t *snapshots[DCRF_SNAPSHOTS]; /* labels; NULL where the method is mean field itself */
    bool has_snapshot[DCRF_SNAPSHOTS];
    struct dcrf_flow_proof flow; /* pairwise = NULL: none */
};

bool dcrf_candidates_init(struct dcrf_candidates *candidates, dcrf_method method, size_t variables);
void dcrf_candidates_clear(struct dcrf_candidates *candidates);

/* Run the stage, where it has not run yet. Candidates that run out of memory are left out. */
dcrf_status dcrf_solver_candidates(dcrf_solver *solver, bool has_start, dcrf_error *error);

/* The labelling of mean field that has come furthest; NULL: there is none. */
const uint16_t *dcrf_candidates_mean_field(const struct dcrf_candidates *candidates);

/* One alone, where it was not tried yet. */
dcrf_status dcrf_solver_try_mean_field(dcrf_solver *solver, dcrf_error *error);
dcrf_status dcrf_solver_try_annealing(dcrf_solver *solver, dcrf_error *error);

#endif
