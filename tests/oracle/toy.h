/* Toys for the tests of solvers: small random models, the dense matrices of their kernels, and
 * their energies and optima by enumeration. Only the random numbers, and the model and plan under
 * test, come from the library. */
#ifndef DCRF_TESTS_TOY_H
#define DCRF_TESTS_TOY_H

#include "unit.h"

#include "core/rng.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <stdbool.h>

#define TOY_KERNELS 2

enum toy_pairs {
    TOY_POTTS,
    TOY_MULTIPLE, /* one Potts kernel and one with the matrix c (1 - I), c on [0.25, 2.25) */
    TOY_GENERAL   /* one Potts kernel and one with a random symmetric matrix */
};

struct toy {
    size_t variables, labels, cliques;
    double *unary;               /* variables x labels */
    double *matrix[TOY_KERNELS]; /* dense, normalized, weighted, with a zero diagonal */
    float *values;               /* of kernel 1; NULL: Potts */
    size_t *offsets, *members;   /* of the cliques */
    double *costs;
    dcrf_model *model;
    dcrf_plan *plan; /* exact */
    dcrf_workspace *workspace;
};

/* Unaries on [0, 4), kernels of `strength` with random normalizations over two-dimensional
 * features, and at most `cliques` cliques, which cover at least half of the variables. */
struct toy new_toy(uint64_t seed, size_t variables, size_t labels, size_t cliques, double strength,
                   enum toy_pairs pairs, size_t threads);
void free_toy(struct toy *toy);

/* Add a constant to the unaries of each variable and rename label i to renaming[i], both in the
 * oracle and in the model. */
void change_toy(struct toy *toy, const double *constants, const size_t *renaming);

double toy_mu(const struct toy *toy, size_t kernel, size_t i, size_t j);
double toy_energy(const struct toy *toy, const uint16_t *labels);

/* The lowest energy of all labellings; `best` (may be NULL) receives a labelling that attains
 * it. */
double toy_optimum(const struct toy *toy, uint16_t *best);

/* (Psi y)_ai, rows of `stride` floats. */
double toy_psi(const struct toy *toy, const float *y, size_t stride, size_t a, size_t i);

/* The LP objective of y, rows of one float per label. */
double toy_lp_objective(const struct toy *toy, const float *y, dcrf_clique_form form);

#endif
