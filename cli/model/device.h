/* The device that kernels and methods run on: its option, and workspaces on it. */
#ifndef DCRF_CLI_MODEL_DEVICE_H
#define DCRF_CLI_MODEL_DEVICE_H

#include "args/options.h"

#include <dcrf/device.h>

/* The option --device, for settings that are kernel_options. Commands without this group leave
 * the device NULL, which means the CPU. */
extern const cli_option device_option_table[];

/* A workspace with this many threads (0: one per core) on this device (NULL: the CPU). */
bool workspace_start(dcrf_workspace **workspace, size_t threads, const char *device,
                     cli_problem *problem);

/* The same for worker number `place` of several: if the device is "cuda" without a number and
 * there is more than one, workers take them in turn. */
bool workspace_start_in_turn(dcrf_workspace **workspace, size_t threads, const char *device,
                             size_t place, cli_problem *problem);

/* Is the device available? For commands that create their workspaces late. */
bool device_check(const char *device, cli_problem *problem);

/* The name of a workspace's device, or NULL if that is the CPU. */
const char *device_to_tell(const dcrf_workspace *workspace);

#endif
