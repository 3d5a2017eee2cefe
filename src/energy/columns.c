#include "energy/columns.h"

#include "core/error.h"
#include "core/memory.h"

#include <string.h>

static bool are_same(const struct dcrf_cuts *one, const struct dcrf_cuts *other) {
    return one == other ||
           (one && other && one->count == other->count && one->run_count == other->run_count &&
            memcmp(one->order, other->order, one->labels * sizeof *one->order) == 0 &&
            memcmp(one->offsets, other->offsets, (one->count + 1) * sizeof *one->offsets) == 0 &&
            memcmp(one->runs, other->runs, one->run_count * sizeof *one->runs) == 0 &&
            memcmp(one->lengths, other->lengths, one->count * sizeof *one->lengths) == 0);
}

/* Add the kernel to an existing group with the same cuts, or to a new one. */
static dcrf_status add_kernel(struct dcrf_columns *columns, const dcrf_model *model, size_t kernel,
                              dcrf_error *error) {
    struct dcrf_column_group *group = &columns->groups[columns->group_count];
    dcrf_left_out left_out;
    TRY(dcrf_model_find_cuts(model, kernel, &group->cuts, &group->own, &left_out, error));
    group->count = group->cuts ? group->cuts->count : model->labels;
    size_t g = 0;
    while (g < columns->group_count && !are_same(columns->groups[g].cuts, group->cuts))
        g++;
    columns->group_of[kernel] = g;
    if (g < columns->group_count)
        dcrf_cuts_free(&group->own);
    else
        columns->group_count++;
    columns->most = group->count > columns->most ? group->count : columns->most;
    dcrf_left_out_join(&columns->left_out, &left_out);
    return DCRF_OK;
}

dcrf_status dcrf_columns_new(struct dcrf_columns **out, const dcrf_model *model,
                             dcrf_error *error) {
    struct dcrf_columns *columns = dcrf_allocate_zero(1, sizeof *columns);
    *out = columns;
    if (!columns)
        return dcrf_fail_memory(error, "the columns of the LP");
    columns->groups = dcrf_allocate_zero(model->kernel_count + 1, sizeof *columns->groups);
    columns->group_of = dcrf_allocate(model->kernel_count + 1, sizeof *columns->group_of);
    dcrf_status status = columns->groups && columns->group_of
                             ? DCRF_OK
                             : dcrf_fail_memory(error, "the columns of the LP");
    columns->most = model->labels;
    for (size_t m = 0; m < model->kernel_count && status == DCRF_OK; m++) {
        columns->group_of[m] = DCRF_NO_GROUP;
        if (model->kernels[m].weight != 0)
            status = add_kernel(columns, model, m, error);
    }
    if (status < 0)
        dcrf_columns_free(out);
    return status;
}

void dcrf_columns_free(struct dcrf_columns **columns) {
    if (!*columns)
        return;
    for (size_t g = 0; (*columns)->groups && g < (*columns)->group_count; g++)
        dcrf_cuts_free(&(*columns)->groups[g].own);
    dcrf_release((*columns)->groups);
    dcrf_release((*columns)->group_of);
    dcrf_release(*columns);
    *columns = NULL;
}

bool dcrf_columns_are_labels(const struct dcrf_columns *columns) {
    for (size_t g = 0; g < columns->group_count; g++)
        if (columns->groups[g].cuts)
            return false;
    return true;
}

double dcrf_columns_reach(const struct dcrf_column_group *group) {
    return group->cuts ? group->cuts->reach : 1;
}

double dcrf_columns_stiffness(const struct dcrf_column_group *group) {
    return group->cuts ? group->cuts->stiffness : 1;
}

double dcrf_columns_roundings(const struct dcrf_column_group *group) {
    return group->cuts ? dcrf_cuts_roundings(group->cuts) : 0;
}
