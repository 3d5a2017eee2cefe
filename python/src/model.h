/* A model with its plan and its threads: for model.c, which defines it, and runs.c, which uses
 * it. */
#ifndef DCRF_PYTHON_MODEL_H
#define DCRF_PYTHON_MODEL_H

#include "module.h"

struct dcrf_py_model {
    PyObject_HEAD dcrf_model *model;
    dcrf_plan *plan; /* NULL: not made yet */
    dcrf_operator_kind kind;
    dcrf_workspace *workspace;
    dcrf_grid grid;
    int is_busy;    /* a call is running without the interpreter lock */
    size_t holders; /* users of the plan: while there are any, the model must not be changed */
};

/* Make the plan if there is none; called without the interpreter lock. */
dcrf_status dcrf_py_need_plan(struct dcrf_py_model *self, dcrf_error *error);

/* Methods (runs.c). */
PyObject *dcrf_py_energy(PyObject *object, PyObject *array);
PyObject *dcrf_py_solve(PyObject *object, PyObject *arguments);
PyObject *dcrf_py_certify(PyObject *object, PyObject *arguments);
PyObject *dcrf_py_verify(PyObject *object, PyObject *arguments);

/* A method (masks.c). */
PyObject *dcrf_py_mask_energies(PyObject *object, PyObject *arguments);

#endif
