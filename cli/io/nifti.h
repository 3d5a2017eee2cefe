/* Volumes in the format NIfTI-1 or NIfTI-2, in one file (.nii), compressed or not (.nii.gz).
 *
 * The header is interpreted and made by Debian's nifti library; the voxels are read and written
 * here, from and to memory, so that nothing of the library's own input and output is used. Voxel
 * (x, y, z) of channel c (the fourth axis) has the index ((c * depth + z) * height + y) * width +
 * x.
 */
#ifndef DCRF_CLI_IO_NIFTI_H
#define DCRF_CLI_IO_NIFTI_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Where a volume lies in space, and all else that its header says. */
typedef struct nifti_geometry nifti_geometry;

typedef struct nifti_volume {
    size_t size[3]; /* x, y, z */
    size_t channels;
    size_t count;         /* of numbers: voxels times channels */
    double spacing_mm[3]; /* as stored where the header does not say the unit */
    int datatype;         /* of the library: DT_... */
    size_t item_bytes;
    bool big_endian;
    double slope; /* value = slope * stored + intercept */
    double intercept;
    const uint8_t *voxels; /* inside the bytes that were parsed, or in `inflated` */
    uint8_t *inflated;
    size_t voxel_offset; /* of the file when it is unpacked */
    nifti_geometry *geometry;
} nifti_volume;

/* Does the file begin like one, or like any compressed file? */
bool nifti_recognize(const uint8_t *data, size_t size);

/* Read the header and find the voxels; `file` is for messages. The bytes must outlive the volume.
 */
bool nifti_parse(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                 cli_problem *problem);

/* The same in two steps, so that a size that is not wanted is refused before voxels are unpacked.
 */
bool nifti_parse_header(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                        cli_problem *problem);
bool nifti_parse_voxels(const uint8_t *data, size_t size, const char *file, nifti_volume *volume,
                        cli_problem *problem);
void nifti_free(nifti_volume *volume);

/* "120 x 150 x 100 voxels", with the channels where there is more than one. */
#define NIFTI_TEXT_BYTES 96
const char *nifti_size_text(const nifti_volume *volume, char text[NIFTI_TEXT_BYTES]);

bool nifti_holds_integers(const nifti_volume *volume);

/* All numbers in the order of the file, scaled as the header says; to be freed. NaN and infinity
 * pass. */
bool nifti_to_floats(const nifti_volume *volume, const char *file, float **floats,
                     cli_problem *problem);

/* The same for whole numbers, each of which must fit 32 bits. */
bool nifti_to_integers(const nifti_volume *volume, const char *file, int32_t **integers,
                       cli_problem *problem);

/* Take the geometry out of a volume, to write others like it; to be freed. */
nifti_geometry *nifti_take_geometry(nifti_volume *volume);
void nifti_geometry_free(nifti_geometry **geometry);

/* Does this name end like a NIfTI file's? */
bool nifti_is_name(const char *path);

/* Write a volume of the same geometry: floats of 1 or more channels, or labels in 8 bits, or 16
 * where one is above 255. It is compressed where the name of the file ends in .gz. Errors of the
 * stream show up when it is closed. */
bool nifti_write_floats(FILE *stream, const char *file, const nifti_geometry *geometry,
                        const float *floats, size_t channels, cli_problem *problem);
bool nifti_write_labels(FILE *stream, const char *file, const nifti_geometry *geometry,
                        const uint16_t *labels, cli_problem *problem);

#endif
