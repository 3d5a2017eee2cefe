/* dcrf._core.Model: energies, solutions, certificates. */
#include "model.h"
#include "results.h"
#include "settings.h"

#include <dcrf/grid.h>
#include <math.h>
#include <string.h>

PyObject *dcrf_py_energy(PyObject *object, PyObject *array) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    Py_buffer buffer;
    dcrf_energy value;
    dcrf_error error;
    dcrf_status status;
    if (dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    const uint16_t *labels = dcrf_py_contiguous(array, "the labelling", 'H',
                                                dcrf_model_variables(self->model), 0, &buffer);
    if (!labels)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status = dcrf_py_need_plan(self, &error);
    if (status == DCRF_OK)
        status = dcrf_energy_at_most(self->plan, self->workspace, labels, &value, NULL, 0, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    dcrf_py_leave(&self->is_busy);
    return status < 0 ? dcrf_py_raise(&error) : dcrf_py_energy_dictionary(&value);
}

struct run {
    dcrf_settings settings;
    dcrf_changes changes;
    uint16_t *labels;      /* out */
    float *marginals;      /* out; NULL: not requested */
    const uint16_t *start; /* NULL: none */
    uint8_t *possible;     /* out; NULL: no proof is requested */
    int certificate;       /* whether to make one */
    int judge_strength;    /* whether to judge if it is too strong */
    dcrf_solver *solver;
};

/* Called without the interpreter lock. */
static dcrf_status run_solver(struct dcrf_py_model *self, struct run *run, dcrf_error *error) {
    dcrf_status status = dcrf_py_need_plan(self, error);
    if (status == DCRF_OK)
        status = dcrf_solver_new(&run->solver, self->plan, self->workspace, &run->settings, error);
    if (status == DCRF_OK && run->start)
        status = dcrf_solver_start_labels(run->solver, run->start, error);
    if (status == DCRF_OK)
        status = dcrf_solver_run(run->solver, error);
    if (status < 0)
        return status;
    dcrf_solver_labels(run->solver, run->labels, dcrf_model_variables(self->model), NULL);
    if (run->possible) { /* without time for a proof, all are possible */
        const uint8_t *possible = dcrf_proof_possible(dcrf_solver_proof(run->solver));
        const size_t size = dcrf_model_variables(self->model) * dcrf_model_labels(self->model);
        if (possible)
            memcpy(run->possible, possible, size);
        else
            memset(run->possible, 1, size);
    }
    if (run->settings.cancel(run->settings.cancel_user))
        return DCRF_OK; /* the rest is no longer needed */
    status = DCRF_OK;
    dcrf_measured_strength measured;
    const size_t stride = dcrf_padded(dcrf_model_labels(self->model));
    if (run->judge_strength)
        status = dcrf_model_measure_strength(self->model, self->workspace, &measured, error);
    if (status == DCRF_OK)
        status =
            dcrf_changes_of(self->model, NULL, run->labels, run->judge_strength ? &measured : NULL,
                            NULL, NULL, 0, &run->changes, error);
    if (status == DCRF_OK && run->marginals)
        status = dcrf_solver_marginals(run->solver, run->marginals,
                                       dcrf_model_variables(self->model) * stride, stride, error);
    return status;
}

/* solve(method, settings, labels out, marginals out or None, start or None, progress or None,
 * possible labels out or None, whether to make a certificate, whether to judge the strength, a
 * callable that returns whether to give up, or None) */
PyObject *dcrf_py_solve(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    const char *name;
    PyObject *settings, *labels, *marginals, *start, *callable, *result = NULL;
    PyObject *possible = Py_None, *is_unwanted = Py_None;
    Py_buffer buffer[4] = {{0}, {0}, {0}, {0}};
    struct run run = {.judge_strength = 1};
    dcrf_method method;
    dcrf_error error;
    if (!PyArg_ParseTuple(arguments, "sOOOOO|OppO", &name, &settings, &labels, &marginals, &start,
                          &callable, &possible, &run.certificate, &run.judge_strength,
                          &is_unwanted))
        return NULL;
    if (!dcrf_method_from_name(name, &method))
        return PyErr_Format(PyExc_ValueError, "method is '%s'; it must be 'mf', 'qp' or 'lp'",
                            name);
    dcrf_settings_defaults(&run.settings, method);
    if (possible != Py_None)
        run.settings.proof = run.certificate ? DCRF_PROVE_CERTIFICATE : DCRF_PROVE_VARIABLES;
    if (dcrf_py_settings(settings, &run.settings) < 0 ||
        dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    const size_t n = dcrf_model_variables(self->model);
    const size_t row = dcrf_padded(dcrf_model_labels(self->model));
    run.labels = dcrf_py_contiguous(labels, "the labelling", 'H', n, 1, &buffer[0]);
    if (run.labels && marginals != Py_None)
        run.marginals = dcrf_py_contiguous(marginals, "the marginals", 'f', n * row, 1, &buffer[1]);
    if (run.labels && start != Py_None)
        run.start = dcrf_py_contiguous(start, "the start", 'H', n, 0, &buffer[2]);
    if (run.labels && possible != Py_None)
        run.possible = dcrf_py_contiguous(possible, "the possible labels", 'B',
                                          n * dcrf_model_labels(self->model), 1, &buffer[3]);
    if (!PyErr_Occurred()) {
        struct dcrf_py_progress progress = {.callable = callable, .is_unwanted = is_unwanted};
        run.settings.progress = dcrf_py_progress;
        run.settings.cancel = dcrf_py_cancel;
        run.settings.progress_user = run.settings.cancel_user = &progress;
        progress.thread = PyEval_SaveThread();
        const dcrf_status status = run_solver(self, &run, &error);
        PyEval_RestoreThread(progress.thread);
        if (!progress.has_failed)
            result = status < 0 ? dcrf_py_raise(&error)
                                : dcrf_py_info_dictionary(run.solver, n, &run.changes);
        dcrf_solver_free(&run.solver);
    }
    for (size_t i = 0; i < 4; i++)
        PyBuffer_Release(&buffer[i]);
    dcrf_py_leave(&self->is_busy);
    return result;
}

/* verify(certificate, labels or None, possible labels out) */
PyObject *dcrf_py_verify(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    PyObject *array, *possible_array;
    Py_buffer bytes, buffer[2] = {{0}, {0}};
    dcrf_verification found;
    dcrf_error error;
    dcrf_status status = DCRF_OK;
    if (!PyArg_ParseTuple(arguments, "y*OO", &bytes, &array, &possible_array))
        return NULL;
    if (dcrf_py_enter(&self->is_busy, self->model != NULL) < 0) {
        PyBuffer_Release(&bytes);
        return NULL;
    }
    const size_t n = dcrf_model_variables(self->model);
    const uint16_t *labels = NULL;
    const size_t cells = n * dcrf_model_labels(self->model);
    uint8_t *possible =
        dcrf_py_contiguous(possible_array, "the possible labels", 'B', cells, 1, &buffer[0]);
    if (possible && array != Py_None)
        labels = dcrf_py_contiguous(array, "the labelling", 'H', n, 0, &buffer[1]);
    const int is_good = !PyErr_Occurred();
    if (is_good) {
        Py_BEGIN_ALLOW_THREADS status =
            dcrf_verify_certificate(bytes.buf, (size_t)bytes.len, self->model, self->workspace,
                                    labels, possible, cells, &found, &error);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&buffer[0]);
    PyBuffer_Release(&buffer[1]);
    PyBuffer_Release(&bytes);
    dcrf_py_leave(&self->is_busy);
    if (!is_good)
        return NULL;
    if (status < 0)
        return dcrf_py_raise(&error);
    return dcrf_py_verification_dictionary(&found);
}

/* certify(labels, time_limit_s, gap, iterations, progress or None); negative: the default */
PyObject *dcrf_py_certify(PyObject *object, PyObject *arguments) {
    struct dcrf_py_model *self = (struct dcrf_py_model *)object;
    PyObject *array, *callable;
    double time_limit_s, gap;
    Py_ssize_t iterations;
    Py_buffer buffer;
    dcrf_certify_settings settings;
    dcrf_certify_info certificate;
    dcrf_error error;
    if (!PyArg_ParseTuple(arguments, "OddnO", &array, &time_limit_s, &gap, &iterations, &callable))
        return NULL;
    dcrf_certify_settings_defaults(&settings);
    if (!(time_limit_s < 0))
        settings.time_limit_s = time_limit_s;
    if (!(gap < 0))
        settings.gap = gap;
    if (iterations >= 0)
        settings.iterations = (size_t)iterations;
    if (dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    const uint16_t *labels = dcrf_py_contiguous(array, "the labelling", 'H',
                                                dcrf_model_variables(self->model), 0, &buffer);
    if (!labels)
        return dcrf_py_abandon(&self->is_busy);
    struct dcrf_py_progress progress = {.callable = callable};
    settings.progress = dcrf_py_progress;
    settings.cancel = dcrf_py_cancel;
    settings.progress_user = settings.cancel_user = &progress;
    progress.thread = PyEval_SaveThread();
    dcrf_status status = dcrf_py_need_plan(self, &error);
    if (status == DCRF_OK)
        status = dcrf_certify(self->plan, self->workspace, labels, &settings, &certificate, &error);
    PyEval_RestoreThread(progress.thread);
    PyBuffer_Release(&buffer);
    dcrf_py_leave(&self->is_busy);
    if (progress.has_failed)
        return NULL;
    if (status < 0)
        return dcrf_py_raise(&error);
    return dcrf_py_certificate_dictionary(&certificate);
}
