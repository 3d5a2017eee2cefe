/* A video that is solved in tiles: its frames, and the inputs of each, are read once and one at
 * a time, and stored as floats in temporary files, from which windows can be read in any order. */
#ifndef DCRF_CLI_LARGE_FRAMES_H
#define DCRF_CLI_LARGE_FRAMES_H

#include "large/inputs.h"

/* Open the colours of a folder of frames and, if they are in a folder too, the energies. */
bool large_frames_open(large_inputs *inputs, cli_problem *problem);

/* Are a video's energies in a folder, one array or map per frame? */
bool large_frames_have_energies(const large_inputs *inputs);

#endif
