/* Device memory, and copies to and from the host. */
#include "backend/cuda/device.cuh"

#include <cstring>
#include <vector>

dcrf_status device_take(dcrf_backend_device *device, void **memory, size_t count, size_t bytes,
                        const char *what, dcrf_error *error) {
    *memory = nullptr;
    if (bytes > 0 && count > SIZE_MAX / bytes)
        return fail(error, DCRF_ERROR_SIZE, "%s is too large for any memory", what);
    const size_t wanted = count * bytes > 0 ? count * bytes : 1;
    const cudaError_t result = cudaMallocAsync(memory, wanted, device->stream);
    if (result != cudaErrorMemoryAllocation)
        return check(result, what, error);
    cudaGetLastError();
    size_t left = 0, total = 0;
    cudaMemGetInfo(&left, &total);
    return fail(error, DCRF_ERROR_MEMORY,
                "out of memory on cuda:%zu for %s: %zu MiB wanted, %zu of %zu MiB free",
                device->index, what, wanted >> 20, left >> 20, total >> 20);
}

void device_release(dcrf_backend_device *device, void *memory) {
    if (memory)
        cudaFreeAsync(memory, device->stream);
}

/* ---- copies --------------------------------------------------------------------------------- */

#define WHAT "a copy"

/* Whether the caller's memory is pinned. Not checked for small copies: the query takes longer than
 * the copy. */
static bool is_pinned(const void *memory, size_t bytes) {
    cudaPointerAttributes attributes = {};
    if (bytes < STAGING_BYTES)
        return false;
    const bool is_known = cudaPointerGetAttributes(&attributes, memory) == cudaSuccess;
    cudaGetLastError();
    return is_known && attributes.type == cudaMemoryTypeHost;
}

static dcrf_status copy_directly(dcrf_backend_device *device, void *to, const void *from,
                                 size_t bytes, cudaMemcpyKind kind, dcrf_error *error) {
    TRY(check(cudaMemcpyAsync(to, from, bytes, kind, device->stream), WHAT, error));
    return check(cudaStreamSynchronize(device->stream), WHAT, error);
}

/* Switch to the other half, once the copies from it are done. */
static dcrf_status turn(dcrf_backend_device *device, dcrf_error *error) {
    struct staging *staging = &device->staging;
    dcrf_status status =
        check(cudaEventRecord(staging->sent[staging->current], device->stream), WHAT, error);
    staging->current ^= 1;
    staging->used = 0;
    return status < 0 ? status
                      : check(cudaEventSynchronize(staging->sent[staging->current]), WHAT, error);
}

dcrf_status device_upload(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                          dcrf_error *error) {
    const device_turn mine(device);
    struct staging *staging = &device->staging;
    dcrf_status status = DCRF_OK;
    if (is_pinned(from, bytes))
        return copy_directly(device, to, from, bytes, cudaMemcpyHostToDevice, error);
    for (size_t done = 0; done < bytes && status == DCRF_OK;) {
        if (staging->used == STAGING_BYTES && (status = turn(device, error)) < 0)
            break;
        const size_t room = STAGING_BYTES - staging->used;
        const size_t part = bytes - done < room ? bytes - done : room;
        char *half = staging->half[staging->current] + staging->used;
        memcpy(half, static_cast<const char *>(from) + done, part);
        status = check(cudaMemcpyAsync(static_cast<char *>(to) + done, half, part,
                                       cudaMemcpyHostToDevice, device->stream),
                       WHAT, error);
        staging->used += part;
        done += part;
    }
    return status;
}

/* Download one part into a half; earlier uploads from it come first in the stream. */
static dcrf_status fetch(dcrf_backend_device *device, unsigned half, const char *from, size_t bytes,
                         dcrf_error *error) {
    TRY(check(cudaMemcpyAsync(device->staging.half[half], from, bytes, cudaMemcpyDeviceToHost,
                              device->stream),
              WHAT, error));
    return check(cudaEventRecord(device->staging.sent[half], device->stream), WHAT, error);
}

/* One fetch: pieces first .. end - 1, and the bytes from the first to the last. */
struct fetched {
    size_t first, end, bytes;
};

static struct fetched next_fetch(const std::vector<struct download> &pieces, size_t first) {
    struct fetched next = {first, first, 0};
    while (next.end < pieces.size()) {
        const struct download *piece = &pieces[next.end];
        const size_t bytes = (size_t)(piece->from + piece->bytes - pieces[first].from);
        if (bytes > STAGING_BYTES)
            break;
        next.bytes = bytes;
        next.end++;
    }
    return next;
}

/* Pieces that each fit into a half, in ascending order of device address. */
static dcrf_status download_pieces(dcrf_backend_device *device,
                                   const std::vector<struct download> &pieces, dcrf_error *error) {
    struct staging *staging = &device->staging;
    dcrf_status status = DCRF_OK;
    struct fetched now = next_fetch(pieces, 0);
    unsigned half = 0;
    if (now.bytes > 0)
        status = fetch(device, half, pieces[0].from, now.bytes, error);
    while (now.bytes > 0 && status == DCRF_OK) {
        const struct fetched next = next_fetch(pieces, now.end);
        if (next.bytes > 0)
            status = fetch(device, !half, pieces[next.first].from, next.bytes, error);
        if (status == DCRF_OK)
            status = check(cudaEventSynchronize(staging->sent[half]), WHAT, error);
        for (size_t k = now.first; k < now.end && status == DCRF_OK; k++)
            memcpy(pieces[k].to, staging->half[half] + (pieces[k].from - pieces[now.first].from),
                   pieces[k].bytes);
        now = next;
        half = !half;
    }
    /* All work in the stream is done by now. */
    staging->current = 0;
    staging->used = 0;
    return !pieces.empty() || status < 0
               ? status
               : check(cudaStreamSynchronize(device->stream), WHAT, error);
}

dcrf_status device_download_each(dcrf_backend_device *device, const struct download *arrays,
                                 size_t count, dcrf_error *error) {
    const device_turn mine(device);
    std::vector<struct download> pieces;
    for (size_t k = 0; k < count; k++) {
        const struct download *array = &arrays[k];
        if (is_pinned(array->to, array->bytes)) {
            TRY(copy_directly(device, array->to, array->from, array->bytes, cudaMemcpyDeviceToHost,
                              error));
            continue;
        }
        for (size_t done = 0; done < array->bytes; done += STAGING_BYTES)
            pieces.push_back(
                {array->to + done, array->from + done,
                 array->bytes - done < STAGING_BYTES ? array->bytes - done : STAGING_BYTES});
    }
    return download_pieces(device, pieces, error);
}

dcrf_status device_download(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                            dcrf_error *error) {
    const struct download array = {static_cast<char *>(to), static_cast<const char *>(from), bytes};
    return device_download_each(device, &array, 1, error);
}
