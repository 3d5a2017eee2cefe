/* The embedding in single precision, rounding halves to even: where a point lies on the border of
 * simplices, which vertices exist is decided by rounding, and a lattice that is to agree with the
 * usual implementations must round as they do, in the scale and the features too. (Positions on a
 * pixel grid divided by whole sigmas meet borders often.) */
#include "filter/lattice.h"

#include <math.h>

#define LARGEST_COORDINATE 1073741824.0f

static inline __attribute__((always_inline)) bool embed(const struct dcrf_embedding *embedding,
                                                        size_t d, const float *feature,
                                                        struct dcrf_simplex *simplex,
                                                        float *weight) {
    const float corners = (float)(d + 1), per_corner = 1 / corners;
    float elevated[DCRF_MAX_CORNERS];
    float above = 0;
    for (size_t i = d; i > 0; i--) {
        const float along = feature[i - 1] * (float)embedding->factor[i - 1];
        elevated[i] = above - (float)i * along;
        above += along;
    }
    elevated[0] = above;

    float difference[DCRF_MAX_CORNERS];
    int32_t excess = 0;
    for (size_t i = 0; i <= d; i++) {
        if (!(fabsf(elevated[i]) < LARGEST_COORDINATE))
            return false;
        const float rounded = nearbyintf(per_corner * elevated[i]);
        simplex->origin[i] = (int32_t)(rounded * corners);
        difference[i] = elevated[i] - rounded * corners;
        excess += (int32_t)rounded;
    }

    int32_t rank[DCRF_MAX_CORNERS] = {0};
    for (size_t i = 0; i < d; i++)
        for (size_t j = i + 1; j <= d; j++) {
            const int32_t smaller = difference[i] < difference[j];
            rank[i] += smaller;
            rank[j] += 1 - smaller;
        }
    for (size_t i = 0; i <= d; i++) {
        rank[i] += excess;
        const int32_t step = rank[i] < 0            ? (int32_t)(d + 1)
                             : rank[i] > (int32_t)d ? -(int32_t)(d + 1)
                                                    : 0;
        rank[i] += step;
        simplex->origin[i] += step;
        /* Far out the sum of the roundings need not be what it is in exact numbers. */
        if (rank[i] < 0 || rank[i] > (int32_t)d)
            return false;
        simplex->rank[i] = (uint8_t)rank[i];
    }

    float barycentric[DCRF_MAX_CORNERS + 1] = {0};
    for (size_t i = 0; i <= d; i++) {
        const float share = (elevated[i] - (float)simplex->origin[i]) * per_corner;
        barycentric[d - (size_t)rank[i]] += share;
        barycentric[d + 1 - (size_t)rank[i]] -= share;
    }
    barycentric[0] += 1 + barycentric[d + 1];
    for (size_t k = 0; k <= d; k++)
        weight[k] = barycentric[k];
    return true;
}

bool dcrf_embed_single(const struct dcrf_embedding *embedding, const float *feature,
                       struct dcrf_simplex *simplex, float *weight) {
    switch (embedding->dimension) {
    case 2:
        return embed(embedding, 2, feature, simplex, weight);
    case 5:
        return embed(embedding, 5, feature, simplex, weight);
    default:
        return embed(embedding, embedding->dimension, feature, simplex, weight);
    }
}
