/* Superpixels of a command's image. */
#ifndef DCRF_CLI_MODEL_SUPERPIXELS_H
#define DCRF_CLI_MODEL_SUPERPIXELS_H

#include "io/image.h"

#include <dcrf/dcrf.h>

/* The regions of an image; the caller frees them. `image_file` is for messages. */
bool superpixels_find(const cli_image *image, const char *image_file,
                      const dcrf_superpixel_settings *settings, dcrf_workspace *workspace,
                      int32_t **regions, size_t *count, cli_problem *problem);

#endif
