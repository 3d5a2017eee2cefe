/* The codes of vertices (filter/lattice/lattice_code.c), and the table and the set that hold them,
 * against coordinates and a sorted list. */
#include "dense.h"
#include "lattice_oracle.h"

#include "core/memory.h"
#include "core/rng.h"
#include "filter/lattice/lattice_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- codes ---------------------------------------------------------------------------------- */

/* A vertex from the differences of its coordinates, divided by d + 1; all differences are given. */
static void vertex_of(size_t d, const int64_t *difference, int64_t *key) {
    key[d] = 0;
    for (size_t i = 0; i < d; i++) /* the coordinates sum to zero */
        key[d] -= (int64_t)(i + 1) * difference[i];
    for (size_t i = d; i-- > 0;)
        key[i] = key[i + 1] + (int64_t)(d + 1) * difference[i];
}

/* A vertex within these limits, sometimes at them. */
static void draw_vertex(dcrf_rng *rng, size_t d, int64_t limit, int64_t *key) {
    int64_t difference[DCRF_MAX_FEATURES];
    for (size_t i = 0; i < d; i++) {
        const uint64_t where = dcrf_rng_next(rng) % 8;
        const double share = where < 2 ? (double)where : dcrf_rng_uniform(rng);
        difference[i] = -limit + (int64_t)(share * (double)(2 * limit));
    }
    vertex_of(d, difference, key);
}

/* For any features within limits, the fields have room for the corners of their simplices and their
 * neighbours; points at the limits go furthest. */
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
                /* Coordinate k is extreme if feature k - 1 is at one limit and all later ones are
                 * at the other. */
                const bool is_high = (i >= upwards) == (turn % 2 == 0);
                feature[i] = is_high ? largest[i] : least[i];
                if (i + 1 == upwards)
                    feature[i] = turn % 2 == 0 ? least[i] : largest[i];
            }
            struct dcrf_embedding embedding;
            struct dcrf_code code;
            struct point p;
            struct dcrf_limits limits;
            int64_t key[DCRF_MAX_CORNERS];
            const bool is_single = turn / 2 % 2;
            dcrf_embedding_init(&embedding, d, is_single);
            dcrf_embedding_range(&embedding, least, largest, &limits);
            dcrf_code_init(&code, d, &limits);
            if (!embed_one(is_single, d, feature, &p))
                continue;
            for (size_t i = 0; i <= d; i++)
                if (p.origin[i] < limits.low[i] || p.origin[i] > limits.high[i])
                    fail_msg("d %zu, turn %d: coordinate %zu is %lld, not in %lld .. %lld", d, turn,
                             i, (long long)p.origin[i], (long long)limits.low[i],
                             (long long)limits.high[i]);
            for (size_t i = 0; i < d; i++) {
                const int64_t difference = p.origin[i] - p.origin[i + 1];
                if (difference < limits.difference_low[i] || difference > limits.difference_high[i])
                    fail_msg("d %zu, turn %d: difference %zu is %lld, not in %lld .. %lld", d, turn,
                             i, (long long)difference, (long long)limits.difference_low[i],
                             (long long)limits.difference_high[i]);
            }
            for (size_t k = 0; k <= d; k++) {
                corner_key(&p, d + 1, k, key);
                for (size_t i = 0; i <= d; i++) {
                    /* and its neighbours */
                    assert_true(key[i] - (int64_t)d >= code.limits.low[i]);
                    assert_true(key[i] + (int64_t)d <= code.limits.high[i]);
                }
                for (size_t i = 0; i < d; i++) {
                    const int64_t difference = key[i] - key[i + 1], all = (int64_t)d + 1;
                    assert_true(difference - all >= code.limits.difference_low[i]);
                    assert_true(difference + all <= code.limits.difference_high[i]);
                }
            }
        }
}

/* The limits of a code are those of its fields. */
static void fields_have_limits(void **state) {
    (void)state;
    const struct dcrf_limits limits = {.low = {-5, -6, -7, -8},
                                       .high = {5, 6, 7, 8},
                                       .difference_low = {-9, -10, -11},
                                       .difference_high = {12, 13, 14}};
    struct dcrf_code code;
    dcrf_code_init(&code, 2, &limits); /* two steps, of two or of three */
    assert_int_equal(code.lowest[0], -7 - 4);
    assert_true(code.lowest[0] + (int64_t)code.mask[0] >= 7 + 4);
    assert_int_equal(code.lowest[1], (-9 - 6) / 3);
    assert_true(code.lowest[1] + (int64_t)code.mask[1] >= (12 + 6) / 3);
    assert_true(code.most > (uint64_t)(7 + 4 - code.lowest[0]) << code.shift[0]);
    dcrf_code_init(&code, 3, &limits);
    for (size_t i = 0; i < 3; i++) {
        assert_true(code.lowest[i] * 4 <= limits.difference_low[2 - i] - 2 * 4);
        assert_true((code.lowest[i] + (int64_t)code.mask[i]) * 4 >=
                    limits.difference_high[2 - i] + 2 * 4);
    }
}

/* In the order of the fields; neighbours are found by search. */
static void check_codes(size_t d, unsigned bits_of_field, size_t extra_bits, bool is_large,
                        size_t words) {
    const size_t corners = d + 1;
    const int64_t all = (int64_t)corners;
    /* Leaves room for two steps on either side, and one more for the remainder of the division. */
    const int64_t limit = ((int64_t)1 << (bits_of_field - 1)) - 4;
    struct dcrf_limits limits = {.low = {0}};
    for (size_t i = 0; i < d; i++) {
        limits.difference_low[i] = -limit * all;
        limits.difference_high[i] = limit * all;
        limits.high[d] += (int64_t)(i + 1) * limit;
    }
    if (extra_bits > 0)
        limits.difference_high[d - 1] = (limit << extra_bits) * all;
    limits.low[d] = -limits.high[d];
    for (size_t i = d; i-- > 0;) {
        limits.high[i] = limits.high[i + 1] + all * limit;
        limits.low[i] = -limits.high[i];
    }
    struct dcrf_code code;
    dcrf_code_init(&code, d, &limits);
    assert_int_equal(code.words, words);
    struct vertices list = {.corners = corners, .count = 1200};
    list.key = malloc(list.count * corners * sizeof *list.key);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, d * 1000 + bits_of_field);
    for (size_t v = 0; v < list.count; v++) {
        int64_t *key = list.key + v * corners;
        if (v % 3 == 0 || d == 0) {
            draw_vertex(&rng, d, limit, key);
            continue;
        }
        /* Many have neighbours: one step from the previous vertex, unless that is out of range. */
        step_key(key - corners, corners, dcrf_rng_next(&rng) % corners, v % 2 ? 1 : -1, key);
        for (size_t i = 0; i < d; i++)
            if (llabs(key[i] - key[i + 1]) > limit * all) {
                memcpy(key, key - corners, corners * sizeof *key);
                break;
            }
    }
    vertices_sort(&list);
    uint64_t *codes = malloc(list.count * code.words * sizeof *codes);
    uint64_t *taken = dcrf_allocate(list.count, code.words * sizeof *codes);
    for (size_t v = 0; v < list.count; v++)
        dcrf_code_pack(&code, list.key + v * corners, codes + v * code.words);
    memcpy(taken, codes, list.count * code.words * sizeof *codes);
    struct dcrf_lattice_order order;
    struct dcrf_vertices vertices = {.count = list.count, .codes = taken, .names = list.count};
    assert_int_equal(dcrf_lattice_order_new(&order, &code, &vertices, is_large, NULL, NULL),
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
        for (size_t part = 0; part < dcrf_lattice_order_parts(&order, list.count); part++)
            dcrf_lattice_order_connect(&order, list.count, axis, part, neighbours);
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
    assert_true(found > list.count / 4); /* otherwise this tests little */
    dcrf_lattice_order_clear(&order);
    free(neighbours);
    free(vertex);
    free(codes);
    free(list.key);
}

/* Fields that fill one word exactly, one bit more, and fields as wide as coordinates get. */
static void codes_order_and_connect(void **state) {
    (void)state;
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++)
        for (int is_large = 0; is_large < 2; is_large++) {
            const unsigned bits = (unsigned)(64 / d < 33 ? 64 / d : 33);
            const size_t rest = 64 - d * bits;
            if (bits > 9 && d > 2) { /* room for steps, and equally wide fields */
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

/* A growing table: numbers in order of appearance, keys in the table's own memory. */
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

#define SET_CODES 20000
#define SET_BATCH 50

struct entering {
    struct dcrf_code_set *set;
    const uint64_t *codes;
    uint32_t *slots;
    bool *is_entered; /* per batch */
};

static void enter_batches(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct entering *entering = context;
    for (size_t b = begin; b < end; b++)
        if (!entering->is_entered[b])
            entering->is_entered[b] =
                dcrf_code_set_enter(entering->set, entering->codes + b * SET_BATCH, SET_BATCH,
                                    entering->slots + b * SET_BATCH);
}

/* A set that threads insert codes into, most of them several times, until it is full, and again
 * after it has grown: one slot per code, and all of them in the list. */
static void sets_hold_codes(void **state) {
    (void)state;
    static uint64_t codes[SET_CODES];
    static uint32_t slots[SET_CODES];
    for (size_t turn = 0; turn < 6; turn++) {
        const size_t threads = 1 + turn / 2;
        const bool has_own = turn % 2; /* one slot per possible code */
        struct dcrf_code_set set;
        bool is_entered[SET_CODES / SET_BATCH] = {false};
        struct entering entering = {&set, codes, slots, is_entered};
        dcrf_pool *pool;
        dcrf_rng rng;
        size_t left = 1, growths = 0;
        dcrf_rng_seed(&rng, threads);
        for (size_t i = 0; i < SET_CODES; i++)
            codes[i] = dcrf_rng_next(&rng) % 6000 << (has_own ? 0 : 20);
        codes[7] = has_own ? 5999 : UINT64_MAX - 1;
        assert_int_equal(dcrf_pool_new(&pool, threads, NULL), DCRF_OK);
        assert_int_equal(dcrf_code_set_new(&set, has_own ? 3000 : 500, has_own ? 6000 : UINT64_MAX,
                                           threads > 1, NULL),
                         DCRF_OK);
        while (left > 0) {
            uint32_t *moved;
            dcrf_parallel_for(pool, SET_CODES / SET_BATCH, 1, enter_batches, &entering);
            left = 0;
            for (size_t b = 0; b < SET_CODES / SET_BATCH; b++)
                left += !is_entered[b];
            if (left == 0)
                break;
            assert_int_equal(dcrf_code_set_grow(&set, &moved, NULL), DCRF_OK);
            for (size_t i = 0; i < SET_CODES; i++)
                if (is_entered[i / SET_BATCH])
                    slots[i] = moved[slots[i]];
            dcrf_release(moved);
            growths++;
        }
        assert_true(has_own ? growths == 0 : growths >= 3);
        struct dcrf_vertices vertices;
        assert_int_equal(dcrf_code_set_list(&set, &vertices, pool, NULL), DCRF_OK);
        assert_int_equal(vertices.is_sorted, has_own);
        for (size_t v = 1; v < vertices.count && has_own; v++)
            assert_true(vertices.codes[v - 1] < vertices.codes[v]);
        uint64_t *by_name = calloc(vertices.names, sizeof *by_name);
        for (size_t v = 0; v < vertices.count; v++) {
            assert_true(vertices.name[v] < vertices.names);
            assert_int_equal(by_name[vertices.name[v]], 0);
            by_name[vertices.name[v]] = vertices.codes[v] + 1;
        }
        size_t different = 0;
        for (size_t i = 0; i < SET_CODES; i++) {
            assert_int_equal(by_name[slots[i]], codes[i] + 1);
            size_t first = 0;
            while (codes[first] != codes[i])
                first++;
            different += first == i;
        }
        assert_int_equal(vertices.count, different);
        free(by_name);
        dcrf_vertices_clear(&vertices);
        dcrf_code_set_clear(&set);
        dcrf_pool_free(&pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_room),         cmocka_unit_test(fields_have_limits),
        cmocka_unit_test(codes_order_and_connect), cmocka_unit_test(tables_number_keys),
        cmocka_unit_test(sets_hold_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
