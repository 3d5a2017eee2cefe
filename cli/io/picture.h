/* Pictures: decoded PNG, JPEG, PNM, TIFF, BMP and WebP files, recognized by their first bytes. */
#ifndef DCRF_CLI_IO_PICTURE_H
#define DCRF_CLI_IO_PICTURE_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

typedef enum picture_purpose {
    PICTURE_AS_COLOURS, /* palettes resolved, grey replicated to three channels, alpha dropped */
    PICTURE_AS_NUMBERS, /* grey values and palette indices unchanged; colours are refused unless
                         * all of them are grey */
    PICTURE_AS_MASK,    /* the same, also for formats that round numbers */
    PICTURE_AS_IS,      /* numbers if the file has one channel, otherwise colours */
    PICTURE_MEASURED    /* only width and height, from the header; no samples */
} picture_purpose;

typedef struct picture picture;

/* Receives the rows of a picture as they are decoded, from the top, `rows` at a time; returning
 * false stops the decoder. */
typedef struct picture_sink {
    bool (*take)(void *user, const picture *described, const uint16_t *samples, size_t rows);
    void *user;
    size_t band_bytes_max; /* of samples decoded together */
} picture_sink;

/* A decoded picture, upright: 16 bits per sample, whatever the file has. */
struct picture {
    size_t width;
    size_t height;
    size_t channels;   /* 3 in colour, 1 for numbers */
    uint16_t largest;  /* the sample of full brightness: 255, 65535, or as given in a PNM */
    uint16_t *samples; /* rows from the top, channels of a pixel next to each other */
    /* If the file's numbers are not its samples: the numbers for the samples 0 and `largest`. */
    bool is_measured;
    double low, high;
    bool has_nodata; /* pixels whose channels all have this sample have no data */
    uint16_t nodata;
    size_t bands;             /* channels of the file; 0: no more than are returned */
    int orientation;          /* as stored, EXIF_UPRIGHT or another (io/exif.h) */
    const picture_sink *sink; /* NULL: all rows stay in `samples` */
    size_t band_rows;         /* rows in `samples`; without a sink all of them */
    bool is_band_too_large;   /* for the sink */
    size_t bytes_wanted;      /* more than is available; 0: there is room */
};

/* Decode a file in memory; `file` is for messages. On failure there is nothing to free, but
 * freeing is allowed. */
typedef bool picture_decoder(const uint8_t *data, size_t size, picture_purpose purpose,
                             const char *file, picture *decoded, cli_problem *problem);

/* Does the file begin like one that can be decoded? */
bool picture_recognize(const uint8_t *data, size_t size);

/* Does the format keep samples exactly? JPEG rounds them. */
bool picture_keeps_numbers(const uint8_t *data, size_t size);

/* Decode a file in any of the formats. */
picture_decoder picture_decode;
void picture_free(picture *decoded);

/* The same row by row. `described` gets everything except samples. Pictures that cannot be
 * decoded by rows (an interlaced PNG, WebP, a picture that has to be turned) come in one piece,
 * and are refused if the sink has no room for them. When the sink stops the decoder, this fails
 * and leaves the problem to the sink. */
bool picture_decode_rows(const uint8_t *data, size_t size, picture_purpose purpose,
                         const char *file, const picture_sink *sink, picture *described,
                         cli_problem *problem);

#define PICTURE_FORMATS_TEXT "PNG, JPEG, PNM, TIFF, BMP or WebP"

#endif
