/* The compatible mean field (dcrf/densecrf.h) on a device.
 *
 * Q <- softmax(-unary - message) is the update of mean_field.cu with the message as its field: the
 * operators are single-pass lattices (lattice.cuh), and their diagonals are not subtracted. All
 * labels are always filtered. This file converts the caller's planes to rows and back, and computes
 * the objective.
 *
 * Several threads may use objects on one device; each call holds the device until it is done. */
#include "backend/cuda/compat.cuh"
#include "backend/cuda/iterate.cuh"
#include "backend/cuda/sums.cuh"

#include <cfloat>
#include <cmath>
#include <cstdlib>

#define WHAT "the compatible mean field"

struct dcrf_backend_compat {
    dcrf_backend_device *device;
    size_t variables, labels, stride;
    float *unary;    /* rows */
    unsigned *wrong; /* 1 if a number is not finite */
    double *partial; /* block sums, and the total */
    dcrf_backend_iterate *it;
};

/* ---- planes and rows ------------------------------------------------------------------------ */

/* struct dcrf_backend_places with arrays on the device. */
struct places {
    struct dcrf_backend_places given;
    size_t variables;
    uint32_t labels, stride; /* of rows */
    float largest;           /* numbers are clipped to it */
};

/* One thread per place; rows are written four floats at a time and padded with zeros. */
static __global__ void places_to_rows(struct places p, float4 *rows, unsigned *wrong) {
    const size_t place = this_thread(), lanes = p.given.lanes;
    if (place >= p.variables)
        return;
    const size_t variable = p.given.order ? p.given.order[place] : place;
    const float *number = p.given.numbers + place / lanes * lanes * p.labels + place % lanes;
    bool is_finite = true;
    for (uint32_t first = 0; first < p.stride; first += 4) {
        float four[4] = {0, 0, 0, 0};
        for (uint32_t k = 0; k < 4 && first + k < p.labels; k++) {
            const float value = number[(size_t)(first + k) * lanes];
            is_finite = is_finite && isfinite(value);
            four[k] = fmaxf(fminf(value, p.largest), -p.largest);
        }
        rows[(variable * p.stride + first) / 4] = make_float4(four[0], four[1], four[2], four[3]);
    }
    if (!is_finite)
        *wrong = 1;
}

/* Numbers below `least` in magnitude become zeros. */
static __global__ void rows_to_planes(const float *rows, size_t variables, uint32_t labels,
                                      uint32_t stride, float least, float *planes) {
    const size_t a = this_thread();
    if (a >= variables)
        return;
    for (uint32_t i = 0; i < labels; i++) {
        const float value = rows[a * stride + i];
        planes[i * variables + a] = fabsf(value) < least ? 0 : value;
    }
}

/* Convert numbers on the host to rows, and check that all are finite. */
static dcrf_status load(dcrf_backend_compat *compat, const struct dcrf_backend_places *given,
                        float largest, float *rows, bool *are_finite, dcrf_error *error) {
    dcrf_backend_device *device = compat->device;
    const size_t n = compat->variables;
    const size_t floats = (n + given->lanes - 1) / given->lanes * given->lanes * compat->labels;
    scratch<float> numbers(device);
    scratch<uint32_t> order(device);
    unsigned wrong = 0;
    if (given->order)
        TRY(order.copy(given->order, n, WHAT, error));
    TRY(numbers.copy(given->numbers, floats, WHAT, error));
    TRY(device_clear(device, compat->wrong, 1, WHAT, error));
    const struct places places = {{numbers, given->lanes, order},
                                  n,
                                  (uint32_t)compat->labels,
                                  (uint32_t)compat->stride,
                                  largest};
    places_to_rows<<<blocks_for(n), THREADS, 0, device->stream>>>(
        places, reinterpret_cast<float4 *>(rows), compat->wrong);
    TRY(check(cudaGetLastError(), WHAT, error));
    TRY(device_download(device, &wrong, compat->wrong, sizeof wrong, error));
    *are_finite = wrong == 0;
    return DCRF_OK;
}

/* Convert rows to planes on the host. */
static dcrf_status store(dcrf_backend_compat *compat, const float *rows, float least, float *planes,
                         dcrf_error *error) {
    dcrf_backend_device *device = compat->device;
    const size_t n = compat->variables, floats = n * compat->labels;
    scratch<float> on_device(device);
    TRY(on_device.take(floats, WHAT, error));
    rows_to_planes<<<blocks_for(n), THREADS, 0, device->stream>>>(
        rows, n, (uint32_t)compat->labels, (uint32_t)compat->stride, least, on_device);
    TRY(check(cudaGetLastError(), WHAT, error));
    return device_download(device, planes, on_device, floats * sizeof *planes, error);
}

static struct dcrf_backend_places planes_of(const dcrf_backend_compat *compat, const float *q) {
    return {q, compat->variables, nullptr};
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
        device_release(device, compat->wrong);
        device_release(device, compat->partial);
    }
    free(compat);
    device_drop(device);
}

static dcrf_status compat_set_kernels(dcrf_backend_compat *compat,
                                      const struct dcrf_backend_group *groups, size_t count,
                                      dcrf_error *error) {
    const device_turn turn(compat->device);
    dcrf_backend_iterate *it = nullptr;
    struct dcrf_backend_model model = {};
    model.variables = compat->variables;
    model.labels = compat->labels;
    model.stride = compat->stride;
    model.unary = compat->unary;
    model.group_count = count;
    model.groups = groups;
    model.same_label_factor = 0.5f; /* softmax(-unary - 2 same_label_factor field) */
    TRY(iterate_adopt(&it, compat->device, &model, error));
    iterate_free(compat->it);
    compat->it = it;
    return DCRF_OK;
}

static dcrf_status take(dcrf_backend_compat *compat, dcrf_error *error) {
    dcrf_backend_device *device = compat->device;
    const size_t floats = compat->variables * compat->stride;
    const struct dcrf_backend_group none = {};
    const device_turn turn(device);
    TRY(device_enter(device, error));
    TRY(device_zeros(device, &compat->unary, floats, WHAT, error));
    TRY(device_array(device, &compat->wrong, 1, WHAT, error));
    TRY(device_array(device, &compat->partial, blocks_for(compat->variables) + (size_t)1, WHAT,
                     error));
    return compat_set_kernels(compat, &none, 1, error);
}

static dcrf_status compat_make(dcrf_backend_compat **out, dcrf_backend_device *device,
                               size_t variables, size_t labels, dcrf_error *error) {
    *out = nullptr;
    dcrf_backend_compat *compat =
        static_cast<dcrf_backend_compat *>(calloc(1, sizeof(dcrf_backend_compat)));
    if (!compat)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    compat->device = device;
    compat->variables = variables;
    compat->labels = labels;
    compat->stride = padded_channels(labels);
    device_hold(device);
    const dcrf_status status = take(compat, error);
    if (status < 0) {
        compat_free(compat);
        return status;
    }
    *out = compat;
    return DCRF_OK;
}

/* ---- unary energies ------------------------------------------------------------------------- */

static dcrf_status compat_set_unary(dcrf_backend_compat *compat,
                                    const struct dcrf_backend_places *unary, float largest,
                                    dcrf_error *error) {
    dcrf_backend_device *device = compat->device;
    const device_turn turn(device);
    scratch<float> rows(device);
    bool are_finite = true;
    TRY(device_enter(device, error));
    TRY(rows.take(compat->variables * compat->stride, WHAT, error));
    TRY(load(compat, unary, largest, rows, &are_finite, error));
    if (!are_finite)
        return fail(error, DCRF_ERROR_NOT_FINITE,
                    "the unary array holds a value that is not finite");
    device_release(device, compat->unary);
    compat->it->unary = compat->unary = rows.keep();
    return DCRF_OK;
}

static dcrf_status compat_get_unary(dcrf_backend_compat *compat, float *planes, dcrf_error *error) {
    const device_turn turn(compat->device);
    TRY(device_enter(compat->device, error));
    return store(compat, compat->unary, 0, planes, error);
}

/* ---- updates -------------------------------------------------------------------------------- */

/* Call the callback, if any, after an update. */
static dcrf_status tell(dcrf_backend_compat *compat, const struct dcrf_backend_compat_run *run,
                        size_t updates, dcrf_error *error) {
    if (!run->after)
        return DCRF_OK;
    TRY(check(cudaStreamSynchronize(compat->device->stream), WHAT, error));
    return run->after(run->user, updates) != 0 ? DCRF_STOP_CANCELLED : DCRF_OK;
}

/* Subnormal numbers become zeros, as on the CPU. */
static dcrf_status compat_run(dcrf_backend_compat *compat,
                              const struct dcrf_backend_compat_run *run, dcrf_error *error) {
    const device_turn turn(compat->device);
    const struct dcrf_backend_places from = planes_of(compat, run->from);
    const struct dcrf_backend_update plain = {0, 1};
    bool are_finite = true;
    dcrf_status status = device_enter(compat->device, error);
    if (status == DCRF_OK)
        status = run->from ? load(compat, &from, FLT_MAX, compat->it->y, &are_finite, error)
                           : mean_field_start(compat->it, nullptr, 1, nullptr, error);
    if (status == DCRF_OK && !are_finite)
        status = fail(error, DCRF_ERROR_NOT_FINITE, "Q holds a value that is not finite");
    for (size_t k = 0; k < run->updates && status == DCRF_OK; k++) {
        status = mean_field_step(compat->it, &plain, nullptr, error);
        if (status == DCRF_OK)
            status = tell(compat, run, k + 1, error);
    }
    if (status < 0)
        return status;
    const dcrf_status stored = store(compat, compat->it->y, FLT_MIN, run->to, error);
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

/* densecrf/divergence.c: sum q (ln max(q, 1e-20) + unary + message), one thread per variable. */
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
    const struct dcrf_backend_places planes = planes_of(compat, q);
    bool are_finite = true;
    struct objective o = {compat->variables,
                          (uint32_t)compat->labels,
                          (uint32_t)(compat->stride / 4),
                          reinterpret_cast<const float4 *>(compat->it->y),
                          reinterpret_cast<const float4 *>(compat->unary),
                          {},
                          compat->partial};
    TRY(device_enter(device, error));
    TRY(load(compat, &planes, FLT_MAX, compat->it->y, &are_finite, error));
    TRY(field_send(&compat->it->kernels, compat->it->y, &o.message, error));
    if (!are_finite) {
        *divergence = NAN;
        return DCRF_OK;
    }
    sum_objective<<<blocks, THREADS, 0, device->stream>>>(o);
    add_block_sums<<<1, THREADS, 0, device->stream>>>(compat->partial, blocks,
                                                      compat->partial + blocks);
    TRY(check(cudaGetLastError(), WHAT, error));
    return device_download(device, divergence, compat->partial + blocks, sizeof *divergence, error);
}

/* ---- methods -------------------------------------------------------------------------------- */

static dcrf_status compat_operator_new(dcrf_operator **out, dcrf_backend_device *device,
                                       const struct dcrf_features *features, bool has_origin,
                                       dcrf_densecrf_normalization normalization,
                                       dcrf_error *error) {
    struct device_operator *op = nullptr;
    *out = nullptr;
    TRY(device_enter(device, error));
    TRY(lattice_new_compatible(&op, device, features, has_origin, normalization, error));
    *out = &op->base;
    return DCRF_OK;
}

const struct dcrf_backend_compat_methods compat_methods = {
    compat_operator_new, compat_make,        compat_free, compat_set_unary,
    compat_get_unary,    compat_set_kernels, compat_run,  compat_divergence};
