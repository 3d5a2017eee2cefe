/* A coupling and the cliques of its model as a device takes them (filter/backend.h). */
#ifndef DCRF_ENERGY_DEVICE_MODEL_H
#define DCRF_ENERGY_DEVICE_MODEL_H

#include "energy/coupling.h"
#include "filter/device.h"

struct dcrf_device_model {
    const struct dcrf_device *device; /* NULL: it stays here */
    struct dcrf_backend_model model;
    struct dcrf_backend_group *groups;
    dcrf_operator **operators; /* of all groups */
    float *weights;
    float *compatibilities; /* one matrix per group; NULL where all kernels are Potts */
};

/* Of the workspace's device, where all operators are on it. The coupling outlives the model. */
dcrf_status dcrf_device_model_init(struct dcrf_device_model *there,
                                   const struct dcrf_coupling *coupling, dcrf_error *error);
void dcrf_device_model_clear(struct dcrf_device_model *there);

#endif
