#include "energy/device_model.h"

#include "core/error.h"
#include "core/memory.h"

void dcrf_device_model_clear(struct dcrf_device_model *there) {
    dcrf_release(there->operators);
    dcrf_release(there->weights);
    *there = (struct dcrf_device_model){0};
}

dcrf_status dcrf_device_model_init(struct dcrf_device_model *there,
                                   const struct dcrf_coupling *coupling, dcrf_error *error) {
    const dcrf_plan *plan = coupling->plan;
    const dcrf_model *model = plan->model;
    const struct dcrf_coupling_group *group = &coupling->groups[0];
    const struct dcrf_device *device = dcrf_workspace_find_device(coupling->workspace);
    *there = (struct dcrf_device_model){0};
    if (!device || !dcrf_coupling_is_potts(coupling) || model->cliques.count > 0)
        return DCRF_OK;
    for (size_t k = 0; k < group->count; k++)
        if (plan->kernels[coupling->kernels[group->first + k]].op->device != device->opened)
            return DCRF_OK;
    there->operators = dcrf_allocate(group->count + 1, sizeof *there->operators);
    there->weights = dcrf_allocate(group->count + 1, sizeof *there->weights);
    if (!there->operators || !there->weights) {
        dcrf_device_model_clear(there);
        return dcrf_fail_memory(error, "a model on its way to a device");
    }
    for (size_t k = 0; k < group->count; k++) {
        const size_t m = coupling->kernels[group->first + k];
        there->operators[k] = plan->kernels[m].op;
        there->weights[k] = (float)model->kernels[m].weight;
    }
    there->device = device;
    there->model = (struct dcrf_backend_model){.variables = model->variables,
                                               .labels = model->labels,
                                               .stride = model->stride,
                                               .unary = model->unary,
                                               .kernel_count = group->count,
                                               .operators = there->operators,
                                               .weights = there->weights,
                                               .diagonal = group->diagonal};
    return DCRF_OK;
}
