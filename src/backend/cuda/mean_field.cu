/* Mean field on a device: the parallel update of all variables described in meanfield/mean_field.c.
 *
 * An update is one graph of launches, captured once: the kernels' filters into the field, what
 * cliques add, the softmax, and its sums. With Potts kernels, the first has its own branch of the
 * graph, so it is filtered concurrently with the others. The host gets four numbers. */
#include "backend/clique_terms.h"
#include "backend/cuda/iterate.cuh"
#include "backend/cuda/sums.cuh"

#include <cfloat>

#define WARP 32
#define MOST_ITEMS 4 /* four labels each: 512 in all */
#define WHAT "mean field"

/* ---- the softmax ---------------------------------------------------------------------------- */

struct update {
    size_t variables;
    uint32_t labels, stride;     /* stride in float4 */
    const float4 *unary, *extra; /* extra: NULL without cliques */
    struct field_parts field;
    float factor, same_label_factor, all_factor; /* as in dsp/dsp.h */
    float4 *q, *logits;                          /* logits: NULL without damping */
    const struct dcrf_backend_update *how;
    bool is_start;          /* softmax(-coldness unary): no field, no previous q */
    double *partial, *sums; /* sums: NULL if not needed */
    unsigned *blocks_done;
};

template <int LANES> static __device__ float largest_of_row(float value) {
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

static __device__ void sum_up(double energy, double change, double entropy,
                              const struct update &u) {
    double mine[DCRF_SOFTMAX_SUMS], totals[DCRF_SOFTMAX_SUMS];
    mine[DCRF_SOFTMAX_ENERGY] = energy;
    mine[DCRF_SOFTMAX_CHANGE] = change;
    mine[DCRF_SOFTMAX_ENTROPY] = entropy;
    if (sum_of_launch<DCRF_SOFTMAX_SUMS, THREADS>(mine, u.partial, u.blocks_done, totals) &&
        threadIdx.x == 0)
        for (int s = 0; s < DCRF_SOFTMAX_SUMS; s++)
            u.sums[s] = totals[s];
}

/* LANES threads per row, each with ITEMS times four labels. */
template <int LANES, int ITEMS> static __global__ void update_rows(struct update u) {
    const size_t thread = blockIdx.x * (size_t)THREADS + threadIdx.x;
    const size_t row = thread / LANES;
    const uint32_t lane = threadIdx.x % LANES;
    const bool has_row = row < u.variables;
    const float damping = u.how->damping, coldness = u.how->coldness;
    float old[ITEMS][4], value[ITEMS][4];
    double energy = 0, change = 0, entropy = 0;
    float largest = -FLT_MAX;
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t column = lane + (uint32_t)item * LANES;
        const bool has_column = has_row && column < u.stride;
        const size_t at = row * u.stride + column;
        const float4 none = make_float4(0, 0, 0, 0);
        const float4 unary4 = has_column ? u.unary[at] : none;
        const float4 q4 = has_column && !u.is_start ? u.q[at] : none;
        const float4 field4 = has_column && !u.is_start ? field_at(u.field, row, at, q4) : none;
        const float4 extra4 = has_column && u.extra ? u.extra[at] : none;
        const float4 logits4 = has_column && u.logits ? u.logits[at] : none;
        const float unary[4] = {unary4.x, unary4.y, unary4.z, unary4.w};
        const float q[4] = {q4.x, q4.y, q4.z, q4.w};
        const float field[4] = {field4.x, field4.y, field4.z, field4.w};
        const float extra[4] = {extra4.x, extra4.y, extra4.z, extra4.w};
        const float logits[4] = {logits4.x, logits4.y, logits4.z, logits4.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool is_label = has_column && 4 * column + (uint32_t)i < u.labels;
            float s = coldness * (extra[i] - unary[i] - u.factor * field[i]);
            if (u.logits)
                s = damping * logits[i] + (1 - damping) * s;
            old[item][i] = q[i];
            value[item][i] = is_label ? s : -FLT_MAX;
            if (is_label)
                largest = fmaxf(largest, s);
            if (is_label && u.sums)
                energy += (double)(q[i] * unary[i] +
                                   field[i] * (u.all_factor + u.same_label_factor * q[i]));
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
    total = sum_of_lanes<LANES>(total);
    weighted = sum_of_lanes<LANES>(weighted);
    const float scale = 1 / total;
#pragma unroll
    for (int item = 0; item < ITEMS; item++) {
        const uint32_t column = lane + (uint32_t)item * LANES;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            value[item][i] *= scale;
            change += (double)fabsf(value[item][i] - old[item][i]);
        }
        if (has_row && column < u.stride)
            u.q[row * u.stride + column] =
                make_float4(value[item][0], value[item][1], value[item][2], value[item][3]);
    }
    if (!u.sums)
        return; /* all threads */
    if (has_row && lane == 0)
        entropy = (double)(scale * weighted) - log((double)total);
    if (!has_row)
        change = 0;
    sum_up(energy, change, entropy, u);
}

/* s = ln q, up to a constant per row. */
static __global__ void recover_logits(const float *q, size_t count, float *logits) {
    const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
    if (i < count)
        logits[i] = logf(dcrf_positive(q[i]));
}

static size_t lanes_for(size_t stride) {
    size_t lanes = 2;
    while (lanes < WARP && lanes * 4 < stride)
        lanes *= 2;
    return lanes;
}

/* An update from a field, or the start if field is NULL. */
static void launch_update(const dcrf_backend_iterate *it, const struct field_parts *field,
                          bool is_damped, bool wants_sums) {
    const struct mean_field *mf = &it->mean_field;
    struct update u = {};
    u.variables = it->variables;
    u.labels = (uint32_t)it->labels;
    u.stride = (uint32_t)(it->stride / 4);
    u.unary = reinterpret_cast<const float4 *>(it->unary);
    u.extra = field ? reinterpret_cast<const float4 *>(mf->extra) : nullptr;
    if (field)
        u.field = *field;
    u.factor = 2 * it->same_label_factor;
    u.same_label_factor = it->same_label_factor;
    u.all_factor = it->all_factor;
    u.q = reinterpret_cast<float4 *>(it->y);
    u.logits = is_damped ? reinterpret_cast<float4 *>(mf->logits) : nullptr;
    u.how = mf->how_on_device;
    u.is_start = !field;
    u.partial = mf->partial;
    u.sums = wants_sums ? mf->sums : nullptr;
    u.blocks_done = mf->blocks_done;
    const unsigned blocks = (unsigned)mf->blocks;
    cudaStream_t stream = it->device->stream;
    switch (lanes_for(it->stride)) {
    case 2:
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
        if (it->stride <= 4 * WARP)
            update_rows<32, 1><<<blocks, THREADS, 0, stream>>>(u);
        else
            update_rows<32, MOST_ITEMS><<<blocks, THREADS, 0, stream>>>(u);
        break;
    }
}

/* ---- the update as a graph ------------------------------------------------------------------ */

static dcrf_status send_sums(dcrf_backend_iterate *it, dcrf_error *error) {
    return check(cudaMemcpyAsync(it->device->few, it->mean_field.sums,
                                 DCRF_BACKEND_UPDATE_SUMS * sizeof(double), cudaMemcpyDeviceToHost,
                                 it->device->stream),
                 WHAT, error);
}

static dcrf_status read_sums(dcrf_backend_iterate *it, double *sums, dcrf_error *error) {
    TRY(check(cudaStreamSynchronize(it->device->stream), WHAT, error));
    for (int s = 0; s < DCRF_BACKEND_UPDATE_SUMS; s++)
        sums[s] = it->device->few[s];
    return DCRF_OK;
}

static dcrf_status launch_step(dcrf_backend_iterate *it, bool is_damped, bool wants_sums,
                               dcrf_error *error) {
    struct field_parts field;
    TRY(field_send(&it->kernels, it->y, &field, error));
    if (it->cliques.count > 0)
        TRY(cliques_update(&it->cliques, it->y, it->mean_field.extra,
                           it->mean_field.sums + DCRF_BACKEND_CLIQUE_COST, error));
    launch_update(it, &field, is_damped, wants_sums);
    return wants_sums ? send_sums(it, error) : check(cudaGetLastError(), WHAT, error);
}

static dcrf_status launch_plain(dcrf_backend_iterate *it, dcrf_error *error) {
    return launch_step(it, false, true, error);
}

static dcrf_status launch_damped(dcrf_backend_iterate *it, dcrf_error *error) {
    return launch_step(it, true, true, error);
}

/* ---- the interface -------------------------------------------------------------------------- */

void mean_field_release(dcrf_backend_iterate *it) {
    struct mean_field *mf = &it->mean_field;
    if (mf->step)
        cudaGraphExecDestroy(mf->step);
    if (mf->damped_step)
        cudaGraphExecDestroy(mf->damped_step);
    void *const held[] = {mf->logits,  mf->extra, mf->how_on_device,
                          mf->partial, mf->sums,  mf->blocks_done};
    for (void *memory : held)
        device_release(it->device, memory);
    *mf = {};
}

static dcrf_status take_memory(dcrf_backend_iterate *it, dcrf_error *error) {
    dcrf_backend_device *device = it->device;
    struct mean_field *mf = &it->mean_field;
    mf->blocks = blocks_for(it->variables * lanes_for(it->stride));
    mf->how = {-1, -1}; /* nothing uploaded yet */
    TRY(device_zeros(device, &mf->blocks_done, 1, WHAT, error));
    TRY(device_array(device, &mf->how_on_device, 1, WHAT, error));
    TRY(device_array(device, &mf->partial, mf->blocks * DCRF_SOFTMAX_SUMS, WHAT, error));
    if (it->cliques.count > 0)
        TRY(device_array(device, &mf->extra, it->variables * it->stride, WHAT, error));
    /* The clique cost stays zero without cliques. */
    return device_zeros(device, &mf->sums, DCRF_BACKEND_UPDATE_SUMS, WHAT, error);
}

/* Upload the update parameters for the launches, if they changed. */
static dcrf_status tell_how(dcrf_backend_iterate *it, const struct dcrf_backend_update *how,
                            dcrf_error *error) {
    struct mean_field *mf = &it->mean_field;
    if (mf->how.damping == how->damping && mf->how.coldness == how->coldness)
        return DCRF_OK;
    mf->how = *how;
    return device_upload(it->device, mf->how_on_device, how, sizeof *how, error);
}

static dcrf_status prepare(dcrf_backend_iterate *it, dcrf_error *error) {
    TRY(device_enter(it->device, error));
    if (it->mean_field.sums)
        return DCRF_OK;
    const dcrf_status status = take_memory(it, error);
    if (status < 0)
        mean_field_release(it);
    return status;
}

static double entropy_of(const float *q, size_t floats) {
    double entropy = 0;
    for (size_t i = 0; i < floats; i++)
        if (q[i] > 0)
            entropy += (double)q[i] * log((double)q[i]);
    return entropy;
}

dcrf_status mean_field_start(dcrf_backend_iterate *it, const float *q, float coldness,
                             double *entropy, dcrf_error *error) {
    const size_t floats = it->variables * it->stride;
    double sums[DCRF_BACKEND_UPDATE_SUMS];
    const struct dcrf_backend_update how = {0, coldness};
    TRY(prepare(it, error));
    it->mean_field.has_logits = false;
    if (q) {
        if (entropy)
            *entropy = entropy_of(q, floats);
        return device_upload(it->device, it->y, q, floats * sizeof *q, error);
    }
    TRY(tell_how(it, &how, error));
    launch_update(it, nullptr, false, entropy != nullptr);
    if (!entropy)
        return check(cudaGetLastError(), WHAT, error);
    *entropy = 0;
    TRY(send_sums(it, error));
    TRY(read_sums(it, sums, error));
    *entropy = sums[DCRF_SOFTMAX_ENTROPY];
    return DCRF_OK;
}

/* The logits of q, when damping first needs them. */
static dcrf_status prepare_damping(dcrf_backend_iterate *it, dcrf_error *error) {
    struct mean_field *mf = &it->mean_field;
    const size_t floats = it->variables * it->stride;
    if (!mf->logits)
        TRY(device_array(it->device, &mf->logits, floats, WHAT, error));
    if (mf->has_logits)
        return DCRF_OK;
    recover_logits<<<blocks_for(floats), THREADS, 0, it->device->stream>>>(it->y, floats,
                                                                           mf->logits);
    TRY(check(cudaGetLastError(), WHAT, error));
    mf->has_logits = true;
    return DCRF_OK;
}

dcrf_status mean_field_step(dcrf_backend_iterate *it, const struct dcrf_backend_update *how,
                            double *sums, dcrf_error *error) {
    const bool is_damped = how->damping > 0;
    struct mean_field *mf = &it->mean_field;
    TRY(prepare(it, error));
    TRY(tell_how(it, how, error));
    if (is_damped)
        TRY(prepare_damping(it, error));
    /* Without a graph: capturing a step takes as long as launching ten, and blocks other threads.
     */
    if (!sums)
        return launch_step(it, is_damped, false, error);
    TRY(is_damped ? iterate_repeat(it, launch_damped, &mf->damped_step, error)
                  : iterate_repeat(it, launch_plain, &mf->step, error));
    return read_sums(it, sums, error);
}
