/* The taps of a spatial kernel along one axis, for all implementations.
 *
 * They are truncated where the mass beyond is at most DCRF_GRID_TRUNCATED of the total (over all
 * axes) and each tap beyond is at most DCRF_GRID_TRUNCATED of the centre. */
#ifndef DCRF_FILTER_GRID_GRID_TAPS_H
#define DCRF_FILTER_GRID_GRID_TAPS_H

#include <math.h>
#include <stddef.h>

#define DCRF_GRID_TRUNCATED 8e-5

/* `factor` is spacing / sigma. */
static inline double dcrf_grid_tap(double factor, double offset) {
    return exp(-0.5 * (offset * factor) * (offset * factor));
}

/* The smallest radius that meets both conditions, but less than the length of the axis. */
static inline size_t dcrf_grid_radius(double factor, size_t size, size_t axes) {
    const double tail = DCRF_GRID_TRUNCATED / (double)axes;
    double total = 1;
    for (size_t t = 1; t < size && dcrf_grid_tap(factor, (double)t) > 1e-12; t++)
        total += 2 * dcrf_grid_tap(factor, (double)t);
    double inside = 1;
    size_t radius = 0;
    while (radius + 1 < size &&
           (inside < (1 - tail) * total ||
            dcrf_grid_tap(factor, (double)(radius + 1)) > DCRF_GRID_TRUNCATED)) {
        radius++;
        inside += 2 * dcrf_grid_tap(factor, (double)radius);
    }
    return radius;
}

#endif
