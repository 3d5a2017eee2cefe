/* The caller's arrays: their location, copies, memory for results, and the streams of other
 * libraries. */
#include "backend/cuda/arrays.cuh"

#include <cstdlib>
#include <pthread.h>
#include <vector>

#define WHAT "an array of the caller's"

dcrf_status array_find(const void *data, size_t *index, dcrf_error *error) {
    cudaPointerAttributes attributes = {};
    *index = SIZE_MAX;
    TRY(check(cudaPointerGetAttributes(&attributes, data), "finding an array", error));
    if (attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged)
        *index = (size_t)attributes.device;
    return DCRF_OK;
}

/* ---- views ---------------------------------------------------------------------------------- */

/* The number of bytes from the lowest element of a view over a grid to the end of the highest, and
 * the offset of the lowest from view->data. */
template <class VIEW>
static size_t view_span(const VIEW *view, const dcrf_grid *grid, ptrdiff_t *lowest) {
    ptrdiff_t low = 0, high = 0;
    for (size_t axis = 0; axis <= DCRF_MAX_AXES; axis++) {
        const bool is_channel = axis == DCRF_MAX_AXES;
        const size_t count = is_channel ? view->channels : grid->size[axis];
        const ptrdiff_t reach =
            (ptrdiff_t)(count - 1) * (is_channel ? view->channel_stride : view->stride[axis]);
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    static const size_t bytes[] = {1, 2, 2, 4,
                                   4, 8, 2, 2}; /* as dcrf_type_bytes in the main library */
    *lowest = low;
    return (size_t)(high - low) + bytes[view->type];
}

/* Copies are contiguous, each aligned for any element type. */
#define ALIGNED 256

static dcrf_status begin_copy(struct views_on_device<dcrf_view> *uploaded, char *copy,
                              const char *array, size_t bytes, dcrf_error *error) {
    return device_upload(uploaded->device, copy, array, bytes, error);
}

static dcrf_status begin_copy(struct views_on_device<dcrf_output> *uploaded, char *copy,
                              char *array, size_t bytes, dcrf_error *error) {
    (void)error;
    uploaded->results.push_back({array, copy, bytes});
    return DCRF_OK;
}

template <class VIEW>
dcrf_status views_upload(struct views_on_device<VIEW> *uploaded, const VIEW *views, size_t pictures,
                         const dcrf_grid *grid, const char *what, dcrf_error *error) {
    std::vector<VIEW> placed(views, views + pictures);
    std::vector<size_t> offsets(pictures, SIZE_MAX); /* of copies */
    size_t bytes = 0;
    for (size_t p = 0; p < pictures; p++) {
        size_t index;
        ptrdiff_t lowest;
        TRY(array_find(views[p].data, &index, error));
        if (index != SIZE_MAX)
            continue;
        offsets[p] = bytes;
        bytes += (view_span(&views[p], grid, &lowest) + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    if (bytes > 0)
        TRY(uploaded->copies.take(bytes, what, error));
    for (size_t p = 0; p < pictures; p++) {
        ptrdiff_t lowest;
        if (offsets[p] == SIZE_MAX)
            continue;
        const size_t span = view_span(&views[p], grid, &lowest);
        char *copy = uploaded->copies + offsets[p];
        placed[p].data = copy - lowest;
        TRY(begin_copy(uploaded, copy, view_bytes(views[p]) + lowest, span, error));
    }
    return uploaded->views.copy(placed.data(), pictures, what, error);
}

template dcrf_status views_upload(struct views_on_device<dcrf_view> *, const dcrf_view *, size_t,
                                  const dcrf_grid *, const char *, dcrf_error *);
template dcrf_status views_upload(struct views_on_device<dcrf_output> *, const dcrf_output *,
                                  size_t, const dcrf_grid *, const char *, dcrf_error *);

/* ---- memory for results --------------------------------------------------------------------- */

/* May be freed by any thread, and so in a separate stream: the stream of an open device may be
 * capturing a graph. */
struct dcrf_backend_memory {
    void *data;
    size_t index;
};

#define MOST_DEVICES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cudaStream_t release_streams[MOST_DEVICES];

static dcrf_status release_stream(size_t index, cudaStream_t *stream, dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    if (index >= MOST_DEVICES)
        return fail(error, DCRF_ERROR_UNSUPPORTED, "arrays on cuda:%zu are not possible", index);
    pthread_mutex_lock(&lock);
    if (!release_streams[index])
        status = check(cudaStreamCreateWithFlags(&release_streams[index], cudaStreamNonBlocking),
                       "making streams", error);
    *stream = release_streams[index];
    pthread_mutex_unlock(&lock);
    return status;
}

static dcrf_status memory_new(dcrf_backend_memory **out, void **data, dcrf_backend_device *device,
                              size_t bytes, dcrf_error *error) {
    cudaStream_t unused;
    *out = nullptr;
    *data = nullptr;
    TRY(device_enter(device, error));
    TRY(release_stream(device->index, &unused, error));
    dcrf_backend_memory *memory =
        static_cast<dcrf_backend_memory *>(calloc(1, sizeof(dcrf_backend_memory)));
    if (!memory)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    memory->index = device->index;
    dcrf_status status = device_take(device, &memory->data, bytes, 1, WHAT, error);
    /* Make the memory valid in other streams too. */
    if (status == DCRF_OK)
        status = check(cudaStreamSynchronize(device->stream), WHAT, error);
    if (status < 0) {
        free(memory);
        return status;
    }
    *data = memory->data;
    *out = memory;
    return DCRF_OK;
}

/* Other libraries may still have pending work on this memory. Wait for the default stream, where
 * most of it is. */
static void memory_free(dcrf_backend_memory *memory) {
    cudaStream_t stream = nullptr;
    cudaEvent_t done = nullptr;
    int before = 0;
    if (!memory)
        return;
    cudaGetDevice(&before);
    cudaSetDevice((int)memory->index);
    if (release_stream(memory->index, &stream, nullptr) == DCRF_OK) {
        if (cudaEventCreateWithFlags(&done, cudaEventDisableTiming) == cudaSuccess) {
            if (cudaEventRecord(done, cudaStreamLegacy) == cudaSuccess)
                cudaStreamWaitEvent(stream, done, 0);
            cudaEventDestroy(done);
        }
        cudaFreeAsync(memory->data, stream);
    }
    cudaSetDevice(before);
    cudaGetLastError();
    free(memory);
}

/* ---- copies and streams --------------------------------------------------------------------- */

static dcrf_status copy(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                        dcrf_error *error) {
    size_t to_index, from_index;
    TRY(device_enter(device, error));
    TRY(array_find(to, &to_index, error));
    TRY(array_find(from, &from_index, error));
    if (to_index == SIZE_MAX && from_index != SIZE_MAX)
        return device_download(device, to, from, bytes, error);
    TRY(from_index == SIZE_MAX && to_index != SIZE_MAX
            ? device_upload(device, to, from, bytes, error)
            : check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, device->stream), WHAT,
                    error));
    return check(cudaStreamSynchronize(device->stream), WHAT, error);
}

static dcrf_status wait_for(dcrf_backend_device *device, void *stream, dcrf_error *error) {
    cudaEvent_t event = nullptr;
    const char *what = "waiting for the stream of an array";
    TRY(device_enter(device, error));
    TRY(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), what, error));
    dcrf_status status =
        check(cudaEventRecord(event, static_cast<cudaStream_t>(stream)), what, error);
    if (status == DCRF_OK)
        status = check(cudaStreamWaitEvent(device->stream, event, 0), what, error);
    cudaEventDestroy(event);
    return status;
}

static void use_stream(dcrf_backend_device *device, void *stream) {
    const device_turn turn(device);
    device->stream = static_cast<cudaStream_t>(stream);
}

static struct dcrf_backend_arrays_methods make_methods() {
    struct dcrf_backend_arrays_methods methods = {};
    methods.find = array_find;
    methods.wait_for = wait_for;
    methods.use_stream = use_stream;
    methods.lattice_of_rows = lattice_of_rows;
    methods.memory_new = memory_new;
    methods.memory_free = memory_free;
    methods.copy = copy;
    return methods;
}

const struct dcrf_backend_arrays_methods arrays_methods = make_methods();
