/* Devices: where operators are planned and applied, and methods iterate.
 *
 * Everything runs on the CPU unless a workspace is given a device. Then plans that are made with
 * that workspace live on the device, and a solver iterates there; what it reports, how it stops
 * and what it proves do not change. docs/gpu.md says what runs where.
 *
 *   dcrf_workspace_new(&workspace, 0, &error);
 *   dcrf_workspace_set_device(workspace, "cuda", &error);
 *   dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error);
 *
 * The code for a device is in a library of its own (libdcrf-cuda), which is loaded when a device is
 * first asked for: next to this library, where the loader looks, or where the environment variable
 * DCRF_CUDA_LIBRARY says.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_DEVICE_H
#define DCRF_DEVICE_H

#include <dcrf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DCRF_DEVICE_NAME_BYTES 32
#define DCRF_DEVICE_DESCRIPTION_BYTES 128

typedef struct dcrf_device_info {
    char name[DCRF_DEVICE_NAME_BYTES];               /* for dcrf_workspace_set_device: "cuda:0" */
    char description[DCRF_DEVICE_DESCRIPTION_BYTES]; /* "NVIDIA H200, compute capability 9.0" */
    size_t memory_bytes;
    size_t free_bytes;
    unsigned char reserved[64];
} dcrf_device_info;

/* How many devices there are beside the CPU. An error says why there is none: no libdcrf-cuda, no
 * driver, one that is too old, no device. */
DCRF_API dcrf_status dcrf_device_count(size_t *count, dcrf_error *error);
DCRF_API dcrf_status dcrf_device_describe(size_t index, dcrf_device_info *info, dcrf_error *error);

/* Let what is planned with this workspace from now on be on a device: "cpu", "cuda" (the first one)
 * or "cuda:1". What was planned before stays where it is. On failure the workspace is as it was. */
DCRF_API dcrf_status dcrf_workspace_set_device(dcrf_workspace *workspace, const char *device,
                                               dcrf_error *error);

/* The name of the workspace's device: "cpu" where there is none. */
DCRF_API const char *dcrf_workspace_device(const dcrf_workspace *workspace);

/* ---- arrays on a device: what dcrf/mean_field.h takes and gives
 * ---------------------------------- */

/* Where an array is: "cuda:0", or "cpu" for memory of the host. `name` has room for
 * DCRF_DEVICE_NAME_BYTES. */
DCRF_API dcrf_status dcrf_device_find(const void *data, char *name, dcrf_error *error);

/* Memory on the device of a workspace, which need not outlive it; any thread may free it. What
 * other libraries do with it must be done by then, or be in the default stream. Memory that was
 * allocated in any other way is as good. */
typedef struct dcrf_device_memory dcrf_device_memory;
DCRF_API dcrf_status dcrf_device_memory_new(dcrf_device_memory **memory, dcrf_workspace *workspace,
                                            size_t bytes, dcrf_error *error);
DCRF_API void dcrf_device_memory_free(dcrf_device_memory **memory);
DCRF_API void *dcrf_device_memory_data(const dcrf_device_memory *memory);

/* Copy between the host and the workspace's device, either way; comes back when it is done. */
DCRF_API dcrf_status dcrf_device_copy(dcrf_workspace *workspace, void *to, const void *from,
                                      size_t bytes, dcrf_error *error);

/* Let what is asked of the workspace's device from now on wait for what is in a stream now: a
 * cudaStream_t; (void *)1 is the default stream, (void *)2 that of the calling thread. */
DCRF_API dcrf_status dcrf_device_wait(dcrf_workspace *workspace, void *stream, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
