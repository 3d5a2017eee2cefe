/* A fake device, so that the whole backend interface (src/backend/backend.h) is tested without a
 * GPU: a separate library whose operators are plain loops over dense matrices in double. Methods
 * are the CPU's, on memory that the host cannot read (fake_methods.c).
 *
 * The environment controls its behaviour, at every call:
 *   FAKE_DEVICES   the number of devices (2); "none": an error, as without a driver
 *   FAKE_VERSION   the version it claims (the right one)
 *   FAKE_FAILURE   the entry of the table that fails, such as "operator_new"; "open 1": on all
 *                  devices but the first
 *
 * A device has room for LARGEST variables. */
#include "fake_backend.h"

#include "dsp/dsp.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 2048

#define EXPORTED __attribute__((visibility("default")))

/* Devices, operators and iterates not yet freed; tests read it through dlsym. */
static atomic_size_t alive;
EXPORTED size_t fake_backend_alive(void);
EXPORTED const struct dcrf_backend *dcrf_backend_cuda(void);

size_t fake_backend_alive(void) {
    return atomic_load(&alive);
}

/* The features of the first variable of the operator this thread made last; also for tests. */
static _Thread_local double first_features[DCRF_MAX_FEATURES];
EXPORTED double fake_backend_first_feature(size_t i);
double fake_backend_first_feature(size_t i) {
    return first_features[i];
}

dcrf_status fake_fail(dcrf_error *error, dcrf_status status, const char *format, ...) {
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return status;
}

dcrf_status fake_refuse(const char *entry, dcrf_error *error) {
    const char *failing = getenv("FAKE_FAILURE");
    return failing && strcmp(failing, entry) == 0
               ? fake_fail(error, DCRF_ERROR_DEVICE, "the fake device refuses %s", entry)
               : DCRF_OK;
}

/* dcrf_padded, which this library does not contain. */
static size_t padded(size_t channels) {
    return channels <= DCRF_NARROW_LANES ? DCRF_NARROW_LANES
                                         : (channels + DCRF_LANES - 1) / DCRF_LANES * DCRF_LANES;
}

/* ---- devices -------------------------------------------------------------------------------- */

struct dcrf_backend_device {
    size_t index;
    atomic_size_t holders; /* its opener, operators and iterates */
};

void fake_hold(dcrf_backend_device *device) {
    atomic_fetch_add(&device->holders, 1);
    atomic_fetch_add(&alive, 1);
}

void fake_drop(dcrf_backend_device *device) {
    atomic_fetch_sub(&alive, 1);
    if (atomic_fetch_sub(&device->holders, 1) == 1)
        free(device);
}

size_t fake_index(const dcrf_backend_device *device) {
    return device->index;
}

void fake_count(int change) {
    atomic_fetch_add(&alive, (size_t)change);
}

static dcrf_status count_devices(size_t *count, dcrf_error *error) {
    const char *given = getenv("FAKE_DEVICES");
    if (given && strcmp(given, "none") == 0)
        return fake_fail(error, DCRF_ERROR_DEVICE, "there is no fake driver");
    *count = given ? (size_t)strtoul(given, NULL, 10) : 2;
    return fake_refuse("count", error);
}

static dcrf_status describe(size_t index, dcrf_device_info *info, dcrf_error *error) {
    snprintf(info->name, sizeof info->name, "cuda:%zu", index);
    snprintf(info->description, sizeof info->description, "fake %zu", index);
    info->memory_bytes = (size_t)3 << 30;
    info->free_bytes = (size_t)1 << 30;
    return fake_refuse("describe", error);
}

static dcrf_status open_device(dcrf_backend_device **device, size_t index, dcrf_error *error) {
    dcrf_status status = fake_refuse("open", error);
    if (status == DCRF_OK && index > 0)
        status = fake_refuse("open 1", error);
    if (status < 0)
        return status;
    *device = calloc(1, sizeof **device);
    if (!*device)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake device");
    (*device)->index = index;
    fake_hold(*device);
    return DCRF_OK;
}

/* ---- operators ------------------------------------------------------------------------------ */

struct fake_operator {
    dcrf_operator base;
    dcrf_backend_device *device;
    double *matrix;
};

bool fake_is_on(const dcrf_operator *op, const dcrf_backend_device *device) {
    return ((const struct fake_operator *)op)->device->index == device->index;
}

const double *fake_row(const dcrf_operator *op, size_t a) {
    return ((const struct fake_operator *)op)->matrix + a * op->variables;
}

static dcrf_status apply(const dcrf_operator *op, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error) {
    (void)workspace;
    const size_t n = op->variables, stride = application->stride;
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < padded(application->channels); c++) {
            double sum = 0;
            for (size_t b = 0; b < n; b++)
                sum += fake_row(op, a)[b] * (double)application->in[b * stride + c];
            float *out = &application->out[a * stride + c];
            *out = (float)((double)application->factor * sum) +
                   (application->accumulate ? *out : 0.0f);
        }
    return fake_refuse("apply", error);
}

static dcrf_status sum(dcrf_operator *const *operators, const float *factors, size_t count,
                       const float *in, float *out, size_t channels, size_t stride,
                       dcrf_error *error) {
    dcrf_status status = fake_refuse("sum", error);
    for (size_t k = 0; k < count && status == DCRF_OK; k++) {
        const struct dcrf_application application = {.in = in,
                                                     .out = out,
                                                     .channels = channels,
                                                     .stride = stride,
                                                     .factor = factors[k],
                                                     .accumulate = k > 0};
        status = apply(operators[k], NULL, &application, error);
    }
    return status;
}

static dcrf_status disagreement(const dcrf_operator *op, dcrf_workspace *workspace,
                                const uint16_t *labels, bool in_double, double *found,
                                dcrf_error *error) {
    (void)workspace, (void)in_double; /* always in double */
    *found = 0;
    for (size_t a = 0; a < op->variables; a++)
        for (size_t b = 0; b < op->variables; b++)
            *found += labels[a] != labels[b] ? fake_row(op, a)[b] : 0;
    return fake_refuse("disagreement", error);
}

static double sum_distances(const dcrf_operator *op, const float *distances, size_t label_count,
                            const uint16_t *labels) {
    double sum = 0;
    for (size_t a = 0; a < op->variables; a++)
        for (size_t b = 0; b < op->variables; b++)
            sum += fake_row(op, a)[b] * (double)distances[labels[a] * label_count + labels[b]];
    return sum;
}

static dcrf_status disagreements(dcrf_operator *const *operators, const float *const *distances,
                                 size_t count, const uint16_t *labels, const uint16_t *place_of,
                                 size_t label_count, size_t place_count, double *sums,
                                 dcrf_error *error) {
    for (size_t a = 0; a < operators[0]->variables; a++)
        if (labels[a] >= label_count || place_of[labels[a]] >= place_count)
            return fake_fail(error, DCRF_ERROR_DEVICE, "label %u has no place", labels[a]);
    dcrf_status status = fake_refuse("disagreements", error);
    for (size_t k = 0; k < count && status == DCRF_OK; k++)
        if (distances[k])
            sums[k] = sum_distances(operators[k], distances[k], label_count, labels);
        else
            status = disagreement(operators[k], NULL, labels, false, &sums[k], error);
    return status;
}

static dcrf_status apply_double(const dcrf_operator *op, dcrf_workspace *workspace,
                                const double *in, double *out, size_t channels, dcrf_error *error) {
    (void)workspace;
    const size_t n = op->variables;
    for (size_t a = 0; a < n; a++)
        for (size_t c = 0; c < channels; c++) {
            double sum = 0;
            for (size_t b = 0; b < n; b++)
                sum += fake_row(op, a)[b] * in[b * channels + c];
            out[a * channels + c] = sum;
        }
    return fake_refuse("apply_double", error);
}

/* F(a, b), interpolated between the four nodes around the bins of a and b; without a table, the
 * sign. */
static double table_value(const struct dcrf_ordered *ordered, size_t a, size_t b) {
    const size_t i = ordered->bin[a], k = ordered->bin[b];
    if (!ordered->table)
        return k > i ? 1 : k < i ? -1 : 0;
    const size_t row = dcrf_bin_row(ordered->bins);
    const double p = (double)ordered->fraction[a], q = (double)ordered->fraction[b];
    double value = 0;
    for (size_t u = 0; u < 2; u++)
        for (size_t v = 0; v < 2; v++) {
            const double weight = (u ? p : 1 - p) * (v ? q : 1 - q);
            if (weight > 0)
                value += weight * (double)ordered->table[(i + u) * row + k + v];
        }
    return value;
}

static dcrf_status ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                           const struct dcrf_ordered *channel, dcrf_error *error) {
    (void)workspace;
    for (size_t a = 0; a < op->variables; a++) {
        double sum = 0;
        for (size_t b = 0; b < op->variables; b++)
            sum += fake_row(op, a)[b] * table_value(channel, a, b);
        channel->out[a] = (float)sum;
    }
    return fake_refuse("ordered", error);
}

/* y / epsilon is rounded to float first. */
static double line_value(const struct dcrf_line *line, size_t a, size_t b, size_t c) {
    const float y_a = line->y[a * line->stride + c], y_b = line->y[b * line->stride + c];
    if (line->epsilon == 0)
        return y_b > y_a ? 1 : y_b < y_a ? -1 : 0;
    const double difference =
        (double)(float)((double)y_b / line->epsilon) - (double)(float)((double)y_a / line->epsilon);
    return fmax(-1, fmin(1, difference));
}

static double line_sum(const dcrf_operator *op, const struct dcrf_line *line, size_t a, size_t c) {
    double sum = 0;
    for (size_t b = 0; b < op->variables; b++)
        sum += fake_row(op, a)[b] * line_value(line, a, b, c);
    return sum;
}

static dcrf_status line(const dcrf_operator *op, dcrf_workspace *workspace,
                        const struct dcrf_line *what, dcrf_error *error) {
    (void)workspace;
    for (size_t a = 0; a < op->variables; a++)
        for (size_t c = 0; c < what->channels && (!what->wanted || what->wanted[a]); c++)
            what->out[a * what->stride + c] = (float)line_sum(op, what, a, c);
    return fake_refuse("line", error);
}

static dcrf_status line_double(const dcrf_operator *op, dcrf_workspace *workspace,
                               const struct dcrf_line *what, double *out, dcrf_error *error) {
    (void)workspace;
    for (size_t a = 0; a < op->variables; a++)
        for (size_t c = 0; c < what->channels && (!what->wanted || what->wanted[a]); c++)
            out[a * what->channels + c] = line_sum(op, what, a, c);
    return fake_refuse("line_double", error);
}

/* Sums are in double and rounded to float once; claim twice that. */
static size_t ordered_roundings(const dcrf_operator *op, size_t bins, bool is_sign) {
    (void)op, (void)bins, (void)is_sign;
    return 2;
}

static size_t line_roundings(const dcrf_operator *op) {
    (void)op;
    return 2;
}

static double double_error(const dcrf_operator *op) {
    (void)op;
    return 0x1p-40;
}

static dcrf_status diagonal(const dcrf_operator *op, dcrf_workspace *workspace, float *out,
                            dcrf_error *error) {
    (void)workspace;
    for (size_t a = 0; a < op->variables; a++)
        out[a] = (float)fake_row(op, a)[a];
    return fake_refuse("diagonal", error);
}

static void free_operator(dcrf_operator *base) {
    struct fake_operator *op = (struct fake_operator *)base;
    fake_drop(op->device);
    free(op->matrix);
    free(op);
}

#define METHODS(operator_kind)                                                                     \
    {                                                                                              \
        .kind = operator_kind, .apply = apply, .ordered = ordered, .apply_double = apply_double,   \
        .disagreement = disagreement, .ordered_roundings = ordered_roundings,                      \
        .diagonal = diagonal, .free = free_operator                                                \
    }

static const struct dcrf_operator_methods lattice_methods = METHODS(DCRF_OPERATOR_LATTICE);
static const struct dcrf_operator_methods grid_methods = METHODS(DCRF_OPERATOR_GRID);
static const struct dcrf_operator_methods exact_methods = {.kind = DCRF_OPERATOR_EXACT,
                                                           .apply = apply,
                                                           .ordered = ordered,
                                                           .line = line,
                                                           .line_double = line_double,
                                                           .apply_double = apply_double,
                                                           .disagreement = disagreement,
                                                           .ordered_roundings = ordered_roundings,
                                                           .line_roundings = line_roundings,
                                                           .double_error = double_error,
                                                           .diagonal = diagonal,
                                                           .free = free_operator};

static size_t picture_of(const struct dcrf_features *features, size_t variable) {
    return variable / (features->variables / features->pictures);
}

/* Feature i from a coordinate or an image value. */
static double divided(const struct dcrf_features *features, double value, double factor, size_t i) {
    return features->is_single ? value / (double)features->divisor[i] : value * factor;
}

static double feature(const struct dcrf_features *features, size_t variable, size_t i) {
    const size_t picture = picture_of(features, variable);
    variable %= features->variables / features->pictures;
    if (i >= features->axes) {
        const size_t c = i - features->axes;
        const double value =
            features->given ? fake_element(&features->given[picture], &features->grid, variable, c)
                            : dcrf_features_channel(features, variable * features->channels + c);
        return divided(features, value, features->channel_factor[c], i);
    }
    for (size_t axis = 0; axis < i; axis++)
        variable /= features->grid.size[axis];
    return divided(features, (double)(features->origin[i] + variable % features->grid.size[i]),
                   features->axis_factor[i], i);
}

static void fill_matrix(const struct dcrf_features *features, double *matrix) {
    const size_t n = features->variables;
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            double squared = 0;
            for (size_t i = 0; i < features->dimension; i++)
                squared += pow(feature(features, a, i) - feature(features, b, i), 2);
            matrix[a * n + b] =
                picture_of(features, a) == picture_of(features, b) ? exp(-squared / 2) : 0;
        }
}

static void normalize(double *matrix, size_t n) {
    double scale[LARGEST];
    for (size_t a = 0; a < n; a++) {
        double sum = 0;
        for (size_t b = 0; b < n; b++)
            sum += matrix[a * n + b];
        scale[a] = 1 / sqrt(sum);
    }
    for (size_t k = 0; k < n * n; k++)
        matrix[k] *= scale[k / n] * scale[k % n];
}

dcrf_status fake_operator_new(dcrf_operator **out, double **matrix_out, dcrf_backend_device *device,
                              const struct dcrf_features *features, dcrf_operator_kind kind,
                              dcrf_error *error) {
    const size_t n = features->variables;
    *out = NULL;
    if (n > LARGEST)
        return fake_fail(error, DCRF_ERROR_DEVICE,
                         "the fake device is full: it has room for %d variables, not for %zu",
                         LARGEST, n);
    struct fake_operator *op = calloc(1, sizeof *op);
    double *matrix = calloc(n * n, sizeof *matrix);
    if (!op || !matrix) {
        free(op);
        free(matrix);
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake operator");
    }
    fake_enter(); /* images may be in device memory */
    fill_matrix(features, matrix);
    for (size_t i = 0; i < features->dimension; i++)
        first_features[i] = feature(features, 0, i);
    fake_leave();
    fake_hold(device);
    op->device = device;
    op->matrix = matrix;
    op->base = (dcrf_operator){.methods = kind == DCRF_OPERATOR_EXACT  ? &exact_methods
                                          : kind == DCRF_OPERATOR_GRID ? &grid_methods
                                                                       : &lattice_methods,
                               .variables = n,
                               .bytes = n * n * sizeof *matrix,
                               .device = device};
    *out = &op->base;
    *matrix_out = matrix;
    return DCRF_OK;
}

static dcrf_status operator_new(dcrf_operator **out, dcrf_backend_device *device,
                                const struct dcrf_features *features,
                                dcrf_normalization normalization, dcrf_operator_kind kind,
                                dcrf_error *error) {
    double *matrix;
    dcrf_status status = fake_refuse("operator_new", error);
    if (status == DCRF_OK)
        status = fake_operator_new(out, &matrix, device, features, kind, error);
    if (status == DCRF_OK && normalization == DCRF_NORMALIZE_SYMMETRIC)
        normalize(matrix, features->variables);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct dcrf_operator_source_methods operators = {
    .make = operator_new, .sum = sum, .disagreements = disagreements};

const struct dcrf_backend *dcrf_backend_cuda(void) {
    static struct dcrf_backend backend = {.count = count_devices,
                                          .describe = describe,
                                          .open = open_device,
                                          .close = fake_drop,
                                          .operators = &operators};

    backend.iterate = &fake_iterate;
    backend.lp = &fake_lp;
    backend.flow = &fake_flow;
    backend.moves = &fake_moves;
    backend.arrays = &fake_arrays;
    backend.compat = &fake_compat;
    const char *given = getenv("FAKE_VERSION");
    backend.version = given ? (unsigned)strtoul(given, NULL, 10) : DCRF_BACKEND_VERSION;
    return &backend;
}
