/* Regions: the connected components of an image, and joining small ones. */
#ifndef DCRF_SUPERPIXEL_REGIONS_H
#define DCRF_SUPERPIXEL_REGIONS_H

#include "core/workspace.h"
#include "model/colour.h"

#include <stdint.h>

/* Links of a pixel to its neighbours: bits of one byte per pixel. */
#define DCRF_LINK_RIGHT 1
#define DCRF_LINK_DOWN 2
#define DCRF_LINK_BACK 4 /* to the next slice of a volume */

/* Number the connected components of the links from 0, in the order of their first pixels; returns
 * how many there are. Links must not lead out of the image; only the size of `picture` is used. */
size_t dcrf_regions_from_links(const uint8_t *links, const struct dcrf_colours *picture,
                               int32_t *regions);

/* Join every region of fewer than min_region_px pixels to a neighbour, until there is none or only
 * one region is left; *count is the number of regions, before and after. The smallest region is
 * joined first, to the neighbour with the most similar mean colour; ties go to the region whose
 * first pixel comes first. Regions stay numbered in the order of their first pixels. */
dcrf_status dcrf_regions_join_small(int32_t *regions, size_t *count,
                                    const struct dcrf_colours *colours, size_t min_region_px,
                                    dcrf_workspace *workspace, dcrf_error *error);

/* The interrupted work in messages. */
#define DCRF_FINDING "finding superpixels"

#endif
