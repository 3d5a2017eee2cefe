/* The moves of round/ on a device: labellings and their fields stay on the device; energies and
 * tables go to the host, which decides.
 *
 * The field B of a labelling x (energy/coupling.h) is one filter application: with one channel per
 * label that occurs for Potts kernels, else with one per label. */
#include "backend/cuda/moves.cuh"

#include "backend/cuda/sums.cuh"

#include <cstdlib>
#include <cstring>
#include <vector>

#define WHAT "moves"
/* Threads per row. */
#define LANES 8
/* Tables of up to FEW_CLASSES labels are summed in shared memory, larger ones in a buffer for all
 * blocks of at most MOST_TABLE_DOUBLES doubles. There are no tables for more than MOST_CLASSES
 * labels (round/). */
#define FEW_CLASSES 48
#define MOST_CLASSES 256
#define MOST_TABLE_DOUBLES ((size_t)1 << 23)
/* The least number of rows per block of the tables, and the rows read at once. */
#define TABLE_ROWS 128
#define ROWS_AT_ONCE 4

/* ---- memory --------------------------------------------------------------------------------- */

static size_t table_doubles(const dcrf_backend_moves *moves) {
    return 2 * moves->labels * moves->labels;
}

static size_t table_blocks(const dcrf_backend_moves *moves) {
    return (moves->variables + moves->table_rows - 1) / moves->table_rows;
}

static void moves_free(dcrf_backend_moves *moves) {
    if (!moves)
        return;
    dcrf_backend_device *device = moves->device;
    cudaSetDevice((int)device->index);
    void *const held[] = {moves->unary,         moves->indicator,    moves->current.labels,
                          moves->current.field, moves->trial.labels, moves->trial.field,
                          moves->gain,          moves->target,       moves->map,
                          moves->partial,       moves->blocks_done,  moves->answer,
                          moves->table_partial, moves->tables,       moves->sizes,
                          moves->states,        moves->best};
    for (void *memory : held)
        device_release(device, memory);
    device_cliques_release(&moves->cliques);
    message_kernels_release(&moves->kernels);
    free(moves);
    device_drop(device);
}

static dcrf_status take_tables(dcrf_backend_moves *moves, dcrf_error *error) {
    const size_t n = moves->variables, doubles = table_doubles(moves);
    moves->table_rows = TABLE_ROWS;
    const size_t most_blocks = MOST_TABLE_DOUBLES / doubles;
    if (table_blocks(moves) > most_blocks)
        moves->table_rows = (n + most_blocks - 1) / most_blocks;
    TRY(device_array(moves->device, &moves->table_partial, table_blocks(moves) * doubles, WHAT,
                     error));
    TRY(device_array(moves->device, &moves->tables, doubles, WHAT, error));
    return device_array(moves->device, &moves->sizes, moves->labels, WHAT, error);
}

static dcrf_status take_memory(dcrf_backend_moves *moves, dcrf_error *error) {
    dcrf_backend_device *device = moves->device;
    const size_t n = moves->variables, floats = n * moves->stride;
    for (float **block :
         {&moves->unary, &moves->indicator, &moves->current.field, &moves->trial.field})
        TRY(device_array(device, block, floats, WHAT, error));
    TRY(device_array(device, &moves->gain, n, WHAT, error));
    for (uint16_t **vector : {&moves->current.labels, &moves->trial.labels, &moves->target})
        TRY(device_array(device, vector, n, WHAT, error));
    TRY(device_array(device, &moves->map, moves->labels, WHAT, error));
    /* LANES threads per row, a warp per clique */
    TRY(device_array(device, &moves->partial,
                     blocks_for(n * LANES) + blocks_for(moves->cliques.count * SUMS_WARP), WHAT,
                     error));
    TRY(device_zeros(device, &moves->blocks_done, 1, WHAT, error));
    TRY(device_zeros(device, &moves->answer, 1, WHAT, error)); /* always downloaded whole */
    if (moves->cliques.count > 0)
        TRY(device_array(device, &moves->states, moves->cliques.count, WHAT, error));
    TRY(device_array(device, &moves->best, 1, WHAT, error));
    const bool is_potts = moves->kernels.groups[0].is_potts;
    return is_potts && moves->labels <= MOST_CLASSES ? take_tables(moves, error) : DCRF_OK;
}

static dcrf_status take(dcrf_backend_moves *moves, const struct dcrf_backend_model *model,
                        dcrf_error *error) {
    dcrf_backend_device *device = moves->device;
    TRY(message_kernels_take(&moves->kernels, device, model, false, error));
    if (model->cliques)
        TRY(device_cliques_take(&moves->cliques, device, model->variables, model->labels,
                                model->stride, model->cliques, error));
    TRY(take_memory(moves, error));
    return device_upload(device, moves->unary, model->unary,
                         model->variables * model->stride * sizeof(float), error);
}

static dcrf_status moves_make(dcrf_backend_moves **out, dcrf_backend_device *device,
                              const struct dcrf_backend_model *model, dcrf_error *error) {
    *out = nullptr;
    if (model->labels > MOVES_MOST_LABELS || model->variables > UINT32_MAX)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "moves with more than %d labels are not on this device yet", MOVES_MOST_LABELS);
    TRY(device_enter(device, error));
    dcrf_backend_moves *moves =
        static_cast<dcrf_backend_moves *>(calloc(1, sizeof(dcrf_backend_moves)));
    if (!moves)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    moves->device = device;
    device_hold(device);
    moves->variables = model->variables;
    moves->labels = model->labels;
    moves->stride = model->stride;
    moves->same_label_factor = model->same_label_factor;
    moves->all_factor = model->all_factor;
    const dcrf_status status = take(moves, model, error);
    if (status < 0) {
        moves_free(moves);
        return status;
    }
    *out = moves;
    return DCRF_OK;
}

dcrf_status moves_read_answer(dcrf_backend_moves *moves, struct moves_answer *answer,
                              dcrf_error *error) {
    static_assert(sizeof *answer <= DEVICE_FEW * sizeof *moves->device->few, "few is enough");
    cudaStream_t stream = moves->device->stream;
    TRY(check(cudaMemcpyAsync(moves->device->few, moves->answer, sizeof *answer,
                              cudaMemcpyDeviceToHost, stream),
              WHAT, error));
    TRY(check(cudaStreamSynchronize(stream), WHAT, error));
    memcpy(answer, moves->device->few, sizeof *answer);
    return DCRF_OK;
}

/* ---- field and energy ----------------------------------------------------------------------- */

/* The channels of the labels that occur; `count` for the others. */
struct channels {
    uint32_t count, stride;
    uint16_t of[MOVES_MOST_LABELS];
};

static void find_channels(const dcrf_backend_moves *moves, const struct labelling *x,
                          struct channels *channels) {
    const bool is_potts = moves->kernels.groups[0].is_potts;
    channels->count = 0;
    for (size_t i = 0; i < moves->labels; i++)
        channels->count += !is_potts || x->occurs[i];
    uint32_t next = 0;
    for (size_t i = 0; i < moves->labels; i++)
        channels->of[i] = (uint16_t)(!is_potts || x->occurs[i] ? next++ : channels->count);
    channels->stride = (uint32_t)padded_channels(channels->count);
}

static __global__ void fill_indicator(const uint16_t *labels, size_t variables,
                                      struct channels channels, float *indicator) {
    const size_t i = this_thread();
    if (i < variables * channels.stride)
        indicator[i] = channels.of[labels[i / channels.stride]] == i % channels.stride;
}

/* The parts of the field. */
struct field_sum {
    const float *one, *other; /* other: NULL if there is only one part */
    const float *diagonal;    /* to subtract from them; NULL: none */
    float *field;
    float all_factor;
    double *partial, *energy;
    unsigned *blocks_done;
};

/* The field and the energy of the labelling: the unaries plus, for each variable, the field of its
 * own label and of all labels, with their factors. LANES threads per row. */
static __global__ void finish_field(struct move_rows r, struct channels channels,
                                    struct field_sum f) {
    const size_t a = this_thread() / LANES;
    double mine[1] = {0}, total[1];
    if (a < r.variables) {
        const uint32_t own = r.own[a];
        for (uint32_t i = threadIdx.x % LANES; i < r.labels; i += LANES) {
            const size_t at = a * r.stride + i, from = a * channels.stride + channels.of[i];
            const float factor = i == own ? f.all_factor + r.same_label_factor : f.all_factor;
            float field = 0;
            if (channels.of[i] < channels.count)
                field = f.other ? f.one[from] + f.other[from] : f.one[from];
            if (i == own && f.diagonal)
                field -= f.diagonal[a];
            f.field[at] = field;
            mine[0] += (i == own ? (double)r.unary[at] : 0) + (double)factor * (double)field;
        }
    }
    if (sum_of_launch<1, THREADS>(mine, f.partial, f.blocks_done, total) && threadIdx.x == 0)
        *f.energy = total[0];
}

static dcrf_status find_field(dcrf_backend_moves *moves, const struct labelling *x, double *energy,
                              dcrf_error *error) {
    const size_t n = moves->variables;
    cudaStream_t stream = moves->device->stream;
    struct channels channels;
    struct moves_answer answer;
    struct field_parts parts = {};
    find_channels(moves, x, &channels);
    fill_indicator<<<blocks_for(n * channels.stride), THREADS, 0, stream>>>(x->labels, n, channels,
                                                                            moves->indicator);
    struct field_sum f = {moves->kernels.messages[0],
                          moves->kernels.messages[1],
                          moves->kernels.groups[0].diagonal,
                          x->field,
                          moves->all_factor,
                          moves->partial,
                          &moves->answer->energy,
                          moves->blocks_done};
    if (moves->kernels.groups[0].is_potts) {
        TRY(messages_send(&moves->kernels, moves->indicator, channels.count, channels.stride,
                          error));
    } else {
        TRY(field_send(&moves->kernels, moves->indicator, &parts, error));
        f.other = nullptr;
        f.diagonal = nullptr;
    }
    finish_field<<<blocks_for(n * LANES), THREADS, 0, stream>>>(move_rows_of(moves, x), channels,
                                                                f);
    TRY(check(cudaGetLastError(), WHAT, error));
    if (moves->cliques.count > 0)
        TRY(moves_clique_cost(moves, x->labels, error));
    TRY(moves_read_answer(moves, &answer, error));
    *energy = answer.energy + (moves->cliques.count > 0 ? answer.clique_cost : 0);
    return DCRF_OK;
}

static dcrf_status moves_load(dcrf_backend_moves *moves, const uint16_t *labels, double *energy,
                              dcrf_error *error) {
    struct labelling *current = &moves->current;
    memset(current->occurs, 0, sizeof current->occurs);
    for (size_t a = 0; a < moves->variables; a++)
        current->occurs[labels[a]] = true;
    TRY(device_enter(moves->device, error));
    TRY(device_upload(moves->device, current->labels, labels, moves->variables * sizeof *labels,
                      error));
    return find_field(moves, current, energy, error);
}

static dcrf_status moves_evaluate(dcrf_backend_moves *moves, double *energy, dcrf_error *error) {
    TRY(device_enter(moves->device, error));
    return find_field(moves, &moves->trial, energy, error);
}

static void moves_accept(dcrf_backend_moves *moves) {
    const struct labelling better = moves->trial;
    moves->trial = moves->current;
    moves->current = better;
}

static dcrf_status moves_read(dcrf_backend_moves *moves, uint16_t *labels, dcrf_error *error) {
    TRY(device_enter(moves->device, error));
    return device_download(moves->device, labels, moves->current.labels,
                           moves->variables * sizeof *labels, error);
}

/* ---- merges --------------------------------------------------------------------------------- */

struct table_sums {
    struct move_rows rows;
    size_t rows_per_block;
    bool is_shared;
    double *partial;
    uint32_t *sizes;
};

/* A thread has some columns of both tables and adds the rows of its block in order; columns are
 * independent, so no synchronization is needed. */
static __global__ void sum_tables(struct table_sums t) {
    extern __shared__ double shared[];
    __shared__ uint32_t size[MOST_CLASSES];
    const struct move_rows &r = t.rows;
    const uint32_t entries = r.labels * r.labels;
    double *out = t.partial + (size_t)blockIdx.x * 2 * entries;
    double *tables = t.is_shared ? shared : out;
    const size_t begin = blockIdx.x * t.rows_per_block;
    const size_t end = min(begin + t.rows_per_block, r.variables);
    for (uint32_t i = threadIdx.x; i < r.labels; i += blockDim.x)
        size[i] = 0;
    __syncthreads();
    for (uint32_t column = threadIdx.x; column < r.labels; column += blockDim.x) {
        for (uint32_t i = column; i < 2 * entries; i += r.labels)
            tables[i] = 0;
        for (size_t first = begin; first < end; first += ROWS_AT_ONCE) {
            uint32_t own[ROWS_AT_ONCE];
            float unary[ROWS_AT_ONCE], field[ROWS_AT_ONCE];
#pragma unroll
            for (int k = 0; k < ROWS_AT_ONCE; k++) {
                const size_t a = first + k < end ? first + k : end - 1;
                own[k] = r.own[a];
                unary[k] = r.unary[a * r.stride + column];
                field[k] = r.field[a * r.stride + column];
            }
#pragma unroll
            for (int k = 0; k < ROWS_AT_ONCE; k++)
                if (first + k < end) {
                    tables[own[k] * r.labels + column] += (double)unary[k];
                    tables[entries + own[k] * r.labels + column] += (double)field[k];
                    if (column == 0)
                        size[own[k]]++;
                }
        }
        if (t.is_shared)
            for (uint32_t i = column; i < 2 * entries; i += r.labels)
                out[i] = tables[i];
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < r.labels; i += blockDim.x)
        if (size[i] > 0)
            atomicAdd(&t.sizes[i], size[i]);
}

/* A block adds 32 entries; each of its warps takes some of the partial tables. */
#define TABLE_WARPS (THREADS / SUMS_WARP)

static __global__ void add_tables(const double *partial, size_t blocks, uint32_t entries,
                                  double *tables) {
    __shared__ double sums[TABLE_WARPS][SUMS_WARP];
    const uint32_t lane = threadIdx.x % SUMS_WARP, warp = threadIdx.x / SUMS_WARP;
    const uint32_t i = blockIdx.x * SUMS_WARP + lane;
    double sum = 0;
    for (size_t b = warp; b < blocks && i < entries; b += TABLE_WARPS)
        sum += partial[b * entries + i];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || i >= entries)
        return;
    for (int w = 1; w < TABLE_WARPS; w++)
        sum += sums[w][lane];
    tables[i] = sum;
}

static dcrf_status moves_tables(dcrf_backend_moves *moves, double *unary, double *mass,
                                size_t *sizes, dcrf_error *error) {
    const size_t entries = moves->labels * moves->labels, blocks = table_blocks(moves);
    const bool is_shared = moves->labels <= FEW_CLASSES;
    cudaStream_t stream = moves->device->stream;
    std::vector<double> both(2 * entries);
    std::vector<uint32_t> counts(moves->labels);
    TRY(device_enter(moves->device, error));
    TRY(check(cudaMemsetAsync(moves->sizes, 0, moves->labels * sizeof(uint32_t), stream), WHAT,
              error));
    const struct table_sums t = {move_rows_of(moves, &moves->current), moves->table_rows, is_shared,
                                 moves->table_partial, moves->sizes};
    const unsigned threads = is_shared ? FEW_CLASSES : MOST_CLASSES;
    sum_tables<<<(unsigned)blocks, threads, is_shared ? 2 * entries * sizeof(double) : 0, stream>>>(
        t);
    add_tables<<<(unsigned)((2 * entries + SUMS_WARP - 1) / SUMS_WARP), THREADS, 0, stream>>>(
        moves->table_partial, blocks, (uint32_t)(2 * entries), moves->tables);
    TRY(check(cudaGetLastError(), WHAT, error));
    TRY(device_download(moves->device, both.data(), moves->tables, both.size() * sizeof(double),
                        error));
    TRY(device_download(moves->device, counts.data(), moves->sizes,
                        counts.size() * sizeof(uint32_t), error));
    for (size_t i = 0; i < entries; i++) {
        unary[i] = both[i];
        mass[i] = both[entries + i];
    }
    for (size_t i = 0; i < moves->labels; i++)
        sizes[i] = counts[i];
    return DCRF_OK;
}

static __global__ void replace_labels(const uint16_t *from, const uint16_t *map, size_t variables,
                                      uint16_t *to) {
    const size_t a = this_thread();
    if (a < variables)
        to[a] = map[from[a]];
}

static dcrf_status moves_relabel(dcrf_backend_moves *moves, const uint16_t *map,
                                 dcrf_error *error) {
    TRY(device_enter(moves->device, error));
    TRY(device_upload(moves->device, moves->map, map, moves->labels * sizeof *map, error));
    memset(moves->trial.occurs, 0, sizeof moves->trial.occurs);
    for (size_t i = 0; i < moves->labels; i++)
        if (moves->current.occurs[i])
            moves->trial.occurs[map[i]] = true;
    replace_labels<<<blocks_for(moves->variables), THREADS, 0, moves->device->stream>>>(
        moves->current.labels, moves->map, moves->variables, moves->trial.labels);
    return check(cudaGetLastError(), WHAT, error);
}

const struct dcrf_backend_moves_methods moves_methods = {
    moves_make,       moves_free,   moves_load,        moves_read,     moves_tables, moves_relabel,
    moves_find_gains, moves_change, moves_change_best, moves_evaluate, moves_accept,
};
