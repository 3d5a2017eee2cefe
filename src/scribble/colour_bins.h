/* The distinct colours of an image, so that what depends on colour alone is computed once per
 * colour. */
#ifndef DCRF_SCRIBBLE_COLOUR_BINS_H
#define DCRF_SCRIBBLE_COLOUR_BINS_H

#include "core/owned.h"
#include "core/threads.h"

#include <dcrf/grid.h>
#include <stdint.h>

/* Images that are not sRGB are scaled to this standard deviation. */
#define DCRF_BINS_DEVIATION 25.0

struct dcrf_colour_bins {
    size_t dimension;
    size_t count;
    float *colour;     /* the mean of each bin */
    uint32_t *bin_of;  /* the bin of each variable */
    double variance;   /* of the colours, averaged over the channels */
    int is_srgb;       /* the image is a photograph and its colours are CIE Lab */
    double deviation;  /* of the image's own values, root mean square over channels */
    double log_volume; /* of the bounding box of the colours */
    struct dcrf_owned owned;
};

/* Sort the colours of an image into bins; the caller has checked the grid and the number of
 * channels. On failure nothing is left to clear. */
dcrf_status dcrf_colour_bins_init(struct dcrf_colour_bins *bins, const dcrf_grid *grid,
                                  const dcrf_view *image, dcrf_pool *pool, dcrf_error *error);
void dcrf_colour_bins_clear(struct dcrf_colour_bins *bins);

/* The sigma of a kernel over the image's own values, given that for a photograph. */
double dcrf_colour_bins_sigma(const struct dcrf_colour_bins *bins, double of_photographs);

#endif
