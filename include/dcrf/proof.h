/* Proofs for single variables: which labels can an optimal labelling have there?
 *
 * After a run of the LP most variables can be decided: every labelling of least energy has the same
 * label there. A proof says for every variable which labels are still possible; what it excludes
 * occurs in no optimal labelling, ties included, with all rounding errors accounted for. It
 * needs nothing but the model: no ground truth, no probabilities. It is a statement about the
 * operators that the plan has, as the bound is.
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
    double time_limit_s;         /* 0: none */
    size_t sweeps;               /* over all labels, at most */
    int certificate;             /* make a certificate: then only what can be checked is used
                                  * (docs/certificate.md). After a run with DCRF_PROVE_CERTIFICATE that is
                                  * the run's own bound, too. */
    dcrf_cancel_callback cancel; /* NULL: none; what is proven so far is the result */
    void *cancel_user;
    unsigned char reserved[64];
} dcrf_proof_settings;

#define DCRF_DEFAULT_PROOF_TIME_LIMIT_S 0.0
#define DCRF_DEFAULT_PROOF_SWEEPS 500

DCRF_API void dcrf_proof_settings_defaults(dcrf_proof_settings *settings);

typedef struct dcrf_proof_info {
    size_t variables;
    size_t proven;        /* variables with one possible label */
    size_t proven_by_gap; /* of these, by their reduced costs and the gap alone */
    size_t possible;      /* labels that are left, of all variables together */
    dcrf_energy energy;   /* of the proof's labelling */
    double lower_bound;   /* on the energy of every labelling */
    double relative_gap;  /* dcrf_relative_gap of the two; 0: the labelling is optimal */
    size_t sweeps;
    double time_s;
    unsigned char reserved[64];
} dcrf_proof_info;

/* The proof that a run has made, or NULL: it was not asked for (`proof` of dcrf_settings), or cut
 * short before it began. It is the solver's, until the next run. */
DCRF_API const dcrf_proof *dcrf_solver_proof(const dcrf_solver *solver);

/* Prove more after a run of the LP: by another clock, that of these settings. Labels, energy, bound
 * and gap of the solver become those of the proof. */
DCRF_API dcrf_status dcrf_proof_new(dcrf_proof **proof, dcrf_solver *solver,
                                    const dcrf_proof_settings *settings, dcrf_error *error);
DCRF_API void dcrf_proof_free(dcrf_proof **proof);

DCRF_API void dcrf_proof_get_info(const dcrf_proof *proof, dcrf_proof_info *info);

/* The best labelling known: that of the solver, or a better one met on the way. */
DCRF_API void dcrf_proof_labels(const dcrf_proof *proof, uint16_t *labels);

/* One byte for every variable and label, the labels of a variable next to each other: 1 where the
 * label is possible, 0 where it is proven to occur in no optimal labelling. Valid until the proof
 * is freed. */
DCRF_API const uint8_t *dcrf_proof_possible(const dcrf_proof *proof);

/* The certificate, *size bytes: what dcrf_verify_certificate (dcrf/verify.h) checks. Valid until
 * the proof is freed; NULL where the settings did not ask for one. */
DCRF_API const uint8_t *dcrf_proof_certificate(const dcrf_proof *proof, size_t *size);

/* How many labels are possible, one number for every variable: 1 is proven. */
DCRF_API void dcrf_proof_counts(const dcrf_proof *proof, uint16_t *counts);

#ifdef __cplusplus
}
#endif
#endif
