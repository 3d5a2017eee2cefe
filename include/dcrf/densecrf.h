/* Mean field that reproduces pydensecrf's numbers.
 *
 * The model deliberately differs from that of dcrf/model.h:
 *
 *   Q <- softmax(-unary - message),   message_ai = sum_m sum_j mu_m(i, j) (K_m Q_j)_a
 *
 *   mu(i, j): a scalar w means -w [i == j], a vector v means +v_i [i == j], a matrix M means
 *   (M + M')_ij / 2, so that positive arrays have the opposite sign to a positive scalar.
 *
 *   K: the plain permutohedral lattice, for spatial kernels too: blurred in one direction by
 *   (1/2, 1, 1/2) along the axes 0 .. d, times 1 / (1 + 2^-d), neither calibrated nor symmetrized.
 *   Its diagonal is kept, so a pixel sends a message to itself. Each pair counts once.
 *
 * All variables are updated in parallel, a fixed number of times. For the energy of dcrf/model.h,
 * its solvers and its bounds, use dcrf/solver.h.
 *
 * Arrays of distributions are planar: q[i * variables + a] for label i of variable a.
 *
 * A label is not filtered in an update if its probability is below a threshold t at every variable,
 * before and after the update; its part of the message counts as zero. The threshold is chosen so
 * that no entry of the message is off by more than DCRF_DENSECRF_MESSAGE_ERROR. A probability is
 * then off by at most t times that (to first order), and the others by as much for each such label.
 * dcrf_densecrf_set_message_error changes the limit; 0 filters all labels always.
 *
 * dcrf_densecrf_set_device puts a model on a device (dcrf/device.h), and so does adding the first
 * kernel with a workspace on a device. From then on its kernels, energies and updates stay there,
 * whatever workspace later calls use, and all labels are filtered. What the device does not support
 * (more than 512 labels, a lattice of too large an extent) moves the model back to the CPU, with
 * the same results; dcrf_densecrf_device tells where it is.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_DENSECRF_H
#define DCRF_DENSECRF_H

#include <dcrf/plan.h>
#include <dcrf/solver.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrf_densecrf dcrf_densecrf;

/* With n = K 1. The values are those of pydensecrf. */
typedef enum dcrf_densecrf_normalization {
    DCRF_DENSECRF_NONE = 0,
    DCRF_DENSECRF_BEFORE,   /* K diag(1 / n) */
    DCRF_DENSECRF_AFTER,    /* diag(1 / n) K */
    DCRF_DENSECRF_SYMMETRIC /* diag(1 / sqrt n) K diag(1 / sqrt n) */
} dcrf_densecrf_normalization;
/* "none", "before", "after", "symmetric". */
DCRF_API const char *dcrf_densecrf_normalization_name(dcrf_densecrf_normalization normalization);
DCRF_API int dcrf_densecrf_normalization_from_name(const char *name,
                                                   dcrf_densecrf_normalization *normalization);

#define DCRF_DENSECRF_MESSAGE_ERROR 1e-3

/* A model with unary energies of zero and no kernels. */
DCRF_API dcrf_status dcrf_densecrf_new(dcrf_densecrf **crf, const dcrf_grid *grid, size_t labels,
                                       dcrf_error *error);
DCRF_API void dcrf_densecrf_free(dcrf_densecrf **crf);
DCRF_API size_t dcrf_densecrf_variables(const dcrf_densecrf *crf);
DCRF_API size_t dcrf_densecrf_labels(const dcrf_densecrf *crf);
DCRF_API size_t dcrf_densecrf_kernels(const dcrf_densecrf *crf);

/* Where the model is: "cpu", or "cuda:0" and so on. */
DCRF_API const char *dcrf_densecrf_device(const dcrf_densecrf *crf);

/* Move a model without kernels to the workspace's device. Unary energies set later then go directly
 * to the device, which is faster than moving them with the first kernel. */
DCRF_API dcrf_status dcrf_densecrf_set_device(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                              dcrf_error *error);

/* Replace the unary energies; the view has one channel per label. */
DCRF_API dcrf_status dcrf_densecrf_set_unary(dcrf_densecrf *crf, const dcrf_view *energies,
                                             dcrf_error *error);

/* The same by the threads of the workspace. */
DCRF_API dcrf_status dcrf_densecrf_set_unary_with(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                                  const dcrf_view *energies, dcrf_error *error);

/* Add a kernel; its weight and normalization are ignored. `values` has 1 (POTTS: the scalar),
 * `labels` or labels x labels finite floats. */
DCRF_API dcrf_status dcrf_densecrf_add_kernel(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                              const dcrf_kernel *kernel,
                                              dcrf_densecrf_normalization normalization,
                                              dcrf_compatibility compatibility, const float *values,
                                              dcrf_error *error);

/* Replace the compatibility of a kernel and keep its lattice. */
DCRF_API dcrf_status dcrf_densecrf_set_compatibility(dcrf_densecrf *crf, size_t kernel,
                                                     dcrf_compatibility compatibility,
                                                     const float *values, dcrf_error *error);

DCRF_API dcrf_status dcrf_densecrf_set_message_error(dcrf_densecrf *crf, double message_error,
                                                     dcrf_error *error);

/* q = softmax(-unary). Here and in the next two calls q holds `count` floats. Fewer than one per
 * variable and label are an error, and nothing is written. */
DCRF_API dcrf_status dcrf_densecrf_start(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                         float *q, size_t count, dcrf_error *error);

/* One update of q, which must be finite. Repeated steps agree with dcrf_densecrf_infer up to
 * rounding. */
DCRF_API dcrf_status dcrf_densecrf_step(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                        float *q, size_t count, dcrf_error *error);

/* Start, then make `iterations` updates. `progress` (may be NULL) is called after each with the
 * iteration and the time. If it returns nonzero, the call returns DCRF_STOP_CANCELLED and q is the
 * current distribution. */
DCRF_API dcrf_status dcrf_densecrf_infer(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                         size_t iterations, float *q, size_t count,
                                         dcrf_progress_callback progress, void *progress_user,
                                         dcrf_error *error);

/* sum Q ln max(Q, 1e-20) + sum unary Q + sum Q message */
DCRF_API dcrf_status dcrf_densecrf_divergence(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                              const float *q, double *divergence,
                                              dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
