/* Labellings of ordered labels, found by mean field on the way of the LP. */
#ifndef DCRF_SOLVER_REFINE_H
#define DCRF_SOLVER_REFINE_H

#include <dcrf/solver.h>

struct dcrf_refiner {
    void *mean_field;  /* its state; NULL: nothing is refined */
    float *start;      /* block of marginals */
    size_t labellings; /* so far */
};

/* Allocate memory, if the labels of the solver's model have an order. */
dcrf_status dcrf_refiner_init(dcrf_solver *solver, dcrf_error *error);
void dcrf_refiner_clear(struct dcrf_refiner *refiner);

/* Consider some labellings made from the method's marginals; nothing for labels without an order.
 */
dcrf_status dcrf_solver_refine(dcrf_solver *solver, dcrf_error *error);

#endif
