/* The extension module dcrf._core: declarations shared by its files.
 *
 * Arrays come in through the buffer protocol, already shaped by python/dcrf/_arrays.py: one axis
 * per axis of the grid, slowest first, then the channels; any strides. Sizes are checked here
 * nevertheless: nothing that Python passes may cause an access outside an array. */
#ifndef DCRF_PYTHON_MODULE_H
#define DCRF_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>

/* Before Python 3.10 all types were mutable. */
#ifndef Py_TPFLAGS_IMMUTABLETYPE
#define Py_TPFLAGS_IMMUTABLETYPE 0
#endif

/* Raise the exception for an error; returns NULL. Device errors have a class of this module. */
PyObject *dcrf_py_raise(const dcrf_error *error);

/* An object allows one call at a time, because calls release the interpreter lock. Enter returns
 * -1 and sets an exception if the object is not initialized or in use. A call that has entered
 * must leave by one of the others: with a result that the caller makes, with None or the
 * exception for a status, or with NULL and the exception that is set. */
int dcrf_py_enter(int *is_busy, int is_initialized);
void dcrf_py_leave(int *is_busy);
PyObject *dcrf_py_finish(int *is_busy, dcrf_status status, const dcrf_error *error);
PyObject *dcrf_py_abandon(int *is_busy);

/* The common end of tp_dealloc. */
void dcrf_py_free_object(PyObject *object);

/* A grid from a sequence of sizes and one of spacings (NULL: 1), slowest axis first; -1 and an
 * exception if it is invalid. */
int dcrf_py_grid(PyObject *shape, PyObject *spacing, dcrf_grid *grid);

/* Up to `most` numbers of a sequence; returns the count, or -1 and an exception. */
Py_ssize_t dcrf_py_doubles(PyObject *sequence, const char *what, double *values, size_t most);

/* A view of an array over a grid, channels last. The caller releases the buffer; -1 and an
 * exception if the array does not fit. */
int dcrf_py_view(PyObject *array, const dcrf_grid *grid, const char *what, Py_buffer *buffer,
                 dcrf_view *view);

/* The same for an array on the host or on a device (arrays.c): for the latter, buffer->obj is
 * NULL and there is nothing to release. */
int dcrf_py_view_anywhere(PyObject *array, const dcrf_grid *grid, const char *what,
                          Py_buffer *buffer, dcrf_view *view);

/* A kernel (kernel.c). The caller releases the buffer, which is a no-op without channels; -1 and
 * an exception if it is invalid. */
int dcrf_py_kernel(PyObject *sigmas, PyObject *channels, PyObject *channel_sigmas,
                   const dcrf_grid *grid, dcrf_kernel *kernel, Py_buffer *buffer);
int dcrf_py_kernel_anywhere(PyObject *sigmas, PyObject *channels, PyObject *channel_sigmas,
                            const dcrf_grid *grid, dcrf_kernel *kernel, Py_buffer *buffer);

/* A compatibility: contiguous float32, no axis for a scalar (Potts), one for a vector, two for a
 * matrix over `labels`. The caller releases the buffer; NULL and an exception if it is invalid. */
const float *dcrf_py_compatibility(PyObject *array, size_t labels, dcrf_compatibility *kind,
                                   Py_buffer *buffer);

/* The memory of a contiguous array of `count` elements of a format ("f", "H", "d", "n"). */
void *dcrf_py_contiguous(PyObject *array, const char *what, char format, size_t count,
                         int is_writable, Py_buffer *buffer);

/* Running a loop of the library without the interpreter lock, with a callback that reacquires
 * it: for signals, and to call `callable` (NULL or None: none), which stops the loop by
 * returning "stop". (Other true values do not: tqdm's update returns one.) */
struct dcrf_py_progress {
    PyObject *callable;
    PyObject *is_unwanted; /* NULL or None, or a callable that returns whether to give up */
    PyThreadState *thread;
    int has_failed; /* an exception is set */
};
int dcrf_py_progress(void *user, const dcrf_moment *moment);
int dcrf_py_cancel(void *user); /* for signals and `is_unwanted`, also between iterations */

/* The plan and the threads of a dcrf._core.Model, which cannot be changed until it is released;
 * -1 and an exception if it is not one. Calls that use them enter and leave. */
int dcrf_py_model_hold(PyObject *model, const dcrf_plan **plan, dcrf_workspace **workspace);
void dcrf_py_model_release(PyObject *model);
int dcrf_py_model_enter(PyObject *model);
void dcrf_py_model_leave(PyObject *model);

/* A workspace with this many threads on this device. Called without the interpreter lock. */
dcrf_status dcrf_py_workspace(dcrf_workspace **workspace, size_t threads, const char *device,
                              dcrf_error *error);
/* The devices other than the CPU, as tuples (device.c). */
PyObject *dcrf_py_devices(PyObject *module, PyObject *arguments);

/* Arrays on a device (device_arrays.c), and mean field on arrays (arrays.c). */
PyObject *dcrf_py_device_memory(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_device_of(PyObject *module, PyObject *address);
PyObject *dcrf_py_fetch(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_to_dlpack(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_from_dlpack(PyObject *module, PyObject *capsule);
PyObject *dcrf_py_mean_field(PyObject *module, PyObject *arguments);

PyObject *dcrf_py_pairwise_gradient(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_unary_energies(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_unary_fits(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_soft_mask(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_superpixels(PyObject *module, PyObject *arguments);

/* What Operator and Lattices are (operator.c). `made` is the end of their init. */
struct dcrf_py_operator {
    PyObject_HEAD dcrf_operator *op;
    dcrf_workspace *workspace;
    int is_busy;
};
int dcrf_py_operator_made(struct dcrf_py_operator *self, dcrf_status status,
                          const dcrf_error *error);
void dcrf_py_operator_dealloc(PyObject *object);
int dcrf_py_check_channels(Py_ssize_t channels);

/* Types, as PyType_Spec, one per file. */
extern PyType_Spec dcrf_py_model_spec;
extern PyType_Spec dcrf_py_densecrf_spec;
extern PyType_Spec dcrf_py_operator_spec;
extern PyType_Spec dcrf_py_lattices_spec;
extern PyType_Spec dcrf_py_unrolled_spec;
extern PyType_Spec dcrf_py_scribbles_spec;

#endif
