/* For tests of arrays on the CPU and on a device: the fake one (tests/device/fake_backend.c), or
 * the one named by the environment variable DCRF_TEST_DEVICE. */
#ifndef DCRF_TESTS_PLACES_H
#define DCRF_TESTS_PLACES_H

#include "unit.h"

#include <dcrf/dcrf.h>
#include <stdbool.h>

bool is_fake(void);
void must(dcrf_status status, const dcrf_error *error);

/* A workspace of the device, with one thread. If it cannot be made: NULL, after printing why; the
 * exit status is then 77 if there is no device. */
dcrf_workspace *new_device_workspace(void);
int status_without_device(void);

/* A function that the fake device exports for tests; the library stays open. */
typedef void (*fake_function)(void);
fake_function find_in_fake(const char *name);
size_t fake_alive(void);
size_t fake_pictures(void);

/* Must be the last test: nothing of the fake device is left, except the group's workspace if
 * `state` has one. */
void nothing_is_left(void **state);

/* Memory on either side, holding a copy of something. */
struct place {
    void *data;
    dcrf_device_memory *memory; /* NULL: on the host */
    void *owned;
};

struct place put(dcrf_workspace *workspace, bool is_there, const void *from, size_t bytes);
void fetch(dcrf_workspace *workspace, const struct place *place, void *to, size_t bytes);
void drop(struct place *place);

#endif
