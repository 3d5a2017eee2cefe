#include "energy/coupling.h"

#include "core/error.h"
#include "core/memory.h"
#include "model/cuts.h"

/* group->diagonal = sum of w_m diag(K_m) */
struct diagonals {
    const struct dcrf_coupling *coupling;
    const struct dcrf_coupling_group *group;
};

static void sum_diagonals(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct diagonals *diagonals = context;
    const struct dcrf_coupling *coupling = diagonals->coupling;
    const struct dcrf_coupling_group *group = diagonals->group;
    for (size_t a = begin; a < end; a++) {
        double sum = 0;
        for (size_t k = group->first; k < group->first + group->count; k++) {
            const size_t m = coupling->kernels[k];
            sum += coupling->plan->model->kernels[m].weight *
                   (double)coupling->plan->kernels[m].diagonal[a];
        }
        group->diagonal[a] = (float)sum;
    }
}

static dcrf_status add_group(struct dcrf_coupling *coupling, size_t first, size_t count,
                             const struct dcrf_model_kernel *kernel, dcrf_error *error) {
    const dcrf_model *model = coupling->plan->model;
    struct dcrf_coupling_group *group = &coupling->groups[coupling->group_count++];
    group->first = first;
    group->count = count;
    group->compatibility = kernel ? kernel->compatibility : DCRF_COMPATIBILITY_POTTS;
    group->values = kernel ? kernel->compatibility_values : NULL;
    group->cuts = kernel ? kernel->cuts : NULL;
    group->diagonal = dcrf_allocate(model->variables, sizeof *group->diagonal);
    if (!group->diagonal)
        return dcrf_fail_memory(error, "the diagonals of a model");
    struct diagonals diagonals = {coupling, group};
    dcrf_parallel_rows(dcrf_workspace_pool(coupling->workspace), model->variables, sum_diagonals,
                       &diagonals);
    return DCRF_OK;
}

static dcrf_status form_groups(struct dcrf_coupling *coupling, dcrf_error *error) {
    const dcrf_model *model = coupling->plan->model;
    size_t listed = 0;
    for (size_t m = 0; m < model->kernel_count; m++)
        if (model->kernels[m].weight > 0 &&
            model->kernels[m].compatibility == DCRF_COMPATIBILITY_POTTS)
            coupling->kernels[listed++] = m;
    dcrf_status status = add_group(coupling, 0, listed, NULL, error);
    for (size_t m = 0; m < model->kernel_count && status == DCRF_OK; m++)
        if (model->kernels[m].weight > 0 &&
            model->kernels[m].compatibility != DCRF_COMPATIBILITY_POTTS) {
            coupling->kernels[listed] = m;
            status = add_group(coupling, listed++, 1, &model->kernels[m], error);
        }
    return status;
}

dcrf_status dcrf_coupling_new(struct dcrf_coupling **out, const dcrf_plan *plan,
                              dcrf_workspace *workspace, dcrf_error *error) {
    const dcrf_model *model = plan->model;
    *out = NULL;
    dcrf_status status = dcrf_plan_check(plan, error);
    if (status < 0)
        return status;
    struct dcrf_coupling *coupling = dcrf_allocate_zero(1, sizeof *coupling);
    if (!coupling)
        return dcrf_fail_memory(error, "the pairwise term");
    coupling->plan = plan;
    coupling->workspace = workspace;
    coupling->groups = dcrf_allocate_zero(model->kernel_count + 1, sizeof *coupling->groups);
    coupling->kernels = dcrf_allocate_zero(model->kernel_count, sizeof *coupling->kernels);
    if (!coupling->groups || !coupling->kernels)
        status = dcrf_fail_memory(error, "the pairwise term");
    else
        status = form_groups(coupling, error);
    if (status == DCRF_OK && !dcrf_coupling_is_potts(coupling)) {
        coupling->block = dcrf_allocate(model->variables, model->stride * sizeof(float));
        if (!coupling->block)
            status = dcrf_fail_memory(error, "the pairwise term");
    }
    if (status < 0) {
        dcrf_coupling_free(&coupling);
        return status;
    }
    coupling->same_label_factor = dcrf_coupling_is_potts(coupling) ? -1 : 1;
    coupling->all_factor = dcrf_coupling_is_potts(coupling) ? 1 : 0;
    *out = coupling;
    return DCRF_OK;
}

void dcrf_coupling_free(struct dcrf_coupling **coupling_pointer) {
    struct dcrf_coupling *coupling = *coupling_pointer;
    if (!coupling)
        return;
    for (size_t g = 0; g < coupling->group_count; g++)
        dcrf_release(coupling->groups[g].diagonal);
    dcrf_release(coupling->groups);
    dcrf_release(coupling->kernels);
    dcrf_release(coupling->block);
    dcrf_release(coupling);
    *coupling_pointer = NULL;
}

bool dcrf_coupling_is_potts(const struct dcrf_coupling *coupling) {
    return coupling->group_count == 1;
}

dcrf_status dcrf_coupling_sum(const struct dcrf_coupling *coupling, size_t index, const float *in,
                              float *out, size_t channels, size_t stride, dcrf_error *error) {
    const struct dcrf_coupling_group *group = &coupling->groups[index];
    return dcrf_plan_sum(coupling->plan, coupling->workspace, coupling->kernels + group->first,
                         group->count, in, out, channels, stride, error);
}

dcrf_status dcrf_coupling_sum_others(const struct dcrf_coupling *coupling, size_t index,
                                     const float *in, float *out, size_t channels, size_t stride,
                                     dcrf_error *error) {
    const dcrf_status status = dcrf_coupling_sum(coupling, index, in, out, channels, stride, error);
    if (status == DCRF_OK && coupling->groups[index].count > 0)
        dcrf_plan_remove_diagonal(coupling->plan, coupling->workspace,
                                  coupling->groups[index].diagonal, in, out, channels, stride);
    return status;
}

struct field_pass {
    const struct dcrf_coupling *coupling;
    const struct dcrf_coupling_group *group;
    const float *others; /* S of the group */
    float *field;
};

/* field += mu S */
static void add_compatible(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct field_pass *pass = context;
    const dcrf_model *model = pass->coupling->plan->model;
    const float *values = pass->group->values;
    const size_t labels = model->labels;
    for (size_t a = begin; a < end; a++) {
        const float *others = pass->others + a * model->stride;
        float *field = pass->field + a * model->stride;
        switch (pass->group->compatibility) {
        case DCRF_COMPATIBILITY_POTTS: {
            double sum = 0;
            for (size_t i = 0; i < labels; i++)
                sum += (double)others[i];
            for (size_t i = 0; i < labels; i++)
                field[i] += (float)(sum - (double)others[i]);
            break;
        }
        case DCRF_COMPATIBILITY_VECTOR:
            for (size_t i = 0; i < labels; i++)
                field[i] += values[i] * others[i];
            break;
        case DCRF_COMPATIBILITY_MATRIX: /* symmetric: row j is column j */
            if (pass->group->cuts)
                dcrf_cuts_apply(pass->group->cuts, others, field);
            for (size_t j = 0; j < labels && !pass->group->cuts; j++)
                for (size_t i = 0; i < labels; i++)
                    field[i] += others[j] * values[j * labels + i];
            break;
        }
    }
}

dcrf_status dcrf_coupling_field(const struct dcrf_coupling *coupling, const float *y, float *field,
                                dcrf_error *error) {
    const dcrf_model *model = coupling->plan->model;
    dcrf_pool *pool = dcrf_workspace_pool(coupling->workspace);
    struct field_pass pass = {coupling, NULL, coupling->block, field};
    if (dcrf_coupling_is_potts(coupling))
        return dcrf_coupling_sum_others(coupling, 0, y, field, model->labels, model->stride, error);
    dcrf_parallel_clear(pool, field, model->variables * model->stride * sizeof *field);
    for (size_t g = 0; g < coupling->group_count; g++) {
        pass.group = &coupling->groups[g];
        if (pass.group->count == 0)
            continue;
        const dcrf_status status = dcrf_coupling_sum_others(coupling, g, y, coupling->block,
                                                            model->labels, model->stride, error);
        if (status < 0)
            return status;
        dcrf_parallel_rows(pool, model->variables, add_compatible, &pass);
    }
    return DCRF_OK;
}
