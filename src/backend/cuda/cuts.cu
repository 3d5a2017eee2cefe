#include "backend/cuda/cuts.cuh"

#include "backend/cuda/sums.cuh"

#include <new>
#include <vector>

#define WHAT "a distance between labels"

/* ---- memory --------------------------------------------------------------------------------- */

void device_cuts_release(struct device_cuts *cuts, dcrf_backend_device *device) {
    void *const held[] = {cuts->order,     cuts->offsets, cuts->runs,      cuts->lengths,
                          cuts->first_end, cuts->end_cut, cuts->end_weight};
    for (void *memory : held)
        device_release(device, memory);
    *cuts = {};
}

template <typename T>
static dcrf_status take_copy(dcrf_backend_device *device, T **to, const std::vector<T> &from,
                             dcrf_error *error) {
    TRY(device_array(device, to, from.size() + 1, WHAT, error));
    return device_upload(device, *to, from.data(), from.size() * sizeof(T), error);
}

/* The ends of all runs, by place. */
struct ends {
    std::vector<uint32_t> first;
    std::vector<uint16_t> cut;
    std::vector<double> weight;
};

static struct ends find_ends(const struct dcrf_cuts *from) {
    struct ends ends;
    ends.first.push_back(0);
    for (size_t place = 0; place < from->labels; place++) {
        for (size_t c = 0; c < from->count; c++)
            for (size_t r = from->offsets[c]; r < from->offsets[c + 1]; r++)
                if (from->runs[r].begin == place || from->runs[r].end == place) {
                    ends.cut.push_back((uint16_t)c);
                    ends.weight.push_back(from->runs[r].begin == place ? 2 * from->lengths[c]
                                                                       : -2 * from->lengths[c]);
                }
        ends.first.push_back((uint32_t)ends.cut.size());
    }
    return ends;
}

static dcrf_status take(struct device_cuts *cuts, dcrf_backend_device *device,
                        const struct dcrf_cuts *from, dcrf_error *error) {
    const std::vector<uint16_t> order(from->order, from->order + from->labels);
    const std::vector<uint32_t> offsets(from->offsets, from->offsets + from->count + 1);
    const std::vector<struct dcrf_cut_run> runs(from->runs, from->runs + from->run_count);
    const std::vector<double> lengths(from->lengths, from->lengths + from->count);
    const struct ends ends = find_ends(from);
    cuts->labels = (uint32_t)from->labels;
    cuts->count = (uint32_t)from->count;
    TRY(take_copy(device, &cuts->order, order, error));
    TRY(take_copy(device, &cuts->offsets, offsets, error));
    TRY(take_copy(device, &cuts->runs, runs, error));
    TRY(take_copy(device, &cuts->lengths, lengths, error));
    TRY(take_copy(device, &cuts->first_end, ends.first, error));
    TRY(take_copy(device, &cuts->end_cut, ends.cut, error));
    return take_copy(device, &cuts->end_weight, ends.weight, error);
}

dcrf_status device_cuts_take(struct device_cuts *cuts, dcrf_backend_device *device,
                             const struct dcrf_cuts *from, dcrf_error *error) {
    dcrf_status status;
    *cuts = {};
    try { /* C++ exceptions must not leave the library */
        status = take(cuts, device, from, error);
    } catch (const std::bad_alloc &) {
        status = fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    }
    if (status < 0)
        device_cuts_release(cuts, device);
    return status;
}

/* ---- from labels to cuts -------------------------------------------------------------------- */

/* One warp per variable, with room for labels + 1 sums each. */
static size_t room_for_sums(const struct device_cuts *cuts) {
    return CUTS_WARPS * (cuts->labels + 1) * sizeof(double);
}

extern __shared__ double sums_of_warps[];

static __device__ double *sums_of_this_warp(const struct device_cuts &cuts) {
    return sums_of_warps + threadIdx.x / CUTS_WARP * (cuts.labels + 1);
}

/* sums[k] = the sum of value(label) over the places before k; returns the sum over all. */
template <typename VALUE>
static __device__ double add_prefix(const struct device_cuts &cuts, VALUE value, double *sums) {
    const uint32_t lane = threadIdx.x % CUTS_WARP;
    double carried = 0;
    if (lane == 0)
        sums[0] = 0;
    for (uint32_t begin = 0; begin < cuts.labels; begin += CUTS_WARP) {
        const uint32_t place = begin + lane;
        const bool is_label = place < cuts.labels;
        const double sum = carry_prefix(is_label ? value(cuts.order[place]) : 0, &carried);
        if (is_label)
            sums[place + 1] = sum;
    }
    __syncwarp();
    return carried;
}

static __device__ double sum_runs(const struct device_cuts &cuts, uint32_t cut,
                                  const double *sums) {
    double sum = 0;
    for (uint32_t r = cuts.offsets[cut]; r < cuts.offsets[cut + 1]; r++)
        sum += sums[cuts.runs[r].end] - sums[cuts.runs[r].begin];
    return sum;
}

static __global__ void find_columns(struct device_cuts cuts, size_t variables, const float *y,
                                    uint32_t stride, float *columns, uint32_t columns_stride) {
    const size_t a = this_thread() / CUTS_WARP;
    if (a >= variables)
        return; /* the whole warp */
    double *sums = sums_of_this_warp(cuts);
    const float *row = y + a * stride;
    add_prefix(
        cuts, [row](uint32_t label) { return (double)row[label]; }, sums);
    for (uint32_t c = threadIdx.x % CUTS_WARP; c < columns_stride; c += CUTS_WARP) {
        const float z = c < cuts.count ? (float)sum_runs(cuts, c, sums) : 0;
        columns[a * columns_stride + c] = z > 1 ? 1 : z > 0 ? z : 0;
    }
}

dcrf_status cuts_columns(const struct device_cuts *cuts, dcrf_backend_device *device,
                         size_t variables, const float *y, size_t stride, float *columns,
                         size_t columns_stride, dcrf_error *error) {
    find_columns<<<blocks_for(variables * CUTS_WARP), THREADS, room_for_sums(cuts),
                   device->stream>>>(*cuts, variables, y, (uint32_t)stride, columns,
                                     (uint32_t)columns_stride);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- distances of a message ----------------------------------------------------------------- */

/* sum_c length_c ( [i in S_c] (all - z_c) + [i not in S_c] z_c ), as in dcrf_cuts_apply. The z of a
 * cut is computed again at each of its ends: most cuts have one run. */
static __global__ void add_distances(struct device_cuts cuts, struct cuts_message m) {
    const size_t a = this_thread() / CUTS_WARP;
    const uint32_t lane = threadIdx.x % CUTS_WARP;
    if (a >= m.variables)
        return; /* the whole warp */
    double *sums = sums_of_this_warp(cuts);
    const float *message = m.message + a * m.stride, *in = m.in + a * m.stride;
    const float diagonal = m.diagonal ? m.diagonal[a] : 0;
    const double all = add_prefix(
        cuts,
        [message, in, diagonal](uint32_t label) {
            return (double)(message[label] - diagonal * in[label]);
        },
        sums);
    double carried = 0;
    for (uint32_t c = lane; c < cuts.count; c += CUTS_WARP)
        carried += cuts.lengths[c] * sum_runs(cuts, c, sums);
    carried = sum_of_lanes<CUTS_WARP>(carried);
    for (uint32_t begin = 0; begin < cuts.labels; begin += CUTS_WARP) {
        const uint32_t place = begin + lane;
        double change = 0;
        if (place < cuts.labels)
            for (uint32_t e = cuts.first_end[place]; e < cuts.first_end[place + 1]; e++)
                change += cuts.end_weight[e] * (all / 2 - sum_runs(cuts, cuts.end_cut[e], sums));
        const double sum = carry_prefix(change, &carried);
        if (place < cuts.labels) {
            float *field = m.field + a * m.stride + cuts.order[place];
            *field = m.is_first ? (float)sum : *field + (float)sum;
        }
    }
}

dcrf_status cuts_apply(const struct device_cuts *cuts, dcrf_backend_device *device,
                       const struct cuts_message *message, dcrf_error *error) {
    add_distances<<<blocks_for(message->variables * CUTS_WARP), THREADS, room_for_sums(cuts),
                    device->stream>>>(*cuts, *message);
    return check(cudaGetLastError(), WHAT, error);
}
