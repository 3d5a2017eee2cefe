#include "photograph.h"

#include "io/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *photograph_read(const char *path, size_t *width, size_t *height) {
    cli_image image;
    cli_problem problem = {0};
    if (!image_read(path, &image, &problem)) {
        fprintf(stderr, "%s cannot be read\n", path);
        return NULL;
    }
    const size_t count = image_pixels(&image) * IMAGE_CHANNELS;
    uint8_t *rgb = image_is_volume(&image) ? NULL : malloc(count);
    for (size_t i = 0; rgb && i < count; i++)
        rgb[i] = (uint8_t)image.colours[i];
    if (!rgb)
        fprintf(stderr, "%s is no photograph, or memory is out\n", path);
    *width = image.width;
    *height = image.height;
    image_free(&image);
    return rgb;
}

const char *photograph_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
