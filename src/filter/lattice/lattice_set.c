/* The set: open addressing, linear probing, at most three quarters full. A new code goes into the
 * first free slot by one compare-and-exchange; nothing else ever changes, so insertion is
 * lock-free. */
#include "filter/lattice/lattice_set.h"

#include "core/error.h"
#include "core/memory.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
/* Slots are 32 bits. */
#define MOST_BITS 31
/* Prefetch distance in codes. */
#define ENTER_AHEAD 32
/* Slots per task when listing. */
#define LIST_GRAIN 32768

/* Give every possible code its own slot if there are at most this many per expected code: such
 * slots take one byte each, hashed ones take eight and are only about a third full. */
#define OWN_SLOTS 4

INLINE size_t home_of(uint64_t code, unsigned shift) {
    return (size_t)(code * 0x9e3779b97f4a7c15u >> shift);
}

static dcrf_status take_slots(struct dcrf_code_set *set, unsigned bits, dcrf_error *error) {
    if (bits > MOST_BITS)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "a lattice of more than %zu vertices is too large",
                         ((size_t)1 << MOST_BITS) / 4 * 3);
    set->shift = 64 - bits;
    set->slots = (size_t)1 << bits;
    set->slot = dcrf_allocate_zero(set->slots, sizeof *set->slot);
    return set->slot ? DCRF_OK : dcrf_fail_memory(error, "the vertices of a lattice");
}

dcrf_status dcrf_code_set_new(struct dcrf_code_set *set, size_t room, uint64_t most, bool is_shared,
                              dcrf_error *error) {
    unsigned bits = 2;
    set->is_shared = is_shared;
    set->slot = NULL;
    set->is_taken = NULL;
    atomic_init(&set->claimed, 0);
    if (most / OWN_SLOTS <= room && most < (uint64_t)1 << MOST_BITS) {
        set->slots = (size_t)most;
        set->is_taken = dcrf_allocate_zero(set->slots, sizeof *set->is_taken);
        return set->is_taken ? DCRF_OK : dcrf_fail_memory(error, "the vertices of a lattice");
    }
    while (bits <= MOST_BITS && ((size_t)1 << bits) / 4 * 3 < room)
        bits++;
    return take_slots(set, bits, error);
}

void dcrf_code_set_clear(struct dcrf_code_set *set) {
    dcrf_release(set->slot);
    dcrf_release(set->is_taken);
    set->slot = NULL;
    set->is_taken = NULL;
}

/* ---- entering ------------------------------------------------------------------------------- */

/* The slot of a code; increments `entered` if it is new. A single thread writes it unconditionally:
 * the branch would be unpredictable. */
DCRF_FOR_CONSTANTS size_t enter(_Atomic uint64_t *slot, unsigned shift, uint64_t code,
                                bool is_shared, size_t *entered) {
    const size_t mask = ((size_t)1 << (64 - shift)) - 1;
    const uint64_t held = code + 1;
    for (size_t i = home_of(code, shift);; i = (i + 1) & mask) {
        uint64_t found = atomic_load_explicit(&slot[i], memory_order_relaxed);
        if (!is_shared) {
            const bool is_new = found == 0;
            if (!(is_new | (found == held)))
                continue;
            atomic_store_explicit(&slot[i], held, memory_order_relaxed);
            *entered += is_new;
            return i;
        }
        if (found == 0 && atomic_compare_exchange_strong_explicit(
                              &slot[i], &found, held, memory_order_relaxed, memory_order_relaxed)) {
            ++*entered;
            return i;
        }
        if (found == held)
            return i;
    }
}

DCRF_FOR_CONSTANTS size_t enter_all(const struct dcrf_code_set *set, const uint64_t *codes,
                                    size_t count, bool is_shared, uint32_t *slots) {
    _Atomic uint64_t *slot = set->slot;
    const unsigned shift = set->shift;
    size_t entered = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + ENTER_AHEAD < count)
            __builtin_prefetch((const void *)&slot[home_of(codes[i + ENTER_AHEAD], shift)]);
        slots[i] = (uint32_t)enter(slot, shift, codes[i], is_shared, &entered);
    }
    return entered;
}

bool dcrf_code_set_enter(struct dcrf_code_set *set, const uint64_t *codes, size_t count,
                         uint32_t *slots) {
    for (size_t i = 0; set->is_taken && i < count; i++) {
        atomic_store_explicit(&set->is_taken[codes[i]], 1, memory_order_relaxed);
        slots[i] = (uint32_t)codes[i];
    }
    if (set->is_taken)
        return true;
    const size_t before = atomic_fetch_add_explicit(&set->claimed, count, memory_order_relaxed);
    const bool has_room = before + count <= set->slots / 4 * 3;
    size_t entered = 0;
    if (has_room)
        entered = set->is_shared ? enter_all(set, codes, count, true, slots)
                                 : enter_all(set, codes, count, false, slots);
    atomic_fetch_sub_explicit(&set->claimed, count - entered, memory_order_relaxed);
    return has_room;
}

dcrf_status dcrf_code_set_grow(struct dcrf_code_set *set, uint32_t **moved_out, dcrf_error *error) {
    _Atomic uint64_t *before = set->slot;
    const size_t slots = set->slots;
    uint32_t *moved = dcrf_allocate(slots, sizeof *moved);
    const dcrf_status status = moved ? take_slots(set, 64 - set->shift + 1, error)
                                     : dcrf_fail_memory(error, "the vertices of a lattice");
    *moved_out = moved;
    if (status < 0) {
        set->slot = before;
        return status;
    }
    for (size_t i = 0, entered = 0; i < slots; i++)
        if (before[i] != 0)
            moved[i] = (uint32_t)enter(set->slot, set->shift, before[i] - 1, false, &entered);
    dcrf_release(before);
    return DCRF_OK;
}

/* ---- the list ------------------------------------------------------------------------------- */

struct listing {
    const struct dcrf_code_set *set;
    struct dcrf_vertices *vertices;
    size_t *first; /* output position of each task */
};

static void count_some(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct listing *listing = context;
    /* no longer changing */
    const uint64_t *slot = (const uint64_t *)listing->set->slot;
    const uint8_t *is_taken = (const uint8_t *)listing->set->is_taken;
    size_t count = 0;
    for (size_t i = begin; is_taken && i < end; i++)
        count += is_taken[i];
    for (size_t i = begin; slot && i < end; i++)
        count += slot[i] != 0;
    listing->first[begin / LIST_GRAIN + 1] = count;
}

/* Branch-free: an entry written for a free slot is overwritten by the next code. */
static void list_some(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct listing *listing = context;
    const uint64_t *slot = (const uint64_t *)listing->set->slot;
    const uint8_t *is_taken = (const uint8_t *)listing->set->is_taken;
    uint64_t *codes = listing->vertices->codes;
    uint32_t *name = listing->vertices->name;
    size_t to = listing->first[begin / LIST_GRAIN];
    const size_t last = listing->first[begin / LIST_GRAIN + 1];
    for (size_t i = begin; is_taken && i < end && to < last; i++) {
        codes[to] = i;
        name[to] = (uint32_t)i;
        to += is_taken[i];
    }
    for (size_t i = begin; slot && i < end && to < last; i++) {
        codes[to] = slot[i] - 1;
        name[to] = (uint32_t)i;
        to += slot[i] != 0;
    }
}

dcrf_status dcrf_code_set_list(const struct dcrf_code_set *set, struct dcrf_vertices *vertices,
                               dcrf_pool *pool, dcrf_error *error) {
    const size_t slots = set->slots, tasks = (slots + LIST_GRAIN - 1) / LIST_GRAIN;
    struct listing listing = {set, vertices, dcrf_allocate_zero(tasks + 1, sizeof(size_t))};
    *vertices = (struct dcrf_vertices){.names = slots, .is_sorted = set->is_taken};
    bool is_done = listing.first;
    if (is_done) {
        dcrf_parallel_for(pool, slots, LIST_GRAIN, count_some, &listing);
        for (size_t i = 0; i < tasks; i++)
            listing.first[i + 1] += listing.first[i];
        vertices->count = listing.first[tasks];
        vertices->codes = dcrf_allocate(vertices->count, sizeof *vertices->codes);
        vertices->name = dcrf_allocate(vertices->count, sizeof *vertices->name);
        is_done = vertices->codes && vertices->name;
    }
    if (is_done)
        dcrf_parallel_for(pool, slots, LIST_GRAIN, list_some, &listing);
    else
        dcrf_vertices_clear(vertices);
    dcrf_release(listing.first);
    return is_done ? DCRF_OK : dcrf_fail_memory(error, "the vertices of a lattice");
}
