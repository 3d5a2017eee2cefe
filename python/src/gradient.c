/* dcrf._core.Unrolled: mean field with derivatives; and the derivatives of the pairwise energy. */
#include "module.h"

#include <dcrf/grid.h>

typedef struct {
    PyObject_HEAD PyObject *model; /* dcrf._core.Model, held: it cannot be changed meanwhile */
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    dcrf_unrolled *unrolled;
} unrolled_object;

static int init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    unrolled_object *self = (unrolled_object *)object;
    static char *names[] = {"model", "iterations", NULL};
    PyObject *model;
    Py_ssize_t iterations;
    dcrf_error error;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "On", names, &model, &iterations))
        return -1;
    if (self->model) {
        PyErr_SetString(PyExc_RuntimeError, "the object is initialized already");
        return -1;
    }
    if (iterations < 0) {
        PyErr_SetString(PyExc_ValueError, "the number of iterations is negative");
        return -1;
    }
    if (dcrf_py_model_hold(model, &self->plan, &self->workspace) < 0)
        return -1;
    Py_INCREF(model);
    self->model = model;
    if (dcrf_unrolled_new(&self->unrolled, self->plan, self->workspace, (size_t)iterations,
                          &error) < 0) {
        dcrf_py_raise(&error);
        return -1;
    }
    return 0;
}

static void dealloc(PyObject *object) {
    unrolled_object *self = (unrolled_object *)object;
    dcrf_unrolled_free(&self->unrolled);
    if (self->model)
        dcrf_py_model_release(self->model);
    Py_XDECREF(self->model);
    dcrf_py_free_object(object);
}

/* An array for one kind of derivatives, or NULL if it is None. */
static void *wanted_array(PyObject *array, const char *what, char format, size_t count,
                          Py_buffer *buffer) {
    return array == Py_None ? NULL : dcrf_py_contiguous(array, what, format, count, 1, buffer);
}

/* FEATURES belongs to the last kernel, the only one that can have channels: it has room for the
 * maximum number of features, of which the first ones are written, row by row. */
#define MOST_KERNELS 8
enum { WEIGHT, COMPATIBILITY, SIGMA, FEATURES, PARAMETERS };

/* The arrays for the derivatives of parameters; -1 and an exception if one does not fit. */
static int read_wanted(PyObject *const *arrays, const dcrf_model *model, Py_buffer *buffers,
                       float **features, dcrf_derivatives *wanted) {
    const size_t kernels = dcrf_model_kernels(model), labels = dcrf_model_labels(model);
    wanted->weight_count = kernels;
    wanted->compatibility_count = kernels * labels * labels;
    wanted->sigma_count = kernels * DCRF_MAX_FEATURES;
    wanted->features_count = dcrf_model_variables(model) * DCRF_MAX_FEATURES;
    wanted->weight = wanted_array(arrays[WEIGHT], "the derivatives of weights", 'd',
                                  wanted->weight_count, &buffers[WEIGHT]);
    if (!PyErr_Occurred())
        wanted->compatibility =
            wanted_array(arrays[COMPATIBILITY], "the derivatives of compatibilities", 'd',
                         wanted->compatibility_count, &buffers[COMPATIBILITY]);
    if (!PyErr_Occurred())
        wanted->sigma = wanted_array(arrays[SIGMA], "the derivatives of sigmas", 'd',
                                     wanted->sigma_count, &buffers[SIGMA]);
    if (!PyErr_Occurred() && kernels > 0 && kernels <= MOST_KERNELS) {
        features[kernels - 1] = wanted_array(arrays[FEATURES], "the derivatives of features", 'f',
                                             wanted->features_count, &buffers[FEATURES]);
        wanted->features = features[kernels - 1] ? features : NULL;
    }
    return PyErr_Occurred() ? -1 : 0;
}

static size_t block_size(const dcrf_model *model) {
    return dcrf_model_variables(model) * dcrf_padded(dcrf_model_labels(model));
}

static int enter(unrolled_object *self) {
    if (!self->unrolled) {
        PyErr_SetString(PyExc_RuntimeError, "the object was not initialized");
        return -1;
    }
    return dcrf_py_model_enter(self->model);
}

/* forward(mask or None, q out, whether ln q is wanted instead) */
static PyObject *forward(PyObject *object, PyObject *arguments) {
    unrolled_object *self = (unrolled_object *)object;
    PyObject *mask_array, *q_array;
    Py_buffer buffers[2] = {{0}, {0}};
    dcrf_error error;
    dcrf_status status = DCRF_OK;
    int is_logarithm = 0;
    if (!PyArg_ParseTuple(arguments, "OO|p", &mask_array, &q_array, &is_logarithm) ||
        enter(self) < 0)
        return NULL;
    const dcrf_model *model = dcrf_plan_model(self->plan);
    const size_t stride = dcrf_padded(dcrf_model_labels(model));
    const uint8_t *mask = NULL;
    float *q = dcrf_py_contiguous(q_array, "q", 'f', block_size(model), 1, &buffers[0]);
    if (q && mask_array != Py_None)
        mask = dcrf_py_contiguous(mask_array, "the mask", 'B', dcrf_model_variables(model), 0,
                                  &buffers[1]);
    if (!PyErr_Occurred()) {
        Py_BEGIN_ALLOW_THREADS status =
            dcrf_unrolled_forward(self->unrolled, mask, q, block_size(model), stride, &error);
        if (status == DCRF_OK && is_logarithm)
            status = dcrf_unrolled_log_q(self->unrolled, q, block_size(model), stride, &error);
        Py_END_ALLOW_THREADS
    }
    for (size_t i = 0; i < 2; i++)
        PyBuffer_Release(&buffers[i]);
    dcrf_py_model_leave(self->model);
    if (PyErr_Occurred())
        return NULL;
    if (status < 0)
        return dcrf_py_raise(&error);
    Py_RETURN_NONE;
}

/* backward(derivatives of q, whether they are of ln q, unary out, weights out, compatibilities
 * out, sigmas out, features out, whether all channels have one sigma); each output is None or an
 * array */
static PyObject *backward(PyObject *object, PyObject *arguments) {
    unrolled_object *self = (unrolled_object *)object;
    PyObject *q_array, *unary_array, *arrays[PARAMETERS];
    Py_buffer buffers[PARAMETERS + 2] = {{0}};
    dcrf_derivatives wanted = {0};
    dcrf_error error;
    dcrf_status status = DCRF_OK;
    float *features[MOST_KERNELS] = {NULL};
    int is_logarithm;
    if (!PyArg_ParseTuple(arguments, "OpOOOOOp", &q_array, &is_logarithm, &unary_array,
                          &arrays[WEIGHT], &arrays[COMPATIBILITY], &arrays[SIGMA],
                          &arrays[FEATURES], &wanted.channels_share_sigma) ||
        enter(self) < 0)
        return NULL;
    const dcrf_model *model = dcrf_plan_model(self->plan);
    const size_t stride = dcrf_padded(dcrf_model_labels(model));
    const float *q = dcrf_py_contiguous(q_array, "the derivatives of q", 'f', block_size(model), 0,
                                        &buffers[PARAMETERS]);
    wanted.unary_count = block_size(model);
    if (q)
        wanted.unary = wanted_array(unary_array, "the derivatives of unary energies", 'f',
                                    wanted.unary_count, &buffers[PARAMETERS + 1]);
    if (!PyErr_Occurred() && read_wanted(arrays, model, buffers, features, &wanted) == 0) {
        Py_BEGIN_ALLOW_THREADS status =
            is_logarithm ? dcrf_unrolled_backward_log_q(self->unrolled, q, stride, &wanted, &error)
                         : dcrf_unrolled_backward(self->unrolled, q, stride, &wanted, &error);
        Py_END_ALLOW_THREADS
    }
    for (size_t i = 0; i < PARAMETERS + 2; i++)
        PyBuffer_Release(&buffers[i]);
    dcrf_py_model_leave(self->model);
    if (PyErr_Occurred())
        return NULL;
    if (status < 0)
        return dcrf_py_raise(&error);
    Py_RETURN_NONE;
}

/* pairwise_gradient(model, y, y derivatives out, weights out, compatibilities out, sigmas out,
 * features out, whether all channels have one sigma) */
PyObject *dcrf_py_pairwise_gradient(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *object, *y_array, *out_array, *arrays[PARAMETERS];
    Py_buffer buffers[PARAMETERS + 2] = {{0}};
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    dcrf_derivatives wanted = {0};
    dcrf_error error;
    dcrf_status status = DCRF_OK;
    double energy = 0;
    float *features[MOST_KERNELS] = {NULL};
    if (!PyArg_ParseTuple(arguments, "OOOOOOOp", &object, &y_array, &out_array, &arrays[WEIGHT],
                          &arrays[COMPATIBILITY], &arrays[SIGMA], &arrays[FEATURES],
                          &wanted.channels_share_sigma) ||
        dcrf_py_model_hold(object, &plan, &workspace) < 0)
        return NULL;
    if (dcrf_py_model_enter(object) < 0) {
        dcrf_py_model_release(object);
        return NULL;
    }
    const dcrf_model *model = dcrf_plan_model(plan);
    const float *y =
        dcrf_py_contiguous(y_array, "y", 'f', block_size(model), 0, &buffers[PARAMETERS]);
    float *out = y ? wanted_array(out_array, "the derivatives of y", 'f', block_size(model),
                                  &buffers[PARAMETERS + 1])
                   : NULL;
    if (!PyErr_Occurred() && read_wanted(arrays, model, buffers, features, &wanted) == 0) {
        Py_BEGIN_ALLOW_THREADS status =
            dcrf_pairwise_gradient(plan, workspace, y, dcrf_padded(dcrf_model_labels(model)),
                                   &energy, out, block_size(model), &wanted, &error);
        Py_END_ALLOW_THREADS
    }
    for (size_t i = 0; i < PARAMETERS + 2; i++)
        PyBuffer_Release(&buffers[i]);
    dcrf_py_model_leave(object);
    dcrf_py_model_release(object);
    if (PyErr_Occurred())
        return NULL;
    return status < 0 ? dcrf_py_raise(&error) : PyFloat_FromDouble(energy);
}

static PyMethodDef methods[] = {
    {"forward", forward, METH_VARARGS, NULL},
    {"backward", backward, METH_VARARGS, NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Unrolled(model, iterations)"},
    {0},
};

PyType_Spec dcrf_py_unrolled_spec = {.name = "dcrf._core.Unrolled",
                                     .basicsize = sizeof(unrolled_object),
                                     .flags = Py_TPFLAGS_DEFAULT,
                                     .slots = slots};
