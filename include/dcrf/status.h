/* Status codes and error values.
 *
 * Every call that can fail returns a dcrf_status and takes an optional dcrf_error. Negative: an
 * error; nothing was changed, and the dcrf_error holds the same status and one line that says what
 * is wrong and where. Zero: success. Positive: success, and why an iteration stopped. Without an
 * error the dcrf_error is not modified.
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
    DCRF_ERROR_INTERRUPTED = -9, /* a limit or callback stopped a call before it had a result */
    DCRF_ERROR_DEVICE = -8,      /* a device is missing or failed */
    DCRF_ERROR_THREAD = -7,      /* a thread could not be started */
    DCRF_ERROR_UNSUPPORTED = -6, /* valid, but not supported by this method or operator */
    DCRF_ERROR_OVERLAP = -5,     /* two cliques share a variable */
    DCRF_ERROR_NOT_FINITE = -4,  /* NaN or infinity in the input */
    DCRF_ERROR_SIZE = -3,        /* a size overflows, or two sizes disagree */
    DCRF_ERROR_MEMORY = -2,      /* out of memory */
    DCRF_ERROR_ARGUMENT = -1,    /* any other argument out of range */
    DCRF_OK = 0,
    DCRF_STOP_GAP = 1,        /* the certified gap is small enough */
    DCRF_STOP_STATIONARY = 2, /* the method cannot improve further */
    DCRF_STOP_ITERATIONS = 3, /* the iteration limit was reached */
    DCRF_STOP_TIME = 4,       /* the time limit was reached */
    DCRF_STOP_CANCELLED = 5   /* a callback asked to stop */
} dcrf_status;

#define DCRF_ERROR_MESSAGE_BYTES 256

typedef struct dcrf_error {
    dcrf_status status;
    char message[DCRF_ERROR_MESSAGE_BYTES];
} dcrf_error;

/* Every enum dcrf_x has a function dcrf_x_name, which returns a name such as "size" or "gap" for a
 * status, or NULL for an unknown value. Its inverse dcrf_x_from_name sets the value and returns 1,
 * or returns 0 for an unknown name.
 *
 * Every settings struct dcrf_x has a function dcrf_x_defaults, which sets all fields. Settings and
 * results have `reserved` bytes for later versions; they must be zero in settings. (Grids, views,
 * outputs, energies and errors are values, which will not grow.) */
DCRF_API const char *dcrf_status_name(dcrf_status status);
DCRF_API int dcrf_status_from_name(const char *name, dcrf_status *status);

#ifdef __cplusplus
}
#endif
#endif
