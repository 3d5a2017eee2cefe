#include "io/label_map.h"

#include "io/file.h"
#include "io/frames.h"
#include "io/nifti.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/picture.h"
#include "io/video.h"

#include <stdlib.h>
#include <string.h>

/* A sample of a colour, scaled to 8 bits. */
static int32_t eight_bits(const picture *decoded, size_t index) {
    return (int32_t)((decoded->samples[index] * 255u + decoded->largest / 2u) / decoded->largest);
}

/* What to do about a picture that does not have the image's size. */
static const char *size_advice(const cli_image *image, const picture *measured) {
    if (image_is_video(image))
        return ": give a folder, in which it has the name of its frame";
    return image_is_turned_to(image, measured->height, measured->width) ? IMAGE_TURNED_ADVICE : "";
}

/* Does a picture have the image's size, according to its header? */
static bool check_picture(const file_bytes *bytes, const char *path, const cli_image *image,
                          cli_problem *problem) {
    picture measured;
    char text[IMAGE_TEXT_BYTES];
    if (!picture_decode(bytes->data, bytes->size, PICTURE_MEASURED, path, &measured, problem))
        return false;
    return (!image_is_volume(image) && measured.width == image->width &&
            measured.height == image->height) ||
           bad_input(problem, path, "is %zu x %zu pixels and the image %s; they must agree%s",
                     measured.width, measured.height, image_size_text(image, text),
                     size_advice(image, &measured));
}

static bool numbers_from_picture(const picture *decoded, const char *path, int32_t **numbers,
                                 cli_problem *problem) {
    const size_t count = decoded->width * decoded->height;
    *numbers = malloc(count * sizeof **numbers);
    if (!*numbers)
        return out_of_memory(problem, path);
    for (size_t i = 0; i < count; i++)
        (*numbers)[i] = decoded->channels == 1 ? decoded->samples[i]
                                               : eight_bits(decoded, 3 * i) << 16 |
                                                     eight_bits(decoded, 3 * i + 1) << 8 |
                                                     eight_bits(decoded, 3 * i + 2);
    return true;
}

/* How a map is read, and what it was found to be. */
typedef struct map_reading {
    picture_purpose purpose; /* PICTURE_AS_NUMBERS, PICTURE_AS_MASK, or PICTURE_AS_IS: in colours */
    bool are_colours;
    bool is_rounded; /* its format rounds numbers */
    bool may_miss;   /* video frames may have no map */
} map_reading;

static bool map_from_picture(const file_bytes *bytes, const char *path, const cli_image *image,
                             int32_t **numbers, map_reading *how, cli_problem *problem) {
    picture decoded;
    how->is_rounded = !picture_keeps_numbers(bytes->data, bytes->size);
    /* For a picture of the wrong kind, decoding gives a better message than its size would. */
    if ((!how->is_rounded || how->purpose == PICTURE_AS_MASK) &&
        !check_picture(bytes, path, image, problem))
        return false;
    if (!picture_decode(bytes->data, bytes->size, how->purpose, path, &decoded, problem))
        return false;
    how->are_colours = decoded.channels > 1;
    const bool done = numbers_from_picture(&decoded, path, numbers, problem);
    picture_free(&decoded);
    return done;
}

static bool check_npy(const file_bytes *bytes, const char *path, const cli_image *image,
                      npy_array *array, cli_problem *problem) {
    npy_array wanted = {0};
    char text[NPY_TEXT_BYTES], wanted_text[NPY_TEXT_BYTES];
    if (!npy_parse(bytes->data, bytes->size, path, array, problem))
        return false;
    wanted.axes = image_shape(image, wanted.shape);
    return (array->axes == wanted.axes &&
            memcmp(array->shape, wanted.shape, wanted.axes * sizeof *wanted.shape) == 0) ||
           bad_input(problem, path, "has the shape %s; the image needs %s",
                     npy_shape_text(array, text), npy_shape_text(&wanted, wanted_text));
}

static bool map_from_npy(const file_bytes *bytes, const char *path, const cli_image *image,
                         int32_t **numbers, cli_problem *problem) {
    npy_array array;
    return check_npy(bytes, path, image, &array, problem) &&
           npy_to_integers(&array, path, numbers, problem);
}

static bool volume_agrees(const nifti_volume *volume, const char *path, const cli_image *image,
                          cli_problem *problem) {
    char text[NIFTI_TEXT_BYTES], image_text[IMAGE_TEXT_BYTES];
    if (volume->channels != 1 || volume->size[0] != image->width ||
        volume->size[1] != image->height || volume->size[2] != image->depth)
        return bad_input(problem, path, "is %s and the image %s; they must agree",
                         nifti_size_text(volume, text), image_size_text(image, image_text));
    return true;
}

static bool map_from_volume(const file_bytes *bytes, const char *path, const cli_image *image,
                            int32_t **numbers, cli_problem *problem) {
    nifti_volume volume;
    if (!nifti_parse_header(bytes->data, bytes->size, path, &volume, problem))
        return false;
    const bool done = volume_agrees(&volume, path, image, problem) &&
                      nifti_parse_voxels(bytes->data, bytes->size, path, &volume, problem) &&
                      nifti_to_integers(&volume, path, numbers, problem);
    nifti_free(&volume);
    return done;
}

static bool read_map(const char *path, const cli_image *image, int32_t **numbers, map_reading *how,
                     cli_problem *problem) {
    file_bytes bytes;
    bool done;
    *numbers = NULL;
    if (!file_read(path, &bytes, problem))
        return false;
    if (!npz_unpack(&bytes, path, problem)) {
        file_free(&bytes);
        return false;
    }
    if (picture_recognize(bytes.data, bytes.size))
        done = map_from_picture(&bytes, path, image, numbers, how, problem);
    else if (npy_recognize(bytes.data, bytes.size))
        done = map_from_npy(&bytes, path, image, numbers, problem);
    else if (nifti_recognize(bytes.data, bytes.size))
        done = map_from_volume(&bytes, path, image, numbers, problem);
    else
        done = bad_input(problem, path,
                         bytes.size ? "is neither a picture nor a .npy array nor a NIfTI volume"
                                    : "is empty; a map is needed");
    file_free(&bytes);
    return done;
}

/* One map per frame, or for some frames only. */
static bool read_frames(const char *folder, const cli_image *video, int32_t **numbers,
                        map_reading *how, cli_problem *problem) {
    const size_t pixels = video->width * video->height;
    size_t given = 0;
    *numbers = malloc(image_pixels(video) * sizeof **numbers);
    bool done = *numbers || out_of_memory(problem, folder);
    for (size_t frame = 0; done && frame < video->depth; frame++) {
        const cli_image image = video_frame(video, frame);
        char *path = path_partner(folder, video->frames.lines[frame], PARTNER_MAP);
        int32_t *one = NULL;
        if (path)
            done = read_map(path, &image, &one, how, problem);
        else if (!how->may_miss)
            done = bad_input(problem, folder, "has no map for %s", video->frames.lines[frame]);
        for (size_t i = 0; done && i < pixels; i++)
            (*numbers)[frame * pixels + i] = one ? one[i] : MAP_MISSING;
        given += path != NULL;
        free(one);
        free(path);
    }
    if (done && given == 0)
        done = bad_input(problem, folder, "has no map with the name of a frame, such as %s",
                         video->frames.lines[0]);
    if (!done) {
        free(*numbers);
        *numbers = NULL;
    }
    return done;
}

static bool read_any(const char *path, const cli_image *image, int32_t **numbers, map_reading *how,
                     cli_problem *problem) {
    return (image_is_video(image) && path_is_folder(path) ? read_frames : read_map)(
        path, image, numbers, how, problem);
}

bool label_map_check(const char *path, const cli_image *image, cli_problem *problem) {
    file_bytes bytes;
    npy_array array;
    if (!file_is_plain(path))
        return true;
    if (!file_map(path, &bytes, problem))
        return false;
    const bool done = picture_recognize(bytes.data, bytes.size)
                          ? check_picture(&bytes, path, image, problem)
                          : !npy_recognize(bytes.data, bytes.size) ||
                                check_npy(&bytes, path, image, &array, problem);
    file_free(&bytes);
    return done;
}

bool label_map_read(const char *path, const cli_image *image, int32_t **numbers,
                    cli_problem *problem) {
    map_reading how = {.purpose = PICTURE_AS_NUMBERS};
    return read_any(path, image, numbers, &how, problem);
}

bool label_map_read_mask(const char *path, const cli_image *image, int32_t **numbers,
                         bool *is_rounded, cli_problem *problem) {
    map_reading how = {.purpose = PICTURE_AS_MASK, .may_miss = true};
    const bool done = read_any(path, image, numbers, &how, problem);
    *is_rounded = how.is_rounded;
    return done;
}

bool label_map_read_colours(const char *path, const cli_image *image, int32_t **numbers,
                            bool *are_colours, cli_problem *problem) {
    map_reading how = {.purpose = PICTURE_AS_IS, .may_miss = true};
    const bool done = read_any(path, image, numbers, &how, problem);
    *are_colours = how.are_colours;
    return done;
}

#define MASK_NUMBER 255

bool map_is_mask(const int32_t *numbers, size_t count) {
    bool has_zero = false, has_mask = false;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] != 0 && numbers[i] != MASK_NUMBER)
            return false;
        has_zero = has_zero || numbers[i] == 0;
        has_mask = has_mask || numbers[i] != 0;
    }
    return has_zero && has_mask;
}

void map_number_mask(int32_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = numbers[i] == MASK_NUMBER;
}
