/* Images in the colour spaces in which superpixels measure distances. */
#ifndef DCRF_MODEL_COLOUR_H
#define DCRF_MODEL_COLOUR_H

#include "core/threads.h"

#include <dcrf/grid.h>

enum dcrf_colour_space { DCRF_COLOUR_LUV, DCRF_COLOUR_LAB };

/* Padding pixels that loops may read at the end of a row; their colours are far from all others. */
#define DCRF_COLOUR_PADDING 16

/* Colours are rounded to multiples of 1 / DCRF_COLOUR_STEPS and are below DCRF_COLOUR_MOST in size.
 * The step is far below what an eye or a camera can distinguish, and makes sums exact in any order:
 * of 2^24 / (DCRF_COLOUR_MOST * DCRF_COLOUR_STEPS) = 1024 colours in a float, of 2^39 in a
 * double. */
#define DCRF_COLOUR_STEPS 64
#define DCRF_COLOUR_MOST 256

/* An image plane by plane, rows `stride` floats apart; slices of a volume below each other. */
struct dcrf_colours {
    size_t width, height, depth, stride;
    float *plane[3]; /* L, u, v or L, a, b */
};

/* Convert an image of one or three channels on the scale 0 to 255; the grid has been checked. On
 * failure there is nothing to clear. */
dcrf_status dcrf_colours_new(struct dcrf_colours *colours, const dcrf_grid *grid,
                             const dcrf_view *image, enum dcrf_colour_space space, dcrf_pool *pool,
                             dcrf_error *error);
void dcrf_colours_clear(struct dcrf_colours *colours);

/* One colour, not rounded; the input is sRGB on the scale 0 to 255. */
void dcrf_colour_convert(const float rgb[3], enum dcrf_colour_space space, double out[3]);

#endif
