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
 * so deciding variables makes the problem smaller, and sums over kernels need only the undecided
 * variables. */
#ifndef DCRF_PROOF_KNOWLEDGE_H
#define DCRF_PROOF_KNOWLEDGE_H

#include "core/interrupt.h"
#include "core/owned.h"
#include "filter/plan.h"
#include "verify/certificate.h"

struct dcrf_knowledge {
    const dcrf_plan *plan;
    const dcrf_model *model;
    dcrf_workspace *workspace;
    uint16_t *labels;  /* x */
    uint8_t *possible; /* variables x labels */
    uint16_t *round;   /* round in which a variable was decided; 0: undecided */
    size_t rounds;     /* so far */
    size_t undecided;
    double *cost;     /* variables x labels */
    double *row_sums; /* sum_m w_m (K_m 1)_a, rounded up */
    double *left_out; /* bound on the sum of the w_m K_ab that the operators leave out */
    size_t roundings; /* most roundings in any filter */
    /* Bound on the error of the difference of two reduced costs of a variable: each a cost minus a
     * sum of K_ab with factors of at most 2. */
    double *error;
    double *indicator, *indicated; /* input and output of a filter in double */
    /* Where the operators can be restricted, `parts` holds those of the `member_count` variables in
     * `members`, which include all undecided ones (NULL: of all variables). Their input is
     * packed. */
    dcrf_operator **parts;
    uint32_t *members;
    size_t member_count;
    const float *distance; /* the model's distance; NULL: Potts */
    uint8_t *packed_bin;
    float *packed_fraction;
    /* Input and output of the ordered filter for one label. */
    uint8_t *bin;
    float *fraction;
    float *filtered;
    double *sum;
    float *table;                   /* DCRF_VALUE_NODES + 2 rows */
    struct dcrf_owned result, work; /* `labels` and `possible`; all other arrays but `parts` */
};

/* The number of labels that are possible in a row. */
static inline size_t dcrf_count_possible(const uint8_t *row, size_t labels) {
    size_t count = 0;
    for (size_t i = 0; i < labels; i++)
        count += row[i];
    return count;
}

/* Start with every label possible. Deciding variables, and the sums below, require Potts; with
 * another distance common to all kernels, labels can be excluded but variables are never
 * decided. */
dcrf_status dcrf_knowledge_init(struct dcrf_knowledge *known, const dcrf_plan *plan,
                                dcrf_workspace *workspace, const uint16_t *labels,
                                dcrf_error *error);
void dcrf_knowledge_clear(struct dcrf_knowledge *known);

/* Release everything except the labels and the possible labels; the plan is no longer needed. */
void dcrf_knowledge_keep_result(struct dcrf_knowledge *known);

/* known->sum[a] = sum_m w_m sum_b k_m(a, b) T(a, b), with T the antisymmetric table of `bins`
 * nodes, interpolated at known->bin and known->fraction. */
dcrf_status dcrf_knowledge_sum(struct dcrf_knowledge *known, size_t bins, const float *table,
                               dcrf_error *error);

/* Decide the variables that are marked (NULL: none) or have one possible label left, in a new
 * round. */
dcrf_status dcrf_knowledge_decide(struct dcrf_knowledge *known, const uint8_t *marked,
                                  dcrf_error *error);

/* Exclude every label that is worse than another one at its variable for any labels of the
 * undecided others (dead-end elimination). After an interrupt, only the labels examined so far are
 * excluded. */
dcrf_status dcrf_knowledge_eliminate(struct dcrf_knowledge *known,
                                     const struct dcrf_interrupt *interrupt, dcrf_error *error);

/* known->indicated[a] = sum_{b undecided} K_ab, including b = a if a is undecided. */
dcrf_status dcrf_knowledge_sum_undecided(struct dcrf_knowledge *known, dcrf_error *error);

/* columns[k * count + c] = sum_m w_m K_m between rest[k] and rest[first + c], for c < count; `rest`
 * lists `size` undecided variables in increasing order. */
dcrf_status dcrf_knowledge_columns(struct dcrf_knowledge *known, const uint32_t *rest, size_t size,
                                   size_t first, size_t count, double *columns, dcrf_error *error);

/* Can all members of a clique have the label? */
int dcrf_knowledge_may_agree(const struct dcrf_knowledge *known, size_t clique, size_t label);

#endif
