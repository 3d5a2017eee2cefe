/* The Euclidean projection onto a simplex (Michelot 1986).
 *
 *   argmin_y |y - v|^2  over  y >= 0, sum y = total   is   y = max(0, v - theta),
 *
 * theta the root of the convex, falling, piecewise linear  sum_i max(0, v_i - theta) - total.
 * Newton's method from the left (all entries positive) never overshoots: it drops entries until
 * none is left to drop, which takes a few sweeps and ends at the exact root. */
#include "solver/simplex.h"

double dcrf_simplex_threshold(const float *values, size_t count, double total) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    size_t kept = count;
    for (;;) {
        const double theta = (sum - total) / (double)kept;
        size_t above = 0;
        sum = 0;
        for (size_t i = 0; i < count; i++) {
            const int is_above = (double)values[i] > theta;
            above += (size_t)is_above;
            sum += is_above ? (double)values[i] : 0;
        }
        /* None above: rounding alone can do that, where the total is nothing beside the values. */
        if (above == kept || above == 0)
            return theta;
        kept = above;
    }
}

void dcrf_simplex_project(float *row, size_t count) {
    const double theta = dcrf_simplex_threshold(row, count, 1);
    for (size_t i = 0; i < count; i++) {
        const double value = (double)row[i] - theta;
        row[i] = value > 0 ? (float)value : 0;
    }
}
