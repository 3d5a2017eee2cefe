/* The workspace: a pool of threads and scratch memory that grows to what is needed and is then
 * kept, so that a loop allocates nothing after its first turn. */
#ifndef DCRF_CORE_WORKSPACE_H
#define DCRF_CORE_WORKSPACE_H

#include "core/threads.h"

#include <dcrf/operator.h>
#include <stdbool.h>

/* What a piece of scratch memory is for. Each user that can be active together with another has a
 * slot of its own, a constant where it is used, which is known by its address. */
struct dcrf_slot {
    const char *purpose;
};

/* A workspace has room for this many. */
#define DCRF_MOST_SLOTS 32

/* At least count * bytes bytes in a slot, contents undefined; NULL when memory is out. The pointer
 * is valid until the next call for the same slot. */
void *dcrf_workspace_slot(dcrf_workspace *workspace, const struct dcrf_slot *slot, size_t count,
                          size_t bytes);

/* Give a workspace an object that lives as long as it does, or until another one takes its slot;
 * NULL takes it away. False where there is no room. */
bool dcrf_workspace_attach(dcrf_workspace *workspace, const struct dcrf_slot *slot, void *object,
                           void (*free_object)(void *object));
void *dcrf_workspace_attached(const dcrf_workspace *workspace, const struct dcrf_slot *slot);

/* The pool of a workspace. */
dcrf_pool *dcrf_workspace_pool(dcrf_workspace *workspace);

#endif
