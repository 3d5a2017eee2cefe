/* The public superpixel functions: settings, checks, and what the methods share. */
#include "core/error.h"
#include "core/owned.h"
#include "core/workspace.h"
#include "model/view.h"
#include "superpixel/method.h"
#include "superpixel/regions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Positions are floats, accurate to 0.01 px up to here. */
#define MOST_PX_ALONG_AN_AXIS 100000
#define MOST_BANDWIDTH_PX 256
#define MOST_REGION_SIZE_PX 1024

/* ---- settings ------------------------------------------------------------------------------- */

void dcrf_superpixel_settings_defaults(dcrf_superpixel_settings *settings) {
    if (!settings)
        return;
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

static dcrf_status check_settings(const dcrf_superpixel_settings *s, const dcrf_grid *grid,
                                  dcrf_error *error) {
    const double most_distance = 1000; /* more than between any two colours */
    TRY(dcrf_check_reserved(s->reserved, sizeof s->reserved, "the settings of superpixels", error));
    switch (s->method) {
    case DCRF_SUPERPIXEL_MEAN_SHIFT:
        if (grid->axes > 2)
            return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                             "mean shift is for grids of one or two axes, not of %zu; SLIC makes "
                             "superpixels of volumes",
                             grid->axes);
        TRY(check_range("spatial bandwidth", s->spatial_bandwidth_px, 1, MOST_BANDWIDTH_PX, error));
        return check_range("range bandwidth", s->range_bandwidth, 1.0 / DCRF_COLOUR_STEPS,
                           most_distance, error);
    case DCRF_SUPERPIXEL_SLIC:
        TRY(check_range("region size", s->region_size_px, 1, MOST_REGION_SIZE_PX, error));
        TRY(check_range("compactness", s->compactness, 0, most_distance, error));
        return s->iterations > 0 ? DCRF_OK
                                 : dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                                             "the superpixels need at least one iteration");
    }
    return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a method of superpixels",
                     (int)s->method);
}

static dcrf_status check_image(const dcrf_grid *grid, const dcrf_view *image, dcrf_error *error) {
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        if (grid->size[axis] > MOST_PX_ALONG_AN_AXIS)
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "superpixels are for images of at most %d pixels along an axis, not "
                             "of %zu x %zu x %zu",
                             MOST_PX_ALONG_AN_AXIS, grid->size[0], grid->size[1], grid->size[2]);
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

/* The distance between neighbours along each axis: 1 in images, in units of the smallest spacing in
 * volumes. */
static void find_steps(const dcrf_grid *grid, double step[DCRF_MAX_AXES]) {
    const double smallest = dcrf_grid_least_spacing(grid);
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        step[axis] = grid->axes > 2 ? grid->spacing[axis] / smallest : 1;
}

static size_t least_region_px(const dcrf_superpixel_settings *s, const dcrf_grid *grid,
                              const double step[DCRF_MAX_AXES]) {
    if (s->min_region_px > 0)
        return s->min_region_px;
    if (s->method == DCRF_SUPERPIXEL_MEAN_SHIFT)
        return DCRF_SUPERPIXEL_MIN_REGION_PX;
    const double size = s->region_size_px;
    const double usual =
        grid->axes > 2 ? size * size * size / (step[0] * step[1] * step[2]) : size * size;
    return (size_t)fmax(usual / 4, 1);
}

static dcrf_status find_regions(const dcrf_grid *grid, const dcrf_view *image,
                                const dcrf_superpixel_settings *settings, dcrf_workspace *workspace,
                                int32_t *regions, size_t *count, dcrf_error *error) {
    const bool slic = settings->method == DCRF_SUPERPIXEL_SLIC;
    DCRF_AT_END(dcrf_colours_clear) struct dcrf_colours colours = {0};
    double step[DCRF_MAX_AXES];
    find_steps(grid, step);
    TRY(dcrf_colours_new(&colours, grid, image, slic ? DCRF_COLOUR_LAB : DCRF_COLOUR_LUV,
                         dcrf_workspace_pool(workspace), error));
    TRY(slic ? dcrf_slic(&colours, step, settings, workspace, regions, count, error)
             : dcrf_mean_shift(&colours, settings, workspace, regions, count, error));
    TRY(dcrf_go_on(workspace, DCRF_FINDING, error));
    return dcrf_regions_join_small(regions, count, &colours, least_region_px(settings, grid, step),
                                   workspace, error);
}

/* ---- volumes -------------------------------------------------------------------------------- */

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The values below and above which a fraction DCRF_SUPERPIXEL_OUTLIERS of the voxels lies, found by
 * sorting regularly spaced samples. */
static dcrf_status find_scale(const float *values, size_t count, float *low, float *high,
                              dcrf_error *error) {
    const size_t most = (size_t)1 << 20, every = (count - 1) / most + 1;
    const size_t taken = (count - 1) / every + 1;
    DCRF_SCOPED float *sorted = dcrf_allocate(taken, sizeof *sorted);
    if (!sorted)
        return dcrf_fail_memory(error, "the scale of a volume");
    for (size_t i = 0; i < taken; i++)
        sorted[i] = values[i * every];
    qsort(sorted, taken, sizeof *sorted, compare_floats);
    const size_t outliers = (size_t)(DCRF_SUPERPIXEL_OUTLIERS * (double)taken);
    *low = sorted[outliers];
    *high = sorted[taken - 1 - outliers];
    return DCRF_OK;
}

/* Intensities have no scale of their own: map them to 0 to 255. */
static dcrf_status find_regions_of_intensities(const dcrf_grid *grid, const dcrf_view *image,
                                               const dcrf_superpixel_settings *settings,
                                               dcrf_workspace *workspace, int32_t *regions,
                                               size_t *count, dcrf_error *error) {
    const size_t voxels = grid->size[0] * grid->size[1] * grid->size[2];
    DCRF_SCOPED float *values = dcrf_allocate(voxels, sizeof *values);
    float low = 0, high = 0;
    if (!values)
        return dcrf_fail_memory(error, "the volume of the superpixels");
    TRY(dcrf_view_copy(image, grid, "the volume of the superpixels", NULL, values, 1, error));
    TRY(find_scale(values, voxels, &low, &high, error));
    const double width = (double)high - (double)low;
    for (size_t a = 0; a < voxels; a++) {
        const double part = width > 0 ? ((double)values[a] - (double)low) / width : 0;
        values[a] = (float)(255 * fmin(fmax(part, 0), 1));
    }
    const dcrf_view scaled = dcrf_view_interleaved(values, DCRF_F32, grid, 1);
    return find_regions(grid, &scaled, settings, workspace, regions, count, error);
}

/* ---- the interface -------------------------------------------------------------------------- */

dcrf_status dcrf_superpixels(const dcrf_grid *grid, const dcrf_view *image,
                             const dcrf_superpixel_settings *settings, dcrf_workspace *workspace,
                             int32_t *regions, size_t count, size_t *region_count,
                             dcrf_error *error) {
    DCRF_ENTER(workspace, error);
    dcrf_superpixel_settings used;
    size_t pixels, found;
    dcrf_superpixel_settings_defaults(&used);
    if (settings)
        used = *settings;
    TRY(dcrf_grid_check(grid, &pixels, error));
    TRY(check_image(grid, image, error));
    TRY(check_settings(&used, grid, error));
    TRY(dcrf_check_room(regions, count, pixels, "the regions", error));
    DCRF_SCOPED int32_t *numbers = dcrf_allocate(pixels, sizeof *numbers);
    if (!numbers)
        return dcrf_fail_memory(error, "the superpixels");
    TRY((grid->axes > 2 && image->channels == 1 ? find_regions_of_intensities : find_regions)(
        grid, image, &used, workspace, numbers, &found, error));
    memcpy(regions, numbers, pixels * sizeof *regions);
    *region_count = found;
    return DCRF_OK;
}

dcrf_status dcrf_region_boundaries(const dcrf_grid *grid, const int32_t *regions, uint8_t *boundary,
                                   size_t count, dcrf_error *error) {
    size_t pixels;
    TRY(dcrf_grid_check(grid, &pixels, error));
    TRY(dcrf_check_room(boundary, count, pixels, "the boundaries", error));
    const size_t width = grid->size[0], slice = width * grid->size[1];
    for (size_t a = 0; a < pixels; a++)
        boundary[a] = ((a + 1) % width != 0 && regions[a] != regions[a + 1]) ||
                      (a % slice + width < slice && regions[a] != regions[a + width]) ||
                      (a + slice < pixels && regions[a] != regions[a + slice]);
    return DCRF_OK;
}
