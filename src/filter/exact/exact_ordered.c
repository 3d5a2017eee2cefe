/* The binned ordered filter of the exact operator.
 *
 * The sign of bin[b] - bin[a] is their difference, clipped. A table that is interpolated between
 * nodes is bilinear: out_a = sum_hk hat_h(a) F_hk (K hat_k)_a with the hat functions of the nodes,
 * each variable being nonzero in at most two of them. */
#include "core/error.h"
#include "dsp/dsp.h"
#include "filter/exact/exact.h"

#define GRAIN 1024

struct bins_context {
    const struct dcrf_ordered *ordered;
    float *hats, *seen; /* rows of `stride` floats */
    size_t stride;
};

static void fill_hats(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct bins_context *c = context;
    for (size_t a = begin; a < end; a++) {
        float *row = c->hats + a * c->stride;
        for (size_t h = 0; h < c->stride; h++)
            row[h] = 0;
        const float fraction = c->ordered->fraction[a];
        row[c->ordered->bin[a]] = 1 - fraction;
        if (fraction > 0)
            row[c->ordered->bin[a] + 1] = fraction;
    }
}

static void read_hats(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct bins_context *c = context;
    const struct dcrf_ordered *ordered = c->ordered;
    for (size_t a = begin; a < end; a++) {
        const float *seen = c->seen + a * c->stride, fraction = ordered->fraction[a];
        const float *low = ordered->table + ordered->bin[a] * dcrf_bin_row(ordered->bins);
        const float *high = fraction > 0 ? low + dcrf_bin_row(ordered->bins) : low;
        double sum = 0;
        for (size_t h = 0; h < ordered->bins; h++)
            sum += ((double)low[h] + (double)fraction * ((double)high[h] - (double)low[h])) *
                   (double)seen[h];
        ordered->out[a] = (float)sum;
    }
}

static void fill_numbers(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct bins_context *c = context;
    for (size_t a = begin; a < end; a++)
        c->hats[a] = c->ordered->bin[a];
}

dcrf_status dcrf_exact_ordered(const dcrf_operator *op, dcrf_workspace *workspace,
                               const struct dcrf_ordered *ordered, dcrf_error *error) {
    const size_t n = op->variables, stride = ordered->table ? dcrf_bin_row(ordered->bins) : 1;
    struct bins_context context = {.ordered = ordered, .stride = stride};
    context.hats =
        dcrf_workspace_slot(workspace, &dcrf_histogram_slot, n, 2 * stride * sizeof(float));
    if (!context.hats)
        return dcrf_fail_memory(error, "the ordered filter");
    context.seen = context.hats + n * stride;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    if (!ordered->table) {
        dcrf_parallel_for(pool, n, GRAIN, fill_numbers, &context);
        const struct dcrf_line line = {
            .epsilon = 1, .y = context.hats, .out = ordered->out, .channels = 1, .stride = 1};
        return dcrf_exact_line(op, workspace, &line, error);
    }
    dcrf_parallel_for(pool, n, GRAIN, fill_hats, &context);
    const struct dcrf_application application = {.in = context.hats,
                                                 .out = context.seen,
                                                 .channels = ordered->bins,
                                                 .stride = stride,
                                                 .factor = 1};
    TRY(dcrf_exact_apply(op, workspace, &application, error));
    dcrf_parallel_for(pool, n, GRAIN, read_hats, &context);
    return DCRF_OK;
}
