/* Improving the labelling of the undecided variables by relabelling whole blobs. */
#ifndef DCRF_PROOF_BLOBS_H
#define DCRF_PROOF_BLOBS_H

#include "proof/groups.h"

/* Try every possible label on each of the largest blobs of undecided variables with equal labels,
 * and keep what lowers *energy, the energy of groups->known->labels. *is_better: something did. */
dcrf_status dcrf_blobs_move(struct dcrf_groups *groups, double *energy, bool *is_better,
                            dcrf_error *error);

#endif
