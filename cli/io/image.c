#include "io/image.h"

#include "io/exif.h"
#include "io/file.h"
#include "io/frames.h"
#include "io/nifti.h"
#include "io/picture.h"
#include "io/picture_formats.h"
#include "io/png_format.h"
#include "io/sample_range.h"
#include "io/tiff_write.h"
#include "io/video.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool colours_from_picture(const picture *decoded, const char *path, cli_image *image,
                                 cli_problem *problem) {
    const size_t count = decoded->width * decoded->height * decoded->channels;
    image->width = decoded->width;
    image->height = decoded->height;
    image->channels = decoded->channels;
    image->orientation = decoded->orientation;
    image->colours = malloc(count * sizeof *image->colours);
    if (!image->colours)
        return out_of_memory(problem, path);
    for (size_t i = 0; i < count; i++)
        image->colours[i] =
            (float)((decoded->samples[i] - image->scale.zero) * image->scale.factor);
    return true;
}

static bool find_scale(const picture *decoded, const char *path, cli_image *image,
                       cli_problem *problem) {
    sample_range *range = NULL;
    if (sample_range_matters(decoded)) {
        if (!(range = sample_range_new()))
            return out_of_memory(problem, path);
        sample_range_add(range, decoded, decoded->samples, decoded->width * decoded->height);
    }
    image->scale = sample_scale_of(range, decoded);
    image->bands = decoded->bands > decoded->channels ? decoded->bands : 0;
    free(range);
    return true;
}

/* Mark the pixels without data, if there are any, and make them black. */
static bool find_nodata(const picture *decoded, const char *path, cli_image *image,
                        cli_problem *problem) {
    const size_t pixels = decoded->width * decoded->height;
    bool is_any = false;
    if (!decoded->has_nodata)
        return true;
    image->nodata = calloc(pixels, 1);
    if (!image->nodata)
        return out_of_memory(problem, path);
    for (size_t i = 0; i < pixels; i++) {
        image->nodata[i] = picture_is_nodata(decoded, decoded->samples + i * decoded->channels);
        is_any = is_any || image->nodata[i];
        for (size_t c = 0; image->nodata[i] && c < image->channels; c++)
            image->colours[i * image->channels + c] = 0;
    }
    if (!is_any) {
        free(image->nodata);
        image->nodata = NULL;
    }
    return true;
}

static bool read_geo(const file_bytes *bytes, const char *path, cli_image *image,
                     cli_problem *problem) {
    return (!tiff_recognize(bytes->data, bytes->size) ||
            geo_from_tiff(bytes->data, bytes->size, path, &image->geo, problem)) &&
           geo_from_world_file(path, &image->geo, problem);
}

bool image_read_geo(const char *path, cli_image *image, cli_problem *problem) {
    file_bytes bytes;
    if (!file_map(path, &bytes, problem))
        return false;
    const bool done = read_geo(&bytes, path, image, problem);
    file_free(&bytes);
    return done;
}

static bool read_picture(const file_bytes *bytes, const char *path, cli_image *image,
                         cli_problem *problem) {
    picture decoded;
    if (!picture_decode(bytes->data, bytes->size, PICTURE_AS_COLOURS, path, &decoded, problem))
        return false;
    const bool done = find_scale(&decoded, path, image, problem) &&
                      colours_from_picture(&decoded, path, image, problem) &&
                      find_nodata(&decoded, path, image, problem) &&
                      read_geo(bytes, path, image, problem);
    picture_free(&decoded);
    return done;
}

/* Interleave the channels of a voxel, and refuse NaN and infinity. */
static bool interleave(const float *planes, const char *path, cli_image *image,
                       cli_problem *problem) {
    const size_t voxels = image_pixels(image);
    char text[IMAGE_TEXT_BYTES];
    for (size_t c = 0; c < image->channels; c++)
        for (size_t i = 0; i < voxels; i++) {
            const float value = planes[c * voxels + i];
            if (!isfinite(value))
                return bad_input(problem, path, "holds %g at %s; replace it", (double)value,
                                 image_place_text(image, i, text));
            image->colours[i * image->channels + c] = value;
        }
    return true;
}

static bool colours_from_volume(nifti_volume *volume, const char *path, cli_image *image,
                                cli_problem *problem) {
    float *planes = NULL;
    image->width = volume->size[0];
    image->height = volume->size[1];
    image->depth = volume->size[2];
    image->channels = volume->channels;
    for (size_t axis = 0; axis < 3; axis++)
        image->spacing_mm[axis] = volume->spacing_mm[axis];
    image->geometry = nifti_take_geometry(volume);
    if (!nifti_to_floats(volume, path, &planes, problem))
        return false;
    image->colours = malloc(volume->count * sizeof *image->colours);
    const bool done =
        image->colours ? interleave(planes, path, image, problem) : out_of_memory(problem, path);
    free(planes);
    return done;
}

static bool read_volume(const file_bytes *bytes, const char *path, cli_image *image,
                        cli_problem *problem) {
    nifti_volume volume;
    if (!nifti_parse(bytes->data, bytes->size, path, &volume, problem))
        return false;
    const bool done = colours_from_volume(&volume, path, image, problem);
    nifti_free(&volume);
    return done;
}

static bool decode(const file_bytes *bytes, const char *path, cli_image *image,
                   cli_problem *problem) {
    if (bytes->size == 0)
        return bad_input(problem, path, "is empty; an image is needed");
    if (picture_recognize(bytes->data, bytes->size))
        return read_picture(bytes, path, image, problem);
    if (nifti_recognize(bytes->data, bytes->size))
        return read_volume(bytes, path, image, problem);
    return bad_input(problem, path,
                     "is not an image; " PICTURE_FORMATS_TEXT " pictures and NIfTI volumes can be "
                     "read");
}

bool image_measure(const char *path, cli_image *image) {
    cli_problem ignored;
    file_bytes bytes;
    picture measured;
    *image = (cli_image){.depth = 1, .spacing_mm = {1, 1, 1}, .channels = IMAGE_CHANNELS};
    if (!file_is_plain(path) || !file_map(path, &bytes, &ignored))
        return false;
    const bool done =
        picture_recognize(bytes.data, bytes.size) &&
        picture_decode(bytes.data, bytes.size, PICTURE_MEASURED, path, &measured, &ignored);
    file_free(&bytes);
    if (done) {
        image->width = measured.width;
        image->height = measured.height;
        image->orientation = measured.orientation;
    }
    return done;
}

bool image_read(const char *path, cli_image *image, cli_problem *problem) {
    file_bytes bytes;
    if (path_is_folder(path))
        return video_read(path, image, problem);
    *image = (cli_image){.depth = 1, .spacing_mm = {1, 1, 1}};
    if (!file_read(path, &bytes, problem))
        return false;
    const bool done = decode(&bytes, path, image, problem);
    file_free(&bytes);
    if (!done)
        image_free(image);
    return done;
}

void image_free_colours(cli_image *image) {
    free(image->colours);
    image->colours = NULL;
}

void image_free(cli_image *image) {
    image_free_colours(image);
    free(image->nodata);
    image->nodata = NULL;
    geo_free(&image->geo);
    lines_free(&image->frames);
    nifti_geometry_free(&image->geometry);
}

bool image_is_volume(const cli_image *image) {
    return image->geometry != NULL || image_is_video(image);
}

bool image_is_video(const cli_image *image) {
    return image->frames.count > 0;
}

bool image_is_turned_to(const cli_image *image, size_t width, size_t height) {
    return exif_swaps_axes(image->orientation) && width != height && image->width == width &&
           image->height == height;
}

size_t image_pixels(const cli_image *image) {
    return image->width * image->height * image->depth;
}

const char *image_unit_text(const cli_image *image) {
    return image_is_volume(image) && !image_is_video(image) ? "voxels" : "pixels";
}

const char *image_size_text(const cli_image *image, char text[IMAGE_TEXT_BYTES]) {
    if (image_is_video(image))
        snprintf(text, IMAGE_TEXT_BYTES, "%zu x %zu pixels in %zu frames", image->width,
                 image->height, image->depth);
    else if (image_is_volume(image))
        snprintf(text, IMAGE_TEXT_BYTES, "%zu x %zu x %zu voxels", image->width, image->height,
                 image->depth);
    else
        snprintf(text, IMAGE_TEXT_BYTES, "%zu x %zu pixels", image->width, image->height);
    return text;
}

const char *image_place_text(const cli_image *image, size_t pixel, char text[IMAGE_TEXT_BYTES]) {
    const size_t x = pixel % image->width, row = pixel / image->width;
    if (image_is_volume(image))
        snprintf(text, IMAGE_TEXT_BYTES, "x = %zu, y = %zu, z = %zu", x, row % image->height,
                 row / image->height);
    else
        snprintf(text, IMAGE_TEXT_BYTES, "x = %zu, y = %zu", x, row);
    return text;
}

static bool is_npy_name(const char *path) {
    const char *point = strrchr(path, '.');
    return point && strcmp(point, ".npy") == 0;
}

bool image_fits_file(const cli_image *image, const char *file, cli_problem *problem) {
    const bool volume = image_is_volume(image);
    if (file && image_is_video(image))
        return path_names_folder(file) || is_npy_name(file) ||
               bad_input(problem, file, "the image is a video; give a folder (out/) or a .npy");
    if (file && path_names_folder(file))
        return bad_input(problem, file, "is a folder, and the image is one; give a file");
    if (file && volume && (is_png_name(file) || is_tiff_name(file)))
        return bad_input(problem, file,
                         "is a picture, and the image is a volume; write .nii.gz or .npy");
    if (file && !volume && nifti_is_name(file))
        return bad_input(problem, file,
                         "is a volume, and the image is a photograph; write .png or .npy");
    return true;
}

size_t image_shape(const cli_image *image, size_t shape[3]) {
    size_t axes = 0;
    if (image_is_volume(image))
        shape[axes++] = image->depth;
    shape[axes++] = image->height;
    shape[axes++] = image->width;
    return axes;
}
