#include "energy/device_model.h"

#include "core/error.h"
#include "core/memory.h"

void dcrf_device_model_clear(struct dcrf_device_model *there) {
    dcrf_release(there->groups);
    dcrf_release(there->operators);
    dcrf_release(there->weights);
    dcrf_release(there->compatibilities);
    *there = (struct dcrf_device_model){0};
}

static bool take_memory(struct dcrf_device_model *there, const struct dcrf_coupling *coupling) {
    const dcrf_model *model = coupling->plan->model;
    there->groups = dcrf_allocate_zero(coupling->group_count, sizeof *there->groups);
    there->operators = dcrf_allocate(model->kernel_count + 1, sizeof *there->operators);
    there->weights = dcrf_allocate(model->kernel_count + 1, sizeof *there->weights);
    if (!there->groups || !there->operators || !there->weights)
        return false;
    if (dcrf_coupling_is_potts(coupling))
        return true;
    there->compatibilities = dcrf_allocate(
        coupling->group_count, model->labels * model->labels * sizeof *there->compatibilities);
    return there->compatibilities;
}

static void fill_compatibility(const struct dcrf_coupling_group *group, size_t labels,
                               float *matrix) {
    for (size_t i = 0; i < labels; i++)
        for (size_t j = 0; j < labels; j++)
            switch (group->compatibility) {
            case DCRF_COMPATIBILITY_POTTS:
                matrix[i * labels + j] = i != j;
                break;
            case DCRF_COMPATIBILITY_VECTOR:
                matrix[i * labels + j] = i == j ? group->values[i] : 0;
                break;
            case DCRF_COMPATIBILITY_MATRIX:
                matrix[i * labels + j] = group->values[i * labels + j];
                break;
            }
}

/* Group g of the coupling; false: a kernel of it is not on the device. */
static bool add_group(struct dcrf_device_model *there, const struct dcrf_coupling *coupling,
                      size_t g) {
    const dcrf_plan *plan = coupling->plan;
    const size_t labels = plan->model->labels;
    const struct dcrf_coupling_group *group = &coupling->groups[g];
    float *matrix = there->compatibilities ? there->compatibilities + g * labels * labels : NULL;
    for (size_t k = group->first; k < group->first + group->count; k++) {
        const size_t m = coupling->kernels[k];
        there->operators[k] = plan->kernels[m].op;
        there->weights[k] = (float)plan->model->kernels[m].weight;
        if (there->operators[k]->device != there->device->opened)
            return false;
    }
    if (matrix)
        fill_compatibility(group, labels, matrix);
    there->groups[g] = (struct dcrf_backend_group){.kernel_count = group->count,
                                                   .operators = there->operators + group->first,
                                                   .weights = there->weights + group->first,
                                                   .diagonal = group->diagonal,
                                                   .compatibility = matrix};
    return true;
}

dcrf_status dcrf_device_model_init(struct dcrf_device_model *there,
                                   const struct dcrf_coupling *coupling, dcrf_error *error) {
    const dcrf_model *model = coupling->plan->model;
    *there = (struct dcrf_device_model){.device = dcrf_workspace_find_device(coupling->workspace)};
    if (!there->device)
        return DCRF_OK;
    if (!take_memory(there, coupling)) {
        dcrf_device_model_clear(there);
        return dcrf_fail_memory(error, "a model on its way to a device");
    }
    for (size_t g = 0; g < coupling->group_count; g++)
        if (!add_group(there, coupling, g)) {
            dcrf_device_model_clear(there);
            return DCRF_OK;
        }
    there->model =
        (struct dcrf_backend_model){.variables = model->variables,
                                    .labels = model->labels,
                                    .stride = model->stride,
                                    .unary = model->unary,
                                    .group_count = coupling->group_count,
                                    .groups = there->groups,
                                    .own_factor = coupling->own_factor,
                                    .all_factor = coupling->all_factor,
                                    .cliques = model->cliques.count > 0 ? &model->cliques : NULL};
    return DCRF_OK;
}
