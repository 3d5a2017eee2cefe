#include "dense.h"

#include "core/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

size_t grid_variables(const dcrf_grid *grid) {
    return grid->size[0] * grid->size[1] * grid->size[2];
}

/* ---- matrices ------------------------------------------------------------------------------- */

static double channel_value(const dcrf_view *view, size_t variable, size_t channel) {
    const size_t at = variable * view->channels + channel;
    if (view->type == DCRF_U8)
        return (double)((const uint8_t *)view->data)[at];
    assert_int_equal(view->type, DCRF_F32);
    return (double)((const float *)view->data)[at];
}

static double square(double x) {
    return x * x;
}

double kernel_formula(const dcrf_grid *grid, const dcrf_kernel *kernel, size_t a, size_t b) {
    double squared = 0;
    size_t p = a, q = b;
    for (size_t axis = 0; kernel->kind != DCRF_KERNEL_FEATURES && axis < grid->axes; axis++) {
        const double steps = (double)(p % grid->size[axis]) - (double)(q % grid->size[axis]);
        squared += square(steps * grid->spacing[axis] / kernel->sigma[axis]);
        p /= grid->size[axis];
        q /= grid->size[axis];
    }
    const dcrf_view *view = &kernel->channels;
    const size_t channels = kernel->kind == DCRF_KERNEL_SPATIAL ? 0 : view->channels;
    for (size_t c = 0; c < channels; c++) {
        const double sigma = kernel->kind == DCRF_KERNEL_FEATURES ? 1 : kernel->channel_sigma[c];
        squared += square((channel_value(view, a, c) - channel_value(view, b, c)) / sigma);
    }
    return exp(-squared / 2);
}

double *dense_of_kernel(const dcrf_grid *grid, const dcrf_kernel *kernel) {
    const size_t n = grid_variables(grid);
    double *matrix = malloc(n * n * sizeof *matrix), *mass = calloc(n, sizeof *mass);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            mass[a] += matrix[a * n + b] = kernel_formula(grid, kernel, a, b);
    if (kernel->normalization == DCRF_NORMALIZE_SYMMETRIC)
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                matrix[a * n + b] /= sqrt(mass[a] * mass[b]);
    free(mass);
    return matrix;
}

double *dense_of_operator(const dcrf_operator *op, dcrf_workspace *workspace,
                          dcrf_direction direction) {
    const size_t n = dcrf_operator_variables(op), stride = dcrf_padded(n);
    double *matrix = malloc(n * n * sizeof *matrix);
    float *unit = calloc(n * stride, sizeof *unit);
    for (size_t a = 0; a < n; a++)
        unit[a * stride + a] = 1;
    float *columns = new_applied(op, workspace, direction, unit, n, stride);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            matrix[a * n + b] = (double)columns[a * stride + b];
    free(unit);
    free(columns);
    return matrix;
}

/* ---- fields and their differences ----------------------------------------------------------- */

float *random_block(size_t variables, size_t stride, double low, double high, uint64_t seed) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    float *block = malloc(variables * stride * sizeof *block);
    for (size_t i = 0; i < variables * stride; i++)
        block[i] = (float)(low + (high - low) * dcrf_rng_uniform(&rng));
    return block;
}

double dense_error(const double *matrix, size_t variables, const float *in, const float *value,
                   size_t channels, size_t stride) {
    double worst = 0, largest = 0;
    for (size_t a = 0; a < variables; a++)
        for (size_t c = 0; c < channels; c++) {
            double sum = 0;
            for (size_t b = 0; b < variables; b++)
                sum += matrix[a * variables + b] * (double)in[b * stride + c];
            const double error = fabs((double)value[a * stride + c] - sum);
            worst = error <= worst ? worst : error; /* keeps NaN */
            largest = fmax(largest, fabs(sum));
        }
    return worst == 0 ? 0 : worst / largest;
}

double block_error(const float *value, const float *expected, size_t variables, size_t channels,
                   size_t stride) {
    double worst = 0, largest = 0;
    for (size_t a = 0; a < variables; a++)
        for (size_t c = 0; c < channels; c++) {
            const double wanted = (double)expected[a * stride + c];
            const double error = fabs((double)value[a * stride + c] - wanted);
            worst = error <= worst ? worst : error;
            largest = fmax(largest, fabs(wanted));
        }
    return worst == 0 ? 0 : worst / largest;
}

void assert_within(double value, double limit, const char *format, ...) {
    if (value <= limit)
        return;
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s: %.3g is more than %.3g", text, value, limit);
}

/* ---- operators ------------------------------------------------------------------------------ */

dcrf_workspace *new_workspace(size_t threads) {
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, threads, NULL), DCRF_OK);
    return workspace;
}

dcrf_operator *new_operator(const dcrf_grid *grid, const dcrf_kernel *kernel,
                            dcrf_operator_kind kind, dcrf_workspace *workspace) {
    dcrf_operator *op;
    dcrf_error error;
    if (dcrf_operator_new(&op, grid, kernel, kind, workspace, &error) != DCRF_OK)
        fail_msg("no operator: %s", error.message);
    assert_int_equal(dcrf_operator_variables(op), grid_variables(grid));
    return op;
}

float *new_applied(const dcrf_operator *op, dcrf_workspace *workspace, dcrf_direction direction,
                   const float *in, size_t channels, size_t stride) {
    const size_t n = dcrf_operator_variables(op);
    float *out = malloc(n * stride * sizeof *out);
    for (size_t i = 0; i < n * stride; i++)
        out[i] = NAN; /* unwritten entries stay NaN */
    assert_int_equal(dcrf_operator_apply(op, workspace, direction, in, out,
                                         dcrf_operator_variables(op) * stride, channels, stride,
                                         NULL),
                     DCRF_OK);
    return out;
}

/* ---- a drawing ------------------------------------------------------------------------------ */

/* Sky above a wavy horizon, ground below, a disc and a slanted wall. */
static size_t region_of(double x, double y) {
    if (hypot(x - 0.7, y - 0.3) < 0.18)
        return 2;
    if (x + 0.4 * y > 0.25 && x + 0.4 * y < 0.45 && y > 0.25)
        return 3;
    return y > 0.55 + 0.06 * sin(9 * x);
}

uint8_t *draw_photograph(size_t width, size_t height) {
    static const double base[4][3] = {{120, 160, 215}, {70, 115, 50}, {205, 60, 45}, {95, 80, 70}};
    static const double slope[4][3] = {{60, 40, 20}, {50, 40, 30}, {-70, -20, -10}, {40, 40, 40}};
    static const double texture[4] = {1, 14, 3, 8};
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    uint8_t *image = malloc(width * height * 3);
    for (size_t v = 0; v < height; v++)
        for (size_t u = 0; u < width; u++) {
            const double x = (double)u / (double)width, y = (double)v / (double)height;
            const size_t region = region_of(x, y);
            const double grain = texture[region] * sin(0.9 * (double)u) * sin(1.1 * (double)v + x);
            for (size_t c = 0; c < 3; c++) {
                const double noise = 6 * (dcrf_rng_uniform(&rng) + dcrf_rng_uniform(&rng) - 1);
                const double value = base[region][c] + slope[region][c] * y + grain + noise;
                image[(v * width + u) * 3 + c] = (uint8_t)fmin(fmax(value, 0), 255);
            }
        }
    return image;
}

float *draw_labels(size_t width, size_t height, size_t labels, size_t stride) {
    float *y = calloc(width * height * stride, sizeof *y);
    for (size_t v = 0; v < height; v++)
        for (size_t u = 0; u < width; u++) {
            const double x = (double)u / (double)width, z = (double)v / (double)height;
            y[(v * width + u) * stride + region_of(x, z) % labels] = 1;
        }
    return y;
}
