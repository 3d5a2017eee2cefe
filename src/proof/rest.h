/* The relaxation of what is undecided, where that is little: all in double, with its matrix in
 * memory. */
#ifndef DCRF_PROOF_REST_H
#define DCRF_PROOF_REST_H

#include "proof/knowledge.h"

#include <stdbool.h>

/* Is there a rest, small enough, and no clique? */
bool dcrf_rest_is_small(const struct dcrf_knowledge *known);

/* Solve it. The labels of known->labels become those of the best labelling met, *is_better where
 * that is not the one of before; `y`, variables x labels, becomes the relaxation's at the undecided
 * variables. *excess: how far its energy can be above the lowest one. Where `may_exclude`, the
 * labels that this leaves no room for are excluded (but nothing is decided). */
dcrf_status dcrf_rest_solve(struct dcrf_knowledge *known, float *y, bool may_exclude,
                            bool *is_better, double *excess, dcrf_error *error);

#endif
