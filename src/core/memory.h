/* Memory: aligned, with the size computed without overflow. */
#ifndef DCRF_CORE_MEMORY_H
#define DCRF_CORE_MEMORY_H

#include <dcrf/workspace.h>
#include <stdbool.h>
#include <stddef.h>

/* The size of a cache line; also of the widest vector. */
#define DCRF_ALIGNMENT 64

/* *product = a * b, or false on overflow. */
bool dcrf_multiply(size_t a, size_t b, size_t *product);

/* `bytes` rounded up to a multiple of the alignment. */
size_t dcrf_align(size_t bytes);

/* count elements of `bytes` bytes, aligned, uninitialized (dcrf_allocate) or zero
 * (dcrf_allocate_zero). NULL on overflow or when out of memory. A count of zero gives a pointer
 * that can be freed. */
void *dcrf_allocate(size_t count, size_t bytes);
void *dcrf_allocate_zero(size_t count, size_t bytes);

/* Free memory from dcrf_allocate; NULL is a no-op. Large arrays are kept for later allocations (see
 * memory.c) until dcrf_drop_kept_memory. */
void dcrf_release(void *memory);
void dcrf_drop_kept_memory(void);

#endif
