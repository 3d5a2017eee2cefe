/* A labelling by annealed mean field. */
#ifndef DCRF_MEANFIELD_ANNEAL_H
#define DCRF_MEANFIELD_ANNEAL_H

#include "method/method.h"

/* Run annealed mean field and return the labels with the largest marginals. Allocates and frees its
 * own memory. */
dcrf_status dcrf_anneal(const struct dcrf_problem *problem, uint16_t *labels, dcrf_error *error);

#endif
