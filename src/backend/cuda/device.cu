/* Devices: listing, opening and caching them. */
#include "backend/cuda/device.cuh"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

/* The lowest compute capability that the kernels are compiled for. */
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
    cudaGetLastError(); /* clear a recoverable error, or the next call would report it */
    return fail(error, DCRF_ERROR_DEVICE, "the GPU failed at %s: %s", what,
                cudaGetErrorString(result));
}

/* ---- listing -------------------------------------------------------------------------------- */

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
    TRY(check(cudaGetDeviceProperties(&properties, (int)index), "reading its properties", error));
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

/* Freed memory stays in the pool for the next plan. But streams never wait for each other to reuse
 * memory: the pool grows instead. */
static dcrf_status keep_memory(size_t index, dcrf_error *error) {
    cudaMemPool_t pool;
    unsigned long long all = ~0ull;
    int none = 0;
    const char *what = "setting up its memory";
    TRY(check(cudaDeviceGetDefaultMemPool(&pool, (int)index), "finding its memory", error));
    TRY(check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all), what, error));
    return check(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &none),
                 what, error);
}

static dcrf_status make_streams(dcrf_backend_device *device, dcrf_error *error) {
    const char *what = "making streams";
    TRY(check(cudaStreamCreateWithFlags(&device->own_stream, cudaStreamNonBlocking), what, error));
    device->stream = device->own_stream;
    TRY(check(cudaStreamCreateWithFlags(&device->side, cudaStreamNonBlocking), what, error));
    TRY(check(cudaEventCreateWithFlags(&device->forked, cudaEventDisableTiming), what, error));
    TRY(check(cudaEventCreateWithFlags(&device->joined, cudaEventDisableTiming), what, error));
    TRY(check(cudaMallocHost(&device->few, DEVICE_FEW * sizeof *device->few), what, error));
    for (int i = 0; i < 2; i++) {
        TRY(check(cudaMallocHost(&device->staging.half[i], STAGING_BYTES), what, error));
        TRY(check(cudaEventCreateWithFlags(&device->staging.sent[i], cudaEventDisableTiming), what,
                  error));
    }
    return DCRF_OK;
}

/* ---- unused devices ------------------------------------------------------------------------ */

#define MOST_IDLE 64

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static dcrf_backend_device *idle;
static size_t idle_count;

static dcrf_backend_device *take_idle(size_t index) {
    dcrf_backend_device *found = nullptr;
    pthread_mutex_lock(&idle_lock);
    for (dcrf_backend_device **at = &idle; *at && !found; at = &(*at)->next_idle)
        if ((*at)->index == index) {
            found = *at;
            *at = found->next_idle;
            idle_count--;
            break;
        }
    pthread_mutex_unlock(&idle_lock);
    return found;
}

static bool make_idle(dcrf_backend_device *device) {
    pthread_mutex_lock(&idle_lock);
    const bool has_room = idle_count < MOST_IDLE;
    if (has_room) {
        device->next_idle = idle;
        idle = device;
        idle_count++;
    }
    pthread_mutex_unlock(&idle_lock);
    return has_room;
}

static void destroy(dcrf_backend_device *device) {
    cudaSetDevice((int)device->index);
    if (device->own_stream)
        cudaStreamSynchronize(device->own_stream);
    if (device->few)
        cudaFreeHost(device->few);
    for (int i = 0; i < 2; i++) {
        if (device->staging.half[i])
            cudaFreeHost(device->staging.half[i]);
        if (device->staging.sent[i])
            cudaEventDestroy(device->staging.sent[i]);
    }
    if (device->forked)
        cudaEventDestroy(device->forked);
    if (device->joined)
        cudaEventDestroy(device->joined);
    if (device->side)
        cudaStreamDestroy(device->side);
    if (device->own_stream)
        cudaStreamDestroy(device->own_stream);
    cudaGetLastError();
    pthread_mutex_destroy(&device->turn);
    free(device);
}

/* ---- opening and dropping ------------------------------------------------------------------- */

static void make_turn(dcrf_backend_device *device) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&device->turn, &kind);
    pthread_mutexattr_destroy(&kind);
}

static dcrf_status make_device(dcrf_backend_device **out, size_t index, dcrf_error *error) {
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
    device->multiprocessors = properties.multiProcessorCount;
    make_turn(device);
    status = check(cudaSetDevice((int)index), "choosing it", error);
    if (status == DCRF_OK)
        status = keep_memory(index, error);
    if (status == DCRF_OK)
        status = make_streams(device, error);
    if (status < 0) {
        destroy(device);
        return status;
    }
    *out = device;
    return DCRF_OK;
}

dcrf_status device_open(dcrf_backend_device **out, size_t index, dcrf_error *error) {
    *out = take_idle(index);
    const dcrf_status status = *out ? DCRF_OK : make_device(out, index, error);
    if (status < 0)
        return status;
    (*out)->holders = 1;
    (*out)->stream = (*out)->own_stream;
    return status;
}

/* Atomic: any thread may free the last object on a device. */
void device_hold(dcrf_backend_device *device) {
    __atomic_add_fetch(&device->holders, 1, __ATOMIC_RELAXED);
}

void device_drop(dcrf_backend_device *device) {
    if (device && __atomic_sub_fetch(&device->holders, 1, __ATOMIC_ACQ_REL) == 0 &&
        !make_idle(device))
        destroy(device);
}

dcrf_status device_enter(const dcrf_backend_device *device, dcrf_error *error) {
    return check(cudaSetDevice((int)device->index), "choosing it", error);
}
