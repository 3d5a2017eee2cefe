/* The compatible mean field (dcrf/densecrf.h) on a device.
 *
 * Q <- softmax(-unary - message) is the update of mean_field.cu with the message for its field: the
 * operators are lattices one way (lattice.cuh), and nothing is taken off for their diagonals. All
 * labels are filtered always. What is here turns the planes of the caller into rows and back, and
 * sums up the objective.
 *
 * Several threads may run objects of one device; each call has its turn until it is done. */
#include "cuda/compat.cuh"
#include "cuda/iterate.cuh"
#include "cuda/sums.cuh"

#include <cfloat>
#include <cstdlib>

#define WHAT "the compatible mean field"

struct dcrf_backend_compat {
    dcrf_backend_device *device;
    size_t variables, labels, stride;
    float *unary;    /* rows */
    float *planes;   /* on their way from or to the host */
    unsigned *wrong; /* a plane holds a number that is not finite */
    double *partial; /* sums of blocks, and of all */
    dcrf_backend_iterate *it;
};

/* ---- planes and rows ------------------------------------------------------------------------ */

/* Numbers as struct dcrf_backend_compat_model has them; all variables as one lane are planes. */
struct places {
    size_t variables, lanes;
    uint32_t labels, stride;
    const uint32_t *order; /* NULL: as they are */
    const float *numbers;
};

/* One thread per place; rows are written by fours, and zeros after the labels. */
static __global__ void places_to_rows(struct places p, float4 *rows, unsigned *wrong) {
    const size_t place = this_thread();
    if (place >= p.variables)
        return;
    const size_t variable = p.order ? p.order[place] : place;
    const float *number = p.numbers + place / p.lanes * p.lanes * p.labels + place % p.lanes;
    bool is_finite = true;
    for (uint32_t first = 0; first < p.stride; first += 4) {
        float four[4] = {0, 0, 0, 0};
        for (uint32_t k = 0; k < 4 && first + k < p.labels; k++) {
            four[k] = number[(size_t)(first + k) * p.lanes];
            is_finite = is_finite && isfinite(four[k]);
        }
        rows[(variable * p.stride + first) / 4] = make_float4(four[0], four[1], four[2], four[3]);
    }
    if (!is_finite)
        *wrong = 1;
}

/* Subnormal numbers become zeros, as on the CPU. */
static __global__ void rows_to_planes(const float *rows, size_t variables, uint32_t labels,
                                      uint32_t stride, float *planes) {
    const size_t a = this_thread();
    if (a >= variables)
        return;
    for (uint32_t i = 0; i < labels; i++) {
        const float q = rows[a * stride + i];
        planes[i * variables + a] = q < FLT_MIN ? 0 : q;
    }
}

static struct places planes_of(const dcrf_backend_compat *compat) {
    return {compat->variables,        compat->variables, (uint32_t)compat->labels,
            (uint32_t)compat->stride, nullptr,           compat->planes};
}

/* Rows from what is in `planes`. Does it hold a number that is not finite? */
static dcrf_status take_rows(dcrf_backend_compat *compat, const struct places *places, float *rows,
                             bool *is_wrong, dcrf_error *error) {
    dcrf_backend_device *device = compat->device;
    unsigned found = 0;
    dcrf_status status = check(
        cudaMemsetAsync(compat->wrong, 0, sizeof *compat->wrong, device->stream), WHAT, error);
    if (status < 0)
        return status;
    places_to_rows<<<blocks_for(compat->variables), THREADS, 0, device->stream>>>(
        *places, reinterpret_cast<float4 *>(rows), compat->wrong);
    status = check(cudaGetLastError(), WHAT, error);
    if (status == DCRF_OK)
        status = device_download(device, &found, compat->wrong, sizeof found, error);
    *is_wrong = found;
    return status;
}

/* y = the planes of the host. */
static dcrf_status load(dcrf_backend_compat *compat, const float *q, bool *is_wrong,
                        dcrf_error *error) {
    const struct places places = planes_of(compat);
    const dcrf_status status = device_upload(compat->device, compat->planes, q,
                                             compat->variables * compat->labels * sizeof *q, error);
    return status < 0 ? status : take_rows(compat, &places, compat->it->y, is_wrong, error);
}

/* ---- the object ----------------------------------------------------------------------------- */

static void compat_free(dcrf_backend_compat *compat) {
    if (!compat)
        return;
    dcrf_backend_device *device = compat->device;
    {
        const device_turn turn(device);
        cudaSetDevice((int)device->index);
        iterate_free(compat->it);
        device_release(device, compat->unary);
        device_release(device, compat->planes);
        device_release(device, compat->wrong);
        device_release(device, compat->partial);
    }
    free(compat);
    device_drop(device);
}

static dcrf_status take_unary(dcrf_backend_compat *compat,
                              const struct dcrf_backend_compat_model *model, size_t numbers,
                              dcrf_error *error) {
    dcrf_backend_device *device = compat->device;
    uint32_t *order = nullptr;
    bool is_wrong = false;
    if (!model->unary)
        return check(cudaMemsetAsync(compat->unary, 0,
                                     compat->variables * compat->stride * sizeof(float),
                                     device->stream),
                     WHAT, error);
    dcrf_status status = device_array(device, &order, compat->variables, WHAT, error);
    if (status == DCRF_OK)
        status =
            device_upload(device, order, model->order, compat->variables * sizeof *order, error);
    if (status == DCRF_OK)
        status =
            device_upload(device, compat->planes, model->unary, numbers * sizeof(float), error);
    if (status == DCRF_OK) {
        struct places places = planes_of(compat);
        places.lanes = model->lanes;
        places.order = order;
        status = take_rows(compat, &places, compat->unary, &is_wrong, error);
    }
    device_release(device, order);
    return status;
}

/* The model of mean_field.cu: softmax(-unary - 2 own_factor field). */
static dcrf_status adopt(dcrf_backend_compat *compat, const struct dcrf_backend_compat_model *model,
                         dcrf_error *error) {
    struct dcrf_backend_model inner = {};
    inner.variables = compat->variables;
    inner.labels = compat->labels;
    inner.stride = compat->stride;
    inner.unary = compat->unary;
    inner.group_count = model->group_count;
    inner.groups = model->groups;
    inner.own_factor = 0.5f;
    return iterate_adopt(&compat->it, compat->device, &inner, error);
}

static dcrf_status take(dcrf_backend_compat *compat, const struct dcrf_backend_compat_model *model,
                        dcrf_error *error) {
    dcrf_backend_device *device = compat->device;
    const size_t rounded = (model->variables + model->lanes - 1) / model->lanes * model->lanes;
    const size_t numbers = rounded * model->labels;
    const device_turn turn(device);
    dcrf_status status = device_enter(device, error);
    if (status == DCRF_OK)
        status =
            device_array(device, &compat->unary, compat->variables * compat->stride, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &compat->planes, numbers, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &compat->wrong, 1, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &compat->partial, blocks_for(compat->variables) + (size_t)1,
                              WHAT, error);
    if (status == DCRF_OK)
        status = take_unary(compat, model, numbers, error);
    if (status == DCRF_OK)
        status = adopt(compat, model, error);
    return status < 0 ? status : mean_field_prepare(compat->it, error);
}

static dcrf_status compat_make(dcrf_backend_compat **out, dcrf_backend_device *device,
                               const struct dcrf_backend_compat_model *model, dcrf_error *error) {
    *out = nullptr;
    dcrf_backend_compat *compat =
        static_cast<dcrf_backend_compat *>(calloc(1, sizeof(dcrf_backend_compat)));
    if (!compat)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    compat->device = device;
    compat->variables = model->variables;
    compat->labels = model->labels;
    compat->stride = padded_channels(model->labels);
    device_hold(device);
    const dcrf_status status = take(compat, model, error);
    if (status < 0) {
        compat_free(compat);
        return status;
    }
    *out = compat;
    return DCRF_OK;
}

/* ---- updates -------------------------------------------------------------------------------- */

/* After an update, where somebody wants to know. */
static dcrf_status tell(dcrf_backend_compat *compat, const struct dcrf_backend_compat_run *run,
                        size_t updates, dcrf_error *error) {
    if (!run->after)
        return DCRF_OK;
    const dcrf_status status = check(cudaStreamSynchronize(compat->device->stream), WHAT, error);
    if (status < 0)
        return status;
    return run->after(run->user, updates) != 0 ? DCRF_STOP_CANCELLED : DCRF_OK;
}

static dcrf_status store(dcrf_backend_compat *compat, float *q, dcrf_error *error) {
    dcrf_backend_device *device = compat->device;
    const size_t n = compat->variables;
    rows_to_planes<<<blocks_for(n), THREADS, 0, device->stream>>>(
        compat->it->y, n, (uint32_t)compat->labels, (uint32_t)compat->stride, compat->planes);
    const dcrf_status status = check(cudaGetLastError(), WHAT, error);
    return status < 0
               ? status
               : device_download(device, q, compat->planes, n * compat->labels * sizeof *q, error);
}

static dcrf_status compat_run(dcrf_backend_compat *compat,
                              const struct dcrf_backend_compat_run *run, dcrf_error *error) {
    const device_turn turn(compat->device);
    bool is_wrong = false;
    dcrf_status status = device_enter(compat->device, error);
    if (status == DCRF_OK)
        status = run->from ? load(compat, run->from, &is_wrong, error)
                           : mean_field_softmax(compat->it, error);
    if (status == DCRF_OK && is_wrong)
        status = fail(error, DCRF_ERROR_NOT_FINITE, "Q holds a value that is not finite");
    for (size_t k = 0; k < run->updates && status == DCRF_OK; k++) {
        status = mean_field_update(compat->it, error);
        if (status == DCRF_OK)
            status = tell(compat, run, k + 1, error);
    }
    if (status < 0)
        return status;
    const dcrf_status stored = store(compat, run->to, error);
    return stored < 0 ? stored : status;
}

/* ---- the objective -------------------------------------------------------------------------- */

struct objective {
    size_t variables;
    uint32_t labels, stride; /* stride in float4 */
    const float4 *q, *unary;
    struct field_parts message;
    double *partial;
};

/* compat/divergence.c: sum q (ln max(q, 1e-20) + unary + message), one thread per variable. */
static __global__ void sum_objective(struct objective o) {
    const size_t a = this_thread();
    double sum[1] = {0};
    for (uint32_t column = 0; a < o.variables && column < o.stride; column++) {
        const size_t at = a * o.stride + column;
        const float4 q4 = o.q[at], unary4 = o.unary[at], message4 = field_at(o.message, a, at, q4);
        const float q[4] = {q4.x, q4.y, q4.z, q4.w};
        const float unary[4] = {unary4.x, unary4.y, unary4.z, unary4.w};
        const float message[4] = {message4.x, message4.y, message4.z, message4.w};
        for (uint32_t k = 0; k < 4; k++)
            if (4 * column + k < o.labels)
                sum[0] += (double)q[k] *
                          (log(fmax((double)q[k], 1e-20)) + (double)unary[k] + (double)message[k]);
    }
    write_block_sums<1, THREADS>(sum, o.partial);
}

static dcrf_status compat_divergence(dcrf_backend_compat *compat, const float *q,
                                     double *divergence, dcrf_error *error) {
    dcrf_backend_device *device = compat->device;
    const device_turn turn(device);
    const unsigned blocks = blocks_for(compat->variables);
    bool is_wrong; /* then the sum is no number either, which says enough */
    struct objective o = {compat->variables,
                          (uint32_t)compat->labels,
                          (uint32_t)(compat->stride / 4),
                          reinterpret_cast<const float4 *>(compat->it->y),
                          reinterpret_cast<const float4 *>(compat->unary),
                          {},
                          compat->partial};
    dcrf_status status = device_enter(device, error);
    if (status == DCRF_OK)
        status = load(compat, q, &is_wrong, error);
    if (status == DCRF_OK)
        status = field_send(&compat->it->kernels, compat->it->y, &o.message, error);
    if (status < 0)
        return status;
    sum_objective<<<blocks, THREADS, 0, device->stream>>>(o);
    add_block_sums<<<1, THREADS, 0, device->stream>>>(compat->partial, blocks,
                                                      compat->partial + blocks);
    status = check(cudaGetLastError(), WHAT, error);
    return status < 0 ? status
                      : device_download(device, divergence, compat->partial + blocks,
                                        sizeof *divergence, error);
}

/* ---- the table ------------------------------------------------------------------------------ */

static dcrf_status compat_operator_new(dcrf_operator **out, dcrf_backend_device *device,
                                       const struct dcrf_features *features, bool has_origin,
                                       dcrf_densecrf_normalization normalization,
                                       dcrf_error *error) {
    struct device_operator *op = nullptr;
    dcrf_status status = device_enter(device, error);
    if (status == DCRF_OK)
        status = lattice_new_compatible(&op, device, features, has_origin, normalization, error);
    *out = status < 0 ? nullptr : &op->base;
    return status;
}

const struct dcrf_backend_compat_methods compat_methods = {
    compat_operator_new, compat_make, compat_free, compat_run, compat_divergence};
