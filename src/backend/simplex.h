/* Projections onto simplices. */
#ifndef DCRF_BACKEND_SIMPLEX_H
#define DCRF_BACKEND_SIMPLEX_H

#include <stddef.h>

/* The theta for which sum_i max(0, values[i] - theta) = total: the projection of `values` onto
 * { y >= 0, sum y = total } is max(0, values - theta). count >= 1, total > 0. */
double dcrf_simplex_threshold(const float *values, size_t count, double total);

/* The same for up to DCRF_SIMPLEX_ROWS rows, faster when there are as many: the same thetas. Where
 * a total is 0, theta is infinite and the projection 0. */
#define DCRF_SIMPLEX_ROWS ((size_t)8)
void dcrf_simplex_thresholds(const float *rows, size_t stride, size_t row_count, size_t count,
                             const double *totals, double *thetas);

/* Project one row onto the distributions, in place. */
void dcrf_simplex_project(float *row, size_t count);

/* Project each of any number of rows. */
void dcrf_simplex_project_rows(float *rows, size_t stride, size_t row_count, size_t count);

#endif
