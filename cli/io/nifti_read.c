#include "io/gzip.h"
#include "io/nifti_geometry.h"
#include "io/nifti_header.h"
#include "io/number_bits.h"
#include "io/room.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The maximum expansion of deflate, as in PNG. */
#define INFLATE_RATIO_MAX 1040
#define INFLATE_SLACK_BYTES 4096

_Static_assert(sizeof(nifti_1_header) == NIFTI_HEADER_1_BYTES, "NIfTI-1");
_Static_assert(sizeof(nifti_2_header) == NIFTI_HEADER_2_BYTES, "NIfTI-2");

bool nifti_recognize(const uint8_t *data, size_t size) {
    return gzip_recognize(data, size) || nifti_header_recognize(data, size);
}

static nifti_image *interpret_header(const uint8_t *header, bool second) {
    nifti_set_debug_level(0); /* suppress most output */
    if (second) {
        nifti_2_header stored;
        memcpy(&stored, header, sizeof stored);
        return nifti_convert_n2hdr2nim(stored, NULL);
    }
    nifti_1_header stored;
    memcpy(&stored, header, sizeof stored);
    return nifti_convert_n1hdr2nim(stored, NULL);
}

/* Read the header and find the offset of the voxels. */
static bool read_header(const uint8_t *header, size_t available, const char *file,
                        nifti_volume *volume, size_t *voxel_offset, cli_problem *problem) {
    bool second = false;
    if (!nifti_header_check(header, available, file, volume, voxel_offset, &second, problem))
        return false;
    volume->geometry = calloc(1, sizeof *volume->geometry);
    if (!volume->geometry)
        return out_of_memory(problem, file);
    volume->geometry->second = second;
    volume->geometry->image = interpret_header(header, second);
    return volume->geometry->image || bad_input(problem, file, "its NIfTI header is broken");
}

/* ---- voxels --------------------------------------------------------------------------------- */

static bool too_short(const char *file, size_t wanted, size_t available, cli_problem *problem) {
    return bad_input(problem, file,
                     "is truncated: its header needs %zu bytes of voxels and %zu are there", wanted,
                     available);
}

static bool find_plain(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                       cli_problem *problem) {
    const size_t wanted = volume->count * volume->item_bytes, offset = volume->voxel_offset;
    const size_t available = size > offset ? size - offset : 0;
    if (available < wanted)
        return too_short(file, wanted, available, problem);
    volume->voxels = data + offset;
    return true;
}

static bool inflate_voxels(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                           cli_problem *problem) {
    const size_t wanted = volume->count * volume->item_bytes, offset = volume->voxel_offset;
    if ((offset + wanted) / INFLATE_RATIO_MAX > size + INFLATE_SLACK_BYTES)
        return bad_input(problem, file, "announces more voxels than so small a file can hold");
    /* They are converted to 32-bit numbers, twice for an image. */
    if (!room_check(offset + wanted + 2 * volume->count * sizeof(float), file, problem))
        return false;
    volume->inflated = malloc(offset + wanted);
    if (!volume->inflated)
        return out_of_memory(problem, file);
    volume->voxels = volume->inflated + offset;
    return gzip_inflate(data, size, volume->inflated, offset + wanted, file, problem);
}

bool nifti_parse_header(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                        cli_problem *problem) {
    uint8_t header[NIFTI_HEADER_2_BYTES];
    size_t available = 0;
    *volume = (nifti_volume){.channels = 1};
    const bool done =
        gzip_recognize(data, size)
            ? gzip_inflate_start(data, size, header, sizeof header, &available, file, problem) &&
                  read_header(header, available, file, volume, &volume->voxel_offset, problem)
            : read_header(data, size, file, volume, &volume->voxel_offset, problem);
    if (!done)
        nifti_free(volume);
    return done;
}

bool nifti_parse_voxels(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                        cli_problem *problem) {
    const bool done = (gzip_recognize(data, size) ? inflate_voxels : find_plain)(data, size, file,
                                                                                 volume, problem);
    if (!done)
        nifti_free(volume);
    return done;
}

bool nifti_parse(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                 cli_problem *problem) {
    return nifti_parse_header(data, size, file, volume, problem) &&
           nifti_parse_voxels(data, size, file, volume, problem);
}

void nifti_free(nifti_volume *volume) {
    nifti_geometry_free(&volume->geometry);
    free(volume->inflated);
    volume->inflated = NULL;
    volume->voxels = NULL;
}

nifti_geometry *nifti_take_geometry(nifti_volume *volume) {
    nifti_geometry *taken = volume->geometry;
    volume->geometry = NULL;
    return taken;
}

void nifti_geometry_free(nifti_geometry **geometry) {
    if (!*geometry)
        return;
    if ((*geometry)->image)
        nifti_image_free((*geometry)->image);
    free(*geometry);
    *geometry = NULL;
}

const char *nifti_size_text(const nifti_volume *volume, char text[NIFTI_TEXT_BYTES]) {
    const size_t *size = volume->size;
    if (volume->channels == 1)
        snprintf(text, NIFTI_TEXT_BYTES, "%zu x %zu x %zu voxels", size[0], size[1], size[2]);
    else
        snprintf(text, NIFTI_TEXT_BYTES, "%zu x %zu x %zu voxels and %zu channels", size[0],
                 size[1], size[2], volume->channels);
    return text;
}

/* A stored number; 8-byte integers beyond 2^53 are rounded. */
static double stored_value(const nifti_volume *volume, size_t index) {
    const size_t bytes = volume->item_bytes;
    const uint64_t bits = number_bits(volume->voxels + index * bytes, bytes, volume->big_endian);
    switch (volume->datatype) {
    case DT_FLOAT32:
    case DT_FLOAT64:
        return number_from_float(bits, bytes);
    case DT_INT8:
    case DT_INT16:
    case DT_INT32:
    case DT_INT64:
        return number_from_signed(bits, bytes);
    default:
        return (double)bits;
    }
}

static double scaled_value(const nifti_volume *volume, size_t index) {
    return volume->slope * stored_value(volume, index) + volume->intercept;
}

bool nifti_holds_integers(const nifti_volume *volume) {
    return volume->datatype != DT_FLOAT32 && volume->datatype != DT_FLOAT64 && volume->slope == 1;
}

bool nifti_to_floats(const nifti_volume *volume, const char *file, float **floats,
                     cli_problem *problem) {
    *floats = malloc(volume->count * sizeof **floats);
    if (!*floats)
        return out_of_memory(problem, file);
    for (size_t i = 0; i < volume->count; i++)
        (*floats)[i] = (float)scaled_value(volume, i);
    return true;
}

bool nifti_to_integers(const nifti_volume *volume, const char *file, int32_t **integers,
                       cli_problem *problem) {
    int32_t *converted = malloc(volume->count * sizeof *converted);
    *integers = NULL;
    if (!converted)
        return out_of_memory(problem, file);
    for (size_t i = 0; i < volume->count; i++) {
        const double value = scaled_value(volume, i);
        if (!(value >= INT32_MIN && value <= INT32_MAX) || value != floor(value)) {
            free(converted);
            return bad_input(problem, file,
                             "holds %g (voxel %zu) where whole numbers of 32 bits are needed",
                             value, i);
        }
        converted[i] = (int32_t)value;
    }
    *integers = converted;
    return true;
}
