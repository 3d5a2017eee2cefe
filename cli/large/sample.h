/* What must be known about a large image before its tiles are solved, and must be the same in
 * all of them, estimated from a sample of small windows: the kind of the unaries, the strength
 * of the kernels, and the memory per pixel. The sample is the same in every run. */
#ifndef DCRF_CLI_LARGE_SAMPLE_H
#define DCRF_CLI_LARGE_SAMPLE_H

#include "large/inputs.h"

/* Determine the kind of an array, measure the strength and give the kernels their weights.
 * `built` gets a workspace, a model of the sample (with the labels and the weights in force),
 * kernels without an image, and classes; its image is the large one, which the inputs still own. */
bool large_sample_take(large_inputs *inputs, time_frame time, built_model *built,
                       cli_problem *problem);

/* The largest possible number of lattice vertices per pixel: one per corner of its simplex. */
#define MOST_VERTICES(features) ((double)(features) + 1)

/* The largest number of lattice vertices per pixel in a window of the image; 0: no lattice is
 * used. If the time is over, the upper bound above. */
bool large_sample_vertices(const large_inputs *inputs, const built_model *built, double *vertices,
                           cli_problem *problem);

#endif
