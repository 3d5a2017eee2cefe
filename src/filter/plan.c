/* The plan of a model, and the sum of its kernels without their diagonals
 *
 *   out = sum_m w_m (K_m - diag(K_m)) in.
 *
 * The diagonal is taken off after the sum: it belongs to pairs (a, a), which the energy does not
 * have. */
#include "filter/plan.h"

#include "core/error.h"
#include "core/memory.h"

#include <string.h>

#define ROWS_PER_CHUNK 1024

static dcrf_status build_kernel(struct dcrf_plan_kernel *built,
                                const struct dcrf_model_kernel *kernel, dcrf_operator_kind kind,
                                dcrf_workspace *workspace, dcrf_error *error) {
    const dcrf_status status = dcrf_operator_build(&built->op, &kernel->features,
                                                   kernel->normalization, kind, workspace, error);
    if (status < 0)
        return status;
    built->diagonal = dcrf_allocate(kernel->features.variables, sizeof *built->diagonal);
    if (!built->diagonal)
        return dcrf_fail_memory(error, "the diagonal of a kernel");
    return built->op->methods->diagonal(built->op, workspace, built->diagonal, error);
}

dcrf_status dcrf_plan_new(dcrf_plan **out, const dcrf_model *model, dcrf_operator_kind kind,
                          dcrf_workspace *workspace, dcrf_error *error) {
    *out = NULL;
    if (!model || !workspace)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a plan needs a %s",
                         model ? "workspace" : "model");
    dcrf_plan *plan = dcrf_allocate_zero(1, sizeof *plan);
    if (!plan)
        return dcrf_fail_memory(error, "a plan");
    plan->model = model;
    plan->kernels = dcrf_allocate_zero(model->kernel_count, sizeof *plan->kernels);
    if (!plan->kernels) {
        dcrf_plan_free(&plan);
        return dcrf_fail_memory(error, "a plan");
    }
    plan->kernel_count = model->kernel_count;
    for (size_t m = 0; m < plan->kernel_count; m++) {
        const dcrf_status status =
            build_kernel(&plan->kernels[m], &model->kernels[m], kind, workspace, error);
        if (status < 0) {
            dcrf_plan_free(&plan);
            return status;
        }
    }
    *out = plan;
    return DCRF_OK;
}

void dcrf_plan_free(dcrf_plan **plan_pointer) {
    if (!plan_pointer || !*plan_pointer)
        return;
    dcrf_plan *plan = *plan_pointer;
    for (size_t m = 0; m < plan->kernel_count; m++) {
        dcrf_operator_free(&plan->kernels[m].op);
        dcrf_release(plan->kernels[m].diagonal);
    }
    dcrf_release(plan->kernels);
    dcrf_release(plan);
    *plan_pointer = NULL;
}

const dcrf_model *dcrf_plan_model(const dcrf_plan *plan) {
    return plan->model;
}

const dcrf_operator *dcrf_plan_operator(const dcrf_plan *plan, size_t kernel) {
    return kernel < plan->kernel_count ? plan->kernels[kernel].op : NULL;
}

size_t dcrf_plan_bytes(const dcrf_plan *plan) {
    size_t bytes = sizeof *plan + plan->kernel_count * sizeof *plan->kernels;
    for (size_t m = 0; m < plan->kernel_count; m++)
        bytes += dcrf_operator_bytes(plan->kernels[m].op) +
                 plan->model->variables * sizeof *plan->kernels[m].diagonal;
    return bytes;
}

dcrf_status dcrf_plan_check(const dcrf_plan *plan, dcrf_error *error) {
    if (plan->kernel_count != plan->model->kernel_count)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the plan was made when the model had %zu kernels; it has %zu now: make a "
                         "new plan",
                         plan->kernel_count, plan->model->kernel_count);
    return DCRF_OK;
}

struct diagonal_removal {
    const dcrf_plan *plan;
    const float *in;
    float *out;
    size_t channels;
    size_t stride;
};

static void remove_diagonal(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct diagonal_removal *removal = context;
    const dcrf_plan *plan = removal->plan;
    for (size_t a = begin; a < end; a++) {
        double sum = 0;
        for (size_t m = 0; m < plan->kernel_count; m++)
            sum += plan->model->kernels[m].weight * (double)plan->kernels[m].diagonal[a];
        const float diagonal = (float)sum;
        const float *in = removal->in + a * removal->stride;
        float *out = removal->out + a * removal->stride;
        for (size_t c = 0; c < removal->channels; c++)
            out[c] -= diagonal * in[c];
    }
}

dcrf_status dcrf_plan_apply(const dcrf_plan *plan, dcrf_workspace *workspace, const float *in,
                            float *out, size_t channels, size_t stride, dcrf_error *error) {
    const dcrf_model *model = plan->model;
    dcrf_status status = dcrf_plan_check(plan, error);
    if (status < 0)
        return status;
    bool accumulate = false;
    for (size_t m = 0; m < plan->kernel_count; m++) {
        if (model->kernels[m].weight <= 0)
            continue;
        const struct dcrf_application application = {.direction = DCRF_SYMMETRIC,
                                                     .in = in,
                                                     .out = out,
                                                     .channels = channels,
                                                     .stride = stride,
                                                     .factor = (float)model->kernels[m].weight,
                                                     .accumulate = accumulate};
        status = dcrf_operator_run(plan->kernels[m].op, workspace, &application, error);
        if (status < 0)
            return status;
        accumulate = true;
    }
    if (!accumulate) {
        memset(out, 0, model->variables * stride * sizeof *out);
        return DCRF_OK;
    }
    struct diagonal_removal removal = {plan, in, out, channels, stride};
    dcrf_parallel_for(dcrf_workspace_pool(workspace), model->variables, ROWS_PER_CHUNK,
                      remove_diagonal, &removal);
    return DCRF_OK;
}
