/* Results of the library as dictionaries; NULL and an exception if out of memory. */
#ifndef DCRF_PYTHON_RESULTS_H
#define DCRF_PYTHON_RESULTS_H

#include "module.h"

PyObject *dcrf_py_energy_dictionary(const dcrf_energy *energy);
PyObject *dcrf_py_info_dictionary(const dcrf_solver *solver, size_t variables,
                                  const dcrf_changes *changes);
PyObject *dcrf_py_certificate_dictionary(const dcrf_certify_info *certificate);
PyObject *dcrf_py_verification_dictionary(const dcrf_verification *found);

#endif
