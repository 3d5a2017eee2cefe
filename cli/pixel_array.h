/* Arrays of one vector of numbers a pixel (unary energies, fields to filter) from .npy files. */
#ifndef DCRF_CLI_PIXEL_ARRAY_H
#define DCRF_CLI_PIXEL_ARRAY_H

#include "io/image.h"

#include <dcrf/array.h>

/* The grid of an image, and its colours over it. */
dcrf_grid image_grid(const cli_image *image);
dcrf_view image_view(const cli_image *image);

typedef enum array_layout { LAYOUT_AUTO = 0, LAYOUT_HWC, LAYOUT_CHW } array_layout;

/* The array of a file, and how it lies over the image. */
typedef struct pixel_array {
    float *values;
    dcrf_view view; /* of `values` */
    size_t axes;    /* as in the file: 2 (one channel) or 3 */
    size_t shape[3];
    bool integers; /* in the file */
} pixel_array;

/* Read a .npy file of the shape (H, W), (H, W, C) or (C, H, W) of the image. */
bool pixel_array_read(const char *path, const cli_image *image, array_layout layout,
                      pixel_array *array, cli_problem *problem);
void pixel_array_free(pixel_array *array);

#endif
