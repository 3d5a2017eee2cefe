/* Where the things of one frame of a video are in the next. */
#ifndef DCRF_CLI_PRIOR_MOTION_H
#define DCRF_CLI_PRIOR_MOTION_H

#include "io/image.h"

typedef struct motion_step {
    int x, y;
} motion_step;

/* For every pixel of frame `to`, the step to the same thing in frame `from`; `steps` has room for
 * the pixels of a frame. False, and no steps, without memory. */
bool motion_find(const cli_image *video, size_t to, size_t from, motion_step *steps);

#endif
