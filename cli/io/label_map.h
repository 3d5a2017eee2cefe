/* Maps of one integer per pixel (labels, regions): a single-channel picture, a .npy, or a NIfTI
 * volume. */
#ifndef DCRF_CLI_IO_LABEL_MAP_H
#define DCRF_CLI_IO_LABEL_MAP_H

#include "io/image.h"

#include <stdint.h>

/* The number of pixels in video frames for which a folder of maps has none. */
#define MAP_MISSING INT32_MIN

/* Does this map have the image's size, as far as its header shows? For use before anything is
 * decoded. Volumes and pipes are not checked. */
bool label_map_check(const char *path, const cli_image *image, cli_problem *problem);

/* Read a map of the image's size, in the image's pixel order; the caller frees *numbers. */
bool label_map_read(const char *path, const cli_image *image, int32_t **numbers,
                    cli_problem *problem);

/* The same, but frames may be missing, and masks rounded by their format (JPEG) are accepted. */
bool label_map_read_mask(const char *path, const cli_image *image, int32_t **numbers,
                         bool *is_rounded, cli_problem *problem);

/* The same without masks, but maps in colour are accepted: then a number is red * 65536 + green
 * * 256 + blue. */
bool label_map_read_colours(const char *path, const cli_image *image, int32_t **numbers,
                            bool *are_colours, cli_problem *problem);

/* Is this a mask: only the numbers 0 (background) and 255 (foreground), and both of them? */
bool map_is_mask(const int32_t *numbers, size_t count);

/* Replace the 255 of a mask by 1. */
void map_number_mask(int32_t *numbers, size_t count);

#endif
