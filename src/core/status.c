/* Names of the status codes, and the one place where error messages are written. */
#include "core/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const struct {
    dcrf_status status;
    const char *name;
} names[] = {
    {DCRF_ERROR_INTERRUPTED, "interrupted"},
    {DCRF_ERROR_DEVICE, "device"},
    {DCRF_ERROR_THREAD, "thread"},
    {DCRF_ERROR_UNSUPPORTED, "unsupported"},
    {DCRF_ERROR_OVERLAP, "overlap"},
    {DCRF_ERROR_NOT_FINITE, "not-finite"},
    {DCRF_ERROR_SIZE, "size"},
    {DCRF_ERROR_MEMORY, "memory"},
    {DCRF_ERROR_ARGUMENT, "argument"},
    {DCRF_OK, "ok"},
    {DCRF_STOP_GAP, "gap"},
    {DCRF_STOP_STATIONARY, "stationary"},
    {DCRF_STOP_ITERATIONS, "iterations"},
    {DCRF_STOP_TIME, "time"},
    {DCRF_STOP_CANCELLED, "cancelled"},
};

#define NAME_COUNT (sizeof names / sizeof names[0])

const char *dcrf_status_name(dcrf_status status) {
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (names[i].status == status)
            return names[i].name;
    return NULL;
}

int dcrf_status_from_name(const char *name, dcrf_status *status) {
    for (size_t i = 0; name && status && i < NAME_COUNT; i++)
        if (strcmp(names[i].name, name) == 0) {
            *status = names[i].status;
            return 1;
        }
    return 0;
}

dcrf_status dcrf_fail(dcrf_error *error, dcrf_status status, const char *format, ...) {
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return status;
}

dcrf_status dcrf_fail_memory(dcrf_error *error, const char *what) {
    return dcrf_fail(error, DCRF_ERROR_MEMORY, "out of memory for %s", what);
}

dcrf_status dcrf_fail_null(dcrf_error *error, const char *what) {
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s is NULL", what);
}

dcrf_status dcrf_check_room(const void *array, size_t count, size_t needed, const char *what,
                            dcrf_error *error) {
    if (!array)
        return dcrf_fail_null(error, what);
    return count >= needed
               ? DCRF_OK
               : dcrf_fail(error, DCRF_ERROR_SIZE,
                           "%s: the array holds %zu elements, %zu are needed", what, count, needed);
}

dcrf_status dcrf_check_rows(const void *array, size_t count, size_t rows, size_t width,
                            size_t stride, const char *what, dcrf_error *error) {
    if (stride < width)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "%s have %zu floats per variable; the stride is %zu", what, width, stride);
    if (rows > 0 && stride > (SIZE_MAX - width) / rows)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "%s: the stride %zu is too large", what, stride);
    return dcrf_check_room(array, count, rows > 0 ? (rows - 1) * stride + width : 0, what, error);
}

dcrf_status dcrf_check_reserved(const unsigned char *reserved, size_t bytes, const char *what,
                                dcrf_error *error) {
    for (size_t i = 0; i < bytes; i++)
        if (reserved[i] != 0)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "reserved bytes of %s are not zero: begin with the defaults", what);
    return DCRF_OK;
}
