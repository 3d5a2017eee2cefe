/* The header of a NIfTI file as it is stored, checked.
 *
 * The library repairs broken headers and prints messages, so it only receives headers that have
 * been checked here. */
#ifndef DCRF_CLI_IO_NIFTI_HEADER_H
#define DCRF_CLI_IO_NIFTI_HEADER_H

#include "io/nifti.h"

enum { NIFTI_HEADER_1_BYTES = 348, NIFTI_HEADER_2_BYTES = 540 };

/* Does the file begin like a NIfTI file? So do truncated files and the halves of .hdr/.img
 * pairs. */
bool nifti_header_recognize(const uint8_t *data, size_t size);

/* Check the header, of which `available` bytes were read, and fill in the volume except for its
 * voxels and its geometry. *second: it is NIfTI-2. */
bool nifti_header_check(const uint8_t *data, size_t available, const char *file,
                        nifti_volume *volume, size_t *voxel_offset, bool *second,
                        cli_problem *problem);

#endif
