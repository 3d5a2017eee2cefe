/* Prove how good a labelling is: the LP gives labels, a lower bound on the energy of every other
 * labelling, and a certificate that another program can check.
 *
 * SPDX-License-Identifier: MIT */
#include "example.h"

static unsigned char rgb[PIXELS * 3];
static float logits[PIXELS * LABELS];

int main(void) {
    dcrf_error error;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_solver_info info;
    dcrf_verification checked;
    draw(rgb, logits);
    dcrf_model *model = make_model(rgb, logits);
    check(dcrf_workspace_new(&workspace, 0, &error), &error);
    check(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), &error);

    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.proof = DCRF_PROVE_CERTIFICATE;
    settings.time_limit_s = 20;
    check(dcrf_solver_new(&solver, plan, workspace, &settings, &error), &error);
    check(dcrf_solver_run(solver, &error), &error);
    dcrf_solver_get_info(solver, &info);
    printf("energy %.3f, no labelling is below %.3f; %zu of %d pixels are proven\n",
           info.energy.total, info.lower_bound, info.proven, PIXELS);

    /* Anyone who has the model and the bytes can do this. */
    size_t size;
    const uint8_t *certificate = dcrf_proof_certificate(dcrf_solver_proof(solver), &size);
    check(dcrf_verify_certificate(certificate, size, model, workspace, NULL, NULL, 0, &checked,
                                  &error),
          &error);
    printf("the certificate has %zu bytes and proves a gap of %.4f %%\n", size,
           100 * checked.relative_gap);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    return checked.lower_bound > info.energy.total; /* never */
}
