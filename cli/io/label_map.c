#include "io/label_map.h"

#include "io/file.h"
#include "io/npy.h"
#include "io/png_format.h"

#include <stdlib.h>

static bool map_from_png(const file_bytes *bytes, const char *path, size_t width, size_t height,
                         int32_t **numbers, cli_problem *problem) {
    png_pixels pixels;
    if (!png_pixels_decode(bytes->data, bytes->size, PNG_AS_NUMBERS, path, &pixels, problem))
        return false;
    bool done = false;
    if (pixels.width != width || pixels.height != height) {
        bad_input(problem, path, "is %zu x %zu pixels and the image %zu x %zu; they must agree",
                  pixels.width, pixels.height, width, height);
    } else if (!(*numbers = malloc(width * height * sizeof **numbers))) {
        out_of_memory(problem, path);
    } else {
        for (size_t i = 0; i < width * height; i++)
            (*numbers)[i] = pixels.samples[i];
        done = true;
    }
    png_pixels_free(&pixels);
    return done;
}

static bool map_from_npy(const file_bytes *bytes, const char *path, size_t width, size_t height,
                         int32_t **numbers, cli_problem *problem) {
    npy_array array;
    char text[NPY_TEXT_BYTES];
    if (!npy_parse(bytes->data, bytes->size, path, &array, problem))
        return false;
    if (array.axes != 2 || array.shape[0] != height || array.shape[1] != width)
        return bad_input(problem, path, "has the shape %s; the image needs (%zu, %zu)",
                         npy_shape_text(&array, text), height, width);
    return npy_to_integers(&array, path, numbers, problem);
}

bool label_map_read(const char *path, size_t width, size_t height, int32_t **numbers,
                    cli_problem *problem) {
    file_bytes bytes;
    bool done;
    *numbers = NULL;
    if (!file_read(path, &bytes, problem))
        return false;
    if (png_recognize(bytes.data, bytes.size))
        done = map_from_png(&bytes, path, width, height, numbers, problem);
    else if (npy_recognize(bytes.data, bytes.size))
        done = map_from_npy(&bytes, path, width, height, numbers, problem);
    else
        done = bad_input(problem, path,
                         bytes.size ? "is neither a PNG picture nor a .npy array"
                                    : "is empty; a PNG or .npy map is needed");
    file_free(&bytes);
    return done;
}
