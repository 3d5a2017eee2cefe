/* Making the n-th allocation fail.
 *
 * The program is linked with --wrap (cmocka's way to mock a function of the C library), so that the
 * library's calls of malloc, calloc, realloc, aligned_alloc, free and pthread_create come here. A
 * scenario is run again and again: first its first request fails, then only its second, and so on,
 * until it has none left to fail. */
#ifndef DCRF_TESTS_ALLOC_INJECTION_H
#define DCRF_TESTS_ALLOC_INJECTION_H

#include <dcrf/status.h>
#include <stddef.h>

/* Use the library, free everything again, and return the first status below zero. */
typedef dcrf_status (*scenario)(dcrf_error *error);

/* Run a scenario as described above. Every run whose request is refused must return
 * DCRF_ERROR_MEMORY or DCRF_ERROR_THREAD with a message, and every run must free what it took.
 * Returns the number of requests that were refused. */
size_t check_failing_allocations(const char *name, scenario run);

/* Called after every run, where the library may keep memory that it has released. */
extern void (*release_what_is_kept)(void);

#endif
