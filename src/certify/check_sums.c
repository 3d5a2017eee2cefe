/* Sums over kernels for the check of a certificate, in double.
 *
 * Exact: the Gaussians by plain loops over all pairs that count, nothing shared with the exact
 * operator. A kernel value whose exponent is beyond MOST_EXPONENT is below 5e-18 and left out; what
 * that can amount to is part of the check's tolerance. Fast: the operators in double; a member's
 * value is spread to the two nodes around it, one channel a node. */
#include "certify/check.h"
#include "certify/knowledge.h"
#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

#define MOST_EXPONENT 40.0
#define CHECK_CHANNELS 16
#define GRAIN 16
#define VALUES (DCRF_VALUE_MOST + 1)

/* ---- the Gaussians themselves --------------------------------------------------------------- */

static double kernel_value(const struct dcrf_check *check, size_t a, size_t b) {
    double sum = 0;
    for (size_t m = 0; m < check->model->kernel_count; m++) {
        const size_t d = check->model->kernels[m].features.dimension;
        const double *f = check->features[m] + a * d, *g = check->features[m] + b * d;
        double squared = 0;
        for (size_t i = 0; i < d; i++)
            squared += (f[i] - g[i]) * (f[i] - g[i]);
        if (squared <= 2 * MOST_EXPONENT)
            sum += check->model->kernels[m].weight * exp(-squared / 2) * check->scale[m][a] *
                   check->scale[m][b];
    }
    return sum;
}

static void add_pair(const struct dcrf_check *check, size_t a, size_t b, double k, double *sums) {
    const size_t labels = check->model->labels;
    if (check->kind == DCRF_CHECK_LABELS) {
        sums[check->labels[b]] += k;
    } else if (check->kind == DCRF_CHECK_POSSIBLE) {
        for (size_t i = 0; i < labels; i++)
            sums[i] += check->possible[b * labels + i] ? k : 0;
    } else if (check->member[b]) {
        for (size_t i = 0; i < labels; i++)
            if (check->content->plane[i] != 0)
                sums[i] += k * check->line[dcrf_certificate_value(check->content, a, i) * VALUES +
                                           dcrf_certificate_value(check->content, b, i)];
    } else {
        for (size_t i = 0; i < labels; i++)
            sums[i] += check->possible[b * labels + i] && i != check->labels[a] ? 2 * k : 0;
    }
}

static void add_exactly(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_check *check = context;
    const size_t labels = check->model->labels;
    for (size_t a = begin; a < end; a++) {
        double *sums = check->sums + a * labels;
        memset(sums, 0, labels * sizeof *sums);
        for (size_t b = 0; b < check->model->variables && check->wanted[a]; b++)
            if (check->counts[b] && b != a) {
                const double k = kernel_value(check, a, b);
                if (k > 0)
                    add_pair(check, a, b, k, sums);
            }
    }
}

struct normalization {
    const double *features;
    size_t dimension, variables;
    double *row_sums;
};

static void sum_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct normalization *c = context;
    for (size_t a = begin; a < end; a++) {
        c->row_sums[a] = 0;
        for (size_t b = 0; b < c->variables; b++) {
            double squared = 0;
            for (size_t i = 0; i < c->dimension; i++) {
                const double difference =
                    c->features[a * c->dimension + i] - c->features[b * c->dimension + i];
                squared += difference * difference;
            }
            if (squared <= 2 * MOST_EXPONENT)
                c->row_sums[a] += exp(-squared / 2);
        }
    }
}

static dcrf_status init_exact(struct dcrf_check *check, dcrf_error *error) {
    const dcrf_model *model = check->model;
    const size_t n = model->variables;
    check->features = dcrf_allocate_zero(model->kernel_count, sizeof *check->features);
    check->scale = dcrf_allocate_zero(model->kernel_count, sizeof *check->scale);
    if (!check->features || !check->scale)
        return dcrf_fail_memory(error, "the check of a certificate");
    for (size_t m = 0; m < model->kernel_count; m++) {
        const struct dcrf_features *features = &model->kernels[m].features;
        const size_t d = features->dimension;
        check->features[m] = dcrf_allocate(n, d * sizeof(double));
        check->scale[m] = dcrf_allocate(n, sizeof(double));
        if (!check->features[m] || !check->scale[m])
            return dcrf_fail_memory(error, "the check of a certificate");
        for (size_t a = 0; a < n; a++)
            for (size_t i = 0; i < d; i++)
                check->features[m][a * d + i] =
                    dcrf_features_value(features, a, i) * dcrf_features_factor(features, i);
        struct normalization c = {check->features[m], d, n, check->scale[m]};
        dcrf_parallel_for(dcrf_workspace_pool(check->workspace), n, GRAIN, sum_rows, &c);
        for (size_t a = 0; a < n; a++) {
            const double row_sum = check->scale[m][a];
            const bool is_normalized = model->kernels[m].normalization == DCRF_NORMALIZE_SYMMETRIC;
            check->scale[m][a] = is_normalized ? 1 / sqrt(row_sum) : 1;
            /* Of a normalized kernel as if all scales were the largest one, 1. */
            check->row_sums[a] += model->kernels[m].weight * row_sum;
        }
    }
    return DCRF_OK;
}

/* ---- the fast operators --------------------------------------------------------------------- */

static dcrf_status apply(struct dcrf_check *check, size_t channels, dcrf_error *error) {
    const size_t count = check->model->variables * channels;
    double *total = check->out + count; /* there is room for two */
    memset(total, 0, count * sizeof *total);
    for (size_t m = 0; m < check->plan->kernel_count; m++) {
        const dcrf_operator *op = check->plan->kernels[m].op;
        const dcrf_status status =
            op->methods->apply_double(op, check->workspace, check->in, check->out, channels, error);
        if (status < 0)
            return status;
        for (size_t k = 0; k < count; k++)
            total[k] += check->model->kernels[m].weight * check->out[k];
    }
    memmove(check->out, total, count * sizeof *total);
    return DCRF_OK;
}

/* One number for every variable and label that does not depend on a: the channels are labels. */
static dcrf_status add_indicators(struct dcrf_check *check, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    for (size_t first = 0; first < labels; first += CHECK_CHANNELS) {
        const size_t channels = labels - first < CHECK_CHANNELS ? labels - first : CHECK_CHANNELS;
        for (size_t b = 0; b < n; b++)
            for (size_t c = 0; c < channels; c++)
                check->in[b * channels + c] =
                    check->counts[b] &&
                    (check->kind == DCRF_CHECK_LABELS ? check->labels[b] == first + c
                                                      : check->possible[b * labels + first + c]);
        const dcrf_status status = apply(check, channels, error);
        if (status < 0)
            return status;
        for (size_t a = 0; a < n; a++)
            for (size_t c = 0; c < channels; c++)
                check->sums[a * labels + first + c] = check->out[a * channels + c];
    }
    return DCRF_OK;
}

/* How much of a value is at a node. */
static double share(uint8_t value, size_t node) {
    return fmax(0, 1 - fabs((double)value / DCRF_VALUE_STEPS - (double)node));
}

static dcrf_status add_group(struct dcrf_check *check, dcrf_error *error) {
    const size_t n = check->model->variables, labels = check->model->labels;
    const size_t channels = DCRF_VALUE_NODES + 1; /* the last one for those outside the group */
    for (size_t i = 0; i < labels; i++) {
        bool is_empty = check->content->plane[i] == 0;
        for (size_t b = 0; b < n && is_empty; b++)
            is_empty = !check->counts[b] || check->member[b] || !check->possible[b * labels + i];
        for (size_t a = 0; a < n && is_empty; a++)
            check->sums[a * labels + i] = 0;
        if (is_empty)
            continue;
        for (size_t b = 0; b < n; b++)
            for (size_t h = 0; h < channels; h++)
                check->in[b * channels + h] =
                    !check->counts[b] ? 0
                    : check->member[b]
                        ? (h < DCRF_VALUE_NODES
                               ? share(dcrf_certificate_value(check->content, b, i), h)
                               : 0)
                        : h == DCRF_VALUE_NODES && check->possible[b * labels + i];
        const dcrf_status status = apply(check, channels, error);
        if (status < 0)
            return status;
        for (size_t a = 0; a < n; a++) {
            const double *out = check->out + a * channels;
            const uint8_t value = dcrf_certificate_value(check->content, a, i);
            double sum = i != check->labels[a] ? 2 * out[DCRF_VALUE_NODES] : 0;
            for (size_t h = 0; h < DCRF_VALUE_NODES; h++)
                sum += check->line[value * VALUES + h * DCRF_VALUE_STEPS] * out[h];
            check->sums[a * labels + i] = sum;
        }
    }
    return DCRF_OK;
}

static dcrf_status init_fast(struct dcrf_check *check, dcrf_error *error) {
    const size_t n = check->model->variables;
    check->in = dcrf_allocate(n, CHECK_CHANNELS * sizeof *check->in);
    check->out = dcrf_allocate(n, 2 * CHECK_CHANNELS * sizeof *check->out);
    if (!check->in || !check->out)
        return dcrf_fail_memory(error, "the check of a certificate");
    dcrf_status status =
        dcrf_plan_new(&check->plan, check->model, DCRF_OPERATOR_FAST, check->workspace, error);
    for (size_t a = 0; a < n; a++)
        check->in[a] = 1;
    if (status == DCRF_OK)
        status = apply(check, 1, error);
    if (status == DCRF_OK)
        memcpy(check->row_sums, check->out, n * sizeof *check->out);
    return status;
}

/* ---- either --------------------------------------------------------------------------------- */

dcrf_status dcrf_check_kernels_init(struct dcrf_check *check, dcrf_error *error) {
    return check->content->identity.is_exact ? init_exact(check, error) : init_fast(check, error);
}

void dcrf_check_kernels_clear(struct dcrf_check *check) {
    for (size_t m = 0; m < check->model->kernel_count; m++) {
        if (check->features)
            dcrf_release(check->features[m]);
        if (check->scale)
            dcrf_release(check->scale[m]);
    }
    dcrf_release(check->features);
    dcrf_release(check->scale);
    dcrf_release(check->in);
    dcrf_release(check->out);
    dcrf_plan_free(&check->plan);
}

dcrf_status dcrf_check_add_up(struct dcrf_check *check, dcrf_error *error) {
    if (!check->plan) {
        dcrf_parallel_for(dcrf_workspace_pool(check->workspace), check->model->variables, GRAIN,
                          add_exactly, check);
        return DCRF_OK;
    }
    return check->kind == DCRF_CHECK_GROUP ? add_group(check, error) : add_indicators(check, error);
}
