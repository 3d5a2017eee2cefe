/* The model: variables, labels, unary energies, kernels, label compatibilities and cliques.
 *
 *   E(x) = sum_a phi_a(x_a)
 *        + sum_m sum_a sum_{b != a} w_m k_m(a, b) mu_m(x_a, x_b)      (ordered pairs)
 *        + sum_p C_p [clique p is not unanimous]
 *
 *   k(a, b) = exp(-|f_a - f_b|^2 / 2), with the features f already divided by their sigmas, or its
 *   symmetric normalization k(a, b) / sqrt(n_a n_b) with n_a = sum_b k(a, b). A value below 2^-126,
 *   the smallest normal float, may count as anything from 0 to 2^-126. Weights and costs are from 0
 *   to FLT_MAX, so that no sum in double overflows.
 *
 * A model checks and copies everything it is given, so the caller's arrays can be freed at once. A
 * call that fails leaves the model unchanged.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_MODEL_H
#define DCRF_MODEL_H

#include <dcrf/grid.h>
#include <dcrf/workspace.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DCRF_MAX_LABELS 65535

typedef struct dcrf_model dcrf_model;

/* ---- kernels -------------------------------------------------------------------------------- */

typedef enum dcrf_kernel_kind {
    DCRF_KERNEL_SPATIAL = 0, /* grid coordinates */
    DCRF_KERNEL_BILATERAL,   /* grid coordinates and channels of an image */
    DCRF_KERNEL_FEATURES     /* the caller's features, already divided by their sigmas */
} dcrf_kernel_kind;
/* "spatial", "bilateral", "features". */
DCRF_API const char *dcrf_kernel_kind_name(dcrf_kernel_kind kind);
DCRF_API int dcrf_kernel_kind_from_name(const char *name, dcrf_kernel_kind *kind);

typedef enum dcrf_normalization {
    DCRF_NORMALIZE_NONE = 0,
    DCRF_NORMALIZE_SYMMETRIC
} dcrf_normalization;
/* "none", "symmetric". */
DCRF_API const char *dcrf_normalization_name(dcrf_normalization normalization);
DCRF_API int dcrf_normalization_from_name(const char *name, dcrf_normalization *normalization);

/* The maximum number of feature dimensions of a kernel: grid axes plus channels. */
#define DCRF_MAX_FEATURES 16

typedef struct dcrf_kernel {
    dcrf_kernel_kind kind;
    dcrf_normalization normalization;
    double weight;
    double sigma[DCRF_MAX_AXES]; /* spatial, bilateral: kernel bandwidth per axis, in the unit of
                                  * the grid's spacing */
    double channel_sigma[DCRF_MAX_FEATURES]; /* bilateral: kernel bandwidth per channel, in the unit
                                              * of the image */
    dcrf_view channels;                      /* bilateral: the image; features: the features */
    unsigned char reserved[64];
} dcrf_kernel;

/* Kernels with one sigma for all axes and one for all channels, normalized symmetrically. */
DCRF_API dcrf_kernel dcrf_kernel_spatial(double sigma, double weight);
DCRF_API dcrf_kernel dcrf_kernel_bilateral(double sigma, double channel_sigma, dcrf_view image,
                                           double weight);
DCRF_API dcrf_kernel dcrf_kernel_features(dcrf_view features, double weight);

/* ---- label compatibility -------------------------------------------------------------------- */

typedef enum dcrf_compatibility {
    DCRF_COMPATIBILITY_POTTS = 0, /* mu(i, j) = [i != j] */
    DCRF_COMPATIBILITY_VECTOR,    /* mu(i, j) = v_i [i == j], the diagonal matrix of v */
    DCRF_COMPATIBILITY_MATRIX     /* any symmetric matrix, row-major; c (1 - I) with c > 0 counts as
                                   * Potts with c times the weight, rounded to a double */
} dcrf_compatibility;
/* "potts", "vector", "matrix". */
DCRF_API const char *dcrf_compatibility_name(dcrf_compatibility compatibility);
DCRF_API int dcrf_compatibility_from_name(const char *name, dcrf_compatibility *compatibility);

/* ---- the model ------------------------------------------------------------------------------ */

/* Throughout the library, NULL for a required handle gives DCRF_ERROR_ARGUMENT. Functions that
 * cannot fail return 0, NULL or NaN instead, and functions that free do nothing.
 *
 * A plan keeps its model alive, and a solver its plan and its workspace, so they may be freed in
 * any order. */

/* A model over the variables of a grid, with unary energies of zero and no kernels. */
DCRF_API dcrf_status dcrf_model_new(dcrf_model **model, const dcrf_grid *grid, size_t labels,
                                    dcrf_error *error);
DCRF_API void dcrf_model_free(dcrf_model **model);

DCRF_API size_t dcrf_model_variables(const dcrf_model *model);
DCRF_API size_t dcrf_model_labels(const dcrf_model *model);
DCRF_API size_t dcrf_model_kernels(const dcrf_model *model);
DCRF_API size_t dcrf_model_cliques(const dcrf_model *model);
DCRF_API const dcrf_grid *dcrf_model_grid(const dcrf_model *model);

/* For a grid that is a window of a larger one: set the coordinates of its first variable there
 * (initially 0). Kernels depend on differences of coordinates only, but a lattice depends on the
 * coordinates themselves: with the right origin, a window's lattice has the same vertices as that
 * of the whole grid. Call this before making a plan. */
DCRF_API dcrf_status dcrf_model_set_origin(dcrf_model *model, const size_t origin[DCRF_MAX_AXES],
                                           dcrf_error *error);

/* The model's unary energies: one row of *stride floats per variable, starting with one float per
 * label. Valid until they are replaced. */
DCRF_API const float *dcrf_model_unary(const dcrf_model *model, size_t *stride);

/* Replace the unary energies; the view has one channel per label. They are stored as floats:
 * doubles and 32-bit integers are rounded to nearest. Energies and bounds refer to the stored
 * values. */
DCRF_API dcrf_status dcrf_model_set_unary(dcrf_model *model, const dcrf_view *energies,
                                          dcrf_error *error);

/* The same by the threads of the workspace. */
DCRF_API dcrf_status dcrf_model_set_unary_with(dcrf_model *model, dcrf_workspace *workspace,
                                               const dcrf_view *energies, dcrf_error *error);

/* Add a kernel. Kernels are numbered from 0 in the order they are added. */
DCRF_API dcrf_status dcrf_model_add_kernel(dcrf_model *model, const dcrf_kernel *kernel,
                                           dcrf_error *error);

/* Replace the weight or the compatibility of a kernel. Existing plans stay valid and use the new
 * values. */
DCRF_API dcrf_status dcrf_model_set_weight(dcrf_model *model, size_t kernel, double weight,
                                           dcrf_error *error);
DCRF_API dcrf_status dcrf_model_set_compatibility(dcrf_model *model, size_t kernel,
                                                  dcrf_compatibility compatibility,
                                                  const float *values, dcrf_error *error);

/* Replace the cliques. Clique p has the members members[offsets[p]] .. members[offsets[p + 1] - 1]
 * and the cost costs[p] >= 0. A variable may be in at most one clique. count = 0 removes all
 * cliques. */
DCRF_API dcrf_status dcrf_model_set_cliques(dcrf_model *model, size_t count, const size_t *offsets,
                                            const size_t *members, const double *costs,
                                            dcrf_error *error);

/* The same from a map of region numbers (integer types). Variables with equal numbers form a
 * clique; negative numbers belong to none. Numbers need not be consecutive; cliques are numbered in
 * their order. All cliques cost `cost`. */
DCRF_API dcrf_status dcrf_model_set_clique_map(dcrf_model *model, const dcrf_view *map, double cost,
                                               dcrf_error *error);

/* Set every clique's cost to gamma * exp(-variance / eta). The variance is the mean squared
 * Euclidean distance of the clique's colours from their mean, summed over channels. */
DCRF_API dcrf_status dcrf_model_set_clique_costs(dcrf_model *model, const dcrf_view *image,
                                                 double gamma, double eta, dcrf_error *error);

/* The cost of a clique and the number of its members; NaN and 0 if there is no such clique. */
DCRF_API double dcrf_model_clique_cost(const dcrf_model *model, size_t clique);
DCRF_API size_t dcrf_model_clique_size(const dcrf_model *model, size_t clique);

#ifdef __cplusplus
}
#endif
#endif
