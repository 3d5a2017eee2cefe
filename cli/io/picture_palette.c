#include "io/picture_palette.h"

#include "io/picture_formats.h"
#include "io/tiff_memory.h"

#include <string.h>

static size_t number_at(const uint8_t *at) {
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

/* The PLTE chunk; the header is 25 bytes long. */
static size_t palette_of_png(const uint8_t *data, size_t size,
                             uint8_t colours[PICTURE_PALETTE_MAX][3]) {
    const uint8_t indexed = 3;
    if (size < 33 || data[25] != indexed)
        return 0;
    for (size_t at = 8; at + 12 <= size;) {
        const size_t length = number_at(data + at);
        if (length > size - at - 12)
            return 0;
        if (memcmp(data + at + 4, "PLTE", 4) == 0) {
            const size_t count =
                length / 3 < PICTURE_PALETTE_MAX ? length / 3 : PICTURE_PALETTE_MAX;
            memcpy(colours, data + at + 8, 3 * count);
            return count;
        }
        at += 12 + length;
    }
    return 0;
}

static size_t palette_of_tiff(const uint8_t *data, size_t size,
                              uint8_t colours[PICTURE_PALETTE_MAX][3]) {
    tiff_memory memory = {.data = data, .size = size};
    uint16_t bits = 0, photometric = 0, *channels[3];
    size_t count = 0, largest = 0;
    TIFF *tiff = tiff_memory_open(&memory);
    if (!tiff)
        return 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    if (bits <= 8 && TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric) &&
        photometric == PHOTOMETRIC_PALETTE &&
        TIFFGetField(tiff, TIFFTAG_COLORMAP, &channels[0], &channels[1], &channels[2]))
        count = (size_t)1 << bits;
    /* Some writers fill it with 8-bit values. */
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < 3; c++)
            largest = channels[c][i] > largest ? channels[c][i] : largest;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < 3; c++)
            colours[i][c] = (uint8_t)(largest > UINT8_MAX ? channels[c][i] >> 8 : channels[c][i]);
    TIFFClose(tiff);
    return count;
}

size_t picture_palette(const uint8_t *data, size_t size, uint8_t colours[PICTURE_PALETTE_MAX][3]) {
    const size_t count = png_recognize(data, size)    ? palette_of_png(data, size, colours)
                         : tiff_recognize(data, size) ? palette_of_tiff(data, size, colours)
                                                      : 0;
    for (size_t i = 0; i < count; i++)
        if (colours[i][0] != colours[i][1] || colours[i][1] != colours[i][2])
            return count;
    return 0;
}
