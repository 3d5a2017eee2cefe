/* A hash table from integer keys to numbers: open addressing, linear probing, at most half full.
 * Keys are numbered in the order of their arrival and never removed. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <string.h>

/* The most keys: `count` itself must fit in 32 bits too, as the number that means none. */
#define MOST_KEYS ((size_t)UINT32_MAX - 1)

#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t hash_of(const int32_t *key, size_t dimension) {
    uint64_t hash = 0;
    for (size_t i = 0; i < dimension; i++)
        hash = (hash + (uint32_t)key[i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32);
}

/* With the usual dimensions as constants, so that the loops unroll. */
static uint32_t hash_key(const int32_t *key, size_t dimension) {
    return dimension == 5   ? hash_of(key, 5)
           : dimension == 2 ? hash_of(key, 2)
                            : hash_of(key, dimension);
}

INLINE bool same_key(const int32_t *key, const int32_t *other, size_t dimension) {
    int32_t differences = 0;
    for (size_t i = 0; i < dimension; i++)
        differences |= key[i] ^ other[i];
    return differences == 0;
}

INLINE size_t search(const struct dcrf_table *table, const int32_t *key, uint32_t hash,
                     size_t dimension) {
    size_t i = hash & (table->slots - 1);
    for (;; i = (i + 1) & (table->slots - 1)) {
        const struct dcrf_table_slot *slot = &table->slot[i];
        if (slot->number == 0)
            return i;
        if (slot->hash == hash &&
            same_key(table->keys + (slot->number - 1) * dimension, key, dimension))
            return i;
    }
}

static size_t find_slot(const struct dcrf_table *table, const int32_t *key, uint32_t hash) {
    return table->dimension == 5   ? search(table, key, hash, 5)
           : table->dimension == 2 ? search(table, key, hash, 2)
                                   : search(table, key, hash, table->dimension);
}

dcrf_status dcrf_table_new(struct dcrf_table *table, size_t dimension, size_t room,
                           dcrf_error *error) {
    struct dcrf_table made = {.dimension = dimension, .room = room, .slots = 2};
    while (made.slots / 2 <= room)
        made.slots *= 2;
    made.keys = dcrf_allocate(room, dimension * sizeof *made.keys);
    made.slot = dcrf_allocate_zero(made.slots, sizeof *made.slot);
    *table = made;
    if (made.keys && made.slot)
        return DCRF_OK;
    dcrf_table_clear(table);
    return dcrf_fail_memory(error, "the vertices of a lattice");
}

void dcrf_table_clear(struct dcrf_table *table) {
    dcrf_release(table->keys);
    dcrf_release(table->slot);
    *table = (struct dcrf_table){0};
}

/* A table with twice the room takes over the keys, under the same numbers. */
static dcrf_status grow(struct dcrf_table *table, dcrf_error *error) {
    struct dcrf_table larger;
    if (table->room >= MOST_KEYS / 2)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "a lattice of more than %zu vertices is too large",
                         MOST_KEYS / 2);
    const dcrf_status status = dcrf_table_new(&larger, table->dimension, table->room * 2, error);
    if (status < 0)
        return status;
    memcpy(larger.keys, table->keys, table->count * table->dimension * sizeof *table->keys);
    larger.count = table->count;
    for (size_t i = 0; i < table->slots; i++) {
        const struct dcrf_table_slot slot = table->slot[i];
        if (slot.number == 0)
            continue;
        size_t at = slot.hash & (larger.slots - 1);
        while (larger.slot[at].number != 0)
            at = (at + 1) & (larger.slots - 1);
        larger.slot[at] = slot;
    }
    dcrf_table_clear(table);
    *table = larger;
    return DCRF_OK;
}

dcrf_status dcrf_table_enter(struct dcrf_table *table, const int32_t *key, uint32_t *number,
                             dcrf_error *error) {
    const uint32_t hash = hash_key(key, table->dimension);
    size_t at = find_slot(table, key, hash);
    if (table->slot[at].number == 0) {
        if (table->count == table->room) {
            const dcrf_status status = grow(table, error);
            if (status < 0)
                return status;
            at = find_slot(table, key, hash);
        }
        memcpy(table->keys + table->count * table->dimension, key, table->dimension * sizeof *key);
        table->count++;
        table->slot[at] = (struct dcrf_table_slot){hash, (uint32_t)table->count};
    }
    *number = table->slot[at].number - 1;
    return DCRF_OK;
}

/* Keys between the one that is entered and the one whose slot is asked for. */
#define ENTER_AHEAD 12

dcrf_status dcrf_table_enter_all(struct dcrf_table *table, const int32_t *keys, size_t count,
                                 uint32_t *numbers, dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    for (size_t i = 0; i < count && status == DCRF_OK; i++) {
        if (i + ENTER_AHEAD < count) {
            const int32_t *ahead = keys + (i + ENTER_AHEAD) * table->dimension;
            __builtin_prefetch(
                &table->slot[hash_key(ahead, table->dimension) & (table->slots - 1)]);
        }
        status = dcrf_table_enter(table, keys + i * table->dimension, &numbers[i], error);
    }
    return status;
}

uint32_t dcrf_table_find(const struct dcrf_table *table, const int32_t *key) {
    const size_t at = find_slot(table, key, hash_key(key, table->dimension));
    const uint32_t number = table->slot[at].number;
    return number == 0 ? (uint32_t)table->count : number - 1;
}
