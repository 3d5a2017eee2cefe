/* A folder of frames as an image with a time axis. */
#ifndef DCRF_CLI_IO_VIDEO_H
#define DCRF_CLI_IO_VIDEO_H

#include "io/image.h"

/* Read the pictures of a folder, which must have the same size; image->frames has their names. */
bool video_read(const char *folder, cli_image *image, cli_problem *problem);

/* The names of the frames and their size, from the header of the first; no colours. */
bool video_measure(const char *folder, cli_image *video, cli_problem *problem);

/* Read one frame, which must have the size of the first. */
bool video_read_frame(const cli_image *video, size_t index, cli_image *frame, cli_problem *problem);

/* One frame as a photograph; the video owns its colours. */
cli_image video_frame(const cli_image *video, size_t frame);

#endif
