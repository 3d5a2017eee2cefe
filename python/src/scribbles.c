/* dcrf._core.Scribbles: strokes, and the mask that follows from them. */
#include "module.h"

#include <stddef.h>
#include <string.h>

typedef struct {
    PyObject_HEAD dcrf_scribbles *scribbles;
    dcrf_workspace *workspace;
    dcrf_grid grid;
    size_t labels;
    struct dcrf_py_progress progress;
    int is_busy; /* a call is running without the interpreter lock */
} scribbles_object;

/* ---- settings ------------------------------------------------------------------------------- */

static const struct field {
    const char *name;
    int is_count;
    size_t offset;
} fields[] = {
    {"components", 1, offsetof(dcrf_scribbles_settings, components)},
    {"colour_weight", 0, offsetof(dcrf_scribbles_settings, colour_weight)},
    {"colour_limit", 0, offsetof(dcrf_scribbles_settings, colour_limit)},
    {"distance_weight", 0, offsetof(dcrf_scribbles_settings, distance_weight)},
    {"step_length", 0, offsetof(dcrf_scribbles_settings, step_length)},
    {"refits", 1, offsetof(dcrf_scribbles_settings, refits)},
    {"iterations", 1, offsetof(dcrf_scribbles_settings, iterations)},
    {"spatial_sigma", 0, offsetof(dcrf_scribbles_settings, spatial_sigma)},
    {"spatial_weight", 0, offsetof(dcrf_scribbles_settings, spatial_weight)},
    {"bilateral_sigma", 0, offsetof(dcrf_scribbles_settings, bilateral_sigma)},
    {"bilateral_channel_sigma", 0, offsetof(dcrf_scribbles_settings, bilateral_channel_sigma)},
    {"bilateral_weight", 0, offsetof(dcrf_scribbles_settings, bilateral_weight)},
};
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static int read_settings(PyObject *dictionary, dcrf_scribbles_settings *settings) {
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(dictionary, &position, &name, &value)) {
        size_t i = 0;
        while (i < FIELD_COUNT && PyUnicode_CompareWithASCIIString(name, fields[i].name) != 0)
            i++;
        if (i == FIELD_COUNT) {
            PyErr_Format(PyExc_TypeError, "scribbles have no setting %R", name);
            return -1;
        }
        char *at = (char *)settings + fields[i].offset;
        if (fields[i].is_count)
            *(size_t *)(void *)at = PyLong_AsSize_t(value);
        else
            *(double *)(void *)at = PyFloat_AsDouble(value);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* All settings in use, as a dictionary. */
static PyObject *settings(PyObject *object, PyObject *none) {
    scribbles_object *self = (scribbles_object *)object;
    (void)none;
    dcrf_scribbles_settings used;
    if (dcrf_py_enter(&self->is_busy, self->scribbles != NULL) < 0)
        return NULL;
    dcrf_scribbles_get_settings(self->scribbles, &used);
    dcrf_py_leave(&self->is_busy);
    PyObject *dictionary = PyDict_New();
    for (size_t i = 0; dictionary && i < FIELD_COUNT; i++) {
        const char *at = (const char *)&used + fields[i].offset;
        PyObject *value = fields[i].is_count
                              ? PyLong_FromSize_t(*(const size_t *)(const void *)at)
                              : PyFloat_FromDouble(*(const double *)(const void *)at);
        if (!value || PyDict_SetItemString(dictionary, fields[i].name, value) < 0)
            Py_CLEAR(dictionary);
        Py_XDECREF(value);
    }
    return dictionary;
}

/* ---- new and free --------------------------------------------------------------------------- */

/* Signals are checked before every stage; an exception cancels the update. */
static int watch(void *user, size_t round, dcrf_scribbles_stage stage) {
    (void)round;
    (void)stage;
    return dcrf_py_progress(user, NULL);
}

static int make(scribbles_object *self, PyObject *image, size_t labels, size_t threads,
                dcrf_scribbles_settings *chosen) {
    Py_buffer buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_status status;
    if (dcrf_py_view(image, &self->grid, "the image", &buffer, &view) < 0)
        return -1;
    chosen->progress = watch;
    chosen->progress_user = &self->progress;
    Py_BEGIN_ALLOW_THREADS status = dcrf_workspace_new(&self->workspace, threads, &error);
    if (status == DCRF_OK)
        status = dcrf_scribbles_new(&self->scribbles, &self->grid, &view, labels, chosen,
                                    self->workspace, &error);
    if (status < 0)
        dcrf_workspace_free(&self->workspace);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    self->labels = labels;
    if (status < 0)
        dcrf_py_raise(&error);
    return status < 0 ? -1 : 0;
}

/* Scribbles(shape, spacing, image, labels, settings, threads) */
static int init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    scribbles_object *self = (scribbles_object *)object;
    static char *names[] = {"shape", "spacing", "image", "labels", "settings", "threads", NULL};
    PyObject *shape, *spacing, *image, *dictionary;
    Py_ssize_t labels, threads;
    dcrf_scribbles_settings chosen;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOnO!n", names, &shape, &spacing,
                                     &image, &labels, &PyDict_Type, &dictionary, &threads))
        return -1;
    if (self->scribbles) {
        PyErr_SetString(PyExc_RuntimeError, "the object is initialized already");
        return -1;
    }
    if (labels < 0 || threads < 0) {
        PyErr_SetString(PyExc_ValueError, "a number of labels or threads is negative");
        return -1;
    }
    dcrf_scribbles_settings_defaults(&chosen);
    if (dcrf_py_grid(shape, spacing, &self->grid) < 0 || read_settings(dictionary, &chosen) < 0)
        return -1;
    return make(self, image, (size_t)labels, (size_t)threads, &chosen);
}

static void dealloc(PyObject *object) {
    scribbles_object *self = (scribbles_object *)object;
    dcrf_scribbles_free(&self->scribbles);
    dcrf_workspace_free(&self->workspace);
    dcrf_py_free_object(object);
}

/* ---- strokes and the mask ------------------------------------------------------------------- */

static PyObject *set_strokes(PyObject *object, PyObject *array) {
    scribbles_object *self = (scribbles_object *)object;
    Py_buffer buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_status status;
    if (dcrf_py_enter(&self->is_busy, self->scribbles != NULL) < 0)
        return NULL;
    if (dcrf_py_view(array, &self->grid, "the strokes", &buffer, &view) < 0)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status = dcrf_scribbles_set_strokes(self->scribbles, &view, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *update(PyObject *object, PyObject *none) {
    scribbles_object *self = (scribbles_object *)object;
    (void)none;
    dcrf_error error;
    if (dcrf_py_enter(&self->is_busy, self->scribbles != NULL) < 0)
        return NULL;
    self->progress = (struct dcrf_py_progress){.thread = PyEval_SaveThread()};
    const dcrf_status status = dcrf_scribbles_update(self->scribbles, &error);
    PyEval_RestoreThread(self->progress.thread);
    if (self->progress.has_failed)
        return dcrf_py_abandon(&self->is_busy);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static size_t variables_of(const scribbles_object *self) {
    return self->grid.size[0] * self->grid.size[1] * self->grid.size[2];
}

/* labels(uint16 out) */
static PyObject *labels(PyObject *object, PyObject *array) {
    scribbles_object *self = (scribbles_object *)object;
    Py_buffer buffer;
    dcrf_error error;
    if (dcrf_py_enter(&self->is_busy, self->scribbles != NULL) < 0)
        return NULL;
    uint16_t *out = dcrf_py_contiguous(array, "the labels", 'H', variables_of(self), 1, &buffer);
    if (!out)
        return dcrf_py_abandon(&self->is_busy);
    const dcrf_status status =
        dcrf_scribbles_labels(self->scribbles, out, variables_of(self), &error);
    PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

/* marginals(float32 out), rows of `labels` floats */
static PyObject *marginals(PyObject *object, PyObject *array) {
    scribbles_object *self = (scribbles_object *)object;
    Py_buffer buffer;
    dcrf_error error;
    if (dcrf_py_enter(&self->is_busy, self->scribbles != NULL) < 0)
        return NULL;
    float *out = dcrf_py_contiguous(array, "the marginals", 'f', variables_of(self) * self->labels,
                                    1, &buffer);
    if (!out)
        return dcrf_py_abandon(&self->is_busy);
    const dcrf_status status = dcrf_scribbles_marginals(
        self->scribbles, out, variables_of(self) * self->labels, self->labels, &error);
    PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

/* energies(float32 out), rows of `labels` floats; zero before the first update */
static PyObject *energies(PyObject *object, PyObject *array) {
    scribbles_object *self = (scribbles_object *)object;
    Py_buffer buffer;
    size_t stride;
    if (dcrf_py_enter(&self->is_busy, self->scribbles != NULL) < 0)
        return NULL;
    float *out = dcrf_py_contiguous(array, "the energies", 'f', variables_of(self) * self->labels,
                                    1, &buffer);
    if (!out)
        return dcrf_py_abandon(&self->is_busy);
    const float *unary = dcrf_model_unary(dcrf_scribbles_model(self->scribbles), &stride);
    for (size_t a = 0; a < variables_of(self); a++)
        memcpy(out + a * self->labels, unary + a * stride, self->labels * sizeof *out);
    PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, DCRF_OK, NULL);
}

static PyObject *info(PyObject *object, PyObject *none) {
    scribbles_object *self = (scribbles_object *)object;
    (void)none;
    dcrf_scribbles_info info;
    if (dcrf_py_enter(&self->is_busy, self->scribbles != NULL) < 0)
        return NULL;
    dcrf_scribbles_get_info(self->scribbles, &info);
    dcrf_py_leave(&self->is_busy);
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:{s:d,s:d,s:d,s:d}}", "strokes",
                         (Py_ssize_t)info.strokes, "labels_drawn", (Py_ssize_t)info.labels_drawn,
                         "rounds", (Py_ssize_t)info.rounds, "changed", (Py_ssize_t)info.changed,
                         "seconds", "prepare", info.prepare_s, "colours", info.colours_s,
                         "distances", info.distances_s, "field", info.mean_field_s);
}

static PyMethodDef methods[] = {
    {"set_strokes", set_strokes, METH_O, NULL}, {"update", update, METH_NOARGS, NULL},
    {"labels", labels, METH_O, NULL},           {"marginals", marginals, METH_O, NULL},
    {"energies", energies, METH_O, NULL},       {"info", info, METH_NOARGS, NULL},
    {"settings", settings, METH_NOARGS, NULL},  {0},
};

static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Strokes and the mask they give; see dcrf.Scribbles."},
    {0},
};

PyType_Spec dcrf_py_scribbles_spec = {
    .name = "dcrf._core.Scribbles",
    .basicsize = sizeof(scribbles_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
