/* Devices: which there are, opening one, its memory and its stream. */
#include "cuda/device.cuh"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

/* The oldest devices that the kernels are compiled for. */
#define LEAST_MAJOR 8

dcrf_status fail(dcrf_error *error, dcrf_status status, const char *format, ...) {
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return status;
}

dcrf_status check(cudaError_t result, const char *what, dcrf_error *error) {
    if (result == cudaSuccess)
        return DCRF_OK;
    cudaGetLastError(); /* an error that can be survived must not be found by the next call */
    return fail(error, DCRF_ERROR_DEVICE, "the GPU failed at %s: %s", what,
                cudaGetErrorString(result));
}

/* ---- which there are ------------------------------------------------------------------------ */

dcrf_status device_count(size_t *count, dcrf_error *error) {
    int found = 0, driver = 0, runtime = 0;
    const cudaError_t result = cudaGetDeviceCount(&found);
    *count = 0;
    if (result == cudaSuccess && found > 0) {
        *count = (size_t)found;
        return DCRF_OK;
    }
    cudaGetLastError();
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return fail(error, DCRF_ERROR_DEVICE, "there is no NVIDIA driver on this machine");
    if (result == cudaErrorInsufficientDriver)
        return fail(error, DCRF_ERROR_DEVICE,
                    "the NVIDIA driver is too old: it is for CUDA %d.%d, and %d.%d is needed",
                    driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return fail(error, DCRF_ERROR_DEVICE, "there is no CUDA device: %s",
                result == cudaSuccess ? "none was found" : cudaGetErrorString(result));
}

dcrf_status device_describe(size_t index, dcrf_device_info *info, dcrf_error *error) {
    cudaDeviceProp properties;
    const dcrf_status status =
        check(cudaGetDeviceProperties(&properties, (int)index), "reading its properties", error);
    if (status < 0)
        return status;
    snprintf(info->name, sizeof info->name, "cuda:%zu", index);
    snprintf(info->description, sizeof info->description, "%.80s, compute capability %d.%d",
             properties.name, properties.major, properties.minor);
    info->memory_bytes = properties.totalGlobalMem;
    int before = 0;
    size_t total = 0;
    cudaGetDevice(&before);
    if (cudaSetDevice((int)index) == cudaSuccess)
        cudaMemGetInfo(&info->free_bytes, &total);
    cudaSetDevice(before);
    cudaGetLastError();
    return DCRF_OK;
}

/* ---- opening one ---------------------------------------------------------------------------- */

/* What is freed stays in the pool: the next plan takes it from there. */
static dcrf_status keep_memory(size_t index, dcrf_error *error) {
    cudaMemPool_t pool;
    unsigned long long all = ~0ull;
    const dcrf_status status =
        check(cudaDeviceGetDefaultMemPool(&pool, (int)index), "finding its memory", error);
    return status < 0 ? status
                      : check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all),
                              "setting up its memory", error);
}

static dcrf_status make_streams(dcrf_backend_device *device, dcrf_error *error) {
    const char *what = "making streams";
    dcrf_status status =
        check(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking), what, error);
    if (status == DCRF_OK)
        status =
            check(cudaStreamCreateWithFlags(&device->side, cudaStreamNonBlocking), what, error);
    if (status == DCRF_OK)
        status =
            check(cudaEventCreateWithFlags(&device->forked, cudaEventDisableTiming), what, error);
    if (status == DCRF_OK)
        status =
            check(cudaEventCreateWithFlags(&device->joined, cudaEventDisableTiming), what, error);
    if (status == DCRF_OK)
        status = check(cudaMallocHost(&device->few, DEVICE_FEW * sizeof *device->few), what, error);
    return status;
}

dcrf_status device_open(dcrf_backend_device **out, size_t index, dcrf_error *error) {
    *out = nullptr;
    cudaDeviceProp properties;
    dcrf_status status =
        check(cudaGetDeviceProperties(&properties, (int)index), "reading its properties", error);
    if (status < 0)
        return status;
    if (properties.major < LEAST_MAJOR)
        return fail(error, DCRF_ERROR_DEVICE,
                    "%s has compute capability %d.%d, and %d.0 is the least that is needed",
                    properties.name, properties.major, properties.minor, LEAST_MAJOR);
    dcrf_backend_device *device =
        static_cast<dcrf_backend_device *>(calloc(1, sizeof(dcrf_backend_device)));
    if (!device)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for a device");
    device->index = index;
    device->holders = 1;
    device->multiprocessors = properties.multiProcessorCount;
    status = check(cudaSetDevice((int)index), "choosing it", error);
    if (status == DCRF_OK)
        status = keep_memory(index, error);
    if (status == DCRF_OK)
        status = make_streams(device, error);
    if (status < 0) {
        device_drop(device);
        return status;
    }
    *out = device;
    return DCRF_OK;
}

void device_hold(dcrf_backend_device *device) {
    device->holders++;
}

void device_drop(dcrf_backend_device *device) {
    if (!device || --device->holders > 0)
        return;
    cudaSetDevice((int)device->index);
    if (device->stream)
        cudaStreamSynchronize(device->stream);
    if (device->few)
        cudaFreeHost(device->few);
    if (device->forked)
        cudaEventDestroy(device->forked);
    if (device->joined)
        cudaEventDestroy(device->joined);
    if (device->side)
        cudaStreamDestroy(device->side);
    if (device->stream)
        cudaStreamDestroy(device->stream);
    cudaGetLastError();
    free(device);
}

dcrf_status device_enter(const dcrf_backend_device *device, dcrf_error *error) {
    return check(cudaSetDevice((int)device->index), "choosing it", error);
}

/* ---- memory --------------------------------------------------------------------------------- */

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

dcrf_status device_upload(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                          dcrf_error *error) {
    const dcrf_status status = check(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->stream), "a copy", error);
    return status < 0 ? status : check(cudaStreamSynchronize(device->stream), "a copy", error);
}

dcrf_status device_download(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                            dcrf_error *error) {
    const dcrf_status status = check(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device->stream), "a copy", error);
    return status < 0 ? status : check(cudaStreamSynchronize(device->stream), "a copy", error);
}
