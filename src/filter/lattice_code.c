/* Vertices of a lattice as numbers, their order, and their neighbours by merging.
 *
 * A vertex is told by d of its d + 1 coordinates c_0 ... c_d, which sum to zero. They are packed
 * into words of 64 bits (one word, as a rule) as fields that have room for steps beyond what there
 * is, so that a step along an axis, which adds 1 to every coordinate but that of the axis and takes
 * d from that one, is the addition of a constant to the code, and nothing wraps. A field lies
 * within one word; words are compared one after the other.
 *
 * Vertices are numbered in the order of their codes. Adding a constant does not change an order:
 * the neighbours of vertices that follow each other follow each other too. A blur then runs through
 * memory in three even streams, where numbers in the order of appearance make every neighbour a
 * jump; and all neighbours along an axis come from one walk through the codes with two places, v
 * and that of v's neighbour ahead, without a table.
 *
 * Which coordinates come first matters to the filters. As a rule these are the differences
 *
 *   u_i = (c_i - c_(i+1)) / (d + 1),   0 <= i < d,
 *
 * whole numbers, because the coordinates of a vertex are congruent modulo d + 1. A step along axis
 * k adds 1 to u_(k-1) and takes 1 from u_k, and leaves all others. With u_(d-1) first and u_0 last,
 * the neighbours along the first axes are a few rows away, those along the others further, and only
 * the last two axes lead out of a layer, the vertices that share u_(d-1), to the next. Passes that
 * follow each other through the layers (lattice_blur.c) are then close behind each other.
 *
 * Where the rows do not fit in the cache the order goes by c_d, c_0, c_1 ... instead. There are
 * more layers then, and thinner ones: what passes that follow each other hold between them is less,
 * although every step leads out of a layer. So it does in two dimensions, always: c_2 depends on
 * the second feature alone, so that the vertices of a spatial lattice come in the order of the
 * lines of the picture. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <string.h>

#define WORD_BITS 64
#define DIGIT_BITS 11
#define DIGITS ((size_t)1 << DIGIT_BITS)
/* Numbers that a thread sorts, at least, and threads at most. */
#define SORT_GRAIN 16384
#define MOST_CHUNKS 16

/* ---- codes ---------------------------------------------------------------------------------- */

/* The coordinate that a field holds, where fields are not differences. */
static size_t coordinate_of(const struct dcrf_code *code, size_t field) {
    return field == 0 ? code->dimension : field - 1;
}

/* What a step ahead along an axis adds to a field. */
static int64_t field_step(const struct dcrf_code *code, size_t axis, size_t field) {
    if (!code->by_differences)
        return axis == coordinate_of(code, field) ? -(int64_t)code->dimension : 1;
    const size_t i = code->dimension - 1 - field;
    return axis == i ? -1 : axis == i + 1 ? 1 : 0;
}

/* Codes for fields between these limits; those of coordinates are for others to set. */
static void code_init(struct dcrf_code *code, size_t dimension, bool by_differences,
                      const int64_t *least, const int64_t *largest) {
    unsigned width[DCRF_MAX_FEATURES], used[DCRF_CODE_WORDS] = {0};
    *code =
        (struct dcrf_code){.dimension = dimension, .words = 1, .by_differences = by_differences};
    for (size_t i = 0; i < dimension; i++) {
        code->lowest[i] = least[i];
        width[i] = 1;
        while (largest[i] - least[i] >= (int64_t)1 << width[i])
            width[i]++;
        if (used[code->words - 1] + width[i] > WORD_BITS)
            code->words++;
        code->word[i] = code->words - 1;
        used[code->word[i]] += width[i];
    }
    for (size_t i = 0; i < dimension; i++)
        code->shift[i] = used[code->word[i]] -= width[i];
    for (size_t i = 0; i < dimension; i++)
        code->mask[i] = ((uint64_t)1 << width[i]) - 1;
    for (size_t axis = 0; axis <= dimension; axis++)
        for (size_t i = 0; i < dimension; i++)
            code->step[axis][code->word[i]] += (uint64_t)field_step(code, axis, i)
                                               << code->shift[i];
}

/* Steps that lead from the origin of a simplex to a corner and to its neighbours: a corner is less
 * than one step of d units away along every coordinate. */
#define STEPS 2

void dcrf_code_init(struct dcrf_code *code, size_t dimension, const int64_t *least,
                    const int64_t *largest, size_t rings) {
    const struct dcrf_code by_coordinates = {.dimension = dimension};
    int64_t low[DCRF_MAX_FEATURES], high[DCRF_MAX_FEATURES];
    const int64_t room = (int64_t)((STEPS + rings) * dimension);
    for (size_t i = 0; i < dimension; i++) {
        low[i] = least[coordinate_of(&by_coordinates, i)] - room;
        high[i] = largest[coordinate_of(&by_coordinates, i)] + room;
    }
    code_init(code, dimension, false, low, high);
    for (size_t i = 0; i <= dimension; i++) {
        code->least[i] = least[i] - room;
        code->largest[i] = largest[i] + room;
    }
}

void dcrf_code_pack(const struct dcrf_code *code, const int64_t *coordinate, uint64_t *words) {
    memset(words, 0, code->words * sizeof *words);
    for (size_t i = 0; i < code->dimension; i++)
        words[code->word[i]] |= (uint64_t)(coordinate[coordinate_of(code, i)] - code->lowest[i])
                                << code->shift[i];
}

/* ---- the order ------------------------------------------------------------------------------ */

/* Numbers with one that goes with each, and as much room again for sorting. */
struct sorter {
    size_t count;
    uint64_t *value, *spare_value;
    uint32_t *index, *spare_index;
    dcrf_pool *pool;
    size_t chunks;              /* ranges that threads work on at the same time */
    uint32_t (*counts)[DIGITS]; /* one row per chunk: too much for a small stack */
    unsigned shift;             /* of the digit that is sorted by */
};

static void swap_places(struct sorter *s) {
    uint64_t *value = s->value;
    uint32_t *index = s->index;
    s->value = s->spare_value;
    s->index = s->spare_index;
    s->spare_value = value;
    s->spare_index = index;
}

static size_t chunk_begin(const struct sorter *s, size_t chunk) {
    return s->count * chunk / s->chunks;
}

static void count_digits(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sorter *s = context;
    for (size_t chunk = begin; chunk < end; chunk++) {
        uint32_t *counts = s->counts[chunk];
        memset(counts, 0, sizeof *s->counts);
        for (size_t i = chunk_begin(s, chunk); i < chunk_begin(s, chunk + 1); i++)
            counts[s->value[i] >> s->shift & (DIGITS - 1)]++;
    }
}

static void place_digits(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sorter *s = context;
    const uint64_t *value = s->value;
    const uint32_t *index = s->index;
    uint64_t *to_value = s->spare_value;
    uint32_t *to_index = s->spare_index;
    for (size_t chunk = begin; chunk < end; chunk++) {
        uint32_t *next = s->counts[chunk];
        for (size_t i = chunk_begin(s, chunk); i < chunk_begin(s, chunk + 1); i++) {
            const uint32_t place = next[value[i] >> s->shift & (DIGITS - 1)]++;
            to_value[place] = value[i];
            to_index[place] = index[i];
        }
    }
}

/* Stable, by digits, the lowest first; digits that are the same everywhere are left out. Chunks
 * that follow each other stay in their order, however many there are. */
static void sort(struct sorter *s) {
    uint64_t differences = 0;
    for (size_t i = 0; i < s->count; i++)
        differences |= s->value[i] ^ s->value[0];
    for (s->shift = 0; s->shift < WORD_BITS; s->shift += DIGIT_BITS) {
        uint32_t sum = 0;
        if ((differences >> s->shift & (DIGITS - 1)) == 0)
            continue;
        dcrf_parallel_for(s->pool, s->chunks, 1, count_digits, s);
        for (size_t digit = 0; digit < DIGITS; digit++)
            for (size_t chunk = 0; chunk < s->chunks; chunk++) {
                const uint32_t here = s->counts[chunk][digit];
                s->counts[chunk][digit] = sum;
                sum += here;
            }
        dcrf_parallel_for(s->pool, s->chunks, 1, place_digits, s);
        swap_places(s);
    }
}

/* Division of a multiple of d + 1 by d + 1, as a product: what is odd of a divisor has an inverse
 * modulo 2^64. */
struct division {
    unsigned shift;
    uint64_t inverse;
};

static struct division division_by(uint64_t divisor) {
    struct division division = {.inverse = 1};
    for (; divisor % 2 == 0; divisor /= 2)
        division.shift++;
    for (int i = 0; i < 6; i++) /* Newton's iteration doubles the bits that are right */
        division.inverse *= 2 - divisor * division.inverse;
    return division;
}

/* A multiple, which may be negative, shifted with its sign. */
static inline int64_t divide(struct division division, int64_t multiple) {
    return (int64_t)((uint64_t)(multiple >> division.shift) * division.inverse);
}

/* Codes by differences instead. */
struct recoding {
    const struct dcrf_code *from, *to;
    const uint64_t *codes;
    uint64_t *result;
};

/* With the usual dimension and numbers of words as constants. */
static inline __attribute__((always_inline)) void recode_range(const struct recoding *recoding,
                                                               size_t begin, size_t end, size_t d,
                                                               size_t from_words, size_t to_words) {
    const struct dcrf_code from = *recoding->from, to = *recoding->to; /* which no store changes */
    const struct division by_all = division_by((uint64_t)(d + 1));
    for (size_t v = begin; v < end; v++) {
        const uint64_t *words = recoding->codes + v * from_words;
        uint64_t *result = recoding->result + v * to_words;
        int64_t coordinate[DCRF_MAX_CORNERS], sum = 0;
        for (size_t i = 0; i < d; i++) {
            const uint64_t word = words[from_words == 1 ? 0 : from.word[i]];
            const int64_t value = from.lowest[i] + (int64_t)(word >> from.shift[i] & from.mask[i]);
            coordinate[i == 0 ? d : i - 1] = value;
            sum += value;
        }
        coordinate[d - 1] = -sum; /* the one that no field holds */
        for (size_t i = 0; i < to_words; i++)
            result[i] = 0;
        for (size_t field = 0; field < d; field++) {
            const size_t i = d - 1 - field;
            const int64_t value = divide(by_all, coordinate[i] - coordinate[i + 1]);
            result[to_words == 1 ? 0 : to.word[field]] |= (uint64_t)(value - to.lowest[field])
                                                          << to.shift[field];
        }
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
    const size_t d = code->dimension;
    const int64_t all = (int64_t)(d + 1);
    int64_t least[DCRF_MAX_FEATURES], largest[DCRF_MAX_FEATURES];
    for (size_t field = 0; field < d; field++) {
        const size_t i = d - 1 - field;
        least[field] = (code->least[i] - code->largest[i + 1]) / all - 1;
        largest[field] = (code->largest[i] - code->least[i + 1]) / all + 1;
    }
    struct dcrf_code made;
    code_init(&made, d, true, least, largest);
    uint64_t *result = dcrf_allocate(count, made.words * sizeof *result);
    struct recoding recoding = {code, &made, codes, result};
    if (result)
        dcrf_parallel_for(pool, count, SORT_GRAIN, recode_some, &recoding);
    *code = made;
    return result;
}

/* Sort by the last word first; with one word the sorter's values are the sorted codes. */
static bool order_codes(struct dcrf_lattice_order *order, struct sorter *s) {
    const size_t words = order->code.words, count = s->count;
    for (size_t i = 0; i < count; i++)
        s->index[i] = (uint32_t)i;
    for (size_t word = words; word-- > 0;) {
        for (size_t i = 0; words > 1 && i < count; i++)
            s->value[i] = order->codes[s->index[i] * words + word];
        sort(s);
    }
    if (words > 1) {
        uint64_t *sorted = dcrf_allocate(count, words * sizeof *sorted);
        if (!sorted)
            return false;
        for (size_t i = 0; i < count; i++)
            memcpy(sorted + i * words, order->codes + s->index[i] * words, words * sizeof *sorted);
        dcrf_release(order->codes);
        order->codes = sorted;
    }
    return true;
}

void dcrf_lattice_order_clear(struct dcrf_lattice_order *order) {
    dcrf_release(order->codes);
    dcrf_release(order->number);
    *order = (struct dcrf_lattice_order){0};
}

dcrf_status dcrf_lattice_order_new(struct dcrf_lattice_order *order, const struct dcrf_code *code,
                                   uint64_t *codes, size_t count, bool is_large, dcrf_pool *pool,
                                   dcrf_error *error) {
    *order = (struct dcrf_lattice_order){.code = *code, .codes = codes};
    bool is_done = true;
    if (!is_large && code->dimension > 2) {
        order->codes = recode(&order->code, codes, count, pool);
        dcrf_release(codes);
        is_done = order->codes;
    }
    const size_t own = is_done && order->code.words > 1 ? count : 0;
    struct sorter s = {.count = count, .pool = pool, .chunks = dcrf_pool_threads(pool)};
    s.chunks = s.chunks < MOST_CHUNKS ? s.chunks : MOST_CHUNKS;
    s.chunks = count / s.chunks < SORT_GRAIN ? 1 : s.chunks;
    uint64_t *value = dcrf_allocate(own, sizeof *value);
    s.value = order->code.words > 1 ? value : order->codes;
    s.spare_value = dcrf_allocate(count, sizeof *s.spare_value);
    s.index = dcrf_allocate(count, sizeof *s.index);
    s.spare_index = dcrf_allocate(count, sizeof *s.spare_index);
    s.counts = dcrf_allocate(s.chunks, sizeof *s.counts);
    is_done = is_done && value && s.spare_value && s.index && s.spare_index && s.counts;
    if (is_done) {
        is_done = order_codes(order, &s);
        for (size_t i = 0; i < count; i++)
            s.spare_index[s.index[i]] = (uint32_t)i;
    }
    if (order->code.words == 1) { /* the sorter may have swapped them */
        order->codes = s.value;
        dcrf_release(value);
    } else {
        dcrf_release(s.value);
    }
    dcrf_release(s.spare_value);
    dcrf_release(s.index);
    dcrf_release(s.counts);
    order->number = s.spare_index;
    if (is_done)
        return DCRF_OK;
    dcrf_lattice_order_clear(order);
    return dcrf_fail_memory(error, "the plan of a lattice");
}

/* ---- neighbours ----------------------------------------------------------------------------- */

/* A walk through the codes from `v` to `v_end`, and through those that are one step ahead. */
struct walk {
    size_t v, v_end, ahead, ahead_end;
};

/* The first code that is not below a number. */
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

/* Both places move on without a branch that could be guessed wrong; one of the two at least. */
static inline __attribute__((always_inline)) void walk_on(const uint64_t *code, uint64_t step,
                                                          uint32_t none, struct walk *walk,
                                                          uint32_t *neighbours) {
    const uint64_t wanted = code[walk->v] + step, here = code[walk->ahead];
    const bool is_there = here == wanted;
    neighbours[2 * walk->v + 1] = is_there ? (uint32_t)walk->ahead : none;
    neighbours[2 * walk->ahead] = is_there ? (uint32_t)walk->v : none;
    walk->v += here >= wanted;
    walk->ahead += here <= wanted;
}

/* A step of a walk waits for the one before; several walks at a time do not wait for each other. */
#define WALKS 4

static void connect_words(const uint64_t *code, size_t count, uint64_t step, uint32_t *neighbours) {
    const uint32_t none = (uint32_t)count;
    struct walk walk[WALKS];
    for (size_t i = 0; i < WALKS; i++) {
        walk[i].v = count * i / WALKS;
        walk[i].v_end = count * (i + 1) / WALKS;
        walk[i].ahead = i == 0 ? 0 : find_code(code, count, code[walk[i].v] + step);
        walk[i].ahead_end = count;
        if (i > 0)
            walk[i - 1].ahead_end = walk[i].ahead;
    }
    for (;;) {
        size_t turns = SIZE_MAX; /* which no walk can end before */
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

void dcrf_lattice_order_connect(const struct dcrf_lattice_order *order, size_t count, size_t axis,
                                uint32_t *neighbours) {
    const size_t words = order->code.words;
    const uint64_t *step = order->code.step[axis], *codes = order->codes;
    if (words == 1) {
        connect_words(codes, count, step[0], neighbours);
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
