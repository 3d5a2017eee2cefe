/* The extension module dcrf._core: what its files share.
 *
 * Arrays come in through the buffer protocol, already shaped by python/dcrf/_arrays.py: one axis
 * for each axis of the grid, slowest first, then the channels; any strides. Sizes are checked here
 * all the same: nothing that Python passes may reach beyond an array. */
#ifndef DCRF_PYTHON_MODULE_H
#define DCRF_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dcrf/dcrf.h>

/* Before Python 3.10 types could be changed. */
#ifndef Py_TPFLAGS_IMMUTABLETYPE
#define Py_TPFLAGS_IMMUTABLETYPE 0
#endif

/* Raise the exception that belongs to an error; returns NULL. That of a device is a class of this
 * module. */
PyObject *dcrf_py_raise(const dcrf_error *error);

/* An object works for one call at a time: calls give the interpreter lock away. Enter returns -1
 * and an exception where the object is not initialized or in use. Whoever entered leaves, by one of
 * the others: with a result that the caller makes, with None or the exception of a status, or with
 * NULL and the exception that is set. */
int dcrf_py_enter(int *is_busy, int is_initialized);
void dcrf_py_leave(int *is_busy);
PyObject *dcrf_py_finish(int *is_busy, dcrf_status status, const dcrf_error *error);
PyObject *dcrf_py_abandon(int *is_busy);

/* The last lines of tp_dealloc. */
void dcrf_py_free_object(PyObject *object);

/* A grid from a sequence of sizes and one of spacings (NULL: 1), slowest axis first; -1 and an
 * exception where it is none. */
int dcrf_py_grid(PyObject *shape, PyObject *spacing, dcrf_grid *grid);

/* Up to `most` numbers of a sequence; the count, or -1 and an exception. */
Py_ssize_t dcrf_py_doubles(PyObject *sequence, const char *what, double *values, size_t most);

/* A view of an array over a grid, channels last. The buffer is to be released; -1 and an exception
 * where the array does not fit. */
int dcrf_py_view(PyObject *array, const dcrf_grid *grid, const char *what, Py_buffer *buffer,
                 dcrf_view *view);

/* The same of an array of the host's or of a device's (arrays.c): buffer->obj is NULL then, and
 * there is nothing to be released. */
int dcrf_py_view_anywhere(PyObject *array, const dcrf_grid *grid, const char *what,
                          Py_buffer *buffer, dcrf_view *view);

/* A kernel (kernel.c). The buffer is to be released, which is harmless where there are no channels;
 * -1 and an exception where it is none. */
int dcrf_py_kernel(PyObject *sigmas, PyObject *channels, PyObject *channel_sigmas,
                   const dcrf_grid *grid, dcrf_kernel *kernel, Py_buffer *buffer);
int dcrf_py_kernel_anywhere(PyObject *sigmas, PyObject *channels, PyObject *channel_sigmas,
                            const dcrf_grid *grid, dcrf_kernel *kernel, Py_buffer *buffer);

/* A compatibility: contiguous float32, no axis for a scalar (Potts), one for a vector, two for a
 * matrix over `labels`. The buffer is to be released; NULL and an exception where it is none. */
const float *dcrf_py_compatibility(PyObject *array, size_t labels, dcrf_compatibility *kind,
                                   Py_buffer *buffer);

/* The memory of a contiguous array of `count` elements of a format ("f", "H", "d", "n"). */
void *dcrf_py_contiguous(PyObject *array, const char *what, char format, size_t count,
                         int is_writable, Py_buffer *buffer);

/* Running a loop of the library without the interpreter lock, with a callback that takes it back:
 * for signals, and to call `callable` (NULL or None: none), which stops the loop by returning
 * "stop". (Other true answers do not: tqdm's update has one.) */
struct dcrf_py_progress {
    PyObject *callable;
    PyObject *is_unwanted; /* NULL or None, or a callable that says whether to give up */
    PyThreadState *thread;
    int has_failed; /* an exception is set */
};
int dcrf_py_progress(void *user, const dcrf_moment *moment);
int dcrf_py_cancel(void *user); /* for signals and `is_unwanted`, also between iterations */

/* The plan and the threads of a dcrf._core.Model, which cannot be changed until it is released; -1
 * and an exception where it is none. Calls that use them enter and leave. */
int dcrf_py_model_hold(PyObject *model, const dcrf_plan **plan, dcrf_workspace **workspace);
void dcrf_py_model_release(PyObject *model);
int dcrf_py_model_enter(PyObject *model);
void dcrf_py_model_leave(PyObject *model);

/* A workspace with this many threads on this device. Without the interpreter lock. */
dcrf_status dcrf_py_workspace(dcrf_workspace **workspace, size_t threads, const char *device,
                              dcrf_error *error);
/* The devices beside the CPU, as tuples (device.c). */
PyObject *dcrf_py_devices(PyObject *module, PyObject *arguments);

/* Arrays on a device (device_arrays.c), and mean field of arrays (arrays.c). */
PyObject *dcrf_py_device_memory(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_device_of(PyObject *module, PyObject *address);
PyObject *dcrf_py_fetch(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_to_dlpack(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_from_dlpack(PyObject *module, PyObject *capsule);
PyObject *dcrf_py_mean_field(PyObject *module, PyObject *arguments);

PyObject *dcrf_py_pairwise_gradient(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_unary_energies(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_unary_fits(PyObject *module, PyObject *arguments);
PyObject *dcrf_py_superpixels(PyObject *module, PyObject *arguments);

/* Types, as PyType_Spec; each file has one. */
extern PyType_Spec dcrf_py_model_spec;
extern PyType_Spec dcrf_py_densecrf_spec;
extern PyType_Spec dcrf_py_operator_spec;
extern PyType_Spec dcrf_py_lattices_spec;
extern PyType_Spec dcrf_py_unrolled_spec;
extern PyType_Spec dcrf_py_scribbles_spec;

#endif
