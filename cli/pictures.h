/* Pictures of a labelling: rows from the top, RGB next to each other, from 0 to 255. */
#ifndef DCRF_CLI_PICTURES_H
#define DCRF_CLI_PICTURES_H

#include "io/image.h"
#include "palette.h"
#include "solution.h"

/* Each returns an array to be freed, NULL when memory is out. */
uint16_t *picture_of_image(const cli_image *image);
uint16_t *picture_overlay(const cli_image *image, const uint16_t *labels, const palette *colours);

/* The photograph with lines where labels change, dark with a light rim, visible on any ground. */
uint16_t *picture_boundaries(const cli_image *image, const uint16_t *labels);

/* The marginal of the label chosen, one float a pixel. */
float *confidence_of(const solution *found, size_t variables);

/* The same as grey values. */
uint16_t *picture_confidence(const solution *found, size_t variables);

#endif
