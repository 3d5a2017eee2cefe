/* Proofs for groups of variables: persistency. */
#ifndef DCRF_PROOF_GROUPS_H
#define DCRF_PROOF_GROUPS_H

#include "proof/knowledge.h"

#include <stdbool.h>

struct dcrf_groups {
    struct dcrf_knowledge *known;
    double epsilon;              /* of the clipped line, in units of y */
    float *y;                    /* variables x labels: marginals of the relaxation */
    uint8_t *value;              /* y rounded to steps and clamped */
    uint8_t *member;             /* 1: in the current group */
    bool is_free;                /* do not clamp the values to separate the labels of x */
    double *pairs;               /* pairwise energy of x, one number per variable */
    double *reduced;             /* variables x labels: reduced costs of the members */
    double handicap;             /* added to the cost of x while relaxing */
    double sweeps;               /* over all labels and variables, so far */
    bool (*is_over)(void *user); /* called before every sweep; NULL: never over */
    void *is_over_user;
    struct dcrf_owned owned;
};

dcrf_status dcrf_groups_init(struct dcrf_groups *groups, struct dcrf_knowledge *known,
                             double epsilon, dcrf_error *error);
void dcrf_groups_clear(struct dcrf_groups *groups);

/* Take groups->y as the dual point, and decide the largest group that it proves. */
dcrf_status dcrf_groups_decide(struct dcrf_groups *groups, dcrf_error *error);

/* Take `steps` steps on the smoothed relaxation of the undecided variables, from groups->y, with
 * `handicap` added to the costs of x. Where x remains optimal, its margins become at least as large
 * as the handicap. */
dcrf_status dcrf_groups_relax(struct dcrf_groups *groups, size_t steps, double handicap,
                              dcrf_error *error);

/* Bound from above how far the energy of x is above the lowest one, using the dual point groups->y,
 * and exclude the labels that this gap rules out. */
dcrf_status dcrf_groups_excess(struct dcrf_groups *groups, double *excess, dcrf_error *error);

/* In groups_cliques.c: charge the cost of the cliques to their members' margins, and remove the
 * members that cannot pay. Returns how many were removed. */
size_t dcrf_groups_pay_cliques(struct dcrf_groups *groups);

#endif
