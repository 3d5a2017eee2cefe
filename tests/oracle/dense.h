/* Dense matrices for the tests of operators, the fields they are applied to, and error norms. The
 * formula is evaluated in double, pair by pair; only the random numbers and the operators under
 * test come from the library. */
#ifndef DCRF_TESTS_DENSE_H
#define DCRF_TESTS_DENSE_H

#include "unit.h"

#include <dcrf/experimental.h>

size_t grid_variables(const dcrf_grid *grid);

/* exp(-|f_a - f_b|^2 / 2), without the normalization. Channels must be interleaved floats or bytes.
 */
double kernel_formula(const dcrf_grid *grid, const dcrf_kernel *kernel, size_t a, size_t b);

/* The N x N matrix of a kernel by its formula, normalization included. */
double *dense_of_kernel(const dcrf_grid *grid, const dcrf_kernel *kernel);

/* The matrix of an operator, column by column from unit vectors. */
double *dense_of_operator(const dcrf_operator *op, dcrf_workspace *workspace,
                          dcrf_direction direction);

/* Uniform on [low, high). The padding is filled too and must have no effect. */
float *random_block(size_t variables, size_t stride, double low, double high, uint64_t seed);

/* max |value - M in| / max |M in| over one block: the relative error in the maximum norm. */
double dense_error(const double *matrix, size_t variables, const float *in, const float *value,
                   size_t channels, size_t stride);

/* max |value - expected| / max |expected|, rows `stride` floats apart. */
double block_error(const float *value, const float *expected, size_t variables, size_t channels,
                   size_t stride);

/* Fails, saying what was compared, unless value <= limit (NaN fails). */
void assert_within(double value, double limit, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Create and destroy what a test needs to apply one kernel. */
dcrf_workspace *new_workspace(size_t threads);
dcrf_operator *new_operator(const dcrf_grid *grid, const dcrf_kernel *kernel,
                            dcrf_operator_kind kind, dcrf_workspace *workspace);
float *new_applied(const dcrf_operator *op, dcrf_workspace *workspace, dcrf_direction direction,
                   const float *in, size_t channels, size_t stride);

/* An image resembling a photograph: smooth regions, edges in all directions, fine texture and
 * noise. Three interleaved bytes per pixel. */
uint8_t *draw_photograph(size_t width, size_t height);

/* Labels of the regions of the same drawing: one row of indicators per pixel. */
float *draw_labels(size_t width, size_t height, size_t labels, size_t stride);

#endif
