/* The proof for constant labellings, with memory of its own. */
#ifndef DCRF_LP_POTENTIAL_FLOW_H
#define DCRF_LP_POTENTIAL_FLOW_H

#include "backend/dual_space.h"
#include "core/interrupt.h"

struct dcrf_flow_proof {
    float
        *potentials; /* u in [0, 1], a block with the model's stride: alpha_ab = K_ab (u_a - u_b) */
    double *pairwise; /* A alpha, likewise; the cliques' part is that of the zero point */
    double roundings; /* of pairwise, as in struct dcrf_dual */
    double bound;     /* what they prove */
};

/* Try to prove that the best constant labelling, of energy `constant_energy`, is optimal. Where it
 * is interrupted there may be no proof: then proof->pairwise is NULL. */
dcrf_status dcrf_potential_flow(const struct dcrf_dual_space *space, double constant_energy,
                                const struct dcrf_interrupt *interrupt,
                                struct dcrf_flow_proof *proof, dcrf_error *error);
void dcrf_flow_proof_clear(struct dcrf_flow_proof *proof);

#endif
