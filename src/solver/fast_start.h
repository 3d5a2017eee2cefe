/* For exact operators: solve the same problem with the fast operators first. */
#ifndef DCRF_SOLVER_FAST_START_H
#define DCRF_SOLVER_FAST_START_H

#include "solver/solver.h"

/* Are the operators exact, and are there enough variables for the fast ones to save time? */
bool dcrf_wants_fast_start(const dcrf_solver *solver);

/* Solve with the fast operators and leave the labelling in solver->candidate. Allocates and frees
 * its own memory. */
dcrf_status dcrf_fast_start(dcrf_solver *solver, dcrf_error *error);

#endif
