/* Superpixels: small connected regions of one colour, which make the cliques of a model.
 *
 *   mean shift  follows every pixel to the mode of the colours around it and joins neighbours whose
 *               modes are close (Comaniciu and Meer 2002): regions of any shape and size that keep
 *               to the edges of the picture;
 *   SLIC        k-means in colour and position, started from a regular grid (Achanta et al. 2012):
 *               compact regions of about one size, many times faster.
 *
 * SLIC takes volumes too. A region is connected through the sides of its pixels (4-connectivity; 6
 * in volumes), every pixel is in one region, and regions are numbered from 0 in the order of their
 * first pixels. The same image gives the same regions for every number of threads and every
 * instruction set.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_SUPERPIXEL_H
#define DCRF_SUPERPIXEL_H

#include <dcrf/grid.h>
#include <dcrf/plan.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dcrf_superpixel_method {
    DCRF_SUPERPIXEL_MEAN_SHIFT = 0,
    DCRF_SUPERPIXEL_SLIC
} dcrf_superpixel_method;
/* "meanshift", "slic". */
DCRF_API const char *dcrf_superpixel_method_name(dcrf_superpixel_method method);
DCRF_API int dcrf_superpixel_method_from_name(const char *name, dcrf_superpixel_method *method);

#define DCRF_SUPERPIXEL_SPATIAL_BANDWIDTH_PX 8
#define DCRF_SUPERPIXEL_RANGE_BANDWIDTH 4
#define DCRF_SUPERPIXEL_REGION_SIZE_PX 16
#define DCRF_SUPERPIXEL_COMPACTNESS 10
#define DCRF_SUPERPIXEL_ITERATIONS 10
/* The least size of a region of mean shift where min_region_px is 0. */
#define DCRF_SUPERPIXEL_MIN_REGION_PX 20
/* The part of the voxels of a volume that may be brighter, or darker, than its scale. */
#define DCRF_SUPERPIXEL_OUTLIERS 0.005

typedef struct dcrf_superpixel_settings {
    dcrf_superpixel_method method;
    /* Smaller regions are joined to the neighbour of the most similar colour. 1: none are. 0: as
     * the method does it, DCRF_SUPERPIXEL_MIN_REGION_PX for mean shift and a quarter of the square
     * (in volumes: of the cube) of region_size_px for SLIC. */
    size_t min_region_px;
    /* Mean shift: the radii of the window, in pixels (1 to 256) and in units of CIE Luv. */
    double spatial_bandwidth_px;
    double range_bandwidth;
    /* SLIC: the distance of the first centres (1 to 1024), the weight of position against colour
     * (CIE Lab; 1 to 40 is usual, more gives rounder regions), and the rounds of k-means. */
    double region_size_px;
    double compactness;
    size_t iterations;
    unsigned char reserved[64];
} dcrf_superpixel_settings;

/* Mean shift with the values above. */
DCRF_API void dcrf_superpixel_settings_defaults(dcrf_superpixel_settings *settings);

/* The regions of an image of one channel (grey) or three (sRGB), on the scale 0 to 255;
 * `settings` = NULL: the defaults. Over a grid of one or two axes distances are in pixels, whatever
 * the spacing.
 *
 * Over a grid of three axes, a volume, the method must be SLIC. One channel may have any scale: it
 * is brought to 0 to 255, so that DCRF_SUPERPIXEL_OUTLIERS of the voxels end at either end.
 * Distances are in units of the smallest spacing.
 *
 * `regions` has room for one number per pixel, *count is how many regions there are. On an error
 * neither is touched. */
DCRF_API dcrf_status dcrf_superpixels(const dcrf_grid *grid, const dcrf_view *image,
                                      const dcrf_superpixel_settings *settings,
                                      dcrf_workspace *workspace, int32_t *regions, size_t *count,
                                      dcrf_error *error);

/* Where regions meet: boundary[a] is 1 where the neighbour to the right of pixel a, the one below
 * it or the one behind it has another number, else 0. Lines are one pixel wide. */
DCRF_API dcrf_status dcrf_region_boundaries(const dcrf_grid *grid, const int32_t *regions,
                                            uint8_t *boundary, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
