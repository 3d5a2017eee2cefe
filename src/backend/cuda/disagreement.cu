/* The pairwise cost of a labelling under some kernels,
 *
 *   sum_ab K_ab d(x_a, x_b) = sum_a sum_j d(x_a, j) (K Y)_aj,   Y_bj = [x_b = j],   d(j, j) = 0,
 *
 * without a block on the host: the labels go to the device and one number per kernel comes back.
 * Labels that do not occur are skipped, the others are processed SOME at a time. The first kernel
 * is filtered concurrently with the others. */
#include "backend/cuda/sums.cuh"

#include <new>
#include <vector>

#define SOME 32
#define WHAT "the energy of a labelling"

/* ---- in float ------------------------------------------------------------------------------- */

struct disagreement {
    dcrf_backend_device *device;
    size_t variables, place_count;
    const uint16_t *labels;
    scratch<uint16_t> own_labels, place_of; /* own_labels: none if they are the caller's */
    scratch<float> indicators, filtered[2]; /* for the first kernel and for the others */
    scratch<double> partial[2];             /* the same */
    scratch<double> sums;                   /* per pass and kernel */
    scratch<float> between;                 /* the distances of all kernels */
    std::vector<float *> distances; /* per kernel, in `between`: between places; NULL: Potts */

    disagreement(const struct device_operator *op, size_t places, size_t kernels)
        : device(op->device), variables(op->base.variables), place_count(places), labels(nullptr),
          own_labels(device), place_of(device),
          indicators(device), filtered{scratch<float>(device), scratch<float>(device)},
          partial{scratch<double>(device), scratch<double>(device)}, sums(device), between(device),
          distances(kernels, nullptr) {
    }
};

/* The labels with the places first .. first + count - 1 among those that occur. */
struct some_labels {
    const uint16_t *labels, *place_of;
    size_t variables;
    uint32_t first, count, stride;
};

/* Rows of `stride` floats with a one at the variable's label, if it is among these. */
static __global__ void make_indicators(struct some_labels some, float *block) {
    const size_t i = this_thread();
    if (i < some.variables * some.stride)
        block[i] = some.place_of[some.labels[i / some.stride]] == some.first + i % some.stride;
}

/* The sum over the labels other than the variable's own, times their distances; NULL: 1. */
static __global__ void sum_others(struct some_labels some, const float *block,
                                  const float *distances, uint32_t places, double *partial) {
    const size_t i = this_thread();
    const uint32_t column = (uint32_t)(i % some.stride);
    double sum[1] = {0};
    if (i < some.variables * some.stride && column < some.count) {
        const uint32_t own = some.place_of[some.labels[i / some.stride]];
        const uint32_t other = some.first + column;
        if (own != other)
            sum[0] = (distances ? (double)distances[own * places + other] : 1) * (double)block[i];
    }
    write_block_sums<1, THREADS>(sum, partial);
}

static dcrf_status take_memory(struct disagreement *d, const uint16_t *place_of, size_t label_count,
                               size_t stride, size_t sum_count, dcrf_error *error) {
    const size_t floats = d->variables * stride;
    TRY(d->indicators.take(floats, WHAT, error));
    for (size_t side = 0; side < 2; side++) {
        TRY(d->filtered[side].take(floats, WHAT, error));
        TRY(d->partial[side].take(blocks_for(floats), WHAT, error));
    }
    TRY(d->sums.take(sum_count, WHAT, error));
    TRY(d->place_of.take(label_count, WHAT, error));
    return device_upload(d->device, d->place_of, place_of, label_count * sizeof *place_of, error);
}

static dcrf_status take_labels(struct disagreement *d, const uint16_t *labels, bool on_device,
                               dcrf_error *error) {
    d->labels = labels;
    if (on_device)
        return DCRF_OK;
    TRY(d->own_labels.take(d->variables, WHAT, error));
    d->labels = d->own_labels;
    return device_upload(d->device, d->own_labels, labels, d->variables * sizeof *labels, error);
}

/* The distances between the labels that occur in `labels`, a host array. */
static dcrf_status take_distances(struct disagreement *d, const float *const *given, size_t count,
                                  const uint16_t *labels, const uint16_t *place_of,
                                  size_t label_count, dcrf_error *error) {
    const size_t places = d->place_count;
    std::vector<uint16_t> label_of(places);
    std::vector<float> between(places * places);
    TRY(d->between.take(count * between.size(), WHAT, error));
    for (size_t a = 0; a < d->variables; a++)
        label_of[place_of[labels[a]]] = labels[a];
    for (size_t k = 0; k < count; k++) {
        if (!given[k])
            continue;
        for (size_t p = 0; p < places * places; p++)
            between[p] = given[k][label_of[p / places] * label_count + label_of[p % places]];
        d->distances[k] = d->between + k * between.size();
        TRY(device_upload(d->device, d->distances[k], between.data(),
                          between.size() * sizeof(float), error));
    }
    return DCRF_OK;
}

/* For one kernel; `side` selects the buffers. */
static dcrf_status sum_kernel(struct device_operator *op, const struct disagreement *d,
                              const struct some_labels &some, int side, const float *distances,
                              double *sum, dcrf_error *error) {
    const unsigned blocks = blocks_for(d->variables * some.stride);
    const struct dcrf_application application = {
        DCRF_SYMMETRIC, d->indicators, d->filtered[side], some.count, some.stride, 1, false};
    TRY(op->apply_on_device(op, &application, error));
    cudaStream_t stream = d->device->stream;
    sum_others<<<blocks, THREADS, 0, stream>>>(some, d->filtered[side], distances,
                                               (uint32_t)d->place_count, d->partial[side]);
    add_block_sums<<<1, THREADS, 0, stream>>>(d->partial[side], blocks, sum);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status sum_some(struct device_operator *const *operators, size_t count,
                            const struct disagreement *d, const struct some_labels &some,
                            double *sums, dcrf_error *error) {
    make_indicators<<<blocks_for(d->variables * some.stride), THREADS, 0, d->device->stream>>>(
        some, d->indicators);
    TRY(check(cudaGetLastError(), WHAT, error));
    TRY(device_beside(
        d->device,
        [&] { return sum_kernel(operators[0], d, some, 0, d->distances[0], sums, error); }, error));
    for (size_t k = 1; k < count; k++)
        TRY(sum_kernel(operators[k], d, some, 1, d->distances[k], sums + k, error));
    return device_join(d->device, error);
}

/* distances: NULL for Potts; otherwise the labels are on the host. */
static dcrf_status sum_in_float(struct device_operator *const *operators,
                                const float *const *distances, size_t count, const uint16_t *labels,
                                bool on_device, const uint16_t *place_of, size_t label_count,
                                size_t place_count, double *sums, dcrf_error *error) {
    struct disagreement d(operators[0], place_count, count);
    const size_t passes = (place_count + SOME - 1) / SOME;
    const size_t stride = padded_channels(place_count < SOME ? place_count : SOME);
    std::vector<double> found(passes * count);
    for (size_t k = 0; k < count; k++)
        sums[k] = 0;
    TRY(device_enter(d.device, error));
    TRY(take_labels(&d, labels, on_device, error));
    TRY(take_memory(&d, place_of, label_count, stride, found.size(), error));
    if (distances)
        TRY(take_distances(&d, distances, count, labels, place_of, label_count, error));
    for (size_t p = 0; p < passes; p++) {
        const size_t first = p * SOME, left = place_count - first;
        const struct some_labels some = {d.labels,
                                         d.place_of,
                                         d.variables,
                                         (uint32_t)first,
                                         (uint32_t)(left < SOME ? left : SOME),
                                         (uint32_t)stride};
        TRY(sum_some(operators, count, &d, some, d.sums + p * count, error));
    }
    TRY(device_download(d.device, found.data(), d.sums, found.size() * sizeof(double), error));
    for (size_t i = 0; i < found.size(); i++)
        sums[i % count] += found[i];
    return DCRF_OK;
}

/* C++ exceptions must not leave the library. */
#define WITHOUT_MEMORY fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT)

dcrf_status disagreements_on_device(struct device_operator *const *operators, size_t count,
                                    const uint16_t *labels, const uint16_t *place_of,
                                    size_t label_count, size_t place_count, double *sums,
                                    dcrf_error *error) {
    const device_turn turn(operators[0]->device);
    try {
        return sum_in_float(operators, nullptr, count, labels, true, place_of, label_count,
                            place_count, sums, error);
    } catch (const std::bad_alloc &) {
        return WITHOUT_MEMORY;
    }
}

dcrf_status operators_disagreements(dcrf_operator *const *operators, const float *const *distances,
                                    size_t count, const uint16_t *labels, const uint16_t *place_of,
                                    size_t label_count, size_t place_count, double *sums,
                                    dcrf_error *error) {
    const device_turn turn(reinterpret_cast<struct device_operator *>(operators[0])->device);
    try {
        std::vector<struct device_operator *> handles;
        for (size_t k = 0; k < count; k++)
            handles.push_back(reinterpret_cast<struct device_operator *>(operators[k]));
        return sum_in_float(handles.data(), distances, count, labels, false, place_of, label_count,
                            place_count, sums, error);
    } catch (const std::bad_alloc &) {
        return WITHOUT_MEMORY;
    }
}

/* ---- one kernel ----------------------------------------------------------------------------- */

#define ALL_LABELS (1u << 16)

static size_t list_labels(const uint16_t *labels, size_t variables,
                          std::vector<uint16_t> &place_of) {
    size_t count = 0;
    place_of.assign(ALL_LABELS, 0);
    for (size_t a = 0; a < variables; a++)
        place_of[labels[a]] = 1;
    for (uint16_t &at : place_of)
        if (at)
            at = (uint16_t)count++;
    return count;
}

static dcrf_status sum_in_double(struct device_operator *op, const uint16_t *labels,
                                 const std::vector<uint16_t> &place_of, size_t count, double *sum,
                                 dcrf_error *error) {
    const size_t n = op->base.variables, most = 8;
    std::vector<double> in(n * most), out(n * most);
    for (size_t first = 0; first < count; first += most) {
        const size_t columns = count - first < most ? count - first : most;
        for (size_t i = 0; i < n * columns; i++)
            in[i] = place_of[labels[i / columns]] == first + i % columns;
        TRY(op->base.methods->apply_double(&op->base, nullptr, in.data(), out.data(), columns,
                                           error));
        for (size_t i = 0; i < n * columns; i++)
            if (place_of[labels[i / columns]] != first + i % columns)
                *sum += out[i];
    }
    return DCRF_OK;
}

dcrf_status operator_disagreement(const dcrf_operator *base, dcrf_workspace *workspace,
                                  const uint16_t *labels, bool in_double, double *sum,
                                  dcrf_error *error) {
    (void)workspace;
    struct device_operator *op = (struct device_operator *)base;
    const device_turn turn(op->device);
    *sum = 0;
    try {
        std::vector<uint16_t> place_of;
        const size_t count = list_labels(labels, base->variables, place_of);
        return in_double ? sum_in_double(op, labels, place_of, count, sum, error)
                         : sum_in_float(&op, nullptr, 1, labels, false, place_of.data(), ALL_LABELS,
                                        count, sum, error);
    } catch (const std::bad_alloc &) {
        return WITHOUT_MEMORY;
    }
}
