/* When a run ends: the one place that decides. */
#ifndef DCRF_SOLVER_STOP_H
#define DCRF_SOLVER_STOP_H

#include <dcrf/solver.h>
#include <stdbool.h>

struct dcrf_stop {
    const dcrf_settings *settings;
    double began_s; /* dcrf_time_s() when the run began */
};

/* Is the time up? */
bool dcrf_stop_is_time(const struct dcrf_stop *stop);

/* (energy - lower_bound) / |energy|; NaN where either is. */
double dcrf_relative_gap(double energy, double lower_bound);

/* Why to stop after `iterations` iterations, or DCRF_OK. A NaN meets no rule. */
dcrf_status dcrf_stop_decide(const struct dcrf_stop *stop, size_t iterations, double stationarity,
                             double relative_gap);

#endif
