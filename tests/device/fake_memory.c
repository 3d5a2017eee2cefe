/* The memory of the fake device: everything that the copy of libdcrf in this library allocates
 * (--wrap=dcrf_platform_allocate). It is accessible only while the device is at work: a host that
 * reads device memory crashes. */
#include "fake_backend.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ARENA_BYTES ((size_t)1 << (sizeof(void *) > 4 ? 33 : 28))
#define PAGE_BYTES ((size_t)1 << 16) /* a multiple of the system's page size */

/* A part of the arena. Parts are in address order, and no two adjacent parts are free. */
struct part {
    char *memory;
    size_t bytes;
    bool is_free;
    struct part *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *arena;
static size_t reached; /* high-water mark in bytes from the start of the arena */
static struct part *parts;
static size_t at_work; /* calls in progress, over all threads */

void *__wrap_dcrf_platform_allocate(size_t alignment, size_t bytes);
void __wrap_dcrf_platform_free(void *memory);

static void protect(int protection) {
    if (reached > 0 && mprotect(arena, reached, protection) != 0)
        abort();
}

void fake_enter(void) {
    pthread_mutex_lock(&lock);
    if (at_work++ == 0)
        protect(PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&lock);
}

void fake_leave(void) {
    pthread_mutex_lock(&lock);
    if (--at_work == 0)
        protect(PROT_NONE);
    pthread_mutex_unlock(&lock);
}

static struct part *new_part(char *memory, size_t bytes, struct part *next) {
    struct part *part = malloc(sizeof *part);
    if (part)
        *part = (struct part){memory, bytes, true, next};
    return part;
}

static void reserve(void) {
    void *memory =
        mmap(NULL, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    arena = memory;
    parts = new_part(arena, ARENA_BYTES, NULL);
}

/* The part keeps its first bytes; the rest becomes a free part. */
static bool split(struct part *part, size_t bytes) {
    if (bytes == 0 || bytes == part->bytes)
        return true;
    struct part *rest = new_part(part->memory + bytes, part->bytes - bytes, part->next);
    if (!rest)
        return false;
    part->bytes = bytes;
    part->next = rest;
    return true;
}

static void *take(size_t alignment, size_t bytes) {
    for (struct part *part = parts; part; part = part->next) {
        const size_t before = (alignment - (uintptr_t)part->memory % alignment) % alignment;
        if (!part->is_free || part->bytes < before + bytes)
            continue;
        if (!split(part, before))
            return NULL;
        struct part *taken = before > 0 ? part->next : part;
        if (!split(taken, bytes))
            return NULL;
        taken->is_free = false;
        const size_t end = (size_t)(taken->memory - arena) + bytes;
        if (end > reached) {
            reached = end;
            protect(PROT_READ | PROT_WRITE);
        }
        return taken->memory;
    }
    return NULL;
}

void *__wrap_dcrf_platform_allocate(size_t alignment, size_t bytes) {
    pthread_mutex_lock(&lock);
    if (!arena)
        reserve();
    void *memory = take(alignment > PAGE_BYTES ? alignment : PAGE_BYTES,
                        (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
    pthread_mutex_unlock(&lock);
    return memory;
}

static void join_next(struct part *part) {
    struct part *next = part->next;
    if (!part->is_free || !next || !next->is_free)
        return;
    part->bytes += next->bytes;
    part->next = next->next;
    free(next);
}

void __wrap_dcrf_platform_free(void *memory) {
    struct part *before = NULL;
    pthread_mutex_lock(&lock);
    for (struct part *part = parts; memory && part; before = part, part = part->next)
        if (part->memory == memory) {
            part->is_free = true;
            join_next(part);
            if (before)
                join_next(before);
            break;
        }
    pthread_mutex_unlock(&lock);
}
