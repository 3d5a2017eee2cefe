/* A grid of pictures: one row per image with the results of each method, and the ground truth. */
#ifndef DCRF_CLI_DATASET_PICTURE_GRID_H
#define DCRF_CLI_DATASET_PICTURE_GRID_H

#include "dataset/summary.h"

/* Write up to `images` images that have results, those that change most first, as SVG: a file of
 * its own or part of a page. `file` is for messages. */
bool picture_grid_write(FILE *stream, const char *file, const summary *found, const store *results,
                        const method_list *methods, size_t images, bool own_file,
                        cli_problem *problem);

#endif
