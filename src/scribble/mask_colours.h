/* Evidence about the labels of a map from the colours of an image, by densities over bins. */
#ifndef DCRF_SCRIBBLE_MASK_COLOURS_H
#define DCRF_SCRIBBLE_MASK_COLOURS_H

#include "core/workspace.h"
#include "scribble/colour_bins.h"

#include <dcrf/experimental.h>

struct dcrf_mask_colours {
    const struct dcrf_colour_bins *bins;
    size_t labels, stride;
    dcrf_operator *op; /* over the bins */
    float *weights;    /* blocks over the bins: how much of each belongs to a label */
    float *deficit;    /* ln of the largest density minus ln of the label's */
    double *pixels;    /* of each bin */
    double *total;     /* sum of the weights of each label */
    struct dcrf_owned owned;
};

/* The bins must outlive the struct. On failure nothing is left to clear. */
dcrf_status dcrf_mask_colours_init(struct dcrf_mask_colours *colours,
                                   const struct dcrf_colour_bins *bins, size_t labels,
                                   dcrf_workspace *workspace, dcrf_error *error);
void dcrf_mask_colours_clear(struct dcrf_mask_colours *colours);

/* Learn from a block of memberships, from 0 to 1 per variable and label, and compute the deficits.
 * A label without weight has the deficit of one that was never seen. */
dcrf_status dcrf_mask_colours_learn(struct dcrf_mask_colours *colours, const float *members,
                                    size_t variables, size_t stride, dcrf_workspace *workspace,
                                    dcrf_error *error);

/* How much the colours tell about labels, from 0 (nothing) to 1 (everything), measured on a block
 * of members whose labels are known by other means; deficits are capped at `limit`. With fewer than
 * two labels: 0. The deficits do not change. */
double dcrf_mask_colours_information(struct dcrf_mask_colours *colours, const float *members,
                                     size_t variables, size_t stride, double limit);

#endif
