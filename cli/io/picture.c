#include "io/picture.h"

#include "io/picture_formats.h"

#include <stdlib.h>

static const struct {
    bool (*recognize)(const uint8_t *data, size_t size);
    picture_decoder *decode;
} formats[] = {
    {png_recognize, png_decode},
    {jpeg_recognize, jpeg_decode},
    {pnm_recognize, pnm_decode},
    {tiff_recognize, tiff_decode},
};
#define FORMATS (sizeof formats / sizeof formats[0])

bool picture_recognize(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].recognize(data, size))
            return true;
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
