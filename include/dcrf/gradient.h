/* Derivatives for learning: of mean field with a fixed number of updates, and of the relaxed
 * pairwise energy, with respect to unary energies, weights, compatibilities, sigmas and features.
 * They are vector-Jacobian products, as in reverse-mode differentiation. Each costs a few filters;
 * memory is linear in the number of variables.
 *
 *   q_0 = softmax(-phi),  q_t = softmax(-phi - 2 sum_m w_m mu_m (K_m - diag) q_{t-1})
 *
 * as in dcrf/solver.h without damping, stopping rules and cliques.
 *
 * With respect to unary energies, weights and compatibilities, the derivatives are those of the
 * plan's operators, of any kind. With respect to features and sigmas, normalization included, they
 * are
 *
 *   exact on an exact plan, from dk_ab = -k_ab (f_a - f_b)'(df_a - df_b);
 *   the same on a grid, exact except for its truncation;
 *   approximate on a lattice, whose own derivative jumps where a point changes its simplex: for
 *   sigmas of channels, the difference of the operators at 1.2 sigma and sigma / 1.2; for sigmas of
 *   positions and for features, the formula above with the lattice's values of k_ab. For features
 *   the signs are right, but the size can be a third of the true one.
 *
 * On a grid or lattice, derivatives with respect to sigmas use every third q_t, at least two, from
 * which the others are interpolated: an error below that of the lattice.
 *
 * For the formula without normalization see Kraehenbuehl and Koltun, Parameter Learning and
 * Convergent Inference for Dense Random Fields, ICML 2013.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_GRADIENT_H
#define DCRF_GRADIENT_H

#include <dcrf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Output arrays, each with the number of elements it holds; NULL: not wanted. Too few elements are
 * an error, and nothing is written. Per step, d features cost 2 d filters, and on an exact plan
 * each sigma costs one. On a grid or lattice, for three steps together, each axis costs one filter,
 * and the sigma of a channel (or of all that share one) two filters; and two lattices in all. The
 * others cost one or two filters per step. */
typedef struct dcrf_derivatives {
    float *unary; /* a block with one channel per label and the stride of the call */
    size_t unary_count;
    double *weight; /* one per kernel */
    size_t weight_count;
    double *compatibility; /* kernels x labels x labels: for mu_m(i, j) of any kind, as if all
                            * entries were independent; a symmetric matrix needs the sum for (i, j)
                            * and (j, i) */
    size_t compatibility_count;
    double *sigma; /* kernels x DCRF_MAX_FEATURES: axes (x first), then channels; zero for
                    * kernels with the caller's features */
    size_t sigma_count;
    float *const *features;   /* per kernel a pointer (or NULL) to variables x dimension floats: for
                               * the features as the kernel uses them, divided by their sigmas */
    size_t features_count;    /* of each of them */
    int channels_share_sigma; /* nonzero: all channels of a kernel share one sigma. On a lattice its
                               * derivative is then computed at once and stored for the first
                               * channel; the others are zero */
    unsigned char reserved[60];
} dcrf_derivatives;

/* ---- mean field, unrolled ------------------------------------------------------------------- */

typedef struct dcrf_unrolled dcrf_unrolled;

/* Allocates iterations + 1 distributions and a few more. Weights, compatibilities and unary
 * energies are read at each run. Fails if the model has cliques. */
DCRF_API dcrf_status dcrf_unrolled_new(dcrf_unrolled **unrolled, const dcrf_plan *plan,
                                       dcrf_workspace *workspace, size_t iterations,
                                       dcrf_error *error);
DCRF_API void dcrf_unrolled_free(dcrf_unrolled **unrolled);

/* Run all updates and write the last q, a block with one channel per label. q holds `count` floats.
 * Fewer than variables x stride are an error, and nothing is written. `mask` (may be NULL) has one
 * byte per variable. Variables whose byte is 0 neither send nor receive messages, and their rows of
 * q are zero. */
DCRF_API dcrf_status dcrf_unrolled_forward(dcrf_unrolled *unrolled, const uint8_t *mask, float *q,
                                           size_t count, size_t stride, dcrf_error *error);

/* ln q of the last forward run, computed from the energies and not from q, so it is finite even
 * where q underflows. `log_q` holds `count` floats, with the same rule. Rows of masked variables
 * are zero. */
DCRF_API dcrf_status dcrf_unrolled_log_q(dcrf_unrolled *unrolled, float *log_q, size_t count,
                                         size_t stride, dcrf_error *error);

/* From the derivative of a loss with respect to the last q, compute all others. It is an error
 * if the model has changed since the forward run. Derivatives for zero entries of q, including
 * those of masked variables, are ignored and may be anything. Can be called repeatedly. */
DCRF_API dcrf_status dcrf_unrolled_backward(dcrf_unrolled *unrolled, const float *q_derivative,
                                            size_t stride, const dcrf_derivatives *derivatives,
                                            dcrf_error *error);

/* The same from the derivative with respect to the last ln q. */
DCRF_API dcrf_status dcrf_unrolled_backward_log_q(dcrf_unrolled *unrolled,
                                                  const float *log_q_derivative, size_t stride,
                                                  const dcrf_derivatives *derivatives,
                                                  dcrf_error *error);

/* ---- the relaxed pairwise energy ------------------------------------------------------------ */

/* The energy sum_m w_m sum_{a != b} k_m(a, b) sum_ij mu_m(i, j) y_ai y_bj and its derivatives. For
 * Potts and rows of y that sum to one, it is y'K(1 - y) summed over labels. y is a block of any
 * finite values; a row of zeros leaves its variable out. `y_derivative` (may be NULL) is a block
 * with the same stride and holds `count` floats. Fewer than variables x stride are an error, and
 * nothing is written. derivatives->unary must be NULL. */
DCRF_API dcrf_status dcrf_pairwise_gradient(const dcrf_plan *plan, dcrf_workspace *workspace,
                                            const float *y, size_t stride, double *energy,
                                            float *y_derivative, size_t count,
                                            const dcrf_derivatives *derivatives, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
