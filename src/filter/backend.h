/* The seam between libdcrf and the library of a device (libdcrf-cuda).
 *
 * The device's library fills one table. It makes operators, which are dcrf_operators with methods
 * of its own: they take and give arrays in the host's memory as all operators do, so every method,
 * move and proof works with them. And it runs mean field whole, with everything of an iteration on
 * the device.
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
#define DCRF_BACKEND_VERSION 1u

/* A device that was opened, and mean field on it. */
typedef struct dcrf_backend_device dcrf_backend_device;
typedef struct dcrf_backend_mean_field dcrf_backend_mean_field;

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
};

/* What the device's library exports, under this name. */
typedef const struct dcrf_backend *(*dcrf_backend_entry)(void);
#define DCRF_BACKEND_ENTRY "dcrf_backend_cuda"

#ifdef __cplusplus
}
#endif
#endif
