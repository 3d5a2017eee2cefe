/* Errors as values: filling in the caller's dcrf_error. */
#ifndef DCRF_CORE_ERROR_H
#define DCRF_CORE_ERROR_H

#include <dcrf/status.h>
#include <stddef.h>

/* Write status and message into *error (which may be NULL) and return the status. */
#if defined(__MINGW32__) && !defined(__clang__)
__attribute__((format(gnu_printf, 3, 4))) /* gcc's default is Windows' printf, without %zu */
#elif defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
dcrf_status
dcrf_fail(dcrf_error *error, dcrf_status status, const char *format, ...);

dcrf_status dcrf_fail_memory(dcrf_error *error, const char *what);

/* Fail because the caller passed NULL for `what` ("the plan or the workspace"). */
dcrf_status dcrf_fail_null(dcrf_error *error, const char *what);

/* Does the caller's array have room for `needed` elements? `what` names it ("the labels"). */
dcrf_status dcrf_check_room(const void *array, size_t count, size_t needed, const char *what,
                            dcrf_error *error);

/* As above, for rows of `width` elements, `stride` apart; the last row needs no padding. */
dcrf_status dcrf_check_rows(const void *array, size_t count, size_t rows, size_t width,
                            size_t stride, const char *what, dcrf_error *error);

/* Are the reserved bytes of the caller's settings zero? `what` names the settings. */
dcrf_status dcrf_check_reserved(const unsigned char *reserved, size_t bytes, const char *what,
                                dcrf_error *error);

/* Return the error of a call, if it fails. What the function holds by then must be released by its
 * scope: DCRF_AT_END (core/owned.h), DCRF_ENTER, and in C++ destructors. */
#define TRY(...)                                                                                   \
    do {                                                                                           \
        const dcrf_status tried = (__VA_ARGS__);                                                   \
        if (tried < 0)                                                                             \
            return tried;                                                                          \
    } while (0)

#endif
