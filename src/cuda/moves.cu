/* The moves of round/ on a device: labellings and their fields stay here, energies and tables go to
 * the host, which decides.
 *
 * The field B of a labelling x is sum_m w_m (K_m - diag) [x = i]: one filter application with a
 * channel for every label that occurs. */
#include "cuda/moves.cuh"

#include "cuda/messages.cuh"
#include "cuda/sums.cuh"

#include <cfloat>
#include <cstdlib>
#include <vector>

#define WHAT "moves"
/* Tables of so many labels are in shared memory. */
#define MOST_LABELS 48
/* Threads to a row. */
#define LANES 8
/* Rows that a block sums up for the tables. */
#define TABLE_ROWS 256

struct labelling {
    uint16_t *labels;
    float *field; /* a block */
};

struct dcrf_backend_moves {
    dcrf_backend_device *device;
    size_t variables, labels, stride;
    struct message_kernels kernels;
    float *unary, *indicator;
    struct labelling current, trial;
    float *gain;
    uint16_t *target, *map;
    double *partial, *sums; /* of energies */
    double *table_partial;  /* of the blocks of the tables */
    double *tables;         /* U and T */
    uint32_t *sizes;
    uint32_t *occurs; /* per label */
    uint32_t *changed;
    unsigned long long *best;
};

/* ---- memory --------------------------------------------------------------------------------- */

static size_t table_blocks(const dcrf_backend_moves *moves) {
    return (moves->variables + TABLE_ROWS - 1) / TABLE_ROWS;
}

static void moves_free(dcrf_backend_moves *moves) {
    if (!moves)
        return;
    dcrf_backend_device *device = moves->device;
    cudaSetDevice((int)device->index);
    void *const held[] = {moves->unary,         moves->indicator,    moves->current.labels,
                          moves->current.field, moves->trial.labels, moves->trial.field,
                          moves->gain,          moves->target,       moves->map,
                          moves->partial,       moves->sums,         moves->table_partial,
                          moves->tables,        moves->sizes,        moves->occurs,
                          moves->changed,       moves->best};
    for (void *memory : held)
        device_release(device, memory);
    message_kernels_release(&moves->kernels);
    free(moves);
    device_drop(device);
}

static dcrf_status take_memory(dcrf_backend_moves *moves, dcrf_error *error) {
    dcrf_backend_device *device = moves->device;
    const size_t n = moves->variables, floats = n * moves->stride;
    const size_t table = 2 * moves->labels * moves->labels;
    dcrf_status status = DCRF_OK;
    for (float **block :
         {&moves->unary, &moves->indicator, &moves->current.field, &moves->trial.field})
        if (status == DCRF_OK)
            status = device_array(device, block, floats, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &moves->gain, n, WHAT, error);
    for (uint16_t **vector : {&moves->current.labels, &moves->trial.labels, &moves->target})
        if (status == DCRF_OK)
            status = device_array(device, vector, n, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &moves->map, moves->labels, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &moves->partial, blocks_for(n * LANES), WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &moves->sums, 1, WHAT, error);
    if (status == DCRF_OK)
        status =
            device_array(device, &moves->table_partial, table_blocks(moves) * table, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &moves->tables, table, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &moves->sizes, moves->labels, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &moves->occurs, moves->labels, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &moves->changed, 1, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(device, &moves->best, 1, WHAT, error);
    return status;
}

static dcrf_status moves_make(dcrf_backend_moves **out, dcrf_backend_device *device,
                              const struct dcrf_backend_model *model, dcrf_error *error) {
    *out = nullptr;
    if (model->labels > MOST_LABELS || model->variables > UINT32_MAX)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "moves with more than %d labels are not on this device yet", MOST_LABELS);
    dcrf_status status = device_enter(device, error);
    if (status < 0)
        return status;
    dcrf_backend_moves *moves =
        static_cast<dcrf_backend_moves *>(calloc(1, sizeof(dcrf_backend_moves)));
    if (!moves)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    moves->device = device;
    device_hold(device);
    moves->variables = model->variables;
    moves->labels = model->labels;
    moves->stride = model->stride;
    status = message_kernels_take(&moves->kernels, device, model, false, error);
    if (status == DCRF_OK)
        status = take_memory(moves, error);
    if (status == DCRF_OK)
        status = device_upload(device, moves->unary, model->unary,
                               model->variables * model->stride * sizeof(float), error);
    if (status < 0) {
        moves_free(moves);
        return status;
    }
    *out = moves;
    return DCRF_OK;
}

/* ---- field and energy ----------------------------------------------------------------------- */

/* The channels of the labels that occur; `count` for the others. */
struct channels {
    uint32_t count, stride;
    uint16_t of[MOST_LABELS];
};

static __global__ void mark_labels(const uint16_t *labels, size_t variables, uint32_t *occurs) {
    const size_t a = this_thread();
    if (a < variables && !occurs[labels[a]])
        occurs[labels[a]] = 1; /* by whomever: it is the same */
}

static dcrf_status find_channels(dcrf_backend_moves *moves, const uint16_t *labels,
                                 struct channels *channels, dcrf_error *error) {
    cudaStream_t stream = moves->device->stream;
    const size_t bytes = moves->labels * sizeof *moves->occurs;
    dcrf_status status = check(cudaMemsetAsync(moves->occurs, 0, bytes, stream), WHAT, error);
    if (status < 0)
        return status;
    mark_labels<<<blocks_for(moves->variables), THREADS, 0, stream>>>(labels, moves->variables,
                                                                      moves->occurs);
    status = check(
        cudaMemcpyAsync(moves->device->few, moves->occurs, bytes, cudaMemcpyDeviceToHost, stream),
        WHAT, error);
    if (status == DCRF_OK)
        status = check(cudaStreamSynchronize(stream), WHAT, error);
    const uint32_t *occurs = reinterpret_cast<const uint32_t *>(moves->device->few);
    channels->count = 0;
    for (size_t i = 0; i < moves->labels && status == DCRF_OK; i++)
        channels->count += occurs[i];
    uint32_t next = 0;
    for (size_t i = 0; i < moves->labels && status == DCRF_OK; i++)
        channels->of[i] = (uint16_t)(occurs[i] ? next++ : channels->count);
    channels->stride = (uint32_t)padded_channels(channels->count);
    return status;
}

static __global__ void fill_indicator(const uint16_t *labels, size_t variables,
                                      struct channels channels, float *indicator) {
    const size_t i = this_thread();
    if (i < variables * channels.stride)
        indicator[i] = channels.of[labels[i / channels.stride]] == i % channels.stride;
}

struct rows {
    size_t variables;
    uint32_t labels, stride;
    const float *unary, *diagonal;
};

static struct rows rows_of(const dcrf_backend_moves *moves) {
    return {moves->variables, (uint32_t)moves->labels, (uint32_t)moves->stride, moves->unary,
            moves->kernels.groups[0].diagonal};
}

/* The messages without the diagonal, and what the labelling costs: its unaries, and for each
 * variable what the other labels have of its field. LANES threads per row. */
static __global__ void finish_field(struct rows r, struct channels channels, const float *one,
                                    const float *other, struct labelling x, double *partial) {
    const size_t a = this_thread() / LANES;
    double sum[1] = {0};
    if (a < r.variables) {
        const uint32_t own = x.labels[a];
        for (uint32_t i = threadIdx.x % LANES; i < r.labels; i += LANES) {
            const size_t at = a * r.stride + i, from = a * channels.stride + channels.of[i];
            float field = 0;
            if (channels.of[i] < channels.count)
                field = other ? one[from] + other[from] : one[from];
            if (i == own)
                field -= r.diagonal[a];
            x.field[at] = field;
            sum[0] += (double)(i == own ? r.unary[at] : field);
        }
    }
    write_block_sums<1, THREADS>(sum, partial);
}

static dcrf_status find_field(dcrf_backend_moves *moves, const struct labelling *x, double *energy,
                              dcrf_error *error) {
    const size_t n = moves->variables;
    cudaStream_t stream = moves->device->stream;
    struct channels channels;
    dcrf_status status = find_channels(moves, x->labels, &channels, error);
    if (status < 0)
        return status;
    fill_indicator<<<blocks_for(n * channels.stride), THREADS, 0, stream>>>(x->labels, n, channels,
                                                                            moves->indicator);
    status =
        messages_send(&moves->kernels, moves->indicator, channels.count, channels.stride, error);
    if (status < 0)
        return status;
    const unsigned blocks = blocks_for(n * LANES);
    finish_field<<<blocks, THREADS, 0, stream>>>(rows_of(moves), channels,
                                                 moves->kernels.messages[0],
                                                 moves->kernels.messages[1], *x, moves->partial);
    add_block_sums<<<1, THREADS, 0, stream>>>(moves->partial, blocks, moves->sums);
    status = check(cudaGetLastError(), WHAT, error);
    if (status == DCRF_OK)
        status = check(cudaMemcpyAsync(moves->device->few, moves->sums, sizeof(double),
                                       cudaMemcpyDeviceToHost, stream),
                       WHAT, error);
    if (status == DCRF_OK)
        status = check(cudaStreamSynchronize(stream), WHAT, error);
    *energy = status == DCRF_OK ? moves->device->few[0] : 0;
    return status;
}

static dcrf_status moves_load(dcrf_backend_moves *moves, const uint16_t *labels, double *energy,
                              dcrf_error *error) {
    dcrf_status status = device_enter(moves->device, error);
    if (status == DCRF_OK)
        status = device_upload(moves->device, moves->current.labels, labels,
                               moves->variables * sizeof *labels, error);
    return status < 0 ? status : find_field(moves, &moves->current, energy, error);
}

static dcrf_status moves_evaluate(dcrf_backend_moves *moves, double *energy, dcrf_error *error) {
    const dcrf_status status = device_enter(moves->device, error);
    return status < 0 ? status : find_field(moves, &moves->trial, energy, error);
}

static void moves_accept(dcrf_backend_moves *moves) {
    const struct labelling better = moves->trial;
    moves->trial = moves->current;
    moves->current = better;
}

static dcrf_status moves_read(dcrf_backend_moves *moves, uint16_t *labels, dcrf_error *error) {
    const dcrf_status status = device_enter(moves->device, error);
    return status < 0 ? status
                      : device_download(moves->device, labels, moves->current.labels,
                                        moves->variables * sizeof *labels, error);
}

/* ---- merges --------------------------------------------------------------------------------- */

/* One thread per column adds up the rows of its block, one after the other. */
static __global__ void sum_tables(struct rows r, struct labelling x, double *partial,
                                  uint32_t *sizes) {
    extern __shared__ double tables[];
    __shared__ uint32_t size[MOST_LABELS];
    const uint32_t entries = r.labels * r.labels, column = threadIdx.x;
    for (uint32_t i = threadIdx.x; i < 2 * entries; i += blockDim.x)
        tables[i] = 0;
    for (uint32_t i = threadIdx.x; i < r.labels; i += blockDim.x)
        size[i] = 0;
    __syncthreads();
    const size_t begin = (size_t)blockIdx.x * TABLE_ROWS;
    const size_t end = min(begin + TABLE_ROWS, r.variables);
    for (size_t a = begin; a < end && column < r.labels; a++) {
        const uint32_t own = x.labels[a];
        tables[own * r.labels + column] += (double)r.unary[a * r.stride + column];
        tables[entries + own * r.labels + column] += (double)x.field[a * r.stride + column];
        if (column == 0)
            size[own]++;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < 2 * entries; i += blockDim.x)
        partial[(size_t)blockIdx.x * 2 * entries + i] = tables[i];
    for (uint32_t i = threadIdx.x; i < r.labels; i += blockDim.x)
        if (size[i] > 0)
            atomicAdd(&sizes[i], size[i]);
}

static __global__ void add_tables(const double *partial, size_t blocks, uint32_t entries,
                                  double *tables) {
    const size_t i = this_thread();
    double sum = 0;
    for (size_t b = 0; b < blocks && i < entries; b++)
        sum += partial[b * entries + i];
    if (i < entries)
        tables[i] = sum;
}

static dcrf_status moves_tables(dcrf_backend_moves *moves, double *unary, double *mass,
                                size_t *sizes, dcrf_error *error) {
    const size_t entries = moves->labels * moves->labels, blocks = table_blocks(moves);
    cudaStream_t stream = moves->device->stream;
    std::vector<double> both(2 * entries);
    std::vector<uint32_t> counts(moves->labels);
    dcrf_status status = device_enter(moves->device, error);
    if (status == DCRF_OK)
        status = check(cudaMemsetAsync(moves->sizes, 0, moves->labels * sizeof(uint32_t), stream),
                       WHAT, error);
    if (status < 0)
        return status;
    sum_tables<<<(unsigned)blocks, MOST_LABELS, 2 * entries * sizeof(double), stream>>>(
        rows_of(moves), moves->current, moves->table_partial, moves->sizes);
    add_tables<<<blocks_for(2 * entries), THREADS, 0, stream>>>(
        moves->table_partial, blocks, (uint32_t)(2 * entries), moves->tables);
    status = check(cudaGetLastError(), WHAT, error);
    if (status == DCRF_OK)
        status = device_download(moves->device, both.data(), moves->tables,
                                 both.size() * sizeof(double), error);
    if (status == DCRF_OK)
        status = device_download(moves->device, counts.data(), moves->sizes,
                                 counts.size() * sizeof(uint32_t), error);
    for (size_t i = 0; i < entries && status == DCRF_OK; i++) {
        unary[i] = both[i];
        mass[i] = both[entries + i];
    }
    for (size_t i = 0; i < moves->labels && status == DCRF_OK; i++)
        sizes[i] = counts[i];
    return status;
}

static __global__ void replace_labels(const uint16_t *from, const uint16_t *map, size_t variables,
                                      uint16_t *to) {
    const size_t a = this_thread();
    if (a < variables)
        to[a] = map[from[a]];
}

static dcrf_status moves_relabel(dcrf_backend_moves *moves, const uint16_t *map,
                                 dcrf_error *error) {
    dcrf_status status = device_enter(moves->device, error);
    if (status == DCRF_OK)
        status = device_upload(moves->device, moves->map, map, moves->labels * sizeof *map, error);
    if (status < 0)
        return status;
    replace_labels<<<blocks_for(moves->variables), THREADS, 0, moves->device->stream>>>(
        moves->current.labels, moves->map, moves->variables, moves->trial.labels);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- single variables ----------------------------------------------------------------------- */

/* LANES threads per row: the cheapest other label, the first of equals, if it is cheaper. */
static __global__ void find_gains(struct rows r, struct labelling x, float *gain,
                                  uint16_t *target) {
    const size_t a = this_thread() / LANES;
    const bool is_there = a < r.variables;
    const uint32_t own = is_there ? x.labels[a] : 0;
    float lowest = FLT_MAX, own_cost = 0;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = threadIdx.x % LANES; is_there && i < r.labels; i += LANES) {
        const size_t at = a * r.stride + i;
        const float cost = r.unary[at] - 2 * x.field[at];
        if (i == own)
            own_cost = cost;
        else if (cost < lowest || best == UINT32_MAX) {
            lowest = cost;
            best = i;
        }
    }
    lowest_of_lanes<LANES>(&lowest, &best);
    own_cost = sum_of_lanes<LANES>(own_cost); /* one thread has it, the others zero */
    if (!is_there || threadIdx.x % LANES > 0)
        return;
    const bool is_better = best != UINT32_MAX && lowest < own_cost;
    gain[a] = is_better ? own_cost - lowest : 0;
    target[a] = (uint16_t)(is_better ? best : own);
}

static dcrf_status moves_find_gains(dcrf_backend_moves *moves, dcrf_error *error) {
    const dcrf_status status = device_enter(moves->device, error);
    if (status < 0)
        return status;
    find_gains<<<blocks_for(moves->variables * LANES), THREADS, 0, moves->device->stream>>>(
        rows_of(moves), moves->current, moves->gain, moves->target);
    return check(cudaGetLastError(), WHAT, error);
}

struct changes {
    size_t variables;
    const uint16_t *current, *target;
    const float *gain;
    uint16_t *trial;
};

static struct changes changes_of(const dcrf_backend_moves *moves) {
    return {moves->variables, moves->current.labels, moves->target, moves->gain,
            moves->trial.labels};
}

static __global__ void change_some(struct changes c, uint64_t salt, uint32_t mask,
                                   uint32_t *changed) {
    const size_t a = this_thread();
    const bool is_changed =
        a < c.variables && c.gain[a] > 0 && (dcrf_backend_scatter(a + salt) & mask) == 0;
    if (a < c.variables)
        c.trial[a] = is_changed ? c.target[a] : c.current[a];
    const int count = __syncthreads_count(is_changed);
    if (threadIdx.x == 0 && count > 0)
        atomicAdd(changed, (uint32_t)count);
}

static dcrf_status moves_change(dcrf_backend_moves *moves, uint64_t salt, uint32_t mask,
                                size_t *changed, dcrf_error *error) {
    cudaStream_t stream = moves->device->stream;
    dcrf_status status = device_enter(moves->device, error);
    if (status == DCRF_OK)
        status =
            check(cudaMemsetAsync(moves->changed, 0, sizeof *moves->changed, stream), WHAT, error);
    if (status < 0)
        return status;
    change_some<<<blocks_for(moves->variables), THREADS, 0, stream>>>(changes_of(moves), salt, mask,
                                                                      moves->changed);
    status = check(cudaGetLastError(), WHAT, error);
    if (status == DCRF_OK)
        status = check(cudaMemcpyAsync(moves->device->few, moves->changed, sizeof *moves->changed,
                                       cudaMemcpyDeviceToHost, stream),
                       WHAT, error);
    if (status == DCRF_OK)
        status = check(cudaStreamSynchronize(stream), WHAT, error);
    *changed = status == DCRF_OK ? *reinterpret_cast<const uint32_t *>(moves->device->few) : 0;
    return status;
}

/* Positive floats are ordered as their bits are; of equal gains the first variable is the largest
 * key. */
static __global__ void find_best(struct changes c, unsigned long long *best) {
    const size_t a = this_thread();
    if (a >= c.variables)
        return;
    c.trial[a] = c.current[a];
    if (c.gain[a] > 0)
        atomicMax(best, (unsigned long long)__float_as_uint(c.gain[a]) << 32 |
                            (0xffffffffu - (uint32_t)a));
}

static __global__ void change_one(struct changes c, const unsigned long long *best) {
    const uint32_t a = 0xffffffffu - (uint32_t)(*best & 0xffffffffu);
    if (a < c.variables)
        c.trial[a] = c.target[a];
}

static dcrf_status moves_change_best(dcrf_backend_moves *moves, dcrf_error *error) {
    cudaStream_t stream = moves->device->stream;
    dcrf_status status = device_enter(moves->device, error);
    if (status == DCRF_OK)
        status = check(cudaMemsetAsync(moves->best, 0, sizeof *moves->best, stream), WHAT, error);
    if (status < 0)
        return status;
    find_best<<<blocks_for(moves->variables), THREADS, 0, stream>>>(changes_of(moves), moves->best);
    change_one<<<1, 1, 0, stream>>>(changes_of(moves), moves->best);
    return check(cudaGetLastError(), WHAT, error);
}

const struct dcrf_backend_moves_methods moves_methods = {
    moves_make,       moves_free,   moves_load,        moves_read,     moves_tables, moves_relabel,
    moves_find_gains, moves_change, moves_change_best, moves_evaluate, moves_accept,
};
