/* A scene for the tests of energies and plans: a model with every kind of kernel, the dense
 * matrices of its kernels, and its energies as double loops over these. Only the random numbers,
 * and the model and plan under test, come from the library. */
#ifndef DCRF_TESTS_SCENE_H
#define DCRF_TESTS_SCENE_H

#include "unit.h"

#include <dcrf/energy.h>
#include <stdbool.h>

/* The exact operator rounds features to float (a coordinate of 10 sigmas to 1e-6 of a sigma) and
 * its result to float; sums follow in double. All sums here have positive terms or moderate
 * cancellation, so the error is a few times 1e-6 relative to their size. */
#define TOLERANCE 4e-6

#define KERNELS 4

struct scene {
    dcrf_grid grid;
    size_t variables, labels, cliques;
    double *unary;           /* variables x labels */
    double *matrix[KERNELS]; /* dense, normalized, without the weight */
    double weight[KERNELS];
    dcrf_compatibility compatibility[KERNELS];
    float *values[KERNELS];
    int32_t *region; /* clique of each variable; -1: none */
    double *cost;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
};

/* Where the matrices of a scene come from. */
enum matrices {
    NO_MATRICES,
    FORMULA,  /* the formula; the plan is exact */
    OPERATORS /* the operators of a fast plan, column by column from unit vectors */
};

/* Every kind of kernel and normalization, Potts, and cliques of one to four members. */
struct scene new_scene(dcrf_grid grid, size_t labels, size_t threads, dcrf_operator_kind kind,
                       enum matrices matrices);
void free_scene(struct scene *s);

/* These change the scene and the model; the plan is not rebuilt. */
void set_compatibility(struct scene *s, size_t m, dcrf_compatibility compatibility);
void set_weight(struct scene *s, size_t m, double weight);

uint16_t *new_labels(const struct scene *s);

struct naive {
    dcrf_energy energy;
    double of_kernel[KERNELS];
    double pair_scale; /* sum of the absolute values of the pairwise terms */
};

struct naive naive_labels(const struct scene *s, const uint16_t *x);

/* Equal to within TOLERANCE of `scale`. */
void assert_close(double value, double expected, double scale);

#endif
