#include "core/owned.h"

#define FIRST_ROOM 8

static bool make_room(struct dcrf_owned *owned) {
    if (owned->count < owned->room)
        return true;
    const size_t room = owned->room ? 2 * owned->room : FIRST_ROOM;
    void **arrays = dcrf_allocate(room, sizeof *arrays);
    if (!arrays)
        return false;
    if (owned->count > 0)
        memcpy(arrays, owned->arrays, owned->count * sizeof *arrays);
    dcrf_release(owned->arrays);
    owned->arrays = arrays;
    owned->room = room;
    return true;
}

void *dcrf_own(struct dcrf_owned *owned, size_t count, size_t bytes) {
    void *memory = !owned->is_short && make_room(owned) ? dcrf_allocate(count, bytes) : NULL;
    if (memory)
        owned->arrays[owned->count++] = memory;
    else
        owned->is_short = true;
    return memory;
}

void *dcrf_own_zero(struct dcrf_owned *owned, size_t count, size_t bytes) {
    void *memory = dcrf_own(owned, count, bytes);
    if (memory)
        memset(memory, 0, count * bytes);
    return memory;
}

void dcrf_disown(struct dcrf_owned *owned) {
    for (size_t k = 0; k < owned->count; k++)
        dcrf_release(owned->arrays[k]);
    dcrf_release(owned->arrays);
    *owned = (struct dcrf_owned){0};
}

void dcrf_release_at(void *pointer) {
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    dcrf_release(memory);
}
