/* The device of a workspace. */
#ifndef DCRF_BACKEND_DEVICE_H
#define DCRF_BACKEND_DEVICE_H

#include "backend/backend.h"

struct dcrf_device {
    struct dcrf_operator_source source; /* first: found by the workspace's slot */
    const struct dcrf_backend *backend;
    dcrf_backend_device *opened;
    size_t index;
    char name[DCRF_DEVICE_NAME_BYTES];
};

/* The table of the workspace's backend, and the device to use it with (NULL: the CPU). */
const struct dcrf_backend *dcrf_workspace_backend(const dcrf_workspace *workspace,
                                                  dcrf_backend_device **device);

/* NULL: the CPU. */
const struct dcrf_device *dcrf_workspace_find_device(const dcrf_workspace *workspace);

#endif
