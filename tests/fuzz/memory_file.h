/* A file that lies in memory: for readers that take a name. */
#ifndef DCRF_TESTS_FUZZ_MEMORY_FILE_H
#define DCRF_TESTS_FUZZ_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The name of the one such file of the process, which then holds these bytes; NULL where the system
 * has none. */
const char *memory_file(const uint8_t *data, size_t size);

#endif
