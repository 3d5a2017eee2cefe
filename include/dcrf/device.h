/* Devices: where operators are built and applied, and where methods iterate.
 *
 * Everything runs on the CPU unless a workspace is given a device. Plans made with that workspace
 * then live on the device, and solvers iterate there. Their reports, stopping rules and proofs do
 * not change. docs/howto/gpu.md says what runs where.
 *
 *   dcrf_workspace_new(&workspace, 0, &error);
 *   dcrf_workspace_set_device(workspace, "cuda", &error);
 *   dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error);
 *
 * The code for a device is in a separate library (libdcrf-cuda), loaded on first use: from the
 * folder of this library, the loader's search path, or the path in the environment variable
 * DCRF_CUDA_LIBRARY.
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

/* The number of devices besides the CPU. The error says why there is none: no libdcrf-cuda, no
 * driver, a driver that is too old, or no device. */
DCRF_API dcrf_status dcrf_device_count(size_t *count, dcrf_error *error);
DCRF_API dcrf_status dcrf_device_describe(size_t index, dcrf_device_info *info, dcrf_error *error);

/* Use a device for everything planned with this workspace from now on: "cpu", "cuda" (the first
 * one) or "cuda:1". Existing plans stay where they are. On failure the workspace is unchanged. */
DCRF_API dcrf_status dcrf_workspace_set_device(dcrf_workspace *workspace, const char *device,
                                               dcrf_error *error);

/* The name of the workspace's device; "cpu" if it has none. */
DCRF_API const char *dcrf_workspace_device(const dcrf_workspace *workspace);

/* ---- arrays on a device, for dcrf/mean_field.h ---------------------------------------------- */

/* Where an array is: "cuda:0", or "cpu" for host memory. `name` has room for
 * DCRF_DEVICE_NAME_BYTES. */
DCRF_API dcrf_status dcrf_device_find(const void *data, char *name, dcrf_error *error);

/* Memory on the workspace's device. It may outlive the workspace, and any thread may free it.
 * Before that, other libraries' work on it must be done, or queued in the default stream. Device
 * memory allocated in any other way works as well. */
typedef struct dcrf_device_memory dcrf_device_memory;
DCRF_API dcrf_status dcrf_device_memory_new(dcrf_device_memory **memory, dcrf_workspace *workspace,
                                            size_t bytes, dcrf_error *error);
DCRF_API void dcrf_device_memory_free(dcrf_device_memory **memory);
DCRF_API void *dcrf_device_memory_data(const dcrf_device_memory *memory);

/* Copy between the host and the workspace's device, in either direction. Returns when the copy is
 * complete. */
DCRF_API dcrf_status dcrf_device_copy(dcrf_workspace *workspace, void *to, const void *from,
                                      size_t bytes, dcrf_error *error);

/* From now on all work of the workspace's device goes into `stream`, a cudaStream_t (NULL: the
 * default stream), which must outlive the workspace and all that is made with it. Calls that give
 * the host nothing return when their work is queued. */
DCRF_API dcrf_status dcrf_device_use_stream(dcrf_workspace *workspace, void *stream,
                                            dcrf_error *error);

/* Later work on the workspace's device waits for what is already queued in `stream`, a
 * cudaStream_t: (void *)1 is the default stream, (void *)2 that of the calling thread. */
DCRF_API dcrf_status dcrf_device_wait(dcrf_workspace *workspace, void *stream, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
