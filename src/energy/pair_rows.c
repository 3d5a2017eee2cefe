/* Products of rows in the derivatives of the pairwise term (pair_gradient.c), in double. */
#include "energy/pair_gradient.h"

/* Sums in four parts, which do not wait for each other. */
#define PARTIAL 4

static double sum_of(const float *values, size_t count) {
    double sums[PARTIAL] = {0};
    size_t i = 0;
    for (; i + PARTIAL <= count; i += PARTIAL)
        for (size_t k = 0; k < PARTIAL; k++)
            sums[k] += (double)values[i + k];
    for (; i < count; i++)
        sums[0] += (double)values[i];
    return sums[0] + sums[1] + sums[2] + sums[3];
}

double dcrf_row_dot(size_t count, const float *x, const float *y, const float *z, double factor) {
    double totals[PARTIAL] = {0};
    size_t i = 0;
    for (; i + PARTIAL <= count; i += PARTIAL)
        for (size_t k = i; k < i + PARTIAL; k++)
            totals[k - i] += (double)x[k] * ((double)y[k] - factor * (double)z[k]);
    for (; i < count; i++)
        totals[0] += (double)x[i] * ((double)y[i] - factor * (double)z[i]);
    return totals[0] + totals[1] + totals[2] + totals[3];
}

static double potts_row(size_t labels, const float *e, const float *q, const float *filtered,
                        double diagonal, double factor, float *adjoint) {
    const double sum = sum_of(e, labels);
    double totals[PARTIAL] = {0};
    size_t j = 0;
    for (; j + PARTIAL <= labels; j += PARTIAL)
        for (size_t k = j; k < j + PARTIAL; k++)
            totals[k - j] += (sum - (double)e[k]) * ((double)filtered[k] - diagonal * (double)q[k]);
    for (; j < labels; j++)
        totals[0] += (sum - (double)e[j]) * ((double)filtered[j] - diagonal * (double)q[j]);
    for (size_t i = 0; adjoint && i < labels; i++)
        adjoint[i] = (float)(factor * (sum - (double)e[i]));
    return totals[0] + totals[1] + totals[2] + totals[3];
}

double dcrf_pair_row(const struct dcrf_model_kernel *kernel, size_t labels, const float *e,
                     const float *q, const float *filtered, float diagonal, double factor,
                     float *adjoint) {
    if (kernel->compatibility == DCRF_COMPATIBILITY_POTTS)
        return potts_row(labels, e, q, filtered, (double)diagonal, factor, adjoint);
    double total = 0;
    for (size_t j = 0; j < labels; j++) {
        double mixed = 0;
        if (kernel->compatibility == DCRF_COMPATIBILITY_VECTOR)
            mixed = (double)kernel->compatibility_values[j] * (double)e[j];
        else
            for (size_t i = 0; i < labels; i++)
                mixed += (double)kernel->compatibility_values[j * labels + i] * (double)e[i];
        total += mixed * ((double)filtered[j] - (double)diagonal * (double)q[j]);
        if (adjoint)
            adjoint[j] = (float)(factor * mixed);
    }
    return total;
}
