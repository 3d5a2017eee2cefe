/* The methods of superpixels against their definitions: mean shift, SLIC, and SLIC of volumes. */
#include "superpixel_oracle.h"
#include "superpixel_pictures.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

static void assert_regions(const struct picture *p, const dcrf_superpixel_settings *settings,
                           size_t threads, const int32_t *expected, size_t expected_count) {
    size_t count;
    int32_t *regions = regions_of(p, settings, threads, &count);
    assert_int_equal(count, expected_count);
    assert_memory_equal(regions, expected, p->pixels * sizeof *regions);
    free(regions);
}

/* ---- mean shift against its definition ------------------------------------------------------ */

static void compare_mean_shift(enum kind kind, size_t width, size_t height, double spatial,
                               double range, size_t min_region_px) {
    const struct picture p = picture_of(kind, width, height);
    struct dcrf_colours luv = colours_of(&p, DCRF_COLOUR_LUV);
    dcrf_superpixel_settings settings = settings_of(DCRF_SUPERPIXEL_MEAN_SHIFT, min_region_px);
    settings.spatial_bandwidth_px = spatial;
    settings.range_bandwidth = range;

    struct dcrf_mode *modes = malloc(p.pixels * sizeof *modes);
    struct dcrf_mode *wanted = oracle_modes(&luv, (float)spatial, (float)range);
    /* Bit-identical for every instruction set: sums are exact, and everything else is one operation
     * on the same floats. */
    const dcrf_cpu before = dcrf_cpu_in_use();
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    for (dcrf_cpu cpu = DCRF_CPU_C; dcrf_cpu_name(cpu); cpu++) {
        if (dcrf_cpu_limit(cpu, NULL) < 0)
            continue;
        memset(modes, 0, p.pixels * sizeof *modes);
        assert_int_equal(dcrf_mean_shift_modes(&luv, &settings, workspace, modes, NULL), DCRF_OK);
        assert_memory_equal(modes, wanted, p.pixels * sizeof *modes);
    }
    dcrf_workspace_free(&workspace);
    assert_int_equal(dcrf_cpu_limit(before, NULL), DCRF_OK);

    int32_t *expected = malloc(p.pixels * sizeof *expected);
    oracle_fuse(wanted, width, height, (float)spatial, (float)range, expected);
    const size_t expected_count = oracle_join(&luv, min_region_px, expected);
    assert_regions(&p, &settings, 2, expected, expected_count);

    free(expected);
    free(wanted);
    free(modes);
    dcrf_colours_clear(&luv);
    free(p.rgb);
}

static void mean_shift_is_what_it_says(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        compare_mean_shift((enum kind)kind, 23, 17, 8, 4, 10);
        compare_mean_shift((enum kind)kind, 16, 21, 3.3, 9.7, 5);
        compare_mean_shift((enum kind)kind, 40, 1, 8, 6, 3);
        compare_mean_shift((enum kind)kind, 1, 30, 2, 6, 4);
    }
    compare_mean_shift(NOISE, 20, 20, 8, 60, 1);
    compare_mean_shift(NOISE, 20, 20, 1, 1.0 / 64, 7);
    /* A window with more rows than one exact float sum can have. */
    compare_mean_shift(PATCHES, 14, 90, 60, 90, 10);
}

/* ---- SLIC against its definition ------------------------------------------------------------ */

static void compare_slic(enum kind kind, size_t width, size_t height, double size_px,
                         double compactness, size_t min_region_px) {
    const struct picture p = picture_of(kind, width, height);
    struct dcrf_colours lab = colours_of(&p, DCRF_COLOUR_LAB);
    dcrf_superpixel_settings settings = settings_of(DCRF_SUPERPIXEL_SLIC, min_region_px);
    settings.region_size_px = size_px;
    settings.compactness = compactness;
    int32_t *expected = malloc(p.pixels * sizeof *expected);
    oracle_slic(&lab, (double[]){1, 1, 1}, size_px, compactness, settings.iterations, expected);
    const size_t expected_count = oracle_join(&lab, min_region_px, expected);
    assert_regions(&p, &settings, 2, expected, expected_count);
    free(expected);
    dcrf_colours_clear(&lab);
    free(p.rgb);
}

static void slic_is_what_it_says(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        compare_slic((enum kind)kind, 33, 27, 6, 10, 9);
        compare_slic((enum kind)kind, 20, 35, 4.6, 0, 3);
        compare_slic((enum kind)kind, 30, 1, 5, 20, 2);
        compare_slic((enum kind)kind, 9, 7, 100, 10, 4);
    }
    compare_slic(NOISE, 12, 12, 1, 10, 1);
}

/* A volume of blobs, noise or one intensity, with its own scale and spacing. */
static void compare_volume(enum kind kind, dcrf_grid grid, double size_px, double compactness,
                           size_t min_region_px) {
    const size_t slice = grid.size[0] * grid.size[1], voxels = slice * grid.size[2];
    uint8_t *rgb = draw(kind, grid.size[0], grid.size[1] * grid.size[2], (uint32_t)kind + 3);
    float *intensities = malloc(voxels * sizeof *intensities);
    float *stretched = malloc(voxels * sizeof *stretched);
    for (size_t a = 0; a < voxels; a++)
        intensities[a] = 10 * (float)rgb[3 * a] - 1000;
    /* Fewer than 200 voxels, so that none counts as an outlier: the scale is that of the
     * extremes. */
    assert_true((size_t)(DCRF_SUPERPIXEL_OUTLIERS * (double)voxels) == 0);
    float low = INFINITY, high = -INFINITY;
    for (size_t a = 0; a < voxels; a++) {
        low = fminf(low, intensities[a]);
        high = fmaxf(high, intensities[a]);
    }
    for (size_t a = 0; a < voxels; a++)
        stretched[a] = high > low ? (float)(255 * (((double)intensities[a] - (double)low) /
                                                   ((double)high - (double)low)))
                                  : 0;
    double step[3], smallest = fmin(grid.spacing[0], fmin(grid.spacing[1], grid.spacing[2]));
    for (size_t axis = 0; axis < 3; axis++)
        step[axis] = grid.spacing[axis] / smallest;

    struct picture p = {.grid = grid, .pixels = voxels};
    p.view = dcrf_view_interleaved(stretched, DCRF_F32, &grid, 1);
    struct dcrf_colours lab = colours_of(&p, DCRF_COLOUR_LAB);
    dcrf_superpixel_settings settings = settings_of(DCRF_SUPERPIXEL_SLIC, min_region_px);
    settings.region_size_px = size_px;
    settings.compactness = compactness;
    int32_t *expected = malloc(voxels * sizeof *expected);
    oracle_slic(&lab, step, size_px, compactness, settings.iterations, expected);
    const size_t expected_count = oracle_join(&lab, min_region_px, expected);
    p.view = dcrf_view_interleaved(intensities, DCRF_F32, &grid, 1);
    for (size_t threads = 1; threads <= 3; threads++)
        assert_regions(&p, &settings, threads, expected, expected_count);
    assert_int_equal(oracle_check_regions(expected, grid.size), expected_count);
    free(expected);
    dcrf_colours_clear(&lab);
    free(stretched);
    free(intensities);
    free(rgb);
}

static void slic_of_volumes_is_what_it_says(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        compare_volume((enum kind)kind, dcrf_grid_3d(7, 5, 5), 3, 10, 4);
        dcrf_grid grid = dcrf_grid_3d(9, 7, 3);
        grid.spacing[0] = 0.7;
        grid.spacing[1] = 0.5;
        grid.spacing[2] = 3;
        compare_volume((enum kind)kind, grid, 2.3, 20, 3);
        compare_volume((enum kind)kind, dcrf_grid_3d(1, 1, 190), 6, 5, 2);
        compare_volume((enum kind)kind, dcrf_grid_3d(13, 1, 15), 4, 0, 1);
    }
}

/* Eight flat boxes with noise, far apart in intensity: all are found, whatever the scale, and
 * outliers change nothing. */
static void boxes_of_a_volume_are_found(void **state) {
    (void)state;
    enum { SIDE = 16 };
    static const float levels[8] = {0, 200, 400, 600, 800, 1000, 1200, 1400};
    const dcrf_grid grid = dcrf_grid_3d(2 * SIDE, 2 * SIDE, 2 * SIDE);
    struct picture p = {.grid = grid, .pixels = (size_t)8 * SIDE * SIDE * SIDE};
    int16_t *values = malloc(p.pixels * sizeof *values);
    size_t *box = malloc(p.pixels * sizeof *box);
    uint32_t random = 5;
    for (size_t a = 0; a < p.pixels; a++) {
        const size_t x = a % (2 * SIDE), y = a / (2 * SIDE) % (2 * SIDE);
        const size_t z = a / (2 * SIDE) / (2 * SIDE);
        box[a] = x / SIDE + 2 * (y / SIDE) + 4 * (z / SIDE);
        values[a] = (int16_t)(levels[box[a]] + (float)(next_random(&random) % 20));
    }
    for (size_t i = 0; i < 20;
         i++) /* below half a percent of 32768; the last box is the brightest */
        values[p.pixels - 1 - 3 * (i % 5) - 2 * SIDE * (i / 5)] = 30000;
    p.view = dcrf_view_interleaved(values, DCRF_I16, &grid, 1);
    dcrf_superpixel_settings settings = settings_of(DCRF_SUPERPIXEL_SLIC, 0);
    size_t count;
    int32_t *regions = regions_of(&p, &settings, 2, &count);
    assert_int_equal(count, 8);
    for (size_t a = 0; a < p.pixels; a++)
        assert_int_equal(regions[a], box[a]);

    /* Boundaries lie between them, on the near side of each axis. */
    uint8_t *boundary = malloc(p.pixels);
    dcrf_error error;
    assert_int_equal(dcrf_region_boundaries(&grid, regions, boundary, p.pixels, &error), DCRF_OK);
    for (size_t a = 0; a < p.pixels; a++)
        assert_int_equal(boundary[a], a % (2 * SIDE) == SIDE - 1 ||
                                          a / (2 * SIDE) % (2 * SIDE) == SIDE - 1 ||
                                          a / (2 * SIDE) / (2 * SIDE) == SIDE - 1);
    free(boundary);
    free(regions);
    free(box);
    free(values);
}

static void slic_gives_about_as_many_regions_as_asked(void **state) {
    (void)state;
    static const enum kind kinds[] = {CONSTANT, GRADIENT, FIELDS};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (double size_px = 8; size_px <= 20; size_px += 4) {
            const struct picture p = picture_of(kinds[i], 160, 120);
            dcrf_superpixel_settings settings = settings_of(DCRF_SUPERPIXEL_SLIC, 0);
            settings.region_size_px = size_px;
            size_t count;
            free(regions_of(&p, &settings, 1, &count));
            const double asked = 160 * 120 / (size_px * size_px);
            assert_true(fabs((double)count - asked) <= 0.15 * asked);
            free(p.rgb);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_shift_is_what_it_says),
        cmocka_unit_test(slic_is_what_it_says),
        cmocka_unit_test(slic_of_volumes_is_what_it_says),
        cmocka_unit_test(boxes_of_a_volume_are_found),
        cmocka_unit_test(slic_gives_about_as_many_regions_as_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
