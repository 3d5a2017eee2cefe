/* Derivatives, for learning: of mean field with a fixed number of updates, and of the relaxed
 * pairwise energy, with respect to unary energies, weights, compatibilities, sigmas and features.
 * They are products of a vector with a Jacobian, as reverse-mode frameworks want them, and cost a
 * few filters each; memory is linear in the number of variables.
 *
 *   q_0 = softmax(-phi),  q_t = softmax(-phi - 2 sum_m w_m mu_m (K_m - diag) q_{t-1})
 *
 * as in dcrf/solver.h without damping, stopping and cliques.
 *
 * With respect to unary energies, weights and compatibilities the derivatives are those of the
 * operators that the plan applies, whatever they are. With respect to features and sigmas, the
 * normalization included, they are
 *
 *   exact on an exact plan, from dk_ab = -k_ab (f_a - f_b)'(df_a - df_b);
 *   the same on a grid, exact but for its truncation;
 *   on a lattice, whose own derivative jumps where a point changes its simplex: for sigmas of
 *   channels the difference of the operators at 1.2 sigma and sigma / 1.2; for sigmas of positions
 *   and for features the same formula with the lattice's values of k_ab, which for features has the
 *   right signs but can be a third of the right size.
 *
 * The formula without the normalization: Kraehenbuehl and Koltun, Parameter Learning and Convergent
 * Inference for Dense Random Fields, ICML 2013.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_GRADIENT_H
#define DCRF_GRADIENT_H

#include <dcrf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where derivatives are written; NULL: not wanted. Those of features cost 2 d filters a step for
 * d features, those of sigmas one for each, or on a lattice two for each channel and two lattices;
 * the others one or two. */
typedef struct dcrf_derivatives {
    float *unary;           /* a block of one channel a label, with the stride of the call */
    double *weight;         /* one per kernel */
    double *compatibility;  /* kernels x labels x labels: for mu_m(i, j), whatever its kind, as if
                             * all entries were free; a symmetric matrix takes both (i, j), (j, i) */
    double *sigma;          /* kernels x DCRF_MAX_FEATURES: axes (x first), then channels; zero for
                             * kernels of the caller's features */
    float *const *features; /* per kernel a pointer (or NULL) to variables x dimension floats: for
                             * the features as the kernel uses them, divided by their sigmas */
    int channels_share_sigma; /* not 0: all channels of a kernel have one sigma. On a lattice its
                               * derivative is then found at once, as that of the first channel, and
                               * the others are zero */
    unsigned char reserved[60];
} dcrf_derivatives;

/* ---- mean field, unrolled ------------------------------------------------------------------- */

typedef struct dcrf_unrolled dcrf_unrolled;

/* Takes memory for iterations + 1 distributions and a few more. Weights, compatibilities and unary
 * energies are read when it runs. Models with cliques are refused. */
DCRF_API dcrf_status dcrf_unrolled_new(dcrf_unrolled **unrolled, const dcrf_plan *plan,
                                       dcrf_workspace *workspace, size_t iterations,
                                       dcrf_error *error);
DCRF_API void dcrf_unrolled_free(dcrf_unrolled **unrolled);

/* Run all updates and write the last q, a block of one channel a label. `mask` (NULL: none) has one
 * byte per variable: where it is 0, the variable neither sends nor receives messages, and its row
 * of q is zero. */
DCRF_API dcrf_status dcrf_unrolled_forward(dcrf_unrolled *unrolled, const uint8_t *mask, float *q,
                                           size_t stride, dcrf_error *error);

/* ln q of the last forward run, made of the energies and not of q: finite where q is too small for
 * a float. Rows of variables that the mask leaves out are zero. */
DCRF_API dcrf_status dcrf_unrolled_log_q(dcrf_unrolled *unrolled, float *log_q, size_t stride,
                                         dcrf_error *error);

/* From the derivative of a loss with respect to the last q to all others. The model must be as it
 * was in the forward run. Derivatives with respect to entries of q that are zero, those of masked
 * variables among them, do not count and may be anything. It can be called again. */
DCRF_API dcrf_status dcrf_unrolled_backward(dcrf_unrolled *unrolled, const float *q_derivative,
                                            size_t stride, const dcrf_derivatives *derivatives,
                                            dcrf_error *error);

/* The same from the derivative with respect to the last ln q. */
DCRF_API dcrf_status dcrf_unrolled_backward_log_q(dcrf_unrolled *unrolled,
                                                  const float *log_q_derivative, size_t stride,
                                                  const dcrf_derivatives *derivatives,
                                                  dcrf_error *error);

/* ---- the relaxed pairwise energy ------------------------------------------------------------ */

/* sum_m w_m sum_{a != b} k_m(a, b) sum_ij mu_m(i, j) y_ai y_bj, for Potts y'K(1 - y) summed over
 * labels where rows of y add up to one; y is a block of any finite values, and a row of zeros is a
 * variable that is left out. `y_derivative` (NULL: not wanted) is a block of the same stride;
 * derivatives->unary must be NULL. */
DCRF_API dcrf_status dcrf_pairwise_gradient(const dcrf_plan *plan, dcrf_workspace *workspace,
                                            const float *y, size_t stride, double *energy,
                                            float *y_derivative,
                                            const dcrf_derivatives *derivatives, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
