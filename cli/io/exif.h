/* The EXIF orientation of photographs in JPEG, PNG, WebP and TIFF files. */
#ifndef DCRF_CLI_IO_EXIF_H
#define DCRF_CLI_IO_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIF_UPRIGHT 1

/* 1 to 8, as in EXIF; 1 if the file does not say, or the value is invalid. A GeoTIFF counts as
 * upright: its georeference decides. */
int exif_orientation(const uint8_t *data, size_t size);

/* Do rows of the file become columns of the upright picture? */
bool exif_swaps_axes(int orientation);

/* What makes it upright: "by 90 degrees clockwise". */
const char *exif_turn_text(int orientation);

/* Turn a stored picture of `width` x `height` pixels with `channels` samples each upright. */
void exif_turn(int orientation, const uint16_t *stored, size_t width, size_t height,
               size_t channels, uint16_t *upright);

#endif
