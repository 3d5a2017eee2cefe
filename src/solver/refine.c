/* From the marginals of ordered labels to labellings, by mean field.
 *
 * Where a region can lie at several depths, the LP's marginals are spread over many labels, and no
 * move of single variables shifts the region as a whole. A common threshold on the sums of the
 * marginals puts all of it at one depth, each threshold at another; mean field, started there,
 * moves the borders and smooths what is inside, and moves finish the labelling. Which threshold is
 * best differs from picture to picture and from step to step, and the energy before mean field does
 * not tell (docs/notes/lp.md). So the thresholds go through the multiples of the golden ratio,
 * modulo 1, which fill the interval evenly however many are used. */
#include "solver/refine.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/timer.h"
#include "solver/solver.h"

#include <math.h>

/* Two labellings take less than a sixth of the time of the 16 steps between them. */
#define LABELLINGS 2
#define UPDATES 10
/* Thresholds near 0 and 1 lead to the outermost labels with any mass. */
#define LOWEST 0.15
#define HIGHEST 0.85
#define GOLDEN_RATIO 0.6180339887498949

static double threshold_of(size_t index) {
    const double turn = 0.5 + (double)index * GOLDEN_RATIO;
    return LOWEST + (HIGHEST - LOWEST) * (turn - floor(turn));
}

dcrf_status dcrf_refiner_init(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    struct dcrf_refiner *refiner = &solver->refiner;
    if (!dcrf_model_order(model))
        return DCRF_OK;
    refiner->start = dcrf_allocate(model->variables, model->stride * sizeof *refiner->start);
    return refiner->start ? dcrf_mean_field.init(&refiner->mean_field, &solver->problem, error)
                          : dcrf_fail_memory(error, "labellings by mean field");
}

void dcrf_refiner_clear(struct dcrf_refiner *refiner) {
    dcrf_mean_field.free(refiner->mean_field);
    dcrf_release(refiner->start);
    *refiner = (struct dcrf_refiner){0};
}

/* Mean field from solver->candidate, which becomes its labelling. */
static dcrf_status run_mean_field(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    void *state = solver->refiner.mean_field;
    const struct dcrf_start start = {.y = solver->refiner.start};
    struct dcrf_step_report report;
    dcrf_marginals_of_labels(solver->candidate, model->variables, model->stride,
                             solver->refiner.start);
    TRY(dcrf_mean_field.start(state, &start, error));
    for (size_t k = 0; k < UPDATES && !dcrf_stop_is_due(&solver->stop); k++)
        TRY(dcrf_mean_field.step(state, &report, error));
    return dcrf_solver_round_method(solver, &dcrf_mean_field, state, solver->candidate, error);
}

dcrf_status dcrf_solver_refine(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_model *model = solver->problem.model;
    dcrf_pool *pool = dcrf_workspace_pool(solver->problem.workspace);
    if (!solver->refiner.mean_field)
        return DCRF_OK;
    dcrf_status status = dcrf_method_fetch(solver->method, solver->state, error);
    for (size_t k = 0; k < LABELLINGS && status == DCRF_OK; k++) {
        if (dcrf_stop_is_due(&solver->stop))
            break;
        const double began_s = dcrf_time_s();
        const struct dcrf_marginals rows = {solver->method->marginals(solver->state),
                                            model->variables, model->labels, model->stride, NULL};
        dcrf_round_in_order(solver->thresholds, &rows, pool,
                            threshold_of(solver->refiner.labellings++), solver->candidate);
        status = run_mean_field(solver, error);
        solver->info.round_s += dcrf_time_s() - began_s;
        if (status == DCRF_OK)
            status = dcrf_solver_polish(solver, solver->candidate, error);
    }
    return status;
}
