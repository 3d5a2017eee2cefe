/* What has been proven about the optimal labellings so far, and the sums over kernels that further
 * proofs need.
 *
 * A label is `possible` at a variable until it is proven to occur there in no optimal labelling. A
 * variable is decided when only its label x_a of the reference labelling is left. With D the
 * decided variables, the energy of a labelling that may still be optimal is, up to a constant,
 *
 *   sum_{a not in D} ( cost_a(y_a) + sum_{b not in D} K_ab [y_a != y_b] ) + cliques,
 *   cost_ai = phi_ai - 2 sum_{b in D} K_ab [x_b = i],
 *
 * so deciding variables makes the problem smaller, and every sum over kernels is one over the
 * undecided ones. */
#ifndef DCRF_PROOF_KNOWLEDGE_H
#define DCRF_PROOF_KNOWLEDGE_H

#include "core/interrupt.h"
#include "filter/plan.h"
#include "verify/certificate.h"

struct dcrf_knowledge {
    const dcrf_plan *plan;
    const dcrf_model *model;
    dcrf_workspace *workspace;
    uint16_t *labels;  /* x */
    uint8_t *possible; /* variables x labels */
    uint16_t *round;   /* when a variable was decided; 0: it is not */
    size_t rounds;     /* so far */
    size_t undecided;
    double *cost;     /* variables x labels */
    double *row_sums; /* sum_m w_m (K_m 1)_a, rounded up */
    double *left_out; /* sum of the w_m K_ab that the operators leave out, at most */
    size_t roundings; /* of the filters: the most of any */
    /* How far a difference of two costs of a variable, each less a sum of K_ab times at most 2, can
     * be from the truth. */
    double *error;
    double *indicator, *indicated; /* before and after a filter in double */
    /* Where the operators can be made smaller, they are those of `member_count` variables, among
     * which are all undecided ones (NULL: of all). What goes through them is packed first. */
    dcrf_operator **parts;
    uint32_t *members;
    size_t member_count;
    const float *distance; /* the model's; NULL: Potts */
    uint8_t *packed_bin;
    float *packed_fraction;
    double *packed; /* 2 n: before and after a filter in double */
    /* One label on its way through the ordered filter. */
    uint8_t *bin;
    float *fraction;
    float *filtered;
    double *sum;
    float *table; /* DCRF_VALUE_NODES + 2 rows */
};

/* Nothing is known but the labelling. What is decided, and all below, is for Potts; with another
 * distance for all kernels labels are excluded, and nothing is decided. */
dcrf_status dcrf_knowledge_init(struct dcrf_knowledge *known, const dcrf_plan *plan,
                                dcrf_workspace *workspace, const uint16_t *labels,
                                dcrf_error *error);
void dcrf_knowledge_clear(struct dcrf_knowledge *known);

/* Let go of all but labels and possible labels: what is left stands on no plan. */
void dcrf_knowledge_keep_result(struct dcrf_knowledge *known);

/* known->sum[a] = sum_m w_m sum_b k_m(a, b) T(a, b) with T the antisymmetric table of `bins` nodes,
 * between known->bin and known->fraction. */
dcrf_status dcrf_knowledge_sum(struct dcrf_knowledge *known, size_t bins, const float *table,
                               dcrf_error *error);

/* Decide the variables that have one possible label left, or are marked (may be NULL), in a new
 * round. */
dcrf_status dcrf_knowledge_decide(struct dcrf_knowledge *known, const uint8_t *marked,
                                  dcrf_error *error);

/* Exclude every label that is worse than another one at its variable whatever the undecided others
 * do (dead-end elimination), or those that were looked at before an interrupt. */
dcrf_status dcrf_knowledge_eliminate(struct dcrf_knowledge *known,
                                     const struct dcrf_interrupt *interrupt, dcrf_error *error);

/* known->indicated[a] = sum_{b undecided} K_ab, a itself included where it is undecided. */
dcrf_status dcrf_knowledge_sum_undecided(struct dcrf_knowledge *known, dcrf_error *error);

/* columns[k * count + c] = sum_m w_m K_m between rest[k] and rest[first + c], for c < count, among
 * `size` undecided variables in their order. */
dcrf_status dcrf_knowledge_columns(struct dcrf_knowledge *known, const uint32_t *rest, size_t size,
                                   size_t first, size_t count, double *columns, dcrf_error *error);

/* Can all members of a clique have the label? */
int dcrf_knowledge_may_agree(const struct dcrf_knowledge *known, size_t clique, size_t label);

#endif
