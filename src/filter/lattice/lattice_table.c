/* A hash table from keys of one or more 64-bit words to numbers: open addressing, linear probing,
 * at most three quarters full. Keys are numbered in insertion order and never removed. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

/* Maximum number of keys: `count` itself must fit in 32 bits too, since it stands for "none". */
#define MOST_KEYS ((size_t)UINT32_MAX - 1)

#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t hash_of(const uint64_t *key, size_t words) {
    uint64_t hash = 0;
    for (size_t i = 0; i < words; i++)
        hash = (hash + key[i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32);
}

INLINE bool same_key(const uint64_t *key, const uint64_t *other, size_t words) {
    uint64_t differences = 0;
    for (size_t i = 0; i < words; i++)
        differences |= key[i] ^ other[i];
    return differences == 0;
}

INLINE size_t find_slot(const struct dcrf_table *table, const uint64_t *key, uint32_t hash,
                        size_t words) {
    size_t i = hash & (table->slots - 1);
    for (;; i = (i + 1) & (table->slots - 1)) {
        const struct dcrf_table_slot *slot = &table->slot[i];
        if (slot->number == 0)
            return i;
        if (slot->hash == hash && same_key(table->keys + (slot->number - 1) * words, key, words))
            return i;
    }
}

/* The number of keys that fit in the slots, a quarter of which stays free. */
static size_t keys_of(size_t slots) {
    return slots - slots / 4;
}

dcrf_status dcrf_table_new(struct dcrf_table *table, size_t words, uint64_t *keys, size_t room,
                           dcrf_error *error) {
    struct dcrf_table made = {.words = words, .room = room, .slots = 4, .is_borrowed = keys};
    while (keys_of(made.slots) < room)
        made.slots *= 2;
    made.keys = keys ? keys : dcrf_allocate(room, words * sizeof *made.keys);
    made.slot = dcrf_allocate_zero(made.slots, sizeof *made.slot);
    *table = made;
    if (made.keys && made.slot)
        return DCRF_OK;
    dcrf_table_clear(table);
    return dcrf_fail_memory(error, "the vertices of a lattice");
}

void dcrf_table_clear(struct dcrf_table *table) {
    if (!table->is_borrowed)
        dcrf_release(table->keys);
    dcrf_release(table->slot);
    *table = (struct dcrf_table){0};
}

void dcrf_table_restart(struct dcrf_table *table, uint64_t *keys) {
    table->keys = keys;
    table->count = 0;
    memset(table->slot, 0, table->slots * sizeof *table->slot);
}

static dcrf_status grow_keys(struct dcrf_table *table, dcrf_error *error) {
    if (table->room > MOST_KEYS / 2)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "a lattice of more than %zu vertices is too large",
                         table->room);
    const size_t room = 2 * table->room;
    uint64_t *keys = dcrf_allocate(room, table->words * sizeof *keys);
    if (!keys)
        return dcrf_fail_memory(error, "the vertices of a lattice");
    memcpy(keys, table->keys, table->count * table->words * sizeof *keys);
    dcrf_release(table->keys);
    table->keys = keys;
    table->room = room;
    return DCRF_OK;
}

static dcrf_status grow_slots(struct dcrf_table *table, dcrf_error *error) {
    const size_t slots = 2 * table->slots;
    struct dcrf_table_slot *slot = dcrf_allocate_zero(slots, sizeof *slot);
    if (!slot)
        return dcrf_fail_memory(error, "the vertices of a lattice");
    for (size_t i = 0; i < table->slots; i++) {
        if (table->slot[i].number == 0)
            continue;
        size_t at = table->slot[i].hash & (slots - 1);
        while (slot[at].number != 0)
            at = (at + 1) & (slots - 1);
        slot[at] = table->slot[i];
    }
    dcrf_release(table->slot);
    table->slot = slot;
    table->slots = slots;
    return DCRF_OK;
}

/* Make room for one more key. */
static dcrf_status grow(struct dcrf_table *table, dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    if (table->count == table->room)
        status = grow_keys(table, error);
    if (status == DCRF_OK && table->count == keys_of(table->slots))
        status = grow_slots(table, error);
    return status;
}

DCRF_FOR_CONSTANTS dcrf_status enter(struct dcrf_table *table, const uint64_t *key, size_t words,
                                     uint32_t *number, dcrf_error *error) {
    const uint32_t hash = hash_of(key, words);
    size_t at = find_slot(table, key, hash, words);
    if (table->slot[at].number == 0) {
        if (table->count == table->room || table->count == keys_of(table->slots)) {
            const dcrf_status status = grow(table, error);
            if (status < 0)
                return status;
            at = find_slot(table, key, hash, words);
        }
        /* The key may be in the table's own memory, beyond the keys held. */
        memmove(table->keys + table->count * words, key, words * sizeof *key);
        table->count++;
        table->slot[at] = (struct dcrf_table_slot){hash, (uint32_t)table->count};
    }
    *number = table->slot[at].number - 1;
    return DCRF_OK;
}

/* Prefetch distance in keys. */
#define ENTER_AHEAD 16

DCRF_FOR_CONSTANTS dcrf_status enter_all(struct dcrf_table *table, const uint64_t *keys,
                                         size_t count, size_t words, uint32_t *numbers,
                                         dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    for (size_t i = 0; i < count && status == DCRF_OK; i++) {
        if (i + ENTER_AHEAD < count)
            __builtin_prefetch(&table->slot[hash_of(keys + (i + ENTER_AHEAD) * words, words) &
                                            (table->slots - 1)]);
        status = enter(table, keys + i * words, words, &numbers[i], error);
    }
    return status;
}

/* Specialized for the common key lengths. */
dcrf_status dcrf_table_enter(struct dcrf_table *table, const uint64_t *keys, size_t count,
                             uint32_t *numbers, dcrf_error *error) {
    switch (table->words) {
    case 1:
        return enter_all(table, keys, count, 1, numbers, error);
    case 2:
        return enter_all(table, keys, count, 2, numbers, error);
    default:
        return enter_all(table, keys, count, table->words, numbers, error);
    }
}
