/* Input files, read whole or mapped. */
#ifndef DCRF_CLI_IO_FILE_H
#define DCRF_CLI_IO_FILE_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

typedef struct file_bytes {
    uint8_t *data; /* read-only */
    size_t size;
    bool mapped;
} file_bytes;

/* Can this file be opened twice: is it neither a pipe nor a device nor a folder? A missing file
 * counts as plain: opening it gives a better message. */
bool file_is_plain(const char *path);

/* Read a file, a pipe or standard input. Devices are refused: they may be endless. */
bool file_read(const char *path, file_bytes *bytes, cli_problem *problem);

/* The same, but large regular files are mapped instead of copied. If another program truncates a
 * mapped file, this one ends (file_explain_cut); if it writes to the file, the data change. So
 * this is for readers that check the size once and can cope with any elements. */
bool file_map(const char *path, file_bytes *bytes, cli_problem *problem);

/* From now on, truncation of a mapped file ends the program with a message and the status for
 * bad input instead of a signal. */
void file_explain_cut(void);

void file_free(file_bytes *bytes);

#endif
