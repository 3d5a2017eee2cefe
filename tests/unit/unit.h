/* cmocka with the headers it requires first, and helpers for tests of errors. */
#ifndef DCRF_TESTS_UNIT_H
#define DCRF_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <dcrf/status.h>

/* The exit status of a test program whose data is missing. */
#define SKIPPED 77

/* Sanitizers make tests about ten times slower; test sizes depend on this. What is fewer is random
 * models, never their kinds: a sanitizer looks at what the code does, and the optimized build has
 * run all of them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* The call fails with this status, and its message, written into `error`, contains this text. */
#define assert_fails(expected_status, text, error, call)                                           \
    do {                                                                                           \
        memset(&(error), 0, sizeof(error));                                                        \
        assert_int_equal((call), (expected_status));                                               \
        assert_int_equal((error).status, (expected_status));                                       \
        if (!strstr((error).message, (text)))                                                      \
            fail_msg("\"%s\" does not say \"%s\"", (error).message, (text));                       \
    } while (0)

#endif
