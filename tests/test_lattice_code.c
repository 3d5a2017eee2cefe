/* The codes of vertices (filter/lattice_code.c) and the table that numbers them, against
 * coordinates and a sorted list. */
#include "dense.h"
#include "lattice_oracle.h"

#include "core/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- codes ---------------------------------------------------------------------------------- */

/* A vertex between the limits of the first d coordinates but one, some of them at the limits; the
 * last but one is what is left. */
static void draw_vertex(dcrf_rng *rng, size_t corners, const int64_t *least, const int64_t *largest,
                        int64_t *key) {
    const int64_t all = (int64_t)corners;
    const int64_t remainder = (int64_t)(dcrf_rng_next(rng) % corners);
    int64_t sum = 0;
    for (size_t i = 0; i < corners; i++) {
        if (i == corners - 2 && corners > 1)
            continue;
        const uint64_t where = dcrf_rng_next(rng) % 8;
        const double share = where < 2 ? (double)where : dcrf_rng_uniform(rng);
        const int64_t lowest = least[i] + all; /* so that rounding down stays inside */
        const int64_t value = lowest + (int64_t)(share * (double)(largest[i] - lowest - all));
        key[i] = value - ((value - remainder) % all + all) % all;
        sum += key[i];
    }
    key[corners - 2] = -sum;
}

/* Whatever the features between limits are, the fields have room for the corners of their simplices
 * and the neighbours of those; points at the limits go furthest. */
static void codes_have_room(void **state) {
    (void)state;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (int turn = 0; turn < 3000; turn++) {
            float least[DCRF_MAX_FEATURES], largest[DCRF_MAX_FEATURES], feature[DCRF_MAX_FEATURES];
            const double spread = pow(10, turn % 5);
            const size_t upwards = dcrf_rng_next(&rng) % (d + 1);
            for (size_t i = 0; i < d; i++) {
                least[i] = (float)(spread * (dcrf_rng_uniform(&rng) - 0.5));
                largest[i] = least[i] + (float)(spread * dcrf_rng_uniform(&rng));
                /* Coordinate k is at a limit where feature k - 1 is and those after it are at the
                 * other. */
                const bool is_high = (i >= upwards) == (turn % 2 == 0);
                feature[i] = is_high ? largest[i] : least[i];
                if (i + 1 == upwards)
                    feature[i] = turn % 2 == 0 ? least[i] : largest[i];
            }
            struct dcrf_embedding embedding;
            struct dcrf_code code;
            struct point p;
            int64_t low[DCRF_MAX_CORNERS], high[DCRF_MAX_CORNERS], key[DCRF_MAX_CORNERS];
            const bool is_single = turn / 2 % 2;
            dcrf_embedding_init(&embedding, d, 1, is_single);
            dcrf_embedding_range(&embedding, least, largest, low, high);
            dcrf_code_init(&code, d, low, high, 1);
            if (!embed_one(is_single, d, feature, &p))
                continue;
            for (size_t i = 0; i <= d; i++)
                if (p.origin[i] < low[i] || p.origin[i] > high[i])
                    fail_msg("d %zu, turn %d: coordinate %zu is %lld, not in %lld .. %lld", d, turn,
                             i, (long long)p.origin[i], (long long)low[i], (long long)high[i]);
            for (size_t k = 0; k <= d; k++) {
                corner_key(&p, d + 1, k, key);
                for (size_t i = 0; i <= d; i++) {
                    /* one ring around, and its neighbours */
                    assert_true(key[i] - 2 * (int64_t)d >= code.least[i]);
                    assert_true(key[i] + 2 * (int64_t)d <= code.largest[i]);
                }
            }
        }
    /* The limits of a code are those of its fields. */
    const int64_t low[] = {-5, -6, -7}, high[] = {5, 6, 7};
    struct dcrf_code code;
    dcrf_code_init(&code, 2, low, high, 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(code.least[i], low[i] - 3 * 2);
        assert_int_equal(code.largest[i], high[i] + 3 * 2);
    }
    assert_int_equal(code.lowest[0], code.least[2]);
    assert_int_equal(code.lowest[1], code.least[0]);
    assert_true(code.lowest[0] + (int64_t)code.mask[0] >= code.largest[2]);
}

/* In the order of the fields; neighbours as found by searching. */
static void check_codes(size_t d, unsigned bits_of_field, size_t extra_bits, bool is_large,
                        size_t words) {
    const size_t corners = d + 1;
    const int64_t room = (int64_t)(2 * d), all = (int64_t)corners; /* two steps are left */
    int64_t least[DCRF_MAX_CORNERS], largest[DCRF_MAX_CORNERS];
    for (size_t i = 0; i < corners; i++) {
        /* Field 0 is coordinate d; the fields are as wide as they can be. */
        const unsigned bits = bits_of_field + (i == d && extra_bits > 0 ? (unsigned)extra_bits : 0);
        least[i] = -((int64_t)1 << (bits - 1)) + room;
        largest[i] = ((int64_t)1 << (bits - 1)) - 1 - room;
    }
    /* Coordinate d - 1 has no field and is what the others leave. */
    least[d - 1] = largest[d - 1] = 0;
    for (size_t i = 0; i < corners; i++)
        if (i != d - 1) {
            least[d - 1] -= largest[i];
            largest[d - 1] -= least[i];
        }
    struct dcrf_code code;
    dcrf_code_init(&code, d, least, largest, 0);
    assert_int_equal(code.words, words);
    struct vertices list = {.corners = corners, .count = 1200};
    list.key = malloc(list.count * corners * sizeof *list.key);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, d * 1000 + bits_of_field);
    for (size_t v = 0; v < list.count; v++) {
        int64_t *key = list.key + v * corners;
        if (v % 3 == 0 || d == 0) {
            draw_vertex(&rng, corners, least, largest, key);
            continue;
        }
        /* Many have neighbours: a step from the one before, unless that leads out. */
        step_key(key - corners, corners, dcrf_rng_next(&rng) % corners, v % 2 ? 1 : -1, key);
        for (size_t i = 0; i < corners; i++)
            if (i != d - 1 && (key[i] < least[i] || key[i] > largest[i])) {
                memcpy(key, key - corners, corners * sizeof *key);
                break;
            }
    }
    vertices_sort(&list);
    uint64_t *codes = malloc(list.count * code.words * sizeof *codes);
    uint64_t *taken = aligned_alloc(64, (list.count * code.words * sizeof *codes + 63) / 64 * 64);
    for (size_t v = 0; v < list.count; v++)
        dcrf_code_pack(&code, list.key + v * corners, codes + v * code.words);
    memcpy(taken, codes, list.count * code.words * sizeof *codes);
    struct dcrf_lattice_order order;
    assert_int_equal(dcrf_lattice_order_new(&order, &code, taken, list.count, is_large, NULL, NULL),
                     DCRF_OK);
    size_t *vertex = malloc(list.count * sizeof *vertex);
    for (size_t v = 0; v < list.count; v++)
        vertex[v] = NONE;
    for (size_t v = 0; v < list.count; v++) {
        assert_true(order.number[v] < list.count);
        assert_int_equal(vertex[order.number[v]], NONE);
        vertex[order.number[v]] = v;
    }
    for (size_t v = 1; v < list.count; v++) {
        const int64_t *one = list.key + vertex[v - 1] * corners;
        const int64_t *other = list.key + vertex[v] * corners;
        int64_t sign = 0;
        for (size_t i = 0; sign == 0 && i < d; i++) {
            const size_t k = is_large || d <= 2 ? (i == 0 ? d : i - 1) : d - 1 - i;
            sign = is_large || d <= 2
                       ? other[k] - one[k]
                       : (other[k] - other[k + 1]) / all - (one[k] - one[k + 1]) / all;
        }
        assert_true(sign > 0);
        assert_true(dcrf_lattice_order_layer(&order, v - 1) <= dcrf_lattice_order_layer(&order, v));
    }
    uint32_t *neighbours = malloc(2 * list.count * sizeof *neighbours);
    size_t found = 0;
    for (size_t axis = 0; axis < corners; axis++) {
        dcrf_lattice_order_connect(&order, list.count, axis, neighbours);
        for (size_t v = 0; v < list.count; v++)
            for (size_t direction = 0; direction < 2; direction++) {
                int64_t key[DCRF_MAX_CORNERS];
                step_key(list.key + v * corners, corners, axis, direction ? 1 : -1, key);
                const size_t expected = vertices_find(&list, key);
                const size_t there = neighbours[2 * order.number[v] + direction];
                assert_int_equal(there, expected == NONE ? list.count : order.number[expected]);
                found += expected != NONE;
            }
    }
    assert_true(found > list.count / 4); /* the test is about something */
    dcrf_lattice_order_clear(&order);
    free(neighbours);
    free(vertex);
    free(codes);
    free(list.key);
}

/* Fields that fill one word to the last bit, one bit more, and fields as wide as coordinates get.
 */
static void codes_order_and_connect(void **state) {
    (void)state;
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (int is_large = 0; is_large < 2; is_large++) {
            const unsigned bits = (unsigned)(64 / d < 33 ? 64 / d : 33);
            const size_t rest = 64 - d * bits;
            if (bits > 9) { /* there is room for steps */
                check_codes(d, bits, 0, is_large, 1);
                if (rest < 8 && d > 1)
                    check_codes(d, bits, rest, is_large, 1);
                if (rest < 8 && d > 1)
                    check_codes(d, bits, rest + 1, is_large, 2);
            }
            check_codes(d, 33, 0, is_large, d);
            check_codes(d, 20, 0, is_large, (d + 2) / 3);
        }
}

/* A table that grows: numbers by appearance, keys that stand in its own memory. */
static void tables_number_keys(void **state) {
    (void)state;
    for (size_t words = 1; words <= 4; words++) {
        struct dcrf_table table;
        const size_t count = 5000;
        uint64_t *keys = malloc(count * words * sizeof *keys);
        uint32_t *numbers = malloc(count * sizeof *numbers);
        dcrf_rng rng;
        dcrf_rng_seed(&rng, words);
        for (size_t i = 0; i < count * words; i++)
            keys[i] = dcrf_rng_next(&rng) % 3 << (dcrf_rng_next(&rng) % 4 * 17);
        for (int is_borrowed = 0; is_borrowed < 2; is_borrowed++) {
            uint64_t *own = malloc(count * words * sizeof *own);
            memcpy(own, keys, count * words * sizeof *own);
            assert_int_equal(dcrf_table_new(&table, words, is_borrowed ? own : NULL,
                                            is_borrowed ? count : 3, NULL),
                             DCRF_OK);
            assert_int_equal(
                dcrf_table_enter(&table, is_borrowed ? own : keys, count, numbers, NULL), DCRF_OK);
            size_t next = 0;
            for (size_t i = 0; i < count; i++) {
                size_t first = 0;
                while (memcmp(keys + first * words, keys + i * words, words * sizeof *keys) != 0)
                    first++;
                assert_int_equal(numbers[i], first == i ? next++ : numbers[first]);
                assert_memory_equal(table.keys + numbers[i] * words, keys + i * words,
                                    words * sizeof *keys);
            }
            assert_int_equal(table.count, next);
            dcrf_table_clear(&table);
            free(own);
        }
        free(keys);
        free(numbers);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_room),
        cmocka_unit_test(codes_order_and_connect),
        cmocka_unit_test(tables_number_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
