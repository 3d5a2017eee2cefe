#include "io/gzip.h"
#include "io/nifti_geometry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As in pictures: more voxels than the operators could number, or than a file can hold. */
#define VOXELS_MAX ((size_t)INT32_MAX)
#define INFLATE_RATIO_MAX 1040
#define INFLATE_SLACK_BYTES 4096

enum { HEADER_1_BYTES = 348, HEADER_2_BYTES = 540, MAGIC_1_OFFSET = 344, MAGIC_2_OFFSET = 4 };

_Static_assert(sizeof(nifti_1_header) == HEADER_1_BYTES, "NIfTI-1");
_Static_assert(sizeof(nifti_2_header) == HEADER_2_BYTES, "NIfTI-2");

/* ---- recognition ------------------------------------------------------------------------------
 */

typedef enum header_kind { HEADER_NONE, HEADER_1, HEADER_2, HEADER_OF_PAIR } header_kind;

static header_kind kind_of(const uint8_t *data, size_t size) {
    if (size >= HEADER_1_BYTES && memcmp(data + MAGIC_1_OFFSET, "n+1", 4) == 0)
        return HEADER_1;
    if (size >= HEADER_2_BYTES && memcmp(data + MAGIC_2_OFFSET, "n+2\0\r\n\032\n", 8) == 0)
        return HEADER_2;
    if ((size >= HEADER_1_BYTES && memcmp(data + MAGIC_1_OFFSET, "ni1", 4) == 0) ||
        (size >= MAGIC_2_OFFSET + 4 && memcmp(data + MAGIC_2_OFFSET, "ni2", 4) == 0))
        return HEADER_OF_PAIR;
    return HEADER_NONE;
}

/* A truncated file shall be called one, so its size field counts too. */
static bool begins_with_header_size(const uint8_t *data, size_t size) {
    static const uint8_t starts[][4] = {
        {0x5c, 1, 0, 0}, {0, 0, 1, 0x5c}, {0x1c, 2, 0, 0}, {0, 0, 2, 0x1c}};
    for (size_t i = 0; size >= 4 && i < sizeof starts / sizeof starts[0]; i++)
        if (memcmp(data, starts[i], 4) == 0)
            return true;
    return false;
}

bool nifti_recognize(const uint8_t *data, size_t size) {
    return gzip_recognize(data, size) || begins_with_header_size(data, size) ||
           kind_of(data, size) != HEADER_NONE;
}

/* ---- header -----------------------------------------------------------------------------------
 */

static nifti_image *interpret_header(const uint8_t *header, header_kind kind) {
    nifti_set_debug_level(0); /* prints nothing */
    if (kind == HEADER_1) {
        nifti_1_header first;
        memcpy(&first, header, sizeof first);
        return nifti_convert_n1hdr2nim(first, NULL);
    }
    nifti_2_header second;
    memcpy(&second, header, sizeof second);
    return nifti_convert_n2hdr2nim(second, NULL);
}

static bool check_sizes(const nifti_image *image, nifti_volume *volume, const char *file,
                        cli_problem *problem) {
    if (image->dim[0] < 1 || image->dim[0] > 7)
        return bad_input(problem, file, "its header is broken: it has not 1 to 7 axes");
    size_t count = 1;
    for (int64_t axis = 1; axis <= 7; axis++) {
        const int64_t extent = axis <= image->dim[0] ? image->dim[axis] : 1;
        if (extent < 1)
            return bad_input(problem, file, "its header is broken: axis %d has the size %lld",
                             (int)axis, (long long)extent);
        if (axis > 4 && extent > 1)
            return bad_input(problem, file, "has more than four axes");
        if ((size_t)extent > VOXELS_MAX / count)
            return bad_input(problem, file, "has more than 2^31 voxels");
        count *= (size_t)extent;
        if (axis <= 3)
            volume->size[axis - 1] = (size_t)extent;
        else if (axis == 4)
            volume->channels = (size_t)extent;
    }
    volume->count = count;
    return true;
}

static bool check_spacing(const nifti_image *image, nifti_volume *volume, const char *file,
                          cli_problem *problem) {
    const double unit_mm = image->xyz_units == NIFTI_UNITS_METER    ? 1000
                           : image->xyz_units == NIFTI_UNITS_MICRON ? 0.001
                                                                    : 1;
    for (size_t axis = 0; axis < 3; axis++) {
        const double stored = (int64_t)axis < image->dim[0] ? fabs(image->pixdim[axis + 1]) : 1;
        volume->spacing_mm[axis] = stored * unit_mm;
        if (!(volume->spacing_mm[axis] > 0) || !isfinite(volume->spacing_mm[axis]))
            return bad_input(problem, file,
                             "its header is broken: the voxel spacing %g of axis %zu is not a "
                             "length",
                             stored, axis + 1);
    }
    return true;
}

static bool check_values(const nifti_image *image, nifti_volume *volume, const char *file,
                         cli_problem *problem) {
    volume->datatype = image->datatype;
    switch (image->datatype) {
    case DT_UINT8:
    case DT_INT8:
        volume->item_bytes = 1;
        break;
    case DT_UINT16:
    case DT_INT16:
        volume->item_bytes = 2;
        break;
    case DT_UINT32:
    case DT_INT32:
    case DT_FLOAT32:
        volume->item_bytes = 4;
        break;
    case DT_UINT64:
    case DT_INT64:
    case DT_FLOAT64:
        volume->item_bytes = 8;
        break;
    default:
        return bad_input(problem, file, "its voxels are of the type %s (%d); save integers or %s",
                         nifti_datatype_to_string(image->datatype), image->datatype,
                         "floats of 32 or 64 bits");
    }
    volume->slope = image->scl_slope;
    volume->intercept = image->scl_inter;
    if (volume->slope == 0) { /* by the standard: not scaled */
        volume->slope = 1;
        volume->intercept = 0;
    }
    if (!isfinite(volume->slope) || !isfinite(volume->intercept))
        return bad_input(problem, file, "its header is broken: the scale %g, %g is not finite",
                         volume->slope, volume->intercept);
    volume->swapped = image->byteorder != nifti_short_order();
    return true;
}

/* Read the header and find out where the voxels begin and how many bytes the file must have. */
static bool read_header(const uint8_t *header, size_t there, const char *file, nifti_volume *volume,
                        size_t *voxel_offset, cli_problem *problem) {
    const header_kind kind = kind_of(header, there);
    if (kind == HEADER_OF_PAIR)
        return bad_input(problem, file, "is one of a pair (.hdr, .img); save it as one .nii file");
    if (kind == HEADER_NONE)
        return bad_input(problem, file,
                         there < HEADER_1_BYTES ? "is truncated inside its NIfTI header"
                                                : "is not a NIfTI volume");
    volume->geometry = calloc(1, sizeof *volume->geometry);
    if (!volume->geometry)
        return out_of_memory(problem, file);
    nifti_image *image = interpret_header(header, kind);
    volume->geometry->image = image;
    if (!image)
        return bad_input(problem, file, "its NIfTI header is broken");
    const int64_t least = kind == HEADER_1 ? HEADER_1_BYTES : HEADER_2_BYTES;
    if (image->iname_offset < least)
        return bad_input(problem, file, "its header is broken: the voxels begin inside it");
    *voxel_offset = (size_t)image->iname_offset;
    return check_sizes(image, volume, file, problem) &&
           check_spacing(image, volume, file, problem) &&
           check_values(image, volume, file, problem);
}

/* ---- voxels -----------------------------------------------------------------------------------
 */

static bool too_short(const char *file, size_t wanted, size_t there, cli_problem *problem) {
    return bad_input(problem, file,
                     "is truncated: its header needs %zu bytes of voxels and %zu are there", wanted,
                     there);
}

static bool parse_plain(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                        cli_problem *problem) {
    size_t offset = 0;
    if (!read_header(data, size, file, volume, &offset, problem))
        return false;
    const size_t wanted = volume->count * volume->item_bytes;
    const size_t there = size > offset ? size - offset : 0;
    if (there < wanted)
        return too_short(file, wanted, there, problem);
    volume->voxels = data + offset;
    return true;
}

static bool parse_compressed(const uint8_t *data, size_t size, const char *file,
                             nifti_volume *volume, cli_problem *problem) {
    uint8_t header[HEADER_2_BYTES];
    size_t offset = 0, there = 0;
    if (!gzip_inflate_start(data, size, header, sizeof header, &there, file, problem) ||
        !read_header(header, there, file, volume, &offset, problem))
        return false;
    const size_t wanted = volume->count * volume->item_bytes, most = SIZE_MAX / 4;
    if (offset > most || (offset + wanted) / INFLATE_RATIO_MAX > size + INFLATE_SLACK_BYTES)
        return bad_input(problem, file, "announces more voxels than so small a file can hold");
    volume->inflated = malloc(offset + wanted);
    if (!volume->inflated)
        return out_of_memory(problem, file);
    volume->voxels = volume->inflated + offset;
    return gzip_inflate(data, size, volume->inflated, offset + wanted, file, problem);
}

bool nifti_parse(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                 cli_problem *problem) {
    *volume = (nifti_volume){.channels = 1};
    const bool done = gzip_recognize(data, size)
                          ? parse_compressed(data, size, file, volume, problem)
                          : parse_plain(data, size, file, volume, problem);
    if (!done)
        nifti_free(volume);
    return done;
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

/* A number as it is stored; 8-byte integers beyond 2^53 are rounded. */
static double stored_value(const nifti_volume *volume, size_t index) {
    const size_t bytes = volume->item_bytes;
    const uint8_t *at = volume->voxels + index * bytes;
    union {
        uint8_t bytes[8];
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } value;
    for (size_t i = 0; i < bytes; i++)
        value.bytes[i] = at[volume->swapped ? bytes - 1 - i : i];
    switch (volume->datatype) {
    case DT_UINT8:
        return value.bytes[0];
    case DT_INT8:
        return value.i8;
    case DT_UINT16:
        return value.u16;
    case DT_INT16:
        return value.i16;
    case DT_UINT32:
        return value.u32;
    case DT_INT32:
        return value.i32;
    case DT_UINT64:
        return (double)value.u64;
    case DT_INT64:
        return (double)value.i64;
    case DT_FLOAT32:
        return (double)value.f32;
    default:
        return value.f64;
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
