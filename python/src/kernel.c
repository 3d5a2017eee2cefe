/* A kernel from the arguments of python/dcrf: sigmas of the axes (slowest first) or None,
 * channels or None, and sigmas of the channels or None. */
#include "module.h"

static int read_sigmas(PyObject *sigmas, const dcrf_grid *grid, dcrf_kernel *kernel) {
    double values[DCRF_MAX_AXES];
    const Py_ssize_t count = dcrf_py_doubles(sigmas, "the sigmas", values, DCRF_MAX_AXES);
    if (count < 0)
        return -1;
    if ((size_t)count != grid->axes) {
        PyErr_Format(PyExc_ValueError, "%zd sigmas were given for %zu axes", count, grid->axes);
        return -1;
    }
    for (size_t i = 0; i < grid->axes; i++)
        kernel->sigma[grid->axes - 1 - i] = values[i];
    return 0;
}

static int read_channel_sigmas(PyObject *sigmas, dcrf_kernel *kernel) {
    const Py_ssize_t count =
        dcrf_py_doubles(sigmas, "the channel sigmas", kernel->channel_sigma, DCRF_MAX_FEATURES);
    if (count < 0)
        return -1;
    if ((size_t)count != kernel->channels.channels) {
        PyErr_Format(PyExc_ValueError, "%zd channel sigmas were given for %zu channels", count,
                     kernel->channels.channels);
        return -1;
    }
    return 0;
}

typedef int (*view_reader)(PyObject *array, const dcrf_grid *grid, const char *what,
                           Py_buffer *buffer, dcrf_view *view);

static int read_kernel(PyObject *sigmas, PyObject *channels, PyObject *channel_sigmas,
                       const dcrf_grid *grid, view_reader read_view, dcrf_kernel *kernel,
                       Py_buffer *buffer) {
    const int has_sigmas = sigmas != Py_None, has_channels = channels != Py_None;
    *kernel = (dcrf_kernel){.kind = !has_channels ? DCRF_KERNEL_SPATIAL
                                    : has_sigmas  ? DCRF_KERNEL_BILATERAL
                                                  : DCRF_KERNEL_FEATURES};
    buffer->obj = NULL;
    if (!has_sigmas && !has_channels) {
        PyErr_SetString(PyExc_ValueError, "a kernel needs sigmas or features");
        return -1;
    }
    if (has_sigmas && read_sigmas(sigmas, grid, kernel) < 0)
        return -1;
    if (has_channels && read_view(channels, grid, has_sigmas ? "the image" : "the feature array",
                                  buffer, &kernel->channels) < 0) {
        buffer->obj = NULL;
        return -1;
    }
    if (channel_sigmas != Py_None && read_channel_sigmas(channel_sigmas, kernel) < 0) {
        PyBuffer_Release(buffer);
        return -1;
    }
    return 0;
}

int dcrf_py_kernel(PyObject *sigmas, PyObject *channels, PyObject *channel_sigmas,
                   const dcrf_grid *grid, dcrf_kernel *kernel, Py_buffer *buffer) {
    return read_kernel(sigmas, channels, channel_sigmas, grid, dcrf_py_view, kernel, buffer);
}

int dcrf_py_kernel_anywhere(PyObject *sigmas, PyObject *channels, PyObject *channel_sigmas,
                            const dcrf_grid *grid, dcrf_kernel *kernel, Py_buffer *buffer) {
    return read_kernel(sigmas, channels, channel_sigmas, grid, dcrf_py_view_anywhere, kernel,
                       buffer);
}

const float *dcrf_py_compatibility(PyObject *array, size_t labels, dcrf_compatibility *kind,
                                   Py_buffer *buffer) {
    if (PyObject_GetBuffer(array, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return NULL;
    const int ndim = buffer->ndim;
    int fits = ndim <= 2;
    for (int axis = 0; fits && axis < ndim; axis++)
        fits = (size_t)buffer->shape[axis] == labels;
    if (!buffer->format || buffer->format[0] != 'f' || buffer->format[1] != '\0') {
        PyErr_SetString(PyExc_TypeError, "a compatibility must be float32");
    } else if (!fits) {
        PyErr_Format(
            PyExc_ValueError,
            "a compatibility is a number, %zu numbers or a %zu x %zu matrix for %zu labels", labels,
            labels, labels, labels);
    } else {
        *kind = ndim == 0   ? DCRF_COMPATIBILITY_POTTS
                : ndim == 1 ? DCRF_COMPATIBILITY_VECTOR
                            : DCRF_COMPATIBILITY_MATRIX;
        return buffer->buf;
    }
    PyBuffer_Release(buffer);
    return NULL;
}
