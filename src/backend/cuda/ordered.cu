#include "backend/cuda/ordered.cuh"

#include <cstdlib>

#define WHAT "the ordered filter"
/* The most floats in the histograms filtered together, per variable and in total. */
#define MOST_WIDTH 128
#define MOST_FLOATS ((size_t)1 << 26)

/* ---- levels --------------------------------------------------------------------------------- */

void ordered_levels_release(struct ordered_levels *levels, dcrf_backend_device *device) {
    device_release(device, levels->levels);
    *levels = {};
}

dcrf_status ordered_levels_take(struct ordered_levels *levels, dcrf_backend_device *device,
                                const dcrf_levels *from, dcrf_error *error) {
    const size_t bins = from->count, row = dcrf_bin_row(bins);
    *levels = {};
    float *both = static_cast<float *>(calloc(row + bins * row, sizeof *both));
    if (!both)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    for (size_t h = 0; h < (from->table ? bins : bins - 1); h++)
        both[h] = from->levels[h];
    for (size_t h = 0; from->table && h < bins; h++)
        for (size_t k = 0; k < bins; k++)
            both[row + h * row + k] = from->table[h * bins + k];
    const size_t floats = row + (from->table ? bins * row : 0);
    dcrf_status status = device_array(device, &levels->levels, floats, WHAT, error);
    if (status == DCRF_OK)
        status = device_upload(device, levels->levels, both, floats * sizeof *both, error);
    free(both);
    if (status < 0) {
        ordered_levels_release(levels, device);
        return status;
    }
    levels->bins = bins;
    levels->row = row;
    levels->table = from->table ? levels->levels + row : nullptr;
    levels->is_sign = dcrf_levels_have_sign(from);
    return DCRF_OK;
}

/* ---- values to histograms ------------------------------------------------------------------- */

/* The nodes or thresholds that a value lies between, and the fraction, as in filter/ordered.c. */
static __global__ void find_bins(const float *y, size_t stride, size_t variables, uint32_t channels,
                                 const float *levels, uint32_t count, bool has_table, uint8_t *bin,
                                 float *fraction) {
    const size_t i = this_thread();
    if (i >= variables * channels)
        return;
    const float value = y[i / channels * stride + i % channels];
    uint32_t above = 0;
    for (uint32_t h = 0; h < (has_table ? count : count - 1); h++)
        above += levels[h] <= value;
    if (!has_table) {
        bin[i] = (uint8_t)above;
        return;
    }
    const uint32_t at = above == 0 ? 0 : above - 1;
    fraction[i] = 0;
    if (above > 0 && above < count)
        fraction[i] = (value - levels[at]) / (levels[above] - levels[at]);
    bin[i] = (uint8_t)at;
}

/* One thread per variable, channel and bin. */
static __global__ void make_histograms(const uint8_t *bin, const float *fraction, size_t count,
                                       uint32_t row, float *histograms) {
    const size_t i = this_thread();
    if (i >= count * row)
        return;
    const size_t channel = i / row, k = i % row;
    const float upper = fraction ? fraction[channel] : 0;
    histograms[i] = k == bin[channel] ? 1 - upper : k == (size_t)bin[channel] + 1 ? upper : 0;
}

/* ---- groups of channels --------------------------------------------------------------------- */

/* The memory for filtering a batch: one allocation, divided up. */
struct pieces {
    scratch<float> memory; /* histograms, first because they are read as float4 */
    float *fraction, *out;
    uint8_t *bin;
    explicit pieces(dcrf_backend_device *device) : memory(device) {
    }
};

static size_t channels_together(size_t variables, size_t channels, size_t row) {
    size_t most = MOST_WIDTH / row;
    if (most > MOST_FLOATS / row / variables)
        most = MOST_FLOATS / row / variables;
    most = most > 1 ? most : 1;
    /* Groups of equal size, so that the last is not nearly empty. */
    const size_t groups = (channels + most - 1) / most;
    return (channels + groups - 1) / groups;
}

static dcrf_status pieces_take(struct pieces *p, const struct device_operator *op, size_t channels,
                               size_t row, dcrf_error *error) {
    const size_t values = op->base.variables * channels;
    TRY(p->memory.take(values * row + 2 * values + values / 4 + 1, WHAT, error));
    p->fraction = p->memory + values * row;
    p->out = p->fraction + values;
    p->bin = reinterpret_cast<uint8_t *>(p->out + values);
    return DCRF_OK;
}

static dcrf_status filter_batch(const struct pieces *p, struct device_operator *op,
                                const struct ordered_levels *levels, size_t channels, float *out,
                                size_t out_stride, dcrf_error *error) {
    const float *fraction = levels->table ? p->fraction : nullptr;
    const size_t n = op->base.variables;
    make_histograms<<<blocks_for(n * channels * levels->row), THREADS, 0, op->device->stream>>>(
        p->bin, fraction, n * channels, (uint32_t)levels->row, p->memory);
    const struct ordered_batch batch = {n,         channels, levels->bins,  levels->row,
                                        p->bin,    fraction, levels->table, levels->is_sign,
                                        p->memory, out,      out_stride};
    TRY(op->ordered_on_device(op, &batch, error));
    return check(cudaGetLastError(), WHAT, error);
}

dcrf_status ordered_filter(struct device_operator *op, const struct ordered_levels *levels,
                           const float *y, float *out, size_t channels, size_t stride,
                           dcrf_error *error) {
    const size_t n = op->base.variables;
    const size_t together = channels_together(n, channels, levels->row);
    struct pieces p(op->device);
    TRY(pieces_take(&p, op, together, levels->row, error));
    for (size_t first = 0; first < channels; first += together) {
        const size_t count = channels - first < together ? channels - first : together;
        find_bins<<<blocks_for(n * count), THREADS, 0, op->device->stream>>>(
            y + first, stride, n, (uint32_t)count, levels->levels, (uint32_t)levels->bins,
            levels->table != nullptr, p.bin, p.fraction);
        TRY(filter_batch(&p, op, levels, count, out + first, stride, error));
    }
    return DCRF_OK;
}

/* ---- the methods ---------------------------------------------------------------------------- */

dcrf_status operator_ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                             const struct dcrf_ordered *channel, dcrf_error *error) {
    (void)workspace;
    struct device_operator *op = (struct device_operator *)base;
    dcrf_backend_device *device = op->device;
    const device_turn turn(device);
    const size_t n = base->variables, row = dcrf_bin_row(channel->bins);
    struct pieces p(device);
    scratch<float> table(device);
    TRY(device_enter(device, error));
    TRY(pieces_take(&p, op, 1, row, error));
    TRY(device_upload(device, p.bin, channel->bin, n, error));
    if (channel->table) {
        const size_t floats = channel->bins * row;
        TRY(device_upload(device, p.fraction, channel->fraction, n * sizeof(float), error));
        TRY(table.take(floats, WHAT, error));
        TRY(device_upload(device, table, channel->table, floats * sizeof(float), error));
    }
    const struct ordered_levels levels = {channel->bins, row, nullptr, table,
                                          channel->is_sign || !channel->table};
    TRY(filter_batch(&p, op, &levels, 1, p.out, 1, error));
    return device_download(device, channel->out, p.out, n * sizeof(float), error);
}

dcrf_status operator_ordered_block(const dcrf_operator *base, const dcrf_levels *levels,
                                   const float *y, float *out, size_t channels, size_t stride,
                                   dcrf_error *error) {
    struct device_operator *op = (struct device_operator *)base;
    const device_turn turn(op->device);
    struct ordered_levels on_device = {};
    dcrf_status status = operator_upload(op, y, stride, error);
    /* The padding of the output keeps its values. */
    if (status == DCRF_OK && channels < stride)
        status =
            device_upload(op->device, op->out, out, base->variables * stride * sizeof *out, error);
    if (status == DCRF_OK)
        status = ordered_levels_take(&on_device, op->device, levels, error);
    if (status == DCRF_OK)
        status = ordered_filter(op, &on_device, op->in, op->out, channels, stride, error);
    ordered_levels_release(&on_device, op->device);
    return status < 0 ? status : operator_download(op, out, stride, error);
}
