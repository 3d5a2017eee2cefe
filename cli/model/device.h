/* The device that kernels and methods run on: its option, and workspaces that have it. */
#ifndef DCRF_CLI_MODEL_DEVICE_H
#define DCRF_CLI_MODEL_DEVICE_H

#include "args/options.h"

#include <dcrf/device.h>

/* The option --device, for settings that are kernel_options. The commands that have no such group
 * leave the device NULL, which is the CPU. */
extern const cli_option device_option_table[];

/* A workspace with this many threads (0: one for each core) on this device (NULL: the CPU). */
bool workspace_start(dcrf_workspace **workspace, size_t threads, const char *device,
                     cli_problem *problem);

/* The same for worker number `place` of several: where the device is "cuda" without a number and
 * there are several, workers take them in turn. */
bool workspace_start_in_turn(dcrf_workspace **workspace, size_t threads, const char *device,
                             size_t place, cli_problem *problem);

/* Is the device there? For commands that make their workspaces late. */
bool device_check(const char *device, cli_problem *problem);

/* The name of a workspace's device where that is not the CPU, NULL where it is. */
const char *device_to_tell(const dcrf_workspace *workspace);

#endif
