/* Writing PNG pictures through libpng. Reading is in png_read.c (see picture_formats.h). */
#ifndef DCRF_CLI_IO_PNG_FORMAT_H
#define DCRF_CLI_IO_PNG_FORMAT_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Does the name of this output end like a PNG's? */
bool is_png_name(const char *path);

/* ---- row by row ----------------------------------------------------------------------------- */

typedef struct png_layout {
    size_t width;
    size_t height;
    size_t channels;             /* 1: grey, or labels; 3: RGB */
    bool wide;                   /* 16 bits per sample, not 8 */
    const uint8_t (*palette)[3]; /* 256 colours of an 8-bit indexed picture; NULL: none */
    bool is_fast; /* compress fast rather than well, when time is short; the pixels are the same */
} png_layout;

typedef struct png_writer png_writer;

/* Write the header, rows from the top, and after the last one the end. The stream and `file`,
 * which is for messages, must outlive the writer. */
bool png_writer_new(png_writer **writer, FILE *stream, const char *file, const png_layout *layout,
                    cli_problem *problem);
bool png_writer_rows(png_writer *writer, const uint16_t *samples, size_t rows,
                     cli_problem *problem);
bool png_writer_end(png_writer *writer, cli_problem *problem);
void png_writer_free(png_writer **writer);

/* ---- whole pictures ------------------------------------------------------------------------- */

/* Write samples, the channels of a pixel next to each other. A sample above 255 makes them
 * `wide`, and a picture with a palette grey. Errors of the stream itself show up when it is
 * closed. */
bool png_write(FILE *stream, const char *file, const uint16_t *samples, png_layout layout,
               cli_problem *problem);

#endif
