/* Is everything of the fake device (tests/fake_backend.c) freed? A test program asks last. */
#ifndef FAKE_ALIVE_H
#define FAKE_ALIVE_H

#include "unit.h"

#include <dlfcn.h>

static void nothing_is_left(void **state) {
    (void)state;
    void *library = dlopen(FAKE_BACKEND, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    size_t (*alive)(void);
    void *symbol = dlsym(library, "fake_backend_alive");
    assert_non_null(symbol);
    memcpy(&alive, &symbol, sizeof alive);
    assert_int_equal(alive(), 0);
    dlclose(library);
}

#endif
