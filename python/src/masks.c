/* dcrf._core.soft_mask, and Model.mask_energies: from a rough label map to energies and kernels. */
#include "model.h"

/* mask_energies(image, map, confidence or None, energies out): the map is int32 (..., 1), negative
 * where unknown, the confidence float32 (..., 1), the energies float32 (..., labels). Returns the
 * kernels that go with the energies, (sigma, weight) and (sigma, channel sigma, weight). The model
 * is not changed. */
PyObject *dcrf_py_mask_energies(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    PyObject *image, *map, *confidence, *out;
    Py_buffer buffers[4] = {{0}, {0}, {0}, {0}};
    dcrf_view colours, labels, sure;
    dcrf_mask_info info = {0};
    dcrf_error error;
    dcrf_status status = DCRF_OK;
    float *energies = NULL;
    if (!PyArg_ParseTuple(arguments, "OOOO", &image, &map, &confidence, &out) ||
        dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    const size_t label_count = dcrf_model_labels(self->model);
    const size_t count = dcrf_model_variables(self->model) * label_count;
    if (dcrf_py_view(image, &self->grid, "the image", &buffers[0], &colours) == 0 &&
        dcrf_py_view(map, &self->grid, "the label map", &buffers[1], &labels) == 0 &&
        (confidence == Py_None ||
         dcrf_py_view(confidence, &self->grid, "the confidence", &buffers[3], &sure) == 0))
        energies = dcrf_py_contiguous(out, "the energies", 'f', count, 1, &buffers[2]);
    if (energies) {
        Py_BEGIN_ALLOW_THREADS status = dcrf_mask_energies(
            &self->grid, &colours, &labels, label_count, confidence == Py_None ? NULL : &sure, NULL,
            self->workspace, energies, count, &info, &error);
        Py_END_ALLOW_THREADS
    }
    for (size_t i = 0; i < 4; i++)
        PyBuffer_Release(&buffers[i]);
    dcrf_py_leave(&self->is_busy);
    if (!energies || status < 0)
        return energies ? dcrf_py_raise(&error) : NULL;
    return Py_BuildValue("((dd)(ddd))", info.spatial_sigma, info.spatial_weight,
                         info.bilateral_sigma, info.bilateral_channel_sigma, info.bilateral_weight);
}

/* soft_mask(numbers, int32, in rows of `width`): if they are a soft mask or a trimap, they become
 * its labels, -1 where unknown. Returns whether they are. */
PyObject *dcrf_py_soft_mask(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *array;
    Py_ssize_t width, rows;
    Py_buffer buffer = {0};
    dcrf_mask_traits traits = {0};
    if (!PyArg_ParseTuple(arguments, "Onn", &array, &width, &rows))
        return NULL;
    const size_t count = (size_t)width * (size_t)rows;
    int32_t *numbers = dcrf_py_contiguous(array, "the mask", 'i', count, 1, &buffer);
    if (!numbers)
        return NULL;
    dcrf_mask_inspect(&traits, numbers, (size_t)width, (size_t)rows);
    const dcrf_mask_kind kind = dcrf_mask_kind_of(&traits);
    const int is_soft = kind == DCRF_MASK_SOFT || kind == DCRF_MASK_TRIMAP;
    for (size_t i = 0; i < count && is_soft; i++)
        numbers[i] = dcrf_mask_label(kind, numbers[i]);
    PyBuffer_Release(&buffer);
    return PyBool_FromLong(is_soft);
}
