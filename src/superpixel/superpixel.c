/* The interface of superpixels: settings, checks, and what the methods share. */
#include "core/error.h"
#include "core/memory.h"
#include "core/workspace.h"
#include "model/view.h"
#include "superpixel/method.h"
#include "superpixel/regions.h"

#include <math.h>
#include <string.h>

/* Positions are floats, exact to 0.01 px up to here. */
#define MOST_PX_ALONG_AN_AXIS 100000
#define MOST_BANDWIDTH_PX 256
#define MOST_REGION_SIZE_PX 1024

/* ---- settings ------------------------------------------------------------------------------- */

static const char *const method_names[] = {"meanshift", "slic"};
#define METHOD_COUNT (sizeof method_names / sizeof method_names[0])

const char *dcrf_superpixel_method_name(dcrf_superpixel_method method) {
    return (size_t)method < METHOD_COUNT ? method_names[method] : NULL;
}

int dcrf_superpixel_method_from_name(const char *name, dcrf_superpixel_method *method) {
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (strcmp(name, method_names[i]) == 0) {
            *method = (dcrf_superpixel_method)i;
            return 1;
        }
    return 0;
}

void dcrf_superpixel_defaults(dcrf_superpixel_settings *settings) {
    *settings =
        (dcrf_superpixel_settings){.method = DCRF_SUPERPIXEL_MEAN_SHIFT,
                                   .min_region_px = 0,
                                   .spatial_bandwidth_px = DCRF_SUPERPIXEL_SPATIAL_BANDWIDTH_PX,
                                   .range_bandwidth = DCRF_SUPERPIXEL_RANGE_BANDWIDTH,
                                   .region_size_px = DCRF_SUPERPIXEL_REGION_SIZE_PX,
                                   .compactness = DCRF_SUPERPIXEL_COMPACTNESS,
                                   .iterations = DCRF_SUPERPIXEL_ITERATIONS};
}

/* ---- checks --------------------------------------------------------------------------------- */

static dcrf_status check_range(const char *name, double value, double least, double most,
                               dcrf_error *error) {
    if (value >= least && value <= most)
        return DCRF_OK;
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                     "the %s of the superpixels is %g; it must be between %g and %g", name, value,
                     least, most);
}

static dcrf_status check_settings(const dcrf_superpixel_settings *s, dcrf_error *error) {
    const double most_distance = 1000; /* beyond that of any two colours */
    dcrf_status status = DCRF_OK;
    switch (s->method) {
    case DCRF_SUPERPIXEL_MEAN_SHIFT:
        status =
            check_range("spatial bandwidth", s->spatial_bandwidth_px, 1, MOST_BANDWIDTH_PX, error);
        if (status >= 0)
            status = check_range("range bandwidth", s->range_bandwidth, 1.0 / DCRF_COLOUR_STEPS,
                                 most_distance, error);
        return status;
    case DCRF_SUPERPIXEL_SLIC:
        status = check_range("region size", s->region_size_px, 1, MOST_REGION_SIZE_PX, error);
        if (status >= 0)
            status = check_range("compactness", s->compactness, 0, most_distance, error);
        if (status >= 0 && s->iterations == 0)
            status = dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                               "the superpixels need at least one iteration");
        return status;
    }
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a method of superpixels",
                     (int)s->method);
}

/* A grid whose pixels have neighbours to the right and below. */
static dcrf_status check_plane(const dcrf_grid *grid, size_t *pixels, dcrf_error *error) {
    const dcrf_status status = dcrf_grid_check(grid, pixels, error);
    if (status < 0)
        return status;
    if (grid->axes > 2)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "superpixels are for grids of one or two axes, not of %zu", grid->axes);
    return DCRF_OK;
}

static dcrf_status check_image(const dcrf_grid *grid, const dcrf_view *image, dcrf_error *error) {
    if (grid->size[0] > MOST_PX_ALONG_AN_AXIS || grid->size[1] > MOST_PX_ALONG_AN_AXIS)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "superpixels are for images of at most %d pixels along an axis, not of "
                         "%zu x %zu",
                         MOST_PX_ALONG_AN_AXIS, grid->size[0], grid->size[1]);
    if (!image)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the image of the superpixels is missing");
    if (image->channels != 1 && image->channels != 3)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "the image of the superpixels has %zu channels; it must have 1 (grey) or "
                         "3 (sRGB)",
                         image->channels);
    return DCRF_OK;
}

/* ---- superpixels ---------------------------------------------------------------------------- */

static size_t least_region_px(const dcrf_superpixel_settings *s) {
    if (s->min_region_px > 0)
        return s->min_region_px;
    if (s->method == DCRF_SUPERPIXEL_MEAN_SHIFT)
        return DCRF_SUPERPIXEL_MIN_REGION_PX;
    return (size_t)(s->region_size_px * s->region_size_px / 4);
}

static dcrf_status find_regions(const dcrf_grid *grid, const dcrf_view *image,
                                const dcrf_superpixel_settings *settings, dcrf_pool *pool,
                                int32_t *regions, size_t *count, dcrf_error *error) {
    const bool slic = settings->method == DCRF_SUPERPIXEL_SLIC;
    struct dcrf_colours colours;
    dcrf_status status = dcrf_colours_new(&colours, grid, image,
                                          slic ? DCRF_COLOUR_LAB : DCRF_COLOUR_LUV, pool, error);
    if (status < 0)
        return status;
    status = (slic ? dcrf_slic : dcrf_mean_shift)(&colours, settings, pool, regions, count, error);
    if (status >= 0)
        status =
            dcrf_regions_join_small(regions, count, &colours, least_region_px(settings), error);
    dcrf_colours_clear(&colours);
    return status;
}

dcrf_status dcrf_superpixels(const dcrf_grid *grid, const dcrf_view *image,
                             const dcrf_superpixel_settings *settings, dcrf_workspace *workspace,
                             int32_t *regions, size_t *count, dcrf_error *error) {
    dcrf_superpixel_settings used;
    size_t pixels, found;
    dcrf_superpixel_defaults(&used);
    if (settings)
        used = *settings;
    dcrf_status status = check_plane(grid, &pixels, error);
    if (status >= 0)
        status = check_image(grid, image, error);
    if (status >= 0)
        status = check_settings(&used, error);
    if (status < 0)
        return status;
    int32_t *numbers = dcrf_allocate(pixels, sizeof *numbers);
    if (!numbers)
        return dcrf_fail_memory(error, "the superpixels");
    status =
        find_regions(grid, image, &used, dcrf_workspace_pool(workspace), numbers, &found, error);
    if (status >= 0) {
        memcpy(regions, numbers, pixels * sizeof *regions);
        *count = found;
    }
    dcrf_release(numbers);
    return status;
}

dcrf_status dcrf_region_boundaries(const dcrf_grid *grid, const int32_t *regions, uint8_t *boundary,
                                   dcrf_error *error) {
    size_t pixels;
    const dcrf_status status = check_plane(grid, &pixels, error);
    if (status < 0)
        return status;
    const size_t width = grid->size[0], height = grid->size[1];
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            const int32_t *here = &regions[y * width + x];
            boundary[y * width + x] =
                (x + 1 < width && here[0] != here[1]) || (y + 1 < height && here[0] != here[width]);
        }
    return DCRF_OK;
}
