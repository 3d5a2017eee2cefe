/* A picture decoded into a temporary file, so that windows of it can be read in any order. */
#ifndef DCRF_CLI_IO_SPOOL_H
#define DCRF_CLI_IO_SPOOL_H

#include "io/sample_range.h"

#include <stdio.h>

/* Samples in rows from the top, the channels of a pixel next to each other, with one byte each,
 * or two in little-endian order. */
typedef struct spooled {
    int descriptor; /* of an unnamed file; the caller closes it */
    size_t width;
    size_t height;
    size_t channels;
    size_t sample_bytes;
    sample_scale scale; /* of colours */
} spooled;

/* A file that vanishes when it is closed, however the program ends; NULL with errno set. */
FILE *spool_open(const char *folder_of);

/* Write floats to it, or report why not; `file` is their source. */
bool spool_floats(FILE *stream, const float *floats, size_t count, const char *file,
                  cli_problem *problem);

/* The descriptor of what was written, which the caller closes; -1: failed. The stream is closed. */
int spool_close(FILE *stream, const char *file, cli_problem *problem);

/* Decode a picture in memory row by row. The file is beside the output `folder_of`, or in
 * $TMPDIR or /tmp if that is NULL or not a file. */
bool spool_picture(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                   const char *folder_of, spooled *stored, cli_problem *problem);

#endif
