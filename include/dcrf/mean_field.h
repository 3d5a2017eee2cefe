/* Mean field from arrays to arrays, for example after a network.
 *
 * Runs a fixed number of mean-field updates of a model with Potts kernels and gives marginals and
 * labels. The result is that of a solver with DCRF_METHOD_MF and no damping, but there is no model,
 * plan or solver to create, and no candidates, energies or stopping rules are computed.
 *
 * If the workspace has a device, each array may be in host or device memory. The host neither
 * copies arrays on the device nor waits for them. The call returns when the results are in the
 * output arrays. Exception: the images of exact operators are copied to the host.
 *
 *   dcrf_arrays arrays;
 *   dcrf_arrays_defaults(&arrays);
 *   arrays.grid = dcrf_grid_2d(width, height);
 *   arrays.unary = dcrf_view_planar(logits, DCRF_F32, &arrays.grid, label_count);
 *   arrays.unary_kind = DCRF_UNARY_LOGITS;
 *   arrays.kernels = kernels;
 *   arrays.kernel_count = 2;
 *   arrays.marginals = dcrf_output_planar(q, DCRF_F32, &arrays.grid, label_count);
 *   dcrf_mean_field_arrays(workspace, &arrays, &error);
 *
 * For many images, give each thread its own workspace: their work on the device overlaps. For many
 * small images, use dcrf_mean_field_arrays_many.
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
    const dcrf_kernel *kernels; /* at most DCRF_ARRAYS_KERNELS; images may be on the device */
    size_t kernel_count;
    dcrf_operator_kind operator_kind;
    size_t iterations;
    /* Outputs; data = NULL: not wanted. */
    dcrf_output marginals; /* DCRF_F32, one channel per label */
    dcrf_output labels;    /* DCRF_U8, DCRF_U16 or DCRF_I32, one channel: the most likely label */
    /* Arrays on the device are ready once what is already queued in this stream is done (see
     * dcrf_device_wait); NULL: they are ready now. */
    void *stream;
    unsigned char reserved[64];
} dcrf_arrays;

#define DCRF_ARRAYS_KERNELS 16

/* Energies, fast operators, 10 iterations; everything else zero. */
DCRF_API void dcrf_arrays_defaults(dcrf_arrays *arrays);

/* With a device, host arrays must be contiguous, in any order of axes. On failure the outputs are
 * unspecified. */
DCRF_API dcrf_status dcrf_mean_field_arrays(dcrf_workspace *workspace, const dcrf_arrays *arrays,
                                            dcrf_error *error);

/* The same for `count` problems. On a device, consecutive problems that differ only in their arrays
 * and streams are solved together, up to dcrf_arrays_batch of them, because small images leave most
 * of a device idle. Exact operators are not batched. The results are the same bytes as one by one.
 * If a problem fails, *failed is its index; earlier ones are done, and the outputs of the others
 * are unspecified. Otherwise *failed is `count`. */
DCRF_API dcrf_status dcrf_mean_field_arrays_many(dcrf_workspace *workspace,
                                                 const dcrf_arrays *arrays, size_t count,
                                                 size_t *failed, dcrf_error *error);
DCRF_API size_t dcrf_arrays_batch(const dcrf_grid *grid, size_t labels);

#ifdef __cplusplus
}
#endif
#endif
