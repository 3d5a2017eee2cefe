#include "model/kernel.h"

#include "core/error.h"
#include "core/memory.h"
#include "model/view.h"

#include <float.h>
#include <math.h>
#include <string.h>

dcrf_kernel dcrf_kernel_spatial(double sigma, double weight) {
    dcrf_kernel kernel = {
        .kind = DCRF_KERNEL_SPATIAL, .normalization = DCRF_NORMALIZE_SYMMETRIC, .weight = weight};
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        kernel.sigma[axis] = sigma;
    return kernel;
}

dcrf_kernel dcrf_kernel_bilateral(double sigma, double channel_sigma, dcrf_view image,
                                  double weight) {
    dcrf_kernel kernel = dcrf_kernel_spatial(sigma, weight);
    kernel.kind = DCRF_KERNEL_BILATERAL;
    kernel.channels = image;
    for (size_t c = 0; c < DCRF_MAX_FEATURES; c++)
        kernel.channel_sigma[c] = channel_sigma;
    return kernel;
}

dcrf_kernel dcrf_kernel_features(dcrf_view features, double weight) {
    dcrf_kernel kernel = {.kind = DCRF_KERNEL_FEATURES,
                          .normalization = DCRF_NORMALIZE_SYMMETRIC,
                          .weight = weight,
                          .channels = features};
    return kernel;
}

dcrf_status dcrf_weight_check(double weight, dcrf_error *error) {
    if (!isfinite(weight))
        return dcrf_fail(error, DCRF_ERROR_NOT_FINITE, "the weight of a kernel is %g", weight);
    if (weight < 0)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the weight of a kernel is %g; it must not be negative", weight);
    if (weight > (double)FLT_MAX)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the weight of a kernel is %g: too large for a float", weight);
    return DCRF_OK;
}

static dcrf_status check_sigma(double sigma, const char *what, size_t index, dcrf_error *error) {
    if (!(sigma > 0) || !isfinite(sigma))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the sigma of %s %zu is %g; it must be positive and finite", what, index,
                         sigma);
    return DCRF_OK;
}

/* With the sigma of an axis, its largest coordinate must be a finite float. */
static dcrf_status check_axis(const dcrf_kernel *kernel, const dcrf_grid *grid, size_t axis,
                              dcrf_error *error) {
    const double sigma = kernel->sigma[axis];
    TRY(check_sigma(sigma, "axis", axis, error));
    if (!(grid->spacing[axis] / sigma * (double)grid->size[axis] <= (double)FLT_MAX))
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the sigma of axis %zu is %g: too small for %zu variables %g apart", axis,
                         sigma, grid->size[axis], grid->spacing[axis]);
    return DCRF_OK;
}

static dcrf_status check_kernel(const dcrf_kernel *kernel, const dcrf_grid *grid,
                                dcrf_error *error) {
    if (kernel->kind != DCRF_KERNEL_SPATIAL && kernel->kind != DCRF_KERNEL_BILATERAL &&
        kernel->kind != DCRF_KERNEL_FEATURES)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a kind of kernel",
                         (int)kernel->kind);
    if (kernel->normalization != DCRF_NORMALIZE_NONE &&
        kernel->normalization != DCRF_NORMALIZE_SYMMETRIC)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a normalization",
                         (int)kernel->normalization);
    TRY(dcrf_check_reserved(kernel->reserved, sizeof kernel->reserved, "a kernel", error));
    TRY(dcrf_weight_check(kernel->weight, error));
    const size_t axes = kernel->kind == DCRF_KERNEL_FEATURES ? 0 : grid->axes;
    const size_t channels = kernel->kind == DCRF_KERNEL_SPATIAL ? 0 : kernel->channels.channels;
    if (channels > DCRF_MAX_FEATURES || axes + channels > DCRF_MAX_FEATURES)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "a kernel over %zu axes and %zu channels has more than %d features", axes,
                         channels, DCRF_MAX_FEATURES);
    for (size_t axis = 0; axis < axes; axis++)
        TRY(check_axis(kernel, grid, axis, error));
    for (size_t c = 0; kernel->kind == DCRF_KERNEL_BILATERAL && c < channels; c++)
        TRY(check_sigma(kernel->channel_sigma[c], "channel", c, error));
    return DCRF_OK;
}

dcrf_status dcrf_features_describe(struct dcrf_features *features, const dcrf_grid *grid,
                                   const dcrf_kernel *kernel, dcrf_error *error) {
    struct dcrf_features made = {.kind = kernel->kind, .pictures = 1};
    TRY(dcrf_grid_check(grid, &made.variables, error));
    TRY(check_kernel(kernel, grid, error));
    made.grid = *grid;
    made.axes = kernel->kind == DCRF_KERNEL_FEATURES ? 0 : grid->axes;
    made.channels = kernel->kind == DCRF_KERNEL_SPATIAL ? 0 : kernel->channels.channels;
    made.dimension = made.axes + made.channels;
    for (size_t axis = 0; axis < made.axes; axis++)
        made.axis_factor[axis] = grid->spacing[axis] / kernel->sigma[axis];
    for (size_t c = 0; c < made.channels; c++)
        made.channel_factor[c] =
            kernel->kind == DCRF_KERNEL_FEATURES ? 1 : 1 / kernel->channel_sigma[c];
    made.given = kernel->kind == DCRF_KERNEL_SPATIAL ? NULL : &kernel->channels;
    *features = made;
    return DCRF_OK;
}

/* Floats take half of the memory, and pictures seldom need more. */
static dcrf_status store_as_floats(struct dcrf_features *features, dcrf_error *error) {
    const size_t count = features->variables * features->channels;
    const double *values = features->channel_in_double;
    for (size_t k = 0; k < count; k++)
        if ((double)(float)values[k] != values[k])
            return DCRF_OK;
    float *channel = dcrf_allocate(count, sizeof *channel);
    if (!channel)
        return dcrf_fail_memory(error, "the features of a kernel");
    for (size_t k = 0; k < count; k++)
        channel[k] = (float)values[k];
    dcrf_release(features->channel_in_double);
    features->channel_in_double = NULL;
    features->channel = channel;
    return DCRF_OK;
}

dcrf_status dcrf_features_copy(struct dcrf_features *features, dcrf_error *error) {
    const dcrf_view *given = features->given;
    features->given = NULL;
    if (!given)
        return DCRF_OK;
    const size_t n = features->variables, channels = features->channels;
    const bool are_bytes = dcrf_view_are_bytes(given, features->channel_factor);
    if (are_bytes)
        features->channel = dcrf_allocate(n, channels * sizeof *features->channel);
    else
        features->channel_in_double =
            dcrf_allocate(n, channels * sizeof *features->channel_in_double);
    if (!features->channel && !features->channel_in_double)
        return dcrf_fail_memory(error, "the features of a kernel");
    const char *what =
        features->kind == DCRF_KERNEL_FEATURES ? "the feature array" : "the image of a kernel";
    dcrf_status status =
        are_bytes
            ? dcrf_view_copy(given, &features->grid, what, NULL, features->channel, channels, error)
            : dcrf_view_copy_double(given, &features->grid, what, features->channel_factor,
                                    features->channel_in_double, error);
    if (status == DCRF_OK && !are_bytes)
        status = store_as_floats(features, error);
    if (status < 0)
        dcrf_features_clear(features);
    return status;
}

dcrf_status dcrf_features_new(struct dcrf_features *features, const dcrf_grid *grid,
                              const dcrf_kernel *kernel, dcrf_error *error) {
    struct dcrf_features made;
    TRY(dcrf_features_describe(&made, grid, kernel, error));
    TRY(dcrf_features_copy(&made, error));
    *features = made;
    return DCRF_OK;
}

void dcrf_features_clear(struct dcrf_features *features) {
    dcrf_release(features->channel);
    dcrf_release(features->channel_in_double);
    features->channel = NULL;
    features->channel_in_double = NULL;
}

/* Feature i from its coordinate or channel, monotonically increasing. */
static inline float feature(const struct dcrf_features *features, size_t i, double value) {
    const size_t axes = features->axes;
    if (features->is_single)
        return (float)(i < axes ? value * features->grid.spacing[i] : value) / features->divisor[i];
    return (float)(value *
                   (i < axes ? features->axis_factor[i] : features->channel_factor[i - axes]));
}

/* Planes of consecutive variables. */
static void fill_planes(const struct dcrf_features *features, size_t begin, size_t count,
                        float *planes, size_t plane) {
    const size_t axes = features->axes, channels = features->channels;
    for (size_t k = 0; axes > 0 && k < count;) { /* one line of the grid at a time */
        size_t position[DCRF_MAX_AXES];
        dcrf_grid_position(&features->grid, begin + k, position);
        const size_t left = features->grid.size[0] - position[0];
        const size_t end = left < count - k ? k + left : count;
        for (size_t axis = 0; axis < axes; axis++) {
            const size_t from = position[axis] + features->origin[axis];
            float *out = planes + axis * plane;
            const float first = feature(features, axis, (double)from);
            for (size_t j = k; j < end; j++)
                out[j] = axis > 0 ? first : feature(features, 0, (double)(from + (j - k)));
        }
        k = end;
    }
    for (size_t c = 0; c < channels; c++) {
        float *out = planes + (axes + c) * plane;
        if (features->bytes) {
            const uint8_t *byte = features->bytes + begin * channels + c;
            for (size_t k = 0; k < count; k++)
                out[k] = feature(features, axes + c, byte[k * channels]);
            continue;
        }
        const size_t first = begin * channels + c;
        const float *channel = features->channel;
        const double *in_double = features->channel_in_double;
        for (size_t k = 0; k < count && channel; k++)
            out[k] = feature(features, axes + c, (double)channel[first + k * channels]);
        for (size_t k = 0; k < count && !channel; k++)
            out[k] = feature(features, axes + c, in_double[first + k * channels]);
    }
}

void dcrf_features_planes(const struct dcrf_features *features, size_t begin, size_t count,
                          float *planes, size_t plane) {
    const uint32_t *order = features->order;
    if (!order) {
        fill_planes(features, begin, count, planes, plane);
        return;
    }
    for (size_t k = 0; k < count;) {
        size_t next = k + 1;
        while (next < count && order[begin + next] == order[begin + next - 1] + 1)
            next++;
        fill_planes(features, order[begin + k], next - k, planes + k, plane);
        k = next;
    }
}

void dcrf_features_row(const struct dcrf_features *features, size_t variable, float *row) {
    dcrf_features_planes(features, variable, 1, row, 1);
}

/* Variables whose channels are compared together, so that the loop has whole vectors. */
#define TOGETHER 16

static void widen(float *low, float *high, const float *value, size_t count) {
    for (size_t k = 0; k < count; k++) {
        low[k] = value[k] < low[k] ? value[k] : low[k];
        high[k] = value[k] > high[k] ? value[k] : high[k];
    }
}

/* Include the channels of all variables, but for a few last ones, in their ranges; of floats only.
 * Returns the number of variables included. */
static size_t widen_together(const struct dcrf_features *features, double *low, double *high) {
    const size_t channels = features->channels, count = TOGETHER * channels;
    float lows[TOGETHER * DCRF_MAX_FEATURES], highs[TOGETHER * DCRF_MAX_FEATURES];
    size_t done = 0;
    if (!features->channel || features->variables < TOGETHER)
        return 0;
    memcpy(lows, features->channel, count * sizeof *lows);
    memcpy(highs, features->channel, count * sizeof *highs);
    for (; features->variables - done >= TOGETHER; done += TOGETHER)
        widen(lows, highs, features->channel + done * channels, count);
    for (size_t k = 0; k < count; k++) {
        low[k % channels] = fmin(low[k % channels], (double)lows[k]);
        high[k % channels] = fmax(high[k % channels], (double)highs[k]);
    }
    return done;
}

void dcrf_features_range(const struct dcrf_features *features, float *least, float *largest) {
    const size_t axes = features->axes, channels = features->channels;
    for (size_t axis = 0; axis < axes; axis++) {
        const size_t from = features->origin[axis];
        least[axis] = feature(features, axis, (double)from);
        largest[axis] = feature(features, axis, (double)(from + features->grid.size[axis] - 1));
    }
    double low[DCRF_MAX_FEATURES], high[DCRF_MAX_FEATURES];
    for (size_t c = 0; c < channels; c++) {
        low[c] = features->bytes ? 0 : dcrf_features_channel(features, c);
        high[c] = features->bytes ? UINT8_MAX : low[c];
    }
    for (size_t a = widen_together(features, low, high);
         !features->bytes && a < features->variables; a++)
        for (size_t c = 0; c < channels; c++) {
            const double value = dcrf_features_channel(features, a * channels + c);
            low[c] = value < low[c] ? value : low[c];
            high[c] = value > high[c] ? value : high[c];
        }
    for (size_t c = 0; c < channels; c++) {
        least[axes + c] = feature(features, axes + c, low[c]);
        largest[axes + c] = feature(features, axes + c, high[c]);
    }
}

double dcrf_features_value(const struct dcrf_features *features, size_t variable, size_t i) {
    if (i >= features->axes)
        return dcrf_features_channel(features, variable * features->channels + i - features->axes);
    size_t position[DCRF_MAX_AXES];
    dcrf_grid_position(&features->grid, variable, position);
    return (double)(position[i] + features->origin[i]);
}

double dcrf_features_factor(const struct dcrf_features *features, size_t i) {
    return i < features->axes ? features->axis_factor[i]
                              : features->channel_factor[i - features->axes];
}

double dcrf_features_sigma(const struct dcrf_features *features, size_t i) {
    return (i < features->axes ? features->grid.spacing[i] : 1) / dcrf_features_factor(features, i);
}
