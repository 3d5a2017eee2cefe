#include "energy/coupling.h"

#include "core/error.h"
#include "core/memory.h"

#include <string.h>

#define ROWS_PER_CHUNK 1024

static dcrf_status add_group(struct dcrf_coupling *coupling, size_t first, size_t count,
                             const struct dcrf_model_kernel *kernel, dcrf_error *error) {
    const dcrf_model *model = coupling->plan->model;
    struct dcrf_coupling_group *group = &coupling->groups[coupling->group_count++];
    group->first = first;
    group->count = count;
    group->compatibility = kernel ? kernel->compatibility : DCRF_COMPATIBILITY_POTTS;
    group->values = kernel ? kernel->compatibility_values : NULL;
    group->diagonal = dcrf_allocate(model->variables, sizeof *group->diagonal);
    if (!group->diagonal)
        return dcrf_fail_memory(error, "the diagonals of a model");
    for (size_t a = 0; a < model->variables; a++) {
        double sum = 0;
        for (size_t k = first; k < first + count; k++) {
            const size_t m = coupling->kernels[k];
            sum += model->kernels[m].weight * (double)coupling->plan->kernels[m].diagonal[a];
        }
        group->diagonal[a] = (float)sum;
    }
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
    coupling->sign = dcrf_coupling_is_potts(coupling) ? -1 : 1;
    coupling->mass = dcrf_coupling_is_potts(coupling) ? 1 : 0;
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

dcrf_status dcrf_coupling_mass(const struct dcrf_coupling *coupling, size_t index, const float *in,
                               float *out, size_t channels, size_t stride, dcrf_error *error) {
    const dcrf_plan *plan = coupling->plan;
    const struct dcrf_coupling_group *group = &coupling->groups[index];
    if (group->count == 0) {
        memset(out, 0, plan->model->variables * stride * sizeof *out);
        return DCRF_OK;
    }
    for (size_t k = 0; k < group->count; k++) {
        const size_t m = coupling->kernels[group->first + k];
        const struct dcrf_application application = {.direction = DCRF_SYMMETRIC,
                                                     .in = in,
                                                     .out = out,
                                                     .channels = channels,
                                                     .stride = stride,
                                                     .factor =
                                                         (float)plan->model->kernels[m].weight,
                                                     .accumulate = k > 0};
        const dcrf_status status =
            dcrf_operator_run(plan->kernels[m].op, coupling->workspace, &application, error);
        if (status < 0)
            return status;
    }
    return DCRF_OK;
}

struct field_pass {
    const struct dcrf_coupling *coupling;
    const struct dcrf_coupling_group *group;
    const float *y;
    const float *mass;
    float *field;
};

static void remove_diagonal(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct field_pass *pass = context;
    const dcrf_model *model = pass->coupling->plan->model;
    for (size_t a = begin; a < end; a++) {
        const float diagonal = pass->group->diagonal[a];
        const float *y = pass->y + a * model->stride;
        float *field = pass->field + a * model->stride;
        for (size_t i = 0; i < model->labels; i++)
            field[i] -= diagonal * y[i];
    }
}

/* field += mu S, with S = mass - diagonal * y */
static void add_compatible(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct field_pass *pass = context;
    const dcrf_model *model = pass->coupling->plan->model;
    const float *values = pass->group->values;
    const size_t labels = model->labels;
    for (size_t a = begin; a < end; a++) {
        const float diagonal = pass->group->diagonal[a];
        const float *y = pass->y + a * model->stride, *mass = pass->mass + a * model->stride;
        float *field = pass->field + a * model->stride;
        switch (pass->group->compatibility) {
        case DCRF_COMPATIBILITY_POTTS: {
            double sum = 0;
            for (size_t i = 0; i < labels; i++)
                sum += (double)(mass[i] - diagonal * y[i]);
            for (size_t i = 0; i < labels; i++)
                field[i] += (float)(sum - (double)(mass[i] - diagonal * y[i]));
            break;
        }
        case DCRF_COMPATIBILITY_VECTOR:
            for (size_t i = 0; i < labels; i++)
                field[i] += values[i] * (mass[i] - diagonal * y[i]);
            break;
        case DCRF_COMPATIBILITY_MATRIX: /* symmetric: row j is column j */
            for (size_t j = 0; j < labels; j++) {
                const float other = mass[j] - diagonal * y[j];
                for (size_t i = 0; i < labels; i++)
                    field[i] += other * values[j * labels + i];
            }
            break;
        }
    }
}

dcrf_status dcrf_coupling_field(const struct dcrf_coupling *coupling, const float *y, float *field,
                                dcrf_error *error) {
    const dcrf_model *model = coupling->plan->model;
    dcrf_pool *pool = dcrf_workspace_pool(coupling->workspace);
    struct field_pass pass = {coupling, &coupling->groups[0], y, coupling->block, field};
    if (dcrf_coupling_is_potts(coupling)) {
        const dcrf_status status =
            dcrf_coupling_mass(coupling, 0, y, field, model->labels, model->stride, error);
        if (status == DCRF_OK && coupling->groups[0].count > 0)
            dcrf_parallel_for(pool, model->variables, ROWS_PER_CHUNK, remove_diagonal, &pass);
        return status;
    }
    memset(field, 0, model->variables * model->stride * sizeof *field);
    for (size_t g = 0; g < coupling->group_count; g++) {
        pass.group = &coupling->groups[g];
        if (pass.group->count == 0)
            continue;
        const dcrf_status status = dcrf_coupling_mass(coupling, g, y, coupling->block,
                                                      model->labels, model->stride, error);
        if (status < 0)
            return status;
        dcrf_parallel_for(pool, model->variables, ROWS_PER_CHUNK, add_compatible, &pass);
    }
    return DCRF_OK;
}
