/* Who releases memory: objects own arrays, scopes own what ends with them. */
#ifndef DCRF_CORE_OWNED_H
#define DCRF_CORE_OWNED_H

#include "core/memory.h"

#include <string.h>

/* The arrays of an object, allocated one by one and released together; filled with zeros, it owns
 * none. Once a request has failed, `is_short` is set and every later one gives NULL: an object
 * requests all that it needs, and then checks once. What came before is still to be released. */
struct dcrf_owned {
    void **arrays;
    size_t count, room;
    bool is_short;
};

/* As dcrf_allocate and dcrf_allocate_zero. */
void *dcrf_own(struct dcrf_owned *owned, size_t count, size_t bytes);
void *dcrf_own_zero(struct dcrf_owned *owned, size_t count, size_t bytes);

/* Release all; it owns none then, and can be used again. */
void dcrf_disown(struct dcrf_owned *owned);

/* Before the declaration of a local variable: call function(&variable) at the end of its scope,
 * however that is left. Fits dcrf_disown and the dcrf_x_free of every handle. */
#define DCRF_AT_END(function) __attribute__((cleanup(function)))

/* The value of such a pointer, which the scope no longer owns: `*out = DCRF_PASS_ON(model);` */
#define DCRF_PASS_ON(pointer) dcrf_pass_on(&(pointer))
static inline void *dcrf_pass_on(void *pointer) {
    void *value, *none = NULL;
    memcpy(&value, pointer, sizeof value);
    memcpy(pointer, &none, sizeof none);
    return value;
}

/* The same for a pointer from dcrf_allocate. */
#define DCRF_SCOPED DCRF_AT_END(dcrf_release_at)
void dcrf_release_at(void *pointer);

#endif
