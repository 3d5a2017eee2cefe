/* The part of the ordered filter that all implementations share: checking the levels, finding each
 * value's bin, and moving channels between rows and the contiguous arrays the implementations work
 * on.
 *
 *   out_a = sum_b K_ab F(y_a, y_b)
 *
 * With thresholds, F is the sign of bin(y_b) - bin(y_a): the conditional gradient of the LP
 * relaxation, both of its inequalities at once, equal bins cancelling (Joy et al., appendix
 * "Modified filtering algorithm", takes two passes). With a table F is any antisymmetric function,
 * linear between nodes: with F = clip((y_b - y_a) / epsilon) the gradient of the Huber-smoothed LP,
 * continuous in y. */
#include "core/error.h"
#include "core/memory.h"
#include "dsp/dsp.h"
#include "filter/operator.h"

#include <math.h>
#include <string.h>

static const struct dcrf_slot channels_slot = {"channels on their way through the ordered filter"};
static const struct dcrf_slot bins_slot = {"bins of their values"};
static const struct dcrf_slot used_slot = {"bins in use"};

/* Channels processed together, so that a row is read and written once for all of them. */
#define BATCH 8

/* How many of the ascending levels are <= value. Branch-free: the branches would be mispredicted
 * half of the time. */
static size_t count_by_halves(const float *levels, size_t count, float value) {
    const float *base = levels;
    while (count > 1) {
        const size_t half = count / 2;
        base += base[half - 1] <= value ? half : 0;
        count -= half;
    }
    return (size_t)(base - levels) + (count == 1 && *base <= value);
}

/* For the same lookup: evenly spaced levels, the usual case, need no search. */
struct ruler {
    const float *levels;
    size_t count;
    float first, per_step; /* per_step = 0: not spaced evenly */
};

static struct ruler make_ruler(const float *levels, size_t count) {
    struct ruler ruler = {levels, count, levels[0], 0};
    const float length = levels[count - 1] - levels[0];
    const float per_step = count > 1 ? (float)(count - 1) / length : 0;
    for (size_t h = 0; h < count; h++)
        if (!(fabsf((levels[h] - levels[0]) * per_step - (float)h) < 0.25f))
            return ruler;
    ruler.per_step = per_step;
    return ruler;
}

static size_t count_not_above(const struct ruler *ruler, float value) {
    if (!(ruler->per_step > 0))
        return count_by_halves(ruler->levels, ruler->count, value);
    const float at = (value - ruler->first) * ruler->per_step;
    size_t found = at > 0 ? at < (float)ruler->count ? (size_t)at + 1 : ruler->count : 0;
    found = found < ruler->count ? found : ruler->count;
    while (found > 0 && ruler->levels[found - 1] > value)
        found--;
    while (found < ruler->count && ruler->levels[found] <= value)
        found++;
    return found;
}

/* The node at or below a value above the first, and the fraction of the way to the next. */
static uint8_t find_node(const struct ruler *nodes, float value, float *fraction) {
    const float *levels = nodes->levels;
    const size_t above = count_not_above(nodes, value), bin = above - 1;
    *fraction = above < nodes->count ? (value - levels[bin]) / (levels[above] - levels[bin]) : 0;
    return (uint8_t)bin;
}

struct batch {
    struct ruler ruler;
    bool has_nodes; /* else thresholds */
    const float *y; /* of the first channel */
    float *out;
    size_t stride, channels;
    size_t variables;
    float *value;    /* for the results, `variables` for each channel */
    float *fraction; /* begins `variables` behind the results: one is used up when the next result
                        is written in its place */
    uint8_t *bin;
    struct used *used; /* one per thread */
};

/* The bins that some value of a channel uses. */
struct used {
    uint8_t is[BATCH][DCRF_MAX_BINS + 1];
};

/* A value's bin, and the mark of those that it uses. */
static void load_thresholds(const struct batch *batch, size_t channel, size_t begin, size_t end,
                            uint8_t *is_used) {
    const struct ruler ruler = batch->ruler;
    uint8_t *bin = batch->bin + channel * batch->variables;
    for (size_t a = begin; a < end; a++) {
        bin[a] = (uint8_t)count_not_above(&ruler, batch->y[a * batch->stride + channel]);
        is_used[bin[a]] = 1;
    }
}

/* Most values are not above the first node. Those bins are used anyway (find_subset). */
static void load_nodes(const struct batch *batch, size_t channel, size_t begin, size_t end,
                       uint8_t *is_used) {
    const struct ruler ruler = batch->ruler;
    const float first = ruler.levels[0];
    uint8_t *bin = batch->bin + channel * batch->variables;
    float *fraction = batch->fraction + channel * batch->variables;
    memset(bin + begin, 0, end - begin);
    memset(fraction + begin, 0, (end - begin) * sizeof *fraction);
    for (size_t a = begin; a < end; a++) {
        const float value = batch->y[a * batch->stride + channel];
        if (!(value > first))
            continue;
        bin[a] = find_node(&ruler, value, &fraction[a]);
        is_used[bin[a]] = 1;
        is_used[(size_t)bin[a] + (fraction[a] > 0)] = 1;
    }
}

/* Rows whose values are in the cache until the last channel. */
#define LOADED_ROWS 256

static void load_batch(void *context, size_t begin, size_t end, size_t worker) {
    const struct batch *batch = context;
    for (size_t a = begin; a < end; a += LOADED_ROWS)
        for (size_t c = 0; c < batch->channels; c++)
            (batch->has_nodes ? load_nodes : load_thresholds)(
                batch, c, a, end - a < LOADED_ROWS ? end : a + LOADED_ROWS,
                batch->used[worker].is[c]);
}

static void store_batch(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct batch *batch = context;
    for (size_t a = begin; a < end; a++)
        for (size_t c = 0; c < batch->channels; c++)
            batch->out[a * batch->stride + c] = batch->value[c * batch->variables + a];
}

/* The bins that a channel uses. The others are zero at every variable, so without them the result
 * is the same, for less work: as the LP converges, most labels have few values but 0 and 1, or
 * nothing near 1. */
struct subset {
    size_t count;
    uint8_t number[DCRF_MAX_BINS]; /* of a used bin among them */
    uint8_t bin[DCRF_MAX_BINS];    /* of a number */
    uint8_t *of;                   /* per variable: a bin, to be replaced by its number */
};

static void find_subset(const struct batch *batch, size_t threads, size_t channel, size_t bins,
                        struct subset *subset) {
    subset->count = 0;
    subset->of = batch->bin + channel * batch->variables;
    for (size_t h = 0; h < bins; h++) {
        uint8_t is_used = h < 2; /* an operator takes at least two */
        for (size_t t = 0; t < threads; t++)
            is_used |= batch->used[t].is[channel][h];
        subset->number[h] = (uint8_t)subset->count;
        subset->bin[subset->count] = (uint8_t)h;
        subset->count += is_used;
    }
}

static void renumber(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct subset *subset = context;
    for (size_t a = begin; a < end; a++)
        subset->of[a] = subset->number[subset->of[a]];
}

/* Rows and columns of the padded table. */
static const float *reduce_table(const float *table, size_t bins, const struct subset *subset,
                                 float *reduced) {
    const size_t from = dcrf_bin_row(bins), row = dcrf_bin_row(subset->count);
    memset(reduced, 0, subset->count * row * sizeof *reduced);
    for (size_t h = 0; h < subset->count; h++)
        for (size_t k = 0; k < subset->count; k++)
            reduced[h * row + k] = table[subset->bin[h] * from + subset->bin[k]];
    return reduced;
}

/* The table with its rows padded to whole vectors. */
static const float *pad_table(const dcrf_levels *levels, float *padded) {
    const size_t bins = levels->count, row = dcrf_bin_row(bins);
    memset(padded, 0, bins * row * sizeof *padded);
    for (size_t h = 0; h < bins; h++)
        memcpy(padded + h * row, levels->table + h * bins, bins * sizeof *padded);
    return padded;
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
    for (size_t h = 1; levels->table && h < bins; h++)
        if (!isnormal(levels->levels[h] - levels->levels[h - 1]))
            return dcrf_fail(
                error, DCRF_ERROR_ARGUMENT,
                "levels %zu and %zu of the ordered filter, %g and %g, are too close or too far "
                "apart to interpolate",
                h - 1, h, (double)levels->levels[h - 1], (double)levels->levels[h]);
    for (size_t h = 0; levels->table && h < bins; h++)
        for (size_t k = 0; k <= h; k++)
            if (!isfinite(levels->table[h * bins + k]) ||
                levels->table[h * bins + k] != -levels->table[k * bins + h])
                return dcrf_fail(
                    error, DCRF_ERROR_ARGUMENT,
                    "the table of the ordered filter is not finite and antisymmetric at (%zu, %zu)",
                    h, k);
    return DCRF_OK;
}

dcrf_status dcrf_operator_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                                  const dcrf_levels *levels, const float *y, float *out,
                                  size_t count, size_t channels, size_t stride, dcrf_error *error) {
    if (!op || !workspace || !levels || !y || !out)
        return dcrf_fail_null(
            error, "the operator, the workspace, the levels, the block of marginals or the output");
    DCRF_ENTER(workspace, error);
    dcrf_status status = check_levels(levels, error);
    if (status < 0)
        return status;
    if (channels == 0 || stride < channels)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "a block of %zu channels cannot have a stride of %zu", channels, stride);
    TRY(dcrf_check_rows(out, count, op->variables, channels, stride, "the output", error));
    if (op->methods->ordered_block)
        return op->methods->ordered_block(op, levels, y, out, channels, stride, error);
    const size_t n = op->variables;
    const size_t table_floats = levels->count * dcrf_bin_row(levels->count);
    size_t floats;
    if (!dcrf_multiply(n, BATCH + 1, &floats) || floats > SIZE_MAX - 2 * table_floats)
        return dcrf_fail_memory(error, "the ordered filter");
    float *memory =
        dcrf_workspace_slot(workspace, &channels_slot, floats + 2 * table_floats, sizeof *memory);
    const size_t threads = dcrf_workspace_threads(workspace);
    uint8_t *bins = dcrf_workspace_slot(workspace, &bins_slot, n, BATCH);
    struct used *used = dcrf_workspace_slot(workspace, &used_slot, threads, sizeof *used);
    if (!memory || !bins || !used)
        return dcrf_fail_memory(error, "the ordered filter");
    const size_t marks = levels->table ? levels->count : levels->count - 1;
    struct batch batch = {.ruler = make_ruler(levels->levels, marks),
                          .has_nodes = levels->table != NULL,
                          .stride = stride,
                          .variables = n,
                          .value = memory,
                          .fraction = memory + n,
                          .bin = bins,
                          .used = used};
    const bool is_sign = dcrf_levels_have_sign(levels);
    const float *table = levels->table ? pad_table(levels, memory + floats) : NULL;
    float *reduced = memory + floats + table_floats;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    for (size_t first = 0; first < channels; first += batch.channels) {
        batch.channels = channels - first < BATCH ? channels - first : BATCH;
        batch.y = y + first;
        batch.out = out + first;
        memset(used, 0, threads * sizeof *used);
        dcrf_parallel_rows(pool, n, load_batch, &batch);
        for (size_t c = 0; c < batch.channels; c++) {
            struct subset subset;
            find_subset(&batch, threads, c, levels->count, &subset);
            const bool has_all = subset.count == levels->count;
            if (!has_all)
                dcrf_parallel_rows(pool, n, renumber, &subset);
            const struct dcrf_ordered ordered = {
                .bins = subset.count,
                .table = has_all || !table ? table
                                           : reduce_table(table, levels->count, &subset, reduced),
                .bin = bins + c * n,
                .fraction = batch.fraction + c * n,
                .out = batch.value + c * n,
                .is_sign = is_sign,
                .is_next = first + c > 0};
            if ((status = op->methods->ordered(op, workspace, &ordered, error)) < 0)
                return status;
        }
        dcrf_parallel_rows(pool, n, store_batch, &batch);
    }
    return DCRF_OK;
}
