#include "lattice_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one point ------------------------------------------------------------------------------ */

/* The rank of a coordinate: the number of larger ones plus the number of equal ones before it,
 * corrected by how far the sum of the rounded coordinates is from zero. */
static void rank_by(const double *difference, size_t d, int excess, struct point *p) {
    for (size_t i = 0; i <= d; i++) {
        p->rank[i] = excess;
        for (size_t j = 0; j <= d; j++)
            p->rank[i] +=
                difference[j] > difference[i] || (difference[j] == difference[i] && j < i);
    }
}

/* Both return whether the point fits. */
static bool embed_in_double(const double *factor, size_t d, const float *feature, struct point *p) {
    const double corners = (double)(d + 1);
    double elevated[DCRF_MAX_CORNERS], difference[DCRF_MAX_CORNERS], above = 0;
    double barycentric[DCRF_MAX_CORNERS + 1] = {0};
    int excess = 0;
    for (size_t i = d; i > 0; i--) {
        const double along = (double)feature[i - 1] * factor[i - 1];
        elevated[i] = above - (double)i * along;
        above += along;
    }
    elevated[0] = above;
    for (size_t i = 0; i <= d; i++) {
        if (!(fabs(elevated[i]) < 1073741824))
            return false;
        const double quotient = elevated[i] * (1 / corners);
        const int rounded = (int)(quotient + (quotient < 0 ? -0.5 : 0.5));
        p->origin[i] = (int64_t)rounded * (int64_t)(d + 1);
        difference[i] = elevated[i] - (double)p->origin[i];
        excess += rounded;
    }
    rank_by(difference, d, excess, p);
    for (size_t i = 0; i <= d; i++) {
        const int step = p->rank[i] < 0 ? 1 : p->rank[i] > (int)d ? -1 : 0;
        p->rank[i] += step * (int)(d + 1);
        p->origin[i] += step * (int)(d + 1);
        difference[i] -= step * corners;
        const double share = difference[i] * (1 / corners);
        barycentric[d - (size_t)p->rank[i]] += share;
        barycentric[d + 1 - (size_t)p->rank[i]] -= share;
    }
    barycentric[0] += 1 + barycentric[d + 1];
    for (size_t k = 0; k <= d; k++)
        p->weight[k] = barycentric[k] > 0 ? (float)barycentric[k] : 0;
    return true;
}

static bool embed_in_single(const double *factor, size_t d, const float *feature, struct point *p) {
    const float corners = (float)(d + 1), per_corner = 1 / corners;
    double difference[DCRF_MAX_CORNERS]; /* holds float values */
    float elevated[DCRF_MAX_CORNERS], above = 0;
    float barycentric[DCRF_MAX_CORNERS + 1] = {0};
    int excess = 0;
    for (size_t i = d; i > 0; i--) {
        const float along = feature[i - 1] * (float)factor[i - 1];
        elevated[i] = above - (float)i * along;
        above += along;
    }
    elevated[0] = above;
    for (size_t i = 0; i <= d; i++) {
        if (!(fabsf(elevated[i]) < 1073741824))
            return false;
        const float rounded = nearbyintf(per_corner * elevated[i]);
        p->origin[i] = (int64_t)(rounded * corners);
        difference[i] = (double)(elevated[i] - rounded * corners);
        excess += (int)rounded;
    }
    rank_by(difference, d, excess, p);
    for (size_t i = 0; i <= d; i++) {
        const int step = p->rank[i] < 0 ? 1 : p->rank[i] > (int)d ? -1 : 0;
        p->rank[i] += step * (int)(d + 1);
        p->origin[i] += step * (int)(d + 1);
        if (p->rank[i] < 0 || p->rank[i] > (int)d)
            return false; /* the rounded coordinates do not sum to a valid value */
        const float share = (elevated[i] - (float)p->origin[i]) * per_corner;
        barycentric[d - (size_t)p->rank[i]] += share;
        barycentric[d + 1 - (size_t)p->rank[i]] -= share;
    }
    barycentric[0] += 1 + barycentric[d + 1];
    memcpy(p->weight, barycentric, (d + 1) * sizeof *p->weight);
    return true;
}

bool embed_one(bool is_single, size_t d, const float *feature, struct point *p) {
    struct dcrf_embedding embedding;
    dcrf_embedding_init(&embedding, d, is_single);
    return (is_single ? embed_in_single : embed_in_double)(embedding.factor, d, feature, p);
}

/* ---- a list of vertices --------------------------------------------------------------------- */

static size_t compared; /* number of coordinates that qsort and bsearch compare */

static int compare_keys(const void *one, const void *other) {
    const int64_t *a = one, *b = other;
    for (size_t i = 0; i < compared; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

void vertices_sort(struct vertices *list) {
    const size_t row = list->corners * sizeof *list->key;
    compared = list->corners;
    qsort(list->key, list->count, row, compare_keys);
    size_t kept = 0;
    for (size_t v = 0; v < list->count; v++)
        if (kept == 0 || compare_keys(list->key + (kept - 1) * list->corners,
                                      list->key + v * list->corners) != 0)
            memmove(list->key + kept++ * list->corners, list->key + v * list->corners, row);
    list->count = kept;
}

size_t vertices_find(const struct vertices *list, const int64_t *key) {
    compared = list->corners;
    const int64_t *found =
        bsearch(key, list->key, list->count, list->corners * sizeof *key, compare_keys);
    return found ? (size_t)(found - list->key) / list->corners : NONE;
}

void step_key(const int64_t *key, size_t corners, size_t axis, int64_t sign, int64_t *next) {
    for (size_t i = 0; i < corners; i++)
        next[i] = key[i] + (i == axis ? -sign * (int64_t)(corners - 1) : sign);
}

void corner_key(const struct point *p, size_t corners, size_t k, int64_t *key) {
    for (size_t i = 0; i < corners; i++)
        key[i] = p->origin[i] + (int64_t)k -
                 (p->rank[i] > (int)(corners - 1 - k) ? (int64_t)corners : 0);
}
