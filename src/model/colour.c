/* From sRGB to CIE Luv and CIE Lab, for the white point D65.
 *
 * sRGB (IEC 61966-2-1): a value s in [0, 1] has the linear intensity
 *
 *   s / 12.92                          where s <= 0.04045,
 *   ((s + 0.055) / 1.055)^2.4          elsewhere;
 *
 * (X, Y, Z) is a matrix times the linear (R, G, B), and the white (Xn, Yn, Zn) is that of (1, 1,
 * 1). Both spaces (CIE 15) share the lightness
 *
 *   L = 116 f(Y / Yn) - 16,   f(t) = t^(1/3) where t > (6/29)^3, else (29/6)^2 t / 3 + 4/29.
 *
 * Luv:  u = 13 L (u' - u'n),  u' = 4 X / (X + 15 Y + 3 Z),
 *       v = 13 L (v' - v'n),  v' = 9 Y / (X + 15 Y + 3 Z).
 * Lab:  a = 500 (f(X / Xn) - f(Y / Yn)),  b = 200 (f(Y / Yn) - f(Z / Zn)). */
#include "model/colour.h"

#include "core/error.h"
#include "core/owned.h"
#include "model/view.h"

#include <math.h>
#include <stdio.h>

/* Farther from every colour than any range bandwidth, with a square that is still a finite
 * float. */
#define FAR_COLOUR 1e9f

static const double xyz_from_rgb[3][3] = {{0.4124564, 0.3575761, 0.1804375},
                                          {0.2126729, 0.7151522, 0.0721750},
                                          {0.0193339, 0.1191920, 0.9503041}};

static double linear_intensity(double value) {
    const double s = value / 255;
    return s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4);
}

static double lightness_root(double t) {
    const double edge = 6.0 / 29;
    return t > edge * edge * edge ? cbrt(t) : t / (3 * edge * edge) + 4.0 / 29;
}

static void luv_from_xyz(const double xyz[3], const double white[3], double luv[3]) {
    const double sum = xyz[0] + 15 * xyz[1] + 3 * xyz[2];
    const double white_sum = white[0] + 15 * white[1] + 3 * white[2];
    const double lightness = 116 * lightness_root(xyz[1] / white[1]) - 16;
    luv[0] = lightness;
    luv[1] = luv[2] = 0;
    if (sum > 0) {
        luv[1] = 13 * lightness * (4 * xyz[0] / sum - 4 * white[0] / white_sum);
        luv[2] = 13 * lightness * (9 * xyz[1] / sum - 9 * white[1] / white_sum);
    }
}

static void lab_from_xyz(const double xyz[3], const double white[3], double lab[3]) {
    double root[3];
    for (size_t i = 0; i < 3; i++)
        root[i] = lightness_root(xyz[i] / white[i]);
    lab[0] = 116 * root[1] - 16;
    lab[1] = 500 * (root[0] - root[1]);
    lab[2] = 200 * (root[1] - root[2]);
}

/* From linear intensities. */
static void colour_from_linear(const double linear[3], enum dcrf_colour_space space,
                               double out[3]) {
    double xyz[3], white[3];
    for (size_t i = 0; i < 3; i++) {
        const double *row = xyz_from_rgb[i];
        xyz[i] = row[0] * linear[0] + row[1] * linear[1] + row[2] * linear[2];
        white[i] = row[0] + row[1] + row[2];
    }
    (space == DCRF_COLOUR_LUV ? luv_from_xyz : lab_from_xyz)(xyz, white, out);
}

void dcrf_colour_convert(const float rgb[3], enum dcrf_colour_space space, double out[3]) {
    double linear[3];
    for (size_t c = 0; c < 3; c++)
        linear[c] = linear_intensity((double)rgb[c]);
    colour_from_linear(linear, space, out);
}

/* ---- whole images --------------------------------------------------------------------------- */

struct conversion {
    struct dcrf_colours *colours;
    const float *samples;
    size_t channels;
    enum dcrf_colour_space space;
    double of_integer[256]; /* linear intensities of 8-bit values */
};

static double look_up(const struct conversion *c, float value) {
    const unsigned integer = (unsigned)value;
    return (float)integer == value ? c->of_integer[integer] : linear_intensity((double)value);
}

/* Adding zero turns -0 into 0: equal colours have equal bytes. */
static float rounded(double value) {
    return (float)(nearbyint(value * DCRF_COLOUR_STEPS) / DCRF_COLOUR_STEPS + 0.0);
}

static void convert_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct conversion *c = context;
    const struct dcrf_colours *colours = c->colours;
    for (size_t y = begin; y < end; y++)
        for (size_t x = 0; x < colours->stride; x++) {
            double linear[3], converted[3] = {0, 0, 0};
            const bool inside = x < colours->width;
            if (inside) {
                const float *sample = c->samples + (y * colours->width + x) * c->channels;
                for (size_t i = 0; i < 3; i++)
                    linear[i] = look_up(c, sample[c->channels == 3 ? i : 0]);
                colour_from_linear(linear, c->space, converted);
            }
            for (size_t i = 0; i < 3; i++)
                colours->plane[i][y * colours->stride + x] =
                    inside ? rounded(converted[i]) : FAR_COLOUR;
        }
}

static dcrf_status check_scale(const float *samples, const dcrf_grid *grid, size_t channels,
                               dcrf_error *error) {
    const size_t width = grid->size[0], height = grid->size[1];
    for (size_t i = 0; i < width * height * grid->size[2] * channels; i++)
        if (!(samples[i] >= 0 && samples[i] <= 255)) {
            const size_t row = i / channels / width;
            char slice[32] = "";
            if (grid->axes > 2)
                snprintf(slice, sizeof slice, ", z = %zu", row / height);
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the image of the superpixels holds %g at x = %zu, y = %zu%s, channel "
                             "%zu; its scale must be 0 to 255",
                             (double)samples[i], i / channels % width, row % height, slice,
                             i % channels);
        }
    return DCRF_OK;
}

static dcrf_status read_samples(const dcrf_grid *grid, const dcrf_view *image, float *samples,
                                dcrf_error *error) {
    TRY(dcrf_view_copy(image, grid, "the image of the superpixels", NULL, samples, image->channels,
                       error));
    return check_scale(samples, grid, image->channels, error);
}

static dcrf_status allocate_planes(struct dcrf_colours *colours, const dcrf_grid *grid,
                                   dcrf_error *error) {
    const size_t width = grid->size[0], height = grid->size[1], depth = grid->size[2];
    *colours = (struct dcrf_colours){.width = width, .height = height, .depth = depth};
    colours->stride = width + DCRF_COLOUR_PADDING;
    for (size_t i = 0; i < 3; i++) {
        size_t row_bytes;
        if (dcrf_multiply(colours->stride, sizeof(float), &row_bytes))
            colours->plane[i] = dcrf_allocate(height * depth, row_bytes);
        if (!colours->plane[i]) {
            dcrf_colours_clear(colours);
            return dcrf_fail_memory(error, "the colours of the superpixels");
        }
    }
    return DCRF_OK;
}

dcrf_status dcrf_colours_new(struct dcrf_colours *colours, const dcrf_grid *grid,
                             const dcrf_view *image, enum dcrf_colour_space space, dcrf_pool *pool,
                             dcrf_error *error) {
    const size_t rows_a_chunk = 8, rows = grid->size[1] * grid->size[2];
    DCRF_SCOPED float *samples =
        dcrf_allocate(grid->size[0] * rows, image->channels * sizeof *samples);
    if (!samples)
        return dcrf_fail_memory(error, "the image of the superpixels");
    TRY(read_samples(grid, image, samples, error));
    TRY(allocate_planes(colours, grid, error));
    struct conversion conversion = {
        .colours = colours, .samples = samples, .channels = image->channels, .space = space};
    for (int i = 0; i < 256; i++)
        conversion.of_integer[i] = linear_intensity(i);
    dcrf_parallel_for(pool, rows, rows_a_chunk, convert_rows, &conversion);
    return DCRF_OK;
}

void dcrf_colours_clear(struct dcrf_colours *colours) {
    for (size_t i = 0; i < 3; i++) {
        dcrf_release(colours->plane[i]);
        colours->plane[i] = NULL;
    }
}
