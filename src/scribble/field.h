/* A few iterations of mean field under Potts kernels, for energies that are still being made. */
#ifndef DCRF_SCRIBBLE_FIELD_H
#define DCRF_SCRIBBLE_FIELD_H

#include "core/workspace.h"
#include "energy/coupling.h"

struct dcrf_field {
    dcrf_workspace *workspace;
    const struct dcrf_coupling *coupling;
    size_t variables, labels, stride;
    const float *unary; /* blocks: the energies, */
    float *message;     /* scratch memory, */
    float *q;           /* and the distributions that come of them */
};

/* Q = softmax(-unary), then softmax(-unary + 2 message) some times; the derivation is in
 * meanfield/mean_field.c. */
dcrf_status dcrf_field_run(const struct dcrf_field *field, size_t iterations, dcrf_error *error);

/* The label with the largest q at a variable, the first of equals. */
size_t dcrf_field_likeliest(const struct dcrf_field *field, size_t variable);

#endif
