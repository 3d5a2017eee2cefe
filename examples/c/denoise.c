/* Remove noise from a grey-level picture. Its 16 grey levels are ordered labels: with the `linear`
 * distance, neighbours that differ by two levels pay twice as much as those that differ by one. For
 * this distance the LP is exact: the labelling found and the lower bound have the same energy, but
 * for rounding errors, so no labelling is better.
 *
 *   cc denoise.c $(pkg-config --cflags --libs dcrf) -lm -o denoise && ./denoise
 *
 * SPDX-License-Identifier: MIT */
#include "example.h"

#include <math.h>

enum { SIDE = 40, COUNT = SIDE * SIDE, LEVELS = 16 };

/* What the bound allows for rounding errors is about a third of this. */
static const double least_gap = 5e-5;

static float unary[COUNT * LEVELS], noisy[COUNT];
static uint16_t clean[COUNT];

/* A ball on a darker background: slowly varying grey levels, and an edge. */
static double true_level(int pixel) {
    const double x = pixel % SIDE - SIDE / 2, y = pixel / SIDE - SIDE / 2;
    const double height = 13 * 13 - x * x - y * y;
    return height > 0 ? 5 + 9 * sqrt(height) / 13 : 2;
}

static double mean_error(int of_noisy) {
    double sum = 0;
    for (int a = 0; a < COUNT; a++)
        sum += fabs((of_noisy ? (double)noisy[a] : (double)clean[a]) - true_level(a));
    return sum / (double)COUNT;
}

int main(void) {
    dcrf_error error;
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_solver_info info;
    srand(1);
    for (int a = 0; a < COUNT; a++) {
        noisy[a] = (float)(true_level(a) + 8 * noise());
        for (int i = 0; i < LEVELS; i++)
            unary[a * LEVELS + i] = fabsf(noisy[a] - (float)i);
    }

    /* One label per level, and a kernel whose pairs pay for the difference of their levels. */
    const dcrf_grid grid = dcrf_grid_2d(SIDE, SIDE);
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, LEVELS);
    const dcrf_kernel near = dcrf_kernel_spatial(1.5, 0.6);
    check(dcrf_model_new(&model, &grid, LEVELS, &error), &error);
    check(dcrf_model_set_unary(model, &energies, &error), &error);
    check(dcrf_model_add_kernel(model, &near, &error), &error);
    check(dcrf_model_set_distance(model, 0, "linear", &error), &error);

    check(dcrf_workspace_new(&workspace, 0, &error), &error);
    check(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), &error);
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.iterations = 200;
    settings.gap = least_gap;
    check(dcrf_solver_new(&solver, plan, workspace, &settings, &error), &error);
    check(dcrf_solver_run(solver, &error), &error);
    check(dcrf_solver_labels(solver, clean, COUNT, &error), &error);
    dcrf_solver_get_info(solver, &info);
    printf("mean error before %.2f, after %.2f levels; energy %.2f, no labelling has less than "
           "%.2f\n",
           mean_error(1), mean_error(0), info.energy.total, info.lower_bound);
    const int is_optimal = info.relative_gap <= least_gap;
    const int is_better = mean_error(0) < mean_error(1);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    return !(is_better && is_optimal);
}
