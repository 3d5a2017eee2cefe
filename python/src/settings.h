/* Settings of a solver from a dictionary of names and numbers. */
#ifndef DCRF_PYTHON_SETTINGS_H
#define DCRF_PYTHON_SETTINGS_H

#include "module.h"

/* Overwrite the named fields; -1 and an exception if a name or a value is invalid. */
int dcrf_py_settings(PyObject *dictionary, dcrf_settings *settings);

#endif
