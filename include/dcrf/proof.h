/* Proofs for single variables: which labels can an optimal labelling have there?
 *
 * After a run of the LP most variables can be decided: every labelling of lowest energy has the
 * same label there. A proof says which labels each variable can still have. Labels it excludes
 * occur in no optimal labelling, ties included, with all rounding errors accounted for. It needs
 * only the model: no ground truth, no probabilities. Like the bound, it holds for the plan's
 * operators.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_PROOF_H
#define DCRF_PROOF_H

#include <dcrf/solver.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrf_proof dcrf_proof;

typedef struct dcrf_proof_settings {
    double time_limit_s;         /* wall time; 0: no limit */
    size_t sweeps;               /* maximum number of sweeps over all labels */
    int certificate;             /* make a certificate, using only what can be checked
                                  * (docs/reference/certificate.md); after a run with DCRF_PROVE_CERTIFICATE
                                  * that includes the run's own bound */
    dcrf_cancel_callback cancel; /* NULL: none. What is proven so far is kept. */
    void *cancel_user;
    unsigned char reserved[64];
} dcrf_proof_settings;

#define DCRF_DEFAULT_PROOF_TIME_LIMIT_S 0.0
#define DCRF_DEFAULT_PROOF_SWEEPS 500

DCRF_API void dcrf_proof_settings_defaults(dcrf_proof_settings *settings);

typedef struct dcrf_proof_info {
    size_t variables;
    size_t proven;        /* variables with one possible label */
    size_t proven_by_gap; /* of these, by reduced costs and the gap alone */
    size_t possible;      /* possible labels, summed over all variables */
    dcrf_energy energy;   /* of the proof's labelling */
    double lower_bound;   /* on the energy of every labelling */
    double relative_gap;  /* dcrf_relative_gap of the two; 0: the labelling is optimal */
    size_t sweeps;
    double time_s;
    unsigned char reserved[64];
} dcrf_proof_info;

/* The proof made by the last run; NULL if the settings did not ask for one (`proof` of
 * dcrf_settings) or the run was stopped first. Owned by the solver; valid until the next run. */
DCRF_API const dcrf_proof *dcrf_solver_proof(const dcrf_solver *solver);

/* Prove more after a run of the LP, with the time limit of these settings. The solver's labels,
 * energy, bound and gap become those of the proof. */
DCRF_API dcrf_status dcrf_proof_new(dcrf_proof **proof, dcrf_solver *solver,
                                    const dcrf_proof_settings *settings, dcrf_error *error);
DCRF_API void dcrf_proof_free(dcrf_proof **proof);

DCRF_API void dcrf_proof_get_info(const dcrf_proof *proof, dcrf_proof_info *info);

/* The best labelling known: the solver's, or a better one found by the proof. */
DCRF_API dcrf_status dcrf_proof_labels(const dcrf_proof *proof, uint16_t *labels, size_t count,
                                       dcrf_error *error);

/* One byte per variable and label, with the labels of a variable adjacent: 1 if the label is
 * possible, 0 if it is proven to occur in no optimal labelling. Valid until the proof is freed. */
DCRF_API const uint8_t *dcrf_proof_possible(const dcrf_proof *proof);

/* The certificate, *size bytes, for dcrf_verify_certificate (dcrf/verify.h). Valid until the proof
 * is freed; NULL if the settings did not ask for one. */
DCRF_API const uint8_t *dcrf_proof_certificate(const dcrf_proof *proof, size_t *size);

/* The number of possible labels per variable; 1: proven. */
DCRF_API dcrf_status dcrf_proof_counts(const dcrf_proof *proof, uint16_t *counts, size_t count,
                                       dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
