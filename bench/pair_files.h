/* The files of pair-steps and pair-expansion: values of four bytes, in one folder. */
#ifndef DCRF_BENCH_PAIR_FILES_H
#define DCRF_BENCH_PAIR_FILES_H

#include <stddef.h>

/* These end the program if they fail. */
void *pair_require(void *memory);
void *pair_read(const char *folder, const char *name, size_t *count);
void pair_write(const char *folder, const char *name, const void *values, size_t count);

#endif
