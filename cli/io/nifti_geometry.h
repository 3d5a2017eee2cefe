/* The internals of a geometry, for the reader and the writer. */
#ifndef DCRF_CLI_IO_NIFTI_GEOMETRY_H
#define DCRF_CLI_IO_NIFTI_GEOMETRY_H

#include "io/nifti.h"

#include <nifti2_io.h>

struct nifti_geometry {
    nifti_image *image; /* a header without voxels */
    bool second;        /* NIfTI-2 */
};

#endif
