#include "model/superpixels.h"

#include "model/pixel_array.h"

#include <stdlib.h>

bool superpixels_find(const cli_image *image, const char *image_file,
                      const dcrf_superpixel_settings *settings, dcrf_workspace *workspace,
                      int32_t **regions, size_t *count, cli_problem *problem) {
    dcrf_error error;
    const dcrf_grid grid = image_grid(image);
    const dcrf_view colours = image_view(image);
    *regions = malloc(image_pixels(image) * sizeof **regions);
    if (!*regions)
        return out_of_memory(problem, image_file);
    if (dcrf_superpixels(&grid, &colours, settings, workspace, *regions, image_pixels(image), count,
                         &error) >= 0)
        return true;
    free(*regions);
    *regions = NULL;
    return library_problem(problem, image_file, &error);
}
