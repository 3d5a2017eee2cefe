/* What the library found, as dictionaries; NULL and an exception where memory is out. */
#ifndef DCRF_PYTHON_RESULTS_H
#define DCRF_PYTHON_RESULTS_H

#include "module.h"

PyObject *dcrf_py_energy_dictionary(const dcrf_energy *energy);
PyObject *dcrf_py_info_dictionary(const dcrf_solver *solver, const dcrf_changes *changes);
PyObject *dcrf_py_certificate_dictionary(const dcrf_certificate *certificate);
PyObject *dcrf_py_verification_dictionary(const dcrf_verification *found);

/* The energy, the bound and the gap after a proof, into what the solver says; then its certificate.
 * -1 and an exception where memory is out. */
int dcrf_py_add_proven_share(PyObject *dictionary, double share);
int dcrf_py_add_proof(PyObject *dictionary, const dcrf_proof *proof);

#endif
