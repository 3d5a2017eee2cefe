/* PNG pictures, through libpng: writing. Reading is among the picture_formats. */
#ifndef DCRF_CLI_IO_PNG_FORMAT_H
#define DCRF_CLI_IO_PNG_FORMAT_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Does this output want to be a PNG? */
bool is_png_name(const char *path);

/* From now on, are pictures written fast rather than small? For where no time is left; the pixels
 * are the same. */
void png_write_fast(bool is_wanted);

/* ---- row by row ----------------------------------------------------------------------------- */

typedef struct png_layout {
    size_t width;
    size_t height;
    size_t channels;             /* 1: grey, or labels; 3: RGB */
    bool wide;                   /* 16 bits a sample, not 8 */
    const uint8_t (*palette)[3]; /* 256 colours of an indexed picture of 8 bits; NULL: none */
} png_layout;

typedef struct png_writer png_writer;

/* Write the header, rows from the top, and after the last of them the end. The stream and `file`,
 * which is for messages, must outlive the writer. */
bool png_writer_new(png_writer **writer, FILE *stream, const char *file, const png_layout *layout,
                    cli_problem *problem);
bool png_writer_rows(png_writer *writer, const uint16_t *samples, size_t rows,
                     cli_problem *problem);
bool png_writer_end(png_writer *writer, cli_problem *problem);
void png_writer_free(png_writer **writer);

/* ---- whole pictures ------------------------------------------------------------------------- */

/* Write samples, channels of a pixel next to each other: grey (labels) with 1 channel, RGB with 3;
 * of 8 bits, or of 16 where a sample is above 255. Errors of the stream itself show up when it is
 * closed. */
bool png_write_samples(FILE *stream, const char *file, const uint16_t *samples, size_t width,
                       size_t height, size_t channels, cli_problem *problem);

/* Write labels as indices into a palette, so that programs read numbers and people see colours.
 * Labels above 255 make it a grey picture of 16 bits. */
bool png_write_labels(FILE *stream, const char *file, const uint16_t *labels, size_t width,
                      size_t height, const uint8_t palette[256][3], cli_problem *problem);

#endif
