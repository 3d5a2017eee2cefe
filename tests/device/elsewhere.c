#include "elsewhere.h"

#include <math.h>

struct elsewhere plan_elsewhere(const struct toy *toy, const char *device) {
    struct elsewhere there;
    assert_int_equal(dcrf_workspace_new(&there.workspace, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_set_device(there.workspace, device, NULL), DCRF_OK);
    assert_int_equal(
        dcrf_plan_new(&there.plan, toy->model, DCRF_OPERATOR_EXACT, there.workspace, NULL),
        DCRF_OK);
    return there;
}

void free_elsewhere(struct elsewhere *there) {
    dcrf_plan_free(&there->plan);
    dcrf_workspace_free(&there->workspace);
}

struct toy toy_of(uint64_t seed) {
    static const double strengths[] = {0.05, 0.2, 0.6};
    return new_toy(seed, 6 + seed % 5, 2 + seed % 3, seed % 4 == 3 ? 2 : 0, strengths[seed % 3],
                   TOY_POTTS, 1);
}

struct toy strong_toy(uint64_t seed) {
    return new_toy(seed, 10, 3, seed % 3, 300, TOY_POTTS, 1);
}

dcrf_solver *run_solver(dcrf_plan *plan, dcrf_workspace *workspace, const dcrf_settings *settings,
                        const uint16_t *start) {
    dcrf_solver *solver;
    dcrf_error error = {0};
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, settings, &error), DCRF_OK);
    if (start)
        assert_int_equal(dcrf_solver_start_labels(solver, start, NULL), DCRF_OK);
    if (dcrf_solver_run(solver, &error) < 0)
        fail_msg("%s", error.message);
    return solver;
}

void assert_near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance))
        fail_msg("%.9g and %.9g differ by more than %g", a, b, tolerance);
}
