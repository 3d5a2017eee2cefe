/* Files in memory, for readers that take a file name. */
#ifndef DCRF_TESTS_FUZZ_MEMORY_FILE_H
#define DCRF_TESTS_FUZZ_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

#define MEMORY_FILES 2

/* Stores the bytes in file `number` and returns its name; NULL if the system has no such files. */
const char *memory_file(size_t number, const uint8_t *data, size_t size);

#endif
