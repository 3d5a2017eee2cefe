/* Label maps as a source of unary energies. */
#ifndef DCRF_CLI_PRIOR_MAP_H
#define DCRF_CLI_PRIOR_MAP_H

#include "model/unary.h"

#include <dcrf/workspace.h>

/* A map that has been read and inspected. */
typedef struct prior_map {
    int32_t *numbers;  /* as stored; prior_label interprets them */
    int32_t *refined;  /* of a video: the same with the borders of single frames; may be NULL */
    float *confidence; /* NULL: the same for all pixels; 1: the label is certain */
    size_t labels;
} prior_map;

/* `workspace`: to refine the maps of a video before they are carried on; may be NULL. */
bool prior_map_read(const unary_options *options, const cli_image *image, dcrf_workspace *workspace,
                    prior_map *map, unary_facts *facts, cli_problem *problem);
void prior_map_free(prior_map *map);

/* Record the colours that the map's picture gives its labels, if it has a palette. */
void prior_keep_palette(const char *file, unary_facts *facts);

/* Convert numbers to energies, the labels of a pixel next to each other. `confidence` may be
 * NULL. */
void prior_energies(const unary_options *options, const unary_facts *facts, const int32_t *numbers,
                    const float *confidence, size_t pixels, size_t labels, float *energies);

#endif
