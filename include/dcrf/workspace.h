/* Threads, scratch memory and limits.
 *
 * A workspace belongs to one caller at a time: a call that finds it in use by another thread fails.
 * Models, plans and operators may be shared between threads.
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

/* threads = 0: one for each core. Results do not depend on the number of threads. */
DCRF_API dcrf_status dcrf_workspace_new(dcrf_workspace **workspace, size_t threads,
                                        dcrf_error *error);
DCRF_API void dcrf_workspace_free(dcrf_workspace **workspace);
DCRF_API size_t dcrf_workspace_threads(const dcrf_workspace *workspace);
DCRF_API size_t dcrf_workspace_bytes(const dcrf_workspace *workspace);

/* Let whatever is done with the workspace end early: `time_limit_s` seconds from now (0: no limit),
 * or when `cancel` (NULL: none) returns something other than 0. It is asked again and again by the
 * thread that makes the call. A run that has a labelling then stops with it (DCRF_STOP_TIME,
 * DCRF_STOP_CANCELLED), besides what its own settings say; a call that has nothing to give fails
 * with DCRF_ERROR_INTERRUPTED, and what it was to write is unspecified. A workspace begins without
 * limits, and two calls of this replace each other. */
DCRF_API void dcrf_workspace_set_limit(dcrf_workspace *workspace, double time_limit_s,
                                       int (*cancel)(void *user), void *cancel_user);

/* Give back the memory that the library keeps for later: large blocks that were freed, up to half a
 * gigabyte per process. Safe at any time, from any thread. */
DCRF_API void dcrf_trim_memory(void);

#ifdef __cplusplus
}
#endif
#endif
