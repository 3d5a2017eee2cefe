/* Maps of one whole number a pixel (labels, regions): a picture with one channel, a .npy, or a
 * NIfTI volume. */
#ifndef DCRF_CLI_IO_LABEL_MAP_H
#define DCRF_CLI_IO_LABEL_MAP_H

#include "io/image.h"

#include <stdint.h>

/* What a map of a video, which is a folder of maps, has in frames without one. */
#define MAP_MISSING INT32_MIN

/* Is this a map of the image's size, as far as its header tells? For use before anything is
 * decoded. Volumes and pipes are not looked at. */
bool label_map_check(const char *path, const cli_image *image, cli_problem *problem);

/* Read a map of the image's size, in its order; *numbers is to be freed. */
bool label_map_read(const char *path, const cli_image *image, int32_t **numbers,
                    cli_problem *problem);

/* The same, where frames may be missing and a mask that its format has rounded (a JPEG) will do as
 * well. */
bool label_map_read_mask(const char *path, const cli_image *image, int32_t **numbers,
                         bool *is_rounded, cli_problem *problem);

/* The same without masks, where a map in colours will do as well: then a number is red * 65536 +
 * green * 256 + blue. */
bool label_map_read_colours(const char *path, const cli_image *image, int32_t **numbers,
                            bool *are_colours, cli_problem *problem);

/* Masks have 0 where nothing is and 255 where something is. Is this one, with no other number and
 * with both? */
bool map_is_mask(const int32_t *numbers, size_t count);

/* Make the 255 of a mask a 1. */
void map_number_mask(int32_t *numbers, size_t count);

#endif
