/* dcrf._core.superpixels: regions of an image. */
#include "module.h"

/* The number of pixels of a grid: it is that of an existing image, so this does not overflow. */
static size_t image_elements(const dcrf_grid *grid) {
    return grid->size[0] * grid->size[1] * grid->size[2];
}

/* superpixels(shape, spacing, image, method, region_size_px, compactness, spatial_bandwidth_px,
 * range_bandwidth, min_region_px, threads, regions out): negative numbers mean the default.
 * Returns the number of regions. */
PyObject *dcrf_py_superpixels(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *shape, *spacing, *image, *array;
    double size, compactness, spatial, range;
    Py_ssize_t least, threads;
    const char *name;
    dcrf_superpixel_settings settings;
    dcrf_grid grid;
    Py_buffer image_buffer, buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_workspace *workspace = NULL;
    dcrf_status status;
    size_t count = 0;
    if (!PyArg_ParseTuple(arguments, "OOOsddddnnO", &shape, &spacing, &image, &name, &size,
                          &compactness, &spatial, &range, &least, &threads, &array))
        return NULL;
    dcrf_superpixel_settings_defaults(&settings);
    if (!dcrf_superpixel_method_from_name(name, &settings.method))
        return PyErr_Format(PyExc_ValueError, "method is '%s'; it must be 'slic' or 'meanshift'",
                            name);
    if (dcrf_py_grid(shape, spacing, &grid) < 0 ||
        dcrf_py_view(image, &grid, "the image", &image_buffer, &view) < 0)
        return NULL;
    int32_t *regions =
        dcrf_py_contiguous(array, "the regions", 'i', image_elements(&grid), 1, &buffer);
    if (!regions) {
        PyBuffer_Release(&image_buffer);
        return NULL;
    }
    settings.region_size_px = size < 0 ? settings.region_size_px : size;
    settings.compactness = compactness < 0 ? settings.compactness : compactness;
    settings.spatial_bandwidth_px = spatial < 0 ? settings.spatial_bandwidth_px : spatial;
    settings.range_bandwidth = range < 0 ? settings.range_bandwidth : range;
    settings.min_region_px = least < 0 ? settings.min_region_px : (size_t)least;
    Py_BEGIN_ALLOW_THREADS status =
        dcrf_workspace_new(&workspace, threads < 0 ? 0 : (size_t)threads, &error);
    if (status == DCRF_OK)
        status = dcrf_superpixels(&grid, &view, &settings, workspace, regions,
                                  image_elements(&grid), &count, &error);
    dcrf_workspace_free(&workspace);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    PyBuffer_Release(&image_buffer);
    return status < 0 ? dcrf_py_raise(&error) : PyLong_FromSize_t(count);
}
