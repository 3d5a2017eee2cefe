#include "io/image.h"

#include "io/file.h"
#include "io/png_format.h"

#include <stdlib.h>

static bool colours_from_samples(const png_pixels *pixels, const char *path, cli_image *image,
                                 cli_problem *problem) {
    /* 65535 / 257 = 255, so a sigma means the same for both depths. */
    const float scale = pixels->bit_depth == 16 ? 1.0f / 257.0f : 1.0f;
    const size_t count = pixels->width * pixels->height * IMAGE_CHANNELS;
    image->width = pixels->width;
    image->height = pixels->height;
    image->colours = malloc(count * sizeof *image->colours);
    if (!image->colours)
        return out_of_memory(problem, path);
    for (size_t i = 0; i < count; i++)
        image->colours[i] = (float)pixels->samples[i] * scale;
    return true;
}

static bool decode(const file_bytes *bytes, const char *path, cli_image *image,
                   cli_problem *problem) {
    png_pixels pixels;
    if (bytes->size == 0)
        return bad_input(problem, path, "is empty; a PNG image is needed");
    if (!png_recognize(bytes->data, bytes->size))
        return bad_input(problem, path, "is not a PNG image; convert it to PNG");
    if (!png_pixels_decode(bytes->data, bytes->size, PNG_AS_COLOURS, path, &pixels, problem))
        return false;
    const bool done = colours_from_samples(&pixels, path, image, problem);
    png_pixels_free(&pixels);
    return done;
}

bool image_read(const char *path, cli_image *image, cli_problem *problem) {
    file_bytes bytes;
    image->width = image->height = 0;
    image->colours = NULL;
    if (!file_read(path, &bytes, problem))
        return false;
    const bool done = decode(&bytes, path, image, problem);
    file_free(&bytes);
    return done;
}

void image_free(cli_image *image) {
    free(image->colours);
    image->colours = NULL;
}
