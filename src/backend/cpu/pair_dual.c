/* From marginals to a dual point, through the ordered filter.
 *
 *   (A alpha)_ai = sum_m w_m sum_b k_m(a, b) F(y_ai, y_bi),   F antisymmetric, |F| <= 1,
 *
 * is feasible for every y. With F = sign it is the conditional gradient of the paper; with F =
 * clip((y_b - y_a) / epsilon) minus the gradient of the Huber-smoothed pairwise term. */
#include "backend/cpu/pair_dual.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

#define GRAIN 1024

dcrf_status dcrf_pair_filter_init(struct dcrf_pair_filter *filter,
                                  const struct dcrf_dual_space *space, dcrf_error *error) {
    const dcrf_model *model = space->plan->model;
    const size_t n = model->variables, chunks = (n + GRAIN - 1) / GRAIN;
    *filter = (struct dcrf_pair_filter){.space = space};
    filter->packed = dcrf_allocate(n, model->stride * sizeof(float));
    filter->filtered = dcrf_allocate(n, model->stride * sizeof(float));
    filter->alive = dcrf_allocate(model->labels, sizeof *filter->alive);
    filter->largest = dcrf_allocate(chunks, model->labels * sizeof(float));
    filter->nodes = dcrf_allocate(DCRF_MAX_BINS, sizeof(float));
    filter->table = dcrf_allocate(DCRF_MAX_BINS, DCRF_MAX_BINS * sizeof(float));
    if (filter->packed && filter->filtered && filter->alive && filter->largest && filter->nodes &&
        filter->table)
        return DCRF_OK;
    dcrf_pair_filter_clear(filter);
    return dcrf_fail_memory(error, "the ordered filter");
}

void dcrf_pair_filter_clear(struct dcrf_pair_filter *filter) {
    dcrf_release(filter->packed);
    dcrf_release(filter->filtered);
    dcrf_release(filter->alive);
    dcrf_release(filter->largest);
    dcrf_release(filter->nodes);
    dcrf_release(filter->table);
    dcrf_release(filter->precise);
    *filter = (struct dcrf_pair_filter){0};
}

/* ---- labels that are alive ------------------------------------------------------------------ */

struct pack_context {
    struct dcrf_pair_filter *filter;
    const float *y;
    size_t stride; /* of the packed blocks */
    double weight;
    double *out;
};

static void find_largest(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct pack_context *c = context;
    const dcrf_model *model = c->filter->space->plan->model;
    float *largest = c->filter->largest + begin / GRAIN * model->labels;
    for (size_t i = 0; i < model->labels; i++)
        largest[i] = 0;
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < model->labels; i++) {
            const float value = c->y[a * model->stride + i];
            largest[i] = value > largest[i] ? value : largest[i];
        }
}

static void find_alive(struct pack_context *context, double threshold) {
    struct dcrf_pair_filter *filter = context->filter;
    const dcrf_model *model = filter->space->plan->model;
    const size_t n = model->variables;
    dcrf_parallel_for(dcrf_workspace_pool(filter->space->workspace), n, GRAIN, find_largest,
                      context);
    filter->alive_count = 0;
    for (size_t i = 0; i < model->labels; i++)
        for (size_t chunk = 0; chunk * GRAIN < n; chunk++)
            if ((double)filter->largest[chunk * model->labels + i] > threshold) {
                filter->alive[filter->alive_count++] = i;
                break;
            }
}

static void pack(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct pack_context *c = context;
    const size_t stride = c->filter->space->plan->model->stride;
    for (size_t a = begin; a < end; a++) {
        float *row = c->filter->packed + a * c->stride;
        for (size_t k = 0; k < c->stride; k++)
            row[k] = k < c->filter->alive_count ? c->y[a * stride + c->filter->alive[k]] : 0;
    }
}

static void unpack(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct pack_context *c = context;
    const size_t stride = c->filter->space->plan->model->stride;
    for (size_t a = begin; a < end; a++) {
        double *out = c->out + a * stride;
        const float *row = c->filter->filtered + a * c->stride;
        for (size_t k = 0; k < c->filter->alive_count; k++)
            out[c->filter->alive[k]] += c->weight * (double)row[k];
    }
}

/* ---- the filter ----------------------------------------------------------------------------- */

static dcrf_levels find_levels(struct dcrf_pair_filter *filter,
                               const struct dcrf_pair_shape *shape) {
    dcrf_pair_fill_levels(shape, filter->nodes, filter->table);
    return (dcrf_levels){shape->bins, filter->nodes, shape->epsilon == 0 ? NULL : filter->table};
}

/* ---- in double ------------------------------------------------------------------------------ */

/* Bins that go through the operator at a time. */
#define PRECISE_CHANNELS 8
/* Labels likewise: what fits where two such blocks do. */
#define PRECISE_LABELS (2 * PRECISE_CHANNELS)

/* One label on its way: with w_a(h) the hat functions of the nodes at y_a, K w(h) for some nodes at
 * a time, and from it sum_h F(y_a, node h) (K w(h))_a. */
struct precise {
    const struct dcrf_pair_filter *filter;
    size_t channel, stride; /* of the packed block */
    const dcrf_levels *levels;
    size_t first, count; /* nodes in hand */
    double *in, *out;    /* variables x count */
    double *sum;         /* per variable */
};

/* The lower node of y, and the part that the upper one has in it. The part is computed in floats,
 * as all others who look at the point do it. */
static size_t find_node(float y, size_t bins, double *part) {
    const size_t last = bins - 1;
    size_t node = (size_t)(y * (float)last);
    node = node < last ? node : last;
    while (node > 0 && y < (float)node / (float)last)
        node--;
    while (node < last && (float)(node + 1) / (float)last <= y)
        node++;
    const float low = (float)node / (float)last;
    *part =
        node < last && y > low ? (double)((y - low) / ((float)(node + 1) / (float)last - low)) : 0;
    return node;
}

static void fill_hats(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct precise *p = context;
    for (size_t a = begin; a < end; a++) {
        double part, *in = p->in + a * p->count;
        const size_t node =
            find_node(p->filter->packed[a * p->stride + p->channel], p->levels->count, &part);
        for (size_t h = 0; h < p->count; h++)
            in[h] = p->first + h == node ? 1 - part : p->first + h == node + 1 ? part : 0;
    }
}

static void add_flows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct precise *p = context;
    const size_t bins = p->levels->count;
    for (size_t a = begin; a < end; a++) {
        double part;
        const size_t node = find_node(p->filter->packed[a * p->stride + p->channel], bins, &part);
        const float *low = p->levels->table + node * bins + p->first;
        const float *high = node + 1 < bins ? low + bins : low;
        double sum = 0;
        for (size_t h = 0; h < p->count; h++)
            sum +=
                ((1 - part) * (double)low[h] + part * (double)high[h]) * p->out[a * p->count + h];
        p->sum[a] = p->first == 0 ? sum : p->sum[a] + sum;
    }
}

static dcrf_status filter_by_bins(struct precise *p, const dcrf_operator *op, dcrf_error *error) {
    const struct dcrf_dual_space *space = p->filter->space;
    const size_t n = space->plan->model->variables;
    dcrf_pool *pool = dcrf_workspace_pool(space->workspace);
    for (p->first = 0; p->first < p->levels->count; p->first += p->count) {
        const size_t left = p->levels->count - p->first;
        p->count = left < PRECISE_CHANNELS ? left : PRECISE_CHANNELS;
        dcrf_parallel_for(pool, n, GRAIN, fill_hats, p);
        const dcrf_status status =
            op->methods->apply_double(op, space->workspace, p->in, p->out, p->count, error);
        if (status < 0)
            return status;
        dcrf_parallel_for(pool, n, GRAIN, add_flows, p);
    }
    return DCRF_OK;
}

/* The labels `first` and on of the packed block, `count` of them, added to the point. */
struct addition {
    const struct pack_context *context;
    size_t first, count;
    const double *from; /* variables x count */
};

static void add_labels(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct addition *addition = context;
    const struct pack_context *c = addition->context;
    const size_t stride = c->filter->space->plan->model->stride;
    const size_t *alive = c->filter->alive + addition->first;
    for (size_t a = begin; a < end; a++)
        for (size_t k = 0; k < addition->count; k++)
            c->out[a * stride + alive[k]] += c->weight * addition->from[a * addition->count + k];
}

/* All labels of one kernel: some at a time where the operator takes the line itself, else one. */
static dcrf_status filter_precisely(struct dcrf_pair_filter *filter, const dcrf_operator *op,
                                    const struct dcrf_pair_shape *shape, const dcrf_levels *levels,
                                    const struct pack_context *context, dcrf_error *error) {
    const size_t n = filter->space->plan->model->variables;
    dcrf_workspace *workspace = filter->space->workspace;
    const size_t most = op->methods->line_double ? PRECISE_LABELS : 1;
    if (!filter->precise &&
        !(filter->precise = dcrf_allocate(n, (2 * PRECISE_CHANNELS + 1) * sizeof(double))))
        return dcrf_fail_memory(error, "the ordered filter in double");
    struct precise p = {.filter = filter,
                        .stride = context->stride,
                        .levels = levels,
                        .in = filter->precise,
                        .out = filter->precise + PRECISE_CHANNELS * n,
                        .sum = filter->precise + 2 * PRECISE_CHANNELS * n};
    for (size_t first = 0; first < filter->alive_count; first += most) {
        const size_t left = filter->alive_count - first, count = left < most ? left : most;
        const struct dcrf_line line = {.epsilon = shape->epsilon,
                                       .y = filter->packed + first,
                                       .channels = count,
                                       .stride = context->stride};
        if (dcrf_is_interrupted(filter->interrupt))
            return DCRF_STOP_CANCELLED;
        p.channel = first;
        const dcrf_status status =
            op->methods->line_double
                ? op->methods->line_double(op, workspace, &line, filter->precise, error)
                : filter_by_bins(&p, op, error);
        if (status < 0)
            return status;
        struct addition addition = {context, first, count,
                                    op->methods->line_double ? filter->precise : p.sum};
        dcrf_parallel_for(dcrf_workspace_pool(workspace), n, GRAIN, add_labels, &addition);
    }
    return DCRF_OK;
}

/* ---- in floats ------------------------------------------------------------------------------ */

/* The line itself where the operator can, else by bins. */
static dcrf_status filter_kernel(struct dcrf_pair_filter *filter, const dcrf_operator *op,
                                 double epsilon, const dcrf_levels *levels, size_t stride,
                                 dcrf_error *error) {
    dcrf_workspace *workspace = filter->space->workspace;
    const struct dcrf_line line = {.epsilon = epsilon,
                                   .y = filter->packed,
                                   .out = filter->filtered,
                                   .channels = filter->alive_count,
                                   .stride = stride};
    return op->methods->line
               ? op->methods->line(op, workspace, &line, error)
               : dcrf_operator_ordered(op, workspace, levels, filter->packed, filter->filtered,
                                       filter->alive_count, stride, error);
}

dcrf_status dcrf_pair_dual(struct dcrf_pair_filter *filter, const struct dcrf_pair_shape *shape,
                           const float *y, double threshold, struct dcrf_dual *dual,
                           dcrf_error *error) {
    const dcrf_plan *plan = filter->space->plan;
    const dcrf_model *model = plan->model;
    dcrf_pool *pool = dcrf_workspace_pool(filter->space->workspace);
    struct pack_context context = {.filter = filter, .y = y, .out = dual->pairwise};
    find_alive(&context, threshold);
    context.stride = dcrf_padded(filter->alive_count);
    dcrf_parallel_for(pool, model->variables, GRAIN, pack, &context);
    const dcrf_levels levels = find_levels(filter, shape);
    memset(dual->pairwise, 0, model->variables * model->stride * sizeof *dual->pairwise);
    dual->roundings.pairwise = dcrf_pair_roundings(plan, shape);
    for (size_t m = 0; m < plan->kernel_count && filter->alive_count > 0; m++) {
        const dcrf_operator *op = plan->kernels[m].op;
        context.weight = model->kernels[m].weight;
        if (context.weight == 0)
            continue;
        const dcrf_status status =
            shape->is_precise
                ? filter_precisely(filter, op, shape, &levels, &context, error)
                : filter_kernel(filter, op, shape->epsilon, &levels, context.stride, error);
        if (status != DCRF_OK)
            return status;
        if (!shape->is_precise)
            dcrf_parallel_for(pool, model->variables, GRAIN, unpack, &context);
    }
    return DCRF_OK;
}
