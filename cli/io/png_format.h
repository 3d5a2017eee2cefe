/* PNG pictures, through libpng: writing. Reading is among the picture_formats. */
#ifndef DCRF_CLI_IO_PNG_FORMAT_H
#define DCRF_CLI_IO_PNG_FORMAT_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Does this output want to be a PNG? */
bool is_png_name(const char *path);

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
