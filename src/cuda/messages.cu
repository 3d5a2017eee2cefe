#include "cuda/messages.cuh"

#include <cstdlib>

#define WHAT "the sum over the kernels"

void message_kernels_release(struct message_kernels *kernels) {
    if (!kernels->device)
        return;
    for (float *message : kernels->messages)
        device_release(kernels->device, message);
    free(kernels->operators);
    free(kernels->weights);
    device_drop(kernels->device);
    *kernels = {};
}

static dcrf_status take_memory(struct message_kernels *kernels, dcrf_error *error) {
    const size_t floats = kernels->variables * kernels->stride;
    dcrf_status status = DCRF_OK;
    for (size_t k = 0; k < 2 && status == DCRF_OK; k++) {
        if (k > 0 && kernels->count < 2)
            break;
        float **message = &kernels->messages[k];
        status = device_array(kernels->device, message, floats, WHAT, error);
        /* Filters leave the padding of rows as it is, and some read whole rows. */
        if (status == DCRF_OK)
            status =
                check(cudaMemsetAsync(*message, 0, floats * sizeof(float), kernels->device->stream),
                      WHAT, error);
    }
    return status;
}

dcrf_status message_kernels_take(struct message_kernels *kernels, dcrf_backend_device *device,
                                 const struct dcrf_backend_model *model, dcrf_error *error) {
    *kernels = {device, model->variables, model->stride, model->kernel_count};
    device_hold(device);
    kernels->operators = static_cast<struct device_operator **>(
        calloc(model->kernel_count + 1, sizeof *kernels->operators));
    kernels->weights =
        static_cast<float *>(calloc(model->kernel_count + 1, sizeof *kernels->weights));
    dcrf_status status = DCRF_OK;
    if (!kernels->operators || !kernels->weights)
        status = fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    for (size_t m = 0; m < model->kernel_count && status == DCRF_OK; m++) {
        kernels->operators[m] = reinterpret_cast<struct device_operator *>(model->operators[m]);
        kernels->weights[m] = model->weights[m];
    }
    if (status == DCRF_OK)
        status = take_memory(kernels, error);
    if (status < 0)
        message_kernels_release(kernels);
    return status;
}

/* The message of the kernels first .. end - 1. */
static dcrf_status filter(const struct message_kernels *kernels, size_t first, size_t end,
                          struct dcrf_application application, dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    for (size_t m = first; m < end && status == DCRF_OK; m++) {
        application.factor = kernels->weights[m];
        application.accumulate = m > first;
        status = kernels->operators[m]->apply_on_device(kernels->operators[m], &application, error);
    }
    return status;
}

/* What is put into the device's stream goes to the side meanwhile. */
static dcrf_status filter_beside(const struct message_kernels *kernels,
                                 const struct dcrf_application *application, dcrf_error *error) {
    dcrf_backend_device *device = kernels->device;
    cudaStream_t main = device->stream;
    dcrf_status status = check(cudaEventRecord(device->forked, main), WHAT, error);
    if (status == DCRF_OK)
        status = check(cudaStreamWaitEvent(device->side, device->forked, 0), WHAT, error);
    if (status < 0)
        return status;
    device->stream = device->side;
    status = filter(kernels, 0, 1, *application, error);
    device->stream = main;
    if (status == DCRF_OK)
        status = check(cudaEventRecord(device->joined, device->side), WHAT, error);
    return status;
}

dcrf_status messages_send(const struct message_kernels *kernels, const float *in, size_t channels,
                          size_t stride, dcrf_error *error) {
    struct dcrf_application application = {
        DCRF_SYMMETRIC, in, kernels->messages[0], channels, stride, 1, false};
    if (kernels->count < 2) /* without any the message is zero from the beginning */
        return filter(kernels, 0, kernels->count, application, error);
    dcrf_status status = filter_beside(kernels, &application, error);
    application.out = kernels->messages[1];
    if (status == DCRF_OK)
        status = filter(kernels, 1, kernels->count, application, error);
    return status < 0
               ? status
               : check(cudaStreamWaitEvent(kernels->device->stream, kernels->device->joined, 0),
                       WHAT, error);
}
