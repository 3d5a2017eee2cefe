/* The QP relaxation (Joy et al., section 4 and appendix A.1), by Frank-Wolfe.
 *
 *   f(y, z) = phi'y + y' Psi y + sum_p C_p sum_i ( z_pi + (1 - z_pi) h_pi ),
 *   h_pi = sum_{a in p} (1 - y_ai),   rows of y distributions, 0 <= z <= 1.
 *
 * At an integral y with the best z this is E(x) + (M - 1) sum_p C_p; reported values have that
 * constant subtracted. The gradient is
 *
 *   g_ai = phi_ai + 2 (Psi y)_ai - C_p (1 - z_pi),   C_p (1 - h_pi) for z_pi,
 *
 * so the linear minimizer s has one label per variable and z = [h > 1]. Along d = s - y, e = s_z -
 * z, with h' the change of h, f changes by delta L + delta^2 Q, where
 *
 *   L = <g, d> + sum_pi C_p e (1 - h),   Q = d' Psi d - sum_pi C_p e h'.
 *
 * -L >= 0 is the Frank-Wolfe gap, zero exactly at stationary points. The best delta in [0, 1] is -L
 * / 2Q, or 1 if Q <= 0 or that value is larger. f is not convex (K has no diagonal), so this finds
 * a stationary point (Lacoste-Julien 2016).
 *
 * One filter application per iteration: Psi s. The field B of y (energy/coupling.h) follows as B +
 * delta (B of s - B), a convex combination, so rounding errors do not accumulate. Rows of d sum to
 * zero, so the part of Psi that B leaves out cancels in L and Q.
 *
 * A backend (backend/backend.h) takes the steps and computes f, L and Q. */
#include "backend/iterate.h"
#include "core/error.h"
#include "method/method.h"

#include <float.h>
#include <math.h>

struct qp {
    struct dcrf_iterate marginals; /* first: see backend/iterate.h */
    double linear;                 /* L at y */
    double objective;              /* f at y, without the constant */
};

static dcrf_status qp_init(void **state, const struct dcrf_problem *problem, dcrf_error *error) {
    return dcrf_iterate_new(state, sizeof(struct qp), problem->coupling, DCRF_BACKEND_FOR_QP,
                            error);
}

/* Store f and L of the point that the backend has moved to. */
static dcrf_status take_sums(struct qp *qp, dcrf_status status, const double *sums) {
    qp->marginals.is_copy_old = true;
    if (status == DCRF_OK) {
        qp->objective = sums[DCRF_BACKEND_QP_OBJECTIVE];
        qp->linear = sums[DCRF_BACKEND_QP_LINEAR];
    }
    return status;
}

static dcrf_status qp_start(void *state, const struct dcrf_start *start, dcrf_error *error) {
    struct qp *qp = state;
    const struct dcrf_iterate *y = &qp->marginals;
    double sums[DCRF_BACKEND_QP_SUMS];
    return take_sums(qp, y->methods->qp_start(y->iterate, start->y, sums, error), sums);
}

static dcrf_status qp_step(void *state, struct dcrf_step_report *report, dcrf_error *error) {
    struct qp *qp = state;
    const struct dcrf_iterate *y = &qp->marginals;
    double quadratic, sums[DCRF_BACKEND_QP_SUMS];
    TRY(y->methods->qp_bend(y->iterate, &quadratic, error));
    /* If rounding has made L nonnegative, there is nothing left to gain. */
    const double step = qp->linear >= 0                ? 0
                        : -qp->linear >= 2 * quadratic ? 1
                                                       : -qp->linear / (2 * quadratic);
    TRY(take_sums(qp, y->methods->qp_move(y->iterate, step, sums, error), sums));
    report->objective = qp->objective;
    report->stationarity = -qp->linear / (fabs(qp->objective) + DBL_MIN);
    return DCRF_OK;
}

const struct dcrf_method_interface dcrf_qp = {
    .name = "the QP relaxation",
    .init = qp_init,
    .start = qp_start,
    .step = qp_step,
    .fetch = dcrf_iterate_fetch,
    .labels = dcrf_iterate_labels,
    .marginals = dcrf_iterate_view,
    .free = dcrf_iterate_free,
};
