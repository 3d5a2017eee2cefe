/* Without a picture: points with arbitrary features (here positions in the plane), of which a few
 * have a label and the others take the label of nearby points.
 *
 * SPDX-License-Identifier: MIT */
#include "example.h"

#include <math.h>

enum { POINTS = 400, CLUSTERS = 2 };

int main(void) {
    static float places[POINTS * 2], features[POINTS * 2], energies[POINTS * CLUSTERS];
    static uint16_t labels[POINTS];
    dcrf_error error;
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    srand(1);
    for (int p = 0; p < POINTS; p++) { /* two arcs */
        const double angle = 3.14159 * (noise() + 0.5), side = p % 2 ? 1 : -1;
        places[2 * p] = (float)(cos(angle) * side + 0.5 * side + 0.1 * noise());
        places[2 * p + 1] = (float)(sin(angle) * side - 0.25 * side + 0.1 * noise());
        for (int d = 0; d < 2; d++)
            features[2 * p + d] = places[2 * p + d] / 0.15f; /* divided by their sigma */
        for (int i = 0; i < CLUSTERS; i++) /* one point in twenty has a known label */
            energies[CLUSTERS * p + i] = p / 2 % 20 == 0 && i != p % 2 ? 5 : 0;
    }

    const dcrf_grid grid = dcrf_grid_1d(POINTS);
    const dcrf_view unary = dcrf_view_interleaved(energies, DCRF_F32, &grid, CLUSTERS);
    const dcrf_kernel near =
        dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, 2), 1);
    check(dcrf_model_new(&model, &grid, CLUSTERS, &error), &error);
    check(dcrf_model_set_unary(model, &unary, &error), &error);
    check(dcrf_model_add_kernel(model, &near, &error), &error);
    check(dcrf_workspace_new(&workspace, 0, &error), &error);
    check(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, &error), &error);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.iterations = 50;
    check(dcrf_solver_new(&solver, plan, workspace, &settings, &error), &error);
    check(dcrf_solver_run(solver, &error), &error);
    check(dcrf_solver_labels(solver, labels, POINTS, &error), &error);
    int right = 0;
    for (int p = 0; p < POINTS; p++)
        right += labels[p] == p % 2;
    printf("%d of %d points have the label of their arc; 20 were known\n", right, POINTS);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    return 0;
}
