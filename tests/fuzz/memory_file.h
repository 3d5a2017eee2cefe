/* Files that lie in memory: for readers that take a name. */
#ifndef DCRF_TESTS_FUZZ_MEMORY_FILE_H
#define DCRF_TESTS_FUZZ_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

#define MEMORY_FILES 2

/* The name of the file of that number, which then holds these bytes; NULL where the system has no
 * such files. */
const char *memory_file(size_t number, const uint8_t *data, size_t size);

#endif
