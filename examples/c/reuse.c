/* Solve many problems on one picture: the plan, which is expensive to make, is reused, and only the
 * unary energies and the weights change.
 *
 * SPDX-License-Identifier: MIT */
#include "example.h"

static unsigned char rgb[PIXELS * 3];
static float logits[PIXELS * LABELS], energies[PIXELS * LABELS];
static uint16_t labels[PIXELS];

int main(void) {
    dcrf_error error;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_settings settings;
    draw(rgb, logits);
    dcrf_model *model = make_model(rgb, logits);
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view unary = dcrf_view_interleaved(energies, DCRF_F32, &grid, LABELS);
    check(dcrf_workspace_new(&workspace, 0, &error), &error);
    check(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), &error);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);

    for (int confidence = 1; confidence <= 4; confidence++) {
        dcrf_solver *solver;
        for (size_t k = 0; k < PIXELS * LABELS; k++)
            energies[k] = -(float)confidence * logits[k];
        check(dcrf_model_set_unary(model, &unary, &error), &error);
        check(dcrf_model_set_weight(model, 1, 2 * confidence, &error), &error);
        check(dcrf_solver_new(&solver, plan, workspace, &settings, &error), &error);
        check(dcrf_solver_run(solver, &error), &error);
        check(dcrf_solver_labels(solver, labels, PIXELS, &error), &error);
        printf("logits times %d: accuracy %.1f %%\n", confidence, accuracy(labels));
        dcrf_solver_free(&solver);
    }
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    return 0;
}
