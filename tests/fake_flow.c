/* The potential flow of the fake device: conjugate gradients in double, one label after the other.
 */
#include "fake_backend.h"

#include <math.h>
#include <stdlib.h>

enum { U, RESIDUAL, DIRECTION, IMAGE, PHI, VECTORS };

struct dcrf_backend_flow {
    dcrf_backend_device *device;
    size_t variables, labels, stride, kernel_count;
    double *vector[VECTORS]; /* labels x variables */
    double *row_sums, *metric, *rho;
    double weights[16];
    const dcrf_operator *operators[16];
    float *host_u;
};

static void flow_free(dcrf_backend_flow *flow) {
    fake_drop(flow->device);
    for (size_t k = 0; k < VECTORS; k++)
        free(flow->vector[k]);
    free(flow->row_sums);
    free(flow->metric);
    free(flow->rho);
    free(flow);
}

static double product(const dcrf_backend_flow *flow, const double *left, const double *right) {
    double sum = 0;
    for (size_t a = 0; a < flow->variables; a++)
        sum += left[a] * right[a];
    return sum;
}

/* sum of residual^2 / metric */
static double size_of(const dcrf_backend_flow *flow, const double *residual) {
    double sum = 0;
    for (size_t a = 0; a < flow->variables; a++)
        sum += residual[a] * residual[a] / flow->metric[a];
    return sum;
}

static double mean_of(const dcrf_backend_flow *flow, size_t i) {
    double mean = 0;
    for (size_t a = 0; a < flow->variables; a++)
        mean += flow->vector[PHI][i * flow->variables + a] / (double)flow->variables;
    return mean;
}

static void begin(dcrf_backend_flow *flow) {
    const size_t n = flow->variables;
    for (size_t i = 0; i < flow->labels; i++) {
        const double mean = mean_of(flow, i);
        for (size_t k = i * n; k < (i + 1) * n; k++) {
            flow->vector[RESIDUAL][k] = flow->vector[PHI][k] - mean;
            flow->vector[DIRECTION][k] = flow->vector[RESIDUAL][k] / flow->metric[k - i * n];
        }
        flow->rho[i] = size_of(flow, flow->vector[RESIDUAL] + i * n);
    }
}

static dcrf_status flow_make(dcrf_backend_flow **out, dcrf_backend_device *device,
                             const struct dcrf_backend_model *model, const float *row_sums,
                             const float *metric, float *u, dcrf_error *error) {
    const size_t n = model->variables;
    const dcrf_status status = fake_refuse("flow_make", error);
    *out = NULL;
    if (status < 0)
        return status;
    dcrf_backend_flow *flow = calloc(1, sizeof *flow);
    if (!flow)
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake flow");
    flow->device = device;
    fake_hold(device);
    flow->host_u = u;
    flow->variables = n;
    flow->labels = model->labels;
    flow->stride = model->stride;
    bool has_all = true;
    for (size_t k = 0; k < VECTORS; k++)
        has_all &= (flow->vector[k] = calloc(n * model->labels, sizeof(double))) != NULL;
    has_all &= (flow->row_sums = calloc(n, sizeof(double))) != NULL;
    has_all &= (flow->metric = calloc(n, sizeof(double))) != NULL;
    has_all &= (flow->rho = calloc(model->labels, sizeof(double))) != NULL;
    if (!has_all) {
        flow_free(flow);
        return fake_fail(error, DCRF_ERROR_MEMORY, "out of memory: a fake flow");
    }
    for (size_t m = 0; m < model->groups->kernel_count; m++) {
        flow->operators[flow->kernel_count] = model->groups->operators[m];
        flow->weights[flow->kernel_count++] = model->groups->weights[m];
    }
    for (size_t a = 0; a < n; a++) {
        flow->row_sums[a] = (double)row_sums[a];
        flow->metric[a] = (double)metric[a];
        for (size_t i = 0; i < model->labels; i++)
            flow->vector[PHI][i * n + a] = (double)model->unary[a * model->stride + i];
    }
    begin(flow);
    *out = flow;
    return DCRF_OK;
}

/* image = (D - K) direction */
static void find_image(const dcrf_backend_flow *flow, const double *direction, double *image) {
    for (size_t a = 0; a < flow->variables; a++) {
        image[a] = flow->row_sums[a] * direction[a];
        for (size_t m = 0; m < flow->kernel_count; m++)
            image[a] -=
                flow->weights[m] * product(flow, fake_row(flow->operators[m], a), direction);
    }
}

static void iterate_label(dcrf_backend_flow *flow, size_t i) {
    const size_t n = flow->variables;
    double *u = flow->vector[U] + i * n, *residual = flow->vector[RESIDUAL] + i * n;
    double *direction = flow->vector[DIRECTION] + i * n, *image = flow->vector[IMAGE] + i * n;
    find_image(flow, direction, image);
    const double curvature = product(flow, direction, image);
    const double step = curvature > 0 ? flow->rho[i] / curvature : 0;
    for (size_t a = 0; a < n; a++) {
        u[a] += step * direction[a];
        residual[a] -= step * image[a];
    }
    const double rho = size_of(flow, residual), beta = flow->rho[i] > 0 ? rho / flow->rho[i] : 0;
    for (size_t a = 0; a < n; a++)
        direction[a] = residual[a] / flow->metric[a] + beta * direction[a];
    flow->rho[i] = rho;
}

static void find_spread(const dcrf_backend_flow *flow, size_t i, double *low, double *scale) {
    const double *u = flow->vector[U] + i * flow->variables;
    double high = -(double)INFINITY;
    *low = (double)INFINITY;
    for (size_t a = 0; a < flow->variables; a++) {
        *low = fmin(*low, (double)(float)u[a]);
        high = fmax(high, (double)(float)u[a]);
    }
    *scale = high - *low <= 1 ? 1 : 1 / (high - *low);
}

static dcrf_status flow_iterate(dcrf_backend_flow *flow, size_t iterations,
                                const struct dcrf_interrupt *interrupt, double *residual,
                                double *estimate, dcrf_error *error) {
    (void)interrupt;
    const size_t n = flow->variables;
    *residual = *estimate = 0;
    for (size_t i = 0; i < flow->labels; i++) {
        for (size_t k = 0; k < iterations; k++)
            iterate_label(flow, i);
        *residual += flow->rho[i];
    }
    for (size_t a = 0; a < n; a++) {
        double lowest = (double)INFINITY;
        for (size_t i = 0; i < flow->labels; i++) {
            double low, scale;
            find_spread(flow, i, &low, &scale);
            const double phi = flow->vector[PHI][i * n + a];
            lowest = fmin(
                lowest, phi - scale * (phi - mean_of(flow, i) - flow->vector[RESIDUAL][i * n + a]));
        }
        *estimate += lowest;
    }
    return fake_refuse("flow_iterate", error);
}

static dcrf_status flow_read(dcrf_backend_flow *flow, double *low, double *scale,
                             dcrf_error *error) {
    for (size_t i = 0; i < flow->labels; i++) {
        find_spread(flow, i, &low[i], &scale[i]);
        for (size_t a = 0; a < flow->variables; a++)
            flow->host_u[a * flow->stride + i] = (float)flow->vector[U][i * flow->variables + a];
    }
    return fake_refuse("flow_read", error);
}

const struct dcrf_backend_flow_methods fake_flow = {
    .make = flow_make, .free = flow_free, .iterate = flow_iterate, .read = flow_read};
