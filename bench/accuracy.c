/* How accurate the lattice is.
 *
 * For a picture of 160 x 107 pixels (the exact sum is quadratic) and a field of 21 labels, per pair
 * of sigmas: the relative L2 error |K~ y - K y| / |K y| of the plain kernel and of the
 * symmetrically normalized one, the ratio of the mean row sum to the exact one, and the time of one
 * application. */
#include "core/timer.h"
#include "filter/lattice/lattice.h"
#include "measure.h"
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH 160
#define HEIGHT 107
#define VARIABLES (WIDTH * HEIGHT)
#define LABELS 21
#define STRIDE 24
#define BLOCK ((size_t)VARIABLES * STRIDE)

/* The results of an operator. */
struct result {
    float plain[BLOCK];
    float normalized[BLOCK];
    float row_sums[VARIABLES];
    double apply_s;
};

static struct result exact, fast;
static dcrf_workspace *workspace;

static void apply(const dcrf_operator *op, const float *in, float *out) {
    dcrf_error error;
    must(dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, in, out,
                             dcrf_operator_variables(op) * STRIDE, LABELS, STRIDE, &error),
         &error);
}

/* Apply the operator to y, plain and normalized symmetrically by the row sums. */
static void measure(const dcrf_operator *op, const float *y, int repeats, struct result *result) {
    static float scaled[BLOCK];
    dcrf_error error;
    must(dcrf_operator_row_sums(op, workspace, result->row_sums, dcrf_operator_variables(op),
                                &error),
         &error);
    result->apply_s = INFINITY;
    for (int i = 0; i < repeats; i++) {
        const double start = dcrf_time_s();
        apply(op, y, result->plain);
        result->apply_s = fmin(result->apply_s, dcrf_time_s() - start);
    }
    for (size_t e = 0; e < BLOCK; e++)
        scaled[e] = y[e] / sqrtf(result->row_sums[e / STRIDE]);
    apply(op, scaled, result->normalized);
    for (size_t e = 0; e < BLOCK; e++)
        result->normalized[e] /= sqrtf(result->row_sums[e / STRIDE]);
}

static double relative_error(const float *approximation, const float *truth) {
    double difference = 0, size = 0;
    for (size_t e = 0; e < BLOCK; e++) {
        if (e % STRIDE >= LABELS)
            continue;
        difference += pow((double)approximation[e] - (double)truth[e], 2);
        size += pow((double)truth[e], 2);
    }
    return sqrt(difference / size);
}

static double total(const float *row_sums) {
    double sum = 0;
    for (size_t a = 0; a < VARIABLES; a++)
        sum += (double)row_sums[a];
    return sum;
}

static void compare(const dcrf_grid *grid, const uint8_t *rgb, const float *y, double sigma,
                    double colour_sigma) {
    const dcrf_kernel kernel =
        dcrf_kernel_bilateral(sigma, colour_sigma, dcrf_view_interleaved(rgb, DCRF_U8, grid, 3), 1);
    struct dcrf_features features;
    dcrf_operator *op;
    dcrf_error error;
    must(dcrf_features_new(&features, grid, &kernel, &error), &error);
    must(dcrf_exact_new(&op, &features, workspace, &error), &error);
    measure(op, y, 1, &exact);
    dcrf_operator_free(&op);
    must(dcrf_lattice_new(&op, &features, workspace, &error), &error);
    must(dcrf_lattice_calibrate(op, &features, workspace, &error), &error);
    measure(op, y, 5, &fast);
    printf("| %g, %g | %zu | %.3f | %.3f | %.3f | %.2f |\n", sigma, colour_sigma,
           dcrf_operator_vertices(op), relative_error(fast.plain, exact.plain),
           relative_error(fast.normalized, exact.normalized),
           total(fast.row_sums) / total(exact.row_sums), fast.apply_s * 1e3);
    dcrf_operator_free(&op);
    dcrf_features_clear(&features);
}

int main(void) {
    static const double sigmas[][2] = {{80, 13}, {50, 8}, {67, 3}, {30, 8}, {10, 20}, {121, 5}};
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    uint8_t *rgb = picture_draw(WIDTH, HEIGHT);
    float *y = picture_labels(WIDTH, HEIGHT, LABELS, STRIDE);
    dcrf_error error;
    must(dcrf_workspace_new(&workspace, 0, &error), &error);
    if (!rgb || !y)
        return 1;
    printf("| sigma xy, rgb | vertices | error, plain | error, normalized | mean row sum / exact | "
           "apply, ms |\n|---|---|---|---|---|---|\n");
    for (size_t s = 0; s < sizeof sigmas / sizeof sigmas[0]; s++)
        compare(&grid, rgb, y, sigmas[s][0], sigmas[s][1]);
    free(rgb);
    free(y);
    dcrf_workspace_free(&workspace);
    return 0;
}
