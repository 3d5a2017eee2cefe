/* Default settings, and the check of the user's. */
#include "core/error.h"
#include "solver/solver.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <string.h>

void dcrf_settings_defaults(dcrf_settings *settings, dcrf_method method) {
    const bool is_lp = method == DCRF_METHOD_LP, is_qp = method == DCRF_METHOD_QP;
    if (!settings)
        return;
    dcrf_lp_settings *lp = &settings->lp;
    memset(settings, 0, sizeof *settings); /* callbacks, reserved and padding bytes */
    settings->method = method;
    settings->iterations = is_lp   ? DCRF_DEFAULT_LP_ITERATIONS
                           : is_qp ? DCRF_DEFAULT_QP_ITERATIONS
                                   : DCRF_DEFAULT_MF_ITERATIONS;
    settings->time_limit_s = DCRF_DEFAULT_TIME_LIMIT_S;
    settings->gap = is_lp ? DCRF_DEFAULT_LP_GAP : DCRF_DEFAULT_GAP;
    settings->stationarity = is_lp   ? DCRF_DEFAULT_LP_STATIONARITY
                             : is_qp ? DCRF_DEFAULT_QP_STATIONARITY
                                     : DCRF_DEFAULT_MF_STATIONARITY;
    settings->damping = DCRF_DEFAULT_DAMPING;
    settings->evaluate_every = is_lp ? DCRF_DEFAULT_LP_EVALUATE_EVERY : DCRF_DEFAULT_EVALUATE_EVERY;
    settings->rounding_draws = DCRF_DEFAULT_ROUNDING_DRAWS;
    settings->seed = DCRF_DEFAULT_SEED;
    settings->polish = DCRF_DEFAULT_POLISH;
    settings->polish_rounds = DCRF_DEFAULT_POLISH_ROUNDS;
    settings->trace = DCRF_DEFAULT_TRACE;
    settings->proof = DCRF_PROVE_BY_GAP;
    lp->clique_form = DCRF_DEFAULT_LP_CLIQUE_FORM;
    lp->schedule = DCRF_DEFAULT_LP_SCHEDULE;
}

/* False for NaN and infinity too. */
static bool is_not_negative(double value) {
    return value >= 0 && isfinite(value);
}

static dcrf_status check_lp(const dcrf_lp_settings *lp, dcrf_error *error) {
    if (!dcrf_clique_form_name((dcrf_clique_form)lp->clique_form) ||
        !dcrf_lp_schedule_name((dcrf_lp_schedule)lp->schedule))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the LP settings name a clique form or a schedule that does not exist");
    return DCRF_OK;
}

dcrf_status dcrf_settings_check(const dcrf_settings *settings, dcrf_error *error) {
    if (!dcrf_method_name(settings->method))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "there is no method %d",
                         (int)settings->method);
    if (!is_not_negative(settings->time_limit_s))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the time limit is %g s; it must be 0 (none) or positive",
                         settings->time_limit_s);
    if (!is_not_negative(settings->gap) || !is_not_negative(settings->stationarity))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the gap (%g) and the stationarity (%g) must be 0 (off) or positive",
                         settings->gap, settings->stationarity);
    if (settings->damping != DCRF_DAMPING_AUTO &&
        !(settings->damping >= 0 && settings->damping < 1))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the damping is %g; it must be at least 0 and below 1, or %g (automatic)",
                         settings->damping, DCRF_DAMPING_AUTO);
    TRY(dcrf_check_reserved(settings->reserved, sizeof settings->reserved,
                            "the settings of a solver", error));
    TRY(dcrf_check_reserved(settings->lp.reserved, sizeof settings->lp.reserved,
                            "the settings of the LP", error));
    if (settings->proof < DCRF_PROVE_BY_GAP || settings->proof > DCRF_PROVE_CERTIFICATE)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "there is no kind %d of proofs",
                         (int)settings->proof);
    if (settings->proof != DCRF_PROVE_BY_GAP && settings->method != DCRF_METHOD_LP)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "a proof needs the dual of the LP; the method is %s",
                         dcrf_method_name(settings->method));
    return check_lp(&settings->lp, error);
}
