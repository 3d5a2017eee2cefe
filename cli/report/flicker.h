/* Flicker of a labelled video: labels that change where the image does not. */
#ifndef DCRF_CLI_REPORT_FLICKER_H
#define DCRF_CLI_REPORT_FLICKER_H

#include "io/image.h"

typedef struct flicker {
    size_t still;   /* pixels that look the same in the next frame */
    size_t changed; /* of these, pixels whose label changes */
} flicker;

/* Compare a frame with the next; each has `pixels` pixels. */
void flicker_add(flicker *measured, const float *colours, const float *next_colours,
                 size_t channels, const uint16_t *labels, const uint16_t *next_labels,
                 size_t pixels);

flicker flicker_of(const cli_image *video, const uint16_t *labels);

/* changed / still; 0 if nothing is still. */
double flicker_share(const flicker *measured);

#endif
