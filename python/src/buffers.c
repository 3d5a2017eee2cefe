/* Arrays through the buffer protocol. */
#include "module.h"

#include <string.h>

/* A format string without the prefix for native byte order. */
static const char *native_format(const Py_buffer *buffer) {
    const char *format = buffer->format ? buffer->format : "B";
    const uint16_t one = 1;
    const char own = *(const uint8_t *)&one ? '<' : '>';
    return *format == '@' || *format == '=' || *format == own ? format + 1 : format;
}

/* The element type of a native format string; -1 if it is not supported. */
static int type_of(const Py_buffer *buffer) {
    const char *format = native_format(buffer);
    if (format[0] == '\0' || format[1] != '\0')
        return -1;
    switch (format[0]) {
    case 'B':
    case '?':
        return DCRF_U8;
    case 'H':
        return DCRF_U16;
    case 'h':
        return DCRF_I16;
    case 'i':
        return DCRF_I32;
    case 'l':
        return buffer->itemsize == 4 ? DCRF_I32 : -1;
    case 'f':
        return DCRF_F32;
    case 'd':
        return DCRF_F64;
    default:
        return -1;
    }
}

int dcrf_py_view(PyObject *array, const dcrf_grid *grid, const char *what, Py_buffer *buffer,
                 dcrf_view *view) {
    if (PyObject_GetBuffer(array, buffer, PyBUF_STRIDES | PyBUF_FORMAT) < 0)
        return -1;
    const int type = type_of(buffer);
    if (type < 0) {
        PyErr_Format(PyExc_TypeError, "%s has elements of an unknown type (format '%s')", what,
                     buffer->format);
        goto fail;
    }
    if (buffer->ndim != (int)grid->axes + 1) {
        PyErr_Format(PyExc_ValueError, "%s has %d axes; %zu are needed", what, buffer->ndim,
                     grid->axes + 1);
        goto fail;
    }
    *view = (dcrf_view){.data = buffer->buf, .type = (dcrf_type)type};
    for (size_t i = 0; i < grid->axes; i++) {
        const size_t axis = grid->axes - 1 - i;
        if ((size_t)buffer->shape[i] != grid->size[axis]) {
            PyErr_Format(PyExc_ValueError, "%s has size %zd along axis %zu; the grid has %zu", what,
                         buffer->shape[i], i, grid->size[axis]);
            goto fail;
        }
        view->stride[axis] = buffer->strides[i];
    }
    view->channels = (size_t)buffer->shape[grid->axes];
    view->channel_stride = buffer->strides[grid->axes];
    return 0;
fail:
    PyBuffer_Release(buffer);
    return -1;
}

void *dcrf_py_contiguous(PyObject *array, const char *what, char format, size_t count,
                         int is_writable, Py_buffer *buffer) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (is_writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array, buffer, flags) < 0)
        return NULL;
    const char *given = native_format(buffer);
    if (given[0] != format || given[1] != '\0') {
        PyErr_Format(PyExc_TypeError, "%s has elements of format '%s'; '%c' is needed", what, given,
                     format);
    } else if ((size_t)(buffer->len / buffer->itemsize) != count) {
        PyErr_Format(PyExc_ValueError, "%s has %zd elements; %zu are needed", what,
                     buffer->len / buffer->itemsize, count);
    } else {
        return buffer->buf;
    }
    PyBuffer_Release(buffer);
    return NULL;
}
