/* The Euclidean projection onto a simplex (Michelot 1986).
 *
 *   argmin_y |y - v|^2  over  y >= 0, sum y = total   is   y = max(0, v - theta),
 *
 * where theta is the root of the convex, decreasing, piecewise linear function  sum_i max(0, v_i -
 * theta) - total. Newton's method from the left never overshoots: it drops entries until none is
 * left to drop, which takes a few sweeps and ends at the exact root. No entry of y exceeds the
 * total, so entries that far below the largest, usually most of them, can be left out from the
 * start. */
#include "backend/simplex.h"

double dcrf_simplex_threshold(const float *values, size_t count, double total) {
    float largest = values[0];
    for (size_t i = 1; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    double sum = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const int is_near = (double)values[i] > (double)largest - total;
        kept += (size_t)is_near;
        sum += is_near ? (double)values[i] : 0;
    }
    if (kept == 0) { /* the total is negligible next to the values */
        for (size_t i = 0; i < count; i++)
            sum += (double)values[i];
        kept = count;
    }
    for (;;) {
        const double theta = (sum - total) / (double)kept;
        size_t above = 0;
        sum = 0;
        for (size_t i = 0; i < count; i++) {
            const int is_above = (double)values[i] > theta;
            above += (size_t)is_above;
            sum += is_above ? (double)values[i] : 0;
        }
        /* No entries to drop: the root. None above, or more than before, is rounding error, if the
         * total is negligible next to the values or the reverse. */
        if (above >= kept || above == 0)
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
