/* One update of mean field in host memory (the mathematics: meanfield/mean_field.c), for the CPU
 * backend and for mean field with derivatives. */
#ifndef DCRF_ENERGY_UPDATE_H
#define DCRF_ENERGY_UPDATE_H

#include "dsp/dsp.h"
#include "energy/coupling.h"

/* Blocks with the model's stride. */
struct dcrf_update {
    const struct dcrf_coupling *coupling;
    const float *unary; /* multiplied by the coldness */
    const float *extra; /* what cliques add to the logits; NULL: none */
    float coldness;     /* of the field */
    float damping;      /* of the logits; 0 without logits */
    float *message;     /* room for the field of q */
    float *logits;      /* those of q, replaced by the next; NULL: not wanted */
    const float *q;
    float *next; /* may be q */
};

/* next = softmax(-unary). *sums: see dsp/dsp.h; NULL: not wanted. */
void dcrf_update_start(const struct dcrf_update *update, double *sums);

/* next = softmax of the logits -unary - 2 coldness Psi q + extra, damped. */
dcrf_status dcrf_update_step(const struct dcrf_update *update, double *sums, dcrf_error *error);

#endif
