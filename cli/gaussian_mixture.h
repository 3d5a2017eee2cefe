/* Mixtures of Gaussians with full covariances, fitted to points. */
#ifndef DCRF_CLI_GAUSSIAN_MIXTURE_H
#define DCRF_CLI_GAUSSIAN_MIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#define MIXTURE_DIMENSION_MAX 16
#define MIXTURE_COMPONENTS_MAX 5

typedef struct mixture_component {
    double weight;
    double mean[MIXTURE_DIMENSION_MAX];
    /* The covariance, and its lower Cholesky factor, row by row. */
    double covariance[MIXTURE_DIMENSION_MAX][MIXTURE_DIMENSION_MAX];
    double factor[MIXTURE_DIMENSION_MAX][MIXTURE_DIMENSION_MAX];
    double log_scale; /* ln weight - ln sqrt(det(2 pi covariance)) */
} mixture_component;

typedef struct gaussian_mixture {
    size_t dimension;
    size_t components;
    mixture_component of[MIXTURE_COMPONENTS_MAX];
} gaussian_mixture;

typedef struct mixture_settings {
    size_t components_max;         /* at most MIXTURE_COMPONENTS_MAX */
    size_t points_a_component_min; /* fewer components for few points */
    double variance_min;           /* above zero; added to every variance */
    size_t iterations_max;
    double tolerance; /* of the mean log density, between iterations */
} mixture_settings;

mixture_settings mixture_defaults(void);

/* Fit to count >= 1 points of `dimension` finite numbers, one after the other. The result depends
 * on nothing but the points and their order. False: out of memory. */
bool mixture_fit(gaussian_mixture *mixture, const float *points, size_t count, size_t dimension,
                 const mixture_settings *settings);

double mixture_log_density(const gaussian_mixture *mixture, const float *point);

#endif
