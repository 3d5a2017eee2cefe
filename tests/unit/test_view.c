/* Grids, views of every type and layout, and the features that a kernel reads through them. */
#include "unit.h"

#include "core/memory.h"
#include "model/kernel.h"
#include "model/view.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

/* ---- grids ---------------------------------------------------------------------------------- */

static void grids_count_their_variables(void **state) {
    (void)state;
    size_t variables = 0;
    const dcrf_grid line = dcrf_grid_1d(7), image = dcrf_grid_2d(5, 3),
                    volume = dcrf_grid_3d(2, 3, 4);
    assert_int_equal(dcrf_grid_check(&line, &variables, NULL), DCRF_OK);
    assert_int_equal(variables, 7);
    assert_int_equal(dcrf_grid_check(&image, &variables, NULL), DCRF_OK);
    assert_int_equal(variables, 15);
    assert_int_equal(dcrf_grid_check(&volume, &variables, NULL), DCRF_OK);
    assert_int_equal(variables, 24);
    /* x varies fastest. */
    size_t variable = 0, position[3];
    for (size_t z = 0; z < 4; z++)
        for (size_t y = 0; y < 3; y++)
            for (size_t x = 0; x < 2; x++, variable++) {
                dcrf_grid_position(&volume, variable, position);
                assert_true(position[0] == x && position[1] == y && position[2] == z);
            }
}

static void bad_grids_are_refused(void **state) {
    (void)state;
    dcrf_error error;
    size_t variables = 99;
    assert_fails(DCRF_ERROR_ARGUMENT, "no grid", error, dcrf_grid_check(NULL, &variables, &error));

    dcrf_grid grid = dcrf_grid_2d(5, 0);
    assert_fails(DCRF_ERROR_SIZE, "axis 1 has size 0", error,
                 dcrf_grid_check(&grid, &variables, &error));
    grid = dcrf_grid_2d(5, 3);
    grid.axes = 0;
    assert_fails(DCRF_ERROR_ARGUMENT, "not 0", error, dcrf_grid_check(&grid, &variables, &error));
    grid.axes = 4;
    assert_fails(DCRF_ERROR_ARGUMENT, "not 4", error, dcrf_grid_check(&grid, &variables, &error));
    grid.axes = 1;
    assert_fails(DCRF_ERROR_SIZE, "axis 1 of a grid of 1 axes has size 3", error,
                 dcrf_grid_check(&grid, &variables, &error));

    const double spacings[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < 4; i++) {
        grid = dcrf_grid_2d(5, 3);
        grid.spacing[1] = spacings[i];
        assert_fails(DCRF_ERROR_ARGUMENT, "spacing of axis 1", error,
                     dcrf_grid_check(&grid, &variables, &error));
    }
    grid = dcrf_grid_2d((size_t)1 << 16, (size_t)1 << 15);
    assert_fails(DCRF_ERROR_SIZE, "65536 x 32768 x 1", error,
                 dcrf_grid_check(&grid, &variables, &error));
    grid = dcrf_grid_3d(SIZE_MAX, SIZE_MAX, SIZE_MAX);
    assert_fails(DCRF_ERROR_SIZE, "too many", error, dcrf_grid_check(&grid, &variables, &error));
    assert_int_equal(variables, 99);
    grid = dcrf_grid_2d(5, 3);
    grid.spacing[2] = 0; /* beyond the axes: ignored */
    assert_int_equal(dcrf_grid_check(&grid, &variables, NULL), DCRF_OK);
}

/* Views whose sizes in bytes overflow can be made without undefined behaviour (checked by the
 * sanitizer); the grid is refused on use. */
static void views_of_absurd_grids_can_be_made(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_3d(SIZE_MAX / 2, SIZE_MAX / 3, SIZE_MAX - 1);
    const dcrf_view planar = dcrf_view_planar(&grid, DCRF_F64, &grid, 3);
    const dcrf_view interleaved = dcrf_view_interleaved(&grid, DCRF_F64, &grid, 3);
    assert_int_equal(planar.channels, 3);
    assert_int_equal(interleaved.channels, 3);
}

/* ---- types and layouts ---------------------------------------------------------------------- */

static void types_have_sizes(void **state) {
    (void)state;
    const size_t bytes[] = {1, 2, 2, 4, 4, 8, 2, 2};
    for (int type = DCRF_U8; type <= DCRF_BF16; type++)
        assert_int_equal(dcrf_type_bytes((dcrf_type)type), bytes[type]);
    assert_int_equal(dcrf_type_bytes((dcrf_type)8), 0);
    assert_int_equal(dcrf_type_bytes((dcrf_type)-1), 0);
}

/* A value that every type can hold, or one that distinguishes signed from unsigned. */
static double expected_value(dcrf_type type, size_t variable, size_t channel) {
    const double small = (double)((variable * 7 + channel * 3) % 101);
    switch (type) {
    case DCRF_U8:
        return small + 150;
    case DCRF_U16:
        return small + 65000;
    case DCRF_I16:
        return small - 30000;
    case DCRF_I32:
        return small * 4096 - 8388608; /* floats hold it exactly */
    case DCRF_F32:
        return small + 0.25;
    case DCRF_F64:
        return small - 0.5;
    case DCRF_F16:
        return small - 40.25;
    case DCRF_BF16:
        return small - 40;
    }
    return 0;
}

/* Of a number that half precision can represent: the exponent is biased by 15, and the first of the
 * 11 bits of the mantissa is not stored. */
static uint16_t as_half(double value) {
    int exponent;
    const double mantissa = frexp(fabs(value), &exponent); /* in [1/2, 1), or 0 */
    const unsigned sign = value < 0 ? 0x8000u : 0;
    return mantissa > 0 ? (uint16_t)(sign + (unsigned)(exponent + 14) * 1024u +
                                     (unsigned)(mantissa * 2048) - 1024u)
                        : (uint16_t)sign;
}

static uint16_t as_upper_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void write_element(char *at, dcrf_type type, double value) {
    const int64_t whole = (int64_t)value;
    const uint8_t u8 = (uint8_t)whole;
    const uint16_t u16 = (uint16_t)whole;
    const int16_t i16 = (int16_t)whole;
    const int32_t i32 = (int32_t)whole;
    const float f32 = (float)value;
    const uint16_t f16 = as_half(value), bf16 = as_upper_half(f32);
    const void *from[] = {&u8, &u16, &i16, &i32, &f32, &value, &f16, &bf16};
    memcpy(at, from[type], dcrf_type_bytes(type));
}

/* Write the expected values by the definition of a view, read them back through the copy. */
static void check_layout(dcrf_view view, const dcrf_grid *grid, char *data) {
    const size_t stride = view.channels + 3;
    const size_t variables = grid->size[0] * grid->size[1] * grid->size[2];
    size_t variable = 0;
    for (size_t z = 0; z < grid->size[2]; z++)
        for (size_t y = 0; y < grid->size[1]; y++)
            for (size_t x = 0; x < grid->size[0]; x++, variable++)
                for (size_t c = 0; c < view.channels; c++)
                    write_element(
                        data + (ptrdiff_t)x * view.stride[0] + (ptrdiff_t)y * view.stride[1] +
                            (ptrdiff_t)z * view.stride[2] + (ptrdiff_t)c * view.channel_stride,
                        view.type, expected_value(view.type, variable, c));
    float *out = dcrf_allocate(variables, stride * sizeof *out);
    assert_non_null(out);
    memset(out, 0xff, variables * stride * sizeof *out);
    double factor[] = {1, -2, 0.5, 4, 8};
    view.data = data;
    for (int scaled = 0; scaled < 2; scaled++) {
        assert_int_equal(
            dcrf_view_copy(&view, grid, "it", scaled ? factor : NULL, out, stride, NULL), DCRF_OK);
        for (variable = 0; variable < variables; variable++)
            for (size_t c = 0; c < stride; c++) {
                double expected = 0;
                if (c < view.channels)
                    expected = expected_value(view.type, variable, c) * (scaled ? factor[c] : 1);
                assert_true((double)out[variable * stride + c] == expected);
            }
    }
    dcrf_release(out);
}

/* Known half-precision numbers of IEEE 754, including the smallest and the largest. */
static void halves_are_read(void **state) {
    (void)state;
    static const uint16_t bits[] = {0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0xfbff,
                                    0x0001, 0x03ff, 0x0400, 0x3555, 0x7c00, 0xfc00};
    static const double values[] = {0,
                                    -0.0,
                                    1,
                                    -2,
                                    65504,
                                    -65504,
                                    5.9604644775390625e-08,
                                    6.0975551605224609e-05,
                                    6.103515625e-05,
                                    0.333251953125,
                                    (double)INFINITY,
                                    -(double)INFINITY};
    const size_t origin[DCRF_MAX_AXES] = {0};
    const dcrf_grid grid = dcrf_grid_1d(1);
    for (size_t k = 0; k < sizeof bits / sizeof bits[0]; k++) {
        const dcrf_view view = dcrf_view_planar(&bits[k], DCRF_F16, &grid, 1);
        const double found = dcrf_view_element(&view, origin, 0);
        assert_true(found <= values[k] && found >= values[k]);
    }
    const uint16_t nothing = 0x7e00, third = 0x3eab; /* the upper half of 1/3 */
    const dcrf_view half = dcrf_view_planar(&nothing, DCRF_F16, &grid, 1);
    const dcrf_view upper = dcrf_view_planar(&third, DCRF_BF16, &grid, 1);
    assert_true(isnan(dcrf_view_element(&half, origin, 0)));
    assert_true(fabs(dcrf_view_element(&upper, origin, 0) - 1.0 / 3) < 1e-3);
}

static void every_type_and_layout_is_read(void **state) {
    (void)state;
    const dcrf_grid grids[] = {dcrf_grid_1d(11), dcrf_grid_2d(5, 3), dcrf_grid_3d(2, 3, 4),
                               dcrf_grid_1d(1)};
    static char buffer[8 * 24 * 5 * 4 + 64];
    for (size_t g = 0; g < 4; g++)
        for (int type = DCRF_U8; type <= DCRF_BF16; type++)
            for (size_t channels = 1; channels <= 5; channels += 2)
                for (size_t misaligned = 0; misaligned < 2; misaligned++) {
                    char *data = buffer + misaligned;
                    const dcrf_grid *grid = &grids[g];
                    const dcrf_view hwc =
                        dcrf_view_interleaved(data, (dcrf_type)type, grid, channels);
                    check_layout(hwc, grid, data);
                    const dcrf_view chw = dcrf_view_planar(data, (dcrf_type)type, grid, channels);
                    check_layout(chw, grid, data);

                    dcrf_view padded = hwc; /* rows end in padding bytes */
                    padded.stride[1] += 5;
                    padded.stride[2] += 5 * (ptrdiff_t)grid->size[1] + 1;
                    check_layout(padded, grid, data);

                    dcrf_view flipped = chw; /* upside down, channels reversed (BGR) */
                    flipped.stride[1] = -chw.stride[1];
                    flipped.channel_stride = -chw.channel_stride;
                    check_layout(flipped, grid,
                                 data + (ptrdiff_t)(grid->size[1] - 1) * chw.stride[1] +
                                     (ptrdiff_t)(channels - 1) * chw.channel_stride);
                }
}

static void contiguous_layouts_are_what_they_say(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_3d(5, 3, 2);
    const dcrf_view hwc = dcrf_view_interleaved(&grid, DCRF_U16, &grid, 4);
    assert_true(hwc.channel_stride == 2 && hwc.stride[0] == 8 && hwc.stride[1] == 40 &&
                hwc.stride[2] == 120);
    const dcrf_view chw = dcrf_view_planar(&grid, DCRF_F32, &grid, 4);
    assert_true(chw.stride[0] == 4 && chw.stride[1] == 20 && chw.stride[2] == 60 &&
                chw.channel_stride == 120);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void not_finite_is_located(void **state) {
    (void)state;
    float values[24 * 3], out[24 * 8];
    double wide[24];
    dcrf_error error;
    const dcrf_grid volume = dcrf_grid_3d(2, 3, 4), image = dcrf_grid_2d(6, 4),
                    line = dcrf_grid_1d(24);
    memset(values, 0, sizeof values);
    values[(2 * 6 + 1 * 2 + 1) * 3 + 2] = NAN; /* (1, 1, 2), channel 2: the variable 15 */
    dcrf_view view = dcrf_view_interleaved(values, DCRF_F32, &volume, 3);
    assert_fails(DCRF_ERROR_NOT_FINITE, "at x = 1, y = 1, z = 2, channel 2", error,
                 dcrf_view_copy(&view, &volume, "the image", NULL, out, 8, &error));
    assert_non_null(strstr(error.message, "the image holds"));
    view = dcrf_view_interleaved(values, DCRF_F32, &image, 3);
    assert_fails(DCRF_ERROR_NOT_FINITE, "at x = 3, y = 2, channel 2", error,
                 dcrf_view_copy(&view, &image, "the image", NULL, out, 8, &error));
    view = dcrf_view_interleaved(values, DCRF_F32, &line, 3);
    assert_fails(DCRF_ERROR_NOT_FINITE, "at variable 15, channel 2", error,
                 dcrf_view_copy(&view, &line, "the image", NULL, out, 8, &error));

    memset(wide, 0, sizeof wide);
    view = dcrf_view_interleaved(wide, DCRF_F64, &line, 1);
    wide[23] = -INFINITY;
    assert_fails(DCRF_ERROR_NOT_FINITE, "-inf at variable 23", error,
                 dcrf_view_copy(&view, &line, "it", NULL, out, 8, &error));
    wide[23] = 1e300; /* finite, but not as a float */
    assert_fails(DCRF_ERROR_SIZE, "1e+300 at variable 23, channel 0: too large", error,
                 dcrf_view_copy(&view, &line, "it", NULL, out, 8, &error));
    wide[23] = (double)FLT_MAX;
    assert_int_equal(dcrf_view_copy(&view, &line, "it", NULL, out, 8, NULL), DCRF_OK);
    const double factor = 2;
    assert_fails(DCRF_ERROR_SIZE, "too large", error,
                 dcrf_view_copy(&view, &line, "it", &factor, out, 8, &error));
}

static void bad_views_are_refused(void **state) {
    (void)state;
    float value = 1, out[8];
    int32_t integer;
    dcrf_error error;
    const dcrf_grid grid = dcrf_grid_1d(1);
    dcrf_view view = dcrf_view_interleaved(&value, DCRF_F32, &grid, 1);
    assert_fails(DCRF_ERROR_ARGUMENT, "the map must hold integers", error,
                 dcrf_view_copy_integers(&view, &grid, "the map", &integer, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "it: no data", error,
                 dcrf_view_copy(NULL, &grid, "it", NULL, out, 8, &error));
    view.data = NULL;
    assert_fails(DCRF_ERROR_ARGUMENT, "it: no data", error,
                 dcrf_view_copy(&view, &grid, "it", NULL, out, 8, &error));
    view = dcrf_view_interleaved(&value, (dcrf_type)17, &grid, 1);
    assert_fails(DCRF_ERROR_ARGUMENT, "17 is not an element type", error,
                 dcrf_view_copy(&view, &grid, "it", NULL, out, 8, &error));
    view = dcrf_view_interleaved(&value, DCRF_F32, &grid, 0);
    assert_fails(DCRF_ERROR_SIZE, "no channels", error,
                 dcrf_view_copy(&view, &grid, "it", NULL, out, 8, &error));
    view = dcrf_view_interleaved(&value, DCRF_U8, &grid, 2);
    assert_fails(DCRF_ERROR_SIZE, "2 channels", error,
                 dcrf_view_copy_integers(&view, &grid, "the map", &integer, &error));
}

static void integers_are_read_whole(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(2, 2);
    const int32_t wide[] = {INT32_MIN, -1, 16777217, INT32_MAX};
    const int16_t narrow[] = {INT16_MIN, -1, 0, INT16_MAX};
    const uint16_t unsigned16[] = {0, 1, 40000, UINT16_MAX};
    const uint8_t bytes[] = {0, 127, 128, 255};
    int32_t out[4];
    dcrf_view view = dcrf_view_interleaved(wide, DCRF_I32, &grid, 1);
    assert_int_equal(dcrf_view_copy_integers(&view, &grid, "it", out, NULL), DCRF_OK);
    assert_memory_equal(out, wide, sizeof out);
    view = dcrf_view_interleaved(narrow, DCRF_I16, &grid, 1);
    assert_int_equal(dcrf_view_copy_integers(&view, &grid, "it", out, NULL), DCRF_OK);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(out[i], narrow[i]);
    view = dcrf_view_planar(unsigned16, DCRF_U16, &grid, 1);
    assert_int_equal(dcrf_view_copy_integers(&view, &grid, "it", out, NULL), DCRF_OK);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(out[i], unsigned16[i]);
    view = dcrf_view_interleaved(bytes, DCRF_U8, &grid, 1);
    view.stride[0] = 2; /* transposed */
    view.stride[1] = 1;
    assert_int_equal(dcrf_view_copy_integers(&view, &grid, "it", out, NULL), DCRF_OK);
    assert_true(out[0] == 0 && out[1] == 128 && out[2] == 127 && out[3] == 255);
}

/* ---- the features of kernels ---------------------------------------------------------------- */

static void features_are_coordinates_and_channels(void **state) {
    (void)state;
    dcrf_grid grid = dcrf_grid_3d(3, 2, 2);
    grid.spacing[2] = 2.5;
    uint8_t image[12 * 2];
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (uint8_t)(10 * i);
    dcrf_kernel kernel =
        dcrf_kernel_bilateral(4, 16, dcrf_view_interleaved(image, DCRF_U8, &grid, 2), 1);
    kernel.sigma[1] = 8;
    kernel.channel_sigma[1] = 2;
    struct dcrf_features features;
    assert_int_equal(dcrf_features_new(&features, &grid, &kernel, NULL), DCRF_OK);
    assert_int_equal(features.dimension, 5);
    for (size_t variable = 0; variable < 12; variable++) {
        float row[5];
        dcrf_features_row(&features, variable, row);
        const double expected[] = {(double)(variable % 3) / 4, (double)(variable / 3 % 2) / 8,
                                   (double)(variable / 6) * 2.5 / 4, image[2 * variable] / 16.0,
                                   image[2 * variable + 1] / 2.0};
        for (size_t k = 0; k < 5; k++) /* all values are dyadic */
            assert_true((double)row[k] == expected[k]);
    }
    dcrf_features_clear(&features);

    /* The caller's features: neither coordinates nor sigmas. */
    kernel = dcrf_kernel_features(dcrf_view_planar(image, DCRF_U8, &grid, 2), 1);
    assert_int_equal(dcrf_features_new(&features, &grid, &kernel, NULL), DCRF_OK);
    assert_int_equal(features.dimension, 2);
    float row[2];
    dcrf_features_row(&features, 7, row);
    assert_true((double)row[0] == 70 && (double)row[1] == (double)image[19]);
    dcrf_features_clear(&features);
    dcrf_features_clear(&features);
}

/* Numbers that floats hold are stored as floats, others as doubles: both are as given. */
static void channels_are_stored_as_given(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(4, 1);
    const double sixteenths[] = {0.0625, -3, 255, 1e9}, tenths[] = {0.0625, -3, 0.1, 1e9};
    const double *given[] = {sixteenths, tenths};
    for (size_t k = 0; k < 2; k++) {
        struct dcrf_features features;
        const dcrf_kernel kernel =
            dcrf_kernel_bilateral(4, 0.5, dcrf_view_interleaved(given[k], DCRF_F64, &grid, 1), 1);
        assert_int_equal(dcrf_features_new(&features, &grid, &kernel, NULL), DCRF_OK);
        assert_true(k == 0 ? features.channel && !features.channel_in_double
                           : !features.channel && features.channel_in_double);
        float row[3], least[3], largest[3];
        for (size_t a = 0; a < 4; a++) {
            assert_true(dcrf_features_value(&features, a, 2) == given[k][a]);
            dcrf_features_row(&features, a, row);
            assert_true(row[2] == (float)(given[k][a] * 2));
        }
        dcrf_features_range(&features, least, largest);
        assert_true(least[2] == -6 && largest[2] == 2e9f);
        dcrf_features_clear(&features);
    }
}

/* The extremes may be at any variable: in whole vectors of the loop, and after the last of them. */
static void ranges_include_every_variable(void **state) {
    (void)state;
    enum { VARIABLES = 37, MOST = 3 };
    const dcrf_grid grid = dcrf_grid_1d(VARIABLES);
    for (size_t channels = 1; channels <= MOST; channels++)
        for (size_t at = 0; at < VARIABLES * channels; at++) {
            double values[VARIABLES * MOST] = {0};
            float least[MOST], largest[MOST];
            values[at] = at % 2 ? 7 : -7;
            values[(at + 5 * channels) % (VARIABLES * channels)] = at % 3 ? 0.5 : 0.1; /* doubles */
            const dcrf_kernel kernel =
                dcrf_kernel_features(dcrf_view_interleaved(values, DCRF_F64, &grid, channels), 1);
            struct dcrf_features features;
            assert_int_equal(dcrf_features_new(&features, &grid, &kernel, NULL), DCRF_OK);
            dcrf_features_range(&features, least, largest);
            for (size_t c = 0; c < channels; c++) {
                const bool is_own = c == at % channels;
                assert_true(least[c] == (is_own && at % 2 == 0 ? -7 : 0));
                assert_true(largest[c] == (!is_own ? 0 : at % 2 ? 7 : at % 3 ? 0.5f : 0.1f));
            }
            dcrf_features_clear(&features);
        }
}

static void bad_kernels_are_refused(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(2, 2);
    float values[4 * 17] = {0};
    struct dcrf_features features;
    memset(&features, 0x5a, sizeof features);
    const struct dcrf_features untouched = features;
    dcrf_error error;
#define assert_refused(status, text)                                                               \
    assert_fails(status, text, error, dcrf_features_new(&features, &grid, &kernel, &error));       \
    assert_memory_equal(&features, &untouched, sizeof features)

    dcrf_kernel kernel = dcrf_kernel_spatial(3, NAN);
    assert_refused(DCRF_ERROR_NOT_FINITE, "weight");
    kernel = dcrf_kernel_spatial(3, -1);
    assert_refused(DCRF_ERROR_ARGUMENT, "weight of a kernel is -1");
    const double sigmas[] = {0, -3, NAN, INFINITY};
    for (size_t i = 0; i < 4; i++) {
        kernel = dcrf_kernel_spatial(1, 1);
        kernel.sigma[1] = sigmas[i];
        assert_refused(DCRF_ERROR_ARGUMENT, "sigma of axis 1");
        kernel = dcrf_kernel_bilateral(1, 1, dcrf_view_interleaved(values, DCRF_F32, &grid, 3), 1);
        kernel.channel_sigma[2] = sigmas[i];
        assert_refused(DCRF_ERROR_ARGUMENT, "sigma of channel 2");
    }
    kernel = dcrf_kernel_spatial(1e-40, 1);
    assert_refused(DCRF_ERROR_SIZE, "too small");
    kernel = dcrf_kernel_spatial(DBL_TRUE_MIN, 1);
    assert_refused(DCRF_ERROR_SIZE, "too small");
    values[5] = 255;
    kernel = dcrf_kernel_bilateral(1, 1e-37, dcrf_view_interleaved(values, DCRF_F32, &grid, 3), 1);
    assert_refused(DCRF_ERROR_SIZE, "the image of a kernel holds 255 at x = 1, y = 0, channel 2");
    values[5] = NAN;
    assert_refused(DCRF_ERROR_NOT_FINITE, "x = 1, y = 0, channel 2");
    kernel = dcrf_kernel_bilateral(1, 1, dcrf_view_interleaved(values, DCRF_F32, &grid, 15), 1);
    assert_refused(DCRF_ERROR_SIZE, "2 axes and 15 channels");
    kernel = dcrf_kernel_features(dcrf_view_interleaved(values, DCRF_F32, &grid, 17), 1);
    assert_refused(DCRF_ERROR_SIZE, "17 channels");
    kernel.channels.channels = SIZE_MAX;
    assert_refused(DCRF_ERROR_SIZE, "channels");
    kernel.channels.channels = 0;
    assert_refused(DCRF_ERROR_SIZE, "no channels");
    kernel = dcrf_kernel_spatial(1, 1);
    kernel.kind = (dcrf_kernel_kind)9;
    assert_refused(DCRF_ERROR_ARGUMENT, "9 is not a kind of kernel");
    kernel = dcrf_kernel_spatial(1, 1);
    kernel.normalization = (dcrf_normalization)5;
    assert_refused(DCRF_ERROR_ARGUMENT, "5 is not a normalization");
#undef assert_refused
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids_count_their_variables),
        cmocka_unit_test(bad_grids_are_refused),
        cmocka_unit_test(views_of_absurd_grids_can_be_made),
        cmocka_unit_test(types_have_sizes),
        cmocka_unit_test(halves_are_read),
        cmocka_unit_test(every_type_and_layout_is_read),
        cmocka_unit_test(contiguous_layouts_are_what_they_say),
        cmocka_unit_test(not_finite_is_located),
        cmocka_unit_test(bad_views_are_refused),
        cmocka_unit_test(integers_are_read_whole),
        cmocka_unit_test(features_are_coordinates_and_channels),
        cmocka_unit_test(channels_are_stored_as_given),
        cmocka_unit_test(ranges_include_every_variable),
        cmocka_unit_test(bad_kernels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
