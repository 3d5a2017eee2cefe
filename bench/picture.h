/* A picture that filters like a photograph, drawn rather than stored.
 *
 * Three octave sums of smooth noise with the spectrum of natural images (amplitude falling as 1 /
 * frequency), overlaid with a dozen discs of other colours and sensor noise; labels follow the same
 * shapes. */
#ifndef DCRF_BENCH_PICTURE_H
#define DCRF_BENCH_PICTURE_H

#include <stddef.h>
#include <stdint.h>

/* width x height x 3, interleaved. NULL if out of memory. */
uint8_t *picture_draw(size_t width, size_t height);

/* Distributions over labels that vary over the picture: width x height rows of `stride` floats. */
float *picture_labels(size_t width, size_t height, size_t labels, size_t stride);

#endif
