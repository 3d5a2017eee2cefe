/* The accuracy of the calibrated lattice: row sums and filtered labels, on a drawing and on a
 * photograph if available. The printed table is for information; the limits decide. */
#include "dense.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef HAVE_PNG
#include <png.h>
#endif

#define LABELS 4
#define STRIDE 8

/* The calibration fixes the mean of the row sums, from a sample. */
#define ROW_SUM_LIMIT 0.02
/* A single row of the lattice may be off by a tenth or more (MODEL section 2: the raw sum is
 * between 0.50 and 0.69 of the true one at d = 5); filtered labels are off by less. */
#define FIELD_LIMIT 0.10

struct accuracy {
    double row_sums; /* sum of the row sums, lattice / exact - 1 */
    double spread;   /* mean |lattice / exact - 1| of a row */
    double field;    /* |K~ y - K y| / |K y|, L2 over labels and rows */
};

/* Over every `step`-th row, including rows used by the calibration. */
static struct accuracy measure(const dcrf_grid *grid, const dcrf_kernel *kernel, const float *y,
                               size_t step) {
    const size_t n = grid_variables(grid);
    dcrf_workspace *workspace = new_workspace(1);
    dcrf_operator *op = new_operator(grid, kernel, DCRF_OPERATOR_LATTICE, workspace);
    float *ky = new_applied(op, workspace, DCRF_SYMMETRIC, y, LABELS, STRIDE);
    double sum = 0, exact = 0, spread = 0, error = 0, size = 0;
    size_t rows = 0;
    for (size_t a = 0; a < n; a += step, rows++) {
        double wanted[LABELS] = {0}, wanted_row = 0, row = 0;
        for (size_t b = 0; b < n; b++) {
            const double k = kernel_formula(grid, kernel, a, b);
            for (size_t c = 0; c < LABELS; c++)
                wanted[c] += k * (double)y[b * STRIDE + c];
        }
        for (size_t c = 0; c < LABELS; c++) { /* the labels of a variable sum to one */
            const double value = (double)ky[a * STRIDE + c];
            row += value;
            wanted_row += wanted[c];
            error += (value - wanted[c]) * (value - wanted[c]);
            size += wanted[c] * wanted[c];
        }
        sum += row;
        exact += wanted_row;
        spread += fabs(row / wanted_row - 1);
    }
    free(ky);
    dcrf_operator_free(&op);
    dcrf_workspace_free(&workspace);
    return (struct accuracy){sum / exact - 1, spread / (double)rows, sqrt(error / size)};
}

static void check_settings(const char *name, const uint8_t *image, size_t width, size_t height,
                           const double (*sigmas)[2], size_t count, size_t step) {
    const dcrf_grid grid = dcrf_grid_2d(width, height);
    float *y = draw_labels(width, height, LABELS, STRIDE);
    print_message("%s, %zu x %zu     row sums   of one row   labels, L2\n", name, width, height);
    for (size_t i = 0; i < count; i++) {
        dcrf_kernel kernel = dcrf_kernel_bilateral(
            sigmas[i][0], sigmas[i][1], dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 1);
        kernel.normalization = DCRF_NORMALIZE_NONE;
        const struct accuracy accuracy = measure(&grid, &kernel, y, step);
        print_message("  sigma %3g / %3g   %+16.4f %12.4f %12.4f\n", sigmas[i][0], sigmas[i][1],
                      accuracy.row_sums, accuracy.spread, accuracy.field);
        assert_within(fabs(accuracy.row_sums), ROW_SUM_LIMIT, "%s, row sums", name);
        assert_within(accuracy.field, FIELD_LIMIT, "%s, filtered labels", name);
    }
    free(y);
}

static void a_drawing_is_filtered_closely(void **state) {
    (void)state;
    const double sigmas[][2] = {{80, 13}, {50, 8}, {30, 8}, {10, 13}, {5, 40}};
    const size_t width = SANITIZED ? 60 : 75, height = SANITIZED ? 40 : 50;
    uint8_t *image = draw_photograph(width, height);
    check_settings("drawing", image, width, height, sigmas, 5, 1);
    free(image);
}

#ifdef HAVE_PNG
/* RGB bytes, or NULL if there is no such file. */
static uint8_t *read_photograph(const char *path, size_t *width, size_t *height) {
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_file(&png, path))
        return NULL;
    png.format = PNG_FORMAT_RGB;
    uint8_t *image = malloc(PNG_IMAGE_SIZE(png));
    assert_int_not_equal(png_image_finish_read(&png, NULL, image, 0, NULL), 0);
    *width = png.width;
    *height = png.height;
    return image;
}
#else
static uint8_t *read_photograph(const char *path, size_t *width, size_t *height) {
    (void)path;
    *width = *height = 0;
    return NULL;
}
#endif

static void a_photograph_is_filtered_closely(void **state) {
    (void)state;
    const double sigmas[][2] = {{80, 13}, {50, 8}, {30, 8}};
    size_t width, height;
    uint8_t *image = read_photograph(SHARED_DATA "/msrc-example/photo1.png", &width, &height);
    if (!image) {
        print_message("skipped: no photograph, or no libpng to read it\n");
        return;
    }
    check_settings("photograph", image, width, height, sigmas, 3, SANITIZED ? 1999 : 401);
    free(image);
}

/* Kernels over the caller's features, of any dimension: points in clusters, like colours. */
static void features_are_calibrated_in_any_dimension(void **state) {
    (void)state;
    const size_t n = SANITIZED ? 600 : 1200;
    const dcrf_grid grid = dcrf_grid_1d(n);
    float *y = draw_labels(n, 1, LABELS, STRIDE);
    print_message("features, %zu points   row sums   of one row   labels, L2\n", n);
    for (size_t d = 1; d <= DCRF_MAX_FEATURES; d++) {
        float *features = random_block(n, d, -1, 1, 50 + d);
        for (size_t a = 0; a < n; a++)
            features[a * d + a % 3 % d] += (float)(a % 3) * 2;
        dcrf_kernel kernel =
            dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, d), 1);
        kernel.normalization = DCRF_NORMALIZE_NONE;
        const struct accuracy accuracy = measure(&grid, &kernel, y, 1);
        print_message("  d = %2zu %+22.4f %12.4f %12.4f\n", d, accuracy.row_sums, accuracy.spread,
                      accuracy.field);
        assert_within(fabs(accuracy.row_sums), ROW_SUM_LIMIT, "d %zu, row sums", d);
        free(features);
    }
    free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drawing_is_filtered_closely),
        cmocka_unit_test(a_photograph_is_filtered_closely),
        cmocka_unit_test(features_are_calibrated_in_any_dimension),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
