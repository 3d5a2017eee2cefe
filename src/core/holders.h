/* Handles hold the handles they depend on: each counts its holders besides its creator, and is
 * freed when the last of them all lets go. The count is atomic, because handles are shared between
 * threads. */
#ifndef DCRF_CORE_HOLDERS_H
#define DCRF_CORE_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>

static inline void dcrf_hold(size_t *holders) {
    __atomic_fetch_add(holders, 1, __ATOMIC_RELAXED);
}

/* True if this was the last holder: the handle must be freed. */
static inline bool dcrf_let_go(size_t *holders) {
    return __atomic_fetch_sub(holders, 1, __ATOMIC_ACQ_REL) == 0;
}

#endif
