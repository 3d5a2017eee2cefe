/* Naive lattices: points embedded one at a time, vertices in a sorted list.
 *
 * Rounding decides which simplex holds a point, so embedding a single point performs the same
 * operations in the same order as the library does for many. */
#ifndef DCRF_TESTS_LATTICE_ORACLE_H
#define DCRF_TESTS_LATTICE_ORACLE_H

#include "filter/lattice/lattice.h"

struct point {
    int64_t origin[DCRF_MAX_CORNERS];
    int rank[DCRF_MAX_CORNERS];
    float weight[DCRF_MAX_CORNERS];
};

/* Returns whether the point fits. */
bool embed_one(bool is_single, size_t d, const float *feature, struct point *p);

#define NONE SIZE_MAX

/* All d + 1 coordinates of each vertex. */
struct vertices {
    size_t corners, count;
    int64_t *key;
};

/* Sorts and removes duplicates. */
void vertices_sort(struct vertices *list);
/* Returns NONE if it is not there. */
size_t vertices_find(const struct vertices *list, const int64_t *key);

/* One step forwards (sign 1) or backwards (-1). */
void step_key(const int64_t *key, size_t corners, size_t axis, int64_t sign, int64_t *next);
/* Corner k by the definition: add k to all coordinates, then subtract d + 1 from the k coordinates
 * with the highest ranks. */
void corner_key(const struct point *p, size_t corners, size_t k, int64_t *key);

#endif
