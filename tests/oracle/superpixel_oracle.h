/* Superpixels by their definitions: plain loops over all pixels, no windows, no vectors, no trees.
 * Only the conversion of colours is the library's; it has a test of its own. */
#ifndef DCRF_TESTS_SUPERPIXEL_ORACLE_H
#define DCRF_TESTS_SUPERPIXEL_ORACLE_H

#include "superpixel/method.h"

/* One a pixel, to be freed. */
struct dcrf_mode *oracle_modes(const struct dcrf_colours *luv, float spatial, float range);

/* Fill `regions` as the library numbers them and return how many there are. Small regions are not
 * yet joined. */
size_t oracle_fuse(const struct dcrf_mode *modes, size_t width, size_t height, float spatial,
                   float range, int32_t *regions);
size_t oracle_slic(const struct dcrf_colours *lab, const double step[3], double size_px,
                   double compactness, size_t iterations, int32_t *regions);

/* Join small regions; returns how many are left. */
size_t oracle_join(const struct dcrf_colours *colours, size_t min_region_px, int32_t *regions);

/* Are the pixels of every region connected through their sides, and are regions numbered from 0 in
 * the order of their first pixels? Returns the number of regions, or 0 where not. */
size_t oracle_check_regions(const int32_t *regions, const size_t size[3]);

#endif
