#include "io/nifti_header.h"

#include "io/number_bits.h"

#include <math.h>
#include <string.h>

#include <nifti1.h>

/* As for pictures: more voxels than the operators can index are refused. */
#define VOXELS_MAX ((size_t)INT32_MAX)
/* A larger voxel offset is invalid, and arithmetic with it would overflow. */
#define OFFSET_MAX 1e15
#define AXES_MAX 7
#define UNITS_MASK 7 /* of space; the higher bits are the unit of time */

/* The offsets of the fields in the two formats. */
typedef struct header_layout {
    size_t header_bytes;
    size_t magic;
    size_t dim, dim_bytes;
    size_t datatype;
    size_t pixdim, real_bytes; /* of pixdim and the scale */
    size_t voxel_offset;       /* a float in the first format, an integer in the second */
    size_t slope, intercept;
    size_t units, units_bytes;
} header_layout;

static const header_layout layouts[2] = {
    {NIFTI_HEADER_1_BYTES, 344, 40, 2, 70, 76, 4, 108, 112, 116, 123, 1},
    {NIFTI_HEADER_2_BYTES, 4, 16, 8, 12, 104, 8, 168, 176, 184, 500, 4},
};
static const char *const magic_of_one[2] = {"n+1", "n+2\0\r\n\032"};
static const char *const magic_of_pair[2] = {"ni1", "ni2"};
enum { MAGIC_BYTES = 4 };

typedef struct header_reader {
    const uint8_t *data;
    const header_layout *layout;
    bool big_endian;
    const char *file;
    cli_problem *problem;
} header_reader;

static bool has_magic(const uint8_t *data, size_t size, size_t format, const char *magic) {
    const size_t at = layouts[format].magic;
    return size >= at + MAGIC_BYTES && memcmp(data + at, magic, MAGIC_BYTES) == 0;
}

static bool is_format(const uint8_t *data, size_t size, size_t format) {
    return has_magic(data, size, format, magic_of_one[format]) ||
           has_magic(data, size, format, magic_of_pair[format]);
}

/* The first field is the size of the header, which also reveals the byte order. */
static bool begins_with_size(const uint8_t *data, size_t size, size_t format, bool big_endian) {
    const size_t bytes = layouts[format].header_bytes;
    const uint8_t high = (uint8_t)(bytes >> 8), low = (uint8_t)bytes;
    return size >= 4 &&
           (big_endian ? data[0] == 0 && data[1] == 0 && data[2] == high && data[3] == low
                       : data[0] == low && data[1] == high && data[2] == 0 && data[3] == 0);
}

bool nifti_header_recognize(const uint8_t *data, size_t size) {
    for (size_t format = 0; format < 2; format++)
        if (is_format(data, size, format) || begins_with_size(data, size, format, false) ||
            begins_with_size(data, size, format, true))
            return true;
    return false;
}

/* ---- fields --------------------------------------------------------------------------------- */

/* 8-byte integers beyond 2^53 are rounded, but they are refused anyway. */
static double integer_at(const header_reader *r, size_t offset, size_t bytes) {
    return number_from_signed(number_bits(r->data + offset, bytes, r->big_endian), bytes);
}

static double real_at(const header_reader *r, size_t offset, size_t bytes) {
    return number_from_float(number_bits(r->data + offset, bytes, r->big_endian), bytes);
}

/* ---- checks --------------------------------------------------------------------------------- */

static bool check_sizes(const header_reader *r, nifti_volume *volume, size_t *axes) {
    const header_layout *at = r->layout;
    const double stored_axes = integer_at(r, at->dim, at->dim_bytes);
    if (stored_axes < 1 || stored_axes > AXES_MAX)
        return bad_input(r->problem, r->file, "its header is broken: it has not 1 to %d axes",
                         AXES_MAX);
    *axes = (size_t)stored_axes;
    volume->size[0] = volume->size[1] = volume->size[2] = volume->channels = volume->count = 1;
    for (size_t axis = 1; axis <= *axes; axis++) {
        const double extent = integer_at(r, at->dim + axis * at->dim_bytes, at->dim_bytes);
        if (extent < 1)
            return bad_input(r->problem, r->file,
                             "its header is broken: axis %zu has the size %.0f", axis, extent);
        if (axis > 4 && extent > 1)
            return bad_input(r->problem, r->file, "has more than four axes");
        if (extent > (double)(VOXELS_MAX / volume->count))
            return bad_input(r->problem, r->file, "has more than 2^31 voxels");
        volume->count *= (size_t)extent;
        if (axis <= 3)
            volume->size[axis - 1] = (size_t)extent;
        else if (axis == 4)
            volume->channels = (size_t)extent;
    }
    return true;
}

static bool check_spacing(const header_reader *r, size_t axes, nifti_volume *volume) {
    const header_layout *at = r->layout;
    const int unit = r->data[at->units + (r->big_endian ? at->units_bytes - 1 : 0)] & UNITS_MASK;
    const double unit_mm = unit == NIFTI_UNITS_METER    ? 1000
                           : unit == NIFTI_UNITS_MICRON ? 0.001
                                                        : 1;
    for (size_t axis = 0; axis < 3; axis++) {
        const double stored =
            axis < axes ? real_at(r, at->pixdim + (axis + 1) * at->real_bytes, at->real_bytes) : 1;
        volume->spacing_mm[axis] = fabs(stored) * unit_mm;
        if (!(volume->spacing_mm[axis] > 0) || !isfinite(volume->spacing_mm[axis]))
            return bad_input(
                r->problem, r->file,
                "its header is broken: the voxel spacing %g of axis %zu is not a length", stored,
                axis + 1);
    }
    return true;
}

static bool check_scale(const header_reader *r, nifti_volume *volume) {
    const header_layout *at = r->layout;
    volume->slope = real_at(r, at->slope, at->real_bytes);
    volume->intercept = real_at(r, at->intercept, at->real_bytes);
    if (volume->slope == 0) { /* by the standard, 0 means unscaled */
        volume->slope = 1;
        volume->intercept = 0;
    }
    return (isfinite(volume->slope) && isfinite(volume->intercept)) ||
           bad_input(r->problem, r->file, "its header is broken: the scale %g, %g is not finite",
                     volume->slope, volume->intercept);
}

static bool check_type(const header_reader *r, nifti_volume *volume) {
    volume->datatype = (int)integer_at(r, r->layout->datatype, 2);
    volume->big_endian = r->big_endian;
    switch (volume->datatype) {
    case DT_UINT8:
    case DT_INT8:
        volume->item_bytes = 1;
        return true;
    case DT_UINT16:
    case DT_INT16:
        volume->item_bytes = 2;
        return true;
    case DT_UINT32:
    case DT_INT32:
    case DT_FLOAT32:
        volume->item_bytes = 4;
        return true;
    case DT_UINT64:
    case DT_INT64:
    case DT_FLOAT64:
        volume->item_bytes = 8;
        return true;
    default:
        return bad_input(r->problem, r->file,
                         "its voxels are of the NIfTI type %d; save integers, or floats of 32 or "
                         "64 bits",
                         volume->datatype);
    }
}

static bool check_offset(const header_reader *r, size_t *voxel_offset) {
    const header_layout *at = r->layout;
    const double offset =
        at->dim_bytes == 2 ? real_at(r, at->voxel_offset, 4) : integer_at(r, at->voxel_offset, 8);
    if (!(offset >= (double)at->header_bytes && offset <= OFFSET_MAX))
        return bad_input(r->problem, r->file, "its header is broken: the voxels begin at byte %g",
                         offset);
    *voxel_offset = (size_t)offset;
    return true;
}

bool nifti_header_check(const uint8_t *data, size_t available, const char *file,
                        nifti_volume *volume, size_t *voxel_offset, bool *second,
                        cli_problem *problem) {
    const bool first = is_format(data, available, 0);
    *second = !first && is_format(data, available, 1);
    const size_t format = *second ? 1 : 0;
    if (has_magic(data, available, format, magic_of_pair[format]))
        return bad_input(problem, file, "is one of a pair (.hdr, .img); save it as one .nii file");
    if ((first || *second ? layouts[format].header_bytes : NIFTI_HEADER_1_BYTES) > available)
        return bad_input(problem, file, "is truncated inside its NIfTI header");
    if (!first && !*second)
        return bad_input(problem, file, "is not a NIfTI volume");
    header_reader r = {data, &layouts[format], false, file, problem};
    r.big_endian = begins_with_size(data, available, format, true);
    if (!r.big_endian && !begins_with_size(data, available, format, false))
        return bad_input(problem, file, "its header is broken: it does not begin with its size");
    size_t axes = 0;
    return check_sizes(&r, volume, &axes) && check_spacing(&r, axes, volume) &&
           check_scale(&r, volume) && check_type(&r, volume) && check_offset(&r, voxel_offset);
}
