#include "method/stop.h"

#include "core/timer.h"

#include <math.h>

static bool ask(void *user) {
    return dcrf_stop_is_due(user);
}

void dcrf_stop_init(struct dcrf_stop *stop, const dcrf_settings *settings,
                    dcrf_workspace *workspace) {
    *stop = (struct dcrf_stop){.settings = settings,
                               .workspace = workspace,
                               .deadline_s = (double)INFINITY,
                               .interrupt = {ask, stop}};
}

void dcrf_stop_begin(struct dcrf_stop *stop) {
    const double limit_s = stop->settings->time_limit_s;
    stop->began_s = dcrf_time_s();
    stop->deadline_s = fmin(limit_s > 0 ? stop->began_s + limit_s : (double)INFINITY,
                            dcrf_workspace_deadline_s(stop->workspace));
    stop->is_cancelled = false;
}

double dcrf_stop_limit_s(const struct dcrf_stop *stop) {
    return isfinite(stop->deadline_s) ? fmax(stop->deadline_s - stop->began_s, 0) : 0;
}

static bool is_time(const struct dcrf_stop *stop, double reserve_s) {
    return dcrf_time_s() >= stop->deadline_s - reserve_s;
}

dcrf_status dcrf_stop_reason(struct dcrf_stop *stop) {
    const dcrf_settings *settings = stop->settings;
    if (!stop->is_cancelled && settings->cancel)
        stop->is_cancelled = settings->cancel(settings->cancel_user) != 0;
    stop->is_cancelled |= dcrf_workspace_limit(stop->workspace) == DCRF_STOP_CANCELLED;
    return stop->is_cancelled ? DCRF_STOP_CANCELLED : is_time(stop, 0) ? DCRF_STOP_TIME : DCRF_OK;
}

bool dcrf_stop_is_due(struct dcrf_stop *stop) {
    return dcrf_stop_reason(stop) != DCRF_OK;
}

bool dcrf_stop_is_near(struct dcrf_stop *stop, double seconds) {
    return dcrf_stop_is_due(stop) || is_time(stop, seconds);
}

dcrf_status dcrf_stop_decide(struct dcrf_stop *stop, size_t iterations, double stationarity,
                             double relative_gap) {
    const dcrf_settings *settings = stop->settings;
    /* Written so that a NaN fails every comparison. */
    if (settings->gap > 0 && relative_gap <= settings->gap)
        return DCRF_STOP_GAP;
    if (settings->stationarity > 0 && stationarity <= settings->stationarity)
        return DCRF_STOP_STATIONARY;
    if (iterations >= settings->iterations)
        return DCRF_STOP_ITERATIONS;
    return is_time(stop, stop->reserve_s) ? DCRF_STOP_TIME : dcrf_stop_reason(stop);
}
