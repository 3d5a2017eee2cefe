/* The seam between libdcrf and the library of a device (libdcrf-cuda).
 *
 * The device's library fills one table. It makes operators, which are dcrf_operators with methods
 * of its own: they take and give arrays in the host's memory as all operators do, so every method,
 * move and proof works with them. And it runs mean field and the LP by Huber continuation with
 * everything of an iteration on the device.
 *
 * Nothing of libdcrf is called from there: the device's library needs the headers only. An object
 * of the table belongs to one thread at a time. */
#ifndef DCRF_FILTER_BACKEND_H
#define DCRF_FILTER_BACKEND_H

#include "filter/operator.h"

#include <dcrf/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change of this file and of struct dcrf_operator and its methods. */
#define DCRF_BACKEND_VERSION 2u

/* A device that was opened, and mean field and the LP on it. */
typedef struct dcrf_backend_device dcrf_backend_device;
typedef struct dcrf_backend_mean_field dcrf_backend_mean_field;
typedef struct dcrf_backend_lp dcrf_backend_lp;

/* What mean field needs of a model whose kernels are all Potts and that has no cliques. Arrays are
 * the host's; they need not outlive the call. */
struct dcrf_backend_model {
    size_t variables, labels, stride;
    const float *unary;
    size_t kernel_count;
    dcrf_operator *const *operators; /* of the same device; they outlive the object */
    const float *weights;
    const float *diagonal; /* sum of w_m diag(K_m), one per variable */
};

/* ---- the LP --------------------------------------------------------------------------------- */

/* Of a model whose kernels are all Potts and that has no cliques; likewise. */
struct dcrf_backend_lp_model {
    size_t variables, labels, stride;
    const float *unary;
    size_t kernel_count;
    dcrf_operator *const *operators;
    const double *weights;
};

/* The blocks of solver/lp_huber.c: points of the dual (A alpha, in double) and marginals. */
enum dcrf_backend_dual {
    DCRF_BACKEND_CURRENT, /* of z */
    DCRF_BACKEND_AVERAGE,
    DCRF_BACKEND_BEST,
    DCRF_BACKEND_DUALS
};
enum dcrf_backend_marginals { DCRF_BACKEND_Y, DCRF_BACKEND_Z };

/* How z becomes a point of the dual (solver/pair_dual.h). */
struct dcrf_backend_shape {
    double epsilon;            /* of operators that take the line itself */
    const dcrf_levels *levels; /* of the others */
    bool is_precise;           /* in double: where all operators have line_double */
    double threshold;          /* labels whose entries are all below are dead */
};

enum { DCRF_BACKEND_OBJECTIVE, DCRF_BACKEND_UPHILL, DCRF_BACKEND_DESCENT_SUMS };
enum { DCRF_BACKEND_LOWEST, DCRF_BACKEND_MAGNITUDE, DCRF_BACKEND_BOUND_SUMS };

/* Slopes that one call finds, at most. */
#define DCRF_BACKEND_SLOPES 16

/* The steps of the LP, each a few passes over the device's blocks; sums are in double, of any
 * order, but always the same one. */
struct dcrf_backend_lp_methods {
    dcrf_status (*make)(dcrf_backend_lp **lp, dcrf_backend_device *device,
                        const struct dcrf_backend_lp_model *model, dcrf_error *error);
    void (*free)(dcrf_backend_lp *lp);

    /* y, and the metric of the steps, one per variable. */
    dcrf_status (*start)(dcrf_backend_lp *lp, const float *y, const float *metric,
                         dcrf_error *error);
    dcrf_status (*restart)(dcrf_backend_lp *lp, dcrf_error *error); /* z = y */
    dcrf_status (*read)(dcrf_backend_lp *lp, enum dcrf_backend_marginals which, float *block,
                        dcrf_error *error);
    dcrf_status (*read_dual)(dcrf_backend_lp *lp, enum dcrf_backend_dual which, double *block,
                             dcrf_error *error);
    /* NULL: zeros. */
    dcrf_status (*write_dual)(dcrf_backend_lp *lp, enum dcrf_backend_dual which,
                              const double *block, dcrf_error *error);

    /* current = A alpha of z. The labels that are alive go to `alive`, which has room for all. */
    dcrf_status (*find_point)(dcrf_backend_lp *lp, const struct dcrf_backend_shape *shape,
                              size_t *alive, size_t *alive_count, dcrf_error *error);
    /* into += weight (from - into) */
    dcrf_status (*mix)(dcrf_backend_lp *lp, enum dcrf_backend_dual into,
                       enum dcrf_backend_dual from, double weight, dcrf_error *error);
    /* slopes[k] = d/dt sum_a min_i (phi - best - t (to - best))_ai at t = first + k step */
    dcrf_status (*slopes)(dcrf_backend_lp *lp, enum dcrf_backend_dual to, double first, double step,
                          size_t count, double *slopes, dcrf_error *error);
    /* Of best: sum_a min_i (phi - best)_ai, and the sum of the magnitudes. */
    dcrf_status (*bound_sums)(dcrf_backend_lp *lp, double *sums, dcrf_error *error);
    /* previous = y, y = P(z + tau (current - phi)), tau = epsilon / metric; the objective is
     * sum z (phi - current), uphill is sum metric <z - y, y - previous>. */
    dcrf_status (*descend)(dcrf_backend_lp *lp, double epsilon, double *sums, dcrf_error *error);
    /* z = y + beta (y - previous), clipped to [0, 1] */
    dcrf_status (*extrapolate)(dcrf_backend_lp *lp, float beta, dcrf_error *error);
};

/* ---- the table ------------------------------------------------------------------------------ */

struct dcrf_backend {
    unsigned version; /* DCRF_BACKEND_VERSION when the library was built */

    dcrf_status (*count)(size_t *count, dcrf_error *error);
    dcrf_status (*describe)(size_t index, dcrf_device_info *info, dcrf_error *error);
    dcrf_status (*open)(dcrf_backend_device **device, size_t index, dcrf_error *error);
    void (*close)(dcrf_backend_device *device);

    /* The operator of checked features, with its normalization or calibration. `kind` is not
     * DCRF_OPERATOR_FAST. The device outlives it. */
    dcrf_status (*operator_new)(dcrf_operator **op, dcrf_backend_device *device,
                                const struct dcrf_features *features,
                                dcrf_normalization normalization, dcrf_operator_kind kind,
                                dcrf_error *error);

    dcrf_status (*mean_field_new)(dcrf_backend_mean_field **mean_field, dcrf_backend_device *device,
                                  const struct dcrf_backend_model *model, dcrf_error *error);
    /* Begin from q, a block with the model's stride, or from softmax(-unary) (NULL). *entropy: sum
     * of q ln q. */
    dcrf_status (*mean_field_start)(dcrf_backend_mean_field *mean_field, const float *q,
                                    double *entropy, dcrf_error *error);
    /* One update with this damping of the logits. The sums are those of dsp/dsp.h. */
    dcrf_status (*mean_field_step)(dcrf_backend_mean_field *mean_field, float damping, double *sums,
                                   dcrf_error *error);
    dcrf_status (*mean_field_marginals)(dcrf_backend_mean_field *mean_field, float *q,
                                        dcrf_error *error);
    void (*mean_field_free)(dcrf_backend_mean_field *mean_field);

    struct dcrf_backend_lp_methods lp;
};

/* What the device's library exports, under this name. */
typedef const struct dcrf_backend *(*dcrf_backend_entry)(void);
#define DCRF_BACKEND_ENTRY "dcrf_backend_cuda"

#ifdef __cplusplus
}
#endif
#endif
