/* A set of codes of vertices, of one word each, which all threads enter at the same time.
 *
 * A code is known by the slot that it is in. Which one that is depends on who came first; but
 * vertices are put in the order of their codes afterwards, and numbers in that order do not.
 *
 * Where there are few codes that could come, as with spatial kernels, each has a slot of its own: a
 * code is its slot, and is not looked for; and the list is in order. */
#ifndef DCRF_FILTER_LATTICE_LATTICE_SET_H
#define DCRF_FILTER_LATTICE_LATTICE_SET_H

#include "filter/lattice/lattice.h"

#include <stdatomic.h>

struct dcrf_code_set {
    bool is_shared; /* by threads */
    size_t slots;
    unsigned shift;            /* 2^(64 - shift) of them, where they are looked for */
    _Atomic uint64_t *slot;    /* 0: free; else the code + 1 */
    atomic_size_t claimed;     /* slots that are taken, or may be soon */
    _Atomic uint8_t *is_taken; /* instead, where each code has a slot of its own */
};

/* With room for so many codes, all below `most`. */
dcrf_status dcrf_code_set_new(struct dcrf_code_set *set, size_t room, uint64_t most, bool is_shared,
                              dcrf_error *error);
void dcrf_code_set_clear(struct dcrf_code_set *set);

/* The slots of some codes, which are entered if they are new; false where there may not be room for
 * all of them, and none is entered. */
bool dcrf_code_set_enter(struct dcrf_code_set *set, const uint64_t *codes, size_t count,
                         uint32_t *slots);

/* Make more room; `moved` tells where each slot has gone, and is the caller's to release. */
dcrf_status dcrf_code_set_grow(struct dcrf_code_set *set, uint32_t **moved, dcrf_error *error);

/* All codes, with their slots for names. */
dcrf_status dcrf_code_set_list(const struct dcrf_code_set *set, struct dcrf_vertices *vertices,
                               dcrf_pool *pool, dcrf_error *error);

#endif
