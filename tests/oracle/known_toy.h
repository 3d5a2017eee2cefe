/* Toys of which something is known already: some variables are decided, some labels excluded. What
 * the library makes of them (proof/knowledge.h) is held against sums over all pairs in long
 * double. */
#ifndef DCRF_TESTS_KNOWN_TOY_H
#define DCRF_TESTS_KNOWN_TOY_H

#include "toy.h"

#include "proof/knowledge.h"

struct known_toy {
    struct toy toy;
    dcrf_plan *plan; /* exact or fast */
    dcrf_rng rng;
    long double *matrix; /* of all kernels with their weights; the diagonal is the operators' */
    struct dcrf_knowledge known;
};

/* Exact where the seed is even, else fast; x is the unary minimum but for some. */
struct known_toy new_known_toy(uint64_t seed, size_t variables, size_t labels, size_t cliques,
                               double strength);
void free_known_toy(struct known_toy *t);

/* Some labels become impossible, never x. */
void exclude_some(struct known_toy *t, double part);
/* Some variables are decided. Marks: which by being marked; the others by one possible label. */
void decide_some(struct known_toy *t, double part);

/* cost_ai of an undecided variable, by its definition. */
long double plain_cost(const struct known_toy *t, size_t a, size_t i);
bool plain_may_agree(const struct known_toy *t, size_t clique, size_t label);
/* sum of K_ab over the undecided b, a included. */
long double plain_row(const struct known_toy *t, size_t a);

#endif
