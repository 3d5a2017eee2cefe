/* dcrf._core.Lattices: the lattices of a batch of pictures as one operator on a GPU, in memory
 * allocated by PyTorch and on its stream. Arrays are addresses: _torch_gpu.py provides tensors
 * of the right size. */
#include "module.h"

/* Lattices(device, stream, features, variables, dimension, pictures, is_symmetric, is_waiting) */
static int init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    struct dcrf_py_operator *self = (struct dcrf_py_operator *)object;
    static char *names[] = {"device",   "stream",       "features",   "variables", "dimension",
                            "pictures", "is_symmetric", "is_waiting", NULL};
    const char *device;
    unsigned long long stream, features;
    Py_ssize_t variables, dimension, pictures;
    int is_symmetric, is_waiting;
    dcrf_error error;
    dcrf_status status;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sKKnnnpp", names, &device, &stream,
                                     &features, &variables, &dimension, &pictures, &is_symmetric,
                                     &is_waiting))
        return -1;
    if (self->op || self->is_busy || variables < 0 || dimension < 0 || pictures < 0) {
        PyErr_SetString(PyExc_ValueError,
                        "the object is initialized already, or a size is negative");
        return -1;
    }
    self->is_busy = 1;
    Py_BEGIN_ALLOW_THREADS status = dcrf_py_workspace(&self->workspace, 1, device, &error);
    if (status == DCRF_OK)
        status = dcrf_device_use_stream(self->workspace, (void *)(uintptr_t)stream, &error);
    if (status == DCRF_OK)
        status = dcrf_operator_new_on_device(&self->op, (const float *)(uintptr_t)features,
                                             (size_t)variables, (size_t)dimension, (size_t)pictures,
                                             is_symmetric, is_waiting, self->workspace, &error);
    Py_END_ALLOW_THREADS return dcrf_py_operator_made(self, status, &error);
}

/* apply(in, out, channels): rows of dcrf_padded(channels) floats */
static PyObject *apply(PyObject *object, PyObject *arguments) {
    struct dcrf_py_operator *self = (struct dcrf_py_operator *)object;
    unsigned long long in, out;
    Py_ssize_t channels;
    dcrf_error error;
    if (!PyArg_ParseTuple(arguments, "KKn", &in, &out, &channels))
        return NULL;
    if (dcrf_py_check_channels(channels) < 0 || dcrf_py_enter(&self->is_busy, self->op != NULL) < 0)
        return NULL;
    const dcrf_status status = dcrf_operator_apply(
        self->op, self->workspace, DCRF_SYMMETRIC, (const float *)(uintptr_t)in,
        (float *)(uintptr_t)out, dcrf_operator_variables(self->op) * dcrf_padded((size_t)channels),
        (size_t)channels, dcrf_padded((size_t)channels), &error);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *diagonal(PyObject *object, PyObject *argument) {
    struct dcrf_py_operator *self = (struct dcrf_py_operator *)object;
    const unsigned long long out = PyLong_AsUnsignedLongLong(argument);
    dcrf_error error;
    if (PyErr_Occurred() || dcrf_py_enter(&self->is_busy, self->op != NULL) < 0)
        return NULL;
    const dcrf_status status =
        dcrf_operator_diagonal(self->op, self->workspace, (float *)(uintptr_t)out,
                               dcrf_operator_variables(self->op), &error);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyMethodDef methods[] = {
    {"apply", apply, METH_VARARGS, NULL}, {"diagonal", diagonal, METH_O, NULL}, {0}};

static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_dealloc, dcrf_py_operator_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Lattices(device, stream, features, variables, dimension, pictures, is_symmetric, "
                "is_waiting)"},
    {0},
};

PyType_Spec dcrf_py_lattices_spec = {.name = "dcrf._core.Lattices",
                                     .basicsize = sizeof(struct dcrf_py_operator),
                                     .flags = Py_TPFLAGS_DEFAULT,
                                     .slots = slots};
