/* What a workspace holds: for workspace.c and limit.c only. */
#ifndef DCRF_CORE_WORKSPACE_HELD_H
#define DCRF_CORE_WORKSPACE_HELD_H

#include "core/workspace.h"

#include <stdatomic.h>
#include <stdint.h>

/* The limit that the user has set. */
struct dcrf_limit {
    double time_limit_s; /* 0: none */
    double deadline_s;   /* dcrf_time_s() at its end */
    int (*cancel)(void *user);
    void *cancel_user;
    bool is_cancelled; /* in this call */
};

/* Who uses it, and until when. All but the owner belong to the owner. */
struct dcrf_use {
    atomic_uintptr_t owner; /* 0: none */
    size_t depth;           /* calls within calls */
    struct dcrf_limit limit;
    const struct dcrf_interrupt *interrupt; /* of the run; NULL: none */
    double asked_s;                         /* when callbacks were asked last */
    bool asks_always;
};

struct dcrf_workspace {
    dcrf_pool *pool;
    struct dcrf_use use;
    struct held {
        const struct dcrf_slot *slot; /* NULL: this one and those behind it are free */
        void *memory;
        size_t bytes;
        void (*free_object)(void *object); /* NULL: memory, or nothing */
    } slots[DCRF_MOST_SLOTS];
};

#endif
