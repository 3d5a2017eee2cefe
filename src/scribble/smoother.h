/* A model with Potts kernels and a few mean-field iterations, used while unary energies are being
 * estimated. */
#ifndef DCRF_SCRIBBLE_SMOOTHER_H
#define DCRF_SCRIBBLE_SMOOTHER_H

#include "core/owned.h"
#include "core/workspace.h"
#include "energy/coupling.h"

struct dcrf_smoother {
    dcrf_workspace *workspace;
    dcrf_model *model; /* of the kernels */
    dcrf_plan *plan;
    struct dcrf_coupling *coupling;
    size_t variables, labels, stride;
    float *unary;   /* blocks: the unary energies */
    float *message; /* scratch memory */
    float *q;       /* the resulting distributions */
    struct dcrf_owned owned;
};

/* Make the kernels, and blocks of zeros. Whatever comes of it, it can be cleared. */
dcrf_status dcrf_smoother_init(struct dcrf_smoother *smoother, const dcrf_grid *grid, size_t labels,
                               const dcrf_kernel *kernels, size_t kernel_count,
                               dcrf_workspace *workspace, dcrf_error *error);
void dcrf_smoother_clear(struct dcrf_smoother *smoother);

/* Q = softmax(-unary), then Q = softmax(-unary + 2 message), `iterations` times; the derivation is
 * in meanfield/mean_field.c. */
dcrf_status dcrf_smoother_run(const struct dcrf_smoother *smoother, size_t iterations,
                              dcrf_error *error);

/* The label with the largest q at a variable, the first if there are several. */
size_t dcrf_smoother_likeliest(const struct dcrf_smoother *smoother, size_t variable);

#endif
