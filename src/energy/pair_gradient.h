/* Derivatives of the pairwise term, accumulated step by step; used by mean field and the relaxed
 * energy. */
#ifndef DCRF_ENERGY_PAIR_GRADIENT_H
#define DCRF_ENERGY_PAIR_GRADIENT_H

#include "filter/plan.h"

#include <dcrf/gradient.h>

struct dcrf_pair_gradient;

/* Check the derivatives that are wanted and allocate all memory; sums start at zero. q has the
 * blocks of all steps, which must stay unchanged until dcrf_pair_gradient_finish. */
dcrf_status dcrf_pair_gradient_new(struct dcrf_pair_gradient **gradient, const dcrf_plan *plan,
                                   dcrf_workspace *workspace, const dcrf_derivatives *wanted,
                                   const float *const *q, size_t steps, dcrf_error *error);
void dcrf_pair_gradient_free(struct dcrf_pair_gradient **gradient);

/* For s = factor sum_m w_m mu_m (K_m - diag) q and e = dL/ds (both blocks of the model's stride),
 * q that of one step: add to the derivatives of the parameters, and write q_derivative = dL/dq
 * (NULL: not wanted). */
dcrf_status dcrf_pair_gradient_add(struct dcrf_pair_gradient *gradient, size_t step, const float *e,
                                   double factor, float *q_derivative, dcrf_error *error);

/* Write all derivatives that are wanted, except those of the unary energies. */
dcrf_status dcrf_pair_gradient_finish(struct dcrf_pair_gradient *gradient, dcrf_error *error);

/* ---- pair_rows.c ---------------------------------------------------------------------------- */

/* One row: e . mu F with F = filtered - diagonal q, and (unless adjoint is NULL) adjoint = factor
 * mu e; since e . mu F = mu e . F, mu is applied once. */
double dcrf_pair_row(const struct dcrf_model_kernel *kernel, size_t labels, const float *e,
                     const float *q, const float *filtered, float diagonal, double factor,
                     float *adjoint);

/* x . (y - factor z) */
double dcrf_row_dot(size_t count, const float *x, const float *y, const float *z, double factor);

/* ---- sigma_difference.c --------------------------------------------------------------------- */

/* q, e and factor as for dcrf_pair_gradient_add. */
struct dcrf_pair_step {
    const float *q;
    float *e;
    double factor;
};

/* sum_steps factor sum_a e_a . mu (K - diag) q for one kernel of the model, with the given operator
 * and diagonal; `filtered` is a scratch block for K q. */
dcrf_status dcrf_pair_products(const dcrf_plan *plan, dcrf_workspace *workspace, size_t kernel,
                               const dcrf_operator *op, const float *diagonal,
                               const struct dcrf_pair_step *steps, size_t count, float *filtered,
                               double *sum, dcrf_error *error);

/* dL/dsigma of one kernel, for all its channels, by finite differences of operators. If the
 * channels share one sigma, its derivative is stored as the first one's, and the others are zero.
 */
dcrf_status dcrf_sigma_differences(const dcrf_plan *plan, dcrf_workspace *workspace, size_t kernel,
                                   const struct dcrf_pair_step *steps, size_t count, bool is_shared,
                                   float *filtered, double *sigma, dcrf_error *error);

/* ---- sigma_span.c --------------------------------------------------------------------------- */

#define DCRF_SIGMA_ROWS 1024

struct dcrf_sigma_span;

/* Does the kernel have sigmas, and an operator that is not exact? */
bool dcrf_sigma_span_has(const dcrf_plan *plan, size_t kernel);

dcrf_status dcrf_sigma_span_new(struct dcrf_sigma_span **span, const dcrf_plan *plan,
                                dcrf_workspace *workspace, const float *const *q, size_t count,
                                dcrf_error *error);
void dcrf_sigma_span_free(struct dcrf_sigma_span **span);

/* Add a step's e, and for each kernel of dcrf_sigma_span_has K q and K G, G = factor w mu e. */
void dcrf_sigma_span_add_step(struct dcrf_sigma_span *span, size_t t, const float *e,
                              double factor);
void dcrf_sigma_span_add_kernel(struct dcrf_sigma_span *span, size_t t, size_t kernel,
                                const float *filtered, const float *returned);

/* Add to dL/dln sigma of the axes, without the part of the normalization; `mean` is subtracted from
 * the features. Unless h is NULL, write h_a n_a. Write dL/dsigma of the channels, all of it.
 * `scratch` is a block. */
dcrf_status dcrf_sigma_span_positions(const struct dcrf_sigma_span *span, size_t kernel,
                                      const double *mean, float *scratch, double *by_log_sigma,
                                      double *h, dcrf_error *error);
dcrf_status dcrf_sigma_span_channels(const struct dcrf_sigma_span *span, size_t kernel,
                                     bool is_shared, float *scratch, double *sigma,
                                     dcrf_error *error);

#endif
