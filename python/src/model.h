/* A model with its plan and its threads: for model.c, which describes it, and runs.c, which uses
 * it. */
#ifndef DCRF_PYTHON_MODEL_H
#define DCRF_PYTHON_MODEL_H

#include "module.h"

struct dcrf_py_model {
    PyObject_HEAD dcrf_model *model;
    dcrf_plan *plan; /* NULL: to be made */
    dcrf_operator_kind kind;
    dcrf_workspace *workspace;
    dcrf_grid grid;
    int is_busy;    /* a call runs without the interpreter lock */
    size_t holders; /* of the plan: the model must not be changed */
};

/* The plan, made where there is none; without the interpreter lock. */
dcrf_status dcrf_py_need_plan(struct dcrf_py_model *self, dcrf_error *error);

/* Methods (runs.c). */
PyObject *dcrf_py_energy(PyObject *object, PyObject *array);
PyObject *dcrf_py_solve(PyObject *object, PyObject *arguments);
PyObject *dcrf_py_certify(PyObject *object, PyObject *arguments);
PyObject *dcrf_py_verify(PyObject *object, PyObject *arguments);

/* A method (masks.c). */
PyObject *dcrf_py_mask_energies(PyObject *object, PyObject *arguments);

#endif
