/* dcrf._core.Operator: a kernel as a linear operator. */
#include "module.h"

int dcrf_py_operator_made(struct dcrf_py_operator *self, dcrf_status status,
                          const dcrf_error *error) {
    self->is_busy = 0;
    if (status < 0)
        dcrf_py_raise(error);
    return status < 0 ? -1 : 0;
}

void dcrf_py_operator_dealloc(PyObject *object) {
    struct dcrf_py_operator *self = (struct dcrf_py_operator *)object;
    dcrf_operator_free(&self->op);
    dcrf_workspace_free(&self->workspace);
    dcrf_py_free_object(object);
}

int dcrf_py_check_channels(Py_ssize_t channels) {
    if (channels >= 1 && channels <= DCRF_MAX_LABELS)
        return 0;
    PyErr_Format(PyExc_ValueError, "%zd channels; 1 to %d are possible", channels, DCRF_MAX_LABELS);
    return -1;
}

/* Operator(shape, spacing, sigmas, channels, channel_sigmas, is_symmetric, kind, threads,
 * device): see kernel.c */
static int init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    struct dcrf_py_operator *self = (struct dcrf_py_operator *)object;
    static char *names[] = {"shape",        "spacing", "sigmas",  "channels", "channel_sigmas",
                            "is_symmetric", "kind",    "threads", "device",   NULL};
    const char *device = "cpu";
    PyObject *shape, *spacing, *sigmas, *channels, *channel_sigmas;
    Py_ssize_t threads;
    int is_symmetric, kind;
    Py_buffer buffer;
    dcrf_grid grid;
    dcrf_kernel kernel;
    dcrf_error error;
    dcrf_status status;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOOOpin|s", names, &shape, &spacing,
                                     &sigmas, &channels, &channel_sigmas, &is_symmetric, &kind,
                                     &threads, &device))
        return -1;
    if (self->op || self->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "the object is initialized already");
        return -1;
    }
    if (threads < 0) {
        PyErr_SetString(PyExc_ValueError, "the number of threads is negative");
        return -1;
    }
    if (dcrf_py_grid(shape, spacing, &grid) < 0 ||
        dcrf_py_kernel(sigmas, channels, channel_sigmas, &grid, &kernel, &buffer) < 0)
        return -1;
    kernel.weight = 1;
    kernel.normalization = is_symmetric ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
    self->is_busy = 1;
    Py_BEGIN_ALLOW_THREADS status =
        self->workspace ? DCRF_OK
                        : dcrf_py_workspace(&self->workspace, (size_t)threads, device, &error);
    if (status == DCRF_OK)
        status = dcrf_operator_new(&self->op, &grid, &kernel, (dcrf_operator_kind)kind,
                                   self->workspace, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_operator_made(self, status, &error);
}

/* apply(direction, in, out, channels): blocks of rows of dcrf_padded(channels) floats */
static PyObject *apply(PyObject *object, PyObject *arguments) {
    struct dcrf_py_operator *self = (struct dcrf_py_operator *)object;
    PyObject *in_array, *out_array;
    Py_ssize_t channels;
    Py_buffer buffers[2] = {{0}, {0}};
    int direction;
    size_t count;
    dcrf_error error;
    dcrf_status status = DCRF_OK;
    if (!PyArg_ParseTuple(arguments, "iOOn", &direction, &in_array, &out_array, &channels))
        return NULL;
    if (dcrf_py_check_channels(channels) < 0 || dcrf_py_enter(&self->is_busy, self->op != NULL) < 0)
        return NULL;
    const size_t stride = dcrf_padded((size_t)channels);
    count = dcrf_operator_variables(self->op) * stride;
    const float *in = dcrf_py_contiguous(in_array, "the values", 'f', count, 0, &buffers[0]);
    float *out =
        in ? dcrf_py_contiguous(out_array, "the result", 'f', count, 1, &buffers[1]) : NULL;
    if (out && in + count > out && out + count > in)
        PyErr_SetString(PyExc_ValueError, "the values and the result share memory");
    else if (out) {
        Py_BEGIN_ALLOW_THREADS status =
            dcrf_operator_apply(self->op, self->workspace, (dcrf_direction)direction, in, out,
                                count, (size_t)channels, stride, &error);
        Py_END_ALLOW_THREADS
    }
    for (size_t i = 0; i < 2; i++)
        PyBuffer_Release(&buffers[i]);
    if (PyErr_Occurred())
        return dcrf_py_abandon(&self->is_busy);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

typedef dcrf_status (*vector_of)(const dcrf_operator *, dcrf_workspace *, float *, size_t,
                                 dcrf_error *);

static PyObject *fill_vector(struct dcrf_py_operator *self, PyObject *array, vector_of function) {
    Py_buffer buffer;
    dcrf_error error;
    dcrf_status status;
    if (dcrf_py_enter(&self->is_busy, self->op != NULL) < 0)
        return NULL;
    const size_t count = dcrf_operator_variables(self->op);
    float *out = dcrf_py_contiguous(array, "the result", 'f', count, 1, &buffer);
    if (!out)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status = function(self->op, self->workspace, out, count, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *diagonal(PyObject *object, PyObject *array) {
    return fill_vector((struct dcrf_py_operator *)object, array, dcrf_operator_diagonal);
}

static PyObject *row_sums(PyObject *object, PyObject *array) {
    return fill_vector((struct dcrf_py_operator *)object, array, dcrf_operator_row_sums);
}

static PyObject *info(PyObject *object, PyObject *arguments) {
    struct dcrf_py_operator *self = (struct dcrf_py_operator *)object;
    (void)arguments;
    if (dcrf_py_enter(&self->is_busy, self->op != NULL) < 0)
        return NULL;
    dcrf_py_leave(&self->is_busy);
    return Py_BuildValue("{s:i,s:n,s:n,s:n}", "kind", (int)dcrf_operator_kind_of(self->op),
                         "variables", (Py_ssize_t)dcrf_operator_variables(self->op), "vertices",
                         (Py_ssize_t)dcrf_operator_vertices(self->op), "bytes",
                         (Py_ssize_t)dcrf_operator_bytes(self->op));
}

static PyObject *device(PyObject *object, PyObject *arguments) {
    (void)arguments;
    return PyUnicode_FromString(
        dcrf_workspace_device(((struct dcrf_py_operator *)object)->workspace));
}

static PyMethodDef methods[] = {
    {"apply", apply, METH_VARARGS, NULL},  {"diagonal", diagonal, METH_O, NULL},
    {"row_sums", row_sums, METH_O, NULL},  {"info", info, METH_NOARGS, NULL},
    {"device", device, METH_NOARGS, NULL}, {0},
};

static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_dealloc, dcrf_py_operator_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Operator(shape, spacing, sigmas, channels, channel_sigmas, is_symmetric, kind, "
                "threads, device='cpu')"},
    {0},
};

PyType_Spec dcrf_py_operator_spec = {.name = "dcrf._core.Operator",
                                     .basicsize = sizeof(struct dcrf_py_operator),
                                     .flags = Py_TPFLAGS_DEFAULT,
                                     .slots = slots};
