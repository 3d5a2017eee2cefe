/* The exact operator: the Gaussian sum itself, O(N^2 d), accumulated in double.
 *
 *   (K v)_a = s_a sum_b exp(-|f_a - f_b|^2 / 2) s_b v_b
 *
 * The oracle for the fast operators, and an honest choice for a few thousand variables. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/operator.h"
#include "model/view.h"

#include <math.h>
#include <string.h>

struct exact {
    dcrf_operator base;
    size_t dimension;
    double *features; /* variables x dimension */
    float *scale;     /* one a variable */
};

/* Channels summed up in one sweep over the variables. */
#define SWEEP 32
/* Rows a task takes: a row is N kernel values, so a few are enough work. */
#define GRAIN 4
/* exp(-x) is zero in float beyond this. */
#define LARGEST_EXPONENT 104.0

static inline double kernel_value(const struct exact *op, size_t a, size_t b) {
    const double *f = op->features + a * op->dimension;
    const double *g = op->features + b * op->dimension;
    double squared = 0;
    for (size_t i = 0; i < op->dimension; i++) {
        const double difference = f[i] - g[i];
        squared += difference * difference;
    }
    if (squared > 2 * LARGEST_EXPONENT)
        return 0;
    return exp(-squared / 2) * (double)op->scale[a] * (double)op->scale[b];
}

struct apply_context {
    const struct exact *op;
    const struct dcrf_application *application;
    size_t first_channel, channels;
};

static void apply_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct apply_context *c = context;
    const struct dcrf_application *application = c->application;
    const float *in = application->in + c->first_channel;
    for (size_t a = begin; a < end; a++) {
        double sum[SWEEP] = {0};
        for (size_t b = 0; b < c->op->base.variables; b++) {
            const double k = kernel_value(c->op, a, b);
            if (k == 0)
                continue;
            const float *row = in + b * application->stride;
            for (size_t i = 0; i < c->channels; i++)
                sum[i] += k * (double)row[i];
        }
        float *out = application->out + a * application->stride + c->first_channel;
        for (size_t i = 0; i < c->channels; i++) {
            const double value = (double)application->factor * sum[i];
            out[i] = (float)(application->accumulate ? (double)out[i] + value : value);
        }
    }
}

static dcrf_status apply(const dcrf_operator *base, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error) {
    (void)error;
    struct apply_context context = {(const struct exact *)base, application, 0, 0};
    for (size_t first = 0; first < application->channels; first += SWEEP) {
        const size_t left = application->channels - first;
        context.first_channel = first;
        context.channels = left < SWEEP ? left : SWEEP;
        dcrf_parallel_for(dcrf_workspace_pool(workspace), base->variables, GRAIN, apply_rows,
                          &context);
    }
    return DCRF_OK;
}

/* row[h] = F(y_a, node h) for all bins h. */
static void seen_from(const struct dcrf_ordered *ordered, size_t variable, float *row) {
    const size_t bin = ordered->bin[variable];
    if (!ordered->table) {
        for (size_t h = 0; h < ordered->bins; h++)
            row[h] = (float)((h > bin) - (h < bin));
        return;
    }
    const size_t stride = dcrf_padded(ordered->bins);
    const float *low = ordered->table + bin * stride;
    const float fraction = ordered->fraction[variable];
    /* Where the fraction is zero the next node may not exist. */
    const float *high = fraction > 0 ? low + stride : low;
    for (size_t h = 0; h < ordered->bins; h++)
        row[h] = low[h] + fraction * (high[h] - low[h]);
}

struct double_context {
    const struct exact *op;
    const double *in;
    double *out;
    size_t channels;
};

static void apply_double_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct double_context *c = context;
    for (size_t a = begin; a < end; a++) {
        double *out = c->out + a * c->channels;
        for (size_t i = 0; i < c->channels; i++)
            out[i] = 0;
        for (size_t b = 0; b < c->op->base.variables; b++) {
            const double k = kernel_value(c->op, a, b);
            for (size_t i = 0; i < c->channels; i++)
                out[i] += k * c->in[b * c->channels + i];
        }
    }
}

static dcrf_status apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                const double *in, double *out, size_t channels, dcrf_error *error) {
    (void)error;
    struct double_context context = {(const struct exact *)base, in, out, channels};
    dcrf_parallel_for(dcrf_workspace_pool(workspace), base->variables, GRAIN, apply_double_rows,
                      &context);
    return DCRF_OK;
}

struct ordered_context {
    const struct exact *op;
    const struct dcrf_ordered *ordered;
};

/* A histogram of the kernel values over the nodes, seen from one variable, times F from that
 * variable. */
static void ordered_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct ordered_context *c = context;
    const struct dcrf_ordered *ordered = c->ordered;
    for (size_t a = begin; a < end; a++) {
        double histogram[DCRF_MAX_BINS + 1] = {0};
        for (size_t b = 0; b < c->op->base.variables; b++) {
            const double k = kernel_value(c->op, a, b);
            const double fraction = ordered->table ? (double)ordered->fraction[b] : 0;
            histogram[ordered->bin[b]] += (1 - fraction) * k;
            histogram[ordered->bin[b] + 1] += fraction * k;
        }
        float row[DCRF_MAX_BINS];
        seen_from(ordered, a, row);
        double sum = 0;
        for (size_t h = 0; h < ordered->bins; h++)
            sum += (double)row[h] * histogram[h];
        ordered->out[a] = (float)sum;
    }
}

static dcrf_status ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                           const struct dcrf_ordered *channel, dcrf_error *error) {
    (void)error;
    struct ordered_context context = {(const struct exact *)base, channel};
    dcrf_parallel_for(dcrf_workspace_pool(workspace), base->variables, GRAIN, ordered_rows,
                      &context);
    return DCRF_OK;
}

/* Everything is in double but F between two nodes (four roundings) and the result. */
static size_t ordered_roundings(const dcrf_operator *base, size_t bins) {
    (void)base;
    (void)bins;
    return 5;
}

static dcrf_status diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                            dcrf_error *error) {
    (void)workspace;
    (void)error;
    const struct exact *op = (const struct exact *)base;
    for (size_t a = 0; a < base->variables; a++)
        out[a] = op->scale[a] * op->scale[a];
    return DCRF_OK;
}

static dcrf_status rescale(dcrf_operator *base, dcrf_workspace *workspace, const float *scale,
                           dcrf_error *error) {
    (void)workspace;
    (void)error;
    struct exact *op = (struct exact *)base;
    for (size_t a = 0; a < base->variables; a++)
        op->scale[a] *= scale[a];
    return DCRF_OK;
}

static void free_exact(dcrf_operator *base) {
    struct exact *op = (struct exact *)base;
    dcrf_release(op->features);
    dcrf_release(op->scale);
    dcrf_release(op);
}

static const struct dcrf_operator_methods methods = {.kind = DCRF_OPERATOR_EXACT,
                                                     .apply = apply,
                                                     .ordered = ordered,
                                                     .apply_double = apply_double,
                                                     .ordered_roundings = ordered_roundings,
                                                     .diagonal = diagonal,
                                                     .rescale = rescale,
                                                     .free = free_exact};

/* The features of one variable. Coordinates are taken in double: as floats those of a long axis
 * would be off by more than the result may be. */
static void fill_features(const struct dcrf_features *features, size_t variable, double *out) {
    float row[DCRF_MAX_FEATURES];
    size_t position[DCRF_MAX_AXES];
    dcrf_features_row(features, variable, row);
    dcrf_grid_position(&features->grid, variable, position);
    for (size_t i = 0; i < features->dimension; i++)
        out[i] =
            i < features->axes ? (double)position[i] * features->axis_factor[i] : (double)row[i];
}

dcrf_status dcrf_exact_new(dcrf_operator **out, const struct dcrf_features *features,
                           dcrf_workspace *workspace, dcrf_error *error) {
    (void)workspace;
    const size_t n = features->variables, d = features->dimension;
    *out = NULL;
    struct exact *op = dcrf_allocate_zero(1, sizeof *op);
    if (!op)
        return dcrf_fail_memory(error, "an exact operator");
    op->base.methods = &methods;
    op->base.variables = n;
    op->base.bytes = sizeof *op + n * (d * sizeof *op->features + sizeof *op->scale);
    op->dimension = d;
    op->features = dcrf_allocate(n, d * sizeof *op->features);
    op->scale = dcrf_allocate(n, sizeof *op->scale);
    if (!op->features || !op->scale) {
        free_exact(&op->base);
        return dcrf_fail_memory(error, "an exact operator");
    }
    for (size_t a = 0; a < n; a++) {
        fill_features(features, a, op->features + a * d);
        op->scale[a] = 1;
    }
    *out = &op->base;
    return DCRF_OK;
}
