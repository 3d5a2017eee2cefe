/* The internals of a model: plain data that has been checked. */
#ifndef DCRF_MODEL_MODEL_H
#define DCRF_MODEL_MODEL_H

#include "model/kernel.h"

#include <dcrf/compatibility.h>

/* A matrix c (1 - I) with c > 0 is Potts with c times the weight, and `weight` and `compatibility`
 * present it as such. What was given is kept beside them, for derivatives and for later weights. */
struct dcrf_cuts; /* model/cuts.h */

struct dcrf_model_kernel {
    struct dcrf_features features;
    dcrf_normalization normalization;
    double weight; /* given_weight * factor */
    dcrf_compatibility compatibility;
    double given_weight;
    double factor; /* c where it is part of the weight, else 1 */
    dcrf_compatibility given_compatibility;
    double potts_factor;         /* c, or 0 if what was given is not a multiple of Potts */
    float *compatibility_values; /* as given: NULL, M, or M x M floats */
    struct dcrf_cuts *cuts;      /* whose sum is the matrix; NULL: unknown */
};

/* Set the weight of a kernel; it has been checked. */
void dcrf_model_kernel_weigh(struct dcrf_model_kernel *kernel, double given_weight);

/* Disjoint cliques; the members of each are consecutive. */
struct dcrf_cliques {
    size_t count;
    size_t *offsets;   /* count + 1 */
    uint32_t *members; /* offsets[count] variables */
    double *costs;     /* count */
};

struct dcrf_model {
    dcrf_grid grid;
    size_t origin[DCRF_MAX_AXES];
    size_t variables;
    size_t labels;
    size_t stride;  /* floats in a row of `unary`: dcrf_padded(labels) */
    float *unary;   /* variables rows, padding zero */
    bool has_unary; /* else they are zero */
    size_t kernel_count;
    struct dcrf_model_kernel *kernels;
    struct dcrf_cliques cliques;
    size_t holders;         /* core/holders.h */
    size_t revision;        /* counts changes: a solver works on the model that it was made for */
    size_t kernel_revision; /* counts changes of kernels other than weights: plans depend on it */
};

/* Keep the model alive until dcrf_model_free is called once more. */
void dcrf_model_hold(const dcrf_model *model);

/* Free the contents of the cliques and leave none. */
void dcrf_cliques_clear(struct dcrf_cliques *cliques);

#define DCRF_NO_CLIQUE UINT32_MAX

/* clique_of[a] = the clique of variable a, or DCRF_NO_CLIQUE. */
void dcrf_model_clique_of(const dcrf_model *model, uint32_t *clique_of);

dcrf_status dcrf_model_check_kernel(const dcrf_model *model, size_t kernel, dcrf_error *error);

/* Give a kernel this matrix, which the model owns from now on, and the cuts whose sum it is. */
void dcrf_model_take_matrix(dcrf_model *model, size_t kernel, float *matrix,
                            struct dcrf_cuts *cuts);

/* The cuts that represent a kernel in the LP: the model's own, or found for the caller, who frees
 * *own. NULL for Potts. The error says why there are none. */
dcrf_status dcrf_model_find_cuts(const dcrf_model *model, size_t kernel,
                                 const struct dcrf_cuts **cuts, struct dcrf_cuts **own,
                                 dcrf_left_out *left_out, dcrf_error *error);

/* Are the compatibilities of all kernels with nonzero weight either Potts or nonnegative matrices
 * with zeros on their diagonal? Then no pair has a negative energy, and a constant labelling has no
 * pairwise energy. */
bool dcrf_model_has_distances(const dcrf_model *model);

/* The largest entry of a kernel's compatibility; 1 for Potts. */
double dcrf_model_largest_distance(const dcrf_model *model, size_t kernel);

/* The labels in an order in which a kernel's cuts are one run each; NULL if there is none. */
const uint16_t *dcrf_model_order(const dcrf_model *model);

/* The matrix that all kernels with a weight share as a distance; NULL: Potts. The error says that
 * `method` takes no other. */
dcrf_status dcrf_model_find_distance(const dcrf_model *model, const char *method,
                                     const float **distance, dcrf_error *error);

/* Are the compatibilities of all kernels with nonzero weight Potts? If not, the error says that
 * `method` ("the LP relaxation") needs them to be, and names the first kernel that has another. */
dcrf_status dcrf_model_require_potts(const dcrf_model *model, const char *method,
                                     dcrf_error *error);

#endif
