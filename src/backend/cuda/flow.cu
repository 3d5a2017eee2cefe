/* Conjugate gradients for the potential flow on a device (lp/potential_flow.c): all labels
 * together, with one filter application per iteration.
 *
 * Inner products per label are column sums: a thread block has some rows, and each thread strides
 * over them in its columns. The blocks' sums are added in a fixed order. */
#include "backend/cuda/flow.cuh"

#include "backend/cuda/sums.cuh"

#include <cfloat>
#include <cstdlib>
#include <utility>

#define WHAT "the potential flow"
#define MOST_LABELS 512
/* Rows per thread block. */
#define ROWS 128
/* Threads per row of the estimate. */
#define LANES 8

struct flow_answer {
    double residual, estimate;
};

struct dcrf_backend_flow {
    dcrf_backend_device *device;
    size_t variables, labels, stride;
    size_t kernel_count;
    struct device_operator **operators;
    float *weights, *host_u;                         /* on the host */
    float *unary, *u, *residual, *direction, *image; /* blocks */
    float *row_sums, *metric;                        /* per variable */
    double *partial;
    unsigned *blocks_done;
    double *mean, *rho, *last_rho, *curvature, *low, *scale,
        *excess;        /* per label, in one allocation */
    uint32_t *extremes; /* two per label: see order_of */
    struct flow_answer *answer;
};

/* ---- memory --------------------------------------------------------------------------------- */

static void flow_free(dcrf_backend_flow *flow) {
    if (!flow)
        return;
    dcrf_backend_device *device = flow->device;
    cudaSetDevice((int)device->index);
    void *const held[] = {flow->unary, flow->u,           flow->residual, flow->direction,
                          flow->image, flow->row_sums,    flow->metric,   flow->partial,
                          flow->mean,  flow->blocks_done, flow->extremes, flow->answer};
    for (void *memory : held)
        device_release(device, memory);
    free(flow->operators);
    free(flow->weights);
    free(flow);
    device_drop(device);
}

static unsigned row_blocks(const dcrf_backend_flow *flow) {
    return (unsigned)((flow->variables + ROWS - 1) / ROWS);
}

static dcrf_status take_memory(dcrf_backend_flow *flow, dcrf_error *error) {
    dcrf_backend_device *device = flow->device;
    const size_t n = flow->variables, floats = n * flow->stride;
    /* Filters read the padding of rows, which is never written. */
    for (float **block : {&flow->unary, &flow->u, &flow->residual, &flow->direction, &flow->image})
        TRY(device_zeros(device, block, floats, WHAT, error));
    for (float **row : {&flow->row_sums, &flow->metric})
        TRY(device_array(device, row, n, WHAT, error));
    const size_t by_rows = row_blocks(flow) * flow->labels, by_lanes = blocks_for(n * LANES);
    TRY(device_array(device, &flow->partial, by_rows > by_lanes ? by_rows : by_lanes, WHAT, error));
    TRY(device_array(device, &flow->mean, 7 * flow->labels, WHAT, error));
    double **const rows[] = {&flow->rho, &flow->last_rho, &flow->curvature,
                             &flow->low, &flow->scale,    &flow->excess};
    for (size_t k = 0; k < 6; k++)
        *rows[k] = flow->mean + (k + 1) * flow->labels;
    TRY(device_array(device, &flow->extremes, 2 * flow->labels, WHAT, error));
    TRY(device_array(device, &flow->answer, 1, WHAT, error));
    return device_zeros(device, &flow->blocks_done, 1, WHAT, error);
}

/* ---- sums over columns ---------------------------------------------------------------------- */

struct columns {
    size_t variables;
    uint32_t labels, stride;
    uint32_t width; /* threads for the labels of a row: a power of two */
};

static struct columns columns_of(const dcrf_backend_flow *flow) {
    uint32_t width = 4;
    while (width < flow->labels && width < THREADS)
        width *= 2;
    return {flow->variables, (uint32_t)flow->labels, (uint32_t)flow->stride, width};
}

/* partial[block][label] = sum over the rows of a block of term(row, label, place in a block) */
template <typename TERM>
static __device__ void sum_columns(const struct columns &c, double *partial, TERM term) {
    __shared__ double sums[THREADS];
    const uint32_t groups = THREADS / c.width, group = threadIdx.x / c.width;
    const size_t begin = (size_t)blockIdx.x * ROWS, end = min(begin + ROWS, c.variables);
    for (uint32_t first = 0; first < c.labels; first += c.width) { /* the same in all threads */
        const uint32_t label = first + threadIdx.x % c.width;
        double sum = 0;
        for (size_t a = begin + group; a < end && label < c.labels; a += groups)
            sum += term(a, label, a * c.stride + label);
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (group == 0 && label < c.labels) {
            for (uint32_t g = 1; g < groups; g++)
                sum += sums[g * c.width + threadIdx.x];
            partial[(size_t)blockIdx.x * c.labels + label] = sum;
        }
        __syncthreads();
    }
}

static void add_columns(const dcrf_backend_flow *flow, double *sums) {
    add_block_sums<<<(unsigned)flow->labels, THREADS, 0, flow->device->stream>>>(
        flow->partial, row_blocks(flow), sums);
}

/* ---- conjugate gradients -------------------------------------------------------------------- */

static __global__ void sum_unaries(struct columns c, const float *unary, double *partial) {
    sum_columns(c, partial, [=](size_t, uint32_t, size_t at) {
        return (double)unary[at] / (double)c.variables;
    });
}

/* residual = unary - mean; sums its squares divided by the metric. */
static __global__ void begin_rows(struct columns c, const float *unary, const double *mean,
                                  const float *metric, float *residual, double *partial) {
    sum_columns(c, partial, [=](size_t a, uint32_t label, size_t at) {
        const float value = (float)((double)unary[at] - mean[label]);
        residual[at] = value;
        return 1 / (double)metric[a] * (double)value * (double)value;
    });
}

/* image = D direction - image; sums direction x image. */
static __global__ void finish_image(struct columns c, const float *row_sums, const float *direction,
                                    float *image, double *partial) {
    sum_columns(c, partial, [=](size_t a, uint32_t, size_t at) {
        const float value = row_sums[a] * direction[at] - image[at];
        image[at] = value;
        return (double)direction[at] * (double)value;
    });
}

struct advance {
    const double *rho, *curvature;
    const float *direction, *image;
    float *u, *residual;
};

/* u += t direction, residual -= t image; sums the residual. */
static __global__ void advance_rows(struct columns c, struct advance v, double *partial) {
    sum_columns(c, partial, [=](size_t, uint32_t label, size_t at) {
        const float t = (float)(v.curvature[label] > 0 ? v.rho[label] / v.curvature[label] : 0);
        v.u[at] += t * v.direction[at];
        const float value = v.residual[at] - t * v.image[at];
        v.residual[at] = value;
        return (double)value;
    });
}

/* Subtract from the residual its mean, which is rounding error; sums the same as begin_rows. */
static __global__ void center_rows(struct columns c, const double *excess, const float *metric,
                                   float *residual, double *partial) {
    sum_columns(c, partial, [=](size_t a, uint32_t label, size_t at) {
        const float value = residual[at] - (float)(excess[label] / (double)c.variables);
        residual[at] = value;
        return 1 / (double)metric[a] * (double)value * (double)value;
    });
}

/* direction = residual / D + beta direction, beta = rho / last_rho (NULL: 0). */
static __global__ void turn_rows(struct columns c, const double *rho, const double *last_rho,
                                 const float *metric, const float *residual, float *direction) {
    const size_t at = this_thread();
    const uint32_t label = (uint32_t)(at % c.stride);
    if (at >= c.variables * c.stride || label >= c.labels)
        return;
    const float beta = (float)(last_rho && last_rho[label] > 0 ? rho[label] / last_rho[label] : 0);
    direction[at] = residual[at] * (1 / metric[at / c.stride]) + beta * direction[at];
}

static void turn(const dcrf_backend_flow *flow, const double *last_rho) {
    const size_t floats = flow->variables * flow->stride;
    turn_rows<<<blocks_for(floats), THREADS, 0, flow->device->stream>>>(
        columns_of(flow), flow->rho, last_rho, flow->metric, flow->residual, flow->direction);
}

static dcrf_status flow_begin(dcrf_backend_flow *flow, dcrf_error *error) {
    const struct columns c = columns_of(flow);
    cudaStream_t stream = flow->device->stream;
    sum_unaries<<<row_blocks(flow), THREADS, 0, stream>>>(c, flow->unary, flow->partial);
    add_columns(flow, flow->mean);
    begin_rows<<<row_blocks(flow), THREADS, 0, stream>>>(c, flow->unary, flow->mean, flow->metric,
                                                         flow->residual, flow->partial);
    add_columns(flow, flow->rho);
    turn(flow, nullptr);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status iterate_once(dcrf_backend_flow *flow, dcrf_error *error) {
    const struct columns c = columns_of(flow);
    const unsigned blocks = row_blocks(flow);
    cudaStream_t stream = flow->device->stream;
    if (flow->kernel_count == 0)
        TRY(device_clear(flow->device, flow->image, flow->variables * flow->stride, WHAT, error));
    for (size_t m = 0; m < flow->kernel_count; m++) {
        const struct dcrf_application application = {
            DCRF_SYMMETRIC, flow->direction,  flow->image, flow->labels,
            flow->stride,   flow->weights[m], m > 0};
        TRY(flow->operators[m]->apply_on_device(flow->operators[m], &application, error));
    }
    finish_image<<<blocks, THREADS, 0, stream>>>(c, flow->row_sums, flow->direction, flow->image,
                                                 flow->partial);
    add_columns(flow, flow->curvature);
    const struct advance v = {flow->rho,   flow->curvature, flow->direction,
                              flow->image, flow->u,         flow->residual};
    advance_rows<<<blocks, THREADS, 0, stream>>>(c, v, flow->partial);
    add_columns(flow, flow->excess);
    center_rows<<<blocks, THREADS, 0, stream>>>(c, flow->excess, flow->metric, flow->residual,
                                                flow->partial);
    std::swap(flow->rho, flow->last_rho);
    add_columns(flow, flow->rho);
    turn(flow, flow->last_rho);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- the estimated bound -------------------------------------------------------------------- */

/* Maps floats to integers in the same order. */
static __device__ uint32_t order_of(float value) {
    const uint32_t bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ float float_of(uint32_t order) {
    return __uint_as_float(order & 0x80000000u ? order & 0x7fffffffu : ~order);
}

/* extremes[label], extremes[labels + label]: the smallest and the largest of u. */
static __global__ void clear_extremes(uint32_t labels, uint32_t *extremes) {
    for (uint32_t i = threadIdx.x; i < labels; i += THREADS) {
        extremes[i] = UINT32_MAX;
        extremes[labels + i] = 0;
    }
}

static __global__ void find_extremes(struct columns c, const float *u, uint32_t *extremes) {
    const uint32_t groups = THREADS / c.width, group = threadIdx.x / c.width;
    const size_t begin = (size_t)blockIdx.x * ROWS, end = min(begin + ROWS, c.variables);
    for (uint32_t label = threadIdx.x % c.width; label < c.labels; label += c.width) {
        uint32_t low = UINT32_MAX, high = 0;
        for (size_t a = begin + group; a < end; a += groups) {
            const uint32_t order = order_of(u[a * c.stride + label]);
            low = min(low, order);
            high = max(high, order);
        }
        atomicMin(&extremes[label], low);
        atomicMax(&extremes[c.labels + label], high);
    }
}

struct spread {
    const uint32_t *extremes;
    const double *rho;
    double *low, *scale;
    struct flow_answer *answer;
};

/* One block; the spread of u per label, and the sum of rho. */
static __global__ void measure(uint32_t labels, struct spread s) {
    for (uint32_t i = threadIdx.x; i < labels; i += THREADS) {
        const double low = (double)float_of(s.extremes[i]);
        const double spread = (double)float_of(s.extremes[labels + i]) - low;
        s.low[i] = low;
        s.scale[i] = spread <= 1 ? 1 : spread > 1 && isfinite(spread) ? 1 / spread : 0;
    }
    if (threadIdx.x > 0)
        return;
    double sum = 0;
    for (uint32_t i = 0; i < labels; i++)
        sum += s.rho[i];
    s.answer->residual = sum;
}

struct estimate {
    const float *unary, *residual;
    const double *mean, *scale;
    double *partial;
    unsigned *blocks_done;
    struct flow_answer *answer;
};

/* LANES threads per row. */
static __global__ void estimate_rows(struct columns c, struct estimate e) {
    const size_t a = this_thread() / LANES;
    double lowest = DBL_MAX;
    for (uint32_t i = threadIdx.x % LANES; a < c.variables && i < c.labels; i += LANES) {
        const double unary = (double)e.unary[a * c.stride + i];
        const double left = unary - e.mean[i] - (double)e.residual[a * c.stride + i];
        lowest = fmin(lowest, unary - e.scale[i] * left);
    }
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2)
        lowest = fmin(lowest, __shfl_xor_sync(0xffffffffu, lowest, distance));
    double mine[1] = {a < c.variables && threadIdx.x % LANES == 0 ? lowest : 0}, sum[1];
    if (sum_of_launch<1, THREADS>(mine, e.partial, e.blocks_done, sum) && threadIdx.x == 0)
        e.answer->estimate = sum[0];
}

static dcrf_status measure_potentials(const dcrf_backend_flow *flow, dcrf_error *error) {
    const struct columns c = columns_of(flow);
    cudaStream_t stream = flow->device->stream;
    clear_extremes<<<1, THREADS, 0, stream>>>(c.labels, flow->extremes);
    find_extremes<<<row_blocks(flow), THREADS, 0, stream>>>(c, flow->u, flow->extremes);
    const struct spread s = {flow->extremes, flow->rho, flow->low, flow->scale, flow->answer};
    measure<<<1, THREADS, 0, stream>>>(c.labels, s);
    const struct estimate e = {flow->unary,   flow->residual,    flow->mean,  flow->scale,
                               flow->partial, flow->blocks_done, flow->answer};
    estimate_rows<<<blocks_for(flow->variables * LANES), THREADS, 0, stream>>>(c, e);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- the interface -------------------------------------------------------------------------- */

static dcrf_status take(dcrf_backend_flow *flow, const struct dcrf_backend_model *model,
                        const float *row_sums, const float *metric, dcrf_error *error) {
    const struct dcrf_backend_group *kernels = model->groups;
    dcrf_backend_device *device = flow->device;
    const size_t n = flow->variables;
    flow->kernel_count = kernels->kernel_count;
    flow->operators = static_cast<struct device_operator **>(
        calloc(kernels->kernel_count + 1, sizeof *flow->operators));
    flow->weights = static_cast<float *>(calloc(kernels->kernel_count + 1, sizeof *flow->weights));
    if (!flow->operators || !flow->weights)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    for (size_t m = 0; m < kernels->kernel_count; m++) {
        flow->operators[m] = reinterpret_cast<struct device_operator *>(kernels->operators[m]);
        flow->weights[m] = (float)kernels->weights[m];
    }
    TRY(take_memory(flow, error));
    TRY(device_upload(device, flow->unary, model->unary, n * flow->stride * sizeof(float), error));
    TRY(device_upload(device, flow->row_sums, row_sums, n * sizeof *row_sums, error));
    TRY(device_upload(device, flow->metric, metric, n * sizeof *metric, error));
    return flow_begin(flow, error);
}

static dcrf_status flow_make(dcrf_backend_flow **out, dcrf_backend_device *device,
                             const struct dcrf_backend_model *model, const float *row_sums,
                             const float *metric, float *u, dcrf_error *error) {
    *out = nullptr;
    if (model->labels > MOST_LABELS)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "the potential flow of more than %d labels is not on this device yet",
                    MOST_LABELS);
    TRY(device_enter(device, error));
    dcrf_backend_flow *flow =
        static_cast<dcrf_backend_flow *>(calloc(1, sizeof(dcrf_backend_flow)));
    if (!flow)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    flow->device = device;
    device_hold(device);
    flow->host_u = u;
    flow->variables = model->variables;
    flow->labels = model->labels;
    flow->stride = model->stride;
    const dcrf_status status = take(flow, model, row_sums, metric, error);
    if (status < 0) {
        flow_free(flow);
        return status;
    }
    *out = flow;
    return DCRF_OK;
}

/* A few iterations take milliseconds here, so they need not be interruptible. */
static dcrf_status flow_iterate(dcrf_backend_flow *flow, size_t iterations,
                                const struct dcrf_interrupt *interrupt, double *residual,
                                double *estimate, dcrf_error *error) {
    (void)interrupt;
    TRY(device_enter(flow->device, error));
    for (size_t k = 0; k < iterations; k++)
        TRY(iterate_once(flow, error));
    TRY(measure_potentials(flow, error));
    struct flow_answer answer = {};
    TRY(device_download(flow->device, &answer, flow->answer, sizeof answer, error));
    *residual = answer.residual;
    *estimate = answer.estimate;
    return DCRF_OK;
}

static dcrf_status flow_read(dcrf_backend_flow *flow, double *low, double *scale,
                             dcrf_error *error) {
    const size_t bytes = flow->labels * sizeof(double);
    TRY(device_enter(flow->device, error));
    TRY(device_download(flow->device, flow->host_u, flow->u,
                        flow->variables * flow->stride * sizeof(float), error));
    TRY(device_download(flow->device, low, flow->low, bytes, error));
    return device_download(flow->device, scale, flow->scale, bytes, error);
}

const struct dcrf_backend_flow_methods flow_methods = {flow_make, flow_free, flow_iterate,
                                                       flow_read};
