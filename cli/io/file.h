/* Input files, read whole or mapped. */
#ifndef DCRF_CLI_IO_FILE_H
#define DCRF_CLI_IO_FILE_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

typedef struct file_bytes {
    uint8_t *data; /* not to be written to */
    size_t size;
    bool mapped;
} file_bytes;

/* Is this a file that can be opened twice: neither a pipe nor a device nor a folder? A file that is
 * not there counts as plain: opening it says more. */
bool file_is_plain(const char *path);

/* Is this the name of the standard input? */
bool file_is_standard(const char *path);

/* Read a file, a pipe or the standard input. Devices are refused: they need not end. */
bool file_read(const char *path, file_bytes *bytes, cli_problem *problem);

/* The same without a copy where that pays, in large regular files: they are mapped. If another
 * program truncates such a file meanwhile, this one ends (file_explain_cut), and if it writes to
 * the file, what is read changes, so this is for readers that check the size once and can live with
 * any elements. */
bool file_map(const char *path, file_bytes *bytes, cli_problem *problem);

/* From now on, a mapped file that is cut ends the program with a message and the status of bad
 * input, not with a signal. */
void file_explain_cut(void);

void file_free(file_bytes *bytes);

#endif
