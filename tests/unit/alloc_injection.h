/* Making the n-th allocation fail.
 *
 * The program is linked with --wrap (cmocka's way of mocking C library functions), so that the
 * library's calls of malloc, calloc, realloc, aligned_alloc, free and pthread_create come here. A
 * scenario is run repeatedly: first its first request fails, then only its second, and so on, until
 * no request is left to fail. */
#ifndef DCRF_TESTS_ALLOC_INJECTION_H
#define DCRF_TESTS_ALLOC_INJECTION_H

#include <dcrf/status.h>
#include <stddef.h>

/* Use the library, free everything again, and return the first negative status. */
typedef dcrf_status (*scenario)(dcrf_error *error);

/* Run a scenario as described above. Every run whose request is refused must return
 * DCRF_ERROR_MEMORY or DCRF_ERROR_THREAD with a message, and every run must free what it took.
 * Returns the number of requests that were refused. */
size_t check_failing_allocations(const char *name, scenario run);

/* Called after every run, if the library may cache memory that it has released. */
extern void (*release_what_is_kept)(void);

#endif
