/* The picture formats, and what their decoders share. They decode a picture as stored, for
 * PICTURE_AS_COLOURS, PICTURE_AS_IS or PICTURE_MEASURED; picture_decode does the rest. */
#ifndef DCRF_CLI_IO_PICTURE_FORMATS_H
#define DCRF_CLI_IO_PICTURE_FORMATS_H

#include "io/picture.h"

bool png_recognize(const uint8_t *data, size_t size);
bool jpeg_recognize(const uint8_t *data, size_t size);
bool pnm_recognize(const uint8_t *data, size_t size);
bool tiff_recognize(const uint8_t *data, size_t size);
bool bmp_recognize(const uint8_t *data, size_t size);
bool webp_recognize(const uint8_t *data, size_t size);

picture_decoder png_decode;
picture_decoder jpeg_decode;
picture_decoder pnm_decode;
picture_decoder tiff_decode;
picture_decoder bmp_decode;
picture_decoder webp_decode;

/* Pictures with more pixels than the operators can index are refused before memory is allocated. */
#define PICTURE_PIXELS_MAX ((size_t)INT32_MAX)
#define PICTURE_TOO_LARGE "has more than 2^31 pixels"
/* So are pictures that a file of that size cannot hold: each decoder knows its maximum
 * compression ratio. The slack is for headers. */
#define PICTURE_SLACK_BYTES 4096
#define PICTURE_TOO_SMALL_A_FILE "announces more pixels than so small a file can hold"

#define PICTURE_ROUNDS_NUMBERS ", which does not keep numbers as they were; save it as a PNG"

/* Why a picture of this size is refused before memory is allocated; NULL: it is not. */
const char *picture_refusal(size_t width, size_t height, size_t file_bytes,
                            picture_purpose purpose);

/* How many channels a decoder returns for a file that has one, or more. */
size_t picture_channels(picture_purpose purpose, bool one_channel);

/* Reset a picture before decoding, except for its sink. */
void picture_begin(picture *decoded);

/* Is there memory for the samples, for what they are converted to, and for `working_bytes` of
 * the decoder's own? For use before any is allocated; a failure is recorded, and picture_decode
 * reports it. */
bool picture_has_room(picture *made, size_t width, size_t height, size_t channels, size_t band_rows,
                      size_t working_bytes);

/* Allocate the samples, zeroed; false if out of memory. The size must have been checked, and
 * `largest` set. The decoder produces `band_rows` rows together. */
bool picture_allocate(picture *made, size_t width, size_t height, size_t channels,
                      size_t band_rows);

/* Where a row goes, and a report that all rows before `end` are complete; false: stop. A decoder
 * goes from top to bottom, band by band. */
uint16_t *picture_row(const picture *decoded, size_t row);
bool picture_rows_done(picture *decoded, size_t end);

#define PICTURE_STOPPED "was not wanted any more"

#endif
