/* The proof for constant labellings; it allocates its own memory. */
#ifndef DCRF_LP_POTENTIAL_FLOW_H
#define DCRF_LP_POTENTIAL_FLOW_H

#include "backend/dual_space.h"
#include "core/interrupt.h"

struct dcrf_flow_proof {
    float *potentials; /* u in [0, 1], with the model's stride: alpha_ab = K_ab (u_a - u_b) */
    double *pairwise;  /* A alpha, with the model's stride; v is that of the zero point */
    double roundings;  /* of pairwise, as in struct dcrf_dual */
    double *spread;    /* per label, of the potentials before they were scaled; 1 if below 1 */
    double bound;      /* the lower bound that they prove */
};

/* Try to prove that the best constant labelling, of energy `constant_energy`, is optimal. If
 * interrupted, there may be no proof: then proof->pairwise is NULL. */
dcrf_status dcrf_potential_flow(const struct dcrf_dual_space *space, double constant_energy,
                                const struct dcrf_interrupt *interrupt,
                                struct dcrf_flow_proof *proof, dcrf_error *error);
void dcrf_flow_proof_clear(struct dcrf_flow_proof *proof);

#endif
