/* What moves of mass between two labels have in common on all backends (backend/cpu/cut_step.c has
 * the mathematics). */
#ifndef DCRF_BACKEND_CUT_MOVES_H
#define DCRF_BACKEND_CUT_MOVES_H

#include "backend/backend.h"

/* Derivatives closer than this, relative to the row sums, count as equal. */
#define DCRF_CUT_EQUAL 1e-4
#define DCRF_CUT_MOST_MOVES 200

/* Proportional to what a move gains, if the mass does not limit it: `slope` is how much the
 * derivative of the giver exceeds that of the taker, `curvature` half the curvature between them.
 * 0: nothing. */
DCRF_BACKEND_HOST_AND_DEVICE static inline double dcrf_cut_gain(double slope, double curvature) {
    return slope > 0 ? slope * slope / curvature : 0;
}

/* How much to move, of what the giver has. */
DCRF_BACKEND_HOST_AND_DEVICE static inline double dcrf_cut_mass(double slope, double curvature,
                                                                double available) {
    const double wanted = slope / (2 * curvature);
    return wanted < available ? wanted : available;
}

#endif
