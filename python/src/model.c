/* dcrf._core.Model: a model with its plan and its threads. */
#include "module.h"
#include "settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    PyObject_HEAD dcrf_model *model;
    dcrf_plan *plan; /* NULL: to be made */
    dcrf_operator_kind kind;
    dcrf_workspace *workspace;
    dcrf_grid grid;
    int is_busy;    /* a call runs without the interpreter lock */
    size_t holders; /* of the plan: the model must not be changed */
} model_object;

static int init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    model_object *self = (model_object *)object;
    static char *names[] = {"shape", "spacing", "labels", "operator", "threads", NULL};
    PyObject *shape, *spacing;
    Py_ssize_t labels, threads = 0;
    int kind = DCRF_OPERATOR_FAST;
    dcrf_error error;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOn|in", names, &shape, &spacing,
                                     &labels, &kind, &threads))
        return -1;
    if (self->model) {
        PyErr_SetString(PyExc_RuntimeError, "the object is initialized already");
        return -1;
    }
    if (labels < 0 || threads < 0) {
        PyErr_SetString(PyExc_ValueError, "a number of labels or threads is negative");
        return -1;
    }
    if (dcrf_py_grid(shape, spacing, &self->grid) < 0)
        return -1;
    self->kind = (dcrf_operator_kind)kind;
    if (dcrf_model_new(&self->model, &self->grid, (size_t)labels, &error) < 0 ||
        dcrf_workspace_new(&self->workspace, (size_t)threads, &error) < 0) {
        dcrf_model_free(&self->model);
        dcrf_py_raise(&error);
        return -1;
    }
    return 0;
}

static void dealloc(PyObject *object) {
    model_object *self = (model_object *)object;
    dcrf_plan_free(&self->plan);
    dcrf_model_free(&self->model);
    dcrf_workspace_free(&self->workspace);
    dcrf_py_free_object(object);
}

/* Enter a call that changes the model. */
static int enter_to_change(model_object *self) {
    if (self->holders > 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a run whose derivatives are still wanted holds this model");
        return -1;
    }
    return dcrf_py_enter(&self->is_busy, self->model != NULL);
}

/* ---- the model ------------------------------------------------------------------------------ */

static PyObject *set_unary(PyObject *object, PyObject *array) {
    model_object *self = (model_object *)object;
    Py_buffer buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_status status;
    if (enter_to_change(self) < 0)
        return NULL;
    if (dcrf_py_view(array, &self->grid, "the unary array", &buffer, &view) < 0)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status = dcrf_model_set_unary(self->model, &view, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

/* add_kernel(sigmas, channels, channel_sigmas, weight, is_symmetric): see kernel.c */
static PyObject *add_kernel(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    PyObject *sigmas, *channels, *channel_sigmas;
    Py_buffer buffer;
    dcrf_kernel kernel;
    dcrf_error error;
    dcrf_status status;
    double weight;
    int is_symmetric;
    if (!PyArg_ParseTuple(arguments, "OOOdp", &sigmas, &channels, &channel_sigmas, &weight,
                          &is_symmetric) ||
        enter_to_change(self) < 0)
        return NULL;
    if (dcrf_py_kernel(sigmas, channels, channel_sigmas, &self->grid, &kernel, &buffer) < 0)
        return dcrf_py_abandon(&self->is_busy);
    kernel.weight = weight;
    kernel.normalization = is_symmetric ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE;
    Py_BEGIN_ALLOW_THREADS status = dcrf_model_add_kernel(self->model, &kernel, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    if (status == DCRF_OK)
        dcrf_plan_free(&self->plan);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *set_weight(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    Py_ssize_t kernel;
    double weight;
    dcrf_error error;
    if (!PyArg_ParseTuple(arguments, "nd", &kernel, &weight) || enter_to_change(self) < 0)
        return NULL;
    return dcrf_py_finish(
        &self->is_busy, dcrf_model_set_weight(self->model, (size_t)kernel, weight, &error), &error);
}

static PyObject *apply_temperature(PyObject *object, PyObject *temperature) {
    model_object *self = (model_object *)object;
    dcrf_error error;
    const double value = PyFloat_AsDouble(temperature);
    if (PyErr_Occurred() || dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    return dcrf_py_finish(&self->is_busy, dcrf_model_apply_temperature(self->model, value, &error),
                          &error);
}

/* What strength suits the unary energies, as a dictionary. */
static PyObject *measure_strength(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    dcrf_measured_strength measured;
    dcrf_error error;
    dcrf_status status;
    (void)arguments;
    if (dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status =
        dcrf_model_measure_strength(self->model, self->workspace, &measured, &error);
    Py_END_ALLOW_THREADS dcrf_py_leave(&self->is_busy);
    if (status < 0)
        return dcrf_py_raise(&error);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:n}", "strength", measured.strength, "rho",
                         measured.rho, "temperature", measured.temperature, "margin",
                         measured.margin, "pairs", (Py_ssize_t)measured.pairs);
}

/* The strength in force, and the gamma of cliques that goes with it. */
static PyObject *strength(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    (void)arguments;
    if (dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    const double value = dcrf_model_strength(self->model), gamma = dcrf_default_gamma(self->model);
    dcrf_py_leave(&self->is_busy);
    return Py_BuildValue("dd", value, gamma);
}

/* set_compatibility(kernel, None or contiguous float32 of labels or labels x labels) */
static PyObject *set_compatibility(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    PyObject *array;
    Py_ssize_t kernel;
    Py_buffer buffer = {0};
    dcrf_error error;
    dcrf_compatibility compatibility = DCRF_COMPATIBILITY_POTTS;
    const float *values = NULL;
    if (!PyArg_ParseTuple(arguments, "nO", &kernel, &array) || enter_to_change(self) < 0)
        return NULL;
    if (array != Py_None && !(values = dcrf_py_compatibility(array, dcrf_model_labels(self->model),
                                                             &compatibility, &buffer)))
        return dcrf_py_abandon(&self->is_busy);
    const dcrf_status status =
        dcrf_model_set_compatibility(self->model, (size_t)kernel, compatibility, values, &error);
    PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

/* set_cliques(map or None, cost) */
static PyObject *set_cliques(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    PyObject *map;
    double cost;
    Py_buffer buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_status status;
    if (!PyArg_ParseTuple(arguments, "Od", &map, &cost) || enter_to_change(self) < 0)
        return NULL;
    if (map == Py_None) {
        const size_t none = 0;
        return dcrf_py_finish(&self->is_busy,
                              dcrf_model_set_cliques(self->model, 0, &none, NULL, NULL, &error),
                              &error);
    }
    if (dcrf_py_view(map, &self->grid, "the clique map", &buffer, &view) < 0)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status = dcrf_model_set_clique_map(self->model, &view, cost, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

/* set_clique_costs(image, gamma, eta) */
static PyObject *set_clique_costs(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    PyObject *image;
    double gamma, eta;
    Py_buffer buffer;
    dcrf_view view;
    dcrf_error error;
    dcrf_status status;
    if (!PyArg_ParseTuple(arguments, "Odd", &image, &gamma, &eta) || enter_to_change(self) < 0)
        return NULL;
    if (dcrf_py_view(image, &self->grid, "the image", &buffer, &view) < 0)
        return dcrf_py_abandon(&self->is_busy);
    Py_BEGIN_ALLOW_THREADS status =
        dcrf_model_set_clique_costs(self->model, &view, gamma, eta, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    return dcrf_py_finish(&self->is_busy, status, &error);
}

static PyObject *counts(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    (void)arguments;
    if (dcrf_py_enter(&self->is_busy, self->model != NULL) < 0)
        return NULL;
    dcrf_py_leave(&self->is_busy);
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n}", "variables",
                         (Py_ssize_t)dcrf_model_variables(self->model), "labels",
                         (Py_ssize_t)dcrf_model_labels(self->model), "kernels",
                         (Py_ssize_t)dcrf_model_kernels(self->model), "cliques",
                         (Py_ssize_t)dcrf_model_cliques(self->model), "threads",
                         (Py_ssize_t)dcrf_workspace_threads(self->workspace));
}

/* ---- energies, solutions, certificates ------------------------------------------------------ */

/* The plan, made where there is none; without the interpreter lock. */
static dcrf_status need_plan(model_object *self, dcrf_error *error) {
    if (self->plan)
        return DCRF_OK;
    return dcrf_plan_new(&self->plan, self->model, self->kind, self->workspace, error);
}

static PyObject *energy_dictionary(const dcrf_energy *energy) {
    return Py_BuildValue("{s:d,s:d,s:d,s:d}", "total", energy->total, "unary", energy->unary,
                         "pairwise", energy->pairwise, "cliques", energy->cliques);
}

static PyObject *energy(PyObject *object, PyObject *array) {
    model_object *self = (model_object *)object;
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
    Py_BEGIN_ALLOW_THREADS status = need_plan(self, &error);
    if (status == DCRF_OK)
        status = dcrf_energy_of_labels(self->plan, self->workspace, labels, &value, NULL, &error);
    Py_END_ALLOW_THREADS PyBuffer_Release(&buffer);
    dcrf_py_leave(&self->is_busy);
    return status < 0 ? dcrf_py_raise(&error) : energy_dictionary(&value);
}

static PyObject *trace_list(const dcrf_solver *solver) {
    size_t count;
    const dcrf_moment *moments = dcrf_solver_trace(solver, &count);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const dcrf_moment *moment = &moments[i];
        PyObject *row = Py_BuildValue("(ndddd)", (Py_ssize_t)moment->iteration, moment->time_s,
                                      moment->objective, moment->best_energy, moment->lower_bound);
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *warning_list(unsigned warnings) {
    static const dcrf_warning all[] = {DCRF_WARNING_CONSTANT, DCRF_WARNING_LABEL_GONE,
                                       DCRF_WARNING_TOO_STRONG};
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sizeof all / sizeof all[0]; i++) {
        if (!(warnings & (unsigned)all[i]))
            continue;
        PyObject *text = PyUnicode_FromString(dcrf_warning_text(all[i]));
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

/* What the labelling makes of the unary minimum. */
static PyObject *changes_dictionary(const dcrf_changes *changes) {
    PyObject *warnings = warning_list(changes->warnings);
    if (!warnings)
        return NULL;
    return Py_BuildValue(
        "{s:n,s:n,s:n,s:n,s:n,s:d,s:N}", "pixels_changed", (Py_ssize_t)changes->changed,
        "labels_before", (Py_ssize_t)changes->labels_before, "labels_after",
        (Py_ssize_t)changes->labels_after, "labels_vanished", (Py_ssize_t)changes->labels_vanished,
        "largest_label", (Py_ssize_t)changes->largest_label, "largest_share",
        changes->largest_share, "warnings", warnings);
}

static PyObject *info_dictionary(const dcrf_solver *solver, const dcrf_changes *changed) {
    dcrf_solver_info info;
    dcrf_solver_get_info(solver, &info);
    PyObject *energies = energy_dictionary(&info.energy);
    PyObject *trace = trace_list(solver), *changes = changes_dictionary(changed);
    PyObject *dictionary =
        energies && trace && changes
            ? Py_BuildValue("{s:s,s:n,s:s,s:O,s:O,s:d,s:d,s:d,s:d,s:O,s:O,s:{s:d,s:d,s:d,s:d,s:d}}",
                            "method", dcrf_method_name(info.method), "iterations",
                            (Py_ssize_t)info.iterations, "stop", dcrf_status_name(info.stop),
                            "changes", changes, "energies", energies, "objective", info.objective,
                            "lower_bound", info.lower_bound, "relative_gap", info.relative_gap,
                            "unpolished_energy", info.unpolished.total, "is_constant",
                            info.is_constant ? Py_True : Py_False, "trace", trace, "seconds",
                            "start", info.start_s, "solve", info.solve_s, "evaluate",
                            info.evaluate_s, "round", info.round_s, "polish", info.polish_s)
            : NULL;
    Py_XDECREF(energies);
    Py_XDECREF(trace);
    Py_XDECREF(changes);
    return dictionary;
}

struct run {
    dcrf_settings settings;
    dcrf_changes changes;
    uint16_t *labels;      /* out */
    float *marginals;      /* out; NULL: not wanted */
    const uint16_t *start; /* NULL: none */
    uint8_t *possible;     /* out; NULL: no proof is wanted */
    int certificate;       /* is one wanted? */
    dcrf_solver *solver;
    dcrf_proof *proof;
};

/* The same: what is proven about single variables. The proof's labelling is the solver's or a
 * better one. */
static dcrf_status prove(model_object *self, struct run *run, dcrf_error *error) {
    dcrf_proof_settings settings;
    dcrf_proof_settings_defaults(&settings);
    settings.time_limit_s = run->settings.time_limit_s;
    settings.certificate = run->certificate;
    const dcrf_status status = dcrf_proof_new(&run->proof, run->solver, &settings, error);
    if (status < 0)
        return status;
    memcpy(run->possible, dcrf_proof_possible(run->proof),
           dcrf_model_variables(self->model) * dcrf_model_labels(self->model));
    dcrf_proof_labels(run->proof, run->labels);
    return DCRF_OK;
}

/* Without the interpreter lock. */
static dcrf_status run_solver(model_object *self, struct run *run, dcrf_error *error) {
    dcrf_status status = need_plan(self, error);
    if (status == DCRF_OK)
        status = dcrf_solver_new(&run->solver, self->plan, self->workspace, &run->settings, error);
    if (status == DCRF_OK && run->start)
        status = dcrf_solver_start_labels(run->solver, run->start, error);
    if (status == DCRF_OK)
        status = dcrf_solver_run(run->solver, error);
    if (status < 0)
        return status;
    dcrf_solver_labels(run->solver, run->labels);
    if (run->possible && (status = prove(self, run, error)) < 0)
        return status;
    dcrf_measured_strength measured;
    status = dcrf_model_measure_strength(self->model, self->workspace, &measured, error);
    if (status == DCRF_OK)
        status =
            dcrf_changes_of(self->model, run->labels, &measured, NULL, NULL, &run->changes, error);
    if (status == DCRF_OK && run->marginals)
        status = dcrf_solver_marginals(run->solver, run->marginals,
                                       dcrf_padded(dcrf_model_labels(self->model)), error);
    return status;
}

/* The energy, the bound and the gap after a proof, into what the solver says; then its certificate.
 */
static int add_proof(PyObject *dictionary, const struct run *run) {
    dcrf_proof_info info;
    size_t size;
    const uint8_t *bytes = dcrf_proof_certificate(run->proof, &size);
    dcrf_proof_get_info(run->proof, &info);
    PyObject *certificate = bytes ? PyBytes_FromStringAndSize((const char *)bytes, (Py_ssize_t)size)
                                  : Py_NewRef(Py_None);
    PyObject *more = Py_BuildValue("{s:N,s:d,s:d,s:N}", "energies", energy_dictionary(&info.energy),
                                   "lower_bound", info.lower_bound, "relative_gap",
                                   info.relative_gap, "certificate", certificate);
    const int done = more ? PyDict_Update(dictionary, more) : -1;
    Py_XDECREF(more);
    return done;
}

/* solve(method, settings, labels out, marginals out or None, start or None, progress or None,
 * possible labels out or None, is a certificate wanted?) */
static PyObject *solve(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    const char *name;
    PyObject *settings, *labels, *marginals, *start, *callable, *result = NULL;
    PyObject *possible = Py_None;
    Py_buffer buffer[4] = {{0}, {0}, {0}, {0}};
    struct run run = {.solver = NULL};
    dcrf_method method;
    dcrf_error error;
    if (!PyArg_ParseTuple(arguments, "sOOOOO|Op", &name, &settings, &labels, &marginals, &start,
                          &callable, &possible, &run.certificate))
        return NULL;
    if (!dcrf_method_from_name(name, &method))
        return PyErr_Format(PyExc_ValueError, "method is '%s'; it must be 'mf', 'qp' or 'lp'",
                            name);
    dcrf_settings_defaults(&run.settings, method);
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
        struct dcrf_py_progress progress = {.callable = callable};
        run.settings.progress = dcrf_py_progress;
        run.settings.cancel = dcrf_py_cancel;
        run.settings.progress_user = run.settings.cancel_user = &progress;
        progress.thread = PyEval_SaveThread();
        const dcrf_status status = run_solver(self, &run, &error);
        PyEval_RestoreThread(progress.thread);
        if (!progress.has_failed)
            result = status < 0 ? dcrf_py_raise(&error) : info_dictionary(run.solver, &run.changes);
        if (result && run.proof && add_proof(result, &run) < 0)
            Py_CLEAR(result);
        dcrf_proof_free(&run.proof);
        dcrf_solver_free(&run.solver);
    }
    for (size_t i = 0; i < 4; i++)
        PyBuffer_Release(&buffer[i]);
    dcrf_py_leave(&self->is_busy);
    return result;
}

/* verify(certificate, labels or None, possible labels out) */
static PyObject *verify(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
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
    uint8_t *possible = dcrf_py_contiguous(possible_array, "the possible labels", 'B',
                                           n * dcrf_model_labels(self->model), 1, &buffer[0]);
    if (possible && array != Py_None)
        labels = dcrf_py_contiguous(array, "the labelling", 'H', n, 0, &buffer[1]);
    const int is_good = !PyErr_Occurred();
    if (is_good) {
        Py_BEGIN_ALLOW_THREADS status =
            dcrf_verify_certificate(bytes.buf, (size_t)bytes.len, self->model, self->workspace,
                                    labels, possible, &found, &error);
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
    return Py_BuildValue("{s:O,s:d,s:d,s:d,s:d,s:d,s:n,s:n,s:d}", "is_exact",
                         found.is_exact ? Py_True : Py_False, "energy", found.energy, "lower_bound",
                         found.lower_bound, "relative_gap", found.relative_gap, "labels_energy",
                         found.labels_energy, "labels_gap", found.labels_gap, "right",
                         (Py_ssize_t)found.right, "wrong", (Py_ssize_t)found.wrong, "seconds",
                         found.seconds);
}

/* certify(labels, time_limit_s, gap, iterations, progress or None); negative: the default */
static PyObject *certify(PyObject *object, PyObject *arguments) {
    model_object *self = (model_object *)object;
    PyObject *array, *callable;
    double time_limit_s, gap;
    Py_ssize_t iterations;
    Py_buffer buffer;
    dcrf_certify_settings settings;
    dcrf_certificate certificate;
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
    dcrf_status status = need_plan(self, &error);
    if (status == DCRF_OK)
        status = dcrf_certify(self->plan, self->workspace, labels, &settings, &certificate, &error);
    PyEval_RestoreThread(progress.thread);
    PyBuffer_Release(&buffer);
    dcrf_py_leave(&self->is_busy);
    if (progress.has_failed)
        return NULL;
    if (status < 0)
        return dcrf_py_raise(&error);
    PyObject *energies = energy_dictionary(&certificate.energy);
    if (!energies)
        return NULL;
    return Py_BuildValue(
        "{s:N,s:d,s:d,s:d,s:O,s:n,s:s,s:d,s:n,s:n}", "energies", energies, "lower_bound",
        certificate.lower_bound, "relative_gap", certificate.relative_gap, "best_energy",
        certificate.best_energy, "is_constant", certificate.is_constant ? Py_True : Py_False,
        "iterations", (Py_ssize_t)certificate.iterations, "stop",
        dcrf_status_name(certificate.stop), "seconds", certificate.seconds, "right",
        (Py_ssize_t)certificate.right, "wrong", (Py_ssize_t)certificate.wrong);
}

/* ---- for gradient.c ------------------------------------------------------------------------- */

int dcrf_py_model_enter(PyObject *object) {
    model_object *self = (model_object *)object;
    return dcrf_py_enter(&self->is_busy, self->model != NULL);
}

void dcrf_py_model_leave(PyObject *object) {
    dcrf_py_leave(&((model_object *)object)->is_busy);
}

int dcrf_py_model_hold(PyObject *object, const dcrf_plan **plan, dcrf_workspace **workspace) {
    model_object *self = (model_object *)object;
    dcrf_error error;
    dcrf_status status;
    if (PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) != (void *)dealloc) {
        PyErr_SetString(PyExc_TypeError, "a dcrf._core.Model is needed");
        return -1;
    }
    if (dcrf_py_model_enter(object) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS status = need_plan(self, &error);
    Py_END_ALLOW_THREADS dcrf_py_model_leave(object);
    if (status < 0) {
        dcrf_py_raise(&error);
        return -1;
    }
    self->holders++;
    *plan = self->plan;
    *workspace = self->workspace;
    return 0;
}

void dcrf_py_model_release(PyObject *object) {
    ((model_object *)object)->holders--;
}

static PyMethodDef methods[] = {
    {"set_unary", set_unary, METH_O, NULL},
    {"add_kernel", add_kernel, METH_VARARGS, NULL},
    {"set_weight", set_weight, METH_VARARGS, NULL},
    {"apply_temperature", apply_temperature, METH_O, NULL},
    {"measure_strength", measure_strength, METH_NOARGS, NULL},
    {"strength", strength, METH_NOARGS, NULL},
    {"set_compatibility", set_compatibility, METH_VARARGS, NULL},
    {"set_cliques", set_cliques, METH_VARARGS, NULL},
    {"set_clique_costs", set_clique_costs, METH_VARARGS, NULL},
    {"counts", counts, METH_NOARGS, NULL},
    {"energy", energy, METH_O, NULL},
    {"solve", solve, METH_VARARGS, NULL},
    {"certify", certify, METH_VARARGS, NULL},
    {"verify", verify, METH_VARARGS, NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Model(shape, spacing, labels, operator=0, threads=0)"},
    {0},
};

PyType_Spec dcrf_py_model_spec = {.name = "dcrf._core.Model",
                                  .basicsize = sizeof(model_object),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                                  .slots = slots};
