/* Status codes and error values.
 *
 * Every call that can fail returns a dcrf_status and takes an optional dcrf_error. Negative: an
 * error; nothing was changed, and the dcrf_error holds the same status and one line that says what
 * is wrong and where. Zero: success. Positive: success, and why an iteration stopped. Without an
 * error the dcrf_error is not touched.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_STATUS_H
#define DCRF_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(DCRF_BUILDS_LIBRARY)
#define DCRF_API __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define DCRF_API __attribute__((visibility("default")))
#else
#define DCRF_API
#endif

typedef enum dcrf_status {
    DCRF_ERROR_INTERRUPTED = -9, /* a limit or a callback ended a call that has no result yet */
    DCRF_ERROR_DEVICE = -8,      /* a device that is not there, or fails */
    DCRF_ERROR_THREAD = -7,      /* a thread could not be started */
    DCRF_ERROR_UNSUPPORTED = -6, /* valid, but this method or operator cannot do it */
    DCRF_ERROR_OVERLAP = -5,     /* two cliques share a variable */
    DCRF_ERROR_NOT_FINITE = -4,  /* NaN or infinity in the input */
    DCRF_ERROR_SIZE = -3,        /* a size overflows, or two sizes disagree */
    DCRF_ERROR_MEMORY = -2,      /* out of memory */
    DCRF_ERROR_ARGUMENT = -1,    /* any other argument out of its range */
    DCRF_OK = 0,
    DCRF_STOP_GAP = 1,        /* the certified gap fell below the wanted one */
    DCRF_STOP_STATIONARY = 2, /* the method cannot improve further */
    DCRF_STOP_ITERATIONS = 3, /* the iteration limit */
    DCRF_STOP_TIME = 4,       /* the time limit */
    DCRF_STOP_CANCELLED = 5   /* a callback asked to stop */
} dcrf_status;

#define DCRF_ERROR_MESSAGE_BYTES 256

typedef struct dcrf_error {
    dcrf_status status;
    char message[DCRF_ERROR_MESSAGE_BYTES];
} dcrf_error;

/* Every enum dcrf_x of the interface has dcrf_x_name, such as "size" or "gap" for a status, NULL
 * for a value that is none; and its inverse dcrf_x_from_name, which returns 1 and sets the value,
 * or 0 where none has that name.
 *
 * Every settings struct dcrf_x has dcrf_x_defaults, which sets all of its fields. Settings and
 * results have room to grow: bytes called `reserved`, which must be zero in settings. */
DCRF_API const char *dcrf_status_name(dcrf_status status);
DCRF_API int dcrf_status_from_name(const char *name, dcrf_status *status);

#ifdef __cplusplus
}
#endif
#endif
