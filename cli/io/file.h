/* Input files, read whole. */
#ifndef DCRF_CLI_IO_FILE_H
#define DCRF_CLI_IO_FILE_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

typedef struct file_bytes {
    uint8_t *data;
    size_t size;
} file_bytes;

/* Read a file or a pipe. Devices are refused: they need not end. */
bool file_read(const char *path, file_bytes *bytes, cli_problem *problem);
void file_free(file_bytes *bytes);

#endif
