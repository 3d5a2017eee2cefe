/* The inside of a proof while it is made.
 *
 *   proof.c              the public calls, and the conclusion
 *   proof_search.c       what is proven: by the gap, by groups, about the rest
 *   proof_certificate.c  what a certificate holds, and what it may claim */
#ifndef DCRF_PROOF_PROOF_RUN_H
#define DCRF_PROOF_PROOF_RUN_H

#include "lp/lp.h"
#include "proof/groups.h"
#include "solver/solver.h"
#include "verify/certificate.h"

/* The y of the LP comes from widths down to this; the rest is relaxed with a wider line, whose
 * values are told apart by more steps. */
#define DCRF_PROOF_FIRST_EPSILON 0.03125
#define DCRF_PROOF_REST_EPSILON 0.25

struct dcrf_proof_run {
    struct dcrf_certificate_mixture kept; /* of a certificate: the LP's dual point */
    double kept_bound;                    /* what it proves */
    double scale;                         /* of errors with a distance; 1 for Potts */
    struct dcrf_knowledge *known;
    struct dcrf_groups groups;
    const dcrf_solver *solver;
    const struct dcrf_lp *lp;
    dcrf_proof_settings settings;
    struct dcrf_stop *stop; /* of the solver's run; NULL: the proof has a clock of its own */
    double until_s;         /* by that: then the time that is left is for the conclusion */
    bool is_exact;          /* all operators are */
    size_t first_rounds;    /* with the first epsilon */
    double excess;          /* of the labelling over the optimum, at most, if the rest was solved */
    double began_s;
};

/* Is the time up, or was the proof cancelled? A dcrf_interrupt's question, about a run. */
bool dcrf_proof_is_cut_short(void *run);

/* All that can be proven, into run->known; *by_gap: variables by the gap alone. */
dcrf_status dcrf_proof_search(struct dcrf_proof_run *run, size_t *by_gap, dcrf_error *error);

/* The dual point that a certificate can hold becomes run->kept, and what a check will say of it is
 * known. `energy`: of the labelling, at least. */
dcrf_status dcrf_proof_exclude_by_kept(struct dcrf_proof_run *run, double energy,
                                       dcrf_error *error);

/* The bound and the gap that a check will find, of a labelling that is `excess` above the optimum
 * at most and whose energy, which was rounded up, is off by error_of. */
void dcrf_proof_claim(const struct dcrf_proof_run *run, double error_of, double excess,
                      bool is_only_one, dcrf_proof_info *info);

/* The certificate as bytes, to be released. */
dcrf_status dcrf_proof_encode(struct dcrf_proof_run *run, const dcrf_proof_info *info,
                              uint8_t **bytes, size_t *size, dcrf_error *error);

#endif
