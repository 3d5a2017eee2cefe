/* dcrf._core.unary_fits and unary_energies: from the caller's arrays to energies. */
#include "module.h"

/* unary_fits(shape of the array without labels, shape of the grid) */
PyObject *dcrf_py_unary_fits(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *from_shape, *to_shape;
    dcrf_grid from, to;
    if (!PyArg_ParseTuple(arguments, "OO", &from_shape, &to_shape) ||
        dcrf_py_grid(from_shape, NULL, &from) < 0 || dcrf_py_grid(to_shape, NULL, &to) < 0)
        return NULL;
    return PyBool_FromLong(dcrf_unary_fits(&from, &to));
}

/* unary_energies(array over `from`, labels last; shape of from; kind; shape of to; image over
 * `to` or None; energies out, float32 (to..., labels), or None: only check the numbers against
 * the kind). Returns the kind that was assumed, and why. */
PyObject *dcrf_py_unary_energies(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *array, *from_shape, *to_shape, *image, *out_array, *result = NULL;
    const char *name;
    Py_buffer buffers[3] = {{0}, {0}, {0}};
    dcrf_grid from, to;
    dcrf_view view, guide;
    dcrf_unary_kind claimed, kind = DCRF_UNARY_AUTO;
    dcrf_unary_traits traits;
    dcrf_error error;
    if (!PyArg_ParseTuple(arguments, "OOsOOO", &array, &from_shape, &name, &to_shape, &image,
                          &out_array))
        return NULL;
    if (!dcrf_unary_kind_from_name(name, &claimed))
        return PyErr_Format(PyExc_ValueError, "'%s' is not a kind of unary numbers", name);
    if (dcrf_py_grid(from_shape, NULL, &from) < 0 || dcrf_py_grid(to_shape, NULL, &to) < 0 ||
        dcrf_py_view(array, &from, "the unary array", &buffers[0], &view) < 0)
        return NULL;
    if (image != Py_None && dcrf_py_view(image, &to, "the image", &buffers[1], &guide) < 0)
        goto end;
    float *out = NULL;
    const size_t count = to.size[0] * to.size[1] * to.size[2] * view.channels;
    if (out_array != Py_None &&
        !(out = dcrf_py_contiguous(out_array, "the energies", 'f', count, 1, &buffers[2])))
        goto end;
    dcrf_status status;
    Py_BEGIN_ALLOW_THREADS status = dcrf_unary_inspect(&view, &from, 0, &traits, &error);
    if (status == DCRF_OK)
        status = dcrf_unary_resolve_kind(&traits, claimed, &kind, &error);
    if (status == DCRF_OK && out)
        status =
            dcrf_unary_energies(&view, &from, kind, kind == DCRF_UNARY_ENERGIES ? 1 : traits.scale,
                                &to, image == Py_None ? NULL : &guide, out, count, &error);
    Py_END_ALLOW_THREADS result =
        status < 0 ? dcrf_py_raise(&error)
                   : Py_BuildValue("(ss)", dcrf_unary_kind_name(kind), traits.reason);
end:
    for (size_t i = 0; i < 3; i++)
        PyBuffer_Release(&buffers[i]);
    return result;
}
