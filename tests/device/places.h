/* For tests of arrays here and on a device: the fake one (tests/device/fake_backend.c), or what the
 * environment variable DCRF_TEST_DEVICE names. */
#ifndef DCRF_TESTS_PLACES_H
#define DCRF_TESTS_PLACES_H

#include "unit.h"

#include <dcrf/dcrf.h>
#include <stdbool.h>

bool is_fake(void);
void must(dcrf_status status, const dcrf_error *error);

/* A workspace of the device, with one thread. NULL, and a word of it, where it cannot be had; and
 * the exit status for that, 77 where there is no device. */
dcrf_workspace *new_device_workspace(void);
int status_without_device(void);

/* A function that the fake device exports for tests; the library stays open. */
typedef void (*fake_function)(void);
fake_function find_in_fake(const char *name);
size_t fake_alive(void);
size_t fake_pictures(void);

/* A test to come last: of what the fake device gave nothing is left but the group's workspace,
 * where the state is one. */
void nothing_is_left(void **state);

/* Memory of either side, with a copy of something in it. */
struct place {
    void *data;
    dcrf_device_memory *memory; /* NULL: of the host */
    void *owned;
};

struct place put(dcrf_workspace *workspace, bool is_there, const void *from, size_t bytes);
void fetch(dcrf_workspace *workspace, const struct place *place, void *to, size_t bytes);
void drop(struct place *place);

#endif
