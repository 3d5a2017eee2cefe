#include "io/gzip.h"
#include "io/nifti_geometry.h"
#include "io/number_bits.h"

#include <stdlib.h>
#include <string.h>

/* Four zero bytes after the header: no extensions. */
enum { NO_EXTENSIONS_BYTES = 4 };

static bool ends_with(const char *path, const char *ending) {
    const size_t length = strlen(path), ending_length = strlen(ending);
    return length > ending_length && strcmp(path + length - ending_length, ending) == 0;
}

bool nifti_is_name(const char *path) {
    return ends_with(path, ".nii") || ends_with(path, ".nii.gz");
}

/* The header of a volume like `geometry` with other voxels. The copy shares its pointers'
 * targets, so it is not freed. */
static nifti_image describe(const nifti_geometry *geometry, int datatype, size_t channels) {
    nifti_image image = *geometry->image;
    const int64_t axes = channels > 1 ? 4 : image.dim[0] < 3 ? image.dim[0] : 3;
    for (int64_t axis = 1; axis <= 7; axis++)
        if (axis > axes || axis > image.dim[0])
            image.dim[axis] = 1;
    image.dim[0] = axes;
    image.dim[4] = (int64_t)channels;
    image.ndim = axes;
    image.nx = image.dim[1];
    image.ny = image.dim[2];
    image.nz = image.dim[3];
    image.nt = image.dim[4];
    image.nu = image.nv = image.nw = 1;
    image.nvox = image.nx * image.ny * image.nz * image.nt;
    image.datatype = datatype;
    nifti_datatype_sizes(datatype, &image.nbyper, &image.swapsize);
    image.scl_slope = 1;
    image.scl_inter = 0;
    image.cal_min = image.cal_max = 0;
    image.intent_code = NIFTI_INTENT_NONE;
    /* How the original was acquired says nothing about this volume. */
    image.slice_code = image.slice_dim = image.freq_dim = image.phase_dim = 0;
    image.slice_start = image.slice_end = 0;
    image.slice_duration = image.toffset = 0;
    image.num_ext = 0;
    image.ext_list = NULL;
    image.data = NULL;
    return image;
}

static bool fits_nifti_1(const nifti_image *image) {
    for (size_t axis = 1; axis <= 4; axis++)
        if (image->dim[axis] > INT16_MAX)
            return false;
    return true;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Both byte orders are allowed. Files are little-endian on every machine, so that their bytes
 * are the same; the library creates headers in the machine's byte order. */

/* Consecutive numbers of a header that have the same size. */
typedef struct number_row {
    size_t offset, bytes, count;
} number_row;

enum { NUMBER_ROWS_MAX = 11 };

static const number_row header_numbers[2][NUMBER_ROWS_MAX] = {
    {{0, 4, 1},   /* its own size */
     {32, 4, 1},  /* extents */
     {36, 2, 1},  /* session_error */
     {40, 2, 8},  /* dim */
     {56, 4, 3},  /* intent_p1 to p3 */
     {68, 2, 4},  /* intent_code, datatype, bitpix, slice_start */
     {76, 4, 11}, /* pixdim, vox_offset, scl_slope, scl_inter */
     {120, 2, 1}, /* slice_end */
     {124, 4, 6}, /* cal_max to glmin */
     {252, 2, 2}, /* qform_code, sform_code */
     {256, 4, 18} /* quatern_b to srow_z */},
    {{0, 4, 1},    /* its own size */
     {12, 2, 2},   /* datatype, bitpix */
     {16, 8, 28},  /* dim to slice_end */
     {344, 4, 2},  /* qform_code, sform_code */
     {352, 8, 18}, /* quatern_b to srow_z */
     {496, 4, 3} /* slice_code, xyzt_units, intent_code */},
};

static void make_header_little_endian(void *header, bool second) {
    for (size_t i = 0; i < NUMBER_ROWS_MAX; i++) {
        const number_row row = header_numbers[second][i];
        number_make_little_endian((uint8_t *)header + row.offset, row.bytes, row.count);
    }
}

/* *copy is NULL if the voxels can be written as they are. */
static bool copy_little_endian(const void *voxels, const nifti_image *image, const char *file,
                               void **copy, cli_problem *problem) {
    const size_t count = (size_t)image->nvox, bytes = (size_t)image->nbyper;
    *copy = NULL;
    if (bytes == 1 || !number_machine_is_big_endian())
        return true;
    *copy = malloc(count * bytes);
    if (!*copy)
        return out_of_memory(problem, file);
    memcpy(*copy, voxels, count * bytes);
    number_make_little_endian(*copy, bytes, count);
    return true;
}

static bool write_parts(FILE *stream, const char *file, const gzip_part *parts, size_t count,
                        cli_problem *problem) {
    if (ends_with(file, ".gz"))
        return gzip_write(stream, file, parts, count, problem);
    for (size_t i = 0; i < count; i++)
        fwrite(parts[i].data, 1, parts[i].bytes, stream);
    return true;
}

typedef union stored_header {
    nifti_1_header first;
    nifti_2_header second;
} stored_header;

/* In the format of the original, unless that cannot hold the size; returns its size in bytes, 0
 * on failure. */
static size_t make_header(const nifti_geometry *geometry, nifti_image *image,
                          stored_header *header) {
    const bool second = geometry->second || !fits_nifti_1(image);
    const size_t bytes = second ? sizeof header->second : sizeof header->first;
    memset(header, 0, sizeof *header);
    image->nifti_type = second ? NIFTI_FTYPE_NIFTI2_1 : NIFTI_FTYPE_NIFTI1_1;
    image->iname_offset = (int64_t)(bytes + NO_EXTENSIONS_BYTES);
    if ((second ? nifti_convert_nim2n2hdr(image, &header->second)
                : nifti_convert_nim2n1hdr(image, &header->first)) != 0)
        return 0;
    if (second)
        header->second.vox_offset = image->iname_offset;
    else
        header->first.vox_offset = (float)image->iname_offset;
    make_header_little_endian(header, second);
    return bytes;
}

static bool write_volume(FILE *stream, const char *file, const nifti_geometry *geometry,
                         nifti_image *image, const void *voxels, cli_problem *problem) {
    static const uint8_t no_extensions[NO_EXTENSIONS_BYTES];
    stored_header header;
    const size_t header_bytes = make_header(geometry, image, &header);
    if (header_bytes == 0)
        return failure(problem, file, "its NIfTI header cannot be made");
    void *copy = NULL;
    if (!copy_little_endian(voxels, image, file, &copy, problem))
        return false;
    const gzip_part parts[] = {
        {&header, header_bytes},
        {no_extensions, sizeof no_extensions},
        {copy ? copy : voxels, (size_t)image->nvox * (size_t)image->nbyper},
    };
    const bool done = write_parts(stream, file, parts, sizeof parts / sizeof parts[0], problem);
    free(copy);
    return done;
}

bool nifti_write_floats(FILE *stream, const char *file, const nifti_geometry *geometry,
                        const float *floats, size_t channels, cli_problem *problem) {
    nifti_image image = describe(geometry, DT_FLOAT32, channels);
    return write_volume(stream, file, geometry, &image, floats, problem);
}

bool nifti_write_labels(FILE *stream, const char *file, const nifti_geometry *geometry,
                        const uint16_t *labels, cli_problem *problem) {
    nifti_image image = describe(geometry, DT_UINT16, 1);
    const size_t count = (size_t)image.nvox;
    bool wide = false;
    for (size_t i = 0; i < count; i++)
        wide |= labels[i] > UINT8_MAX;
    if (wide)
        return write_volume(stream, file, geometry, &image, labels, problem);
    image = describe(geometry, DT_UINT8, 1);
    uint8_t *narrow = malloc(count);
    if (!narrow)
        return out_of_memory(problem, file);
    for (size_t i = 0; i < count; i++)
        narrow[i] = (uint8_t)labels[i];
    const bool done = write_volume(stream, file, geometry, &image, narrow, problem);
    free(narrow);
    return done;
}
