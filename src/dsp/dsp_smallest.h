/* The smallest number of each row and its index for one instruction set: a part of dsp_vector.h. */

struct least {
    tail_vector value;
    tail_integers place;
};

/* `one` where the mask is set, else the other. */
INLINE struct least choose_least(tail_integers mask, struct least one, struct least other) {
    return (struct least){
        (tail_vector)(((tail_integers)one.value & mask) | ((tail_integers)other.value & ~mask)),
        (one.place & mask) | (other.place & ~mask)};
}

/* For each lane and the one that a shuffle brings to it: the smaller, or the first of equals. */
#define LEAST_STEP(least, ...)                                                                     \
    do {                                                                                           \
        const struct least other = {SHUFFLE((least).value, (least).value, __VA_ARGS__),            \
                                    (tail_integers)SHUFFLE((tail_vector)(least).place,             \
                                                           (tail_vector)(least).place,             \
                                                           __VA_ARGS__)};                          \
        const tail_integers mask =                                                                 \
            (other.value < (least).value) |                                                        \
            ((other.value == (least).value) & (other.place < (least).place));                      \
        (least) = choose_least(mask, other, (least));                                              \
    } while (0)

INLINE struct least least_of_row(const float *row, size_t labels) {
    const tail_integers lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    struct least least = {load_tail(row), lanes};
    /* The last vector begins early enough to end with the row. */
    for (size_t i = TAIL_LANES; i < labels; i += TAIL_LANES) {
        const size_t begin = i + TAIL_LANES <= labels ? i : labels - TAIL_LANES;
        const struct least next = {load_tail(row + begin), lanes + (int32_t)begin};
        least = choose_least(next.value < least.value, next, least);
    }
    LEAST_STEP(least, 4, 5, 6, 7, 0, 1, 2, 3);
    LEAST_STEP(least, 2, 3, 0, 1, 6, 7, 4, 5);
    LEAST_STEP(least, 1, 0, 3, 2, 5, 4, 7, 6);
    return least;
}

static void smallest(const float *rows, size_t labels, size_t stride, size_t count, float *values,
                     uint16_t *places) {
    for (size_t r = 0; r < count; r++) {
        const float *row = rows + r * stride;
        if (labels >= TAIL_LANES) {
            const struct least least = least_of_row(row, labels);
            values[r] = least.value[0];
            places[r] = (uint16_t)least.place[0];
            continue;
        }
        size_t best = 0;
        for (size_t i = 1; i < labels; i++)
            best = row[i] < row[best] ? i : best;
        values[r] = row[best];
        places[r] = (uint16_t)best;
    }
}
