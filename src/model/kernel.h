/* The features of a kernel, checked and copied.
 *
 * The feature vector of a variable is its grid coordinates (unless the caller gave all features),
 * each times spacing / sigma, followed by its channels, each divided by its sigma. Coordinates are
 * not stored. */
#ifndef DCRF_MODEL_KERNEL_H
#define DCRF_MODEL_KERNEL_H

#include <dcrf/model.h>

struct dcrf_features {
    dcrf_kernel_kind kind;
    dcrf_grid grid;
    size_t variables;
    size_t dimension;                  /* axes + channels */
    size_t axes;                       /* coordinates among the features: 0 or grid.axes */
    double axis_factor[DCRF_MAX_AXES]; /* spacing / sigma */
    size_t channels;
    float *channel; /* variables x channels, divided by sigma; NULL without channels */
};

dcrf_status dcrf_features_new(struct dcrf_features *features, const dcrf_grid *grid,
                              const dcrf_kernel *kernel, dcrf_error *error);
void dcrf_features_clear(struct dcrf_features *features);

/* The feature vector of one variable: `dimension` floats. */
void dcrf_features_row(const struct dcrf_features *features, size_t variable, float *row);

/* Is this a weight? */
dcrf_status dcrf_weight_check(double weight, dcrf_error *error);

#endif
