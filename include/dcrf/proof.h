/* Proofs for single variables: which labels can an optimal labelling have there?
 *
 *   dcrf_solver_run(solver, &error);
 *   dcrf_solver_prove(solver, &error);
 *   dcrf_solver_labels_left(solver, counts, variables, &error);
 *
 * After a run of the LP most variables can be decided: every labelling of lowest energy has the
 * same label there. A proof says which labels each variable can still have. Labels it excludes
 * occur in no optimal labelling, ties included, with all rounding errors accounted for. It needs
 * only the model: no ground truth, no probabilities. Like the bound, it holds for the plan's
 * operators. A run whose settings ask for a proof makes it as its last stage.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_PROOF_H
#define DCRF_PROOF_H

#include <dcrf/solver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The proof of a solver; NULL if it has made none. Owned by the solver; valid until the next
 * dcrf_solver_run, dcrf_solver_finish or dcrf_solver_prove. Energy, bound and gap are in
 * dcrf_solver_info. */
typedef struct dcrf_proof dcrf_proof;
DCRF_API const dcrf_proof *dcrf_solver_proof(const dcrf_solver *solver);

typedef struct dcrf_proof_info {
    size_t variables;
    size_t proven;        /* variables with one possible label */
    size_t proven_by_gap; /* of these, by reduced costs and the gap alone */
    size_t possible;      /* possible labels, summed over all variables */
    size_t sweeps;        /* over all labels */
    unsigned char reserved[64];
} dcrf_proof_info;

DCRF_API void dcrf_proof_get_info(const dcrf_proof *proof, dcrf_proof_info *info);

/* One byte per variable and label, with the labels of a variable adjacent: 1 if the label is
 * possible, 0 if it is proven to occur in no optimal labelling. */
DCRF_API const uint8_t *dcrf_proof_possible(const dcrf_proof *proof);

/* The certificate, *size bytes, for dcrf_verify_certificate (dcrf/verify.h); NULL if the settings
 * did not ask for one. */
DCRF_API const uint8_t *dcrf_proof_certificate(const dcrf_proof *proof, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
