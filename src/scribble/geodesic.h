/* Geodesic distances on a grid: from each variable to the nearest of a set of seeds, along paths
 * from neighbour to neighbour whose steps have given lengths. */
#ifndef DCRF_SCRIBBLE_GEODESIC_H
#define DCRF_SCRIBBLE_GEODESIC_H

#include "core/owned.h"
#include "core/threads.h"

#include <dcrf/grid.h>
#include <stdint.h>

/* The neighbours of larger index, half of all: 1, 4 or 13 for 1, 2 or 3 axes. The length of a step
 * to any other neighbour is stored at that neighbour. */
#define DCRF_GEODESIC_MOST_STEPS 13

/* Lengths are integers from 1 to this, so that distances are exact sums. */
#define DCRF_GEODESIC_MOST_LENGTH 16383

/* Distances are capped at this: 8192 of the longest steps. */
#define DCRF_GEODESIC_FAR ((uint32_t)1 << 27)

struct dcrf_neighbourhood {
    size_t steps;
    int offset[DCRF_GEODESIC_MOST_STEPS][DCRF_MAX_AXES];
    ptrdiff_t distance[DCRF_GEODESIC_MOST_STEPS]; /* between indices */
    double length[DCRF_GEODESIC_MOST_STEPS];      /* in units of the smallest spacing */
};

void dcrf_neighbourhood_of(const dcrf_grid *grid, struct dcrf_neighbourhood *neighbourhood);

/* Scratch memory for one search over a grid. */
struct dcrf_geodesic_queue {
    uint32_t *head; /* of the list of each bucket */
    uint32_t *next, *previous;
};

/* False: out of memory. */
bool dcrf_geodesic_queue_init(struct dcrf_geodesic_queue *queue, struct dcrf_owned *owned,
                              size_t variables);

/* The step from variable a to its neighbour a + distance[k] has the length lengths[a *
 * neighbourhood->steps + k]; steps that lead out of the grid are ignored. Variables with seeds[a]
 * == seed are seeds. `distances` has room for one number per variable; it is DCRF_GEODESIC_FAR
 * where no seed is nearer than that. */
void dcrf_geodesic_distances(const dcrf_grid *grid, const struct dcrf_neighbourhood *neighbourhood,
                             const uint16_t *lengths, const int32_t *seeds, int32_t seed,
                             struct dcrf_geodesic_queue *queue, uint32_t *distances);

#endif
