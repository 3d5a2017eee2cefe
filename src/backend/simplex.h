/* Projections onto simplices. */
#ifndef DCRF_BACKEND_SIMPLEX_H
#define DCRF_BACKEND_SIMPLEX_H

#include <stddef.h>

/* The theta for which sum_i max(0, values[i] - theta) = total: the projection of `values` onto
 * { y >= 0, sum y = total } is max(0, values - theta). count >= 1, total > 0. */
double dcrf_simplex_threshold(const float *values, size_t count, double total);

/* Project one row onto the distributions, in place. */
void dcrf_simplex_project(float *row, size_t count);

#endif
