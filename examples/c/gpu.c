/* The same on a GPU: set the workspace's device, and nothing else changes. Plans made with it live
 * on the device, and iterations run there. Exits with 77 if there is no device.
 *
 * SPDX-License-Identifier: MIT */
#include "example.h"

static unsigned char rgb[PIXELS * 3];
static float logits[PIXELS * LABELS];
static uint16_t labels[PIXELS];

int main(void) {
    dcrf_error error;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    check(dcrf_workspace_new(&workspace, 0, &error), &error);
    if (dcrf_workspace_set_device(workspace, "cuda", &error) < 0) {
        printf("%s\n", error.message);
        dcrf_workspace_free(&workspace);
        return 77;
    }
    draw(rgb, logits);
    dcrf_model *model = make_model(rgb, logits);
    check(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), &error);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    check(dcrf_solver_new(&solver, plan, workspace, &settings, &error), &error);
    check(dcrf_solver_run(solver, &error), &error);
    check(dcrf_solver_labels(solver, labels, PIXELS, &error), &error);
    printf("on %s: accuracy %.1f %%\n", dcrf_workspace_device(workspace), accuracy(labels));
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    return 0;
}
