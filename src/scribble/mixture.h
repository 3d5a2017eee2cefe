/* Mixtures of Gaussians with full covariances, fitted to weighted points. */
#ifndef DCRF_SCRIBBLE_MIXTURE_H
#define DCRF_SCRIBBLE_MIXTURE_H

#include <stddef.h>
#include <stdint.h>

#define DCRF_MIXTURE_DIMENSION_MAX 16
#define DCRF_MIXTURE_COMPONENTS_MAX 8

struct dcrf_mixture_component {
    double weight;
    double mean[DCRF_MIXTURE_DIMENSION_MAX];
    /* The covariance, and its lower Cholesky factor, row by row. */
    double covariance[DCRF_MIXTURE_DIMENSION_MAX][DCRF_MIXTURE_DIMENSION_MAX];
    double factor[DCRF_MIXTURE_DIMENSION_MAX][DCRF_MIXTURE_DIMENSION_MAX];
    double inverse_diagonal[DCRF_MIXTURE_DIMENSION_MAX]; /* 1 / factor[i][i] */
    double log_scale; /* ln weight - ln sqrt(det(2 pi covariance)) */
};

struct dcrf_mixture {
    size_t dimension;
    size_t components;
    struct dcrf_mixture_component of[DCRF_MIXTURE_COMPONENTS_MAX];
};

struct dcrf_mixture_settings {
    size_t components_max;           /* at most DCRF_MIXTURE_COMPONENTS_MAX */
    double weight_per_component_min; /* fewer components for few points */
    double variance_min;             /* above zero; added to every variance */
    size_t iterations_max;
    double tolerance; /* on the mean log density, between iterations */
};

/* `count` points of `dimension` finite numbers each; point n has the weight weights[n] >= 0, and
 * some weight is positive. */
struct dcrf_weighted_points {
    const float *points;
    const double *weights;
    size_t count;
    size_t dimension;
};

/* Fit a mixture. Deterministic: the result depends only on the points and their order. `cluster` is
 * scratch memory, one byte per point. */
void dcrf_mixture_fit(struct dcrf_mixture *mixture, const struct dcrf_weighted_points *points,
                      const struct dcrf_mixture_settings *settings, uint8_t *cluster);

/* Fit again to points similar to the previous ones, starting from the current mixture and keeping
 * its number of components. */
void dcrf_mixture_refit(struct dcrf_mixture *mixture, const struct dcrf_weighted_points *points,
                        const struct dcrf_mixture_settings *settings);

double dcrf_mixture_log_density(const struct dcrf_mixture *mixture, const float *point);

#endif
