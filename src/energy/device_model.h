/* A coupling as a device takes it (filter/backend.h). */
#ifndef DCRF_ENERGY_DEVICE_MODEL_H
#define DCRF_ENERGY_DEVICE_MODEL_H

#include "energy/coupling.h"
#include "filter/device.h"

struct dcrf_device_model {
    const struct dcrf_device *device; /* NULL: it stays here */
    struct dcrf_backend_model model;
    dcrf_operator **operators;
    float *weights;
};

/* Of the workspace's device, where the operators are on it, all kernels are Potts and there are no
 * cliques. The coupling outlives the model. */
dcrf_status dcrf_device_model_init(struct dcrf_device_model *there,
                                   const struct dcrf_coupling *coupling, dcrf_error *error);
void dcrf_device_model_clear(struct dcrf_device_model *there);

#endif
