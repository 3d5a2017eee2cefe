/* Photographs for the benchmarks. */
#ifndef DCRF_BENCH_PHOTOGRAPH_H
#define DCRF_BENCH_PHOTOGRAPH_H

#include <stddef.h>
#include <stdint.h>

/* width x height x 3, interleaved. NULL on failure, after printing the reason. */
uint8_t *photograph_read(const char *path, size_t *width, size_t *height);

/* The path without its folders. */
const char *photograph_name(const char *path);

#endif
