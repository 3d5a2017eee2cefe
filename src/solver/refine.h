/* Labellings of ordered labels, found by mean field on the way of the LP. */
#ifndef DCRF_SOLVER_REFINE_H
#define DCRF_SOLVER_REFINE_H

#include <dcrf/solver.h>

/* Consider some labellings made from the method's marginals; nothing for labels without an order.
 */
dcrf_status dcrf_solver_refine(dcrf_solver *solver, dcrf_error *error);

#endif
