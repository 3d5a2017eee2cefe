/* A grid of pictures: an image a row, then what each method made of it, and the truth. */
#ifndef DCRF_CLI_DATASET_PICTURE_GRID_H
#define DCRF_CLI_DATASET_PICTURE_GRID_H

#include "dataset/summary.h"

/* Write the first `images` images that have results, as SVG: a file of its own or a part of a
 * page. `file` is for messages. */
bool picture_grid_write(FILE *stream, const char *file, const summary *found, const store *results,
                        const method_list *methods, size_t images, bool own_file,
                        cli_problem *problem);

#endif
