/* Compressed files (gzip), through zlib. */
#ifndef DCRF_CLI_IO_GZIP_H
#define DCRF_CLI_IO_GZIP_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

bool gzip_recognize(const uint8_t *data, size_t size);

/* Inflate the first bytes of a file, at most `capacity`. */
bool gzip_inflate_start(const uint8_t *data, size_t size, uint8_t *out, size_t capacity,
                        size_t *produced, const char *file, cli_problem *problem);

/* Inflate the first `wanted` bytes, all of which must be present; the rest of the file, one or
 * more members, is inflated too, to verify its checksum, and discarded. */
bool gzip_inflate(const uint8_t *data, size_t size, uint8_t *out, size_t wanted, const char *file,
                  cli_problem *problem);

/* Write parts, at least one and none empty, as one compressed file; the output is deterministic.
 * Errors of the stream show up when it is closed. */
typedef struct gzip_part {
    const void *data;
    size_t bytes;
} gzip_part;

bool gzip_write(FILE *stream, const char *file, const gzip_part *parts, size_t count,
                cli_problem *problem);

#endif
