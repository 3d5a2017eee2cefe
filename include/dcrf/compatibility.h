/* Compatibilities that are distances between labels: ordered labels, trees, sums of cuts.
 *
 *   mu(i, j) = sum_c length_c [one of i and j is in S_c, the other is not],   length_c >= 0
 *
 * All methods support them. Mean field and the QP then need O(labels) instead of O(labels^2)
 * operations per variable, and the LP gives a lower bound. (For any other nonnegative matrix with a
 * zero diagonal it uses the best cuts below it.) Each call replaces the kernel's compatibility. The
 * model stores mu as a matrix of floats, rounded up where necessary.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_COMPATIBILITY_H
#define DCRF_COMPATIBILITY_H

#include <dcrf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of labels of a model with distances. */
#define DCRF_MAX_DISTANCE_LABELS 1024

/* mu(i, j) = min(|i - j|, truncation), truncation > 0; INFINITY: |i - j|. */
DCRF_API dcrf_status dcrf_model_set_linear(dcrf_model *model, size_t kernel, double truncation,
                                           dcrf_error *error);

/* mu(i, j) = the length of the path from i to j in a tree. Edge e has a finite length >= 0 and
 * joins nodes ends[2 e] and ends[2 e + 1]. Nodes are numbered from 0 to edge_count. The first ones
 * are the labels, which need not be leaves. For nested groups of labels with a cost each, join a
 * label to its group by an edge of half the group's cost, and a group to the one around it by half
 * the difference of their costs. */
DCRF_API dcrf_status dcrf_model_set_tree(dcrf_model *model, size_t kernel, size_t edge_count,
                                         const size_t *ends, const double *lengths,
                                         dcrf_error *error);

/* Give the cuts directly: sets[c * labels + i] is 1 if S_c contains i, else 0. */
DCRF_API dcrf_status dcrf_model_set_cuts(dcrf_model *model, size_t kernel, size_t count,
                                         const unsigned char *sets, const double *lengths,
                                         dcrf_error *error);

/* Set a distance by name: "potts", "linear" or "truncated-linear:T". */
DCRF_API dcrf_status dcrf_model_set_distance(dcrf_model *model, size_t kernel, const char *name,
                                             dcrf_error *error);

/* What the cuts of the LP leave out of compatibilities, and so its lower bound of energies: nothing
 * (all 0) of Potts and of the distances above. For a matrix it looks for cuts: of up to 10 labels
 * all are tried, beyond that ranges and pairs of labels. Nothing is left out of a sum of these. A
 * part of a mu(i, j) below 1e-6 of it counts as rounding error. */
typedef struct dcrf_left_out {
    double distance; /* the largest part of a mu(i, j) */
    double fraction; /* the largest fraction of a mu(i, j) */
    double energy;   /* of a labelling: the bound stays this much below its energy; NaN: unknown */
    double gap; /* dcrf_relative_gap does not fall below this for that labelling; NaN: unknown */
} dcrf_left_out;

/* How many cuts represent a kernel in the LP, and what they leave out, of no labelling. */
DCRF_API dcrf_status dcrf_model_count_cuts(const dcrf_model *model, size_t kernel, size_t *count,
                                           dcrf_left_out *left_out, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
