#define _DEFAULT_SOURCE
#include "core/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifndef __wasm__
#include <sys/mman.h>
#endif

bool dcrf_multiply(size_t a, size_t b, size_t *product) {
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *product = a * b;
    return true;
}

size_t dcrf_align(size_t bytes) {
    return (bytes + DCRF_ALIGNMENT - 1) / DCRF_ALIGNMENT * DCRF_ALIGNMENT;
}

#ifdef MADV_HUGEPAGE
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define HUGE_FROM_BYTES (HUGE_PAGE_BYTES / 2)

/* Large arrays ask for huge pages: fewer page faults when they are first written, fewer misses of
 * the address cache when they are gathered from. A wish; nothing depends on it. */
static void *allocate_huge(size_t bytes) {
    const size_t size = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    void *memory = aligned_alloc(HUGE_PAGE_BYTES, size);
    if (memory)
        madvise(memory, size, MADV_HUGEPAGE);
    return memory;
}
#endif

void *dcrf_allocate(size_t count, size_t bytes) {
    size_t size;
    /* PTRDIFF_MAX: pointers into the array must be subtractable. */
    if (!dcrf_multiply(count, bytes, &size) || size > (size_t)PTRDIFF_MAX - DCRF_ALIGNMENT)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (size >= HUGE_FROM_BYTES)
        return allocate_huge(size);
#endif
    size = dcrf_align(size);
    return aligned_alloc(DCRF_ALIGNMENT, size ? size : DCRF_ALIGNMENT);
}

void *dcrf_allocate_zero(size_t count, size_t bytes) {
    void *memory = dcrf_allocate(count, bytes);
    if (memory)
        memset(memory, 0, count * bytes);
    return memory;
}

void dcrf_release(void *memory) {
    free(memory);
}
