/* How a long loop learns that it should stop: it polls. */
#ifndef DCRF_CORE_INTERRUPT_H
#define DCRF_CORE_INTERRUPT_H

#include <stdbool.h>

struct dcrf_interrupt {
    bool (*is_due)(void *user);
    void *user;
};

/* NULL: never. */
static inline bool dcrf_is_interrupted(const struct dcrf_interrupt *interrupt) {
    return interrupt && interrupt->is_due(interrupt->user);
}

#endif
