/* Maps of one whole number a pixel (labels, regions): grey or indexed PNG, or .npy. */
#ifndef DCRF_CLI_IO_LABEL_MAP_H
#define DCRF_CLI_IO_LABEL_MAP_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

/* Read a map of width x height numbers, rows from the top; *numbers is to be freed. */
bool label_map_read(const char *path, size_t width, size_t height, int32_t **numbers,
                    cli_problem *problem);

#endif
