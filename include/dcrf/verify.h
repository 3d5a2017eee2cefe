/* Checking a certificate: what a proof (dcrf/proof.h) claims, recomputed from the model alone.
 *
 * The check shares no code with the solvers and proofs, and computes in double. For the exact
 * operator it computes the kernels itself; for the fast ones it builds its own plan and trusts the
 * application of its matrices. It runs on the CPU, whatever device the workspace has.
 * docs/reference/certificate.md describes the format and the checks; examples/check_certificate.py
 * does the same in numpy.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_VERIFY_H
#define DCRF_VERIFY_H

#include <dcrf/labelling.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrf_verification {
    int is_exact; /* holds for the Gaussians themselves, not a fast approximation */
    size_t variables;
    size_t proven;       /* variables with one possible label */
    double energy;       /* upper bound for the certificate's labelling, claimed, and checked up to
                          * rounding errors */
    double lower_bound;  /* on the energy of every labelling, claimed and checked */
    double relative_gap; /* dcrf_relative_gap of the two */
    double claimed_energy; /* as the certificate states it */
    double claimed_lower_bound;
    size_t claimed_proven;
    /* For the given labelling; NaN and 0 without one. */
    double labels_energy;
    double labels_gap; /* dcrf_relative_gap of labels_energy and lower_bound */
    size_t right;      /* variables with the only possible label */
    size_t wrong;      /* variables with a label that is in no optimal labelling */
    double time_s;
    unsigned char reserved[64];
} dcrf_verification;

/* Check a certificate of `size` bytes for a model. Fails if it was modified, belongs to another
 * model, or does not prove what it claims; the message says why. `labels` (may be NULL) is a
 * labelling to compare. `possible` (may be NULL) holds `count` bytes and receives one per variable
 * and label, as in dcrf/proof.h; too few are an error, and nothing is written. An untrusted
 * certificate can demand a lot of work: dcrf_workspace_set_limit limits it, and the call then
 * fails. Its memory is limited by the size of the model: docs/reference/certificate.md says how. */
DCRF_API dcrf_status dcrf_verify_certificate(const uint8_t *bytes, size_t size,
                                             const dcrf_model *model, dcrf_workspace *workspace,
                                             const uint16_t *labels, uint8_t *possible,
                                             size_t count, dcrf_verification *verification,
                                             dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
