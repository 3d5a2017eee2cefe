/* The figures that a run reports.
 *
 * During the iterations, energies are computed in float, and by operators that may leave pairs out.
 * At the end the best one is replaced by an upper bound on it, so that gaps are valid for the model
 * and all methods comparable. Where cuts stand for a distance that is no sum of cuts, the bound
 * leaves out a part of the energy, which is reported. */
#include "energy/columns.h"
#include "energy/energy_double.h"
#include "solver/solver.h"

#include <math.h>

/* An energy that takes no longer than this is computed even after an interrupt: without it what
 * came before would be wasted. */
#define SHORT_S 0.2

const struct dcrf_interrupt *dcrf_solver_energy_interrupt(const dcrf_solver *solver) {
    return solver->energy_s > SHORT_S ? &solver->stop.interrupt : NULL;
}

dcrf_status dcrf_solver_or_end(dcrf_solver *solver, dcrf_status status) {
    return status < 0 && status != DCRF_ERROR_MEMORY && !dcrf_stop_is_due(&solver->stop) ? status
                                                                                         : DCRF_OK;
}

/* If another labelling's energy in float is below the best in double, replace it by the latter. */
static void not_below(const dcrf_energy *best, dcrf_energy *other) {
    if (other->total < best->total)
        *other = *best;
}

/* Without the time or memory for an upper bound, keep the energy in float; if there is a lower
 * bound, round it up by a bound on its error. */
dcrf_status dcrf_solver_measure(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_plan *plan = solver->problem.plan;
    dcrf_energy energy;
    if (!isfinite(solver->info.energy.total))
        return DCRF_OK;
    dcrf_status status = dcrf_stop_reason(&solver->stop);
    if (status == DCRF_OK)
        status = dcrf_energy_at_most(plan, solver->problem.workspace, solver->best, &energy, NULL,
                                     0, error);
    if (status != DCRF_OK) {
        if ((status = dcrf_solver_or_end(solver, dcrf_solver_leave_out(solver, status))) < 0 ||
            !solver->method->lower_bound)
            return status;
        energy = solver->info.energy;
        const double off =
            dcrf_energy_error_of_floats(plan, solver->problem.workspace, solver->best, &energy,
                                        solver->method->row_sums(solver->state));
        if (!isfinite(off)) { /* exact operators, before the LP's start: no valid gap */
            solver->info.lower_bound = (double)NAN;
            return DCRF_OK;
        }
        dcrf_energy_round_up(&energy, off);
    }
    solver->info.energy = energy;
    not_below(&energy, &solver->info.unpolished);
    not_below(&energy, &solver->info.rounded);
    return DCRF_OK;
}

dcrf_status dcrf_solver_find_left_out(dcrf_solver *solver, const uint16_t *labels, double energy,
                                      dcrf_left_out *left_out, dcrf_error *error) {
    *left_out = (dcrf_left_out){0};
    if (!solver->method->lower_bound)
        return DCRF_OK;
    const struct dcrf_columns *columns = solver->method->columns(solver->state);
    double part;
    *left_out = columns->left_out;
    if (!(left_out->fraction > 0))
        return DCRF_OK;
    DCRF_WATCH(solver->problem.workspace, dcrf_solver_energy_interrupt(solver));
    const dcrf_status status = dcrf_energy_left_out(solver->problem.plan, solver->problem.workspace,
                                                    columns, labels, &part, error);
    if (status < 0)
        return dcrf_unless_interrupted(status);
    left_out->energy = part;
    left_out->gap = dcrf_relative_gap(energy, energy - part, solver->info.unary_floor);
    return DCRF_OK;
}
