/* Labels that the best labelling has lost: give them back to where their neighbours want them. */
#ifndef DCRF_SOLVER_LOST_LABELS_H
#define DCRF_SOLVER_LOST_LABELS_H

#include "solver/solver.h"

/* Try it; the solver's best labelling is replaced where that is better. *is_better: it was. */
dcrf_status dcrf_try_lost_labels(dcrf_solver *solver, bool *is_better, dcrf_error *error);

#endif
