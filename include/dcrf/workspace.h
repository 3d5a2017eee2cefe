/* Threads, scratch memory and limits.
 *
 * One thread at a time may use a workspace: a call fails if another thread is using it. Threads may
 * share models, plans and operators.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_WORKSPACE_H
#define DCRF_WORKSPACE_H

#include <dcrf/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrf_workspace dcrf_workspace;

/* threads = 0: one per core. Results do not depend on the number of threads. */
DCRF_API dcrf_status dcrf_workspace_new(dcrf_workspace **workspace, size_t threads,
                                        dcrf_error *error);
DCRF_API void dcrf_workspace_free(dcrf_workspace **workspace);
DCRF_API size_t dcrf_workspace_threads(const dcrf_workspace *workspace);
DCRF_API size_t dcrf_workspace_bytes(const dcrf_workspace *workspace);

/* Stop calls that use the workspace after `time_limit_s` seconds of wall time from now (0: no
 * limit), or when `cancel` (NULL: none) returns nonzero. The calling thread calls `cancel` often. A
 * run that has a labelling then stops with it (DCRF_STOP_TIME, DCRF_STOP_CANCELLED), in addition to
 * the limits of its own settings. Any other call fails with DCRF_ERROR_INTERRUPTED, and its outputs
 * are unspecified. A new workspace has no limits; each call replaces the previous ones. */
DCRF_API void dcrf_workspace_set_limit(dcrf_workspace *workspace, double time_limit_s,
                                       int (*cancel)(void *user), void *cancel_user);

/* Release what the library keeps for reuse: freed large blocks, up to half a gigabyte per process,
 * and the threads of up to four workspaces that have been freed. Safe at any time, from any thread.
 */
DCRF_API void dcrf_trim_memory(void);

#ifdef __cplusplus
}
#endif
#endif
