/* The colours that an indexed picture assigns to its numbers. */
#ifndef DCRF_CLI_IO_PICTURE_PALETTE_H
#define DCRF_CLI_IO_PICTURE_PALETTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PICTURE_PALETTE_MAX 256

/* For a PNG or TIFF in memory; returns their number. 0: the picture has no palette, or only
 * greys, which are not label colours. */
size_t picture_palette(const uint8_t *data, size_t size, uint8_t colours[PICTURE_PALETTE_MAX][3]);

#endif
