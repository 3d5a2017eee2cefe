/* Geodesic distances over a grid: how far a variable is from the nearest of a set of seeds, along
 * paths from neighbour to neighbour whose steps have lengths. */
#ifndef DCRF_SCRIBBLE_GEODESIC_H
#define DCRF_SCRIBBLE_GEODESIC_H

#include "core/threads.h"

#include <dcrf/grid.h>
#include <stdint.h>

/* Half of the neighbours, the ones that come later: 1, 4 or 13 for 1, 2 or 3 axes. A step to one of
 * the others has its length stored there. */
#define DCRF_GEODESIC_MOST_STEPS 13

/* Lengths are integers from 1 to this, so that distances are exact sums. */
#define DCRF_GEODESIC_MOST_LENGTH 16383

/* As far as distances count: 8192 of the longest steps. */
#define DCRF_GEODESIC_FAR ((uint32_t)1 << 27)

struct dcrf_neighbourhood {
    size_t steps;
    int offset[DCRF_GEODESIC_MOST_STEPS][DCRF_MAX_AXES];
    ptrdiff_t distance[DCRF_GEODESIC_MOST_STEPS]; /* between indices */
    double length[DCRF_GEODESIC_MOST_STEPS];      /* Euclidean, with the spacing of the grid, the
                                                   * least spacing being 1 */
};

void dcrf_neighbourhood_of(const dcrf_grid *grid, struct dcrf_neighbourhood *neighbourhood);

/* Scratch memory of one search over a grid. */
struct dcrf_geodesic_queue {
    uint32_t *head; /* of the list of each bucket */
    uint32_t *next, *previous;
};

/* False: out of memory; nothing is left to clear. */
int dcrf_geodesic_queue_init(struct dcrf_geodesic_queue *queue, size_t variables);
void dcrf_geodesic_queue_clear(struct dcrf_geodesic_queue *queue);

/* The step from variable a to its neighbour a + distance[k] has the length lengths[a *
 * neighbourhood->steps + k]; those that lead out of the grid are not looked at. seeds[a] ==
 * seed: a seed. `distances` has room for one number per variable; DCRF_GEODESIC_FAR where there
 * is no seed at all, or none nearer. */
void dcrf_geodesic_distances(const dcrf_grid *grid, const struct dcrf_neighbourhood *neighbourhood,
                             const uint16_t *lengths, const int32_t *seeds, int32_t seed,
                             struct dcrf_geodesic_queue *queue, uint32_t *distances);

#endif
