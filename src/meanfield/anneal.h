/* A labelling by annealed mean field. */
#ifndef DCRF_MEANFIELD_ANNEAL_H
#define DCRF_MEANFIELD_ANNEAL_H

#include "solver/method.h"

/* Cool down and give the labels of the largest marginals. All memory is its own, and freed. */
dcrf_status dcrf_anneal(const struct dcrf_problem *problem, uint16_t *labels, dcrf_error *error);

#endif
