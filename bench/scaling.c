/* How the cost of one iteration grows with the number of variables and with the number of labels.
 *
 * For each method, the time of an iteration over four sizes of picture at 21 labels, and over four
 * numbers of labels at one size; and the slope of a line fitted to the logarithms, which is 1 if
 * the cost is linear. */
#define _DEFAULT_SOURCE
#include "measure.h"
#include "picture.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZES 4
#define FIRST_ITERATIONS 2 /* including the start and first-touch page faults */
#define MORE_ITERATIONS 8

/* Seconds for this many iterations, including the start; the best of three runs. */
static double run_s(const dcrf_plan *plan, dcrf_workspace *workspace, dcrf_method method,
                    size_t iterations) {
    dcrf_error error;
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, method);
    settings.iterations = iterations;
    settings.stationarity = 0;
    settings.gap = 0;
    settings.polish = 0;
    double best = INFINITY;
    for (int i = 0; i < 3; i++) {
        dcrf_solver *solver;
        dcrf_solver_info info;
        must(dcrf_solver_new(&solver, plan, workspace, &settings, &error), &error);
        must(dcrf_solver_run(solver, &error), &error);
        dcrf_solver_get_info(solver, &info);
        best = fmin(best, info.solve_s);
        dcrf_solver_free(&solver);
    }
    return best;
}

/* Seconds for one iteration. */
static double iteration_s(dcrf_method method, size_t width, size_t height, size_t labels,
                          dcrf_workspace *workspace) {
    const dcrf_grid grid = dcrf_grid_2d(width, height);
    uint8_t *rgb = picture_draw(width, height);
    float *unary = picture_labels(width, height, labels, labels);
    if (!rgb || !unary)
        exit(1);
    for (size_t e = 0; e < width * height * labels; e++)
        unary[e] = -logf(unary[e]);
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, labels);
    const dcrf_view image = dcrf_view_interleaved(rgb, DCRF_U8, &grid, 3);
    const dcrf_kernel kernels[] = {dcrf_kernel_spatial(3, 1.5),
                                   dcrf_kernel_bilateral(80, 13, image, 5)};
    dcrf_error error;
    dcrf_model *model;
    dcrf_plan *plan;
    must(dcrf_model_new(&model, &grid, labels, &error), &error);
    must(dcrf_model_set_unary(model, &energies, &error), &error);
    for (size_t k = 0; k < 2; k++)
        must(dcrf_model_add_kernel(model, &kernels[k], &error), &error);
    must(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), &error);
    const double first = run_s(plan, workspace, method, FIRST_ITERATIONS);
    const double all = run_s(plan, workspace, method, FIRST_ITERATIONS + MORE_ITERATIONS);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    free(rgb);
    free(unary);
    return (all - first) / MORE_ITERATIONS;
}

/* The slope of log(seconds) over log(size), by least squares. */
static double slope(const double *size, const double *seconds) {
    double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
    for (size_t i = 0; i < SIZES; i++) {
        mean_x += log(size[i]) / SIZES;
        mean_y += log(seconds[i]) / SIZES;
    }
    for (size_t i = 0; i < SIZES; i++) {
        xy += (log(size[i]) - mean_x) * (log(seconds[i]) - mean_y);
        xx += (log(size[i]) - mean_x) * (log(size[i]) - mean_x);
    }
    return xy / xx;
}

int main(void) {
    static const size_t widths[SIZES] = {160, 240, 360, 540};
    static const size_t label_counts[SIZES] = {8, 16, 32, 64};
    dcrf_error error;
    dcrf_workspace *workspace;
    must(dcrf_workspace_new(&workspace, 0, &error), &error);
    double size[SIZES], seconds[SIZES];
    printf("Milliseconds for one iteration.\n\n| method, 21 labels |");
    for (size_t i = 0; i < SIZES; i++)
        printf(" %zu x %zu |", widths[i], widths[i] * 2 / 3);
    printf(" slope over N |\n|---|---|---|---|---|---|\n");
    for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++) {
        printf("| %s |", dcrf_method_name(method));
        for (size_t i = 0; i < SIZES; i++) {
            size[i] = (double)(widths[i] * (widths[i] * 2 / 3));
            seconds[i] = iteration_s(method, widths[i], widths[i] * 2 / 3, 21, workspace);
            printf(" %.2f |", seconds[i] * 1e3);
        }
        printf(" %.2f |\n", slope(size, seconds));
    }
    printf("\n| method, 240 x 160 |");
    for (size_t i = 0; i < SIZES; i++)
        printf(" %zu labels |", label_counts[i]);
    printf(" slope over M |\n|---|---|---|---|---|---|\n");
    for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++) {
        printf("| %s |", dcrf_method_name(method));
        for (size_t i = 0; i < SIZES; i++) {
            size[i] = (double)label_counts[i];
            seconds[i] = iteration_s(method, 240, 160, label_counts[i], workspace);
            printf(" %.2f |", seconds[i] * 1e3);
        }
        printf(" %.2f |\n", slope(size, seconds));
    }
    dcrf_workspace_free(&workspace);
    return 0;
}
