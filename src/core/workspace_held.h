/* The contents of a workspace: for workspace.c and limit.c only. */
#ifndef DCRF_CORE_WORKSPACE_HELD_H
#define DCRF_CORE_WORKSPACE_HELD_H

#include "core/workspace.h"

#include <stdatomic.h>
#include <stdint.h>

/* The limit set by the user. */
struct dcrf_limit {
    double time_limit_s; /* 0: none */
    double deadline_s;   /* when it expires, in dcrf_time_s() */
    int (*cancel)(void *user);
    void *cancel_user;
    bool is_cancelled; /* in this call */
};

/* Who uses the workspace, and until when. Only the owner touches the other members. */
struct dcrf_use {
    atomic_uintptr_t owner; /* 0: none */
    size_t depth;           /* of nested calls */
    struct dcrf_limit limit;
    const struct dcrf_interrupt *interrupt; /* of the run; NULL: none */
    double asked_s;                         /* when callbacks were last polled */
    bool asks_always;
};

struct dcrf_workspace {
    size_t holders; /* core/holders.h */
    dcrf_pool *pool;
    struct dcrf_use use;
    struct held {
        const struct dcrf_slot *slot; /* NULL: this entry and all after it are free */
        void *memory;
        size_t bytes;
        void (*free_object)(void *object); /* NULL: memory, or nothing */
    } slots[DCRF_MOST_SLOTS];
};

#endif
