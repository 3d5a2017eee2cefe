/* Squared distances by tensor cores, for integer features split into digits.
 *
 * |f_a - f_b|^2 = |f_a|^2 + |f_b|^2 - 2 f_a f_b of a group of at most four features is the inner
 * product of two vectors of eight 16-bit floats,
 *
 *   of the row  f_1 .. f_4,         h_a,  l_a, 2048,  1
 *   of the key  -2 f_1 .. -2 f_4,  2048,    1,  h_b, l_b,      |f|^2 = 2048 h + l, l < 2048.
 *
 * Where has_exact_squares, |f|^2 <= 2^22 for the group. So f, -2 f, h and l fit in 11 bits and are
 * exact, and the products are integers whose magnitudes add up to at most (|f_a| + |f_b|)^2 <=
 * 2^24. Tensor cores align the summands to the largest and keep 24 bits of it or more (Fasi,
 * Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science
 * 7, 2021): sums of integers up to 2^24 are exact in any order. So the squared distance is exact,
 * as it is when computed from differences. */
#include "backend/cuda/exact.cuh"
#include "backend/cuda/exact_tensor.cuh"

#include <math.h>

#define DIGIT 2048
#define VECTOR 8
#define MOST_IN_GROUP 4

struct digit_source {
    const double *features; /* tiles x features x EXACT_TILE */
    int feature_count, groups;
    int first[EXACT_DIGIT_GROUPS],
        last[EXACT_DIGIT_GROUPS]; /* features of a group: [first, last) */
    double unit[EXACT_DIGIT_GROUPS];
    size_t places;
};

/* One thread per place. */
static __global__ void fill_digits(digit_source from, uint32_t *rows, uint32_t *keys) {
    const size_t place = this_thread();
    if (place >= from.places)
        return;
    const size_t tile = place / EXACT_TILE;
    const unsigned at = place % EXACT_TILE, sixteen = at / 16, g = at % 8, second = at / 8 % 2;
    for (int group = 0; group < from.groups; group++) {
        float row[VECTOR] = {}, key[VECTOR] = {};
        int squared = 0;
        for (int i = from.first[group]; i < from.last[group]; i++) {
            const double whole =
                from.features[(tile * from.feature_count + i) * EXACT_TILE + at] / from.unit[group];
            row[i - from.first[group]] = (float)whole;
            key[i - from.first[group]] = (float)(-2 * whole);
            squared += (int)whole * (int)whole;
        }
        row[MOST_IN_GROUP] = key[MOST_IN_GROUP + 2] = (float)(squared / DIGIT);
        row[MOST_IN_GROUP + 1] = key[MOST_IN_GROUP + 3] = (float)(squared % DIGIT);
        row[MOST_IN_GROUP + 2] = key[MOST_IN_GROUP] = DIGIT;
        row[MOST_IN_GROUP + 3] = key[MOST_IN_GROUP + 1] = 1;
        for (unsigned t = 0; t < 4; t++) {
            const unsigned lane = 4 * g + t;
            rows[exact_row_digits(from.groups, tile, group, sixteen) + 2 * lane + second] =
                word_of(__floats2half2_rn(row[2 * t], row[2 * t + 1]));
            keys[exact_key_digits(from.groups, tile, sixteen) + 2 * from.groups * lane + 2 * group +
                 second] = word_of(__floats2half2_rn(key[2 * t], key[2 * t + 1]));
        }
    }
}

/* The weights apply to integers here; units are limited so that no weight is too large or too small
 * for exp2. */
static bool has_digits(const struct exact_operator *op,
                       const struct exact_arrangement *arrangement) {
    const struct exact_metric *metric = &op->metric;
    bool is_fine = op->has_exact_squares && metric->groups <= EXACT_DIGIT_GROUPS &&
                   metric->largest_group <= MOST_IN_GROUP;
    for (int i = 0; i < metric->features; i++)
        is_fine &= fabs(log2(arrangement->unit[i])) < 32;
    return is_fine;
}

dcrf_status exact_fill_digits(struct exact_operator *op,
                              const struct exact_arrangement *arrangement, dcrf_error *error) {
    const struct exact_metric *metric = &op->metric;
    dcrf_backend_device *device = op->base.device;
    if (!has_digits(op, arrangement))
        return DCRF_OK;
    struct digit_source from = {};
    from.features = op->features;
    from.feature_count = metric->features;
    from.places = exact_places(op);
    for (int i = 0, first = 0; i < metric->features; i++) {
        if (!(metric->ends >> i & 1))
            continue;
        const int group = from.groups++;
        const double unit = arrangement->unit[i];
        from.first[group] = first;
        from.last[group] = first = i + 1;
        from.unit[group] = unit;
        op->digit_weight[group] = (float)(metric->weight_double[i] * unit * unit);
    }
    op->digit_groups = from.groups;
    const size_t words = exact_row_digits(from.groups, op->tiles, 0, 0);
    const char *const what = "the features of an exact operator";
    TRY(device_array(device, &op->row_digits, words, what, error));
    TRY(device_array(device, &op->key_digits, words, what, error));
    op->base.base.bytes += 2 * words * sizeof *op->row_digits;
    fill_digits<<<blocks_for(from.places), THREADS, 0, device->stream>>>(from, op->row_digits,
                                                                         op->key_digits);
    return check(cudaGetLastError(), what, error);
}
