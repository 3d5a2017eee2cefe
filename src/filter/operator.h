/* The interface that every operator implements.
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
 * so summing over kernels and applying their weights costs no extra pass. */
struct dcrf_application {
    dcrf_direction direction;
    const float *in;
    float *out;
    size_t channels;
    size_t stride;
    float factor;
    bool accumulate;
};

/* One channel of the ordered filter: out[a] = sum_b K_ab F(a, b), where F is the sign of bin[b] -
 * bin[a] (table = NULL), or the table interpolated between the nodes bin[a] and bin[a] + 1 with the
 * weight `fraction` of the latter. bin + 1 < bins wherever fraction > 0. */
struct dcrf_ordered {
    size_t bins;
    const float
        *table; /* bins rows of dcrf_bin_row(bins) floats (dsp/dsp.h), zero in the padding */
    const uint8_t *bin;    /* one per variable */
    const float *fraction; /* one per variable; only with a table */
    float *out;
    bool is_sign; /* the table has the sign of k - h: sums over bins are differences of partial sums
                   */
    bool is_next; /* the operator's last call in this workspace was for this operator too: what it
                     left there can be used */
};

/* Is F the sign, at least at the nodes? */
static inline bool dcrf_levels_have_sign(const dcrf_levels *levels) {
    const size_t bins = levels->count;
    for (size_t h = 0; levels->table && h < bins; h++)
        for (size_t k = h + 1; k < bins; k++)
            if (levels->table[h * bins + k] != 1)
                return false;
    return true;
}

/* The ordered filter with F(a, b) = clip((y_b - y_a) / epsilon) to [-1, 1] itself, without bins;
 * epsilon = 0: the sign. y / epsilon is rounded to float before anything else, so F is
 * antisymmetric and within [-1, 1] in spite of rounding; |y| <= 1 where epsilon is 0. */
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
    /* The same for a whole block of channels, including the lookup of bins; the levels have been
     * checked. NULL: channels are processed one by one. */
    dcrf_status (*ordered_block)(const dcrf_operator *op, const dcrf_levels *levels, const float *y,
                                 float *out, size_t channels, size_t stride, dcrf_error *error);
    /* The ordered filter without bins. NULL: not supported. */
    dcrf_status (*line)(const dcrf_operator *op, dcrf_workspace *workspace,
                        const struct dcrf_line *line, dcrf_error *error);
    /* The same in double, into rows of `channels` doubles; line->out is not used. */
    dcrf_status (*line_double)(const dcrf_operator *op, dcrf_workspace *workspace,
                               const struct dcrf_line *line, double *out, dcrf_error *error);
    /* out = K in with the symmetric operator, in double: rows of `channels` doubles. For rigorous
     * bounds, which float rounding would loosen too much; not optimized for speed. */
    dcrf_status (*apply_double)(const dcrf_operator *op, dcrf_workspace *workspace,
                                const double *in, double *out, size_t channels, dcrf_error *error);
    /* *sum = sum_ab K_ab [x_a != x_b] of the labelling x, in float or in double. NULL: computed
     * from the label indicators. */
    dcrf_status (*disagreement)(const dcrf_operator *op, dcrf_workspace *workspace,
                                const uint16_t *labels, bool in_double, double *sum,
                                dcrf_error *error);
    /* The largest number of successive float roundings in an output of the ordered filter: if |F|
     * <= 1, its error is at most roundings * 2^-24 * (K 1)_a, to first order. is_sign: F is the
     * sign, at least at the nodes. */
    size_t (*ordered_roundings)(const dcrf_operator *op, size_t bins, bool is_sign);
    size_t (*line_roundings)(const dcrf_operator *op);
    /* A bound on the relative error of kernel values and sums in double, compared with the kernel's
     * formula, not counting omitted pairs. NULL: the operator only approximates the formula. */
    double (*double_error)(const dcrf_operator *op);
    /* sums[a] >= the sum of |K_ab| over the pairs that the operator omits in float or in double,
     * one per variable. An ordered filter that omits a pair has F = 0 there, which is feasible:
     * this affects energies, not bounds. NULL: nothing is omitted. */
    dcrf_status (*left_out)(const dcrf_operator *op, dcrf_workspace *workspace, bool in_double,
                            double *sums, dcrf_error *error);
    /* The operator of the variables with kept[a] != 0 (at least one), in their order: rows and
     * columns of this one, apart from omitted pairs. NULL: a restricted operator would be no
     * smaller. */
    dcrf_status (*part)(const dcrf_operator *op, const uint8_t *kept, dcrf_workspace *workspace,
                        dcrf_operator **out, dcrf_error *error);
    dcrf_status (*diagonal)(const dcrf_operator *op, dcrf_workspace *workspace, float *diagonal,
                            dcrf_error *error);
    /* Set the overall factor of an operator that is otherwise correct only up to a factor. Called
     * before use unless the kernel is normalized, which cancels the factor. NULL: no-op. */
    dcrf_status (*calibrate)(dcrf_operator *op, const struct dcrf_features *features,
                             dcrf_workspace *workspace, dcrf_error *error);
    /* Apply the normalization; called once, before use. Either the operator normalizes itself, or
     * it multiplies rows and columns by the `scale` computed from its row sums. One of the two is
     * NULL. */
    dcrf_status (*normalize)(dcrf_operator *op, dcrf_workspace *workspace, dcrf_error *error);
    dcrf_status (*rescale)(dcrf_operator *op, dcrf_workspace *workspace, const float *scale,
                           dcrf_error *error);
    void (*free)(dcrf_operator *op);
};

struct dcrf_operator {
    const struct dcrf_operator_methods *methods;
    size_t variables;
    float *scale; /* of the symmetric normalization, one per variable; NULL without normalization,
                   * or if the operator normalizes itself */
    size_t vertices;
    size_t bytes;
    const void *device; /* the device that holds it (backend/backend.h); NULL: the host */
};

/* ---- operators made elsewhere --------------------------------------------------------------- */

struct dcrf_backend_device;

struct dcrf_operator_source_methods {
    /* The operator for checked features, with its normalization or calibration, separate for each
     * picture. `kind` is not DCRF_OPERATOR_FAST, nor, for several pictures, DCRF_OPERATOR_EXACT.
     * The device must outlive it. */
    dcrf_status (*make)(dcrf_operator **op, struct dcrf_backend_device *device,
                        const struct dcrf_features *features, dcrf_normalization normalization,
                        dcrf_operator_kind kind, dcrf_error *error);

    /* out = sum of factor K in over operators on one device: the block is copied to the device once
     * and back once. */
    dcrf_status (*sum)(dcrf_operator *const *operators, const float *factors, size_t count,
                       const float *in, float *out, size_t channels, size_t stride,
                       dcrf_error *error);

    /* sums[k] = sum_ab (K_k)_ab d_k(x_a, x_b) for operators on one device: distances[k] is d_k, a
     * labels x labels matrix with zeros on its diagonal, or NULL for [x_a != x_b]. The labels that
     * occur are numbered 0 .. place_count - 1; place_of has an entry for each label. */
    dcrf_status (*disagreements)(dcrf_operator *const *operators, const float *const *distances,
                                 size_t count, const uint16_t *labels, const uint16_t *place_of,
                                 size_t label_count, size_t place_count, double *sums,
                                 dcrf_error *error);
};

/* Where a workspace gets its operators, if not from the constructors below: from its device
 * (backend/device.c attaches it). */
struct dcrf_operator_source {
    const struct dcrf_operator_source_methods *methods;
    struct dcrf_backend_device *device; /* that of its operators */
};
extern const struct dcrf_slot dcrf_operator_source_slot;

/* NULL: the workspace computes on the CPU. */
static inline const struct dcrf_operator_source *
dcrf_workspace_source(const dcrf_workspace *workspace) {
    return (const struct dcrf_operator_source *)dcrf_workspace_attached(
        workspace, &dcrf_operator_source_slot); /* the cast is for C++: CUDA sources read this */
}

/* ---- operators of filter/ ------------------------------------------------------------------- */

/* Constructors; the features need not outlive the call. */
dcrf_status dcrf_exact_new(dcrf_operator **op, const struct dcrf_features *features,
                           dcrf_workspace *workspace, dcrf_error *error);
dcrf_status dcrf_grid_new(dcrf_operator **op, const struct dcrf_features *features,
                          dcrf_workspace *workspace, dcrf_error *error);
dcrf_status dcrf_lattice_new(dcrf_operator **op, const struct dcrf_features *features,
                             dcrf_workspace *workspace, dcrf_error *error);

/* The factor by which these row sums of a lattice, known up to a factor, become those of its
 * kernel:
 * `*scale` makes their sum over a sample of variables that of the exact row sums. */
dcrf_status dcrf_lattice_find_scale(const struct dcrf_features *features, const float *row_sums,
                                    dcrf_workspace *workspace, double *scale, dcrf_error *error);

/* Build an operator from checked features. */
dcrf_status dcrf_operator_build(dcrf_operator **op, const struct dcrf_features *features,
                                dcrf_normalization normalization, dcrf_operator_kind kind,
                                dcrf_workspace *workspace, dcrf_error *error);

/* One application without argument checks, for solvers. */
dcrf_status dcrf_operator_run(const dcrf_operator *op, dcrf_workspace *workspace,
                              const struct dcrf_application *application, dcrf_error *error);

#endif
