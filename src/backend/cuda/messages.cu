#include "backend/cuda/messages.cuh"

#include <cstdlib>
#include <vector>

#define WHAT "the sum over the kernels"

void message_kernels_release(struct message_kernels *kernels) {
    if (!kernels->device)
        return;
    for (float *message : kernels->messages)
        device_release(kernels->device, message);
    for (size_t g = 0; kernels->groups && g < kernels->group_count; g++) {
        device_release(kernels->device, kernels->groups[g].own_diagonal);
        device_cuts_release(&kernels->groups[g].cuts, kernels->device);
        device_release(kernels->device, kernels->groups[g].mu);
    }
    free(kernels->groups);
    free(kernels->operators);
    free(kernels->weights);
    device_drop(kernels->device);
    *kernels = {};
}

static bool is_potts(const struct message_kernels *kernels) {
    return kernels->groups[0].is_potts;
}

static dcrf_status take_messages(struct message_kernels *kernels, dcrf_error *error) {
    const size_t floats = kernels->variables * kernels->stride;
    const bool is_one = is_potts(kernels) && kernels->groups[0].count < 2;
    /* Filters do not write the padding of rows, but some read whole rows. */
    for (size_t k = 0; k < (is_one ? 1 : 2); k++)
        TRY(device_zeros(kernels->device, &kernels->messages[k], floats, WHAT, error));
    return DCRF_OK;
}

/* The matrix of a group, with rows of the model's stride. */
static dcrf_status take_compatibility(struct message_kernels *kernels, struct message_group *group,
                                      const float *values, dcrf_error *error) {
    const size_t labels = kernels->labels, stride = kernels->stride;
    std::vector<float> rows(labels * stride, 0);
    for (size_t i = 0; i < labels * labels; i++)
        rows[i / labels * stride + i % labels] = values[i];
    return device_copy<float>(kernels->device, &group->mu, rows.data(), rows.size(), WHAT, error);
}

/* Group g, with the operators from `first` on. */
static dcrf_status take_group(struct message_kernels *kernels, size_t g, size_t first,
                              const struct dcrf_backend_group *given, dcrf_error *error) {
    struct message_group *group = &kernels->groups[g];
    group->first = first;
    group->count = given->kernel_count;
    for (size_t m = 0; m < given->kernel_count; m++) {
        kernels->operators[first + m] =
            reinterpret_cast<struct device_operator *>(given->operators[m]);
        kernels->weights[first + m] = (float)given->weights[m];
    }
    group->is_potts = !given->compatibility;
    if (group->is_potts)
        return DCRF_OK;
    return given->cuts ? device_cuts_take(&group->cuts, kernels->device, given->cuts, error)
                       : take_compatibility(kernels, group, given->compatibility, error);
}

static dcrf_status take_diagonal(const struct message_kernels *kernels, struct message_group *group,
                                 const float *given, bool is_adopted, dcrf_error *error) {
    if (given && !is_adopted)
        TRY(device_copy(kernels->device, &group->own_diagonal, given, kernels->variables, WHAT,
                        error));
    group->diagonal = is_adopted ? given : group->own_diagonal;
    return DCRF_OK;
}

static dcrf_status take(struct message_kernels *kernels, const struct dcrf_backend_model *model,
                        bool are_adopted, dcrf_error *error) {
    size_t count = 0, first = 0;
    for (size_t g = 0; g < model->group_count; g++)
        count += model->groups[g].kernel_count;
    kernels->groups =
        static_cast<struct message_group *>(calloc(model->group_count, sizeof *kernels->groups));
    kernels->operators =
        static_cast<struct device_operator **>(calloc(count + 1, sizeof *kernels->operators));
    kernels->weights = static_cast<float *>(calloc(count + 1, sizeof *kernels->weights));
    if (!kernels->groups || !kernels->operators || !kernels->weights)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    for (size_t g = 0; g < model->group_count; g++) {
        const struct dcrf_backend_group *given = &model->groups[g];
        TRY(take_group(kernels, g, first, given, error));
        TRY(take_diagonal(kernels, &kernels->groups[g], given->diagonal, are_adopted, error));
        first += given->kernel_count;
    }
    return take_messages(kernels, error);
}

dcrf_status message_kernels_take(struct message_kernels *kernels, dcrf_backend_device *device,
                                 const struct dcrf_backend_model *model, bool are_adopted,
                                 dcrf_error *error) {
    *kernels = {device, model->variables, model->labels, model->stride, model->group_count};
    device_hold(device);
    const dcrf_status status = take(kernels, model, are_adopted, error);
    if (status < 0)
        message_kernels_release(kernels);
    return status;
}

/* The message of the kernels first .. end - 1. */
static dcrf_status filter(const struct message_kernels *kernels, size_t first, size_t end,
                          struct dcrf_application application, dcrf_error *error) {
    for (size_t m = first; m < end; m++) {
        application.factor = kernels->weights[m];
        application.accumulate = m > first;
        TRY(kernels->operators[m]->apply_on_device(kernels->operators[m], &application, error));
    }
    return DCRF_OK;
}

dcrf_status messages_send(const struct message_kernels *kernels, const float *in, size_t channels,
                          size_t stride, dcrf_error *error) {
    const size_t count = kernels->groups[0].count;
    struct dcrf_application application = {
        DCRF_SYMMETRIC, in, kernels->messages[0], channels, stride, 1, false};
    if (count < 2) /* without kernels the message stays zero */
        return filter(kernels, 0, count, application, error);
    TRY(device_beside(
        kernels->device, [&] { return filter(kernels, 0, 1, application, error); }, error));
    application.out = kernels->messages[1];
    TRY(filter(kernels, 1, count, application, error));
    return device_join(kernels->device, error);
}

/* ---- compatibilities ------------------------------------------------------------------------ */

struct compatible {
    size_t variables;
    uint32_t labels, stride; /* stride in float4 */
    const float *message, *in, *diagonal;
    const float4 *mu;
    float4 *field;
    bool is_first;
};

/* field += (message - diagonal in) mu, four labels per thread; the first group overwrites it. */
static __global__ void add_compatible(struct compatible c) {
    const size_t at = this_thread(), row = at / c.stride;
    const uint32_t column = (uint32_t)(at % c.stride);
    if (row >= c.variables)
        return;
    const float *message = c.message + row * 4 * c.stride, *in = c.in + row * 4 * c.stride;
    const float diagonal = c.diagonal ? c.diagonal[row] : 0;
    float4 sum = c.is_first ? make_float4(0, 0, 0, 0) : c.field[at];
    for (uint32_t j = 0; j < c.labels; j++) {
        const float others = message[j] - diagonal * in[j];
        const float4 mu = c.mu[(size_t)j * c.stride + column];
        sum.x += others * mu.x;
        sum.y += others * mu.y;
        sum.z += others * mu.z;
        sum.w += others * mu.w;
    }
    c.field[at] = sum;
}

static dcrf_status add_group(const struct message_kernels *kernels,
                             const struct message_group *group, const float *in, bool is_first,
                             dcrf_error *error) {
    if (group->cuts.labels > 0) {
        const struct cuts_message message = {
            kernels->variables,   kernels->stride, kernels->messages[1], in, group->diagonal,
            kernels->messages[0], is_first};
        return cuts_apply(&group->cuts, kernels->device, &message, error);
    }
    const struct compatible c = {kernels->variables,
                                 (uint32_t)kernels->labels,
                                 (uint32_t)(kernels->stride / 4),
                                 kernels->messages[1],
                                 in,
                                 group->diagonal,
                                 reinterpret_cast<const float4 *>(group->mu),
                                 reinterpret_cast<float4 *>(kernels->messages[0]),
                                 is_first};
    add_compatible<<<blocks_for(c.variables * c.stride), THREADS, 0, kernels->device->stream>>>(c);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status send_group(const struct message_kernels *kernels,
                              const struct message_group *group, const float *in, bool is_first,
                              dcrf_error *error) {
    const struct dcrf_application application = {
        DCRF_SYMMETRIC, in, kernels->messages[1], kernels->labels, kernels->stride, 1, false};
    TRY(filter(kernels, group->first, group->first + group->count, application, error));
    return add_group(kernels, group, in, is_first, error);
}

dcrf_status field_send(const struct message_kernels *kernels, const float *in,
                       struct field_parts *field, dcrf_error *error) {
    *field = {{reinterpret_cast<float4 *>(kernels->messages[0]), nullptr}, nullptr};
    if (is_potts(kernels)) {
        field->part[1] = reinterpret_cast<float4 *>(kernels->messages[1]);
        field->diagonal = kernels->groups[0].diagonal;
        return messages_send(kernels, in, kernels->labels, kernels->stride, error);
    }
    bool is_first = true;
    for (size_t g = 0; g < kernels->group_count; g++)
        if (kernels->groups[g].count > 0) {
            TRY(send_group(kernels, &kernels->groups[g], in, is_first, error));
            is_first = false;
        }
    return DCRF_OK;
}
