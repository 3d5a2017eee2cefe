/* Mean field as pydensecrf does it: for programs that expect its numbers.
 *
 * This is another model than that of dcrf/model.h, and on purpose:
 *
 *   Q <- softmax(-unary - message),   message_ai = sum_m sum_j mu_m(i, j) (K_m Q_j)_a
 *
 *   mu(i, j): a scalar w means -w [i == j], a vector v means +v_i [i == j], a matrix M means
 *   (M + M')_ij / 2, so that positive arrays have the opposite sign to a positive scalar.
 *
 *   K: the permutohedral lattice as it comes, for spatial kernels too: blurred one way by
 *   (1/2, 1, 1/2) along the axes 0 .. d, times 1 / (1 + 2^-d), not calibrated and not symmetrized;
 *   its diagonal is kept, so that a pixel sends a message to itself; a pair counts once.
 *
 * All variables are updated at once, a fixed number of times. For the energy of dcrf/model.h, a
 * solver and a bound use dcrf/solver.h instead.
 *
 * Arrays of distributions are planar, as there: label i of variable a at q[i * variables + a].
 *
 * A label whose probability is below a threshold t at every variable, before and after an update,
 * is not filtered in it; its part of the message counts as zero. The threshold is such that no
 * entry of the message is off by more than DCRF_DENSECRF_MESSAGE_ERROR, so that a probability is
 * off by at most t times that (to first order), and once for each such label in the others.
 * dcrf_densecrf_set_message_error changes it; 0 filters all labels always.
 *
 * A model is put on a device (dcrf/device.h) by dcrf_densecrf_set_device, or by the first kernel,
 * where that is added with a workspace on one. Its kernels, energies and updates are there from
 * then on, whatever the workspaces of later calls. All labels are
 * filtered there. What the device cannot have (more than 512 labels, a lattice of too large an
 * extent) brings the model back to the CPU, with the same results; dcrf_densecrf_device tells.
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

/* With n = K 1; the values are those of the original. */
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

/* Unary energies are zero and there are no kernels. */
DCRF_API dcrf_status dcrf_densecrf_new(dcrf_densecrf **crf, const dcrf_grid *grid, size_t labels,
                                       dcrf_error *error);
DCRF_API void dcrf_densecrf_free(dcrf_densecrf **crf);
DCRF_API size_t dcrf_densecrf_variables(const dcrf_densecrf *crf);
DCRF_API size_t dcrf_densecrf_labels(const dcrf_densecrf *crf);
DCRF_API size_t dcrf_densecrf_kernels(const dcrf_densecrf *crf);

/* Where it is: "cpu", or "cuda:0" and so on. */
DCRF_API const char *dcrf_densecrf_device(const dcrf_densecrf *crf);

/* Put a model without kernels where a workspace is. Energies that are set after that go to the
 * device at once, which is faster than to bring them there with the first kernel. */
DCRF_API dcrf_status dcrf_densecrf_set_device(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                              dcrf_error *error);

/* Replace the unary energies; the view has one channel a label. */
DCRF_API dcrf_status dcrf_densecrf_set_unary(dcrf_densecrf *crf, const dcrf_view *energies,
                                             dcrf_error *error);

/* Add a kernel, whose weight and normalization are not read. `values` is 1 (POTTS: the scalar),
 * `labels` or labels x labels finite floats. */
DCRF_API dcrf_status dcrf_densecrf_add_kernel(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                              const dcrf_kernel *kernel,
                                              dcrf_densecrf_normalization normalization,
                                              dcrf_compatibility compatibility, const float *values,
                                              dcrf_error *error);

/* Change what multiplies a kernel, and keep its lattice. */
DCRF_API dcrf_status dcrf_densecrf_set_compatibility(dcrf_densecrf *crf, size_t kernel,
                                                     dcrf_compatibility compatibility,
                                                     const float *values, dcrf_error *error);

DCRF_API dcrf_status dcrf_densecrf_set_message_error(dcrf_densecrf *crf, double message_error,
                                                     dcrf_error *error);

/* q = softmax(-unary) */
DCRF_API dcrf_status dcrf_densecrf_start(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                         float *q, dcrf_error *error);

/* One update of q, which must be finite. As many of them as an inference makes agree with it up to
 * rounding. */
DCRF_API dcrf_status dcrf_densecrf_step(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                        float *q, dcrf_error *error);

/* Start and `iterations` updates. `progress` (may be NULL) is called after each with the iteration
 * and the time; where it returns other than 0 the result is DCRF_STOP_CANCELLED and q is the
 * distribution so far. */
DCRF_API dcrf_status dcrf_densecrf_infer(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                         size_t iterations, float *q,
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
