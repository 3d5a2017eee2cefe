/* Mean field from arrays to arrays: what comes after a network, and nothing around it.
 *
 * The marginals and labels of a fixed number of mean-field updates of a model with Potts kernels,
 * as a solver with the method DCRF_METHOD_MF finds them without damping; but there is no model, no
 * plan and no solver to make, and no candidate, energy or stopping rule is computed.
 *
 * Where the workspace has a device, each array may be in the host's memory or in that of the
 * device: arrays that are there are neither copied nor waited for by the host, and the call comes
 * back when the results are in the arrays that were given for them. The images of exact operators
 * are the exception: they are copied to the host.
 *
 *   dcrf_arrays arrays;
 *   dcrf_arrays_defaults(&arrays);
 *   arrays.grid = dcrf_grid_2d(width, height);
 *   arrays.unary = dcrf_view_planar(logits, DCRF_F32, &arrays.grid, label_count);
 *   arrays.unary_kind = DCRF_UNARY_LOGITS;
 *   arrays.kernels = kernels;
 *   arrays.kernel_count = 2;
 *   arrays.marginals = dcrf_view_planar(q, DCRF_F32, &arrays.grid, label_count);
 *   dcrf_mean_field_arrays(workspace, &arrays, &error);
 *
 * For many images give each thread a workspace of its own: their work on the device overlaps. Small
 * ones are best given to dcrf_mean_field_arrays_many.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_MEAN_FIELD_H
#define DCRF_MEAN_FIELD_H

#include <dcrf/device.h>
#include <dcrf/unary.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrf_arrays {
    dcrf_grid grid;
    dcrf_view unary; /* one channel per label, over the grid */
    dcrf_unary_kind unary_kind;
    const dcrf_kernel *kernels; /* at most DCRF_ARRAYS_KERNELS; their images are arrays too */
    size_t kernel_count;
    dcrf_operator_kind operator_kind;
    size_t iterations;
    /* Where the results go: data NULL where one of them is not wanted. The elements are written,
     * whatever the `const` of a view says. */
    dcrf_view marginals; /* DCRF_F32, one channel per label */
    dcrf_view labels;    /* DCRF_U8, DCRF_U16 or DCRF_I32, one channel: the largest marginals */
    /* Arrays on the device are ready when what is in this stream now is done (dcrf_device_wait);
     * NULL: they are ready. */
    void *stream;
    unsigned char reserved[64];
} dcrf_arrays;

#define DCRF_ARRAYS_KERNELS 16

/* Energies, fast operators, 10 iterations, the rest zero. */
DCRF_API void dcrf_arrays_defaults(dcrf_arrays *arrays);

/* With a device, arrays in the host's memory must be contiguous, in any order of their axes. On
 * failure the results mean nothing. */
DCRF_API dcrf_status dcrf_mean_field_arrays(dcrf_workspace *workspace, const dcrf_arrays *arrays,
                                            dcrf_error *error);

/* The same of `count` problems. On a device those that follow each other and differ in nothing but
 * their arrays and streams are worked on together, at most dcrf_arrays_batch of them, unless the
 * operators are exact: small images would leave most of a device idle. The results are the same
 * bytes as one by one. Where a problem fails, *failed is its number, those before it are done, and
 * the results of the others mean nothing; else it is `count`. */
DCRF_API dcrf_status dcrf_mean_field_arrays_many(dcrf_workspace *workspace,
                                                 const dcrf_arrays *arrays, size_t count,
                                                 size_t *failed, dcrf_error *error);
DCRF_API size_t dcrf_arrays_batch(const dcrf_grid *grid, size_t labels);

#ifdef __cplusplus
}
#endif
#endif
