/* Pictures: decoded PNG, JPEG, PNM, TIFF, BMP and WebP files, told apart by how they begin. */
#ifndef DCRF_CLI_IO_PICTURE_H
#define DCRF_CLI_IO_PICTURE_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

typedef enum picture_purpose {
    PICTURE_AS_COLOURS, /* palettes looked up, grey repeated in three channels, alpha dropped */
    PICTURE_AS_NUMBERS, /* grey values and palette indices as they stand; colours are refused
                         * unless all of them are grey */
    PICTURE_AS_MASK,    /* the same, also of formats that round numbers */
    PICTURE_AS_IS,      /* numbers where the file has one channel, else colours */
    PICTURE_MEASURED    /* width and height alone, from the header; no samples */
} picture_purpose;

typedef struct picture picture;

/* Takes the rows of a picture as they are decoded, from the top, `rows` at a time; false stops the
 * decoder. */
typedef struct picture_sink {
    bool (*take)(void *user, const picture *described, const uint16_t *samples, size_t rows);
    void *user;
    size_t band_bytes_max; /* of samples that are decoded together */
} picture_sink;

/* A decoded picture, upright: 16 bits a sample, whatever the file has. */
struct picture {
    size_t width;
    size_t height;
    size_t channels;   /* 3 in colour, 1 for numbers */
    uint16_t largest;  /* the sample that means full brightness: 255, 65535, or as a PNM says */
    uint16_t *samples; /* rows from the top, channels of a pixel next to each other */
    /* Where the file's numbers are not its samples: those of a sample of 0 and of `largest`. */
    bool is_measured;
    double low, high;
    bool has_nodata; /* pixels all of whose channels have this sample have no data */
    uint16_t nodata;
    size_t bands;             /* channels of the file; 0: no more than are delivered */
    int orientation;          /* as it was stored, EXIF_UPRIGHT or another (io/exif.h) */
    const picture_sink *sink; /* NULL: all rows stay in `samples` */
    size_t band_rows;         /* rows in `samples`; without a sink all */
    bool is_band_too_large;   /* for the sink */
    size_t bytes_wanted;      /* more than there are; 0: there is room */
};

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

/* The same row by row. `described` gets all but samples. What is not made of rows (an
 * interlaced PNG, WebP, a picture that lies on its side) comes in one piece, and are refused where
 * the sink has no room for it. When the sink stops the decoder, this fails and leaves the problem
 * to the sink. */
bool picture_decode_rows(const uint8_t *data, size_t size, picture_purpose purpose,
                         const char *file, const picture_sink *sink, picture *described,
                         cli_problem *problem);

#define PICTURE_FORMATS_TEXT "PNG, JPEG, PNM, TIFF, BMP or WebP"

#endif
