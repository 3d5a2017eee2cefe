/* Superpixels: colours against published values, and what every result must be (a numbered
 * partition into connected regions of at least the minimum size), on pictures of many kinds. The
 * methods themselves are tested in test_superpixel_methods.c. */
#include "superpixel_oracle.h"
#include "superpixel_pictures.h"
#include "unit.h"

#include "core/memory.h"
#include "superpixel/regions.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>

/* ---- colours -------------------------------------------------------------------------------- */

static void colours_have_their_published_values(void **state) {
    (void)state;
    /* sRGB primaries and others under D65, to the four decimals given in tables. The matrix has
     * seven digits, so the tolerance of 0.001 is that of the tables. */
    static const struct {
        float rgb[3];
        double luv[3], lab[3];
    } known[] = {
        {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
        {{255, 255, 255}, {100, 0, 0}, {100, 0, 0}},
        {{255, 0, 0}, {53.2408, 175.0151, 37.7564}, {53.2408, 80.0925, 67.2032}},
        {{0, 255, 0}, {87.7347, -83.0776, 107.3985}, {87.7347, -86.1827, 83.1793}},
        {{0, 0, 255}, {32.2970, -9.4054, -130.3423}, {32.2970, 79.1875, -107.8602}},
        {{128, 128, 128}, {53.5850, 0, 0}, {53.5850, 0, 0}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double luv[3], lab[3];
        dcrf_colour_convert(known[i].rgb, DCRF_COLOUR_LUV, luv);
        dcrf_colour_convert(known[i].rgb, DCRF_COLOUR_LAB, lab);
        for (size_t c = 0; c < 3; c++) {
            assert_true(fabs(luv[c] - known[i].luv[c]) < 1e-3);
            assert_true(fabs(lab[c] - known[i].lab[c]) < 1e-3);
        }
    }
}

static void images_are_converted_and_rounded(void **state) {
    (void)state;
    const struct picture p = picture_of(NOISE, 13, 9);
    const struct dcrf_colours luv = colours_of(&p, DCRF_COLOUR_LUV);
    for (size_t a = 0; a < p.pixels; a++) {
        const float rgb[3] = {p.rgb[3 * a], p.rgb[3 * a + 1], p.rgb[3 * a + 2]};
        double wanted[3];
        dcrf_colour_convert(rgb, DCRF_COLOUR_LUV, wanted);
        for (size_t c = 0; c < 3; c++) {
            const double got = (double)luv.plane[c][a / 13 * luv.stride + a % 13];
            assert_true(fabs(got - wanted[c]) <= 0.5 / DCRF_COLOUR_STEPS + 1e-9);
            assert_true(got * DCRF_COLOUR_STEPS == nearbyint(got * DCRF_COLOUR_STEPS));
        }
    }
    struct dcrf_colours clear = luv;
    dcrf_colours_clear(&clear);
    free(p.rgb);
}

static void no_colour_exceeds_the_bound_of_exact_sums(void **state) {
    (void)state;
    /* Extremes lie on the surface of the cube. */
    for (int face = 0; face < 6; face++)
        for (int i = 0; i <= 255; i += 15)
            for (int j = 0; j <= 255; j += 15) {
                float rgb[3];
                rgb[face / 2] = face % 2 ? 255 : 0;
                rgb[(face / 2 + 1) % 3] = (float)i;
                rgb[(face / 2 + 2) % 3] = (float)j;
                for (int space = DCRF_COLOUR_LUV; space <= DCRF_COLOUR_LAB; space++) {
                    double out[3];
                    dcrf_colour_convert(rgb, (enum dcrf_colour_space)space, out);
                    for (int c = 0; c < 3; c++)
                        assert_true(fabs(out[c]) < DCRF_COLOUR_MOST - 1);
                }
            }
}

/* ---- what every result is ------------------------------------------------------------------- */

static void check_result(const struct picture *p, const dcrf_superpixel_settings *settings,
                         size_t least_px) {
    size_t count;
    int32_t *regions = regions_of(p, settings, 2, &count);
    assert_int_equal(oracle_check_regions(regions, p->grid.size), count);
    size_t *sizes = calloc(count, sizeof *sizes);
    for (size_t a = 0; a < p->pixels; a++)
        sizes[regions[a]]++;
    for (size_t r = 0; count > 1 && r < count; r++)
        assert_true(sizes[r] >= least_px);
    free(sizes);
    free(regions);
}

static void regions_are_connected_and_large_enough(void **state) {
    (void)state;
    static const size_t shapes[][2] = {{1, 1}, {2, 1}, {1, 2}, {1, 50}, {50, 1}, {4, 4}, {61, 47}};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            const struct picture p = picture_of((enum kind)kind, shapes[i][0], shapes[i][1]);
            for (int method = 0; method <= DCRF_SUPERPIXEL_SLIC; method++) {
                dcrf_superpixel_settings s = settings_of((dcrf_superpixel_method)method, 0);
                check_result(&p, &s, method == DCRF_SUPERPIXEL_SLIC ? 64 : 20);
                s.min_region_px = 1;
                check_result(&p, &s, 1);
                s.min_region_px = 200;
                check_result(&p, &s, 200);
                s.min_region_px = SIZE_MAX;
                check_result(&p, &s, SIZE_MAX);
            }
            free(p.rgb);
        }
}

static void threads_do_not_matter(void **state) {
    (void)state;
    static const size_t threads[] = {2, 3, 8};
    const struct picture p = picture_of(PATCHES, 97, 71);
    for (int method = 0; method <= DCRF_SUPERPIXEL_SLIC; method++) {
        const dcrf_superpixel_settings s = settings_of((dcrf_superpixel_method)method, 0);
        size_t count, other_count;
        int32_t *one = regions_of(&p, &s, 1, &count);
        for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
            int32_t *other = regions_of(&p, &s, threads[i], &other_count);
            assert_int_equal(count, other_count);
            assert_memory_equal(one, other, p.pixels * sizeof *one);
            free(other);
        }
        free(one);
    }
    free(p.rgb);
}

static void layouts_and_types_do_not_matter(void **state) {
    (void)state;
    const struct picture p = picture_of(PATCHES, 31, 22);
    struct picture planar = p, grey = p, grey_rgb = p;
    float *floats = malloc(p.pixels * 3 * sizeof *floats);
    uint8_t *repeated = malloc(p.pixels * 3);
    for (size_t i = 0; i < p.pixels * 3; i++) {
        floats[i % 3 * p.pixels + i / 3] = (float)p.rgb[i];
        repeated[i] = p.rgb[i / 3];
    }
    planar.view = dcrf_view_planar(floats, DCRF_F32, &p.grid, 3);
    grey.view = dcrf_view_interleaved(p.rgb, DCRF_U8, &p.grid, 1);
    grey_rgb.view = dcrf_view_interleaved(repeated, DCRF_U8, &p.grid, 3);
    const struct picture *pairs[][2] = {{&p, &planar}, {&grey, &grey_rgb}};
    for (size_t i = 0; i < 2; i++) {
        size_t count, other_count;
        int32_t *one = regions_of(pairs[i][0], NULL, 1, &count);
        int32_t *other = regions_of(pairs[i][1], NULL, 1, &other_count);
        assert_true(count > 1);
        assert_int_equal(count, other_count);
        assert_memory_equal(one, other, p.pixels * sizeof *one);
        free(one);
        free(other);
    }
    free(floats);
    free(repeated);
    free(p.rgb);
}

/* ---- regions and boundaries ----------------------------------------------------------------- */

static void ties_go_to_the_first(void **state) {
    (void)state;
    /* 0 0 1 2 2, all of one colour: region 1 joins 0; of two small regions the first is joined
     * first. */
    const struct picture p = picture_of(CONSTANT, 5, 1);
    struct dcrf_colours luv = colours_of(&p, DCRF_COLOUR_LUV);
    dcrf_error error;
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, &error), DCRF_OK);
    int32_t regions[] = {0, 0, 1, 2, 2};
    size_t count = 3;
    assert_int_equal(dcrf_regions_join_small(regions, &count, &luv, 2, workspace, &error), DCRF_OK);
    assert_int_equal(count, 2);
    assert_memory_equal(regions, ((int32_t[]){0, 0, 0, 1, 1}), sizeof regions);

    int32_t singles[] = {0, 1, 2, 3, 4}; /* 0 joins 1, then each of the others joins them */
    count = 5;
    assert_int_equal(dcrf_regions_join_small(singles, &count, &luv, 2, workspace, &error), DCRF_OK);
    assert_int_equal(count, 1);
    assert_memory_equal(singles, ((int32_t[]){0, 0, 0, 0, 0}), sizeof singles);
    dcrf_workspace_free(&workspace);
    dcrf_colours_clear(&luv);
    free(p.rgb);
}

static void boundaries_lie_between_regions(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(4, 3), volume = dcrf_grid_3d(2, 2, 2);
    const int32_t regions[] = {0, 0, 1, 1, 0, 2, 2, 1, 0, 2, 2, 1};
    const uint8_t expected[] = {0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0};
    uint8_t boundary[12];
    dcrf_error error;
    assert_int_equal(dcrf_region_boundaries(&grid, regions, boundary, sizeof boundary, &error),
                     DCRF_OK);
    assert_memory_equal(boundary, expected, sizeof expected);
    const int32_t deep[] = {0, 0, 1, 1, 0, 2, 1, 1};
    const uint8_t behind[] = {1, 1, 0, 0, 1, 1, 0, 0};
    assert_int_equal(dcrf_region_boundaries(&volume, deep, boundary, sizeof boundary, &error),
                     DCRF_OK);
    assert_memory_equal(boundary, behind, sizeof behind);
    assert_fails(DCRF_ERROR_SIZE, "the boundaries: the array holds 11 elements, 12 are needed",
                 error, dcrf_region_boundaries(&grid, regions, boundary, 11, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_region_boundaries(&grid, regions, NULL, 12, &error));
    assert_memory_equal(boundary, behind, sizeof behind);
}

/* ---- settings and errors -------------------------------------------------------------------- */

static void defaults_set_every_field(void **state) {
    (void)state;
    for (int junk = 0; junk <= 0xff; junk += 0x55) {
        dcrf_superpixel_settings s;
        memset(&s, junk, sizeof s);
        dcrf_superpixel_settings_defaults(&s);
        assert_int_equal(s.method, DCRF_SUPERPIXEL_MEAN_SHIFT);
        assert_int_equal(s.min_region_px, 0);
        assert_true(s.spatial_bandwidth_px == 8 && s.range_bandwidth == 4);
        assert_true(s.region_size_px == 16 && s.compactness == 10);
        assert_int_equal(s.iterations, 10);
        for (size_t i = 0; i < sizeof s.reserved; i++)
            assert_int_equal(s.reserved[i], 0);
    }
}

static void methods_have_names(void **state) {
    (void)state;
    for (int method = 0; method <= DCRF_SUPERPIXEL_SLIC; method++) {
        dcrf_superpixel_method found = (dcrf_superpixel_method)77;
        const char *name = dcrf_superpixel_method_name((dcrf_superpixel_method)method);
        assert_int_equal(dcrf_superpixel_method_from_name(name, &found), 1);
        assert_int_equal(found, method);
    }
    dcrf_superpixel_method untouched = DCRF_SUPERPIXEL_SLIC;
    assert_int_equal(dcrf_superpixel_method_from_name("kmeans", &untouched), 0);
    assert_int_equal(untouched, DCRF_SUPERPIXEL_SLIC);
    assert_null(dcrf_superpixel_method_name((dcrf_superpixel_method)2));
    assert_null(dcrf_superpixel_method_name((dcrf_superpixel_method)-1));
}

static void bad_input_is_refused_and_changes_nothing(void **state) {
    (void)state;
    enum { WIDTH = 3, HEIGHT = 2 };
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT), volume = dcrf_grid_3d(WIDTH, 1, HEIGHT);
    const dcrf_grid empty = dcrf_grid_2d(0, 5), line = dcrf_grid_1d(100001);
    float image[WIDTH * HEIGHT * 3] = {0};
    const dcrf_view view = dcrf_view_interleaved(image, DCRF_F32, &grid, 3);
    const dcrf_view two = dcrf_view_interleaved(image, DCRF_F32, &grid, 2);
    const dcrf_view nothing = dcrf_view_interleaved(NULL, DCRF_F32, &grid, 3);
    int32_t regions[WIDTH * HEIGHT], before[WIDTH * HEIGHT];
    size_t room = WIDTH * HEIGHT, count = 77;
    dcrf_workspace *workspace = NULL;
    dcrf_error error;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, &error), DCRF_OK);
    memset(regions, 0x33, sizeof regions);
    memcpy(before, regions, sizeof before);
#define REFUSED(status, text, grid, view, settings)                                                \
    assert_fails(status, text, error,                                                              \
                 dcrf_superpixels(grid, view, settings, workspace, regions, room, &count, &error))

    REFUSED(DCRF_ERROR_UNSUPPORTED, "not of 3", &volume, &view, NULL);
    REFUSED(DCRF_ERROR_SIZE, "empty", &empty, &view, NULL);
    REFUSED(DCRF_ERROR_SIZE, "at most 100000", &line, &view, NULL);
    REFUSED(DCRF_ERROR_ARGUMENT, "no grid", NULL, &view, NULL);
    REFUSED(DCRF_ERROR_ARGUMENT, "missing", &grid, NULL, NULL);
    REFUSED(DCRF_ERROR_ARGUMENT, "no data", &grid, &nothing, NULL);
    REFUSED(DCRF_ERROR_UNSUPPORTED, "2 channels", &grid, &two, NULL);
    image[4] = NAN;
    REFUSED(DCRF_ERROR_NOT_FINITE, "x = 1, y = 0, channel 1", &grid, &view, NULL);
    image[4] = 255.5f;
    REFUSED(DCRF_ERROR_ARGUMENT, "255.5 at x = 1, y = 0, channel 1", &grid, &view, NULL);
    image[4] = 0;
    image[17] = -1;
    REFUSED(DCRF_ERROR_ARGUMENT, "-1 at x = 2, y = 1, channel 2", &grid, &view, NULL);
    image[17] = 0;

    static const struct {
        dcrf_superpixel_method method;
        size_t offset;
        double values[3];
        const char *name;
    } fields[] = {
        {DCRF_SUPERPIXEL_MEAN_SHIFT,
         offsetof(dcrf_superpixel_settings, spatial_bandwidth_px),
         {0, 257, NAN},
         "spatial bandwidth"},
        {DCRF_SUPERPIXEL_MEAN_SHIFT,
         offsetof(dcrf_superpixel_settings, range_bandwidth),
         {0, -4, INFINITY},
         "range bandwidth"},
        {DCRF_SUPERPIXEL_SLIC,
         offsetof(dcrf_superpixel_settings, region_size_px),
         {0.5, 1025, NAN},
         "region size"},
        {DCRF_SUPERPIXEL_SLIC,
         offsetof(dcrf_superpixel_settings, compactness),
         {-1, INFINITY, NAN},
         "compactness"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        for (size_t k = 0; k < 3; k++) {
            dcrf_superpixel_settings s = settings_of(fields[i].method, 0);
            memcpy((char *)&s + fields[i].offset, &fields[i].values[k], sizeof(double));
            REFUSED(DCRF_ERROR_ARGUMENT, fields[i].name, &grid, &view, &s);
        }
    dcrf_superpixel_settings s = settings_of(DCRF_SUPERPIXEL_SLIC, 0);
    s.iterations = 0;
    REFUSED(DCRF_ERROR_ARGUMENT, "at least one iteration", &grid, &view, &s);
    s.method = (dcrf_superpixel_method)2;
    REFUSED(DCRF_ERROR_ARGUMENT, "2 is not a method", &grid, &view, &s);
    s = settings_of(DCRF_SUPERPIXEL_SLIC, 0);
    s.reserved[63] = 1;
    REFUSED(DCRF_ERROR_ARGUMENT, "reserved bytes of the settings of superpixels", &grid, &view, &s);
    room--;
    REFUSED(DCRF_ERROR_SIZE, "the regions: the array holds 5 elements, 6 are needed", &grid, &view,
            NULL);
#undef REFUSED
    assert_int_equal(count, 77);
    assert_memory_equal(regions, before, sizeof before);
    dcrf_workspace_free(&workspace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_have_their_published_values),
        cmocka_unit_test(images_are_converted_and_rounded),
        cmocka_unit_test(no_colour_exceeds_the_bound_of_exact_sums),
        cmocka_unit_test(regions_are_connected_and_large_enough),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(layouts_and_types_do_not_matter),
        cmocka_unit_test(ties_go_to_the_first),
        cmocka_unit_test(boundaries_lie_between_regions),
        cmocka_unit_test(defaults_set_every_field),
        cmocka_unit_test(methods_have_names),
        cmocka_unit_test(bad_input_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
