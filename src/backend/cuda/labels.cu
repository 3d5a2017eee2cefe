/* The label of the largest marginal of each variable, found on the device so that only labels are
 * copied to the host. */
#include "backend/cuda/device.cuh"

#define WHAT "the labels of marginals"

static __global__ void find_labels(const float *marginals, size_t variables, uint32_t labels,
                                   uint32_t stride, uint16_t *out) {
    const size_t a = this_thread();
    if (a >= variables)
        return;
    const float *row = marginals + a * stride;
    uint32_t best = 0;
    float largest = row[0];
    for (uint32_t i = 1; i < labels; i++)
        if (row[i] > largest) {
            largest = row[i];
            best = i;
        }
    out[a] = (uint16_t)best;
}

dcrf_status labels_download(dcrf_backend_device *device, const float *marginals, size_t variables,
                            size_t labels, size_t stride, uint16_t *out, dcrf_error *error) {
    scratch<uint16_t> found(device);
    TRY(found.take(variables, WHAT, error));
    find_labels<<<blocks_for(variables), THREADS, 0, device->stream>>>(
        marginals, variables, (uint32_t)labels, (uint32_t)stride, found);
    TRY(check(cudaGetLastError(), WHAT, error));
    return device_download(device, out, found, variables * sizeof *out, error);
}
