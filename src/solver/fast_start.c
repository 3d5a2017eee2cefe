/* The LP with exact operators starts from the result of the fast operators.
 *
 * A step with the exact operators takes time quadratic in the number of variables, and a labelling
 * that is optimal for the fast ones has an exact energy only a few hundredths of a per cent above
 * the optimum. So candidates and most of the work are left to a solver of the same kind with a plan
 * of fast operators. Its moments belong to the stage DCRF_STAGE_FAST, and their energies and bounds
 * refer to the fast operators. */
#include "core/error.h"
#include "core/owned.h"
#include "core/timer.h"
#include "solver/solver.h"

/* Below this, one pass over all pairs costs no more than one through a lattice. */
#define LEAST_VARIABLES 2048
/* The target gap: the exact operators, by which the labelling is measured later, differ by more. */
#define GOOD_ENOUGH 2e-4
/* The fraction of a time limit that this stage may take. */
#define TIME_PART 0.3

bool dcrf_wants_fast_start(const dcrf_solver *solver) {
    const dcrf_plan *plan = solver->problem.plan;
    bool is_exact = false;
    for (size_t m = 0; m < plan->kernel_count; m++)
        is_exact |= plan->kernels[m].op->methods->kind == DCRF_OPERATOR_EXACT;
    return is_exact && solver->settings.method == DCRF_METHOD_LP &&
           solver->settings.lp.schedule == DCRF_LP_SCHEDULE_HUBER &&
           plan->model->variables >= LEAST_VARIABLES;
}

static int pass_on(void *user, const dcrf_moment *moment) {
    dcrf_solver *solver = user;
    dcrf_moment passed = *moment;
    passed.stage = DCRF_STAGE_FAST;
    passed.time_s = dcrf_time_s() - solver->stop.began_s;
    dcrf_solver_tell(solver, &passed);
    return solver->stop.is_cancelled;
}

static int is_over(void *user) {
    return dcrf_stop_is_due(&((dcrf_solver *)user)->stop);
}

static dcrf_settings settings_of(dcrf_solver *solver) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.lp = solver->settings.lp;
    settings.gap = solver->settings.gap > GOOD_ENOUGH ? solver->settings.gap : GOOD_ENOUGH;
    settings.polish = solver->settings.polish;
    settings.polish_rounds = solver->settings.polish_rounds;
    settings.time_limit_s = TIME_PART * solver->settings.time_limit_s;
    settings.log = solver->settings.log;
    settings.log_user = solver->settings.log_user;
    settings.progress = pass_on;
    settings.cancel = is_over;
    settings.progress_user = settings.cancel_user = solver;
    return settings;
}

dcrf_status dcrf_fast_start(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_settings settings = settings_of(solver);
    dcrf_workspace *workspace = solver->problem.workspace;
    DCRF_AT_END(dcrf_plan_free) dcrf_plan *plan = NULL;
    DCRF_AT_END(dcrf_solver_free) dcrf_solver *fast = NULL;
    TRY(dcrf_plan_new(&plan, solver->problem.model, DCRF_OPERATOR_FAST, workspace, error));
    TRY(dcrf_solver_new(&fast, plan, workspace, &settings, error));
    TRY(dcrf_solver_run(fast, error));
    dcrf_solver_labels(fast, solver->candidate, solver->problem.model->variables, NULL);
    return DCRF_OK;
}
