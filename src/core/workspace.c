#include "core/workspace.h"

#include "core/error.h"
#include "core/memory.h"

size_t dcrf_padded(size_t channels) {
    return (channels + DCRF_LANES - 1) / DCRF_LANES * DCRF_LANES;
}

struct dcrf_workspace {
    dcrf_pool *pool;
    struct {
        void *memory;
        size_t bytes;
    } slots[DCRF_SLOT_COUNT];
};

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

void dcrf_workspace_free(dcrf_workspace **workspace_pointer) {
    if (!workspace_pointer || !*workspace_pointer)
        return;
    dcrf_workspace *workspace = *workspace_pointer;
    dcrf_pool_free(&workspace->pool);
    for (size_t i = 0; i < DCRF_SLOT_COUNT; i++)
        dcrf_release(workspace->slots[i].memory);
    dcrf_release(workspace);
    *workspace_pointer = NULL;
}

size_t dcrf_workspace_threads(const dcrf_workspace *workspace) {
    return workspace ? dcrf_pool_threads(workspace->pool) : 0;
}

size_t dcrf_workspace_bytes(const dcrf_workspace *workspace) {
    size_t total = 0;
    for (size_t i = 0; workspace && i < DCRF_SLOT_COUNT; i++)
        total += workspace->slots[i].bytes;
    return total;
}

void *dcrf_workspace_slot(dcrf_workspace *workspace, enum dcrf_slot slot, size_t count,
                          size_t bytes) {
    size_t size;
    if (!dcrf_multiply(count, bytes, &size))
        return NULL;
    if (workspace->slots[slot].bytes < size || !workspace->slots[slot].memory) {
        dcrf_release(workspace->slots[slot].memory);
        workspace->slots[slot].bytes = 0;
        workspace->slots[slot].memory = dcrf_allocate(size, 1);
        if (!workspace->slots[slot].memory)
            return NULL;
        workspace->slots[slot].bytes = size;
    }
    return workspace->slots[slot].memory;
}

dcrf_pool *dcrf_workspace_pool(dcrf_workspace *workspace) {
    return workspace->pool;
}
