/* A few mean-field iterations with Potts kernels, used while unary energies are being estimated. */
#ifndef DCRF_SCRIBBLE_FIELD_H
#define DCRF_SCRIBBLE_FIELD_H

#include "core/workspace.h"
#include "energy/coupling.h"

struct dcrf_field {
    dcrf_workspace *workspace;
    const struct dcrf_coupling *coupling;
    size_t variables, labels, stride;
    const float *unary; /* blocks: the unary energies */
    float *message;     /* scratch memory */
    float *q;           /* the resulting distributions */
};

/* Q = softmax(-unary), then Q = softmax(-unary + 2 message), `iterations` times; the derivation is
 * in meanfield/mean_field.c. */
dcrf_status dcrf_field_run(const struct dcrf_field *field, size_t iterations, dcrf_error *error);

/* The label with the largest q at a variable, the first if there are several. */
size_t dcrf_field_likeliest(const struct dcrf_field *field, size_t variable);

#endif
