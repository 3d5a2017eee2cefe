/* The dual point of z on a device (backend/cpu/pair_dual.c): the columns of a group of kernels that
 * are alive are packed, filtered by each kernel, and added to the labels that they hold. */
#include "backend/cuda/lp.cuh"

#include <cstdlib>
#include <cstring>

#define WHAT "the LP"

/* ---- columns that are alive ----------------------------------------------------------------- */

struct alive_columns {
    uint32_t count;
    uint16_t column[LP_MOST_LABELS];
    uint16_t place[LP_MOST_LABELS]; /* index of each column in `column`; `count`: not alive */
};

/* The columns of a group: labels, or cuts. */
struct columns {
    const float *values;
    size_t count, stride;
};

static dcrf_status find_largest(dcrf_backend_lp *lp, dcrf_error *error) {
    struct lp_answer answer;
    TRY(lp_find_largest(lp, error));
    TRY(lp_read_answer(lp, &answer, error));
    memcpy(lp->largest, answer.largest, sizeof lp->largest);
    lp->is_largest_known = true;
    return DCRF_OK;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* spread[c] = the largest entry of column c minus the smallest; for labels the smallest is taken to
 * be 0. */
static dcrf_status find_spread(dcrf_backend_lp *lp, const struct lp_group *group,
                               struct columns *columns, double *spread, dcrf_error *error) {
    struct lp_ranges ranges;
    const bool are_cuts = group->cuts.labels > 0;
    if (are_cuts) {
        *columns = {lp->columns, group->cuts.count, padded_channels(group->cuts.count)};
        TRY(lp_find_columns(lp, group, &ranges, error));
    } else {
        *columns = {lp->z, lp->label_count, lp->stride};
        if (!lp->is_largest_known)
            TRY(find_largest(lp, error));
    }
    for (size_t c = 0; c < columns->count; c++)
        spread[c] = are_cuts
                        ? (double)float_of(ranges.largest[c]) - (double)float_of(ranges.smallest[c])
                        : (double)lp->largest[c];
    return DCRF_OK;
}

static dcrf_status find_alive(dcrf_backend_lp *lp, const struct lp_group *group, double threshold,
                              struct columns *columns, struct alive_columns *alive,
                              dcrf_error *error) {
    double spread[LP_MOST_LABELS];
    TRY(find_spread(lp, group, columns, spread, error));
    alive->count = 0;
    for (size_t c = 0; c < columns->count; c++)
        if (spread[c] > threshold)
            alive->column[alive->count++] = (uint16_t)c;
    for (size_t c = 0; c < columns->count; c++)
        alive->place[c] = (uint16_t)alive->count;
    for (uint32_t k = 0; k < alive->count; k++)
        alive->place[alive->column[k]] = (uint16_t)k;
    return DCRF_OK;
}

static __global__ void pack(const float *columns, uint32_t stride, size_t variables,
                            uint32_t packed_stride, struct alive_columns alive, float *packed) {
    const size_t i = this_thread();
    if (i >= variables * packed_stride)
        return;
    const size_t a = i / packed_stride, k = i % packed_stride;
    packed[i] = k < alive.count ? columns[a * stride + alive.column[k]] : 0;
}

/* ---- what the filtered columns add ---------------------------------------------------------- */

/* One or two filtered blocks of the columns that are alive, with their weights. */
template <typename T> struct messages {
    const T *one, *other; /* other: NULL if there is only one */
    double weight, other_weight;
    uint32_t stride;
};

template <typename T>
static __device__ double sum_at(const struct messages<T> &from, size_t row, uint32_t place) {
    const size_t at = row * from.stride + place;
    double sum = from.weight * (double)from.one[at];
    if (from.other)
        sum += from.other_weight * (double)from.other[at];
    return sum;
}

/* current = their sum, with zeros for other labels; or current += their sum. */
template <typename T>
static __global__ void unpack(struct messages<T> from, size_t variables, uint32_t labels,
                              uint32_t stride, struct alive_columns alive, bool is_first,
                              double *current) {
    const size_t i = this_thread();
    if (i >= variables * stride)
        return;
    const uint32_t label = (uint32_t)(i % stride);
    const uint32_t place = label < labels ? alive.place[label] : alive.count;
    const double before = is_first ? 0 : current[i];
    current[i] = place < alive.count ? before + sum_at(from, i / stride, place) : before;
}

/* The same for cuts: label i gets the sum over the cuts that hold it, times 2 length. One warp per
 * variable. The rounding error is not above that of dcrf_cuts_add: no path of additions is longer,
 * and all partial sums are sums of the same numbers. */
template <typename T>
static __global__ void unpack_cuts(struct device_cuts cuts, struct messages<T> from,
                                   size_t variables, uint32_t stride, struct alive_columns alive,
                                   bool is_first, double *current) {
    const size_t a = this_thread() / CUTS_WARP;
    const uint32_t lane = threadIdx.x % CUTS_WARP;
    double *row = current + a * stride, carried = 0;
    if (a >= variables)
        return; /* the whole warp */
    for (uint32_t begin = 0; begin < cuts.labels; begin += CUTS_WARP) {
        const uint32_t place = begin + lane;
        double change = 0;
        if (place < cuts.labels)
            for (uint32_t e = cuts.first_end[place]; e < cuts.first_end[place + 1]; e++) {
                const uint32_t k = alive.place[cuts.end_cut[e]];
                if (k < alive.count)
                    change += cuts.end_weight[e] * sum_at(from, a, k);
            }
        const double sum = carry_prefix(change, &carried);
        if (place < cuts.labels) {
            double *to = row + cuts.order[place];
            *to = is_first ? sum : *to + sum;
        }
    }
    for (uint32_t i = cuts.labels + lane; i < stride; i += CUTS_WARP)
        row[i] = 0;
}

/* A group of kernels whose columns are packed, and what has been added so far. */
struct point {
    dcrf_backend_lp *lp;
    const struct dcrf_pair_shape *shape;
    const struct lp_group *group;
    struct alive_columns alive;
    size_t stride; /* of the packed columns */
    bool is_first; /* nothing yet */
};

template <typename T>
static dcrf_status take_messages(struct point *p, const struct messages<T> &from,
                                 dcrf_error *error) {
    const dcrf_backend_lp *lp = p->lp;
    double *current = lp->dual[DCRF_BACKEND_CURRENT].pairwise;
    cudaStream_t stream = lp->device->stream;
    if (p->group->cuts.labels > 0)
        unpack_cuts<<<blocks_for(lp->variables * CUTS_WARP), THREADS, 0, stream>>>(
            p->group->cuts, from, lp->variables, (uint32_t)lp->stride, p->alive, p->is_first,
            current);
    else
        unpack<<<blocks_for(lp->variables * lp->stride), THREADS, 0, stream>>>(
            from, lp->variables, (uint32_t)lp->label_count, (uint32_t)lp->stride, p->alive,
            p->is_first, current);
    p->is_first = false;
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- the filters ---------------------------------------------------------------------------- */

/* The levels depend only on epsilon and the number of bins. */
static dcrf_status need_levels(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                               dcrf_error *error) {
    const size_t bins = shape->bins;
    if (lp->levels.levels && lp->levels_bins == bins && lp->levels_epsilon == shape->epsilon)
        return DCRF_OK;
    ordered_levels_release(&lp->levels, lp->device);
    float *nodes = static_cast<float *>(malloc((bins + 1) * bins * sizeof *nodes));
    if (!nodes)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    const dcrf_levels levels = {bins, nodes, nodes + bins};
    dcrf_pair_fill_levels(shape, nodes, nodes + bins);
    lp->levels_bins = bins;
    lp->levels_epsilon = shape->epsilon;
    const dcrf_status status = ordered_levels_take(&lp->levels, lp->device, &levels, error);
    free(nodes);
    return status;
}

/* packed -> out */
static dcrf_status filter(const struct point *p, struct device_operator *op, float *out,
                          dcrf_error *error) {
    if (!op->line_on_device)
        return ordered_filter(op, &p->lp->levels, p->lp->packed, out, p->alive.count, p->stride,
                              error);
    struct dcrf_line line = {};
    line.epsilon = p->shape->epsilon;
    line.y = p->lp->packed;
    line.out = out;
    line.channels = p->alive.count;
    line.stride = p->stride;
    return op->line_on_device(op, &line, error);
}

/* The first two kernels are filtered concurrently. */
static dcrf_status filter_two(struct point *p, dcrf_error *error) {
    dcrf_backend_lp *lp = p->lp;
    const size_t m = p->group->first;
    const struct messages<float> from = {
        lp->filtered[0], lp->filtered[1], lp->weights[m], lp->weights[m + 1], (uint32_t)p->stride
    };
    TRY(device_beside(
        lp->device, [&] { return filter(p, lp->operators[m], lp->filtered[0], error); }, error));
    TRY(filter(p, lp->operators[m + 1], lp->filtered[1], error));
    TRY(device_join(lp->device, error));
    return take_messages(p, from, error);
}

/* A line fills the device, so it runs alone. */
static dcrf_status find_in_float(struct point *p, dcrf_error *error) {
    dcrf_backend_lp *lp = p->lp;
    const size_t first = p->group->first, end = first + p->group->count;
    const bool has_two = p->group->count > 1 && !lp->operators[first]->line_on_device &&
                         !lp->operators[first + 1]->line_on_device;
    for (size_t m = first; m < end; m++)
        if (!lp->operators[m]->line_on_device)
            TRY(need_levels(lp, p->shape, error));
    if (has_two)
        TRY(filter_two(p, error));
    for (size_t m = has_two ? first + 2 : first; m < end; m++) {
        const struct messages<float> from = {
            lp->filtered[0], nullptr, lp->weights[m], 0, (uint32_t)p->stride
        };
        TRY(filter(p, lp->operators[m], lp->filtered[0], error));
        TRY(take_messages(p, from, error));
    }
    return DCRF_OK;
}

static dcrf_status find_in_double(struct point *p, dcrf_error *error) {
    dcrf_backend_lp *lp = p->lp;
    if (!lp->precise)
        TRY(device_array(lp->device, &lp->precise, lp->variables * lp->columns_stride, WHAT,
                         error));
    for (size_t k = 0; k < p->group->count; k++) {
        struct device_operator *op = lp->operators[p->group->first + k];
        struct dcrf_line line = {};
        line.epsilon = p->shape->epsilon;
        line.y = lp->packed;
        line.channels = p->alive.count;
        line.stride = p->stride;
        if (op->line_double_on_device) {
            TRY(op->line_double_on_device(op, &line, lp->precise, error));
        } else {
            TRY(need_levels(lp, p->shape, error));
            TRY(lp_filter_by_bins(lp, op, p->alive.count, p->stride, error));
        }
        const struct messages<double> from = {
            lp->precise, nullptr, lp->weights[p->group->first + k], 0, p->alive.count
        };
        TRY(take_messages(p, from, error));
    }
    return DCRF_OK;
}

static dcrf_status add_group(struct point *p, double threshold, dcrf_error *error) {
    const dcrf_backend_lp *lp = p->lp;
    struct columns columns;
    TRY(find_alive(p->lp, p->group, threshold, &columns, &p->alive, error));
    if (p->alive.count == 0)
        return DCRF_OK;
    p->stride = padded_channels(p->alive.count);
    pack<<<blocks_for(lp->variables * p->stride), THREADS, 0, lp->device->stream>>>(
        columns.values, (uint32_t)columns.stride, lp->variables, (uint32_t)p->stride, p->alive,
        lp->packed);
    return p->shape->is_precise ? find_in_double(p, error) : find_in_float(p, error);
}

dcrf_status lp_find_point(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                          double threshold, const struct dcrf_interrupt *interrupt,
                          dcrf_error *error) {
    struct point p = {lp, shape, nullptr, {}, 0, true};
    (void)interrupt; /* too short to interrupt */
    TRY(device_enter(lp->device, error));
    for (size_t g = 0; g < lp->group_count; g++) {
        p.group = &lp->groups[g];
        TRY(add_group(&p, threshold, error));
    }
    return p.is_first ? lp_write_block(lp, lp->dual[DCRF_BACKEND_CURRENT].pairwise, nullptr, error)
                      : DCRF_OK;
}
