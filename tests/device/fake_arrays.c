/* The caller's arrays on the fake device, and memory for them that the host cannot read.
 *
 *   FAKE_PLACE   the device that holds all other memory; not set: it is the host's */
#include "core/memory.h"
#include "fake_backend.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

/* The stream last waited for; tests read it through dlsym. */
static _Atomic(void *) waited_for;
EXPORTED void *fake_backend_waited_for(void);
void *fake_backend_waited_for(void) {
    return atomic_exchange(&waited_for, NULL);
}

struct dcrf_backend_memory {
    char *data;
    size_t bytes, index;
    struct dcrf_backend_memory *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dcrf_backend_memory *all;

static dcrf_status find(const void *data, size_t *index, dcrf_error *error) {
    const char *place = getenv("FAKE_PLACE");
    *index = place ? (size_t)strtoul(place, NULL, 10) : SIZE_MAX;
    pthread_mutex_lock(&lock);
    for (const struct dcrf_backend_memory *memory = all; memory; memory = memory->next)
        if ((const char *)data >= memory->data && (const char *)data < memory->data + memory->bytes)
            *index = memory->index;
    pthread_mutex_unlock(&lock);
    return fake_refuse("find", error);
}

static dcrf_status wait_for(dcrf_backend_device *device, void *stream, dcrf_error *error) {
    (void)device;
    atomic_store(&waited_for, stream);
    return fake_refuse("wait_for", error);
}

static void use_stream(dcrf_backend_device *device, void *stream) {
    (void)device;
    atomic_store(&waited_for, stream);
}

static dcrf_status memory_new(dcrf_backend_memory **out, void **data, dcrf_backend_device *device,
                              size_t bytes, dcrf_error *error) {
    dcrf_status status = fake_refuse("memory_new", error);
    *out = NULL;
    *data = NULL;
    if (status < 0)
        return status;
    struct dcrf_backend_memory *memory = calloc(1, sizeof *memory);
    fake_enter();
    if (memory)
        memory->data = dcrf_allocate(bytes + 1, 1);
    if (memory && memory->data)
        memset(memory->data, 0x5a, bytes + 1);
    fake_leave();
    if (!memory || !memory->data) {
        free(memory);
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake array");
    }
    memory->bytes = bytes + 1;
    memory->index = fake_index(device);
    fake_count(1);
    pthread_mutex_lock(&lock);
    memory->next = all;
    all = memory;
    pthread_mutex_unlock(&lock);
    *data = memory->data;
    *out = memory;
    return DCRF_OK;
}

static void memory_free(dcrf_backend_memory *memory) {
    pthread_mutex_lock(&lock);
    struct dcrf_backend_memory **at = &all;
    while (*at != memory)
        at = &(*at)->next;
    *at = memory->next;
    pthread_mutex_unlock(&lock);
    dcrf_release(memory->data);
    free(memory);
    fake_count(-1);
}

static dcrf_status copy(dcrf_backend_device *device, void *to, const void *from, size_t bytes,
                        dcrf_error *error) {
    (void)device;
    fake_enter();
    memcpy(to, from, bytes);
    fake_leave();
    return fake_refuse("copy", error);
}

/* ---- elements ---------------------------------------------------------------------------- */

static const char *place(const dcrf_view *view, const dcrf_grid *grid, size_t variable,
                         size_t channel) {
    const char *at = (const char *)view->data + (ptrdiff_t)channel * view->channel_stride;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        at += (ptrdiff_t)(variable % grid->size[axis]) * view->stride[axis];
        variable /= grid->size[axis];
    }
    return at;
}

/* Half precision: 1, 5 and 10 bits, for numbers from 2^-14 to 2^15. */
static double half_value(uint16_t bits) {
    const double size = (1024 + bits % 1024) * pow(2, bits / 1024 % 32 - 25);
    return bits >= 0x8000 ? -size : size;
}

double fake_element(const dcrf_view *view, const dcrf_grid *grid, size_t variable, size_t channel) {
    const char *at = place(view, grid, variable, channel);
    switch (view->type) {
    case DCRF_U8:
        return *(const uint8_t *)at;
    case DCRF_U16:
        return *(const uint16_t *)at;
    case DCRF_I16:
        return *(const int16_t *)at;
    case DCRF_I32:
        return *(const int32_t *)at;
    case DCRF_F32:
        return (double)*(const float *)at;
    case DCRF_F64:
        return *(const double *)at;
    case DCRF_F16:
        return half_value(*(const uint16_t *)at);
    case DCRF_BF16: {
        const uint32_t bits = (uint32_t) * (const uint16_t *)at << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    }
    return NAN;
}

const struct dcrf_backend_arrays_methods fake_arrays = {.find = find,
                                                        .wait_for = wait_for,
                                                        .use_stream = use_stream,
                                                        .memory_new = memory_new,
                                                        .memory_free = memory_free,
                                                        .copy = copy};
