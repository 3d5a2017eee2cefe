/* The compatible mean field of the fake device: with the Gaussian itself for the lattice, so that a
 * few lines of a test can say what comes out. Kernels of more than MOST_FEATURES features are not
 * on it. */
#include "fake_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FEATURES 6

struct dcrf_backend_compat {
    dcrf_backend_device *device;
    size_t variables, labels;
    double *unary; /* planes */
    double *q;
    double *message;
    size_t group_count;
    struct dcrf_backend_group *groups; /* with memory of their own */
};

static dcrf_status operator_new(dcrf_operator **out, dcrf_backend_device *device,
                                const struct dcrf_features *features, bool has_origin,
                                dcrf_densecrf_normalization normalization, dcrf_error *error) {
    const size_t n = features->variables;
    double *matrix = NULL;
    dcrf_status status = fake_refuse("compat.operator_new", error);
    *out = NULL;
    if (status == DCRF_OK && features->dimension > MOST_FEATURES)
        status = fake_fail(error, DCRF_ERROR_UNSUPPORTED,
                           "%zu features are not on the fake device yet", features->dimension);
    if (status == DCRF_OK && has_origin != (n % 4 != 0))
        status = fake_fail(error, DCRF_ERROR_ARGUMENT, "the origin is in for no reason");
    if (status == DCRF_OK)
        status = fake_operator_new(out, &matrix, device, features, DCRF_OPERATOR_LATTICE, error);
    double *sums = status == DCRF_OK ? calloc(n, sizeof *sums) : NULL;
    if (status == DCRF_OK && !sums) {
        (*out)->methods->free(*out);
        *out = NULL;
        status = fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake operator");
    }
    if (status < 0)
        return status;
    for (size_t k = 0; k < n * n; k++)
        sums[k / n] += matrix[k];
    for (size_t k = 0; k < n * n; k++) {
        if (normalization == DCRF_DENSECRF_BEFORE)
            matrix[k] /= sums[k % n];
        else if (normalization == DCRF_DENSECRF_AFTER)
            matrix[k] /= sums[k / n];
        else if (normalization == DCRF_DENSECRF_SYMMETRIC)
            matrix[k] /= sqrt(sums[k / n] * sums[k % n]);
    }
    free(sums);
    return DCRF_OK;
}

static void free_compat(dcrf_backend_compat *compat) {
    if (!compat)
        return;
    for (size_t g = 0; compat->groups && g < compat->group_count; g++) {
        free((void *)(uintptr_t)compat->groups[g].operators);
        free((void *)(uintptr_t)compat->groups[g].weights);
        free((void *)(uintptr_t)compat->groups[g].compatibility);
    }
    free(compat->groups);
    free(compat->unary);
    free(compat->q);
    free(compat->message);
    fake_drop(compat->device);
    free(compat);
}

static void *copied(const void *from, size_t bytes) {
    void *to = from ? malloc(bytes) : NULL;
    return to ? memcpy(to, from, bytes) : NULL;
}

static dcrf_status make(dcrf_backend_compat **out, dcrf_backend_device *device,
                        const struct dcrf_backend_compat_model *model, dcrf_error *error) {
    const size_t n = model->variables, labels = model->labels, floats = n * labels;
    const dcrf_status status = fake_refuse("compat.make", error);
    *out = NULL;
    if (status < 0)
        return status;
    dcrf_backend_compat *compat = calloc(1, sizeof *compat);
    if (!compat)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake model");
    fake_hold(device);
    compat->device = device;
    compat->variables = n;
    compat->labels = labels;
    compat->group_count = model->group_count;
    compat->unary = calloc(floats, sizeof *compat->unary);
    compat->q = calloc(floats, sizeof *compat->q);
    compat->message = calloc(floats, sizeof *compat->message);
    compat->groups = calloc(model->group_count, sizeof *compat->groups);
    if (!compat->unary || !compat->q || !compat->message || !compat->groups) {
        free_compat(compat);
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake model");
    }
    const size_t lanes = model->lanes;
    for (size_t place = 0; model->unary && place < n; place++)
        for (size_t i = 0; i < labels; i++)
            compat->unary[i * n + model->order[place]] =
                (double)model->unary[(place / lanes * labels + i) * lanes + place % lanes];
    for (size_t g = 0; g < model->group_count; g++) {
        const struct dcrf_backend_group *given = &model->groups[g];
        compat->groups[g] = (struct dcrf_backend_group){
            .kernel_count = given->kernel_count,
            .operators = copied(given->operators, given->kernel_count * sizeof *given->operators),
            .weights = copied(given->weights, given->kernel_count * sizeof *given->weights),
            .compatibility =
                copied(given->compatibility, labels * labels * sizeof *given->compatibility)};
        for (size_t m = 0; m < given->kernel_count; m++)
            if (!fake_is_on(given->operators[m], device)) {
                free_compat(compat);
                return fake_fail(error, DCRF_ERROR_ARGUMENT, "an operator of another device");
            }
    }
    *out = compat;
    return DCRF_OK;
}

/* (sum of the group's w K q_i)_a */
static double filtered(const dcrf_backend_compat *compat, const struct dcrf_backend_group *group,
                       size_t i, size_t a) {
    double sum = 0;
    for (size_t m = 0; m < group->kernel_count; m++)
        for (size_t b = 0; b < compat->variables; b++)
            sum += (double)group->weights[m] * fake_row(group->operators[m], a)[b] *
                   compat->q[i * compat->variables + b];
    return sum;
}

static void find_message(dcrf_backend_compat *compat) {
    const size_t n = compat->variables, labels = compat->labels;
    memset(compat->message, 0, n * labels * sizeof *compat->message);
    for (size_t g = 0; g < compat->group_count; g++)
        for (size_t i = 0; i < labels; i++)
            for (size_t a = 0; a < n; a++) {
                const struct dcrf_backend_group *group = &compat->groups[g];
                const double sum = filtered(compat, group, i, a);
                for (size_t j = 0; j < labels; j++)
                    compat->message[j * n + a] +=
                        group->compatibility ? sum * (double)group->compatibility[i * labels + j]
                        : i == j             ? sum
                                             : 0;
            }
}

/* q = softmax(-unary - message) */
static void softmax(dcrf_backend_compat *compat) {
    const size_t n = compat->variables, labels = compat->labels;
    for (size_t a = 0; a < n; a++) {
        double top = -INFINITY, sum = 0;
        for (size_t i = 0; i < labels; i++)
            top = fmax(top, -compat->unary[i * n + a] - compat->message[i * n + a]);
        for (size_t i = 0; i < labels; i++)
            sum += compat->q[i * n + a] =
                exp(-compat->unary[i * n + a] - compat->message[i * n + a] - top);
        for (size_t i = 0; i < labels; i++)
            compat->q[i * n + a] /= sum;
    }
}

static dcrf_status run(dcrf_backend_compat *compat, const struct dcrf_backend_compat_run *what,
                       dcrf_error *error) {
    const size_t floats = compat->variables * compat->labels;
    dcrf_status status = fake_refuse("compat.run", error);
    if (status < 0)
        return status;
    for (size_t k = 0; what->from && k < floats; k++) {
        if (!isfinite(what->from[k]))
            return fake_fail(error, DCRF_ERROR_NOT_FINITE, "Q holds a value that is not finite");
        compat->q[k] = (double)what->from[k];
    }
    if (!what->from) {
        memset(compat->message, 0, floats * sizeof *compat->message);
        softmax(compat);
    }
    for (size_t t = 0; t < what->updates && status == DCRF_OK; t++) {
        find_message(compat);
        softmax(compat);
        if (what->after && what->after(what->user, t + 1) != 0)
            status = DCRF_STOP_CANCELLED;
    }
    for (size_t k = 0; k < floats; k++)
        what->to[k] = (float)compat->q[k];
    return status;
}

static dcrf_status divergence(dcrf_backend_compat *compat, const float *q, double *out,
                              dcrf_error *error) {
    const size_t floats = compat->variables * compat->labels;
    double sum = 0;
    for (size_t k = 0; k < floats; k++)
        compat->q[k] = (double)q[k];
    find_message(compat);
    for (size_t k = 0; k < floats; k++)
        sum +=
            compat->q[k] * (log(fmax(compat->q[k], 1e-20)) + compat->unary[k] + compat->message[k]);
    *out = sum;
    return fake_refuse("compat.divergence", error);
}

const struct dcrf_backend_compat_methods fake_compat = {.operator_new = operator_new,
                                                        .make = make,
                                                        .free = free_compat,
                                                        .run = run,
                                                        .divergence = divergence};
