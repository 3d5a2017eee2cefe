#include "io/picture.h"

#include "io/picture_formats.h"

#include <stdlib.h>

static const struct {
    bool (*recognize)(const uint8_t *data, size_t size);
    picture_decoder *decode;
    bool keeps_numbers;
} formats[] = {
    {png_recognize, png_decode, true},   {jpeg_recognize, jpeg_decode, false},
    {pnm_recognize, pnm_decode, true},   {tiff_recognize, tiff_decode, true},
    {webp_recognize, webp_decode, true}, {bmp_recognize, bmp_decode, true},
};
/* A photograph of fewer bytes is none: these are what deflate reaches on bytes that are all alike.
 * Small pictures may be of one colour. */
#define PIXELS_PER_BYTE_MAX 1040
#define PIXELS_ALWAYS ((size_t)4 << 20)

#define FORMATS (sizeof formats / sizeof formats[0])

bool picture_recognize(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].recognize(data, size))
            return true;
    return false;
}

bool picture_keeps_numbers(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].recognize(data, size))
            return formats[i].keeps_numbers;
    return false;
}

bool picture_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                    picture *decoded, cli_problem *problem) {
    *decoded = (picture){0};
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].recognize(data, size))
            return formats[i].decode(data, size, purpose, file, decoded, problem);
    return bad_input(problem, file, "is not a picture; " PICTURE_FORMATS_TEXT " can be read");
}

void picture_free(picture *decoded) {
    free(decoded->samples);
    *decoded = (picture){0};
}

const char *picture_refusal(size_t width, size_t height, size_t file_bytes,
                            picture_purpose purpose) {
    if (height > PICTURE_PIXELS_MAX / width)
        return PICTURE_TOO_LARGE;
    /* Maps are measured, and compared with their image, before they are decoded. */
    const bool unchecked = purpose == PICTURE_AS_COLOURS && width * height > PIXELS_ALWAYS;
    return unchecked && (width * height - PIXELS_ALWAYS) / PIXELS_PER_BYTE_MAX > file_bytes
               ? PICTURE_TOO_SMALL_A_FILE
               : NULL;
}

size_t picture_channels(picture_purpose purpose, bool one_channel) {
    return purpose == PICTURE_AS_COLOURS || (purpose == PICTURE_AS_IS && !one_channel) ? 3 : 1;
}

bool picture_allocate(picture *made, size_t width, size_t height, size_t channels) {
    /* Below 2^31 pixels, 3 channels and 2 bytes: no overflow on 64 bits; calloc checks the rest. */
    made->width = width;
    made->height = height;
    made->channels = channels;
    made->samples = calloc(height, width * channels * sizeof *made->samples);
    return made->samples != NULL;
}
