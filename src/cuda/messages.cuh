/* What the kernels of a Potts model say together: sum_m w_m K_m in. */
#ifndef DCRF_CUDA_MESSAGES_CUH
#define DCRF_CUDA_MESSAGES_CUH

#include "cuda/device.cuh"

struct message_kernels {
    dcrf_backend_device *device;
    size_t variables, stride; /* of the messages */
    size_t count;
    struct device_operator **operators;
    float *weights; /* the host's */
    /* On the device. The sum is that of both: the first kernel has one to itself, so that it can be
     * filtered beside the others. The second is NULL where there is one kernel only. */
    float *messages[2];
};

/* Holds the device. On failure nothing is held. */
dcrf_status message_kernels_take(struct message_kernels *kernels, dcrf_backend_device *device,
                                 const struct dcrf_backend_model *model, dcrf_error *error);
void message_kernels_release(struct message_kernels *kernels);

/* Put the filters of a block of the device, whose rows are not longer than those of the model, into
 * its streams. */
dcrf_status messages_send(const struct message_kernels *kernels, const float *in, size_t channels,
                          size_t stride, dcrf_error *error);

#endif
