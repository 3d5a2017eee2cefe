/* A picture and its label map at the size at which rough masks are worked on. */
#ifndef DCRF_SCRIBBLE_MASK_REDUCE_H
#define DCRF_SCRIBBLE_MASK_REDUCE_H

#include "core/owned.h"

#include <dcrf/grid.h>
#include <stdint.h>

struct dcrf_mask_reduced {
    dcrf_grid grid; /* of cells; the same extent */
    size_t cells;
    float *image; /* the mean colour of each cell */
    size_t channels;
    int32_t *map;      /* the label of most of the cell; negative: most of it is unknown */
    float *confidence; /* the mean over the known part; NULL: not given */
    size_t *shown;     /* of each label, the pixels in cells that have it */
    struct dcrf_owned owned;
};

/* The grid of cells of about the size `cell`, in the unit of the spacing. Axes whose pixels are not
 * less than half as large keep them. */
dcrf_grid dcrf_mask_reduced_grid(const dcrf_grid *grid, double cell);

/* Reduce an image, a map and a confidence (may be NULL) to `cells`. Whatever comes of it, it can be
 * cleared. */
dcrf_status dcrf_mask_reduce(struct dcrf_mask_reduced *reduced, const dcrf_grid *grid,
                             const dcrf_grid *cells, const dcrf_view *image, const int32_t *map,
                             size_t labels, const float *confidence, dcrf_error *error);
void dcrf_mask_reduced_clear(struct dcrf_mask_reduced *reduced);

/* Does the reduced map have at least half of every label where the map has it? If not, something is
 * thinner than the cells. */
int dcrf_mask_reduced_is_faithful(const struct dcrf_mask_reduced *reduced,
                                  const size_t *label_sizes, size_t labels);

#endif
