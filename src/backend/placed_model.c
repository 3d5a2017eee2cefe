#include "backend/placed_model.h"

#include "core/error.h"
#include "core/memory.h"

/* ---- the place ------------------------------------------------------------------------------ */

static const struct dcrf_place cpu = {.backend = &dcrf_backend_cpu};

static bool is_on_device(const dcrf_plan *plan, const struct dcrf_device *device) {
    for (size_t m = 0; m < plan->kernel_count; m++)
        if (plan->model->kernels[m].weight != 0 && plan->kernels[m].op->device != device->opened)
            return false;
    return true;
}

static struct dcrf_place find_place(const dcrf_plan *plan, const dcrf_workspace *workspace) {
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    return device && is_on_device(plan, device)
               ? (struct dcrf_place){device->backend, device->opened}
               : cpu;
}

bool dcrf_place_falls_back(struct dcrf_place *place, dcrf_status status) {
    if (status != DCRF_ERROR_UNSUPPORTED || !place->device)
        return false;
    *place = cpu;
    return true;
}

/* ---- couplings ------------------------------------------------------------------------------ */

void dcrf_placed_model_clear(struct dcrf_placed_model *placed) {
    dcrf_release(placed->groups);
    dcrf_release(placed->operators);
    dcrf_release(placed->weights);
    dcrf_release(placed->compatibilities);
    *placed = (struct dcrf_placed_model){0};
}

static bool take_memory(struct dcrf_placed_model *placed, const struct dcrf_coupling *coupling) {
    const dcrf_model *model = coupling->plan->model;
    placed->groups = dcrf_allocate_zero(coupling->group_count, sizeof *placed->groups);
    placed->operators = dcrf_allocate(model->kernel_count + 1, sizeof *placed->operators);
    placed->weights = dcrf_allocate(model->kernel_count + 1, sizeof *placed->weights);
    if (!placed->groups || !placed->operators || !placed->weights)
        return false;
    if (dcrf_coupling_is_potts(coupling))
        return true;
    placed->compatibilities = dcrf_allocate(
        coupling->group_count, model->labels * model->labels * sizeof *placed->compatibilities);
    return placed->compatibilities;
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

static void fill_group(struct dcrf_placed_model *placed, const struct dcrf_coupling *coupling,
                       size_t g) {
    const dcrf_plan *plan = coupling->plan;
    const size_t labels = plan->model->labels;
    const struct dcrf_coupling_group *group = &coupling->groups[g];
    float *matrix = placed->compatibilities ? placed->compatibilities + g * labels * labels : NULL;
    for (size_t k = group->first; k < group->first + group->count; k++) {
        const size_t m = coupling->kernels[k];
        placed->operators[k] = plan->kernels[m].op;
        placed->weights[k] = (float)plan->model->kernels[m].weight;
    }
    if (matrix)
        fill_compatibility(group, labels, matrix);
    placed->groups[g] = (struct dcrf_backend_group){.kernel_count = group->count,
                                                    .operators = placed->operators + group->first,
                                                    .weights = placed->weights + group->first,
                                                    .diagonal = group->diagonal,
                                                    .compatibility = matrix};
}

dcrf_status dcrf_placed_model_init(struct dcrf_placed_model *placed,
                                   const struct dcrf_coupling *coupling, dcrf_error *error) {
    const dcrf_model *model = coupling->plan->model;
    *placed = (struct dcrf_placed_model){.place = find_place(coupling->plan, coupling->workspace)};
    if (!take_memory(placed, coupling)) {
        dcrf_placed_model_clear(placed);
        return dcrf_fail_memory(error, "a model on its way to a device");
    }
    for (size_t g = 0; g < coupling->group_count; g++)
        fill_group(placed, coupling, g);
    placed->model =
        (struct dcrf_backend_model){.coupling = coupling,
                                    .variables = model->variables,
                                    .labels = model->labels,
                                    .stride = model->stride,
                                    .unary = model->unary,
                                    .group_count = coupling->group_count,
                                    .groups = placed->groups,
                                    .own_factor = coupling->own_factor,
                                    .all_factor = coupling->all_factor,
                                    .cliques = model->cliques.count > 0 ? &model->cliques : NULL};
    return DCRF_OK;
}

/* ---- the LP --------------------------------------------------------------------------------- */

void dcrf_placed_lp_model_clear(struct dcrf_placed_lp_model *placed) {
    dcrf_release(placed->operators);
    dcrf_release(placed->weights);
    *placed = (struct dcrf_placed_lp_model){0};
}

dcrf_status dcrf_placed_lp_model_init(struct dcrf_placed_lp_model *placed, const dcrf_plan *plan,
                                      dcrf_workspace *workspace, dcrf_error *error) {
    const dcrf_model *model = plan->model;
    *placed = (struct dcrf_placed_lp_model){
        .place = find_place(plan, workspace),
        .operators = dcrf_allocate(plan->kernel_count + 1, sizeof(dcrf_operator *)),
        .weights = dcrf_allocate(plan->kernel_count + 1, sizeof(double))};
    if (!placed->operators || !placed->weights) {
        dcrf_placed_lp_model_clear(placed);
        return dcrf_fail_memory(error, "the LP relaxation");
    }
    placed->model = (struct dcrf_backend_lp_model){
        .plan = plan,
        .workspace = workspace,
        .variables = model->variables,
        .labels = model->labels,
        .stride = model->stride,
        .unary = model->unary,
        .operators = placed->operators,
        .weights = placed->weights,
        .cliques = model->cliques.count > 0 ? &model->cliques : NULL};
    for (size_t m = 0; m < plan->kernel_count; m++)
        if (model->kernels[m].weight != 0) {
            placed->operators[placed->model.kernel_count] = plan->kernels[m].op;
            placed->weights[placed->model.kernel_count++] = model->kernels[m].weight;
        }
    return DCRF_OK;
}
