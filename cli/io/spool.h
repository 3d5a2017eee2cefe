/* A picture decoded into a temporary file, so that windows of it can be read in any order. */
#ifndef DCRF_CLI_IO_SPOOL_H
#define DCRF_CLI_IO_SPOOL_H

#include "io/sample_range.h"

#include <stdio.h>

/* Samples in rows from the top, the channels of a pixel next to each other, of one byte each, or of
 * two with the low one first. */
typedef struct spooled {
    int descriptor; /* of a file without a name, to be closed */
    size_t width;
    size_t height;
    size_t channels;
    size_t sample_bytes;
    sample_scale scale; /* of colours */
} spooled;

/* A file that is gone when it is closed, however the program ends; NULL with errno set. */
FILE *spool_open(const char *folder_of);

/* Write floats to it, or say why not; `file` is what they come from. */
bool spool_floats(FILE *stream, const float *floats, size_t count, const char *file,
                  cli_problem *problem);

/* The descriptor of what was written, to be closed; -1: it failed. The stream is closed. */
int spool_close(FILE *stream, const char *file, cli_problem *problem);

/* Decode a picture in memory row by row. The file lies beside the output `folder_of`, or where that
 * is NULL or no file in $TMPDIR or /tmp. */
bool spool_picture(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                   const char *folder_of, spooled *stored, cli_problem *problem);

#endif
