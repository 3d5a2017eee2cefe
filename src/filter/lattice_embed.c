/* From a feature vector to its simplex of the permutohedral lattice.
 *
 * The lattice A*_d lives in the hyperplane of R^(d+1) whose coordinates sum to zero. A feature
 * vector f is taken there by an orthogonal basis, scaled so that the Gaussian of unit variance
 * matches what splatting, blurring by (1, 2, 1)/4 along d + 1 axes and slicing do together. In
 * units of (d + 1)^2 the blur has the variance 1/2, splatting and slicing 1/12 each, so sqrt(2/3)
 * (d + 1) units are one sigma; r rounds of blurring make that sqrt(r/2 + 1/6) (d + 1). Points whose
 * coordinates are all congruent to k modulo d + 1 are the vertices of remainder k; a simplex has
 * one of each. It is found by rounding to the nearest vertex of remainder 0 and sorting the
 * differences.
 *
 * Adams, Baek, Davis: Fast High-Dimensional Filtering Using the Permutohedral Lattice. Eurographics
 * 2010. */
#include "filter/lattice.h"

#include <math.h>

void dcrf_embedding_init(struct dcrf_embedding *embedding, size_t dimension, size_t rounds,
                         bool is_single) {
    double units_to_sigma = sqrt((double)rounds / 2 + 1.0 / 6) * (double)(dimension + 1);
    if (is_single) /* rounded here too, see lattice_embed_single.c */
        units_to_sigma = (double)(float)units_to_sigma;
    embedding->dimension = dimension;
    embedding->is_single = is_single;
    for (size_t i = 0; i < dimension; i++)
        embedding->factor[i] = 1 / sqrt((double)((i + 1) * (i + 2))) * units_to_sigma;
}

/* Coordinates beyond this are refused: keys and their neighbours must fit in 32 bits. */
#define LARGEST_COORDINATE 1073741824.0

/* dcrf_embed with the dimension as a constant in each of its copies, so that the loops unroll. */
static inline __attribute__((always_inline)) bool embed(const struct dcrf_embedding *embedding,
                                                        size_t d, const float *feature,
                                                        struct dcrf_simplex *simplex,
                                                        float *weight) {
    const double corners = (double)(d + 1);
    double elevated[DCRF_MAX_CORNERS];
    double above = 0;
    for (size_t i = d; i > 0; i--) {
        const double along = (double)feature[i - 1] * embedding->factor[i - 1];
        elevated[i] = above - (double)i * along;
        above += along;
    }
    elevated[0] = above;

    double difference[DCRF_MAX_CORNERS];
    int32_t excess = 0; /* how far the rounded point is off the hyperplane, in steps of d + 1 */
    for (size_t i = 0; i <= d; i++) {
        if (!(fabs(elevated[i]) < LARGEST_COORDINATE))
            return false;
        /* Rounding by truncation of a shifted value: a conversion, not a library call. */
        const double quotient = elevated[i] * (1 / corners);
        const int32_t rounded = (int32_t)(quotient + (quotient < 0 ? -0.5 : 0.5));
        simplex->origin[i] = rounded * (int32_t)(d + 1);
        difference[i] = elevated[i] - (double)simplex->origin[i];
        excess += rounded;
    }

    int32_t rank[DCRF_MAX_CORNERS] = {0};
    for (size_t i = 0; i < d; i++)
        for (size_t j = i + 1; j <= d; j++) {
            const int32_t smaller = difference[i] < difference[j];
            rank[i] += smaller;
            rank[j] += 1 - smaller;
        }
    /* Walk back to the hyperplane: the coordinates with the largest (or smallest) difference give
     * way. */
    for (size_t i = 0; i <= d; i++) {
        rank[i] += excess;
        if (rank[i] < 0) {
            rank[i] += (int32_t)(d + 1);
            simplex->origin[i] += (int32_t)(d + 1);
            difference[i] -= corners;
        } else if (rank[i] > (int32_t)d) {
            rank[i] -= (int32_t)(d + 1);
            simplex->origin[i] -= (int32_t)(d + 1);
            difference[i] += corners;
        }
        simplex->rank[i] = (uint8_t)rank[i];
    }

    double barycentric[DCRF_MAX_CORNERS + 1] = {0};
    for (size_t i = 0; i <= d; i++) {
        const double share = difference[i] * (1 / corners);
        barycentric[d - (size_t)rank[i]] += share;
        barycentric[d + 1 - (size_t)rank[i]] -= share;
    }
    barycentric[0] += 1 + barycentric[d + 1];
    /* Far from the origin rounding can leave less than nothing to a corner. */
    for (size_t k = 0; k <= d; k++)
        weight[k] = barycentric[k] > 0 ? (float)barycentric[k] : 0;
    return true;
}

bool dcrf_embed(const struct dcrf_embedding *embedding, const float *feature,
                struct dcrf_simplex *simplex, float *weight) {
    if (embedding->is_single)
        return dcrf_embed_single(embedding, feature, simplex, weight);
    switch (embedding->dimension) {
    case 3:
        return embed(embedding, 3, feature, simplex, weight);
    case 5:
        return embed(embedding, 5, feature, simplex, weight);
    case 6:
        return embed(embedding, 6, feature, simplex, weight);
    default:
        return embed(embedding, embedding->dimension, feature, simplex, weight);
    }
}

void dcrf_simplex_key(const struct dcrf_simplex *simplex, size_t dimension, size_t corner,
                      int32_t *key) {
    const int32_t k = (int32_t)corner, d = (int32_t)dimension;
    for (size_t i = 0; i < dimension; i++)
        key[i] = simplex->origin[i] + k - (simplex->rank[i] > d - k ? d + 1 : 0);
}
