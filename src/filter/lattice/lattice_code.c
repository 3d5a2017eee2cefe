/* Encoding vertices as numbers, ordering them, and finding their neighbours by merging.
 *
 * A vertex is identified by d of its d + 1 coordinates c_0 ... c_d, which sum to zero. They are
 * packed into 64-bit words (usually one) as fields with room for a few steps beyond the existing
 * vertices. A step along an axis subtracts d from the coordinate of that axis and adds 1 to all
 * others; for the code, that is the addition of a constant, and nothing wraps around. A field lies
 * within one word; codes are compared lexicographically by words.
 *
 * Vertices are numbered in the order of their codes. Adding a constant preserves the order, so
 * neighbours along an axis are in the same order as the vertices themselves. A blur then reads
 * memory in three sequential streams, whereas numbering vertices in order of appearance would make
 * every neighbour a random access; and all neighbours along an axis are found in one walk through
 * the codes with two positions, v and its neighbour ahead, without a hash table.
 *
 * The order of the fields matters for filtering. Usually the fields are the differences
 *
 *   u_i = (c_i - c_(i+1)) / (d + 1),   0 <= i < d,
 *
 * integers, because the coordinates of a vertex are congruent modulo d + 1. A step along axis k
 * adds 1 to u_(k-1), subtracts 1 from u_k, and leaves the others unchanged. With u_(d-1) first and
 * u_0 last, the neighbours along the first axes are a few rows away, those along later axes
 * further, and only the last two axes lead out of a layer (the vertices that share u_(d-1)) to the
 * next. Passes that follow each other through the layers (lattice_blur.c) can then be close behind
 * each other.
 *
 * If the rows do not fit in the cache, vertices are ordered by c_d, c_0, c_1 ... instead. The
 * layers are then more numerous and thinner, so the working set of consecutive passes is smaller,
 * although every step leads out of a layer. This order is always used in two dimensions: c_2
 * depends only on the second feature, so the vertices of a spatial lattice follow the lines of the
 * picture. To get the same order in fewer bits, the fields after c_d hold (c_i - c_d) / (d + 1),
 * or, in two dimensions, u_0, which depends only on the first feature: since c_0 and c_1 sum to
 * -c_2, it increases with c_0. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

#define WORD_BITS 64
#define DIGIT_BITS 11
#define DIGITS ((size_t)1 << DIGIT_BITS)
/* Minimum number of values per sorting thread, and maximum number of threads. */
#define SORT_GRAIN 4096
#define MOST_CHUNKS 16

/* ---- codes ---------------------------------------------------------------------------------- */

/* The value of a field. */
static int64_t field_of(const struct dcrf_code *code, size_t field, const int64_t *coordinate) {
    if (field == 0 && !code->by_differences)
        return coordinate[code->dimension];
    return (coordinate[code->plus[field]] - coordinate[code->minus[field]]) /
           (int64_t)(code->dimension + 1);
}

static int64_t floor_of(int64_t value, int64_t divisor) {
    return value / divisor - (value % divisor < 0);
}

/* Limits of a field. */
static void limit_field(const struct dcrf_code *code, size_t field, int64_t *low, int64_t *high) {
    const struct dcrf_limits *limits = &code->limits;
    const int64_t all = (int64_t)(code->dimension + 1);
    const size_t plus = code->plus[field], minus = code->minus[field];
    if (field == 0 && !code->by_differences) {
        *low = limits->low[code->dimension];
        *high = limits->high[code->dimension];
        return;
    }
    const bool is_next = minus == plus + 1;
    *low = is_next ? limits->difference_low[plus] : limits->low[plus] - limits->high[minus];
    *high = is_next ? limits->difference_high[plus] : limits->high[plus] - limits->low[minus];
    *low = floor_of(*low, all);
    *high = floor_of(*high, all) + 1;
}

/* Lay out the fields for the limits of a code. */
static void make_fields(struct dcrf_code *code) {
    const size_t d = code->dimension;
    unsigned width[DCRF_MAX_FEATURES], used[DCRF_CODE_WORDS] = {0};
    int64_t high = 0, first_high = 0;
    code->words = 1;
    for (size_t i = 0; i < d; i++) {
        code->plus[i] = code->by_differences ? d - 1 - i : i == 0 ? d : i - 1;
        code->minus[i] = code->by_differences ? d - i : d == 2 ? 1 : d;
        limit_field(code, i, &code->lowest[i], &high);
        first_high = i == 0 ? high : first_high;
        width[i] = 1;
        while (high - code->lowest[i] >= (int64_t)1 << width[i])
            width[i]++;
        if (used[code->words - 1] + width[i] > WORD_BITS)
            code->words++;
        code->word[i] = code->words - 1;
        used[code->word[i]] += width[i];
    }
    for (size_t i = 0; i < d; i++) {
        code->shift[i] = used[code->word[i]] -= width[i];
        code->mask[i] = ((uint64_t)1 << width[i]) - 1;
    }
    code->most = (uint64_t)(first_high - code->lowest[0] + 1) << code->shift[0];
    memset(code->step, 0, sizeof code->step);
    for (size_t axis = 0; axis <= d; axis++) {
        int64_t step[DCRF_MAX_CORNERS];
        for (size_t i = 0; i <= d; i++)
            step[i] = i == axis ? -(int64_t)d : 1;
        for (size_t i = 0; i < d; i++)
            code->step[axis][code->word[i]] += (uint64_t)field_of(code, i, step) << code->shift[i];
    }
}

/* Steps from the origin of a simplex to the neighbours of its corners: every coordinate of a corner
 * is within one step of d units of the origin's. */
#define STEPS 2

void dcrf_code_init(struct dcrf_code *code, size_t dimension, const struct dcrf_limits *limits) {
    const int64_t d = (int64_t)dimension;
    *code = (struct dcrf_code){
        .dimension = dimension, .by_differences = dimension > 2, .limits = *limits};
    for (size_t i = 0; i <= dimension; i++) {
        code->limits.low[i] -= STEPS * d;
        code->limits.high[i] += STEPS * d;
    }
    for (size_t i = 0; i < dimension; i++) { /* a step changes one by 1 and the other by -d: d + 1
                                              * in all */
        code->limits.difference_low[i] -= STEPS * (d + 1);
        code->limits.difference_high[i] += STEPS * (d + 1);
    }
    make_fields(code);
}

void dcrf_code_pack(const struct dcrf_code *code, const int64_t *coordinate, uint64_t *words) {
    memset(words, 0, code->words * sizeof *words);
    for (size_t i = 0; i < code->dimension; i++)
        words[code->word[i]] |= (uint64_t)(field_of(code, i, coordinate) - code->lowest[i])
                                << code->shift[i];
}

/* ---- sorting -------------------------------------------------------------------------------- */

struct sorter {
    size_t count;
    uint64_t *value, *spare;
    size_t chunks;              /* ranges sorted in parallel */
    uint32_t (*counts)[DIGITS]; /* one row per chunk; too large for a small stack */
    unsigned shift;             /* of the current digit */
    uint64_t mask;
};

static size_t chunk_begin(const struct sorter *s, size_t chunk) {
    return s->count * chunk / s->chunks;
}

static void count_digits(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sorter *s = context;
    for (size_t chunk = begin; chunk < end; chunk++) {
        uint32_t *counts = s->counts[chunk];
        memset(counts, 0, ((size_t)s->mask + 1) * sizeof *counts);
        for (size_t i = chunk_begin(s, chunk); i < chunk_begin(s, chunk + 1); i++)
            counts[s->value[i] >> s->shift & s->mask]++;
    }
}

static void place_digits(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sorter *s = context;
    const uint64_t *value = s->value, mask = s->mask;
    const unsigned shift = s->shift;
    uint64_t *to = s->spare;
    for (size_t chunk = begin; chunk < end; chunk++) {
        uint32_t *next = s->counts[chunk];
        for (size_t i = chunk_begin(s, chunk); i < chunk_begin(s, chunk + 1); i++)
            to[next[value[i] >> shift & mask]++] = value[i];
    }
}

/* Radix sort, least significant digit first. The result does not depend on the number of chunks. */
bool dcrf_sort(uint64_t **values, size_t count, unsigned from_bit, unsigned to_bit,
               dcrf_pool *pool) {
    const unsigned digits = (to_bit - from_bit + DIGIT_BITS - 1) / DIGIT_BITS;
    const size_t threads = dcrf_pool_threads(pool);
    struct sorter s = {.count = count, .value = *values};
    s.chunks = threads < MOST_CHUNKS ? threads : MOST_CHUNKS;
    s.chunks = count / SORT_GRAIN < s.chunks ? count / SORT_GRAIN + 1 : s.chunks;
    s.spare = dcrf_allocate(count, sizeof *s.spare);
    s.counts = dcrf_allocate(s.chunks, sizeof *s.counts);
    const bool is_done = s.spare && s.counts;
    for (unsigned i = 0; i < digits && is_done; i++) {
        const unsigned begin = from_bit + (to_bit - from_bit) * i / digits;
        const unsigned end = from_bit + (to_bit - from_bit) * (i + 1) / digits;
        uint32_t sum = 0;
        s.shift = begin;
        s.mask = ((uint64_t)1 << (end - begin)) - 1;
        dcrf_parallel_for(pool, s.chunks, 1, count_digits, &s);
        for (size_t digit = 0; digit <= s.mask; digit++)
            for (size_t chunk = 0; chunk < s.chunks; chunk++) {
                const uint32_t found = s.counts[chunk][digit];
                s.counts[chunk][digit] = sum;
                sum += found;
            }
        dcrf_parallel_for(pool, s.chunks, 1, place_digits, &s);
        uint64_t *sorted = s.spare;
        s.spare = s.value;
        s.value = sorted;
    }
    dcrf_release(s.spare);
    dcrf_release(s.counts);
    *values = s.value;
    return is_done;
}

unsigned dcrf_bits_of(uint64_t most) {
    unsigned bits = 1;
    while (bits < WORD_BITS && most >> bits > 0)
        bits++;
    return bits;
}

/* ---- the order ------------------------------------------------------------------------------ */

/* Convert codes from differences to coordinates. */
struct recoding {
    const struct dcrf_code *from, *to;
    const uint64_t *codes;
    uint64_t *result;
};

/* Specialized for common dimensions and numbers of words. Since the coordinates sum to zero, c_d is
 * -sum (i + 1) u_i, and (c_i - c_d) / (d + 1) is the sum of u_i and all that follow. */
DCRF_FOR_CONSTANTS void recode_range(const struct recoding *recoding, size_t begin, size_t end,
                                     size_t d, size_t from_words, size_t to_words) {
    const struct dcrf_code from = *recoding->from, to = *recoding->to; /* local copies, which cannot
                                                                        * alias the output */
    for (size_t v = begin; v < end; v++) {
        const uint64_t *words = recoding->codes + v * from_words;
        uint64_t *result = recoding->result + v * to_words;
        int64_t sum = 0, last = 0;
        for (size_t i = 0; i < to_words; i++)
            result[i] = 0;
        for (size_t i = d; i-- > 0;) {
            const size_t field = d - 1 - i;
            const uint64_t word = words[from_words == 1 ? 0 : from.word[field]];
            const int64_t u =
                from.lowest[field] + (int64_t)(word >> from.shift[field] & from.mask[field]);
            last -= (int64_t)(i + 1) * u;
            sum += u;
            if (i + 1 < d)
                result[to_words == 1 ? 0 : to.word[i + 1]] |= (uint64_t)(sum - to.lowest[i + 1])
                                                              << to.shift[i + 1];
        }
        result[0] |= (uint64_t)(last - to.lowest[0]) << to.shift[0];
    }
}

static void recode_some(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct recoding *recoding = context;
    const struct dcrf_code *from = recoding->from, *to = recoding->to;
    if (from->dimension == 5 && from->words == 1 && to->words == 1)
        recode_range(recoding, begin, end, 5, 1, 1);
    else
        recode_range(recoding, begin, end, from->dimension, from->words, to->words);
}

static uint64_t *recode(struct dcrf_code *code, const uint64_t *codes, size_t count,
                        dcrf_pool *pool) {
    struct dcrf_code made = *code;
    made.by_differences = false;
    make_fields(&made);
    uint64_t *result = dcrf_allocate(count, made.words * sizeof *result);
    struct recoding recoding = {code, &made, codes, result};
    if (result)
        dcrf_parallel_rows(pool, count, recode_some, &recoding);
    *code = made;
    return result;
}

/* Codes and names packed together into one word. */
struct packing {
    uint64_t *codes;
    const uint32_t *name; /* NULL: indices */
    unsigned name_bits;
    uint32_t *number;
};

static void pack_some(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct packing *packing = context;
    for (size_t i = begin; i < end; i++)
        packing->codes[i] = packing->codes[i] << packing->name_bits |
                            (packing->name ? packing->name[i] : (uint32_t)i);
}

static void unpack_some(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct packing *packing = context;
    const uint64_t mask = ((uint64_t)1 << packing->name_bits) - 1;
    for (size_t i = begin; i < end; i++) {
        packing->number[packing->codes[i] & mask] = (uint32_t)i;
        packing->codes[i] >>= packing->name_bits;
    }
}

/* Sort by half a word of the code at a time, the last one first, paired with the index of the code.
 */
#define HALF_BITS 32

static bool order_halves(struct dcrf_lattice_order *order, const struct dcrf_vertices *vertices,
                         dcrf_pool *pool) {
    const size_t words = order->code.words, count = vertices->count;
    uint64_t *codes = dcrf_allocate(count, words * sizeof *codes);
    uint64_t *value = dcrf_allocate(count, sizeof *value);
    bool is_done = codes && value;
    for (size_t i = 0; i < count && is_done; i++)
        value[i] = i;
    for (size_t half = 2 * words; half-- > 0 && is_done;) {
        for (size_t i = 0; i < count; i++) {
            const uint64_t place = (uint32_t)value[i];
            const uint64_t word = order->codes[place * words + half / 2];
            value[i] = (half % 2 ? word << HALF_BITS : word >> HALF_BITS << HALF_BITS) | place;
        }
        is_done = dcrf_sort(&value, count, HALF_BITS, WORD_BITS, pool);
    }
    for (size_t i = 0; i < count && is_done; i++) {
        const size_t place = (uint32_t)value[i];
        memcpy(codes + i * words, order->codes + place * words, words * sizeof *codes);
        order->number[vertices->name ? vertices->name[place] : place] = (uint32_t)i;
    }
    dcrf_release(value);
    dcrf_release(is_done ? order->codes : codes);
    order->codes = is_done ? codes : order->codes;
    return is_done;
}

static bool order_codes(struct dcrf_lattice_order *order, const struct dcrf_vertices *vertices,
                        dcrf_pool *pool) {
    const size_t count = vertices->count;
    const struct dcrf_code *code = &order->code;
    struct packing packing = {order->codes, vertices->name, dcrf_bits_of(vertices->names - 1),
                              order->number};
    const unsigned code_bits = dcrf_bits_of(code->mask[0] << code->shift[0]);
    if (code->words > 1 || code_bits + packing.name_bits > WORD_BITS)
        return order_halves(order, vertices, pool);
    dcrf_parallel_rows(pool, count, pack_some, &packing);
    const bool is_done = vertices->is_sorted || dcrf_sort(&packing.codes, count, packing.name_bits,
                                                          packing.name_bits + code_bits, pool);
    order->codes = packing.codes;
    if (is_done)
        dcrf_parallel_rows(pool, count, unpack_some, &packing);
    return is_done;
}

void dcrf_vertices_clear(struct dcrf_vertices *vertices) {
    dcrf_release(vertices->codes);
    dcrf_release(vertices->name);
    *vertices = (struct dcrf_vertices){0};
}

void dcrf_lattice_order_clear(struct dcrf_lattice_order *order) {
    dcrf_release(order->codes);
    dcrf_release(order->number);
    *order = (struct dcrf_lattice_order){0};
}

dcrf_status dcrf_lattice_order_new(struct dcrf_lattice_order *order, const struct dcrf_code *code,
                                   struct dcrf_vertices *vertices, bool is_large, dcrf_pool *pool,
                                   dcrf_error *error) {
    *order = (struct dcrf_lattice_order){.code = *code, .codes = vertices->codes};
    vertices->codes = NULL;
    if (is_large && code->by_differences) {
        uint64_t *codes = order->codes;
        order->codes = recode(&order->code, codes, vertices->count, pool);
        dcrf_release(codes);
    }
    order->number = dcrf_allocate(vertices->names, sizeof *order->number);
    const bool is_done = order->codes && order->number && order_codes(order, vertices, pool);
    dcrf_vertices_clear(vertices);
    if (is_done)
        return DCRF_OK;
    dcrf_lattice_order_clear(order);
    return dcrf_fail_memory(error, "the plan of a lattice");
}

/* ---- neighbours ----------------------------------------------------------------------------- */

/* A walk through the codes from `v` to `v_end`, in parallel with those one step ahead. */
struct walk {
    size_t v, v_end, ahead, ahead_end;
};

/* The first code that is not below a value. */
static size_t find_code(const uint64_t *code, size_t count, uint64_t wanted) {
    size_t begin = 0;
    while (count > 0) {
        const size_t half = count / 2;
        const bool is_below = code[begin + half] < wanted;
        begin = is_below ? begin + half + 1 : begin;
        count = is_below ? count - half - 1 : half;
    }
    return begin;
}

/* Advance at least one of the two positions. Branch-free: the branch would be unpredictable. */
static inline __attribute__((always_inline)) void walk_on(const uint64_t *code, uint64_t step,
                                                          uint32_t none, struct walk *walk,
                                                          uint32_t *neighbours) {
    const uint64_t wanted = code[walk->v] + step, ahead = code[walk->ahead];
    const bool are_neighbours = ahead == wanted;
    neighbours[2 * walk->v + 1] = are_neighbours ? (uint32_t)walk->ahead : none;
    neighbours[2 * walk->ahead] = are_neighbours ? (uint32_t)walk->v : none;
    walk->v += ahead >= wanted;
    walk->ahead += ahead <= wanted;
}

/* Each step of a walk depends on the previous one; interleaving several walks hides the latency. */
#define WALKS 4
/* Codes of a part: a part begins with a few searches. */
#define LEAST_CONNECTED 8192

/* Where the neighbours ahead of the codes from `v` on begin. */
static size_t find_ahead(const uint64_t *code, size_t count, uint64_t step, size_t v) {
    return v == 0 ? 0 : v == count ? count : find_code(code, count, code[v] + step);
}

static void connect_words(const uint64_t *code, size_t count, uint64_t step, size_t begin,
                          size_t end, uint32_t *neighbours) {
    const uint32_t none = (uint32_t)count;
    struct walk walk[WALKS];
    for (size_t i = 0; i < WALKS; i++) {
        const size_t v = begin + (end - begin) * i / WALKS;
        const size_t v_end = begin + (end - begin) * (i + 1) / WALKS;
        walk[i] = (struct walk){v, v_end, find_ahead(code, count, step, v),
                                find_ahead(code, count, step, v_end)};
    }
    for (;;) {
        size_t turns = SIZE_MAX; /* before any walk can end */
        for (size_t i = 0; i < WALKS; i++) {
            const size_t left = walk[i].v_end - walk[i].v;
            const size_t left_ahead = walk[i].ahead_end - walk[i].ahead;
            turns = left < turns ? left : turns;
            turns = left_ahead < turns ? left_ahead : turns;
        }
        if (turns == 0)
            break;
        for (; turns > 0; turns--)
            for (size_t i = 0; i < WALKS; i++)
                walk_on(code, step, none, &walk[i], neighbours);
    }
    for (size_t i = 0; i < WALKS; i++) {
        struct walk rest = walk[i];
        while (rest.v < rest.v_end && rest.ahead < rest.ahead_end)
            walk_on(code, step, none, &rest, neighbours);
        for (; rest.v < rest.v_end; rest.v++)
            neighbours[2 * rest.v + 1] = none;
        for (; rest.ahead < rest.ahead_end; rest.ahead++)
            neighbours[2 * rest.ahead] = none;
    }
}

static int compare(const uint64_t *one, const uint64_t *other, size_t words) {
    size_t i = 0;
    while (i + 1 < words && one[i] == other[i])
        i++;
    return (one[i] > other[i]) - (one[i] < other[i]);
}

size_t dcrf_lattice_order_parts(const struct dcrf_lattice_order *order, size_t count) {
    return order->code.words > 1 ? 1 : count / LEAST_CONNECTED + 1;
}

void dcrf_lattice_order_connect(const struct dcrf_lattice_order *order, size_t count, size_t axis,
                                size_t part, uint32_t *neighbours) {
    const size_t words = order->code.words, parts = dcrf_lattice_order_parts(order, count);
    const uint64_t *step = order->code.step[axis], *codes = order->codes;
    if (words == 1) {
        connect_words(codes, count, step[0], count * part / parts, count * (part + 1) / parts,
                      neighbours);
        return;
    }
    const uint32_t none = (uint32_t)count;
    for (size_t i = 0; i < 2 * count; i++)
        neighbours[i] = none;
    for (size_t v = 0, ahead = 0; v < count; v++) {
        uint64_t wanted[DCRF_CODE_WORDS];
        for (size_t i = 0; i < words; i++)
            wanted[i] = codes[v * words + i] + step[i];
        int sign = -1;
        while (ahead < count && (sign = compare(codes + ahead * words, wanted, words)) < 0)
            ahead++;
        if (sign == 0) {
            neighbours[2 * v + 1] = (uint32_t)ahead;
            neighbours[2 * ahead] = (uint32_t)v;
        }
    }
}
