/* Arrays with one vector of numbers per pixel (unary energies, fields to filter), from .npy
 * files and, for volumes, NIfTI files. */
#ifndef DCRF_CLI_MODEL_PIXEL_ARRAY_H
#define DCRF_CLI_MODEL_PIXEL_ARRAY_H

#include "io/file.h"
#include "io/image.h"
#include "io/npy.h"

#include <dcrf/grid.h>

/* The grid of an image, with its voxel spacing, and its colours over that grid. */
dcrf_grid image_grid(const cli_image *image);
dcrf_view image_view(const cli_image *image);

typedef enum array_layout { LAYOUT_AUTO = 0, LAYOUT_HWC, LAYOUT_CHW } array_layout;

/* The array of a file, and how it maps onto the image. */
typedef struct pixel_array {
    const float *values; /* in the file, or own values below */
    dcrf_grid grid;      /* the image's grid, or a smaller one */
    dcrf_view view;      /* of `values`, over the grid */
    bool channel_axis;   /* the file has one */
    size_t axes;         /* as in the file */
    size_t shape[NPY_MAX_AXES];
    bool integers; /* the file holds integers */
    float *own_values;
    file_bytes bytes;
} pixel_array;

/* May an array be smaller than the image, with the same proportions? */
typedef enum array_fit { ARRAY_OF_THE_SIZE, ARRAY_MAY_BE_SMALLER } array_fit;

/* Does the shape fit, as far as the .npy header shows? For use before the image is decoded. */
bool pixel_array_check(const char *path, const cli_image *image, array_layout layout, array_fit fit,
                       cli_problem *problem);

/* The header of a .npy, and where in the file the image is. */
typedef struct array_place {
    npy_array npy;     /* without its elements */
    size_t axis;       /* the first axis of the image */
    dcrf_grid grid;    /* the image's grid, or a smaller one */
    bool channel_axis; /* there is a channel axis, */
    bool is_planar;    /* before the axes of the image */
    size_t channels;
    size_t offset; /* bytes before the elements */
} array_place;

/* Find the place of the image in a .npy, for reading windows. */
bool pixel_array_place(const char *path, const cli_image *image, array_layout layout, array_fit fit,
                       array_place *place, cli_problem *problem);

/* Read a file of the shape (H, W), (H, W, C) or (C, H, W) of the image; for a volume (D, H, W),
 * (D, H, W, C), (C, D, H, W) or a NIfTI file. A leading axis of size 1 is ignored: a batch of
 * one. Large files are mapped. */
bool pixel_array_read(const char *path, const cli_image *image, array_layout layout, array_fit fit,
                      pixel_array *array, cli_problem *problem);
void pixel_array_free(pixel_array *array);

/* Replace its values by others over the image, the channels of a pixel next to each other; the
 * array takes ownership. */
void pixel_array_replace(pixel_array *array, const cli_image *image, float *values);

#endif
