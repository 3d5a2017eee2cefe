/* Lattices by plain programs: points embedded one at a time, and vertices in a sorted list.
 *
 * Which simplex holds a point is decided by rounding, so the programs for one point do the same
 * operations in the same order as those that take many. */
#ifndef DCRF_TESTS_LATTICE_ORACLE_H
#define DCRF_TESTS_LATTICE_ORACLE_H

#include "filter/lattice/lattice.h"

struct point {
    int64_t origin[DCRF_MAX_CORNERS];
    int rank[DCRF_MAX_CORNERS];
    float weight[DCRF_MAX_CORNERS];
};

/* Says whether the point fits. */
bool embed_one(bool is_single, size_t d, const float *feature, struct point *p);

#define NONE SIZE_MAX

/* All d + 1 coordinates of each. */
struct vertices {
    size_t corners, count;
    int64_t *key;
};

/* In order, each once. */
void vertices_sort(struct vertices *list);
/* NONE: it is not there. */
size_t vertices_find(const struct vertices *list, const int64_t *key);
/* Neighbours, and neighbours of those. */
void add_rings(struct vertices *list, size_t rings);

/* One step ahead (sign 1) or back (-1). */
void step_key(const int64_t *key, size_t corners, size_t axis, int64_t sign, int64_t *next);
/* Corner k by the definition: k is added to all coordinates, and d + 1 taken from the k whose ranks
 * are the highest. */
void corner_key(const struct point *p, size_t corners, size_t k, int64_t *key);

#endif
