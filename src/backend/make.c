#include "backend/make.h"

#include "backend/device.h"
#include "core/error.h"
#include "core/owned.h"
#include "energy/coupling.h"

/* The description of a model for a backend, and the memory that it refers to. */
struct description {
    struct dcrf_backend_model model;
    struct dcrf_backend_group *groups;
    dcrf_operator **operators; /* of all groups */
    double *weights;
    float *compatibilities; /* one matrix per group; NULL if all kernels are Potts */
};

static bool take_memory(struct description *description, struct dcrf_owned *owned) {
    const struct dcrf_coupling *coupling = description->model.coupling;
    const size_t kernels = description->model.plan->kernel_count;
    const size_t groups = description->model.group_count, labels = description->model.labels;
    description->groups = dcrf_own_zero(owned, groups, sizeof *description->groups);
    description->operators = dcrf_own(owned, kernels + 1, sizeof *description->operators);
    description->weights = dcrf_own(owned, kernels + 1, sizeof *description->weights);
    if (coupling && !dcrf_coupling_is_potts(coupling))
        description->compatibilities =
            dcrf_own(owned, groups, labels * labels * sizeof *description->compatibilities);
    return !owned->is_short;
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

static void fill_kernel(struct description *description, size_t place, size_t kernel) {
    const dcrf_plan *plan = description->model.plan;
    description->operators[place] = plan->kernels[kernel].op;
    description->weights[place] = plan->model->kernels[kernel].weight;
}

static void fill_group(struct description *description, size_t g) {
    const struct dcrf_coupling *coupling = description->model.coupling;
    const struct dcrf_coupling_group *group = &coupling->groups[g];
    const size_t labels = description->model.labels;
    float *matrix =
        description->compatibilities ? description->compatibilities + g * labels * labels : NULL;
    for (size_t k = group->first; k < group->first + group->count; k++)
        fill_kernel(description, k, coupling->kernels[k]);
    if (matrix)
        fill_compatibility(group, labels, matrix);
    description->groups[g] =
        (struct dcrf_backend_group){.kernel_count = group->count,
                                    .operators = description->operators + group->first,
                                    .weights = description->weights + group->first,
                                    .diagonal = group->diagonal,
                                    .compatibility = matrix,
                                    .cuts = group->cuts};
}

/* One group of all kernels with nonzero weight. */
static void fill_potts(struct description *description) {
    const dcrf_plan *plan = description->model.plan;
    size_t count = 0;
    for (size_t m = 0; m < plan->kernel_count; m++)
        if (plan->model->kernels[m].weight != 0)
            fill_kernel(description, count++, m);
    description->groups[0] = (struct dcrf_backend_group){.kernel_count = count,
                                                         .operators = description->operators,
                                                         .weights = description->weights};
}

static dcrf_status describe(struct description *description, const dcrf_plan *plan,
                            dcrf_workspace *workspace, const struct dcrf_coupling *coupling,
                            struct dcrf_owned *owned, dcrf_error *error) {
    const dcrf_model *model = plan->model;
    *description = (struct description){
        .model = {.plan = plan,
                  .workspace = workspace,
                  .coupling = coupling,
                  .variables = model->variables,
                  .labels = model->labels,
                  .stride = model->stride,
                  .unary = model->unary,
                  .group_count = coupling ? coupling->group_count : 1,
                  .same_label_factor = coupling ? coupling->same_label_factor : -1,
                  .all_factor = coupling ? coupling->all_factor : 1,
                  .cliques = model->cliques.count > 0 ? &model->cliques : NULL}};
    if (!take_memory(description, owned))
        return dcrf_fail_memory(error, "a model on its way to a backend");
    description->model.groups = description->groups;
    for (size_t g = 0; coupling && g < coupling->group_count; g++)
        fill_group(description, g);
    if (!coupling)
        fill_potts(description);
    return DCRF_OK;
}

static bool is_on_device(const dcrf_plan *plan, const struct dcrf_device *device) {
    for (size_t m = 0; m < plan->kernel_count; m++)
        if (plan->model->kernels[m].weight != 0 && plan->kernels[m].op->device != device->opened)
            return false;
    return true;
}

dcrf_status dcrf_backend_make(const dcrf_plan *plan, dcrf_workspace *workspace,
                              const struct dcrf_coupling *coupling, dcrf_backend_maker make,
                              void *user, dcrf_error *error) {
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    struct description description;
    TRY(describe(&description, plan, workspace, coupling, &owned, error));
    dcrf_status status = DCRF_ERROR_UNSUPPORTED;
    if (device && is_on_device(plan, device))
        status = make(user, device->backend, device->opened, &description.model, error);
    if (status == DCRF_ERROR_UNSUPPORTED)
        status = make(user, &dcrf_backend_cpu, NULL, &description.model, error);
    return status;
}
