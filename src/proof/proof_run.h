/* Internal state of a proof in progress.
 *
 *   proof.c              public functions, and the conclusion
 *   proof_search.c       the search: by the gap, by groups, and on the rest
 *   proof_certificate.c  what a certificate holds, and what it may claim */
#ifndef DCRF_PROOF_PROOF_RUN_H
#define DCRF_PROOF_PROOF_RUN_H

#include "lp/lp.h"
#include "proof/groups.h"
#include "solver/solver.h"
#include "verify/certificate.h"

/* Widths of the clipped line. The LP's y comes from widths down to the first; the rest is relaxed
 * with a wider line, which spans more steps of the values. */
#define DCRF_PROOF_FIRST_EPSILON 0.03125
#define DCRF_PROOF_REST_EPSILON 0.25

/* What is proven about known->labels and all other labellings. */
struct dcrf_conclusion {
    dcrf_energy energy; /* rounded up */
    double lower_bound;
    double relative_gap;
    size_t proven; /* variables with one possible label */
};

struct dcrf_proof_run {
    struct dcrf_certificate_mixture kept; /* for a certificate: the LP's dual point */
    double kept_bound;                    /* the lower bound that it proves */
    double scale;                         /* factor on errors with a distance; 1 for Potts */
    struct dcrf_knowledge *known;
    struct dcrf_groups groups;
    const dcrf_solver *solver;
    const struct dcrf_lp *lp;
    bool is_certificate;    /* only what a certificate holds counts */
    struct dcrf_stop *stop; /* of the solver */
    double gap;             /* of x and the LP's bound; infinite: unknown */
    double until_s;         /* end of the search; the remaining time is for the conclusion */
    bool is_exact;          /* all operators are exact */
    size_t first_rounds;    /* rounds with the first epsilon */
    double excess;          /* bound on energy above the optimum, if the rest was solved */
    struct dcrf_conclusion conclusion;
};

/* Prove as much as possible, into run->known; *by_gap: variables proven by the gap alone. */
dcrf_status dcrf_proof_search(struct dcrf_proof_run *run, size_t *by_gap, dcrf_error *error);

/* Set run->kept to the dual point that a certificate can hold, and exclude the labels that a check
 * of it will exclude. `energy`: a lower bound on the labelling's energy. */
dcrf_status dcrf_proof_exclude_by_kept(struct dcrf_proof_run *run, double energy,
                                       dcrf_error *error);

/* The bound and the gap that a check will find for a labelling at most `excess` above the optimum,
 * whose energy, already rounded up, has error error_of. */
void dcrf_proof_claim(const struct dcrf_proof_run *run, double error_of, double excess,
                      bool is_only_one, struct dcrf_conclusion *claimed);

/* The encoded certificate, to be released by the caller. */
dcrf_status dcrf_proof_encode(struct dcrf_proof_run *run, const struct dcrf_conclusion *claimed,
                              uint8_t **bytes, size_t *size, dcrf_error *error);

#endif
