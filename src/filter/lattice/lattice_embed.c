/* From a feature vector to its simplex of the permutohedral lattice.
 *
 * The lattice A*_d lives in the hyperplane of R^(d+1) whose coordinates sum to zero. A feature
 * vector f is mapped there by an orthogonal basis, scaled so that the Gaussian of unit variance
 * matches the combined effect of splatting, blurring by (1, 2, 1)/4 along d + 1 axes, and slicing.
 * In units of (d + 1)^2 the blur has the variance 1/2, splatting and slicing 1/12 each, so
 * sqrt(2/3) (d + 1) units are one sigma.
 * Points whose coordinates are all congruent to k modulo d + 1 are the vertices of remainder k; a
 * simplex has one of each. It is found by rounding to the nearest vertex of remainder 0 and sorting
 * the differences. The loops that do so are in dsp/dsp_embed.h.
 *
 * The single-precision version rounds halves to even, also in the scale and the features: if a
 * point lies on the border between simplices, rounding decides which vertices exist, so a lattice
 * that is to agree with the common implementations must round as they do. (Pixel positions divided
 * by integer sigmas are often on a border.)
 *
 * Adams, Baek, Davis: Fast High-Dimensional Filtering Using the Permutohedral Lattice. Eurographics
 * 2010. */
#include "filter/lattice/lattice.h"

#include <math.h>

void dcrf_embedding_init(struct dcrf_embedding *embedding, size_t dimension, bool is_single) {
    double units_to_sigma = sqrt(1.0 / 2 + 1.0 / 6) * (double)(dimension + 1);
    if (is_single)
        units_to_sigma = (double)(float)units_to_sigma;
    embedding->dimension = dimension;
    embedding->is_single = is_single;
    for (size_t i = 0; i < dimension; i++)
        embedding->factor[i] = 1 / sqrt((double)((i + 1) * (i + 2))) * units_to_sigma;
}

/* Points beyond this do not fit (dsp_embed.h). */
#define LARGEST_COORDINATE 1073741824.0
/* Maximum distance of a point from the origin of its simplex, in units of d + 1: half a unit from
 * rounding, one from moving back to the hyperplane, and a margin for rounding errors of the doubles
 * here. */
#define SIMPLEX_REACH 2
/* More than the relative rounding error of a coordinate in single precision: 18 operations at most,
 * 2^-24 each. */
#define COORDINATE_ERROR 0x1p-19

void dcrf_embedding_range(const struct dcrf_embedding *embedding, const float *least,
                          const float *largest, struct dcrf_limits *limits) {
    const size_t d = embedding->dimension;
    double below = 0, above = 0, size = 0; /* limits of the sum over the features after coordinate i
                                            */
    double next_low = 0, next_high = 0, next_slack = 0;
    for (size_t i = d + 1; i-- > 0;) {
        const double own_low = i > 0 ? (double)least[i - 1] * embedding->factor[i - 1] : 0;
        const double own_high = i > 0 ? (double)largest[i - 1] * embedding->factor[i - 1] : 0;
        const double own_size = fmax(fabs(own_low), fabs(own_high));
        const double slack =
            (size + (double)i * own_size) * COORDINATE_ERROR + (double)(SIMPLEX_REACH * (d + 1));
        const double from = fmax(below - (double)i * own_high, -LARGEST_COORDINATE) - slack;
        const double to = fmin(above - (double)i * own_low, LARGEST_COORDINATE) + slack;
        limits->low[i] = (int64_t)fmax(fmin(from, LARGEST_COORDINATE), -2 * LARGEST_COORDINATE);
        limits->high[i] = (int64_t)fmin(fmax(to, -LARGEST_COORDINATE), 2 * LARGEST_COORDINATE);
        if (i < d) { /* the features after coordinate i + 1 cancel */
            const double share = (double)(i + 2);
            const double low = share * next_low - (double)i * own_high - slack - next_slack;
            const double high = share * next_high - (double)i * own_low + slack + next_slack;
            limits->difference_low[i] =
                (int64_t)fmax(low, (double)(limits->low[i] - limits->high[i + 1]));
            limits->difference_high[i] =
                (int64_t)fmin(high, (double)(limits->high[i] - limits->low[i + 1]));
        }
        below += own_low;
        above += own_high;
        size += own_size;
        next_low = own_low;
        next_high = own_high;
        next_slack = slack;
    }
}

size_t dcrf_embed_points(const struct dcrf_embedding *embedding, const float *feature,
                         struct dcrf_points *points) {
    int32_t fits[DCRF_EMBED_POINTS];
    const struct dcrf_embed embed = {.dimension = embedding->dimension,
                                     .factor = embedding->factor,
                                     .feature = feature,
                                     .origin = points->origin,
                                     .rank = points->rank,
                                     .weight = points->weight,
                                     .fits = fits};
    if (embedding->is_single)
        dcrf_dsp()->embed_single(&embed);
    else
        dcrf_dsp()->embed_double(&embed);
    size_t count = 0;
    while (count < DCRF_EMBED_POINTS && fits[count])
        count++;
    return count;
}
