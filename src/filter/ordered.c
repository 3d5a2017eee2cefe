/* The ordered filter, up to the point where the implementations differ: checking the levels,
 * finding each value's bin, and moving channels between rows and the contiguous arrays the
 * implementations work on.
 *
 *   out_a = sum_b K_ab F(y_a, y_b)
 *
 * With thresholds, F is the sign of bin(y_b) - bin(y_a): the conditional gradient of the LP
 * relaxation, both of its inequalities at once, equal bins cancelling (Joy et al., appendix
 * "Modified filtering algorithm", takes two passes). With a table F is any antisymmetric function,
 * linear between nodes: with F = clip((y_b - y_a) / epsilon) the gradient of the Huber-smoothed LP,
 * continuous in y. */
#include "filter/ordered.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>

struct quantizer {
    const dcrf_levels *levels;
    const float *y; /* of one channel, `stride` floats apart */
    size_t stride;
    uint8_t *bin;
    float *fraction;
};

/* How many of the ascending levels are <= value. */
static size_t count_not_above(const float *levels, size_t count, float value) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (levels[middle] <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void quantize(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct quantizer *q = context;
    const dcrf_levels *levels = q->levels;
    if (!levels->table) {
        for (size_t a = begin; a < end; a++)
            q->bin[a] =
                (uint8_t)count_not_above(levels->levels, levels->count - 1, q->y[a * q->stride]);
        return;
    }
    const size_t last = levels->count - 1;
    for (size_t a = begin; a < end; a++) {
        const float value = q->y[a * q->stride];
        const size_t above = count_not_above(levels->levels, levels->count, value);
        const size_t bin = above == 0 ? 0 : above - 1;
        q->bin[a] = (uint8_t)bin;
        q->fraction[a] =
            above == 0 || bin == last
                ? 0
                : (value - levels->levels[bin]) / (levels->levels[bin + 1] - levels->levels[bin]);
    }
}

struct store {
    const float *from;
    float *to;
    size_t stride;
};

static void store_channel(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct store *store = context;
    for (size_t a = begin; a < end; a++)
        store->to[a * store->stride] = store->from[a];
}

static dcrf_status check_levels(const dcrf_levels *levels, dcrf_error *error) {
    const size_t bins = levels->count;
    if (bins < 2 || bins > DCRF_MAX_BINS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the ordered filter takes 2 to %d bins, not %zu", DCRF_MAX_BINS, bins);
    const size_t given = levels->table ? bins : bins - 1;
    for (size_t h = 0; h < given; h++)
        if (!isfinite(levels->levels[h]) || (h > 0 && levels->levels[h] <= levels->levels[h - 1]))
            return dcrf_fail(
                error, DCRF_ERROR_ARGUMENT,
                "the levels of the ordered filter must be finite and ascend; level %zu "
                "is %g",
                h, (double)levels->levels[h]);
    for (size_t h = 0; levels->table && h < bins; h++)
        for (size_t k = 0; k <= h; k++)
            if (!(levels->table[h * bins + k] == -levels->table[k * bins + h]))
                return dcrf_fail(
                    error, DCRF_ERROR_ARGUMENT,
                    "the table of the ordered filter is not antisymmetric at (%zu, %zu)", h, k);
    return DCRF_OK;
}

#define GRAIN 4096

dcrf_status dcrf_operator_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                                  const dcrf_levels *levels, const float *y, float *out,
                                  size_t channels, size_t stride, dcrf_error *error) {
    dcrf_status status = check_levels(levels, error);
    if (status < 0)
        return status;
    if (channels == 0 || stride < channels)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "a block of %zu channels cannot have a stride of %zu", channels, stride);
    const size_t n = op->variables;
    float *values = dcrf_workspace_slot(workspace, DCRF_SLOT_ORDERED, n, 2 * sizeof *values + 1);
    if (!values)
        return dcrf_fail_memory(error, "the ordered filter");
    struct quantizer quantizer = {levels, y, stride, (uint8_t *)(values + 2 * n), values + n};
    const struct dcrf_ordered ordered = {.bins = levels->count,
                                         .table = levels->table,
                                         .bin = quantizer.bin,
                                         .fraction = quantizer.fraction,
                                         .out = values};
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    for (size_t channel = 0; channel < channels; channel++) {
        quantizer.y = y + channel;
        dcrf_parallel_for(pool, n, GRAIN, quantize, &quantizer);
        status = op->methods->ordered(op, workspace, &ordered, error);
        if (status < 0)
            return status;
        struct store store = {values, out + channel, stride};
        dcrf_parallel_for(pool, n, GRAIN, store_channel, &store);
    }
    return DCRF_OK;
}
