/* The compatible mean field of the fake device: it uses the Gaussian itself instead of the lattice,
 * so that a few lines of a test can predict the result. Kernels with more than MOST_FEATURES
 * features are not supported. */
#include "fake_backend.h"

#include <math.h>
#include <pthread.h>
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
    struct dcrf_backend_group *groups; /* owns its memory */
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

static void free_groups(struct dcrf_backend_group *groups, size_t count) {
    for (size_t g = 0; groups && g < count; g++) {
        free((void *)(uintptr_t)groups[g].operators);
        free((void *)(uintptr_t)groups[g].weights);
        free((void *)(uintptr_t)groups[g].compatibility);
    }
    free(groups);
}

static void free_compat(dcrf_backend_compat *compat) {
    if (!compat)
        return;
    free_groups(compat->groups, compat->group_count);
    free(compat->unary);
    free(compat->q);
    free(compat->message);
    fake_drop(compat->device);
    free(compat);
}

static dcrf_status make(dcrf_backend_compat **out, dcrf_backend_device *device, size_t variables,
                        size_t labels, dcrf_error *error) {
    const size_t floats = variables * labels;
    const dcrf_status status = fake_refuse("compat.make", error);
    *out = NULL;
    if (status < 0)
        return status;
    dcrf_backend_compat *compat = calloc(1, sizeof *compat);
    if (!compat)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake model");
    fake_hold(device);
    compat->device = device;
    compat->variables = variables;
    compat->labels = labels;
    compat->unary = calloc(floats, sizeof *compat->unary);
    compat->q = calloc(floats, sizeof *compat->q);
    compat->message = calloc(floats, sizeof *compat->message);
    if (!compat->unary || !compat->q || !compat->message) {
        free_compat(compat);
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake model");
    }
    *out = compat;
    return DCRF_OK;
}

static dcrf_status set_unary(dcrf_backend_compat *compat, const struct dcrf_backend_places *unary,
                             float largest, dcrf_error *error) {
    const size_t n = compat->variables, labels = compat->labels, lanes = unary->lanes;
    dcrf_status status = fake_refuse("compat.set_unary", error);
    for (size_t pass = 0; pass < 2; pass++) /* check all before storing any */
        for (size_t place = 0; place < n && status == DCRF_OK; place++)
            for (size_t i = 0; i < labels; i++) {
                const float value =
                    unary->numbers[(place / lanes * labels + i) * lanes + place % lanes];
                const size_t a = unary->order ? unary->order[place] : place;
                if (!isfinite(value))
                    status = fake_fail(error, DCRF_ERROR_NOT_FINITE, "a fake energy is not finite");
                else if (pass == 1)
                    compat->unary[i * n + a] = (double)fmaxf(fminf(value, largest), -largest);
            }
    return status;
}

static dcrf_status get_unary(dcrf_backend_compat *compat, float *planes, dcrf_error *error) {
    for (size_t k = 0; k < compat->variables * compat->labels; k++)
        planes[k] = (float)compat->unary[k];
    return fake_refuse("compat.get_unary", error);
}

static void *copied(const void *from, size_t bytes) {
    void *to = from ? malloc(bytes) : NULL;
    return to ? memcpy(to, from, bytes) : NULL;
}

static dcrf_status set_kernels(dcrf_backend_compat *compat, const struct dcrf_backend_group *given,
                               size_t count, dcrf_error *error) {
    const size_t matrix = compat->labels * compat->labels * sizeof *given->compatibility;
    const dcrf_status status = fake_refuse("compat.set_kernels", error);
    if (status < 0)
        return status;
    struct dcrf_backend_group *groups = calloc(count, sizeof *groups);
    if (!groups)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: kernels of a fake model");
    for (size_t g = 0; g < count; g++) {
        const size_t kernels = given[g].kernel_count;
        groups[g] = (struct dcrf_backend_group){
            .kernel_count = kernels,
            .operators = copied(given[g].operators, kernels * sizeof *given->operators),
            .weights = copied(given[g].weights, kernels * sizeof *given->weights),
            .compatibility = copied(given[g].compatibility, matrix)};
        for (size_t m = 0; m < kernels; m++)
            if (!fake_is_on(given[g].operators[m], compat->device)) {
                free_groups(groups, count);
                return fake_fail(error, DCRF_ERROR_ARGUMENT, "an operator of another device");
            }
    }
    free_groups(compat->groups, compat->group_count);
    compat->groups = groups;
    compat->group_count = count;
    return DCRF_OK;
}

/* (sum of the group's w K q_i)_a */
static double filtered(const dcrf_backend_compat *compat, const struct dcrf_backend_group *group,
                       size_t i, size_t a) {
    double sum = 0;
    for (size_t m = 0; m < group->kernel_count; m++)
        for (size_t b = 0; b < compat->variables; b++)
            sum += group->weights[m] * fake_row(group->operators[m], a)[b] *
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

static dcrf_status run_alone(dcrf_backend_compat *compat,
                             const struct dcrf_backend_compat_run *what, dcrf_error *error) {
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

/* Threads run one at a time. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static dcrf_status run(dcrf_backend_compat *compat, const struct dcrf_backend_compat_run *what,
                       dcrf_error *error) {
    pthread_mutex_lock(&turn);
    const dcrf_status status = run_alone(compat, what, error);
    pthread_mutex_unlock(&turn);
    return status;
}

static dcrf_status divergence(dcrf_backend_compat *compat, const float *q, double *out,
                              dcrf_error *error) {
    const size_t floats = compat->variables * compat->labels;
    double sum = 0;
    pthread_mutex_lock(&turn);
    for (size_t k = 0; k < floats; k++)
        compat->q[k] = (double)q[k];
    find_message(compat);
    for (size_t k = 0; k < floats; k++)
        sum +=
            compat->q[k] * (log(fmax(compat->q[k], 1e-20)) + compat->unary[k] + compat->message[k]);
    pthread_mutex_unlock(&turn);
    *out = sum;
    return fake_refuse("compat.divergence", error);
}

const struct dcrf_backend_compat_methods fake_compat = {.operator_new = operator_new,
                                                        .make = make,
                                                        .free = free_compat,
                                                        .set_unary = set_unary,
                                                        .get_unary = get_unary,
                                                        .set_kernels = set_kernels,
                                                        .run = run,
                                                        .divergence = divergence};
