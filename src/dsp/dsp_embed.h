/* From feature vectors to their simplices (filter/lattice/lattice_embed.c has the mathematics),
 * several at a time: written once with the compilers' vector extension.
 *
 * The including file defines EMBED_LANES (4, 8 or 16 floats per vector) and INLINE. No multiply-add
 * is fused here: rounding decides which simplex holds a point, so every set has to round alike.
 *
 * Ranks are counted by comparing all pairs. Where scalar code would add the share of a coordinate
 * to the two corners given by its rank, here masks sort the shares by rank, and a corner gets the
 * difference of two consecutive ones: the same two terms, so the same rounding. */
#define MOST_COORDINATES (DCRF_EMBED_FEATURES + 1)
/* Larger coordinates are refused: those of vertices and their neighbours must fit in 32 bits. */
#define LARGEST_COORDINATE 1073741824

/* For all points, call body(embed, d, at) with common numbers of features as constants, so that the
 * loops unroll. */
#define FOR_DIMENSION(body, embed, step)                                                           \
    for (size_t at = 0; at < DCRF_EMBED_POINTS; at += (step))                                      \
        switch ((embed)->dimension) {                                                              \
        case 2:                                                                                    \
            body(embed, 2, at);                                                                    \
            break;                                                                                 \
        case 3:                                                                                    \
            body(embed, 3, at);                                                                    \
            break;                                                                                 \
        case 5:                                                                                    \
            body(embed, 5, at);                                                                    \
            break;                                                                                 \
        case 6:                                                                                    \
            body(embed, 6, at);                                                                    \
            break;                                                                                 \
        default:                                                                                   \
            body(embed, (embed)->dimension, at);                                                   \
            break;                                                                                 \
        }

/* ---- single precision ----------------------------------------------------------------------- */

typedef float floats __attribute__((vector_size(EMBED_LANES * 4)));
typedef int32_t integers __attribute__((vector_size(EMBED_LANES * 4)));

INLINE floats pick(integers mask, floats yes, floats no) {
    return (floats)((mask & (integers)yes) | (~mask & (integers)no));
}

/* Round to the nearest integer, ties to even: adding 2^23 with the sign of the number leaves no
 * room for a fraction. */
INLINE floats round_to_even(floats value) {
    const integers sign = (integers)value & INT32_MIN;
    const floats magnitude = (floats)((integers)value & INT32_MAX);
    const floats shift = (floats)((integers)((floats){0} + 0x1p23f) | sign);
    return pick(magnitude < 0x1p23f, (value + shift) - shift, value);
}

INLINE void embed_floats(const struct dcrf_embed *embed, size_t d, size_t at) {
    const float corners = (float)(d + 1), per_corner = 1 / corners;
    const int32_t all = (int32_t)(d + 1);
    floats elevated[MOST_COORDINATES], difference[MOST_COORDINATES];
    integers origin[MOST_COORDINATES], rank[MOST_COORDINATES];
    floats above = {0};
    for (size_t i = d; i > 0; i--) {
        floats feature;
        memcpy(&feature, embed->feature + (i - 1) * DCRF_EMBED_POINTS + at, sizeof feature);
        const floats along = feature * (float)embed->factor[i - 1];
        elevated[i] = above - (float)i * along;
        above += along;
    }
    elevated[0] = above;

    integers excess = {0}, fits = ~(integers){0};
    for (size_t i = 0; i <= d; i++) {
        const floats magnitude = (floats)((integers)elevated[i] & INT32_MAX);
        fits &= magnitude < (float)LARGEST_COORDINATE; /* false for NaN */
    }
    for (size_t i = 0; i <= d; i++) {
        elevated[i] = (floats)((integers)elevated[i] & fits);
        const floats rounded = round_to_even(per_corner * elevated[i]);
        origin[i] = __builtin_convertvector(rounded * corners, integers);
        difference[i] = elevated[i] - rounded * corners;
        excess += __builtin_convertvector(rounded, integers);
        rank[i] = (integers){0};
    }
    for (size_t i = 0; i < d; i++)
        for (size_t j = i + 1; j <= d; j++) {
            const integers smaller = difference[i] < difference[j]; /* -1 or 0 */
            rank[i] -= smaller;
            rank[j] += 1 + smaller;
        }
    for (size_t i = 0; i <= d; i++) {
        rank[i] += excess;
        const integers step = ((rank[i] < 0) & all) - ((rank[i] >= all) & all);
        rank[i] += step;
        origin[i] += step;
        /* Far from the origin rounding errors can put a rank out of range. */
        fits &= (rank[i] >= 0) & (rank[i] < all);
    }

    floats share[MOST_COORDINATES]; /* by rank */
    for (size_t r = 0; r <= d; r++)
        share[r] = (floats){0};
    for (size_t i = 0; i <= d; i++) {
        const floats own = (elevated[i] - __builtin_convertvector(origin[i], floats)) * per_corner;
        for (size_t r = 0; r <= d; r++)
            share[r] = (floats)((integers)share[r] | ((rank[i] == (int32_t)r) & (integers)own));
    }
    floats weight = share[d] + (1 + ((floats){0} - share[0]));
    for (size_t k = 0; k <= d; k++) {
        memcpy(embed->weight[k] + at, &weight, sizeof weight);
        memcpy(embed->origin[k] + at, &origin[k], sizeof origin[k]);
        memcpy(embed->rank[k] + at, &rank[k], sizeof rank[k]);
        if (k < d)
            weight = ((floats){0} + share[d - 1 - k]) - share[d - k];
    }
    memcpy(embed->fits + at, &fits, sizeof fits);
}

static void embed_single(const struct dcrf_embed *embed) {
    FOR_DIMENSION(embed_floats, embed, EMBED_LANES)
}

/* ---- double precision ----------------------------------------------------------------------- */

#define EMBED_DOUBLES (EMBED_LANES / 2)
typedef double doubles __attribute__((vector_size(EMBED_DOUBLES * 8)));
typedef int64_t long_integers __attribute__((vector_size(EMBED_DOUBLES * 8)));
typedef int32_t few_integers __attribute__((vector_size(EMBED_DOUBLES * 4)));
typedef float few_floats __attribute__((vector_size(EMBED_DOUBLES * 4)));

INLINE void embed_doubles(const struct dcrf_embed *embed, size_t d, size_t at) {
    const double corners = (double)(d + 1), per_corner = 1 / corners;
    const int64_t all = (int64_t)(d + 1);
    doubles difference[MOST_COORDINATES], origin[MOST_COORDINATES];
    long_integers rank[MOST_COORDINATES];
    doubles above = {0};
    for (size_t i = d; i > 0; i--) {
        few_floats feature;
        memcpy(&feature, embed->feature + (i - 1) * DCRF_EMBED_POINTS + at, sizeof feature);
        const doubles along = __builtin_convertvector(feature, doubles) * embed->factor[i - 1];
        difference[i] = above - (double)i * along;
        above += along;
    }
    difference[0] = above;

    long_integers excess = {0}, fits = ~(long_integers){0};
    for (size_t i = 0; i <= d; i++)
        fits &= (doubles)((long_integers)difference[i] & INT64_MAX) < (double)LARGEST_COORDINATE;
    for (size_t i = 0; i <= d; i++) {
        difference[i] = (doubles)((long_integers)difference[i] & fits);
        /* Round by truncating a shifted value: halves away from zero. */
        const doubles quotient = difference[i] * per_corner;
        const doubles half =
            (doubles)(((quotient < 0) & INT64_MIN) | (long_integers)((doubles){0} + 0.5));
        const few_integers rounded = __builtin_convertvector(quotient + half, few_integers);
        origin[i] = __builtin_convertvector(rounded, doubles) * corners;
        difference[i] -= origin[i];
        excess += __builtin_convertvector(rounded, long_integers);
        rank[i] = (long_integers){0};
    }
    for (size_t i = 0; i < d; i++)
        for (size_t j = i + 1; j <= d; j++) {
            const long_integers smaller = difference[i] < difference[j];
            rank[i] -= smaller;
            rank[j] += 1 + smaller;
        }
    /* Return to the hyperplane: adjust the coordinates with the extreme differences. */
    for (size_t i = 0; i <= d; i++) {
        rank[i] += excess;
        const long_integers below = rank[i] < 0, beyond = rank[i] >= all;
        const doubles step = (doubles)((below & (long_integers)((doubles){0} + corners)) |
                                       (beyond & (long_integers)((doubles){0} - corners)));
        rank[i] += (below & all) - (beyond & all);
        origin[i] += step;
        difference[i] -= step;
    }

    doubles share[MOST_COORDINATES];
    for (size_t r = 0; r <= d; r++)
        share[r] = (doubles){0};
    for (size_t i = 0; i <= d; i++) {
        const doubles own = difference[i] * per_corner;
        for (size_t r = 0; r <= d; r++)
            share[r] =
                (doubles)((long_integers)share[r] | ((rank[i] == (int64_t)r) & (long_integers)own));
    }
    doubles weight = share[d] + (1 + ((doubles){0} - share[0]));
    for (size_t k = 0; k <= d; k++) {
        /* Far from the origin rounding can make a weight negative. */
        const few_floats positive =
            __builtin_convertvector((doubles)((weight > 0) & (long_integers)weight), few_floats);
        const few_integers origin_k = __builtin_convertvector(origin[k], few_integers);
        const few_integers rank_k = __builtin_convertvector(rank[k], few_integers);
        memcpy(embed->weight[k] + at, &positive, sizeof positive);
        memcpy(embed->origin[k] + at, &origin_k, sizeof origin_k);
        memcpy(embed->rank[k] + at, &rank_k, sizeof rank_k);
        if (k < d)
            weight = ((doubles){0} + share[d - 1 - k]) - share[d - k];
    }
    const few_integers fit = __builtin_convertvector(fits, few_integers);
    memcpy(embed->fits + at, &fit, sizeof fit);
}

static void embed_double(const struct dcrf_embed *embed) {
    FOR_DIMENSION(embed_doubles, embed, EMBED_DOUBLES)
}
