/* What an implementation of the operator interface supplies.
 *
 * The symmetric normalization is part of an operator: with `scale` the vector 1 / sqrt(K 1), or
 * ones, the matrix is diag(scale) K diag(scale). */
#ifndef DCRF_FILTER_OPERATOR_H
#define DCRF_FILTER_OPERATOR_H

#include "core/workspace.h"
#include "model/kernel.h"

#include <dcrf/experimental.h>
#include <stdbool.h>

/* Scratch memory of the operators: two buffers inside an application, and the histograms of the
 * ordered filter. */
extern const struct dcrf_slot dcrf_operator_slot, dcrf_operator_slot2, dcrf_histogram_slot;

/* One application: out = factor * K in, or out += factor * K in. The unit of work of every solver,
 * so the sum over kernels and the weights cost no pass of their own. */
struct dcrf_application {
    dcrf_direction direction;
    const float *in;
    float *out;
    size_t channels;
    size_t stride;
    float factor;
    bool accumulate;
};

/* One channel on its way through the ordered filter: out[a] = sum_b K_ab F(a, b), where F is the
 * sign of bin[b] - bin[a] (table = NULL), or the table interpolated between the nodes bin[a] and
 * bin[a] + 1 with the weight `fraction` of the latter. bin + 1 < bins wherever fraction > 0. */
struct dcrf_ordered {
    size_t bins;
    const float
        *table; /* bins rows of dcrf_bin_row(bins) floats (dsp/dsp.h), zero in the padding */
    const uint8_t *bin;    /* one per variable */
    const float *fraction; /* one per variable; only with a table */
    float *out;
};

/* The ordered filter with F(a, b) = clip((y_b - y_a) / epsilon) to [-1, 1] itself, without bins;
 * epsilon = 0: the sign. y / epsilon is rounded to float before anything else, so F is
 * antisymmetric and within [-1, 1] whatever is rounded; |y| <= 1 where epsilon is 0. */
struct dcrf_line {
    double epsilon;
    const float *y;
    float *out;
    size_t channels, stride; /* of y and out */
    const uint8_t
        *wanted; /* one per variable: rows of out with 0 are left unchanged; NULL: all are wanted */
};

struct dcrf_operator_methods {
    dcrf_operator_kind kind;
    dcrf_status (*apply)(const dcrf_operator *op, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error);
    dcrf_status (*ordered)(const dcrf_operator *op, dcrf_workspace *workspace,
                           const struct dcrf_ordered *ordered, dcrf_error *error);
    /* The same for a block of channels whose levels are checked, from values to results. NULL: one
     * channel after the other. */
    dcrf_status (*ordered_block)(const dcrf_operator *op, const dcrf_levels *levels, const float *y,
                                 float *out, size_t channels, size_t stride, dcrf_error *error);
    /* NULL: not without bins. */
    dcrf_status (*line)(const dcrf_operator *op, dcrf_workspace *workspace,
                        const struct dcrf_line *line, dcrf_error *error);
    /* The same in double, into rows of `channels` doubles; line->out is not used. */
    dcrf_status (*line_double)(const dcrf_operator *op, dcrf_workspace *workspace,
                               const struct dcrf_line *line, double *out, dcrf_error *error);
    /* out = K in with the symmetric operator, in double: rows of `channels` doubles. For proofs,
     * where the rounding of floats would cost too much; not made to be fast. */
    dcrf_status (*apply_double)(const dcrf_operator *op, dcrf_workspace *workspace,
                                const double *in, double *out, size_t channels, dcrf_error *error);
    /* *sum = sum_ab K_ab [x_a != x_b] of the labelling x, in float or in double. NULL: by the
     * indicators of the labels. */
    dcrf_status (*disagreement)(const dcrf_operator *op, dcrf_workspace *workspace,
                                const uint16_t *labels, bool in_double, double *sum,
                                dcrf_error *error);
    /* How many roundings to float an output of the ordered filter can suffer one after the other:
     * where |F| <= 1, its error is at most roundings * 2^-24 * (K 1)_a, to first order. */
    size_t (*ordered_roundings)(const dcrf_operator *op, size_t bins);
    size_t (*line_roundings)(const dcrf_operator *op);
    /* How far kernel values and sums in double can be from the kernel's formula, relative, but for
     * what is left out. NULL: the operator is not that of the formula. */
    double (*double_error)(const dcrf_operator *op);
    /* sums[a] >= the sum of |K_ab| over the pairs that the operator leaves out, one per variable,
     * in float or in double. An ordered filter that leaves a pair out has F = 0 there, which is
     * feasible: this affects energies, not bounds. NULL: nothing is left out. */
    dcrf_status (*left_out)(const dcrf_operator *op, dcrf_workspace *workspace, bool in_double,
                            double *sums, dcrf_error *error);
    /* The operator of the variables with kept[a] != 0 (at least one), in their order: rows and
     * columns of this one, but for what is left out. NULL: it would be no smaller. */
    dcrf_status (*part)(const dcrf_operator *op, const uint8_t *kept, dcrf_workspace *workspace,
                        dcrf_operator **out, dcrf_error *error);
    dcrf_status (*diagonal)(const dcrf_operator *op, dcrf_workspace *workspace, float *diagonal,
                            dcrf_error *error);
    /* Give an operator that is right up to a factor the right factor. Called before use where there
     * is no normalization, which would undo it. NULL: there is nothing to do. */
    dcrf_status (*calibrate)(dcrf_operator *op, const struct dcrf_features *features,
                             dcrf_workspace *workspace, dcrf_error *error);
    /* How the normalization gets in, called once, before use: the operator normalizes itself, or
     * multiplies rows and columns by the `scale` that its row sums ask for. One of the two is NULL.
     */
    dcrf_status (*normalize)(dcrf_operator *op, dcrf_workspace *workspace, dcrf_error *error);
    dcrf_status (*rescale)(dcrf_operator *op, dcrf_workspace *workspace, const float *scale,
                           dcrf_error *error);
    void (*free)(dcrf_operator *op);
};

struct dcrf_operator {
    const struct dcrf_operator_methods *methods;
    size_t variables;
    float *scale; /* of the symmetric normalization, one per variable; NULL without it, and where
                   * an operator normalizes itself */
    size_t vertices;
    size_t bytes;
    const void *device; /* where it is: backend/backend.h. NULL: here */
};

/* Each allocates the whole of its operator; the features need not outlive the call. */
dcrf_status dcrf_exact_new(dcrf_operator **op, const struct dcrf_features *features,
                           dcrf_workspace *workspace, dcrf_error *error);
dcrf_status dcrf_grid_new(dcrf_operator **op, const struct dcrf_features *features,
                          dcrf_workspace *workspace, dcrf_error *error);
dcrf_status dcrf_lattice_new(dcrf_operator **op, const struct dcrf_features *features,
                             dcrf_workspace *workspace, dcrf_error *error);

/* The operator of checked features. */
dcrf_status dcrf_operator_build(dcrf_operator **op, const struct dcrf_features *features,
                                dcrf_normalization normalization, dcrf_operator_kind kind,
                                dcrf_workspace *workspace, dcrf_error *error);

/* One application, as a solver calls it: nothing is checked. */
dcrf_status dcrf_operator_run(const dcrf_operator *op, dcrf_workspace *workspace,
                              const struct dcrf_application *application, dcrf_error *error);

#endif
