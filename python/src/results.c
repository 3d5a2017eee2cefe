/* Results of the library as dictionaries. */
#include "results.h"

#include <math.h>

PyObject *dcrf_py_energy_dictionary(const dcrf_energy *energy) {
    return Py_BuildValue("{s:d,s:d,s:d,s:d}", "total", energy->total, "unary", energy->unary,
                         "pairwise", energy->pairwise, "cliques", energy->cliques);
}

static PyObject *trace_list(const dcrf_solver *solver) {
    size_t count;
    const dcrf_moment *moments = dcrf_solver_trace(solver, &count);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const dcrf_moment *moment = &moments[i];
        PyObject *row = Py_BuildValue("(ndddds)", (Py_ssize_t)moment->iteration, moment->time_s,
                                      moment->objective, moment->best_energy, moment->lower_bound,
                                      dcrf_stage_name(moment->stage));
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *warning_list(unsigned warnings) {
    PyObject *list = PyList_New(0);
    for (unsigned warning = 1; list && warning <= warnings; warning *= 2) {
        if (!(warnings & warning))
            continue;
        PyObject *text = PyUnicode_FromString(dcrf_warning_text((dcrf_warning)warning));
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

/* How the labelling differs from the unary minimum. */
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

/* What the bound leaves out; None if that is nothing. */
static PyObject *left_out_dictionary(const dcrf_left_out *left_out) {
    if (!(left_out->fraction > 0))
        Py_RETURN_NONE;
    return Py_BuildValue("{s:d,s:d,s:d,s:d}", "distance", left_out->distance, "fraction",
                         left_out->fraction, "energy", left_out->energy, "gap", left_out->gap);
}

PyObject *dcrf_py_info_dictionary(const dcrf_solver *solver, size_t variables,
                                  const dcrf_changes *changed) {
    dcrf_solver_info info;
    dcrf_solver_get_info(solver, &info);
    size_t size;
    const uint8_t *certificate = dcrf_proof_certificate(dcrf_solver_proof(solver), &size);
    const double share =
        isnan(info.lower_bound) ? (double)NAN : (double)info.proven / (double)variables;
    PyObject *energies = dcrf_py_energy_dictionary(&info.energy);
    PyObject *trace = trace_list(solver), *changes = changes_dictionary(changed);
    PyObject *left_out = left_out_dictionary(&info.bound_left_out);
    PyObject *dictionary =
        energies && trace && changes && left_out
            ? Py_BuildValue(
                  "{s:s,s:n,s:s,s:O,s:O,s:d,s:d,s:d,s:d,s:d,s:O,s:O,s:{s:d,s:d,s:d,s:d,s:d,s:d},"
                  "s:d,s:O,s:y#}",
                  "method", dcrf_method_name(info.method), "iterations",
                  (Py_ssize_t)info.iterations, "stop", dcrf_status_name(info.stop), "changes",
                  changes, "energies", energies, "objective", info.objective, "lower_bound",
                  info.lower_bound, "relative_gap", info.relative_gap, "unpolished_energy",
                  info.unpolished.total, "rounded_energy", info.rounded.total, "is_constant",
                  info.is_constant ? Py_True : Py_False, "trace", trace, "seconds", "start",
                  info.start_s, "solve", info.solve_s, "evaluate", info.evaluate_s, "round",
                  info.round_s, "polish", info.polish_s, "proof", info.proof_s, "proven_share",
                  share, "left_out", left_out, /* y# turns NULL into None */
                  "certificate", (const char *)certificate, (Py_ssize_t)size)
            : NULL;
    Py_XDECREF(energies);
    Py_XDECREF(trace);
    Py_XDECREF(changes);
    Py_XDECREF(left_out);
    return dictionary;
}

PyObject *dcrf_py_certificate_dictionary(const dcrf_certify_info *certificate) {
    PyObject *energies = dcrf_py_energy_dictionary(&certificate->energy);
    PyObject *left_out = left_out_dictionary(&certificate->bound_left_out);
    /* N takes the reference, and fails if it is NULL. */
    return Py_BuildValue(
        "{s:N,s:N,s:d,s:d,s:d,s:O,s:n,s:s,s:d,s:n,s:n}", "energies", energies, "left_out", left_out,
        "lower_bound", certificate->lower_bound, "relative_gap", certificate->relative_gap,
        "best_energy", certificate->best_energy, "is_constant",
        certificate->is_constant ? Py_True : Py_False, "iterations",
        (Py_ssize_t)certificate->iterations, "stop", dcrf_status_name(certificate->stop), "seconds",
        certificate->time_s, "right", (Py_ssize_t)certificate->right, "wrong",
        (Py_ssize_t)certificate->wrong);
}

PyObject *dcrf_py_verification_dictionary(const dcrf_verification *found) {
    return Py_BuildValue("{s:O,s:d,s:d,s:d,s:d,s:d,s:n,s:n,s:d}", "is_exact",
                         found->is_exact ? Py_True : Py_False, "energy", found->energy,
                         "lower_bound", found->lower_bound, "relative_gap", found->relative_gap,
                         "labels_energy", found->labels_energy, "labels_gap", found->labels_gap,
                         "right", (Py_ssize_t)found->right, "wrong", (Py_ssize_t)found->wrong,
                         "seconds", found->time_s);
}
