/* Checks the settings. */
#ifndef DCRF_SOLVER_SETTINGS_H
#define DCRF_SOLVER_SETTINGS_H

#include <dcrf/solver.h>
#include <stdbool.h>

/* Is every field in its range? */
dcrf_status dcrf_settings_check(const dcrf_settings *settings, dcrf_error *error);

#endif
