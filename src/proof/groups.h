/* Proofs for groups of variables: persistency. */
#ifndef DCRF_PROOF_GROUPS_H
#define DCRF_PROOF_GROUPS_H

#include "proof/knowledge.h"

#include <stdbool.h>

struct dcrf_groups {
    struct dcrf_knowledge *known;
    double epsilon;              /* of the clipped line, in units of y */
    float *y;                    /* variables x labels: marginals of the relaxation */
    uint8_t *value;              /* variables x labels: y in steps, as it is used */
    uint8_t *member;             /* of the group in hand */
    bool is_free;                /* values need not tell the labels of x apart */
    double *pairs;               /* of x, one number for every variable */
    double *reduced;             /* variables x labels: reduced costs of the members */
    double handicap;             /* added to the cost of x while relaxing */
    double sweeps;               /* over all labels and variables, so far */
    bool (*is_over)(void *user); /* asked before every sweep; NULL: never */
    void *is_over_user;
};

dcrf_status dcrf_groups_init(struct dcrf_groups *groups, struct dcrf_knowledge *known,
                             double epsilon, dcrf_error *error);
void dcrf_groups_clear(struct dcrf_groups *groups);

/* Take groups->y as the dual point, and decide the largest group that it proves. */
dcrf_status dcrf_groups_decide(struct dcrf_groups *groups, dcrf_error *error);

/* Some steps on the smoothed relaxation of what is undecided, from groups->y, with `handicap` added
 * to the costs of x. Where x stays optimal all the same, its margins get at least as large. */
dcrf_status dcrf_groups_relax(struct dcrf_groups *groups, size_t steps, double handicap,
                              dcrf_error *error);

/* How far the energy of x can be above the lowest one, by the dual point groups->y; and exclude the
 * labels that this gap leaves no room for. */
dcrf_status dcrf_groups_excess(struct dcrf_groups *groups, double *excess, dcrf_error *error);

/* With groups_cliques.c: let the members pay for their cliques, and put those out that cannot.
 * Returns how many. */
size_t dcrf_groups_pay_cliques(struct dcrf_groups *groups);

#endif
