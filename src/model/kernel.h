/* The features of a kernel, checked and copied.
 *
 * The feature vector of a variable is its grid coordinates (unless the caller gave all features),
 * each times spacing / sigma, followed by its channels, each divided by its sigma. Channels are
 * stored as given; coordinates are not stored. */
#ifndef DCRF_MODEL_KERNEL_H
#define DCRF_MODEL_KERNEL_H

#include <dcrf/model.h>
#include <stdbool.h>
#include <stdint.h>

struct dcrf_features {
    dcrf_kernel_kind kind;
    dcrf_grid grid;
    size_t variables;
    size_t dimension;                  /* axes + channels */
    size_t axes;                       /* coordinates among the features: 0 or grid.axes */
    double axis_factor[DCRF_MAX_AXES]; /* spacing / sigma */
    size_t origin[DCRF_MAX_AXES]; /* coordinates of the first variable: dcrf_model_set_origin */

    size_t channels;
    double channel_factor[DCRF_MAX_FEATURES]; /* 1 / sigma */
    /* variables x channels, as the caller gave them: floats, or doubles if not all of them are
     * floats; both NULL without channels. */
    float *channel;
    double *channel_in_double;
    /* Instead of these: the caller's own array, neither copied nor checked yet. Only devices
     * read it (backend/backend.h); dcrf_operator_build copies it for all other operators. */
    const dcrf_view *given;
    /* Or, for rows, planes and ranges of features only: channels of one byte, not copied either. */
    const uint8_t *bytes;
    /* Also for a device operator: the number of images over the same grid, one after the other,
     * whose variables do not interact with those of other images. `variables` counts those of all,
     * and `given` has one view per image. 1 everywhere else. */
    size_t pictures;

    /* Compute features as single-precision programs do: coordinates (times their spacing) and
     * channels are rounded, and then divided by rounded sigmas. */
    bool is_single;
    float divisor[DCRF_MAX_FEATURES];

    /* The rows in another order: the variable of each row, in memory owned by the caller. NULL: in
     * their own order. Rows and planes of features are in this order, single values are not. */
    const uint32_t *order;
};

dcrf_status dcrf_features_new(struct dcrf_features *features, const dcrf_grid *grid,
                              const dcrf_kernel *kernel, dcrf_error *error);
/* The same in two steps: without the channels (see `given`), and then with a checked copy of them,
 * for a single picture. */
dcrf_status dcrf_features_describe(struct dcrf_features *features, const dcrf_grid *grid,
                                   const dcrf_kernel *kernel, dcrf_error *error);
dcrf_status dcrf_features_copy(struct dcrf_features *features, dcrf_error *error);
void dcrf_features_clear(struct dcrf_features *features);

/* Channel c of a variable, at `at` = variable * channels + c, as the caller gave it. */
static inline double dcrf_features_channel(const struct dcrf_features *features, size_t at) {
    return features->channel ? (double)features->channel[at] : features->channel_in_double[at];
}

/* The feature vector of one variable: `dimension` floats. */
void dcrf_features_row(const struct dcrf_features *features, size_t variable, float *row);

/* Feature vectors of `count` variables from `begin` on, in planes `plane` floats apart. */
void dcrf_features_planes(const struct dcrf_features *features, size_t begin, size_t count,
                          float *planes, size_t plane);

/* The least and the largest value of each feature; for channels of bytes only bounds on them. */
void dcrf_features_range(const struct dcrf_features *features, float *least, float *largest);

/* Feature i of a variable as the caller gave it, not rounded, and its factor. */
double dcrf_features_value(const struct dcrf_features *features, size_t variable, size_t i);
double dcrf_features_factor(const struct dcrf_features *features, size_t i);

/* The sigma of one feature. */
double dcrf_features_sigma(const struct dcrf_features *features, size_t i);

/* Is this a valid weight? */
dcrf_status dcrf_weight_check(double weight, dcrf_error *error);

#endif
