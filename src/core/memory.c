#include "core/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool dcrf_multiply(size_t a, size_t b, size_t *product) {
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *product = a * b;
    return true;
}

size_t dcrf_align(size_t bytes) {
    return (bytes + DCRF_ALIGNMENT - 1) / DCRF_ALIGNMENT * DCRF_ALIGNMENT;
}

void *dcrf_allocate(size_t count, size_t bytes) {
    size_t size;
    /* PTRDIFF_MAX: pointers into the array must be subtractable. */
    if (!dcrf_multiply(count, bytes, &size) || size > (size_t)PTRDIFF_MAX - DCRF_ALIGNMENT)
        return NULL;
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
