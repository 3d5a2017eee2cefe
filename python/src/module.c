/* The module itself, errors and numbers. */
#include "module.h"

#include <dcrf/grid.h>
#include <string.h>

#define DEVICE_ERROR "DeviceError"

/* A subclass of RuntimeError, created by the module. */
static PyObject *raise_device_error(const dcrf_error *error) {
    PyObject *module = PyImport_ImportModule("dcrf._core");
    PyObject *type = module ? PyObject_GetAttrString(module, DEVICE_ERROR) : NULL;
    if (type)
        PyErr_SetString(type, error->message);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}

PyObject *dcrf_py_raise(const dcrf_error *error) {
    PyObject *type = PyExc_ValueError;
    if (error->status == DCRF_ERROR_DEVICE)
        return raise_device_error(error);
    if (error->status == DCRF_ERROR_MEMORY)
        type = PyExc_MemoryError;
    else if (error->status == DCRF_ERROR_INTERRUPTED && PyErr_Occurred())
        return NULL; /* a signal's exception is set, which says more */
    else if (error->status == DCRF_ERROR_INTERRUPTED)
        type = PyExc_TimeoutError;
    else if (error->status == DCRF_ERROR_THREAD)
        type = PyExc_RuntimeError;
    else if (error->status == DCRF_ERROR_UNSUPPORTED)
        type = PyExc_NotImplementedError;
    PyErr_SetString(type, error->message);
    return NULL;
}

Py_ssize_t dcrf_py_doubles(PyObject *sequence, const char *what, double *values, size_t most) {
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0)
        return -1;
    if ((size_t)count > most) {
        PyErr_Format(PyExc_ValueError, "%s has %zd numbers; at most %zu are possible", what, count,
                     most);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        if (!item)
            return -1;
        values[i] = PyFloat_AsDouble(item);
        Py_DECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return count;
}

int dcrf_py_grid(PyObject *shape, PyObject *spacing, dcrf_grid *grid) {
    double spacings[DCRF_MAX_AXES] = {1, 1, 1};
    const Py_ssize_t axes = PySequence_Size(shape);
    if (axes < 0)
        return -1;
    if (axes < 1 || axes > DCRF_MAX_AXES) {
        PyErr_Format(PyExc_ValueError, "a grid has 1 to 3 axes, not %zd", axes);
        return -1;
    }
    const Py_ssize_t count =
        spacing ? dcrf_py_doubles(spacing, "the spacing", spacings, DCRF_MAX_AXES) : axes;
    if (count < 0)
        return -1;
    if (count != axes) {
        PyErr_Format(PyExc_ValueError, "the spacing has %zd numbers for %zd axes", count, axes);
        return -1;
    }
    *grid = dcrf_grid_1d(1);
    grid->axes = (size_t)axes;
    for (Py_ssize_t i = 0; i < axes; i++) {
        PyObject *item = PySequence_GetItem(shape, i);
        if (!item)
            return -1;
        grid->size[axes - 1 - i] = PyLong_AsSize_t(item);
        grid->spacing[axes - 1 - i] = spacings[i];
        Py_DECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

int dcrf_py_enter(int *is_busy, int is_initialized) {
    if (!is_initialized) {
        PyErr_SetString(PyExc_RuntimeError, "the object was not initialized");
        return -1;
    }
    if (*is_busy) {
        PyErr_SetString(PyExc_RuntimeError,
                        "this object is in use by another call; give each thread its own");
        return -1;
    }
    *is_busy = 1;
    return 0;
}

void dcrf_py_leave(int *is_busy) {
    *is_busy = 0;
}

PyObject *dcrf_py_finish(int *is_busy, dcrf_status status, const dcrf_error *error) {
    dcrf_py_leave(is_busy);
    if (status < 0)
        return dcrf_py_raise(error);
    Py_RETURN_NONE;
}

PyObject *dcrf_py_abandon(int *is_busy) {
    dcrf_py_leave(is_busy);
    return NULL;
}

void dcrf_py_free_object(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

int dcrf_py_progress(void *user, const dcrf_moment *moment) {
    struct dcrf_py_progress *progress = user;
    int stop = 0;
    PyEval_RestoreThread(progress->thread);
    if (PyErr_CheckSignals() < 0) {
        progress->has_failed = 1;
    } else if (progress->callable && progress->callable != Py_None) {
        PyObject *answer = PyObject_CallFunction(
            progress->callable, "{s:n,s:d,s:d,s:d,s:d,s:d,s:d,s:s}", "iteration",
            (Py_ssize_t)moment->iteration, "time_s", moment->time_s, "objective", moment->objective,
            "energy", moment->energy, "best_energy", moment->best_energy, "lower_bound",
            moment->lower_bound, "relative_gap", moment->relative_gap, "stage",
            dcrf_stage_name(moment->stage));
        progress->has_failed = answer == NULL;
        stop = answer && PyUnicode_Check(answer) &&
               PyUnicode_CompareWithASCIIString(answer, "stop") == 0;
        Py_XDECREF(answer);
    }
    progress->thread = PyEval_SaveThread();
    return progress->has_failed || stop != 0;
}

int dcrf_py_cancel(void *user) {
    struct dcrf_py_progress *progress = user;
    int is_unwanted = 0;
    if (progress->has_failed)
        return 1;
    PyEval_RestoreThread(progress->thread);
    progress->has_failed = PyErr_CheckSignals() < 0;
    if (!progress->has_failed && progress->is_unwanted && progress->is_unwanted != Py_None) {
        PyObject *answer = PyObject_CallObject(progress->is_unwanted, NULL);
        is_unwanted = answer ? PyObject_IsTrue(answer) : -1;
        progress->has_failed = is_unwanted < 0;
        Py_XDECREF(answer);
    }
    progress->thread = PyEval_SaveThread();
    return progress->has_failed || is_unwanted;
}

static PyObject *padded(PyObject *module, PyObject *argument) {
    (void)module;
    const size_t channels = PyLong_AsSize_t(argument);
    return PyErr_Occurred() ? NULL : PyLong_FromSize_t(dcrf_padded(channels));
}

static PyObject *version(PyObject *module, PyObject *arguments) {
    (void)module;
    (void)arguments;
    return PyUnicode_FromString(dcrf_version());
}

static PyObject *cpu(PyObject *module, PyObject *arguments) {
    (void)module;
    (void)arguments;
    return PyUnicode_FromString(dcrf_cpu_name(dcrf_cpu_in_use()));
}

/* The library's table of defaults, so that it is not duplicated here. */
static PyObject *defaults(PyObject *module, PyObject *arguments) {
    (void)module;
    (void)arguments;
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d}", "spatial_sigma",
                         (double)DCRF_DEFAULT_SPATIAL_SIGMA, "bilateral_sigma",
                         (double)DCRF_DEFAULT_BILATERAL_SIGMA, "colour_sigma",
                         (double)DCRF_DEFAULT_COLOUR_SIGMA, "spatial_share",
                         (double)DCRF_DEFAULT_SPATIAL_SHARE, "eta", (double)DCRF_DEFAULT_ETA);
}

static PyMethodDef functions[] = {
    {"pairwise_gradient", dcrf_py_pairwise_gradient, METH_VARARGS, NULL},
    {"defaults", defaults, METH_NOARGS, "The sigmas, shares and costs of the default model."},
    {"devices", dcrf_py_devices, METH_NOARGS,
     "The devices beside the CPU: (name, description, memory_bytes, free_bytes)."},
    {"device_memory", dcrf_py_device_memory, METH_VARARGS, NULL},
    {"device_of", dcrf_py_device_of, METH_O, NULL},
    {"fetch", dcrf_py_fetch, METH_VARARGS, NULL},
    {"from_dlpack", dcrf_py_from_dlpack, METH_O, NULL},
    {"mean_field", dcrf_py_mean_field, METH_VARARGS, NULL},
    {"to_dlpack", dcrf_py_to_dlpack, METH_VARARGS, NULL},
    {"soft_mask", dcrf_py_soft_mask, METH_VARARGS, NULL},
    {"superpixels", dcrf_py_superpixels, METH_VARARGS, NULL},
    {"unary_energies", dcrf_py_unary_energies, METH_VARARGS, NULL},
    {"unary_fits", dcrf_py_unary_fits, METH_VARARGS, NULL},
    {"padded", padded, METH_O, "Floats in a row of so many channels."},
    {"version", version, METH_NOARGS, "The version of the library."},
    {"cpu", cpu, METH_NOARGS, "The vector instructions in use: 'c', 'neon', 'avx2' or 'avx512'."},
    {0},
};

/* Steals the reference to the type, which may be NULL. */
static int add_object(PyObject *module, const char *name, PyObject *type) {
    if (!type)
        return -1;
    if (PyModule_AddObject(module, name, type) < 0) { /* steals the reference on success */
        Py_DECREF(type);
        return -1;
    }
    return 0;
}

static int add_type(PyObject *module, const char *name, PyType_Spec *spec) {
    return add_object(module, name, PyType_FromSpec(spec));
}

static int execute(PyObject *module) {
    if (add_type(module, "Model", &dcrf_py_model_spec) < 0 ||
        add_type(module, "DenseCRF", &dcrf_py_densecrf_spec) < 0 ||
        add_type(module, "Operator", &dcrf_py_operator_spec) < 0 ||
        add_type(module, "Lattices", &dcrf_py_lattices_spec) < 0 ||
        add_type(module, "Unrolled", &dcrf_py_unrolled_spec) < 0 ||
        add_type(module, "Scribbles", &dcrf_py_scribbles_spec) < 0 ||
        add_object(module, DEVICE_ERROR,
                   PyErr_NewException("dcrf." DEVICE_ERROR, PyExc_RuntimeError, NULL)) < 0)
        return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "dcrf._core", .m_methods = functions, .m_slots = slots,
    .m_doc = "The C library behind dcrf. Not an interface: use the package dcrf."};

/* Python 3.8 does not make it visible. */
__attribute__((visibility("default"))) PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(&definition);
}
