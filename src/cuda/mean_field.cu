/* Mean field on a device: the update of all variables at once that solver/mean_field.c describes,
 * for kernels that are all Potts.
 *
 * An update is one graph of launches, recorded once: the kernels' filters into the messages, the
 * softmax, and its sums. The first kernel has a branch of the graph to itself, so it is filtered
 * beside the others. The host gets three numbers. */
#include "cuda/mean_field.cuh"

#include "cuda/messages.cuh"
#include "dsp/dsp.h"

#include <cfloat>
#include <cstdlib>

#define WARP 32
#define MOST_ITEMS 4
/* Labels that the threads of a row can hold. */
#define MOST_LABELS (4 * WARP * MOST_ITEMS)
#define WHAT "mean field"

/* What counts as zero in a logarithm, as in solver/mean_field.c. */
#define SMALLEST_Q 1e-37f

struct dcrf_backend_mean_field {
    dcrf_backend_device *device;
    size_t variables, labels, stride;
    struct message_kernels kernels;
    const float *unary, *diagonal;
    float *own_unary, *own_diagonal; /* the same; NULL where they are the caller's */
    float *q, *logits;
    bool has_logits;
    struct dcrf_backend_update how;        /* of the last update */
    struct dcrf_backend_update *how_there; /* the same, so that the graph need not change with it */
    double *partial, *sums;                /* of the blocks, and of all */
    unsigned *blocks_done;
    size_t blocks;                     /* of the softmax */
    cudaGraphExec_t step, damped_step; /* NULL until there is one */
};

/* ---- the softmax ---------------------------------------------------------------------------- */

struct update {
    size_t variables;
    uint32_t labels, stride;           /* stride in float4 */
    const float4 *unary, *messages[2]; /* the second one: NULL where there is one only */
    const float *diagonal;
    float4 *q, *logits; /* logits: NULL without damping */
    const struct dcrf_backend_update *how;
    bool is_start; /* softmax(-coldness unary): there is no message, and no q */
    double *partial, *sums;
    unsigned *blocks_done;
};

template <int LANES, typename T> static __device__ T sum_of_row(T value) {
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

template <int LANES> static __device__ float largest_of_row(float value) {
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

/* The sums of a block, by a tree of fixed shape. The block that is done last adds up those of all
 * blocks, in their order. */
static __device__ void sum_up(double energy, double change, double entropy,
                              const struct update &u) {
    __shared__ double sums[DCRF_SOFTMAX_SUMS][THREADS / WARP];
    __shared__ bool is_last;
    double mine[DCRF_SOFTMAX_SUMS];
    mine[DCRF_SOFTMAX_ENERGY] = energy;
    mine[DCRF_SOFTMAX_CHANGE] = change;
    mine[DCRF_SOFTMAX_ENTROPY] = entropy;
#pragma unroll
    for (int s = 0; s < DCRF_SOFTMAX_SUMS; s++) {
        const double sum = sum_of_row<WARP>(mine[s]);
        if (threadIdx.x % WARP == 0)
            sums[s][threadIdx.x / WARP] = sum;
    }
    __syncthreads();
    if (threadIdx.x < DCRF_SOFTMAX_SUMS) {
        double sum = 0;
        for (int w = 0; w < THREADS / WARP; w++)
            sum += sums[threadIdx.x][w];
        u.partial[blockIdx.x * DCRF_SOFTMAX_SUMS + threadIdx.x] = sum;
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd(u.blocks_done, 1) + 1 == gridDim.x;
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    for (int s = 0; s < DCRF_SOFTMAX_SUMS; s++) {
        double sum = 0;
        for (size_t b = threadIdx.x; b < gridDim.x; b += THREADS)
            sum += __ldcg(&u.partial[b * DCRF_SOFTMAX_SUMS + (size_t)s]);
        sum = sum_of_row<WARP>(sum);
        __syncthreads();
        if (threadIdx.x % WARP == 0)
            sums[s][threadIdx.x / WARP] = sum;
    }
    __syncthreads();
    if (threadIdx.x < DCRF_SOFTMAX_SUMS) {
        double sum = 0;
        for (int w = 0; w < THREADS / WARP; w++)
            sum += sums[threadIdx.x][w];
        u.sums[threadIdx.x] = sum;
    }
    if (threadIdx.x == 0)
        *u.blocks_done = 0; /* for the next launch */
}

/* LANES threads per row, each with ITEMS times four labels. */
template <int LANES, int ITEMS> static __global__ void update_rows(struct update u) {
    const size_t thread = blockIdx.x * (size_t)THREADS + threadIdx.x;
    const size_t row = thread / LANES;
    const uint32_t lane = threadIdx.x % LANES;
    const bool is_there = row < u.variables;
    const float damping = u.how->damping, coldness = u.how->coldness;
    const float diagonal = is_there && !u.is_start ? u.diagonal[row] : 0;
    float old[ITEMS][4], value[ITEMS][4];
    double energy = 0, change = 0, entropy = 0;
    float largest = -FLT_MAX;
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t column = lane + (uint32_t)item * LANES;
        const bool has_column = is_there && column < u.stride;
        const size_t at = row * u.stride + column;
        const float4 none = make_float4(0, 0, 0, 0);
        const float4 unary4 = has_column ? u.unary[at] : none;
        const float4 q4 = has_column && !u.is_start ? u.q[at] : none;
        const bool has_message = has_column && !u.is_start;
        const float4 one4 = has_message ? u.messages[0][at] : none;
        const float4 other4 = has_message && u.messages[1] ? u.messages[1][at] : none;
        const float4 logits4 = has_column && u.logits ? u.logits[at] : none;
        const float unary[4] = {unary4.x, unary4.y, unary4.z, unary4.w};
        const float q[4] = {q4.x, q4.y, q4.z, q4.w};
        const float message[4] = {one4.x + other4.x, one4.y + other4.y, one4.z + other4.z,
                                  one4.w + other4.w};
        const float logits[4] = {logits4.x, logits4.y, logits4.z, logits4.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool is_label = has_column && 4 * column + (uint32_t)i < u.labels;
            const float m = message[i] - diagonal * q[i];
            float s = coldness * (-unary[i] + 2 * m);
            if (u.logits)
                s = damping * logits[i] + (1 - damping) * s;
            old[item][i] = q[i];
            value[item][i] = is_label ? s : -FLT_MAX;
            if (is_label) {
                energy += (double)(q[i] * unary[i] + m * (1 - q[i]));
                largest = fmaxf(largest, s);
            }
        }
        if (has_column && u.logits)
            u.logits[at] =
                make_float4(value[item][0], value[item][1], value[item][2], value[item][3]);
    }
    largest = largest_of_row<LANES>(largest);
    float total = 0, weighted = 0;
#pragma unroll
    for (int item = 0; item < ITEMS; item++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool is_label = value[item][i] > -FLT_MAX;
            const float exponent = fmaxf(value[item][i] - largest, -100.0f);
            const float e = is_label ? expf(exponent) : 0;
            value[item][i] = e;
            total += e;
            weighted += e * exponent;
        }
    total = sum_of_row<LANES>(total);
    weighted = sum_of_row<LANES>(weighted);
    const float scale = 1 / total;
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t column = lane + (uint32_t)item * LANES;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            value[item][i] *= scale;
            change += (double)fabsf(value[item][i] - old[item][i]);
        }
        if (is_there && column < u.stride)
            u.q[row * u.stride + column] =
                make_float4(value[item][0], value[item][1], value[item][2], value[item][3]);
    }
    if (is_there && lane == 0)
        entropy = (double)(scale * weighted) - log((double)total);
    if (!is_there)
        change = 0;
    sum_up(energy, change, entropy, u);
}

/* s = ln q, up to a constant per row; and the terms of the entropy of q. */
static __global__ void recover_logits(const float *q, size_t count, float *logits) {
    const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
    if (i < count)
        logits[i] = logf(q[i] > SMALLEST_Q ? q[i] : SMALLEST_Q);
}

static size_t lanes_for(size_t stride) {
    size_t lanes = 1;
    while (lanes < WARP && lanes * 4 < stride)
        lanes *= 2;
    return lanes;
}

static void launch_update(const struct dcrf_backend_mean_field *mf, bool is_start, bool is_damped) {
    struct update u = {};
    u.variables = mf->variables;
    u.labels = (uint32_t)mf->labels;
    u.stride = (uint32_t)(mf->stride / 4);
    u.unary = reinterpret_cast<const float4 *>(mf->unary);
    u.messages[0] = reinterpret_cast<const float4 *>(mf->kernels.messages[0]);
    u.messages[1] = reinterpret_cast<const float4 *>(mf->kernels.messages[1]);
    u.diagonal = mf->diagonal;
    u.q = reinterpret_cast<float4 *>(mf->q);
    u.logits = is_damped ? reinterpret_cast<float4 *>(mf->logits) : nullptr;
    u.how = mf->how_there;
    u.is_start = is_start;
    u.partial = mf->partial;
    u.sums = mf->sums;
    u.blocks_done = mf->blocks_done;
    const unsigned blocks = (unsigned)mf->blocks;
    cudaStream_t stream = mf->device->stream;
    switch (lanes_for(mf->stride)) {
    case 1:
    case 2: /* rows are eights */
        update_rows<2, 1><<<blocks, THREADS, 0, stream>>>(u);
        break;
    case 4:
        update_rows<4, 1><<<blocks, THREADS, 0, stream>>>(u);
        break;
    case 8:
        update_rows<8, 1><<<blocks, THREADS, 0, stream>>>(u);
        break;
    case 16:
        update_rows<16, 1><<<blocks, THREADS, 0, stream>>>(u);
        break;
    default:
        if (mf->stride <= 4 * WARP)
            update_rows<32, 1><<<blocks, THREADS, 0, stream>>>(u);
        else
            update_rows<32, MOST_ITEMS><<<blocks, THREADS, 0, stream>>>(u);
        break;
    }
}

/* ---- the update as a graph ------------------------------------------------------------------ */

static dcrf_status launch_step(struct dcrf_backend_mean_field *mf, bool is_damped,
                               dcrf_error *error) {
    const dcrf_status status = messages_send(&mf->kernels, mf->q, mf->labels, mf->stride, error);
    if (status < 0)
        return status;
    launch_update(mf, false, is_damped);
    return check(cudaMemcpyAsync(mf->device->few, mf->sums, DCRF_SOFTMAX_SUMS * sizeof(double),
                                 cudaMemcpyDeviceToHost, mf->device->stream),
                 WHAT, error);
}

/* Record the launches of a step. The filters have all their memory by then: they have been run. */
static dcrf_status record_step(struct dcrf_backend_mean_field *mf, bool is_damped,
                               cudaGraphExec_t *graph, dcrf_error *error) {
    cudaStream_t stream = mf->device->stream;
    cudaGraph_t recorded = nullptr;
    dcrf_status status =
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording", error);
    if (status < 0)
        return status;
    status = launch_step(mf, is_damped, error);
    const cudaError_t result = cudaStreamEndCapture(stream, &recorded);
    if (status == DCRF_OK)
        status = check(result, "recording", error);
    if (status == DCRF_OK)
        status = check(cudaGraphInstantiate(graph, recorded, 0), "recording", error);
    if (recorded)
        cudaGraphDestroy(recorded);
    return status;
}

/* ---- the interface -------------------------------------------------------------------------- */

void mean_field_free(dcrf_backend_mean_field *mf) {
    if (!mf)
        return;
    dcrf_backend_device *device = mf->device;
    cudaSetDevice((int)device->index);
    if (mf->step)
        cudaGraphExecDestroy(mf->step);
    if (mf->damped_step)
        cudaGraphExecDestroy(mf->damped_step);
    void *const held[] = {mf->own_unary, mf->own_diagonal, mf->q,    mf->logits,
                          mf->how_there, mf->partial,      mf->sums, mf->blocks_done};
    for (void *memory : held)
        device_release(device, memory);
    message_kernels_release(&mf->kernels);
    free(mf);
    device_drop(device);
}

static dcrf_status take_memory(dcrf_backend_mean_field *mf, dcrf_error *error) {
    dcrf_backend_device *device = mf->device;
    const size_t floats = mf->variables * mf->stride;
    dcrf_status status = device_array(device, &mf->q, floats, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &mf->blocks_done, 1, WHAT, error);
    if (status == DCRF_OK)
        status = check(cudaMemsetAsync(mf->blocks_done, 0, sizeof *mf->blocks_done, device->stream),
                       WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &mf->how_there, 1, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &mf->partial, mf->blocks * DCRF_SOFTMAX_SUMS, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &mf->sums, DCRF_SOFTMAX_SUMS, WHAT, error);
    return status;
}

dcrf_status mean_field_adopt(dcrf_backend_mean_field **out, dcrf_backend_device *device,
                             const struct dcrf_backend_model *model, dcrf_error *error) {
    *out = nullptr;
    if (model->labels > MOST_LABELS)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "mean field with more than %d labels is not on this device yet", MOST_LABELS);
    dcrf_status status = device_enter(device, error);
    if (status < 0)
        return status;
    dcrf_backend_mean_field *mf =
        static_cast<dcrf_backend_mean_field *>(calloc(1, sizeof(dcrf_backend_mean_field)));
    if (!mf)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    mf->device = device;
    device_hold(device);
    mf->how = {-1, -1}; /* none has been told yet */
    mf->variables = model->variables;
    mf->labels = model->labels;
    mf->stride = model->stride;
    const size_t lanes = lanes_for(model->stride) < 2 ? 2 : lanes_for(model->stride);
    mf->blocks = (model->variables * lanes + THREADS - 1) / THREADS;
    status = message_kernels_take(&mf->kernels, device, model, error);
    if (status == DCRF_OK)
        status = take_memory(mf, error);
    mf->unary = model->unary;
    mf->diagonal = model->diagonal;
    if (status < 0) {
        mean_field_free(mf);
        return status;
    }
    *out = mf;
    return DCRF_OK;
}

/* An array of the host's, on the device. */
static dcrf_status bring(dcrf_backend_device *device, float **there, const float *array,
                         size_t floats, dcrf_error *error) {
    const dcrf_status status = device_array(device, there, floats, WHAT, error);
    return status < 0 ? status
                      : device_upload(device, *there, array, floats * sizeof *array, error);
}

dcrf_status mean_field_new(dcrf_backend_mean_field **out, dcrf_backend_device *device,
                           const struct dcrf_backend_model *model, dcrf_error *error) {
    dcrf_status status = mean_field_adopt(out, device, model, error);
    if (status < 0)
        return status;
    dcrf_backend_mean_field *mf = *out;
    status = bring(device, &mf->own_unary, model->unary, mf->variables * mf->stride, error);
    if (status == DCRF_OK)
        status = bring(device, &mf->own_diagonal, model->diagonal, mf->variables, error);
    mf->unary = mf->own_unary;
    mf->diagonal = mf->own_diagonal;
    if (status < 0) {
        mean_field_free(mf);
        *out = nullptr;
    }
    return status;
}

static dcrf_status read_sums(dcrf_backend_mean_field *mf, double *sums, dcrf_error *error) {
    const dcrf_status status = check(cudaStreamSynchronize(mf->device->stream), WHAT, error);
    for (int s = 0; s < DCRF_SOFTMAX_SUMS && status == DCRF_OK; s++)
        sums[s] = mf->device->few[s];
    return status;
}

/* What the launches read of how to update. */
static dcrf_status tell_how(dcrf_backend_mean_field *mf, const struct dcrf_backend_update *how,
                            dcrf_error *error) {
    if (mf->how.damping == how->damping && mf->how.coldness == how->coldness)
        return DCRF_OK;
    mf->how = *how;
    return device_upload(mf->device, mf->how_there, how, sizeof *how, error);
}

dcrf_status mean_field_start(dcrf_backend_mean_field *mf, const float *q, float coldness,
                             double *entropy, dcrf_error *error) {
    double sums[DCRF_SOFTMAX_SUMS];
    const struct dcrf_backend_update how = {0, coldness};
    dcrf_status status = device_enter(mf->device, error);
    if (status < 0)
        return status;
    mf->has_logits = false;
    if (q) {
        const size_t floats = mf->variables * mf->stride;
        *entropy = 0;
        for (size_t i = 0; i < floats; i++)
            if (q[i] > 0)
                *entropy += (double)q[i] * log((double)q[i]);
        return device_upload(mf->device, mf->q, q, floats * sizeof *q, error);
    }
    status = tell_how(mf, &how, error);
    if (status < 0)
        return status;
    launch_update(mf, true, false);
    status = check(cudaMemcpyAsync(mf->device->few, mf->sums, sizeof sums, cudaMemcpyDeviceToHost,
                                   mf->device->stream),
                   WHAT, error);
    if (status == DCRF_OK)
        status = read_sums(mf, sums, error);
    *entropy = status == DCRF_OK ? sums[DCRF_SOFTMAX_ENTROPY] : 0;
    return status;
}

/* The logits of q, where damping needs them for the first time. */
static dcrf_status prepare_damping(dcrf_backend_mean_field *mf, dcrf_error *error) {
    const size_t floats = mf->variables * mf->stride;
    dcrf_status status = DCRF_OK;
    if (!mf->logits)
        status = device_array(mf->device, &mf->logits, floats, WHAT, error);
    if (status == DCRF_OK && !mf->has_logits) {
        recover_logits<<<(unsigned)((floats + THREADS - 1) / THREADS), THREADS, 0,
                         mf->device->stream>>>(mf->q, floats, mf->logits);
        status = check(cudaGetLastError(), WHAT, error);
        mf->has_logits = status == DCRF_OK;
    }
    return status;
}

dcrf_status mean_field_step(dcrf_backend_mean_field *mf, const struct dcrf_backend_update *how,
                            double *sums, dcrf_error *error) {
    const bool is_damped = how->damping > 0;
    cudaGraphExec_t *graph = is_damped ? &mf->damped_step : &mf->step;
    dcrf_status status = device_enter(mf->device, error);
    if (status == DCRF_OK)
        status = tell_how(mf, how, error);
    if (status == DCRF_OK && is_damped)
        status = prepare_damping(mf, error);
    if (status < 0)
        return status;
    if (*graph) {
        status = check(cudaGraphLaunch(*graph, mf->device->stream), WHAT, error);
    } else {
        /* The first one takes what memory the filters need; the next one is recorded. */
        status = launch_step(mf, is_damped, error);
        if (status == DCRF_OK)
            status = record_step(mf, is_damped, graph, error);
    }
    return status < 0 ? status : read_sums(mf, sums, error);
}

/* From how many updates on recording one pays. */
#ifndef RECORDING_PAYS
#define RECORDING_PAYS 4
#endif

dcrf_status mean_field_iterate(dcrf_backend_mean_field *mf, size_t updates, dcrf_error *error) {
    const struct dcrf_backend_update how = {0, 1};
    dcrf_status status = device_enter(mf->device, error);
    if (status == DCRF_OK)
        status = tell_how(mf, &how, error);
    if (status == DCRF_OK) {
        launch_update(mf, true, false);
        status = check(cudaGetLastError(), WHAT, error);
    }
    for (size_t k = 0; k < updates && status == DCRF_OK; k++) {
        /* The first one takes what memory the filters need. */
        if (k == 1 && updates > RECORDING_PAYS && !mf->step)
            status = record_step(mf, false, &mf->step, error);
        if (status == DCRF_OK)
            status = mf->step ? check(cudaGraphLaunch(mf->step, mf->device->stream), WHAT, error)
                              : launch_step(mf, false, error);
    }
    return status;
}

const float *mean_field_block(const dcrf_backend_mean_field *mf) {
    return mf->q;
}

dcrf_status mean_field_marginals(dcrf_backend_mean_field *mf, float *q, dcrf_error *error) {
    const dcrf_status status = device_enter(mf->device, error);
    return status < 0 ? status
                      : device_download(mf->device, q, mf->q,
                                        mf->variables * mf->stride * sizeof *q, error);
}

dcrf_status mean_field_labels(dcrf_backend_mean_field *mf, uint16_t *labels, dcrf_error *error) {
    const dcrf_status status = device_enter(mf->device, error);
    return status < 0 ? status
                      : labels_download(mf->device, mf->q, mf->variables, mf->labels, mf->stride,
                                        labels, error);
}
