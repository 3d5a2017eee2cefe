/* Sharpen the output of a classifier: from a picture and logits to labels.
 *
 *   cc solve.c $(pkg-config --cflags --libs dcrf) -o solve && ./solve
 *
 * SPDX-License-Identifier: MIT */
#include "example.h"

static unsigned char rgb[PIXELS * 3];
static float logits[PIXELS * LABELS], energies[PIXELS * LABELS];
static uint16_t before[PIXELS], after[PIXELS];

int main(void) {
    dcrf_error error;
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    draw(rgb, logits);

    /* Views describe arrays; nothing is copied yet. */
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view image = dcrf_view_interleaved(rgb, DCRF_U8, &grid, 3);
    const dcrf_view scores = dcrf_view_interleaved(logits, DCRF_F32, &grid, LABELS);
    check(dcrf_unary_energies(&scores, &grid, DCRF_UNARY_LOGITS, 1, &grid, NULL, energies,
                              PIXELS * LABELS, &error),
          &error);

    /* The model: the classifier's energies, and kernels that make similar neighbours agree, with a
     * strength measured for these energies. */
    const dcrf_view unary = dcrf_view_interleaved(energies, DCRF_F32, &grid, LABELS);
    dcrf_kernel kernels[DCRF_DEFAULT_KERNELS];
    const size_t kernel_count = dcrf_default_kernels(&image, kernels);
    dcrf_measured_strength measured;
    check(dcrf_model_new(&model, &grid, LABELS, &error), &error);
    check(dcrf_model_set_unary(model, &unary, &error), &error);
    for (size_t m = 0; m < kernel_count; m++)
        check(dcrf_model_add_kernel(model, &kernels[m], &error), &error);
    check(dcrf_workspace_new(&workspace, 0, &error), &error);
    check(dcrf_model_measure_strength(model, workspace, &measured, &error), &error);
    check(dcrf_model_set_strength(model, measured.strength, &error), &error);

    /* Plan once; a solver runs one method. */
    check(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), &error);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    check(dcrf_solver_new(&solver, plan, workspace, &settings, &error), &error);
    check(dcrf_solver_run(solver, &error), &error);
    check(dcrf_solver_labels(solver, after, PIXELS, &error), &error);

    check(dcrf_label_by_unary(model, before, PIXELS, &error), &error);
    printf("accuracy of the classifier %.1f %%, of dcrf %.1f %%\n", accuracy(before),
           accuracy(after));
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    return 0;
}
