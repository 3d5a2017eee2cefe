/* The results of a solver: labels, figures, marginals, proven labels, and the trace. */
#include "core/error.h"
#include "solver/solver.h"

#include <math.h>
#include <string.h>

static void hide_unknown(dcrf_energy *energy) {
    if (!isfinite(energy->total))
        *energy = DCRF_UNKNOWN_ENERGY;
}

void dcrf_solver_get_info(const dcrf_solver *solver, dcrf_solver_info *info) {
    if (!solver) {
        memset(info, 0, sizeof *info);
        return;
    }
    *info = solver->info;
    hide_unknown(&info->energy);
    hide_unknown(&info->unpolished);
}

void dcrf_solver_candidate_energy(const dcrf_solver *solver, dcrf_candidate_kind kind,
                                  dcrf_energy *energy) {
    const bool is_known = solver && (int)kind >= 0 && kind < DCRF_CANDIDATE_KINDS;
    *energy = is_known ? solver->candidates.energies[kind] : DCRF_UNKNOWN_ENERGY;
    /* The result's may be rounded up. */
    if (is_known && energy->total < solver->info.energy.total)
        *energy = solver->info.energy;
}

dcrf_status dcrf_solver_labels(const dcrf_solver *solver, uint16_t *labels, size_t count,
                               dcrf_error *error) {
    if (!solver)
        return dcrf_fail_null(error, "the solver");
    const size_t variables = solver->problem.model->variables;
    const dcrf_status status = dcrf_check_room(labels, count, variables, "the labels", error);
    if (status == DCRF_OK)
        memcpy(labels, solver->best, variables * sizeof *labels);
    return status;
}

dcrf_status dcrf_solver_labels_left(const dcrf_solver *solver, uint16_t *counts, size_t count,
                                    dcrf_error *error) {
    if (!solver)
        return dcrf_fail_null(error, "the solver");
    DCRF_ENTER(solver->problem.workspace, error);
    const size_t variables = solver->problem.model->variables;
    TRY(dcrf_check_room(counts, count, variables, "the counts", error));
    struct dcrf_proven proven = {.counts = counts};
    if (solver->proof) {
        dcrf_proof_count(solver->proof, counts);
        return DCRF_OK;
    }
    TRY(dcrf_solver_check(solver, error)); /* what follows reads the model's energies */
    if (solver->has_started && solver->method->lower_bound)
        return solver->method->count_proven(solver->state, solver->info.energy.total, solver->best,
                                            &proven, error);
    for (size_t a = 0; a < variables; a++)
        counts[a] = (uint16_t)solver->problem.model->labels;
    return DCRF_OK;
}

const dcrf_proof *dcrf_solver_proof(const dcrf_solver *solver) {
    return solver ? solver->proof : NULL;
}

dcrf_status dcrf_solver_marginals(const dcrf_solver *solver, float *marginals, size_t count,
                                  size_t stride, dcrf_error *error) {
    if (!solver)
        return dcrf_fail_null(error, "the solver");
    DCRF_ENTER(solver->problem.workspace, error);
    const dcrf_model *model = solver->problem.model;
    const bool has_labels_only = !solver->has_started && solver->info.stop > 0;
    if (!solver->has_started && !has_labels_only)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the solver has not started: there are no marginals yet");
    TRY(dcrf_check_rows(marginals, count, model->variables, model->labels, stride, "the marginals",
                        error));
    for (size_t a = 0; a < model->variables && has_labels_only; a++)
        for (size_t i = 0; i < model->labels; i++)
            marginals[a * stride + i] = i == solver->best[a];
    if (has_labels_only)
        return DCRF_OK;
    TRY(dcrf_method_fetch(solver->method, solver->state, error));
    const float *rows = solver->method->marginals(solver->state);
    for (size_t a = 0; a < model->variables; a++)
        memcpy(marginals + a * stride, rows + a * model->stride, model->labels * sizeof *rows);
    return DCRF_OK;
}

const dcrf_moment *dcrf_solver_trace(const dcrf_solver *solver, size_t *count) {
    *count = solver ? solver->trace.count : 0;
    return solver ? solver->trace.moments : NULL;
}
