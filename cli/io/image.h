/* Photographs: three channels of colour on the scale 0 to 255. */
#ifndef DCRF_CLI_IO_IMAGE_H
#define DCRF_CLI_IO_IMAGE_H

#include "problem.h"

#include <stddef.h>

#define IMAGE_CHANNELS 3

typedef struct cli_image {
    size_t width;
    size_t height;
    float *colours; /* rows from the top, RGB next to each other; 16-bit files divided by 257 */
} cli_image;

bool image_read(const char *path, cli_image *image, cli_problem *problem);
void image_free(cli_image *image);

#endif
