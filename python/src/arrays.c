/* Mean field from arrays to arrays. A host array comes through the buffer protocol, a device
 * array as (address, format, shape, strides), with the axes and channels as in module.h. */
#include "module.h"

#include <string.h>

/* ---- views ---------------------------------------------------------------------------------- */

static int type_of_letter(int letter) {
    /* Letters of the struct module, and E for the upper half of a float (bfloat16), in the order
     * of dcrf_type. */
    static const char letters[] = "BHhifdeE";
    const char *found = letter ? strchr(letters, letter) : NULL;
    return found ? (int)(found - letters) : -1;
}

static int number_at(PyObject *tuple, Py_ssize_t i, Py_ssize_t *number) {
    PyObject *item = PySequence_GetItem(tuple, i);
    *number = item ? PyLong_AsSsize_t(item) : -1;
    Py_XDECREF(item);
    return PyErr_Occurred() ? -1 : 0;
}

static int device_view(PyObject *tuple, const dcrf_grid *grid, const char *what, dcrf_view *view) {
    PyObject *address, *shape, *strides;
    int letter;
    if (!PyArg_ParseTuple(tuple, "OCOO", &address, &letter, &shape, &strides))
        return -1;
    *view = (dcrf_view){.data = PyLong_AsVoidPtr(address)};
    const int type = type_of_letter(letter);
    const Py_ssize_t axes = PyErr_Occurred() ? -1 : PySequence_Size(shape);
    if (axes < 0 || PySequence_Size(strides) != axes || type < 0 ||
        axes != (Py_ssize_t)grid->axes + 1) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "%s has %zd axes; %zu are needed", what, axes,
                         grid->axes + 1);
        return -1;
    }
    view->type = (dcrf_type)type;
    for (size_t i = 0; i <= grid->axes; i++) {
        Py_ssize_t size, stride;
        if (number_at(shape, (Py_ssize_t)i, &size) < 0 ||
            number_at(strides, (Py_ssize_t)i, &stride) < 0)
            return -1;
        if (i == grid->axes) {
            view->channels = (size_t)size;
            view->channel_stride = stride;
        } else if ((size_t)size != grid->size[grid->axes - 1 - i]) {
            PyErr_Format(PyExc_ValueError, "%s has size %zd along axis %zu; the grid has %zu", what,
                         size, i, grid->size[grid->axes - 1 - i]);
            return -1;
        } else {
            view->stride[grid->axes - 1 - i] = stride;
        }
    }
    return 0;
}

int dcrf_py_view_anywhere(PyObject *array, const dcrf_grid *grid, const char *what,
                          Py_buffer *buffer, dcrf_view *view) {
    buffer->obj = NULL;
    if (PyTuple_Check(array))
        return device_view(array, grid, what, view);
    return dcrf_py_view(array, grid, what, buffer, view);
}

/* ---- the call ------------------------------------------------------------------------------- */

struct call {
    dcrf_arrays arrays;
    dcrf_kernel kernels[DCRF_ARRAYS_KERNELS];
    /* of the kernels, the unary, marginals and labels */
    Py_buffer buffers[DCRF_ARRAYS_KERNELS + 3];
    size_t buffer_count;
};

static int take_view(struct call *call, PyObject *array, const char *what, dcrf_view *view) {
    Py_buffer *buffer = &call->buffers[call->buffer_count];
    if (array == Py_None)
        return 0;
    if (dcrf_py_view_anywhere(array, &call->arrays.grid, what, buffer, view) < 0)
        return -1;
    call->buffer_count += buffer->obj != NULL;
    return 0;
}

/* A result must be writable, which is checked for host arrays. */
static int take_result(struct call *call, PyObject *array, const char *what, dcrf_output *output) {
    dcrf_view view = {0};
    if (array != Py_None && !PyTuple_Check(array)) {
        Py_buffer probe;
        if (PyObject_GetBuffer(array, &probe, PyBUF_WRITABLE | PyBUF_STRIDES) < 0)
            return -1;
        PyBuffer_Release(&probe);
    }
    if (take_view(call, array, what, &view) < 0)
        return -1;
    *output = (dcrf_output){
        (void *)(uintptr_t)view.data, view.type, view.channels, {0}, view.channel_stride};
    memcpy(output->stride, view.stride, sizeof output->stride);
    return 0;
}

/* (sigmas or None, channels or None, sigmas of the channels or None, weight, is_symmetric) */
static int take_kernel(struct call *call, PyObject *tuple) {
    PyObject *sigmas, *channels, *channel_sigmas;
    double weight;
    int is_symmetric;
    dcrf_kernel *kernel = &call->kernels[call->arrays.kernel_count];
    Py_buffer *buffer = &call->buffers[call->buffer_count];
    if (call->arrays.kernel_count == DCRF_ARRAYS_KERNELS) {
        PyErr_Format(PyExc_ValueError, "there are more than %d kernels", DCRF_ARRAYS_KERNELS);
        return -1;
    }
    if (!PyArg_ParseTuple(tuple, "OOOdp", &sigmas, &channels, &channel_sigmas, &weight,
                          &is_symmetric) ||
        dcrf_py_kernel_anywhere(sigmas, channels, channel_sigmas, &call->arrays.grid, kernel,
                                buffer) < 0)
        return -1;
    call->buffer_count += buffer->obj != NULL;
    kernel->weight = weight;
    kernel->normalization = is_symmetric ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
    call->arrays.kernel_count++;
    return 0;
}

static int take_kernels(struct call *call, PyObject *list) {
    const Py_ssize_t count = PySequence_Size(list);
    if (count < 0)
        return -1;
    for (Py_ssize_t m = 0; m < count; m++) {
        PyObject *kernel = PySequence_GetItem(list, m);
        const int failed = !kernel || take_kernel(call, kernel) < 0;
        Py_XDECREF(kernel); /* the list keeps its own reference */
        if (failed)
            return -1;
    }
    call->arrays.kernels = call->kernels;
    return 0;
}

#define MOST_STREAMS 8

static Py_ssize_t read_streams(PyObject *list, void **streams) {
    const Py_ssize_t count = PySequence_Size(list);
    if (count > MOST_STREAMS) {
        PyErr_SetString(PyExc_ValueError, "there are too many streams");
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *number = PySequence_GetItem(list, k);
        streams[k] = number ? PyLong_AsVoidPtr(number) : NULL;
        Py_XDECREF(number);
        if (PyErr_Occurred())
            return -1;
    }
    return count;
}

/* (shape, spacing, unary, kind, kernels, operator, iterations, marginals out or None, labels out
 * or None) */
static int take_call(struct call *call, PyObject *tuple) {
    PyObject *shape, *spacing, *unary, *kernels, *marginals, *labels;
    const char *kind;
    int operator_kind;
    Py_ssize_t iterations;
    dcrf_arrays *arrays = &call->arrays;
    dcrf_arrays_defaults(arrays);
    if (!PyArg_ParseTuple(tuple, "OOOsOinOO", &shape, &spacing, &unary, &kind, &kernels,
                          &operator_kind, &iterations, &marginals, &labels))
        return -1;
    if (iterations < 0 || !dcrf_unary_kind_from_name(kind, &arrays->unary_kind)) {
        PyErr_SetString(PyExc_ValueError, "a number is negative, or the kind of the unary unknown");
        return -1;
    }
    arrays->operator_kind = (dcrf_operator_kind)operator_kind;
    arrays->iterations = (size_t)iterations;
    return dcrf_py_grid(shape, spacing, &arrays->grid) == 0 &&
                   take_view(call, unary, "the unary", &arrays->unary) == 0 &&
                   take_result(call, marginals, "the array for marginals", &arrays->marginals) ==
                       0 &&
                   take_result(call, labels, "the array for labels", &arrays->labels) == 0
               ? take_kernels(call, kernels)
               : -1;
}

struct calls {
    struct call *of;
    dcrf_arrays *arrays; /* of all calls, contiguous */
    size_t count;
};

static void release_calls(struct calls *calls) {
    for (size_t c = 0; c < calls->count; c++)
        for (size_t k = 0; k < calls->of[c].buffer_count; k++)
            PyBuffer_Release(&calls->of[c].buffers[k]);
    PyMem_Free(calls->of);
    PyMem_Free(calls->arrays);
}

static int take_calls(struct calls *calls, PyObject *list) {
    const Py_ssize_t count = PySequence_Size(list);
    if (count < 0)
        return -1;
    calls->of = PyMem_Calloc((size_t)count + 1, sizeof *calls->of);
    calls->arrays = PyMem_Calloc((size_t)count + 1, sizeof *calls->arrays);
    if (!calls->of || !calls->arrays) {
        PyErr_NoMemory();
        return -1;
    }
    while (calls->count < (size_t)count) {
        struct call *call = &calls->of[calls->count];
        PyObject *tuple = PySequence_GetItem(list, (Py_ssize_t)calls->count);
        const int failed = !tuple || take_call(call, tuple) < 0;
        Py_XDECREF(tuple); /* the list keeps its own reference */
        calls->arrays[calls->count++] = call->arrays;
        if (failed)
            return -1;
    }
    return 0;
}

/* Called without the interpreter lock. */
static dcrf_status run(const struct calls *calls, size_t threads, const char *device,
                       void *const *streams, size_t stream_count, dcrf_error *error) {
    dcrf_workspace *workspace = NULL;
    size_t failed;
    dcrf_status status = dcrf_py_workspace(&workspace, threads, device, error);
    for (size_t k = 0; k < stream_count && status == DCRF_OK; k++)
        status = dcrf_device_wait(workspace, streams[k], error);
    if (status == DCRF_OK)
        status =
            dcrf_mean_field_arrays_many(workspace, calls->arrays, calls->count, &failed, error);
    dcrf_workspace_free(&workspace);
    return status;
}

/* mean_field(problems, threads, streams to wait for, device) */
PyObject *dcrf_py_mean_field(PyObject *module, PyObject *arguments) {
    PyObject *list, *stream_list, *result = NULL;
    const char *device;
    Py_ssize_t threads;
    void *streams[MOST_STREAMS];
    struct calls calls = {0};
    dcrf_error error;
    dcrf_status status;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OnOs", &list, &threads, &stream_list, &device))
        return NULL;
    if (threads < 0) {
        PyErr_SetString(PyExc_ValueError, "a number is negative");
        return NULL;
    }
    const Py_ssize_t stream_count = read_streams(stream_list, streams);
    if (stream_count >= 0 && take_calls(&calls, list) == 0) {
        Py_BEGIN_ALLOW_THREADS status =
            run(&calls, (size_t)threads, device, streams, (size_t)stream_count, &error);
        Py_END_ALLOW_THREADS if (status < 0) dcrf_py_raise(&error);
        else {
            Py_INCREF(Py_None);
            result = Py_None;
        }
    }
    release_calls(&calls);
    return result;
}
