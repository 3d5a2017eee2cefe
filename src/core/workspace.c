#include "core/workspace.h"

#include "core/error.h"
#include "core/holders.h"
#include "core/memory.h"
#include "core/workspace_held.h"
#include <dcrf/grid.h>

size_t dcrf_padded(size_t channels) {
    return channels <= DCRF_NARROW_LANES ? DCRF_NARROW_LANES
                                         : (channels + DCRF_LANES - 1) / DCRF_LANES * DCRF_LANES;
}

dcrf_status dcrf_workspace_new(dcrf_workspace **out, size_t threads, dcrf_error *error) {
    if (!out)
        return dcrf_fail_null(error, "the place for the workspace");
    *out = NULL;
    dcrf_workspace *workspace = dcrf_allocate_zero(1, sizeof *workspace);
    if (!workspace)
        return dcrf_fail_memory(error, "a workspace");
    const dcrf_status status = dcrf_pool_new(&workspace->pool, threads, error);
    if (status < 0) {
        dcrf_release(workspace);
        return status;
    }
    *out = workspace;
    return DCRF_OK;
}

void dcrf_trim_memory(void) {
    dcrf_pool_end_parked();
    dcrf_drop_kept_memory();
}

static void clear(struct held *held) {
    if (held->free_object && held->memory)
        held->free_object(held->memory);
    else
        dcrf_release(held->memory);
    held->memory = NULL;
    held->bytes = 0;
    held->free_object = NULL;
}

void dcrf_workspace_hold(dcrf_workspace *workspace) {
    dcrf_hold(&workspace->holders);
}

void dcrf_workspace_free(dcrf_workspace **workspace_pointer) {
    if (!workspace_pointer || !*workspace_pointer)
        return;
    dcrf_workspace *workspace = *workspace_pointer;
    *workspace_pointer = NULL;
    if (!dcrf_let_go(&workspace->holders))
        return;
    dcrf_pool_free(&workspace->pool);
    for (size_t i = 0; i < DCRF_MOST_SLOTS; i++)
        clear(&workspace->slots[i]);
    dcrf_release(workspace);
}

size_t dcrf_workspace_threads(const dcrf_workspace *workspace) {
    return workspace ? dcrf_pool_threads(workspace->pool) : 0;
}

size_t dcrf_workspace_bytes(const dcrf_workspace *workspace) {
    size_t total = 0;
    for (size_t i = 0; workspace && i < DCRF_MOST_SLOTS; i++)
        total += workspace->slots[i].bytes;
    return total;
}

static struct held *find_slot(dcrf_workspace *workspace, const struct dcrf_slot *slot) {
    size_t i = 0;
    while (i < DCRF_MOST_SLOTS && workspace->slots[i].slot && workspace->slots[i].slot != slot)
        i++;
    if (i == DCRF_MOST_SLOTS)
        return NULL;
    workspace->slots[i].slot = slot;
    return &workspace->slots[i];
}

void *dcrf_workspace_slot(dcrf_workspace *workspace, const struct dcrf_slot *slot, size_t count,
                          size_t bytes) {
    struct held *held = find_slot(workspace, slot);
    size_t size;
    if (!held || !dcrf_multiply(count, bytes, &size))
        return NULL;
    if (held->bytes < size || !held->memory) {
        dcrf_release(held->memory);
        held->bytes = 0;
        held->memory = dcrf_allocate(size, 1);
        if (!held->memory)
            return NULL;
        held->bytes = size;
    }
    return held->memory;
}

void dcrf_workspace_release(dcrf_workspace *workspace, const struct dcrf_slot *slot) {
    struct held *held = find_slot(workspace, slot);
    if (held)
        clear(held);
}

bool dcrf_workspace_attach(dcrf_workspace *workspace, const struct dcrf_slot *slot, void *object,
                           void (*free_object)(void *object)) {
    struct held *held = find_slot(workspace, slot);
    if (!held)
        return false;
    clear(held);
    held->memory = object;
    held->free_object = free_object;
    return true;
}

void *dcrf_workspace_attached(const dcrf_workspace *workspace, const struct dcrf_slot *slot) {
    for (size_t i = 0; i < DCRF_MOST_SLOTS && workspace->slots[i].slot; i++)
        if (workspace->slots[i].slot == slot)
            return workspace->slots[i].memory;
    return NULL;
}

dcrf_pool *dcrf_workspace_pool(dcrf_workspace *workspace) {
    return workspace->pool;
}
