/* Arrays on a device: memory for them, and DLPack to and from other libraries. In Python they
 * are dcrf.DeviceArray (python/dcrf/_gpu.py), which holds the numbers passed here. */
#include "dlpack.h"
#include "module.h"

#include <stdlib.h>
#include <string.h>

#define MOST_AXES 8
#define CAPSULE "dltensor"
#define USED_CAPSULE "used_dltensor"
#define OWNER "dcrf.dlpack"

/* ---- memory --------------------------------------------------------------------------------- */

#define MEMORY "dcrf.memory"

static void free_memory(PyObject *capsule) {
    dcrf_device_memory *memory = PyCapsule_GetPointer(capsule, MEMORY);
    Py_BEGIN_ALLOW_THREADS dcrf_device_memory_free(&memory);
    Py_END_ALLOW_THREADS
}

/* device_memory(bytes, device) -> (owner, address) */
PyObject *dcrf_py_device_memory(PyObject *module, PyObject *arguments) {
    Py_ssize_t bytes;
    const char *device;
    dcrf_workspace *workspace = NULL;
    dcrf_device_memory *memory = NULL;
    dcrf_error error;
    dcrf_status status;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "ns", &bytes, &device))
        return NULL;
    if (bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "a number of bytes is negative");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS status = dcrf_py_workspace(&workspace, 1, device, &error);
    if (status == DCRF_OK)
        status = dcrf_device_memory_new(&memory, workspace, (size_t)bytes, &error);
    dcrf_workspace_free(&workspace);
    Py_END_ALLOW_THREADS if (status < 0) return dcrf_py_raise(&error);
    PyObject *capsule = PyCapsule_New(memory, MEMORY, free_memory);
    if (!capsule) {
        dcrf_device_memory_free(&memory);
        return NULL;
    }
    return Py_BuildValue("(NN)", capsule, PyLong_FromVoidPtr(dcrf_device_memory_data(memory)));
}

/* device_of(address) -> "cuda:0", or "cpu" */
PyObject *dcrf_py_device_of(PyObject *module, PyObject *address) {
    char name[DCRF_DEVICE_NAME_BYTES];
    dcrf_error error;
    (void)module;
    const void *data = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    if (dcrf_device_find(data, name, &error) < 0)
        return dcrf_py_raise(&error);
    return PyUnicode_FromString(name);
}

/* fetch(address, device, stream or 0, bytes out): copy from a device to the host */
PyObject *dcrf_py_fetch(PyObject *module, PyObject *arguments) {
    PyObject *address, *stream, *array;
    const char *device;
    Py_buffer buffer;
    dcrf_workspace *workspace = NULL;
    dcrf_error error;
    dcrf_status status;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OsOO", &address, &device, &stream, &array))
        return NULL;
    const void *from = PyLong_AsVoidPtr(address);
    void *wait_for = PyErr_Occurred() ? NULL : PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred() ||
        PyObject_GetBuffer(array, &buffer, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = dcrf_py_workspace(&workspace, 1, device, &error);
    if (status == DCRF_OK && wait_for)
        status = dcrf_device_wait(workspace, wait_for, &error);
    if (status == DCRF_OK && buffer.len > 0)
        status = dcrf_device_copy(workspace, buffer.buf, from, (size_t)buffer.len, &error);
    dcrf_workspace_free(&workspace);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    if (status < 0)
        return dcrf_py_raise(&error);
    Py_RETURN_NONE;
}

/* ---- DLPack --------------------------------------------------------------------------------- */

static const struct format {
    char letter; /* of the struct module */
    struct dlpack_type type;
} formats[] = {
    {'B', {DLPACK_UINT, 8, 1}},   {'H', {DLPACK_UINT, 16, 1}},  {'h', {DLPACK_INT, 16, 1}},
    {'i', {DLPACK_INT, 32, 1}},   {'f', {DLPACK_FLOAT, 32, 1}}, {'d', {DLPACK_FLOAT, 64, 1}},
    {'e', {DLPACK_FLOAT, 16, 1}},
};

#define FORMATS (sizeof formats / sizeof formats[0])

/* A tensor of ours that is exported to another library. */
struct exported {
    struct dlpack_managed managed;
    int64_t shape[MOST_AXES], strides[MOST_AXES];
};

/* Called by the consumer of the tensor, from any thread. */
static void delete_exported(struct dlpack_managed *managed) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF((PyObject *)managed->context);
    PyGILState_Release(state);
    free(managed); /* the first member of its struct */
}

/* The capsule was not consumed. */
static void drop_capsule(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, CAPSULE)) {
        struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, CAPSULE);
        managed->deleter(managed);
    }
}

/* Copy the numbers of a tuple into an array; returns the count, or -1 and an exception. */
static Py_ssize_t read_integers(PyObject *tuple, const char *what, int64_t *values) {
    const Py_ssize_t count = PySequence_Size(tuple);
    if (count < 0)
        return -1;
    if (count > MOST_AXES) {
        PyErr_Format(PyExc_ValueError, "%s has %zd axes; at most %d are possible", what, count,
                     MOST_AXES);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(tuple, i);
        values[i] = item ? (int64_t)PyLong_AsLongLong(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return count;
}

/* to_dlpack(address, format, shape, strides in elements, index of the device, owner) */
PyObject *dcrf_py_to_dlpack(PyObject *module, PyObject *arguments) {
    PyObject *address, *shape, *strides, *owner;
    int format, index;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OCOOiO", &address, &format, &shape, &strides, &index, &owner))
        return NULL;
    struct exported *exported = calloc(1, sizeof *exported);
    if (!exported)
        return PyErr_NoMemory();
    struct dlpack_tensor *tensor = &exported->managed.tensor;
    tensor->data = PyLong_AsVoidPtr(address);
    const Py_ssize_t axes =
        PyErr_Occurred() ? -1 : read_integers(shape, "an array", exported->shape);
    if (axes < 0 || read_integers(strides, "an array", exported->strides) < 0) {
        free(exported);
        return NULL;
    }
    for (size_t k = 0; k < FORMATS; k++)
        if (formats[k].letter == format)
            tensor->type = formats[k].type;
    tensor->device = (struct dlpack_device){DLPACK_CUDA, index};
    tensor->ndim = (int32_t)axes;
    tensor->shape = exported->shape;
    tensor->strides = exported->strides;
    exported->managed.deleter = delete_exported;
    PyObject *capsule = PyCapsule_New(&exported->managed, CAPSULE, drop_capsule);
    if (!capsule) {
        free(exported);
        return NULL;
    }
    Py_INCREF(owner);
    exported->managed.context = owner;
    return capsule;
}

static void free_owner(PyObject *capsule) {
    struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, OWNER);
    if (managed->deleter)
        managed->deleter(managed);
}

static PyObject *integers(const int64_t *values, int32_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (int32_t i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(values[i]);
        if (!number || PyTuple_SetItem(tuple, i, number) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* from_dlpack(capsule) -> (owner, address, code of the type, its bits, shape, strides in
 * elements or None, type and index of the device) */
PyObject *dcrf_py_from_dlpack(PyObject *module, PyObject *capsule) {
    (void)module;
    if (!PyCapsule_IsValid(capsule, CAPSULE)) {
        PyErr_SetString(PyExc_ValueError, "this is not a tensor of DLPack, or it was taken before");
        return NULL;
    }
    struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, CAPSULE);
    const struct dlpack_tensor *tensor = &managed->tensor;
    PyObject *owner = PyCapsule_New(managed, OWNER, free_owner);
    if (!owner)
        return NULL;
    if (PyCapsule_SetName(capsule, USED_CAPSULE) < 0) { /* the capsule still owns it */
        PyCapsule_SetDestructor(owner, NULL);
        Py_DECREF(owner);
        return NULL;
    }
    PyObject *shape = integers(tensor->shape, tensor->ndim);
    PyObject *strides = NULL;
    if (shape && tensor->strides)
        strides = integers(tensor->strides, tensor->ndim);
    else if (shape) {
        Py_INCREF(Py_None);
        strides = Py_None;
    }
    if (!shape || !strides) {
        Py_XDECREF(shape);
        Py_DECREF(owner);
        return NULL;
    }
    return Py_BuildValue("(NNiiNNii)", owner,
                         PyLong_FromUnsignedLongLong((unsigned long long)(uintptr_t)tensor->data +
                                                     tensor->byte_offset),
                         tensor->type.lanes == 1 ? tensor->type.code : -1, tensor->type.bits, shape,
                         strides, tensor->device.type, tensor->device.index);
}
