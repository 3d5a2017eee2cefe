/* PNG pictures, through libpng. */
#ifndef DCRF_CLI_IO_PNG_FORMAT_H
#define DCRF_CLI_IO_PNG_FORMAT_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Does this output want to be a PNG? */
bool is_png_name(const char *path);

bool png_recognize(const uint8_t *data, size_t size);

/* A decoded picture: 16 bits a sample, whatever the file has. */
typedef struct png_pixels {
    size_t width;
    size_t height;
    size_t channels;   /* 3 in colour, 1 for numbers */
    size_t bit_depth;  /* of the samples below: 8 or 16 */
    uint16_t *samples; /* rows from the top, channels of a pixel next to each other */
} png_pixels;

typedef enum png_purpose {
    PNG_AS_COLOURS, /* palettes looked up, grey repeated in three channels, alpha dropped */
    PNG_AS_NUMBERS  /* grey values and palette indices as they stand; colour is refused */
} png_purpose;

/* Decode a file in memory; `file` is for messages. */
bool png_pixels_decode(const uint8_t *data, size_t size, png_purpose purpose, const char *file,
                       png_pixels *pixels, cli_problem *problem);
void png_pixels_free(png_pixels *pixels);

/* Write samples, channels of a pixel next to each other: grey (labels) with 1 channel, RGB with 3;
 * of 8 bits, or of 16 where a sample is above 255. Errors of the stream itself show up when it is
 * closed. */
bool png_write_samples(FILE *stream, const char *file, const uint16_t *samples, size_t width,
                       size_t height, size_t channels, cli_problem *problem);

#endif
