#include "cuda/ordered.cuh"

#include <cstdlib>

#define WHAT "the ordered filter"

/* ---- values to histograms ------------------------------------------------------------------- */

/* Between which nodes, or thresholds, a value lies, and how far: as filter/ordered.c finds it. */
static __global__ void find_bins(const float *y, size_t stride, size_t variables,
                                 const float *levels, uint32_t count, bool has_table, uint8_t *bin,
                                 float *fraction) {
    const size_t a = this_thread();
    if (a >= variables)
        return;
    const float value = y[a * stride];
    uint32_t above = 0;
    for (uint32_t h = 0; h < (has_table ? count : count - 1); h++)
        above += levels[h] <= value;
    if (!has_table) {
        bin[a] = (uint8_t)above;
        return;
    }
    const uint32_t at = above == 0 ? 0 : above - 1;
    fraction[a] = 0;
    if (above > 0 && above < count)
        fraction[a] = (value - levels[at]) / (levels[above] - levels[at]);
    bin[a] = (uint8_t)at;
}

static __global__ void make_histograms(const uint8_t *bin, const float *fraction, size_t variables,
                                       size_t row, float *histograms) {
    const size_t i = this_thread();
    if (i >= variables * row)
        return;
    const size_t a = i / row, k = i % row;
    const float upper = fraction ? fraction[a] : 0;
    histograms[i] = k == bin[a] ? 1 - upper : k == (size_t)bin[a] + 1 ? upper : 0;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* What a filter works on: one piece of memory, cut up. */
struct pieces {
    dcrf_backend_device *device;
    size_t variables, bins, row;
    float *memory;
    float *fraction, *histograms, *table, *levels, *out;
    uint8_t *bin;
};

static dcrf_status pieces_take(struct pieces *p, const struct device_operator *op, size_t bins,
                               dcrf_error *error) {
    const size_t n = op->base.variables;
    p->device = op->device;
    p->variables = n;
    p->bins = bins;
    p->row = (bins + DCRF_LANES - 1) / DCRF_LANES * DCRF_LANES;
    const size_t rows = n * p->row, table = bins * p->row;
    dcrf_status status = device_enter(op->device, error);
    /* The histograms are read by fours, so they come first. */
    if (status == DCRF_OK)
        status = device_array(op->device, &p->memory, rows + table + bins + 2 * n + n / 4 + 1, WHAT,
                              error);
    if (status < 0)
        return status;
    p->histograms = p->memory;
    p->table = p->histograms + rows;
    p->levels = p->table + table;
    p->fraction = p->levels + bins;
    p->out = p->fraction + n;
    p->bin = reinterpret_cast<uint8_t *>(p->out + n);
    return DCRF_OK;
}

static dcrf_status filter_channel(const struct pieces *p, struct device_operator *op,
                                  bool has_table, float *out, size_t out_stride,
                                  dcrf_error *error) {
    const float *fraction = has_table ? p->fraction : nullptr;
    make_histograms<<<blocks_for(p->variables * p->row), THREADS, 0, p->device->stream>>>(
        p->bin, fraction, p->variables, p->row, p->histograms);
    const struct ordered_channel channel = {p->variables,  p->bins,  p->row,
                                            p->bin,        fraction, has_table ? p->table : nullptr,
                                            p->histograms, out,      out_stride};
    const dcrf_status status = op->ordered_on_device(op, &channel, error);
    return status < 0 ? status : check(cudaGetLastError(), WHAT, error);
}

/* ---- the methods ---------------------------------------------------------------------------- */

dcrf_status operator_ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                             const struct dcrf_ordered *channel, dcrf_error *error) {
    (void)workspace;
    struct device_operator *op = (struct device_operator *)base;
    struct pieces p = {};
    dcrf_status status = pieces_take(&p, op, channel->bins, error);
    if (status == DCRF_OK)
        status = device_upload(p.device, p.bin, channel->bin, p.variables, error);
    if (status == DCRF_OK && channel->table)
        status = device_upload(p.device, p.fraction, channel->fraction, p.variables * sizeof(float),
                               error);
    if (status == DCRF_OK && channel->table)
        status =
            device_upload(p.device, p.table, channel->table, p.bins * p.row * sizeof(float), error);
    if (status == DCRF_OK)
        status = filter_channel(&p, op, channel->table != nullptr, p.out, 1, error);
    if (status == DCRF_OK)
        status = device_download(p.device, channel->out, p.out, p.variables * sizeof(float), error);
    device_release(p.device, p.memory);
    return status;
}

/* The table with its rows padded, and the levels. */
static dcrf_status upload_levels(const struct pieces *p, const dcrf_levels *levels,
                                 dcrf_error *error) {
    const size_t count = levels->table ? p->bins : p->bins - 1;
    dcrf_status status =
        device_upload(p->device, p->levels, levels->levels, count * sizeof(float), error);
    if (status < 0 || !levels->table)
        return status;
    float *padded = static_cast<float *>(calloc(p->bins * p->row, sizeof *padded));
    if (!padded)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    for (size_t h = 0; h < p->bins; h++)
        for (size_t k = 0; k < p->bins; k++)
            padded[h * p->row + k] = levels->table[h * p->bins + k];
    status = device_upload(p->device, p->table, padded, p->bins * p->row * sizeof *padded, error);
    free(padded);
    return status;
}

dcrf_status operator_ordered_block(const dcrf_operator *base, const dcrf_levels *levels,
                                   const float *y, float *out, size_t channels, size_t stride,
                                   dcrf_error *error) {
    struct device_operator *op = (struct device_operator *)base;
    struct pieces p = {};
    dcrf_status status = operator_upload(op, y, stride, error);
    if (status < 0)
        return status;
    /* Beyond the channels the output keeps what it has. */
    if (channels < stride)
        status = device_upload(op->device, op->out, out, op->base.variables * stride * sizeof *out,
                               error);
    if (status == DCRF_OK)
        status = pieces_take(&p, op, levels->count, error);
    if (status < 0)
        return status;
    status = upload_levels(&p, levels, error);
    for (size_t c = 0; c < channels && status == DCRF_OK; c++) {
        find_bins<<<blocks_for(p.variables), THREADS, 0, p.device->stream>>>(
            op->in + c, stride, p.variables, p.levels, (uint32_t)p.bins, levels->table != nullptr,
            p.bin, p.fraction);
        status = filter_channel(&p, op, levels->table != nullptr, op->out + c, stride, error);
    }
    device_release(p.device, p.memory);
    return status < 0 ? status : operator_download(op, out, stride, error);
}
