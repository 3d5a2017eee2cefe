/* Devices: workspaces on them, and a list of those available. */
#include "module.h"

dcrf_status dcrf_py_workspace(dcrf_workspace **workspace, size_t threads, const char *device,
                              dcrf_error *error) {
    dcrf_status status = dcrf_workspace_new(workspace, threads, error);
    if (status == DCRF_OK)
        status = dcrf_workspace_set_device(*workspace, device, error);
    if (status < 0)
        dcrf_workspace_free(workspace);
    return status;
}

static PyObject *describe(size_t index) {
    dcrf_device_info info;
    dcrf_error error;
    if (dcrf_device_describe(index, &info, &error) < 0)
        return dcrf_py_raise(&error);
    return Py_BuildValue("(ssnn)", info.name, info.description, (Py_ssize_t)info.memory_bytes,
                         (Py_ssize_t)info.free_bytes);
}

PyObject *dcrf_py_devices(PyObject *module, PyObject *arguments) {
    size_t count;
    dcrf_error error;
    dcrf_status status;
    (void)module, (void)arguments;
    Py_BEGIN_ALLOW_THREADS status = dcrf_device_count(&count, &error);
    Py_END_ALLOW_THREADS if (status < 0) return dcrf_py_raise(&error);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *found = describe(i);
        if (!found || PyList_Append(list, found) < 0)
            Py_CLEAR(list);
        Py_XDECREF(found);
    }
    return list;
}
