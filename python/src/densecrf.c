/* dcrf._core.DenseCRF: the compatible mean field. */
#include "module.h"

#include <stdlib.h>

typedef struct {
    PyObject_HEAD dcrf_densecrf *crf;
    dcrf_workspace *workspace;
    dcrf_grid grid;
    int is_busy; /* a call is running without the interpreter lock */
} densecrf_object;

static int init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    densecrf_object *self = (densecrf_object *)object;
    static char *names[] = {"shape", "labels", "threads", "device", NULL};
    const char *device = "cpu";
    PyObject *shape;
    Py_ssize_t labels, threads = 0;
    dcrf_error error;
    dcrf_status status;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "On|ns", names, &shape, &labels, &threads,
                                     &device))
        return -1;
    if (self->crf) {
        PyErr_SetString(PyExc_RuntimeError, "the object is initialized already");
        return -1;
    }
    if (dcrf_py_grid(shape, NULL, &self->grid) < 0)
        return -1;
    if (labels < 0 || threads < 0) {
        PyErr_SetString(PyExc_ValueError, "a number of labels or threads is negative");
        return -1;
    }
    if ((status = dcrf_densecrf_new(&self->crf, &self->grid, (size_t)labels, &error)) == DCRF_OK) {
        self->is_busy = 1;
        Py_BEGIN_ALLOW_THREADS status =
            dcrf_py_workspace(&self->workspace, (size_t)threads, device, &error);
        if (status == DCRF_OK)
            status = dcrf_densecrf_set_device(self->crf, self->workspace, &error);
        Py_END_ALLOW_THREADS self->is_busy = 0;
    }
    if (status < 0) {
        dcrf_densecrf_free(&self->crf);
        dcrf_workspace_free(&self->workspace);
        dcrf_py_raise(&error);
        return -1;
    }
    return 0;
}

static void dealloc(PyObject *object) {
    densecrf_object *self = (densecrf_object *)object;
    dcrf_densecrf_free(&self->crf);
    dcrf_workspace_free(&self->workspace);
    dcrf_py_free_object(object);
}

static PyObject *set_unary(PyObject *object, PyObject *array) {
    densecrf_object *self = (densecrf_object *)object;
    Py_buffer buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_status status;
    if (dcrf_py_enter(&self->is_busy, self->crf != NULL) < 0)
        return NULL;
    if (dcrf_py_view(array, &self->grid, "the unary array", &buffer, &view) < 0)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status =
        dcrf_densecrf_set_unary_with(self->crf, self->workspace, &view, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

/* add_kernel(sigmas, channels, channel_sigmas, compatibility, normalization): see kernel.c */
static PyObject *add_kernel(PyObject *object, PyObject *arguments) {
    densecrf_object *self = (densecrf_object *)object;
    PyObject *sigmas, *channels, *channel_sigmas, *array;
    Py_buffer channel_buffer, buffer;
    dcrf_kernel kernel;
    dcrf_compatibility compatibility;
    dcrf_error error;
    dcrf_status status = DCRF_OK;
    int normalization;
    if (!PyArg_ParseTuple(arguments, "OOOOi", &sigmas, &channels, &channel_sigmas, &array,
                          &normalization) ||
        dcrf_py_enter(&self->is_busy, self->crf != NULL) < 0)
        return NULL;
    if (dcrf_py_kernel(sigmas, channels, channel_sigmas, &self->grid, &kernel, &channel_buffer) < 0)
        return dcrf_py_abandon(&self->is_busy);
    const float *values =
        dcrf_py_compatibility(array, dcrf_densecrf_labels(self->crf), &compatibility, &buffer);
    if (values) {
        Py_BEGIN_ALLOW_THREADS status = dcrf_densecrf_add_kernel(
            self->crf, self->workspace, &kernel, (dcrf_densecrf_normalization)normalization,
            compatibility, values, &error);
        Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    }
    PyBuffer_Release(&channel_buffer);
    if (!values)
        return dcrf_py_abandon(&self->is_busy);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *set_compatibility(PyObject *object, PyObject *arguments) {
    densecrf_object *self = (densecrf_object *)object;
    PyObject *array;
    Py_ssize_t kernel;
    Py_buffer buffer;
    dcrf_compatibility compatibility;
    dcrf_error error;
    if (!PyArg_ParseTuple(arguments, "nO", &kernel, &array) ||
        dcrf_py_enter(&self->is_busy, self->crf != NULL) < 0)
        return NULL;
    const float *values =
        dcrf_py_compatibility(array, dcrf_densecrf_labels(self->crf), &compatibility, &buffer);
    if (!values)
        return dcrf_py_abandon(&self->is_busy);
    const dcrf_status status =
        dcrf_densecrf_set_compatibility(self->crf, (size_t)kernel, compatibility, values, &error);
    PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *set_message_error(PyObject *object, PyObject *value) {
    densecrf_object *self = (densecrf_object *)object;
    dcrf_error error;
    const double message_error = PyFloat_AsDouble(value);
    if (PyErr_Occurred() || dcrf_py_enter(&self->is_busy, self->crf != NULL) < 0)
        return NULL;
    return dcrf_py_finish(
        &self->is_busy, dcrf_densecrf_set_message_error(self->crf, message_error, &error), &error);
}

static size_t floats_of(const densecrf_object *self) {
    return dcrf_densecrf_labels(self->crf) * dcrf_densecrf_variables(self->crf);
}

/* The planes of a distribution that is read, written or changed. */
static float *get_planes(densecrf_object *self, PyObject *array, int is_writable,
                         Py_buffer *buffer) {
    return dcrf_py_contiguous(array, "Q", 'f', floats_of(self), is_writable, buffer);
}

/* infer(iterations, q, progress or None) */
static PyObject *infer(PyObject *object, PyObject *arguments) {
    densecrf_object *self = (densecrf_object *)object;
    PyObject *array, *callable;
    Py_ssize_t iterations;
    Py_buffer buffer;
    dcrf_error error;
    if (!PyArg_ParseTuple(arguments, "nOO", &iterations, &array, &callable))
        return NULL;
    if (iterations < 0) {
        PyErr_Format(PyExc_ValueError, "the number of iterations is %zd; it must not be negative",
                     iterations);
        return NULL;
    }
    if (dcrf_py_enter(&self->is_busy, self->crf != NULL) < 0)
        return NULL;
    float *q = get_planes(self, array, 1, &buffer);
    if (!q)
        return dcrf_py_abandon(&self->is_busy);
    struct dcrf_py_progress progress = {.callable = callable};
    progress.thread = PyEval_SaveThread();
    const dcrf_status status =
        dcrf_densecrf_infer(self->crf, self->workspace, (size_t)iterations, q, floats_of(self),
                            dcrf_py_progress, &progress, &error);
    PyEval_RestoreThread(progress.thread);
    PyBuffer_Release(&buffer);
    dcrf_py_leave(&self->is_busy);
    if (progress.has_failed)
        return NULL;
    if (status < 0)
        return dcrf_py_raise(&error);
    Py_RETURN_NONE;
}

static PyObject *step(PyObject *object, PyObject *array) {
    densecrf_object *self = (densecrf_object *)object;
    Py_buffer buffer;
    dcrf_error error;
    dcrf_status status;
    if (dcrf_py_enter(&self->is_busy, self->crf != NULL) < 0)
        return NULL;
    float *q = get_planes(self, array, 1, &buffer);
    if (!q)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status =
        dcrf_densecrf_step(self->crf, self->workspace, q, floats_of(self), &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *divergence(PyObject *object, PyObject *array) {
    densecrf_object *self = (densecrf_object *)object;
    Py_buffer buffer;
    dcrf_error error;
    dcrf_status status;
    double value;
    if (dcrf_py_enter(&self->is_busy, self->crf != NULL) < 0)
        return NULL;
    const float *q = get_planes(self, array, 0, &buffer);
    if (!q)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status =
        dcrf_densecrf_divergence(self->crf, self->workspace, q, &value, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    dcrf_py_leave(&self->is_busy);
    return status < 0 ? dcrf_py_raise(&error) : PyFloat_FromDouble(value);
}

static PyObject *device(PyObject *object, PyObject *arguments) {
    (void)arguments;
    return PyUnicode_FromString(dcrf_densecrf_device(((densecrf_object *)object)->crf));
}

static PyMethodDef methods[] = {
    {"set_unary", set_unary, METH_O, NULL},
    {"add_kernel", add_kernel, METH_VARARGS, NULL},
    {"set_compatibility", set_compatibility, METH_VARARGS, NULL},
    {"set_message_error", set_message_error, METH_O, NULL},
    {"infer", infer, METH_VARARGS, NULL},
    {"step", step, METH_O, NULL},
    {"divergence", divergence, METH_O, NULL},
    {"device", device, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "DenseCRF(shape, labels, threads=0, device='cpu')"},
    {0},
};

PyType_Spec dcrf_py_densecrf_spec = {.name = "dcrf._core.DenseCRF",
                                     .basicsize = sizeof(densecrf_object),
                                     .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                                     .slots = slots};
