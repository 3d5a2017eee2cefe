/* What has to be known of a large image before its tiles are solved, and must be the same in all of
 * them, from a sample of small windows: what the unaries are, how strong the kernels should be, and
 * how much memory a pixel takes. The sample is the same in every run. */
#ifndef DCRF_CLI_LARGE_SAMPLE_H
#define DCRF_CLI_LARGE_SAMPLE_H

#include "large/inputs.h"

/* Settle the kind of an array, measure the strength and give the kernels their weights. `built`
 * gets a workspace, a model of the sample (with the labels and the weights in force), kernels
 * without an image, and classes; its image is the large one, which stays that of the inputs. */
bool large_sample_take(large_inputs *inputs, time_frame time, built_model *built,
                       cli_problem *problem);

/* The most vertices per pixel that a lattice can have: one for every corner of its simplex. */
#define MOST_VERTICES(features) ((double)(features) + 1)

/* The most lattice vertices per pixel that a window of the image has; 0: no lattice is used.
 * Where the time is over, the most that it can have. */
bool large_sample_vertices(const large_inputs *inputs, const built_model *built, double *vertices,
                           cli_problem *problem);

#endif
