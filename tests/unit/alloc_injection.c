#include "alloc_injection.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);

void (*release_what_is_kept)(void);

/* Atomic: the library's threads may allocate too. */
static atomic_bool active;
static atomic_size_t requests;
static atomic_size_t refused_request;
static atomic_bool refused_memory;
static atomic_bool refused_thread;
static atomic_long outstanding; /* blocks allocated and not yet freed while active */

static bool refuse(atomic_bool *flag) {
    if (!atomic_load(&active))
        return false;
    if (atomic_fetch_add(&requests, 1) != atomic_load(&refused_request))
        return false;
    atomic_store(flag, true);
    return true;
}

static void *counted(void *memory) {
    if (memory && atomic_load(&active))
        atomic_fetch_add(&outstanding, 1);
    return memory;
}

void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) {
    return refuse(&refused_memory) ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes) {
    return refuse(&refused_memory) ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes) {
    if (refuse(&refused_memory))
        return NULL;
    void *moved = __real_realloc(memory, bytes);
    return memory ? moved : counted(moved); /* a resized block is not a new one */
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return refuse(&refused_memory) ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

void __wrap_free(void *memory);
void __wrap_free(void *memory) {
    if (memory && atomic_load(&active))
        atomic_fetch_sub(&outstanding, 1);
    __real_free(memory);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument) {
    return refuse(&refused_thread) ? EAGAIN
                                   : __real_pthread_create(thread, attributes, start, argument);
}

size_t check_failing_allocations(const char *name, scenario run) {
    for (size_t n = 0;; n++) {
        dcrf_error error = {DCRF_OK, ""};
        atomic_store(&requests, 0);
        atomic_store(&refused_request, n);
        atomic_store(&refused_memory, false);
        atomic_store(&refused_thread, false);
        atomic_store(&outstanding, 0);
        atomic_store(&active, true);
        const dcrf_status status = run(&error);
        if (release_what_is_kept)
            release_what_is_kept();
        atomic_store(&active, false);

        if (atomic_load(&outstanding) != 0)
            fail_msg("%s: %ld blocks leaked when request %zu failed", name,
                     atomic_load(&outstanding), n);
        if (!atomic_load(&refused_memory) && !atomic_load(&refused_thread)) {
            if (status < 0)
                fail_msg("%s fails by itself: %s", name, error.message);
            return n;
        }
        const dcrf_status expected =
            atomic_load(&refused_thread) ? DCRF_ERROR_THREAD : DCRF_ERROR_MEMORY;
        if (status != expected || error.status != expected || error.message[0] == 0)
            fail_msg("%s: request %zu failed; status %d, error %d \"%s\", expected %d", name, n,
                     (int)status, (int)error.status, error.message, (int)expected);
    }
}
