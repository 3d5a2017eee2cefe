/* Superpixels: small connected regions of similar colour, used as the cliques of a model.
 *
 *   mean shift  moves every pixel to the mode of the colours around it and merges neighbours whose
 *               modes are close (Comaniciu and Meer 2002): regions of any shape and size that
 *               follow the edges of the image;
 *   SLIC        k-means in colour and position, started from a regular grid (Achanta et al. 2012):
 *               compact regions of similar size, many times faster.
 *
 * SLIC supports volumes too. A region is connected through the sides of its pixels (4-connectivity;
 * 6 in volumes), every pixel is in one region, and regions are numbered from 0 in the order of
 * their first pixels. The same image gives the same regions for every number of threads and every
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
/* The minimum size of a region of mean shift if min_region_px is 0. */
#define DCRF_SUPERPIXEL_MIN_REGION_PX 20
/* The fraction of a volume's voxels that may lie above the scale, and the fraction below it. */
#define DCRF_SUPERPIXEL_OUTLIERS 0.005

typedef struct dcrf_superpixel_settings {
    dcrf_superpixel_method method;
    /* Smaller regions are merged into the neighbour of most similar colour. 1: no merging. 0: the
     * method's default, DCRF_SUPERPIXEL_MIN_REGION_PX for mean shift and a quarter of the square
     * (in volumes: of the cube) of region_size_px for SLIC. */
    size_t min_region_px;
    /* Mean shift: the kernel bandwidths in pixels (1 to 256) and in units of CIE Luv. */
    double spatial_bandwidth_px;
    double range_bandwidth;
    /* SLIC: the distance between initial centres (1 to 1024); the weight of position against colour
     * (CIE Lab; usually 1 to 40, more gives rounder regions); the iterations of k-means. */
    double region_size_px;
    double compactness;
    size_t iterations;
    unsigned char reserved[64];
} dcrf_superpixel_settings;

/* Mean shift with the values above. */
DCRF_API void dcrf_superpixel_settings_defaults(dcrf_superpixel_settings *settings);

/* The regions of an image with one channel (grey) or three (sRGB), on the scale 0 to 255. If
 * `settings` is NULL, the defaults are used. On a grid of one or two axes, distances are in pixels,
 * whatever the spacing.
 *
 * On a grid of three axes, a volume, the method must be SLIC. A single channel may have any scale:
 * it is mapped to 0 to 255, clipping DCRF_SUPERPIXEL_OUTLIERS of the voxels at either end.
 * Distances are in units of the smallest spacing.
 *
 * `regions` holds `count` numbers and receives one per pixel, *region_count the number of regions.
 * On failure, for example with too few numbers, neither is changed. */
DCRF_API dcrf_status dcrf_superpixels(const dcrf_grid *grid, const dcrf_view *image,
                                      const dcrf_superpixel_settings *settings,
                                      dcrf_workspace *workspace, int32_t *regions, size_t count,
                                      size_t *region_count, dcrf_error *error);

/* Where regions meet: boundary[a] is 1 if the neighbour to the right of pixel a, below it or behind
 * it has another number, else 0. Lines are one pixel wide. `boundary` holds `count` bytes; too few
 * are an error, and nothing is written. */
DCRF_API dcrf_status dcrf_region_boundaries(const dcrf_grid *grid, const int32_t *regions,
                                            uint8_t *boundary, size_t count, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
