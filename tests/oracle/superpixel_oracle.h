/* Superpixels by their definitions: plain loops over all pixels, no windows, no vectors, no trees.
 * Only the colour conversion is the library's; it has its own test. */
#ifndef DCRF_TESTS_SUPERPIXEL_ORACLE_H
#define DCRF_TESTS_SUPERPIXEL_ORACLE_H

#include "superpixel/method.h"

/* One per pixel; free it. */
struct dcrf_mode *oracle_modes(const struct dcrf_colours *luv, float spatial, float range);

/* Fill `regions`, numbered as the library does, and return their number. Small regions are not
 * joined yet. */
size_t oracle_fuse(const struct dcrf_mode *modes, size_t width, size_t height, float spatial,
                   float range, int32_t *regions);
size_t oracle_slic(const struct dcrf_colours *lab, const double step[3], double size_px,
                   double compactness, size_t iterations, int32_t *regions);

/* Join small regions; returns the number of remaining regions. */
size_t oracle_join(const struct dcrf_colours *colours, size_t min_region_px, int32_t *regions);

/* Checks that the pixels of every region are connected through their sides and that regions are
 * numbered from 0 in the order of their first pixels. Returns the number of regions, or 0 on
 * failure. */
size_t oracle_check_regions(const int32_t *regions, const size_t size[3]);

#endif
