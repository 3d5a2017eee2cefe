/* Published settings of mean field, with compatibilities as in pydensecrf, and unary energies to
 * measure them with. */
#ifndef DCRF_BENCH_PUBLISHED_H
#define DCRF_BENCH_PUBLISHED_H

#include <stddef.h>

#define PUBLISHED_ITERATIONS 10

struct published {
    size_t labels;
    double spatial, spatial_compat;
    double bilateral, colour, bilateral_compat;
};
#define PUBLISHED_COUNT 4
extern const struct published published_settings[PUBLISHED_COUNT];

/* One plane per label; energies differ by less than four, so that every label is alive everywhere.
 */
float *published_unary(const struct published *setting, size_t width, size_t height);

#endif
