/* Hashes of contents: 128 bits of XXH3, to distinguish inputs; not cryptographic. */
#ifndef DCRF_CLI_DATASET_HASH_H
#define DCRF_CLI_DATASET_HASH_H

#include "problem.h"

#include <stddef.h>

#define HASH_TEXT_BYTES 33

typedef struct content_hash {
    char text[HASH_TEXT_BYTES]; /* 32 hexadecimal digits */
} content_hash;

content_hash hash_bytes(const void *data, size_t size);
bool hash_file(const char *path, content_hash *hash, cli_problem *problem);

#endif
