#include "io/gzip.h"
#include "io/nifti_geometry.h"

#include <stdlib.h>
#include <string.h>

/* After the header come four bytes, zero: there are no extensions. */
enum { NO_EXTENSIONS_BYTES = 4 };

static bool ends_with(const char *path, const char *ending) {
    const size_t length = strlen(path), ending_length = strlen(ending);
    return length > ending_length && strcmp(path + length - ending_length, ending) == 0;
}

bool nifti_is_name(const char *path) {
    return ends_with(path, ".nii") || ends_with(path, ".nii.gz");
}

/* The header of a volume like `geometry` with other voxels. The copy shares what pointers point
 * to, so it is not freed. */
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
    /* What tells how the original was recorded says nothing of this volume. */
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

static bool write_volume(FILE *stream, const char *file, const nifti_geometry *geometry,
                         nifti_image *image, const void *voxels, cli_problem *problem) {
    struct {
        union {
            nifti_1_header first;
            nifti_2_header second;
        } header;
        uint8_t no_extensions[NO_EXTENSIONS_BYTES];
    } start;
    memset(&start, 0, sizeof start);
    /* In the format of the original, unless that cannot hold the size. */
    const bool first = !geometry->second && fits_nifti_1(image);
    const size_t header_bytes = first ? sizeof start.header.first : sizeof start.header.second;
    image->nifti_type = first ? NIFTI_FTYPE_NIFTI1_1 : NIFTI_FTYPE_NIFTI2_1;
    image->iname_offset = (int64_t)(header_bytes + NO_EXTENSIONS_BYTES);
    const int status = first ? nifti_convert_nim2n1hdr(image, &start.header.first)
                             : nifti_convert_nim2n2hdr(image, &start.header.second);
    if (status != 0)
        return failure(problem, file, "its NIfTI header cannot be made");
    if (first)
        start.header.first.vox_offset = (float)image->iname_offset;
    else
        start.header.second.vox_offset = image->iname_offset;
    const gzip_part parts[] = {
        {&start, header_bytes},
        {start.no_extensions, NO_EXTENSIONS_BYTES},
        {voxels, (size_t)image->nvox * (size_t)image->nbyper},
    };
    enum { PARTS = sizeof parts / sizeof parts[0] };
    if (ends_with(file, ".gz"))
        return gzip_write(stream, file, parts, PARTS, problem);
    for (size_t i = 0; i < PARTS; i++)
        fwrite(parts[i].data, 1, parts[i].bytes, stream);
    return true;
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
