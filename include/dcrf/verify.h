/* Checking a certificate: what a proof (dcrf/proof.h) claims, computed again from the model alone.
 *
 * The check shares no code with the solvers and the proofs, and is in double. For the exact
 * operator it computes the kernels itself; for the fast ones it takes their matrix from a plan of
 * its own and trusts its application. It runs on the CPU, whatever device the workspace has.
 * docs/certificate.md describes the bytes and what is checked,
 * and examples/check_certificate.py does the same in numpy.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_VERIFY_H
#define DCRF_VERIFY_H

#include <dcrf/labelling.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrf_verification {
    int is_exact; /* about the Gaussians themselves, not their fast approximation */
    size_t variables;
    size_t proven;         /* variables with one possible label */
    double energy;         /* of the certificate's labelling, from above, as claimed and checked */
    double lower_bound;    /* on the energy of every labelling, as claimed and checked */
    double relative_gap;   /* dcrf_relative_gap of the two */
    double claimed_energy; /* by the certificate */
    double claimed_lower_bound;
    size_t claimed_proven;
    /* Of the labelling that was given; NaN and 0 without one. */
    double labels_energy;
    double labels_gap; /* dcrf_relative_gap of that and the bound */
    size_t right;      /* has the only possible label */
    size_t wrong;      /* has a label that no optimal labelling has there */
    double time_s;
    unsigned char reserved[64];
} dcrf_verification;

/* Check a certificate of `size` bytes for a model. Fails, with a message that says why, if it
 * was changed, is about another model, or does not prove what it claims. `labels` (may be NULL) is
 * a labelling to compare; `possible` (may be NULL) gets one byte for every variable and label, as
 * in dcrf/proof.h. A certificate of unknown origin can ask for a lot of work:
 * dcrf_workspace_set_limit limits it, with an error. */
DCRF_API dcrf_status dcrf_verify_certificate(const uint8_t *bytes, size_t size,
                                             const dcrf_model *model, dcrf_workspace *workspace,
                                             const uint16_t *labels, uint8_t *possible,
                                             dcrf_verification *verification, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
