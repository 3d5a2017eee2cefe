/* The header of a NIfTI file as it is stored, checked.
 *
 * The library repairs and prints where a header is broken, so it only gets to see headers that have
 * passed here. */
#ifndef DCRF_CLI_IO_NIFTI_HEADER_H
#define DCRF_CLI_IO_NIFTI_HEADER_H

#include "io/nifti.h"

enum { NIFTI_HEADER_1_BYTES = 348, NIFTI_HEADER_2_BYTES = 540 };

/* Does the file begin like one? Truncated files and the halves of pairs do too. */
bool nifti_header_recognize(const uint8_t *data, size_t size);

/* Check the header, of which `there` bytes are there, and fill in the volume but for its voxels and
 * its geometry. *second: it is in the format NIfTI-2. */
bool nifti_header_check(const uint8_t *data, size_t there, const char *file, nifti_volume *volume,
                        size_t *voxel_offset, bool *second, cli_problem *problem);

#endif
