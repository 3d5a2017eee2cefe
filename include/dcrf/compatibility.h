/* Compatibilities that are distances between labels: ordered labels, trees, sums of cuts.
 *
 *   mu(i, j) = sum_c length_c [one of i and j is in S_c, the other is not],   length_c >= 0
 *
 * All methods take them. Mean field and the QP need O(labels) operations for a variable instead of
 * O(labels^2), and the LP has a bound for them (any other matrix that is not negative and has zeros
 * on its diagonal gets the best cuts below it). Each call replaces the compatibility that a kernel
 * had; the model keeps mu as a matrix of floats, rounded up where it must be rounded.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_COMPATIBILITY_H
#define DCRF_COMPATIBILITY_H

#include <dcrf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of a model with distances. */
#define DCRF_MAX_DISTANCE_LABELS 1024

/* mu(i, j) = min(|i - j|, truncation), truncation > 0; INFINITY: |i - j|. */
DCRF_API dcrf_status dcrf_model_set_linear(dcrf_model *model, size_t kernel, double truncation,
                                           dcrf_error *error);

/* mu(i, j) = the length of the way from i to j in a tree. Edge e joins the nodes ends[2 e] and
 * ends[2 e + 1] and has a finite length >= 0. Nodes are numbered from 0 to edge_count; the first
 * ones are the labels, which need not be leaves. Groups of labels with a cost each are such a tree:
 * an edge of half the cost from every member to the node of its group. */
DCRF_API dcrf_status dcrf_model_set_tree(dcrf_model *model, size_t kernel, size_t edge_count,
                                         const size_t *ends, const double *lengths,
                                         dcrf_error *error);

/* The cuts themselves: sets[c * labels + i] is 1 where S_c holds i, else 0. */
DCRF_API dcrf_status dcrf_model_set_cuts(dcrf_model *model, size_t kernel, size_t count,
                                         const unsigned char *sets, const double *lengths,
                                         dcrf_error *error);

/* By name: "potts", "linear", "truncated-linear:T". */
DCRF_API dcrf_status dcrf_model_set_distance(dcrf_model *model, size_t kernel, const char *name,
                                             dcrf_error *error);

/* How many cuts the LP takes a kernel as, and the largest part of a mu(i, j) that they leave out:
 * 0 for Potts and for the distances above, and for a matrix that is a sum of cuts. The bound is
 * that of the energy without what is left out. */
DCRF_API dcrf_status dcrf_model_count_cuts(const dcrf_model *model, size_t kernel, size_t *count,
                                           double *left_out, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
