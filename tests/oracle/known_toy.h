/* Toys with partial knowledge: some variables are decided, some labels excluded. The library's
 * results for them (proof/knowledge.h) are compared with sums over all pairs in long double. */
#ifndef DCRF_TESTS_KNOWN_TOY_H
#define DCRF_TESTS_KNOWN_TOY_H

#include "toy.h"

#include "proof/knowledge.h"

struct known_toy {
    struct toy toy;
    dcrf_plan *plan; /* exact or fast */
    dcrf_rng rng;
    long double *matrix; /* sum of all weighted kernels; the diagonal is that of the operators */
    struct dcrf_knowledge known;
};

/* Exact if the seed is even, otherwise fast; x is the unary minimum except at a few variables. */
struct known_toy new_known_toy(uint64_t seed, size_t variables, size_t labels, size_t cliques,
                               double strength);
void free_known_toy(struct known_toy *t);

/* Excludes some labels, never those of x. */
void exclude_some(struct known_toy *t, double part);
/* Decides some variables: half of them by a mark, the others by leaving one possible label. */
void decide_some(struct known_toy *t, double part);

/* cost_ai of an undecided variable, by its definition. */
long double plain_cost(const struct known_toy *t, size_t a, size_t i);
bool plain_may_agree(const struct known_toy *t, size_t clique, size_t label);
/* Sum of K_ab over the undecided b, including a. */
long double plain_row(const struct known_toy *t, size_t a);

#endif
