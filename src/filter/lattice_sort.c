/* Numbering the vertices of a lattice in the order of their keys.
 *
 * The order by one coordinate, then another and so on does not change when one vector is added to
 * all keys: the neighbours of vertices that follow each other, one step along an axis, follow each
 * other too. A blur then runs through memory in three even streams, where numbers in the order of
 * appearance make every neighbour a jump; and neighbours are found by merging, without a table. A
 * lattice that fits in the cache gains nothing.
 *
 * The coordinates that the order goes by are not those of the key. With c_d = -(c_0 + ... +
 * c_(d-1)), the coordinate that a key leaves out, they are the differences
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
 * lines of the picture.
 *
 * A key is packed into one number of 64 bits, its coordinates in fields that have room for a step
 * in either direction, so that a step is the addition of a constant. Where fields do not fit, the
 * numbers stay as they are. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <string.h>

/* Rows of 32 bytes that fit in a second-level cache of 1 MB, both buffers of a blur, several times
 * over. */
#define FEWEST_VERTICES 4096
#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)

/* Field 0, the highest, tells the layer. */
struct fields {
    size_t dimension;
    bool by_differences;
    int64_t lowest[DCRF_MAX_FEATURES];
    unsigned shift[DCRF_MAX_FEATURES];
    unsigned bits; /* all together */
};

/* Coordinate i of a vertex, the last one included. */
static int64_t coordinate(const int32_t *key, size_t dimension, size_t i) {
    if (i < dimension)
        return key[i];
    int64_t sum = 0;
    for (size_t k = 0; k < dimension; k++)
        sum += key[k];
    return -sum;
}

static int64_t field_value(const struct fields *fields, const int32_t *key, size_t field) {
    const size_t d = fields->dimension;
    if (!fields->by_differences)
        return coordinate(key, d, field == 0 ? d : field - 1);
    const size_t i = d - 1 - field;
    return (coordinate(key, d, i) - coordinate(key, d, i + 1)) / (int64_t)(d + 1);
}

/* What a step ahead along an axis adds to a field: as step_key in lattice_build.c. */
static int64_t field_step(const struct fields *fields, size_t axis, size_t field) {
    const size_t d = fields->dimension;
    if (!fields->by_differences)
        return axis == (field == 0 ? d : field - 1) ? -(int64_t)d : 1;
    const size_t i = d - 1 - field;
    return axis == i ? -1 : axis == i + 1 ? 1 : 0;
}

static bool fields_init(struct fields *fields, const struct dcrf_table *table, bool is_large) {
    const size_t d = table->dimension;
    const int64_t step = (int64_t)d + 1;
    unsigned width[DCRF_MAX_FEATURES];
    *fields = (struct fields){.dimension = d, .by_differences = !is_large && d > 2};
    for (size_t i = 0; i < d; i++) {
        int64_t lowest = field_value(fields, table->keys, i), highest = lowest;
        for (size_t v = 1; v < table->count; v++) {
            const int64_t value = field_value(fields, table->keys + v * d, i);
            lowest = value < lowest ? value : lowest;
            highest = value > highest ? value : highest;
        }
        fields->lowest[i] = lowest - step;
        width[i] = 1;
        while (highest + step - fields->lowest[i] >= (int64_t)1 << width[i])
            width[i]++;
        fields->bits += width[i];
    }
    unsigned shift = fields->bits;
    for (size_t i = 0; i < d; i++)
        fields->shift[i] = shift -= width[i];
    return fields->bits <= 64;
}

static uint64_t pack(const struct fields *fields, const int32_t *key) {
    uint64_t code = 0;
    for (size_t i = 0; i < fields->dimension; i++)
        code |= (uint64_t)(field_value(fields, key, i) - fields->lowest[i]) << fields->shift[i];
    return code;
}

struct item {
    uint64_t code;
    uint32_t vertex;
};

/* By digits, the lowest first; returns the one of the two arrays that holds the result. */
static struct item *sort(struct item *from, struct item *to, size_t count, unsigned bits) {
    size_t begin[DIGITS];
    for (unsigned shift = 0; shift < bits; shift += DIGIT_BITS) {
        memset(begin, 0, sizeof begin);
        for (size_t i = 0; i < count; i++)
            begin[from[i].code >> shift & (DIGITS - 1)]++;
        for (size_t digit = 0, sum = 0; digit < DIGITS; digit++) {
            const size_t here = begin[digit];
            begin[digit] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[begin[from[i].code >> shift & (DIGITS - 1)]++] = from[i];
        struct item *other = from;
        from = to;
        to = other;
    }
    return from;
}

void dcrf_lattice_order_clear(struct dcrf_lattice_order *order) {
    dcrf_release(order->code);
    dcrf_release(order->number);
    *order = (struct dcrf_lattice_order){0};
}

dcrf_status dcrf_lattice_order_new(struct dcrf_lattice_order *order, const struct dcrf_table *table,
                                   bool is_large, dcrf_error *error) {
    struct fields fields;
    const size_t count = table->count, d = table->dimension;
    *order = (struct dcrf_lattice_order){0};
    if (count < FEWEST_VERTICES || !fields_init(&fields, table, is_large))
        return DCRF_OK;
    struct item *items = dcrf_allocate(count, 2 * sizeof *items);
    order->code = dcrf_allocate(count, sizeof *order->code);
    order->number = dcrf_allocate(count, sizeof *order->number);
    if (!items || !order->code || !order->number) {
        dcrf_release(items);
        dcrf_lattice_order_clear(order);
        return dcrf_fail_memory(error, "the plan of a lattice");
    }
    for (size_t v = 0; v < count; v++)
        items[v] = (struct item){pack(&fields, table->keys + v * d), (uint32_t)v};
    const struct item *sorted = sort(items, items + count, count, fields.bits);
    for (size_t i = 0; i < count; i++) {
        order->code[i] = sorted[i].code;
        order->number[sorted[i].vertex] = (uint32_t)i;
    }
    for (size_t axis = 0; axis <= d; axis++)
        for (size_t i = 0; i < d; i++)
            order->step[axis] += (uint64_t)field_step(&fields, axis, i) << fields.shift[i];
    order->layer_shift = fields.shift[0];
    dcrf_release(items);
    return DCRF_OK;
}

void dcrf_lattice_order_connect(const struct dcrf_lattice_order *order, size_t count, size_t axis,
                                uint32_t *neighbours) {
    const uint64_t *code = order->code;
    const uint64_t step = order->step[axis];
    /* A step may be a lower number; then the first vertices have their neighbours before them. */
    size_t ahead = 0;
    for (size_t v = 0; v < count; v++) {
        const uint64_t wanted = code[v] + step;
        while (ahead < count && code[ahead] < wanted)
            ahead++;
        if (ahead < count && code[ahead] == wanted) {
            neighbours[2 * v + 1] = (uint32_t)ahead;
            neighbours[2 * ahead] = (uint32_t)v;
        }
    }
}
