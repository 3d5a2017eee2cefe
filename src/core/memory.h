/* Memory: aligned, with the size computed without overflow. */
#ifndef DCRF_CORE_MEMORY_H
#define DCRF_CORE_MEMORY_H

#include <dcrf/workspace.h>
#include <stdbool.h>
#include <stddef.h>

/* A cache line; also the widest vector. */
#define DCRF_ALIGNMENT 64

/* *product = a * b, or false when it does not fit. */
bool dcrf_multiply(size_t a, size_t b, size_t *product);

/* `bytes` rounded up to a multiple of the alignment. */
size_t dcrf_align(size_t bytes);

/* count elements of `bytes` bytes, aligned, not initialized (dcrf_allocate) or zero
 * (dcrf_allocate_zero). NULL when the size overflows or memory is out. A count of zero gives a
 * pointer that can be freed. */
void *dcrf_allocate(size_t count, size_t bytes);
void *dcrf_allocate_zero(size_t count, size_t bytes);

/* Free what dcrf_allocate gave; NULL is fine. Large arrays are kept for the next that ask (see
 * memory.c) until dcrf_trim_memory (dcrf/workspace.h). */
void dcrf_release(void *memory);

#endif
