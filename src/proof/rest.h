/* Solving the relaxation of a small number of undecided variables: in double, with the matrix in
 * memory. */
#ifndef DCRF_PROOF_REST_H
#define DCRF_PROOF_REST_H

#include "proof/knowledge.h"

#include <stdbool.h>

/* Are there undecided variables, few enough, and no cliques? */
bool dcrf_rest_is_small(const struct dcrf_knowledge *known);

/* Solve it. known->labels becomes the best labelling found, and *is_better says whether that has
 * lower energy than before; `y` (variables x labels) receives the relaxation's y at the undecided
 * variables. *excess: upper bound on the labelling's energy above the optimum. With `may_exclude`,
 * the labels that this rules out are excluded, but nothing is decided. */
dcrf_status dcrf_rest_solve(struct dcrf_knowledge *known, float *y, bool may_exclude,
                            bool *is_better, double *excess, dcrf_error *error);

#endif
