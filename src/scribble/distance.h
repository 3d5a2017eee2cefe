/* Euclidean distances to the pixels of a label. */
#ifndef DCRF_SCRIBBLE_DISTANCE_H
#define DCRF_SCRIBBLE_DISTANCE_H

#include "core/threads.h"

#include <dcrf/grid.h>
#include <stdint.h>

/* Scratch memory for one line per worker of a pool. */
struct dcrf_distance_lines {
    size_t longest;
    double *memory;
};

/* False: out of memory; nothing is left to clear. */
int dcrf_distance_lines_init(struct dcrf_distance_lines *lines, const dcrf_grid *grid,
                             dcrf_pool *pool);
void dcrf_distance_lines_clear(struct dcrf_distance_lines *lines);

/* distances[a]: from variable a to the nearest b with map[b] == label, in the unit of the grid's
 * spacing; HUGE_VALF everywhere if there is none. */
void dcrf_distances_to(const dcrf_grid *grid, const int32_t *map, int32_t label,
                       const struct dcrf_distance_lines *lines, dcrf_pool *pool, float *distances);

#endif
