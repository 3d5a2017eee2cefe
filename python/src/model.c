/* dcrf._core.Model: its definition. */
#include "model.h"

#include <string.h>

static int init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    static char *names[] = {"shape", "spacing", "labels", "operator", "threads", "device", NULL};
    PyObject *shape, *spacing;
    Py_ssize_t labels, threads = 0;
    const char *device = "cpu";
    int kind = DCRF_OPERATOR_FAST;
    dcrf_error error;
    dcrf_status status;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOn|ins", names, &shape, &spacing,
                                     &labels, &kind, &threads, &device))
        return -1;
    if (self->model) {
        PyErr_SetString(PyExc_RuntimeError, "the object is initialized already");
        return -1;
    }
    if (labels < 0 || threads < 0) {
        PyErr_SetString(PyExc_ValueError, "a number of labels or threads is negative");
        return -1;
    }
    if (dcrf_py_grid(shape, spacing, &self->grid) < 0)
        return -1;
    self->kind = (dcrf_operator_kind)kind;
    if ((status = dcrf_model_new(&self->model, &self->grid, (size_t)labels, &error)) == DCRF_OK) {
        self->is_busy = 1;
        Py_BEGIN_ALLOW_THREADS status =
            dcrf_py_workspace(&self->workspace, (size_t)threads, device, &error);
        Py_END_ALLOW_THREADS self->is_busy = 0;
    }
    if (status < 0) {
        dcrf_model_free(&self->model);
        dcrf_py_raise(&error);
        return -1;
    }
    return 0;
}

static void dealloc(PyObject *object) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    dcrf_plan_free(&self->plan);
    dcrf_model_free(&self->model);
    dcrf_workspace_free(&self->workspace);
    dcrf_py_free_object(object);
}

/* Enter a call that changes the model. */
static int enter_to_change(struct dcrf_py_model *self) {
    if (self->holders > 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a run whose derivatives are still wanted holds this model");
        return -1;
    }
    return dcrf_py_enter(&self->is_busy, self->model != NULL);
}

/* ---- the model ------------------------------------------------------------------------------ */

static PyObject *set_unary(PyObject *object, PyObject *array) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    Py_buffer buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_status status;
    if (enter_to_change(self) < 0)
        return NULL;
    if (dcrf_py_view(array, &self->grid, "the unary array", &buffer, &view) < 0)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status =
        dcrf_model_set_unary_with(self->model, self->workspace, &view, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

/* add_kernel(sigmas, channels, channel_sigmas, weight, is_symmetric): see kernel.c */
static PyObject *add_kernel(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    PyObject *sigmas, *channels, *channel_sigmas;
    Py_buffer buffer;
    dcrf_kernel kernel;
    dcrf_error error;
    dcrf_status status;
    double weight;
    int is_symmetric;
    if (!PyArg_ParseTuple(arguments, "OOOdp", &sigmas, &channels, &channel_sigmas, &weight,
                          &is_symmetric) ||
        enter_to_change(self) < 0)
        return NULL;
    if (dcrf_py_kernel(sigmas, channels, channel_sigmas, &self->grid, &kernel, &buffer) < 0)
        return dcrf_py_abandon(&self->is_busy);
    kernel.weight = weight;
    kernel.normalization = is_symmetric ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
    Py_BEGIN_ALLOW_THREADS status = dcrf_model_add_kernel(self->model, &kernel, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    if (status == DCRF_OK)
        dcrf_plan_free(&self->plan);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *set_weight(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    Py_ssize_t kernel;
    double weight;
    dcrf_error error;
    if (!PyArg_ParseTuple(arguments, "nd", &kernel, &weight) || enter_to_change(self) < 0)
        return NULL;
    return dcrf_py_finish(
        &self->is_busy, dcrf_model_set_weight(self->model, (size_t)kernel, weight, &error), &error);
}

static PyObject *apply_temperature(PyObject *object, PyObject *temperature) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    dcrf_error error;
    const double value = PyFloat_AsDouble(temperature);
    if (PyErr_Occurred() || dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    return dcrf_py_finish(&self->is_busy, dcrf_model_apply_temperature(self->model, value, &error),
                          &error);
}

/* The strength that suits the unary energies, as a dictionary. */
static PyObject *measure_strength(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    dcrf_measured_strength measured;
    dcrf_error error;
    dcrf_status status;
    (void)arguments;
    if (dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status =
        dcrf_model_measure_strength(self->model, self->workspace, &measured, &error);
    Py_END_ALLOW_THREADS dcrf_py_leave(&self->is_busy);
    if (status < 0)
        return dcrf_py_raise(&error);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:n}", "strength", measured.strength, "rho",
                         measured.rho, "temperature", measured.temperature, "margin",
                         measured.margin, "pairs", (Py_ssize_t)measured.pairs);
}

/* The strength in force, and the gamma of cliques that goes with it. */
static PyObject *strength(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    (void)arguments;
    if (dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    const double value = dcrf_model_strength(self->model), gamma = dcrf_default_gamma(self->model);
    dcrf_py_leave(&self->is_busy);
    return Py_BuildValue("dd", value, gamma);
}

/* Contiguous elements of this size in one of the formats. */
static int take_buffer(PyObject *array, const char *formats, size_t item_bytes, Py_buffer *buffer) {
    if (PyObject_GetBuffer(array, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return -1;
    if (buffer->format && strlen(buffer->format) == 1 && strchr(formats, buffer->format[0]) &&
        (size_t)buffer->itemsize == item_bytes)
        return 0;
    PyBuffer_Release(buffer);
    PyErr_SetString(PyExc_TypeError, "the arrays of a distance have other types");
    return -1;
}

/* ("tree", ends, lengths) or ("cuts", sets, lengths): pointer-sized integers, or bytes, and
 * doubles. */
static PyObject *set_structure(struct dcrf_py_model *self, size_t kernel, PyObject *tuple) {
    const char *name;
    PyObject *structure, *lengths;
    Py_buffer places, values;
    dcrf_error error;
    if (!PyArg_ParseTuple(tuple, "sOO", &name, &structure, &lengths))
        return dcrf_py_abandon(&self->is_busy);
    const int is_tree = strcmp(name, "tree") == 0;
    const size_t per_length = is_tree ? 2 : dcrf_model_labels(self->model);
    if (take_buffer(structure, is_tree ? "lLqQnN" : "B", is_tree ? sizeof(size_t) : 1, &places) < 0)
        return dcrf_py_abandon(&self->is_busy);
    if (take_buffer(lengths, "d", sizeof(double), &values) < 0) {
        PyBuffer_Release(&places);
        return dcrf_py_abandon(&self->is_busy);
    }
    const size_t count = (size_t)values.len / sizeof(double);
    dcrf_status status = DCRF_OK;
    if ((size_t)(places.len / places.itemsize) != count * per_length)
        PyErr_Format(PyExc_ValueError, "%zu lengths go with %zu numbers each, not with %zd", count,
                     per_length, places.len / places.itemsize);
    else
        status =
            is_tree
                ? dcrf_model_set_tree(self->model, kernel, count, places.buf, values.buf, &error)
                : dcrf_model_set_cuts(self->model, kernel, count, places.buf, values.buf, &error);
    PyBuffer_Release(&places);
    PyBuffer_Release(&values);
    return PyErr_Occurred() ? dcrf_py_abandon(&self->is_busy)
                            : dcrf_py_finish(&self->is_busy, status, &error);
}

/* set_compatibility(kernel, compatibility): None, contiguous float32 of labels or labels x labels,
 * a name, or the structure of a distance. */
static PyObject *set_compatibility(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    PyObject *array;
    Py_ssize_t kernel;
    Py_buffer buffer = {0};
    dcrf_error error;
    dcrf_compatibility compatibility = DCRF_COMPATIBILITY_POTTS;
    const float *values = NULL;
    if (!PyArg_ParseTuple(arguments, "nO", &kernel, &array) || enter_to_change(self) < 0)
        return NULL;
    if (PyTuple_Check(array))
        return set_structure(self, (size_t)kernel, array);
    if (PyUnicode_Check(array)) {
        const char *name;
        return PyArg_Parse(array, "s", &name)
                   ? dcrf_py_finish(
                         &self->is_busy,
                         dcrf_model_set_distance(self->model, (size_t)kernel, name, &error), &error)
                   : dcrf_py_abandon(&self->is_busy);
    }
    if (array != Py_None && !(values = dcrf_py_compatibility(array, dcrf_model_labels(self->model),
                                                             &compatibility, &buffer)))
        return dcrf_py_abandon(&self->is_busy);
    const dcrf_status status =
        dcrf_model_set_compatibility(self->model, (size_t)kernel, compatibility, values, &error);
    PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

/* set_cliques(map or None, cost) */
static PyObject *set_cliques(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    PyObject *map;
    double cost;
    Py_buffer buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_status status;
    if (!PyArg_ParseTuple(arguments, "Od", &map, &cost) || enter_to_change(self) < 0)
        return NULL;
    if (map == Py_None) {
        const size_t none = 0;
        return dcrf_py_finish(&self->is_busy,
                              dcrf_model_set_cliques(self->model, 0, &none, NULL, NULL, &error),
                              &error);
    }
    if (dcrf_py_view(map, &self->grid, "the clique map", &buffer, &view) < 0)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status = dcrf_model_set_clique_map(self->model, &view, cost, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

/* set_clique_costs(image, gamma, eta) */
static PyObject *set_clique_costs(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    PyObject *image;
    double gamma, eta;
    Py_buffer buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_status status;
    if (!PyArg_ParseTuple(arguments, "Odd", &image, &gamma, &eta) || enter_to_change(self) < 0)
        return NULL;
    if (dcrf_py_view(image, &self->grid, "the image", &buffer, &view) < 0)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status =
        dcrf_model_set_clique_costs(self->model, &view, gamma, eta, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *counts(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    (void)arguments;
    if (dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    dcrf_py_leave(&self->is_busy);
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n}", "variables",
                         (Py_ssize_t)dcrf_model_variables(self->model), "labels",
                         (Py_ssize_t)dcrf_model_labels(self->model), "kernels",
                         (Py_ssize_t)dcrf_model_kernels(self->model), "cliques",
                         (Py_ssize_t)dcrf_model_cliques(self->model), "threads",
                         (Py_ssize_t)dcrf_workspace_threads(self->workspace));
}

static PyObject *device(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    (void)arguments;
    return PyUnicode_FromString(dcrf_workspace_device(self->workspace));
}

/* ---- for runs.c and gradient.c -------------------------------------------------------------- */

dcrf_status dcrf_py_need_plan(struct dcrf_py_model *self, dcrf_error *error) {
    if (self->plan)
        return DCRF_OK;
    return dcrf_plan_new(&self->plan, self->model, self->kind, self->workspace, error);
}

int dcrf_py_model_enter(PyObject *object) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    return dcrf_py_enter(&self->is_busy, self->model != NULL);
}

void dcrf_py_model_leave(PyObject *object) {
    dcrf_py_leave(&((struct dcrf_py_model *)object)->is_busy);
}

int dcrf_py_model_hold(PyObject *object, const dcrf_plan **plan, dcrf_workspace **workspace) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    dcrf_error error;
    dcrf_status status;
    if (PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) != (void *)dealloc) {
        PyErr_SetString(PyExc_TypeError, "a dcrf._core.Model is needed");
        return -1;
    }
    if (dcrf_py_model_enter(object) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS status = dcrf_py_need_plan(self, &error);
    Py_END_ALLOW_THREADS dcrf_py_model_leave(object);
    if (status < 0) {
        dcrf_py_raise(&error);
        return -1;
    }
    self->holders++;
    *plan = self->plan;
    *workspace = self->workspace;
    return 0;
}

void dcrf_py_model_release(PyObject *object) {
    ((struct dcrf_py_model *)object)->holders--;
}

static PyMethodDef methods[] = {
    {"set_unary", set_unary, METH_O, NULL},
    {"add_kernel", add_kernel, METH_VARARGS, NULL},
    {"set_weight", set_weight, METH_VARARGS, NULL},
    {"apply_temperature", apply_temperature, METH_O, NULL},
    {"measure_strength", measure_strength, METH_NOARGS, NULL},
    {"strength", strength, METH_NOARGS, NULL},
    {"set_compatibility", set_compatibility, METH_VARARGS, NULL},
    {"set_cliques", set_cliques, METH_VARARGS, NULL},
    {"set_clique_costs", set_clique_costs, METH_VARARGS, NULL},
    {"counts", counts, METH_NOARGS, NULL},
    {"device", device, METH_NOARGS, NULL},
    {"mask_energies", dcrf_py_mask_energies, METH_VARARGS, NULL},
    {"energy", dcrf_py_energy, METH_O, NULL},
    {"solve", dcrf_py_solve, METH_VARARGS, NULL},
    {"certify", dcrf_py_certify, METH_VARARGS, NULL},
    {"verify", dcrf_py_verify, METH_VARARGS, NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Model(shape, spacing, labels, operator=0, threads=0, device='cpu')"},
    {0},
};

PyType_Spec dcrf_py_model_spec = {.name = "dcrf._core.Model",
                                  .basicsize = sizeof(struct dcrf_py_model),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                                  .slots = slots};
