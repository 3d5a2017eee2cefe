/* The image to be labelled: a photograph (PNG, JPEG, PNM, TIFF, BMP, WebP), a volume (NIfTI) or
 * a video (a folder of photographs). */
#ifndef DCRF_CLI_IO_IMAGE_H
#define DCRF_CLI_IO_IMAGE_H

#include "io/geo.h"
#include "io/lines.h"
#include "io/sample_scale.h"
#include "problem.h"

#include <stddef.h>
#include <stdint.h>

struct nifti_geometry;

#define IMAGE_CHANNELS 3 /* of a photograph */

typedef struct cli_image {
    size_t width;
    size_t height;
    size_t depth;         /* 1: a photograph, or a volume of one slice */
    size_t channels;      /* 3: a photograph; 1 or more: a volume */
    double spacing_mm[3]; /* of voxels along x, y, z; 1 for pixels */
    /* The channels of a pixel next to each other, x fastest, then y from the top, then z.
     * Photographs are scaled to 0 to 255 for every bit depth; volumes are as stored. */
    float *colours;
    sample_scale scale;              /* of a photograph: how samples became colours */
    size_t bands;                    /* of its file, if there are more than are used; otherwise 0 */
    uint8_t *nodata;                 /* 1 for pixels without data; NULL: there are none */
    geo_reference *geo;              /* of a photograph; NULL: unknown */
    int orientation;                 /* of a photograph, before it was turned upright (io/exif.h) */
    line_list frames;                /* of a video: the files of its frames; otherwise empty */
    struct nifti_geometry *geometry; /* of a volume, for writing outputs like it; NULL: a
                                      * photograph */
} cli_image;

/* The size of a photograph, from its header; false, without a problem, if the header does not
 * easily show it (volumes, pipes, broken files): image_read reports what is wrong. */
bool image_measure(const char *path, cli_image *image);

/* Set image->geo from the tags or the world file of a photograph. */
bool image_read_geo(const char *path, cli_image *image, cli_problem *problem);

bool image_read(const char *path, cli_image *image, cli_problem *problem);
void image_free(cli_image *image);
/* All that is left is its size, and what outputs need to be like it. */
void image_free_colours(cli_image *image);

/* A video, i.e. a folder of frames, counts as a volume whose third axis is time. */
bool image_is_volume(const cli_image *image);
bool image_is_video(const cli_image *image);

/* Was it turned to this size, so that data made for the stored orientation do not fit? */
bool image_is_turned_to(const cli_image *image, size_t width, size_t height);
#define IMAGE_TURNED_ADVICE                                                                        \
    " (the photograph was turned upright, as its EXIF orientation says: turn this, too)"
size_t image_pixels(const cli_image *image);

/* "pixels" or "voxels". */
const char *image_unit_text(const cli_image *image);

/* Volumes cannot be written as pictures, nor photographs as volumes. `file`, the output, may be
 * NULL. */
bool image_fits_file(const cli_image *image, const char *file, cli_problem *problem);

/* "6 x 5 pixels" or "6 x 5 x 4 voxels"; "x = 4, y = 2", with z in a volume. For messages. */
#define IMAGE_TEXT_BYTES 96
const char *image_size_text(const cli_image *image, char text[IMAGE_TEXT_BYTES]);
const char *image_place_text(const cli_image *image, size_t pixel, char text[IMAGE_TEXT_BYTES]);

/* The shape of an array over the image, slowest axis first: H, W or D, H, W; returns the number of
 * axes. */
size_t image_shape(const cli_image *image, size_t shape[3]);

#endif
