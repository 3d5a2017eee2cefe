/* A concurrent set of vertex codes of one word each.
 *
 * A code is identified by its slot, which depends on the order of insertion. Vertices are then
 * sorted by code, so their final numbers do not depend on that order.
 *
 * If there are few possible codes, as with spatial kernels, each code is its own slot: no search is
 * needed, and the list comes out sorted. */
#ifndef DCRF_FILTER_LATTICE_LATTICE_SET_H
#define DCRF_FILTER_LATTICE_LATTICE_SET_H

#include "filter/lattice/lattice.h"

#include <stdatomic.h>

struct dcrf_code_set {
    bool is_shared; /* by several threads */
    size_t slots;
    unsigned shift;            /* there are 2^(64 - shift) slots, if hashed */
    _Atomic uint64_t *slot;    /* 0: free; else the code + 1 */
    atomic_size_t claimed;     /* slots taken or about to be */
    _Atomic uint8_t *is_taken; /* used instead if each code is its own slot */
};

/* A set with room for this many codes, all below `most`. */
dcrf_status dcrf_code_set_new(struct dcrf_code_set *set, size_t room, uint64_t most, bool is_shared,
                              dcrf_error *error);
void dcrf_code_set_clear(struct dcrf_code_set *set);

/* Look up the slots of codes, inserting new ones. Returns false, without inserting any, if there
 * may not be room for all of them. */
bool dcrf_code_set_enter(struct dcrf_code_set *set, const uint64_t *codes, size_t count,
                         uint32_t *slots);

/* Make more room; `moved` maps old slots to new ones, and is the caller's to release. */
dcrf_status dcrf_code_set_grow(struct dcrf_code_set *set, uint32_t **moved, dcrf_error *error);

/* List all codes, with their slots as names. */
dcrf_status dcrf_code_set_list(const struct dcrf_code_set *set, struct dcrf_vertices *vertices,
                               dcrf_pool *pool, dcrf_error *error);

#endif
