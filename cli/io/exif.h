/* Which way up a photograph was taken: the EXIF orientation of JPEG, PNG, WebP and TIFF files. */
#ifndef DCRF_CLI_IO_EXIF_H
#define DCRF_CLI_IO_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIF_UPRIGHT 1

/* 1 to 8, as EXIF numbers them; 1 where the file does not say, or says nonsense. A GeoTIFF lies as
 * its georeference says, whatever else it has. */
int exif_orientation(const uint8_t *data, size_t size);

/* Are rows of the file columns of the upright picture? */
bool exif_swaps_axes(int orientation);

/* What is done to make it upright: "by 90 degrees clockwise". */
const char *exif_turn_text(int orientation);

/* Make rows of `pixels` with `channels` samples each upright, from `width` x `height` as stored. */
void exif_turn(int orientation, const uint16_t *stored, size_t width, size_t height,
               size_t channels, uint16_t *upright);

#endif
