/* The stopping rules of a run, all in one place. */
#ifndef DCRF_METHOD_STOP_H
#define DCRF_METHOD_STOP_H

#include "core/interrupt.h"
#include "core/workspace.h"

#include <dcrf/solver.h>
#include <stdbool.h>

struct dcrf_stop {
    const dcrf_settings *settings;
    dcrf_workspace *workspace; /* has its own limit */
    double began_s;            /* dcrf_time_s() when the run began */
    double deadline_s;         /* when it must end; infinite: no limit */
    double reserve_s;          /* the part of the time limit not available to the iterations */
    bool is_cancelled;         /* by a callback or the workspace, in this run */
    struct dcrf_interrupt interrupt; /* dcrf_stop_is_due, for code that does not know solvers */
};

void dcrf_stop_init(struct dcrf_stop *stop, const dcrf_settings *settings,
                    dcrf_workspace *workspace);

/* Start the clock of a run; and return its time limit, 0 if there is none. */
void dcrf_stop_begin(struct dcrf_stop *stop);
double dcrf_stop_limit_s(const struct dcrf_stop *stop);

/* DCRF_STOP_CANCELLED or DCRF_STOP_TIME if all work should end now, otherwise DCRF_OK. Calls the
 * user's callback, so call it only from the thread that runs the solver. */
dcrf_status dcrf_stop_reason(struct dcrf_stop *stop);
bool dcrf_stop_is_due(struct dcrf_stop *stop);

/* Is it too late to begin something that takes `seconds`? */
bool dcrf_stop_is_near(struct dcrf_stop *stop, double seconds);

/* The reason to stop after `iterations` iterations, or DCRF_OK. A NaN satisfies no rule. */
dcrf_status dcrf_stop_decide(struct dcrf_stop *stop, size_t iterations, double stationarity,
                             double relative_gap);

#endif
