#include "solver/stop.h"

#include "core/timer.h"

#include <float.h>
#include <math.h>

bool dcrf_stop_is_time(const struct dcrf_stop *stop) {
    const double limit_s = stop->settings->time_limit_s;
    return limit_s > 0 && dcrf_time_s() - stop->began_s >= limit_s;
}

double dcrf_relative_gap(double energy, double lower_bound) {
    const double size = fabs(energy);
    return (energy - lower_bound) / (size > DBL_MIN ? size : DBL_MIN);
}

dcrf_status dcrf_stop_decide(const struct dcrf_stop *stop, size_t iterations, double stationarity,
                             double relative_gap) {
    const dcrf_settings *settings = stop->settings;
    /* Written so that a NaN fails every comparison. */
    if (settings->gap > 0 && relative_gap <= settings->gap)
        return DCRF_STOP_GAP;
    if (settings->stationarity > 0 && stationarity <= settings->stationarity)
        return DCRF_STOP_STATIONARY;
    if (iterations >= settings->iterations)
        return DCRF_STOP_ITERATIONS;
    if (dcrf_stop_is_time(stop))
        return DCRF_STOP_TIME;
    return DCRF_OK;
}
