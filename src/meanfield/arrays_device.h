/* Arrays to arrays on a device: what arrays.c and arrays_device.c share. */
#ifndef DCRF_MEANFIELD_ARRAYS_DEVICE_H
#define DCRF_MEANFIELD_ARRAYS_DEVICE_H

#include "backend/device.h"

#include <dcrf/mean_field.h>

/* Checked problems that differ only in their arrays. */
struct dcrf_batch {
    dcrf_workspace *workspace;
    const struct dcrf_device *device;
    const dcrf_arrays *arrays;
    size_t count;
    size_t variables; /* per problem */
};

dcrf_status dcrf_arrays_run_on_device(const struct dcrf_batch *batch, dcrf_error *error);

/* "the image of kernel 1" */
#define DCRF_ARRAYS_NAME_BYTES 48
void dcrf_arrays_image_name(size_t kernel, char name[DCRF_ARRAYS_NAME_BYTES]);

#endif
