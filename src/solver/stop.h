/* When a run ends: the one place that decides. */
#ifndef DCRF_SOLVER_STOP_H
#define DCRF_SOLVER_STOP_H

#include "core/interrupt.h"
#include "core/workspace.h"

#include <dcrf/solver.h>
#include <stdbool.h>

struct dcrf_stop {
    const dcrf_settings *settings;
    dcrf_workspace *workspace;       /* has a limit of its own */
    double began_s;                  /* dcrf_time_s() when the run began */
    double deadline_s;               /* and when it is to end; infinite: whenever it likes */
    double reserve_s;                /* of the time limit, not for the iterations */
    bool is_cancelled;               /* by a callback, in this run */
    struct dcrf_interrupt interrupt; /* for what knows nothing of solvers: dcrf_stop_is_due */
};

void dcrf_stop_init(struct dcrf_stop *stop, const dcrf_settings *settings,
                    dcrf_workspace *workspace);

/* The clock of a run starts; and the time it has, 0 where there is no limit. */
void dcrf_stop_begin(struct dcrf_stop *stop);
double dcrf_stop_limit_s(const struct dcrf_stop *stop);

/* DCRF_STOP_CANCELLED or DCRF_STOP_TIME where all work should end now, else DCRF_OK. Asks the
 * user's callback, so call it from the thread that runs the solver. */
dcrf_status dcrf_stop_reason(struct dcrf_stop *stop);
bool dcrf_stop_is_due(struct dcrf_stop *stop);

/* Should what takes `seconds` more not begin? */
bool dcrf_stop_is_near(struct dcrf_stop *stop, double seconds);

/* Why to stop after `iterations` iterations, or DCRF_OK. A NaN meets no rule. */
dcrf_status dcrf_stop_decide(struct dcrf_stop *stop, size_t iterations, double stationarity,
                             double relative_gap);

#endif
