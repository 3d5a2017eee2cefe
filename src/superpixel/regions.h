/* Regions: the connected components of a picture, and the joining of small ones. */
#ifndef DCRF_SUPERPIXEL_REGIONS_H
#define DCRF_SUPERPIXEL_REGIONS_H

#include "core/workspace.h"
#include "model/colour.h"

#include <stdint.h>

/* What a pixel is linked to: bits of one byte per pixel. */
#define DCRF_LINK_RIGHT 1
#define DCRF_LINK_DOWN 2
#define DCRF_LINK_BACK 4 /* to the next slice of a volume */

/* Number the components of the graph of links from 0, in the order of their first pixels; returns
 * how many there are. There is no link out of the picture, of which only the size matters. */
size_t dcrf_regions_from_links(const uint8_t *links, const struct dcrf_colours *picture,
                               int32_t *regions);

/* Join every region of fewer than min_region_px pixels to a neighbour, until there is none or only
 * one region is left; *count is how many there are, before and after. The smallest region goes
 * first, to the neighbour whose mean colour is nearest to its own; of equals, the one whose first
 * pixel comes first. Numbers stay in the order of first pixels. */
dcrf_status dcrf_regions_join_small(int32_t *regions, size_t *count,
                                    const struct dcrf_colours *colours, size_t min_region_px,
                                    dcrf_workspace *workspace, dcrf_error *error);

/* What is interrupted where a call ends early. */
#define DCRF_FINDING "finding superpixels"

#endif
