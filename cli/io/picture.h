/* Pictures: decoded PNG, JPEG, PNM, TIFF, BMP and WebP files, told apart by how they begin. */
#ifndef DCRF_CLI_IO_PICTURE_H
#define DCRF_CLI_IO_PICTURE_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

typedef enum picture_purpose {
    PICTURE_AS_COLOURS, /* palettes looked up, grey repeated in three channels, alpha dropped */
    PICTURE_AS_NUMBERS, /* grey values and palette indices as they stand; colour is refused */
    PICTURE_AS_IS,      /* numbers where the file has one channel, else colours */
    PICTURE_MEASURED    /* width and height alone, from the header; no samples */
} picture_purpose;

/* A decoded picture: 16 bits a sample, whatever the file has. */
typedef struct picture {
    size_t width;
    size_t height;
    size_t channels;   /* 3 in colour, 1 for numbers */
    uint16_t largest;  /* the sample that means full brightness: 255, 65535, or as a PNM says */
    uint16_t *samples; /* rows from the top, channels of a pixel next to each other */
} picture;

/* Decode a file in memory; `file` is for messages. On failure nothing is left to free; freeing is
 * allowed all the same. */
typedef bool picture_decoder(const uint8_t *data, size_t size, picture_purpose purpose,
                             const char *file, picture *decoded, cli_problem *problem);

/* Does the file begin like one that can be decoded? */
bool picture_recognize(const uint8_t *data, size_t size);

/* Are the samples of this file as they were saved? JPEG rounds them. */
bool picture_keeps_numbers(const uint8_t *data, size_t size);

/* Decode a file of any of the formats. */
picture_decoder picture_decode;
void picture_free(picture *decoded);

#define PICTURE_FORMATS_TEXT "PNG, JPEG, PNM, TIFF, BMP or WebP"

#endif
