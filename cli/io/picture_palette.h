/* The colours that an indexed picture gives its numbers. */
#ifndef DCRF_CLI_IO_PICTURE_PALETTE_H
#define DCRF_CLI_IO_PICTURE_PALETTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PICTURE_PALETTE_MAX 256

/* Of a PNG or TIFF in memory; returns how many there are, 0: the picture has no palette, or one of
 * greys, which names no colours. */
size_t picture_palette(const uint8_t *data, size_t size, uint8_t colours[PICTURE_PALETTE_MAX][3]);

#endif
