/* What a labelling costs under one kernel,
 *
 *   sum_ab K_ab [x_a != x_b] = sum_a sum_{j != x_a} (K Y)_aj,   Y_bj = [x_b = j],
 *
 * without a block of the host: the labels go to the device and one number comes back. Labels that
 * do not occur are left out, the others are taken SOME at a time. */
#include "cuda/sums.cuh"

#include <cub/block/block_scan.cuh>
#include <new>
#include <vector>

#define SOME 32
#define WHAT "the energy of a labelling"

/* ---- labels that occur ---------------------------------------------------------------------- */

#define ALL_LABELS (1u << 16)
#define LIST_THREADS 1024

static __global__ void mark_labels(const uint16_t *labels, size_t variables, uint8_t *occurs) {
    const size_t a = this_thread();
    if (a < variables && !occurs[labels[a]])
        occurs[labels[a]] = 1; /* by whomever: it is the same */
}

/* One block: the place of every label that occurs among them, and how many do. */
static __global__ void list_labels(const uint8_t *occurs, uint16_t *place_of, uint32_t *count) {
    typedef cub::BlockScan<uint32_t, LIST_THREADS> scan;
    __shared__ typename scan::TempStorage storage;
    constexpr uint32_t EACH = ALL_LABELS / LIST_THREADS;
    const uint32_t begin = threadIdx.x * EACH;
    uint32_t mine = 0, place, all;
    for (uint32_t i = begin; i < begin + EACH; i++)
        mine += occurs[i];
    scan(storage).ExclusiveSum(mine, place, all);
    for (uint32_t i = begin; i < begin + EACH; i++)
        if (occurs[i])
            place_of[i] = (uint16_t)place++;
    if (threadIdx.x == 0)
        *count = all;
}

static __global__ void find_places(uint16_t *labels, const uint16_t *place_of, size_t variables) {
    const size_t a = this_thread();
    if (a < variables)
        labels[a] = place_of[labels[a]];
}

/* The same on the host. */
static size_t list_labels_here(const uint16_t *labels, size_t variables,
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

/* ---- in float ------------------------------------------------------------------------------- */

/* Rows of SOME floats: ones at the places first .. first + SOME - 1. */
static __global__ void make_indicators(const uint16_t *place, size_t variables, uint32_t first,
                                       float *block) {
    const size_t i = this_thread();
    if (i < variables * SOME)
        block[i] = place[i / SOME] == first + i % SOME;
}

/* The sum over the other labels. */
static __global__ void sum_others(const uint16_t *place, const float *block, size_t variables,
                                  uint32_t first, uint32_t count, double *partial) {
    const size_t i = this_thread();
    const uint32_t column = (uint32_t)(i % SOME);
    double sum[1] = {0};
    if (i < variables * SOME && column < count && place[i / SOME] != first + column)
        sum[0] = (double)block[i];
    write_block_sums<1, THREADS>(sum, partial);
}

struct disagreement {
    dcrf_backend_device *device;
    uint16_t *place; /* of the variables' labels among those that occur */
    uint16_t *place_of;
    uint8_t *occurs;
    uint32_t *count;
    float *indicators, *filtered;
    double *partial, *sum;
    size_t blocks;
};

static dcrf_status take_memory(struct disagreement *d, size_t variables, dcrf_error *error) {
    dcrf_status status = device_array(d->device, &d->place, variables, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(d->device, &d->place_of, ALL_LABELS, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(d->device, &d->occurs, ALL_LABELS, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(d->device, &d->count, 1, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(d->device, &d->indicators, variables * SOME, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(d->device, &d->filtered, variables * SOME, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(d->device, &d->partial, d->blocks + 1, WHAT, error);
    d->sum = d->partial + d->blocks;
    return status;
}

static dcrf_status sum_some(struct device_operator *op, const struct disagreement *d, size_t first,
                            size_t count, double *sum, dcrf_error *error) {
    const size_t n = op->base.variables;
    cudaStream_t stream = d->device->stream;
    make_indicators<<<(unsigned)d->blocks, THREADS, 0, stream>>>(d->place, n, (uint32_t)first,
                                                                 d->indicators);
    const struct dcrf_application application = {
        DCRF_SYMMETRIC, d->indicators, d->filtered, count, SOME, 1, false};
    dcrf_status status = op->apply_on_device(op, &application, error);
    if (status < 0)
        return status;
    sum_others<<<(unsigned)d->blocks, THREADS, 0, stream>>>(
        d->place, d->filtered, n, (uint32_t)first, (uint32_t)count, d->partial);
    add_block_sums<<<1, THREADS, 0, stream>>>(d->partial, d->blocks, d->sum);
    status = check(cudaGetLastError(), WHAT, error);
    double some = 0;
    if (status == DCRF_OK)
        status = device_download(d->device, &some, d->sum, sizeof some, error);
    *sum += some;
    return status;
}

/* d->place from the labels, and how many there are. */
static dcrf_status place_labels(const struct disagreement *d, const uint16_t *labels,
                                size_t variables, uint32_t *count, dcrf_error *error) {
    cudaStream_t stream = d->device->stream;
    dcrf_status status =
        device_upload(d->device, d->place, labels, variables * sizeof *labels, error);
    if (status == DCRF_OK)
        status = check(cudaMemsetAsync(d->occurs, 0, ALL_LABELS, stream), WHAT, error);
    if (status < 0)
        return status;
    mark_labels<<<blocks_for(variables), THREADS, 0, stream>>>(d->place, variables, d->occurs);
    list_labels<<<1, LIST_THREADS, 0, stream>>>(d->occurs, d->place_of, d->count);
    find_places<<<blocks_for(variables), THREADS, 0, stream>>>(d->place, d->place_of, variables);
    status = check(cudaGetLastError(), WHAT, error);
    return status < 0 ? status : device_download(d->device, count, d->count, sizeof *count, error);
}

static dcrf_status sum_in_float(struct device_operator *op, const uint16_t *labels, double *sum,
                                dcrf_error *error) {
    const size_t n = op->base.variables;
    struct disagreement d = {};
    uint32_t count = 0;
    d.device = op->device;
    d.blocks = blocks_for(n * SOME);
    dcrf_status status = device_enter(op->device, error);
    if (status == DCRF_OK)
        status = take_memory(&d, n, error);
    if (status == DCRF_OK)
        status = place_labels(&d, labels, n, &count, error);
    for (size_t first = 0; first < count && status == DCRF_OK; first += SOME)
        status = sum_some(op, &d, first, count - first < SOME ? count - first : SOME, sum, error);
    for (void *memory : {(void *)d.place, (void *)d.place_of, (void *)d.occurs, (void *)d.count,
                         (void *)d.indicators, (void *)d.filtered, (void *)d.partial})
        device_release(d.device, memory);
    return status;
}

/* ---- in double ------------------------------------------------------------------------------ */

static dcrf_status sum_in_double(struct device_operator *op, const uint16_t *labels, double *sum,
                                 dcrf_error *error) {
    const size_t n = op->base.variables, most = 8;
    std::vector<uint16_t> place_of;
    const size_t count = list_labels_here(labels, n, place_of);
    std::vector<double> in(n * most), out(n * most);
    dcrf_status status = DCRF_OK;
    for (size_t first = 0; first < count && status == DCRF_OK; first += most) {
        const size_t columns = count - first < most ? count - first : most;
        for (size_t i = 0; i < n * columns; i++)
            in[i] = place_of[labels[i / columns]] == first + i % columns;
        status = op->base.methods->apply_double(&op->base, nullptr, in.data(), out.data(), columns,
                                                error);
        for (size_t i = 0; i < n * columns && status == DCRF_OK; i++)
            if (place_of[labels[i / columns]] != first + i % columns)
                *sum += out[i];
    }
    return status;
}

dcrf_status operator_disagreement(const dcrf_operator *base, dcrf_workspace *workspace,
                                  const uint16_t *labels, bool in_double, double *sum,
                                  dcrf_error *error) {
    (void)workspace;
    struct device_operator *op = (struct device_operator *)base;
    const device_turn turn(op->device);
    *sum = 0;
    try {
        return in_double ? sum_in_double(op, labels, sum, error)
                         : sum_in_float(op, labels, sum, error);
    } catch (const std::bad_alloc &) {
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    }
}
