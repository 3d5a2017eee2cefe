#include "settings.h"

#include <stddef.h>
#include <string.h>

enum kind { SIZE, DOUBLE, FLAG, SEED, SCHEDULE };

static const struct field {
    const char *name;
    enum kind kind;
    size_t offset;
} fields[] = {
    {"iterations", SIZE, offsetof(dcrf_settings, iterations)},
    {"time_limit_s", DOUBLE, offsetof(dcrf_settings, time_limit_s)},
    {"gap", DOUBLE, offsetof(dcrf_settings, gap)},
    {"stationarity", DOUBLE, offsetof(dcrf_settings, stationarity)},
    {"damping", DOUBLE, offsetof(dcrf_settings, damping)},
    {"evaluate_every", SIZE, offsetof(dcrf_settings, evaluate_every)},
    {"rounding_draws", SIZE, offsetof(dcrf_settings, rounding_draws)},
    {"seed", SEED, offsetof(dcrf_settings, seed)},
    {"polish", FLAG, offsetof(dcrf_settings, polish)},
    {"polish_rounds", SIZE, offsetof(dcrf_settings, polish_rounds)},
    {"trace", FLAG, offsetof(dcrf_settings, trace)},
    {"lp_schedule", SCHEDULE, offsetof(dcrf_settings, lp.schedule)},
};

static int set_schedule(PyObject *value, char *at) {
    dcrf_lp_schedule schedule;
    Py_ssize_t length;
    const char *name = PyUnicode_AsUTF8AndSize(value, &length);
    if (!name)
        return -1;
    if (!dcrf_lp_schedule_from_name(name, &schedule)) {
        PyErr_Format(PyExc_ValueError,
                     "lp_schedule is %R; it must be 'huber', 'proximal' or 'paper'", value);
        return -1;
    }
    const int number = (int)schedule;
    memcpy(at, &number, sizeof number);
    return 0;
}

static int set_field(const struct field *field, PyObject *value, char *at) {
    double number;
    size_t size;
    uint64_t seed;
    int flag;
    switch (field->kind) {
    case DOUBLE:
        number = PyFloat_AsDouble(value);
        memcpy(at, &number, sizeof number);
        break;
    case SIZE:
        size = PyLong_AsSize_t(value);
        memcpy(at, &size, sizeof size);
        break;
    case SEED:
        seed = PyLong_AsUnsignedLongLong(value);
        memcpy(at, &seed, sizeof seed);
        break;
    case SCHEDULE:
        return set_schedule(value, at);
    case FLAG:
        flag = PyObject_IsTrue(value) > 0;
        memcpy(at, &flag, sizeof flag);
        break;
    }
    if (!PyErr_Occurred())
        return 0;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s is %R; it must be %s", field->name, value,
                 field->kind == DOUBLE ? "a number" : "a whole number that is not negative");
    return -1;
}

int dcrf_py_settings(PyObject *dictionary, dcrf_settings *settings) {
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(dictionary, &position, &name, &value)) {
        size_t i = 0;
        while (i < sizeof fields / sizeof fields[0] &&
               PyUnicode_CompareWithASCIIString(name, fields[i].name) != 0)
            i++;
        if (i == sizeof fields / sizeof fields[0]) {
            PyErr_Format(PyExc_TypeError, "there is no setting %R", name);
            return -1;
        }
        if (set_field(&fields[i], value, (char *)settings + fields[i].offset) < 0)
            return -1;
    }
    return 0;
}
