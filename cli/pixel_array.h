/* Arrays of one vector of numbers a pixel (unary energies, fields to filter) from .npy files, and
 * for volumes from NIfTI files. */
#ifndef DCRF_CLI_PIXEL_ARRAY_H
#define DCRF_CLI_PIXEL_ARRAY_H

#include "io/file.h"
#include "io/image.h"
#include "io/npy.h"

#include <dcrf/array.h>

/* The grid of an image, with the spacing of its voxels, and its colours over it. */
dcrf_grid image_grid(const cli_image *image);
dcrf_view image_view(const cli_image *image);

typedef enum array_layout { LAYOUT_AUTO = 0, LAYOUT_HWC, LAYOUT_CHW } array_layout;

/* The array of a file, and how it lies over the image. */
typedef struct pixel_array {
    const float *values; /* in the file, or those below */
    dcrf_view view;      /* of `values` */
    bool channel_axis;   /* the file has one */
    size_t axes;         /* as in the file */
    size_t shape[NPY_MAX_AXES];
    bool integers; /* in the file */
    float *own_values;
    file_bytes bytes;
} pixel_array;

/* Read a file of the shape (H, W), (H, W, C) or (C, H, W) of the image; for a volume (D, H, W),
 * (D, H, W, C), (C, D, H, W) or a NIfTI file. Large files are mapped. */
bool pixel_array_read(const char *path, const cli_image *image, array_layout layout,
                      pixel_array *array, cli_problem *problem);
void pixel_array_free(pixel_array *array);

/* The values, to be changed; NULL: out of memory. */
float *pixel_array_own(pixel_array *array);

/* How many there are. */
size_t pixel_array_count(const pixel_array *array);

#endif
