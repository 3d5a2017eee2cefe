/* Defaults, names of the methods, and the check of what a user chose. */
#include "solver/settings.h"

#include "core/error.h"

#include <math.h>
#include <string.h>

static const char *const method_names[] = {"mf", "qp", "lp"};
#define METHOD_COUNT (sizeof method_names / sizeof method_names[0])

const char *dcrf_method_name(dcrf_method method) {
    return (size_t)method < METHOD_COUNT ? method_names[method] : NULL;
}

int dcrf_method_from_name(const char *name, dcrf_method *method) {
    for (size_t i = 0; name && i < METHOD_COUNT; i++)
        if (strcmp(method_names[i], name) == 0) {
            *method = (dcrf_method)i;
            return 1;
        }
    return 0;
}

void dcrf_settings_defaults(dcrf_settings *settings, dcrf_method method) {
    const bool is_lp = method == DCRF_METHOD_LP, is_qp = method == DCRF_METHOD_QP;
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
    lp->inner_steps = DCRF_DEFAULT_LP_INNER_STEPS;
    lp->lambda = DCRF_DEFAULT_LP_LAMBDA;
    lp->epsilon = DCRF_DEFAULT_LP_EPSILON;
    lp->bins = DCRF_DEFAULT_LP_BINS;
    lp->adaptive_bins = DCRF_DEFAULT_LP_ADAPTIVE_BINS;
    lp->clique_form = DCRF_DEFAULT_LP_CLIQUE_FORM;
    lp->clique_step = DCRF_DEFAULT_LP_CLIQUE_STEP;
    lp->step = DCRF_DEFAULT_LP_STEP;
    lp->schedule = DCRF_DEFAULT_LP_SCHEDULE;
    lp->restart = DCRF_DEFAULT_LP_RESTART;
    lp->potential_flow = DCRF_DEFAULT_LP_POTENTIAL_FLOW;
}

/* False for NaN and infinity too. */
static bool is_not_negative(double value) {
    return value >= 0 && isfinite(value);
}

static bool is_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static dcrf_status check_lp(const dcrf_lp_settings *lp, dcrf_error *error) {
    if (lp->inner_steps == 0)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the LP needs at least one inner step");
    if (!is_not_negative(lp->lambda) || !is_not_negative(lp->epsilon))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "lambda (%g) and epsilon (%g) must be 0 (automatic) or positive",
                         lp->lambda, lp->epsilon);
    if (lp->bins < 2 || lp->bins > DCRF_MAX_BINS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%zu bins asked for; 2 to %d are possible",
                         lp->bins, DCRF_MAX_BINS);
    if (lp->clique_form < DCRF_CLIQUE_MIN || lp->clique_form > DCRF_CLIQUE_SPREAD ||
        lp->clique_step < DCRF_LP_CLIQUE_PROJECTION || lp->clique_step > DCRF_LP_CLIQUE_VERTEX ||
        lp->step < DCRF_LP_STEP_EXACT || lp->step > DCRF_LP_STEP_CONSERVATIVE ||
        lp->schedule < DCRF_LP_SCHEDULE_PROXIMAL || lp->schedule > DCRF_LP_SCHEDULE_HUBER)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the LP settings name a clique form, a step or a schedule that does not "
                         "exist");
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
    if (!is_zero(settings->reserved, sizeof settings->reserved) ||
        !is_zero(settings->lp.reserved, sizeof settings->lp.reserved))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "reserved bytes of the settings are not zero: call "
                         "dcrf_settings_defaults first");
    return check_lp(&settings->lp, error);
}
