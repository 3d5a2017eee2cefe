/* Geodesic distances:
 *
 *   g(a) = min over paths a = p_0, p_1, ..., p_n in S of sum_i length(p_i, p_i+1)
 *
 * for a set S of seeds, by Dijkstra's algorithm. The lengths are small integers, so the queue is a
 * ring of buckets, one per possible distance from the front (Dial: Algorithm 360: Shortest-Path
 * Forest with Topological Ordering. Communications of the ACM 12, 1969), and the time is linear. A
 * bucket is a doubly linked list threaded through two arrays with one number per variable: the
 * search allocates no memory.
 *
 * Neighbours share a side, an edge or a corner (8 in 2-D, 26 in 3-D). */
#include "scribble/geodesic.h"

#include "model/view.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define NOBODY UINT32_MAX
#define BUCKETS (DCRF_GEODESIC_MOST_LENGTH + 1) /* a power of two */

/* ---- neighbours ----------------------------------------------------------------------------- */

void dcrf_neighbourhood_of(const dcrf_grid *grid, struct dcrf_neighbourhood *neighbourhood) {
    const int reach[DCRF_MAX_AXES] = {1, grid->axes > 1, grid->axes > 2};
    const double least = dcrf_grid_least_spacing(grid);
    memset(neighbourhood, 0, sizeof *neighbourhood);
    for (int z = 0; z <= reach[2]; z++)
        for (int y = -reach[1]; y <= reach[1]; y++)
            for (int x = -1; x <= 1; x++) {
                /* Keep the neighbours of larger index. */
                if (z == 0 && (y < 0 || (y == 0 && x <= 0)))
                    continue;
                const int offset[DCRF_MAX_AXES] = {x, y, z};
                const size_t k = neighbourhood->steps++;
                double square = 0;
                for (size_t i = 0; i < grid->axes; i++) {
                    const double part = offset[i] * grid->spacing[i] / least;
                    square += part * part;
                }
                memcpy(neighbourhood->offset[k], offset, sizeof offset);
                neighbourhood->length[k] = sqrt(square);
                neighbourhood->distance[k] =
                    x + (ptrdiff_t)grid->size[0] * (y + (ptrdiff_t)grid->size[1] * z);
            }
}

/* ---- the queue ------------------------------------------------------------------------------ */

bool dcrf_geodesic_queue_init(struct dcrf_geodesic_queue *queue, struct dcrf_owned *owned,
                              size_t variables) {
    queue->head = dcrf_own(owned, BUCKETS, sizeof *queue->head);
    queue->next = dcrf_own(owned, variables, sizeof *queue->next);
    queue->previous = dcrf_own(owned, variables, sizeof *queue->previous);
    return !owned->is_short;
}

static void insert(struct dcrf_geodesic_queue *queue, uint32_t variable, uint32_t distance) {
    uint32_t *head = &queue->head[distance % BUCKETS];
    queue->next[variable] = *head;
    queue->previous[variable] = NOBODY;
    if (*head != NOBODY)
        queue->previous[*head] = variable;
    *head = variable;
}

static void withdraw(struct dcrf_geodesic_queue *queue, uint32_t variable, uint32_t distance) {
    const uint32_t next = queue->next[variable], previous = queue->previous[variable];
    if (next != NOBODY)
        queue->previous[next] = previous;
    if (previous != NOBODY)
        queue->next[previous] = next;
    else
        queue->head[distance % BUCKETS] = next;
}

/* ---- the search ----------------------------------------------------------------------------- */

struct search {
    const dcrf_grid *grid;
    const struct dcrf_neighbourhood *neighbourhood;
    const uint16_t *lengths;
    struct dcrf_geodesic_queue *queue;
    uint32_t *distances;
    size_t waiting;
};

static void relax(struct search *s, size_t variable, uint32_t distance) {
    const uint32_t before = s->distances[variable];
    if (distance >= before) /* also if beyond FAR */
        return;
    if (before != DCRF_GEODESIC_FAR)
        withdraw(s->queue, (uint32_t)variable, before);
    else
        s->waiting++;
    s->distances[variable] = distance;
    insert(s->queue, (uint32_t)variable, distance);
}

/* Is position + sign * offset on the grid? */
static bool is_inside(const dcrf_grid *grid, const size_t position[DCRF_MAX_AXES],
                      const int offset[DCRF_MAX_AXES], int sign) {
    for (size_t i = 0; i < grid->axes; i++)
        if (position[i] + (size_t)(ptrdiff_t)(sign * offset[i]) >= grid->size[i])
            return false; /* also if negative: the sum wraps around */
    return true;
}

static void visit(struct search *s, size_t a) {
    const struct dcrf_neighbourhood *n = s->neighbourhood;
    const dcrf_grid *grid = s->grid;
    const size_t x = a % grid->size[0], row = a / grid->size[0];
    const size_t position[DCRF_MAX_AXES] = {x, row % grid->size[1], row / grid->size[1]};
    const uint32_t distance = s->distances[a];
    bool is_inner = true;
    for (size_t i = 0; i < grid->axes; i++)
        is_inner = is_inner && position[i] > 0 && position[i] + 1 < grid->size[i];
    for (size_t k = 0; k < n->steps; k++) {
        if (is_inner || is_inside(grid, position, n->offset[k], 1))
            relax(s, a + (size_t)n->distance[k], distance + s->lengths[a * n->steps + k]);
        if (is_inner || is_inside(grid, position, n->offset[k], -1)) {
            const size_t b = a - (size_t)n->distance[k];
            relax(s, b, distance + s->lengths[b * n->steps + k]);
        }
    }
}

void dcrf_geodesic_distances(const dcrf_grid *grid, const struct dcrf_neighbourhood *neighbourhood,
                             const uint16_t *lengths, const int32_t *seeds, int32_t seed,
                             struct dcrf_geodesic_queue *queue, uint32_t *distances) {
    const size_t variables = grid->size[0] * grid->size[1] * grid->size[2];
    struct search s = {grid, neighbourhood, lengths, queue, distances, 0};
    memset(queue->head, 0xff, BUCKETS * sizeof *queue->head); /* NOBODY */
    for (size_t a = 0; a < variables; a++)
        distances[a] = DCRF_GEODESIC_FAR;
    for (size_t a = 0; a < variables; a++)
        if (seeds[a] == seed)
            relax(&s, a, 0);
    for (uint32_t front = 0; s.waiting > 0; front++) {
        uint32_t *head = &queue->head[front % BUCKETS];
        /* Variables that join the queue meanwhile are no nearer than the front. */
        while (*head != NOBODY) {
            const uint32_t a = *head;
            withdraw(queue, a, front);
            s.waiting--;
            visit(&s, a);
        }
    }
}
