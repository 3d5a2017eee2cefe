/* From marginals to a dual point, through the ordered filter.
 *
 *   (A alpha)_ai = sum_m w_m sum_b k_m(a, b) F(y_ai, y_bi),   F antisymmetric, |F| <= 1,
 *
 * is feasible for every y. With F = sign it is the conditional gradient of the paper; with F =
 * clip((y_b - y_a) / epsilon) minus the gradient of the Huber-smoothed pairwise term. */
#include "solver/pair_dual.h"

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
    *filter = (struct dcrf_pair_filter){0};
}

/* ---- labels that are alive ------------------------------------------------------------------ */

struct pack_context {
    struct dcrf_pair_filter *filter;
    const float *y;
    size_t stride; /* of the packed blocks */
    float weight;
    bool is_first;
    float *out;
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
        float *out = c->out + a * stride;
        const float *row = c->filter->filtered + a * c->stride;
        if (c->is_first)
            memset(out, 0, stride * sizeof *out);
        for (size_t k = 0; k < c->filter->alive_count; k++)
            out[c->filter->alive[k]] += c->weight * row[k];
    }
}

/* ---- the filter ----------------------------------------------------------------------------- */

static dcrf_levels make_levels(struct dcrf_pair_filter *filter,
                               const struct dcrf_pair_shape *shape) {
    float *nodes = filter->nodes, *table = filter->table;
    const size_t bins = shape->bins;
    if (shape->epsilon == 0) {
        /* Thresholds between the nodes: one less than there are bins. */
        for (size_t h = 0; h + 1 < bins; h++)
            nodes[h] = ((float)h + 0.5f) / (float)(bins - 1);
        return (dcrf_levels){bins, nodes, NULL};
    }
    const float inverse = (float)(1 / shape->epsilon);
    for (size_t h = 0; h < bins; h++)
        nodes[h] = (float)h / (float)(bins - 1);
    for (size_t h = 0; h < bins; h++)
        for (size_t k = 0; k < bins; k++)
            table[h * bins + k] = fmaxf(-1, fminf(1, (nodes[k] - nodes[h]) * inverse));
    return (dcrf_levels){bins, nodes, table};
}

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
    struct pack_context context = {
        .filter = filter, .y = y, .is_first = true, .out = dual->pairwise};
    find_alive(&context, threshold);
    context.stride = dcrf_padded(filter->alive_count);
    dcrf_parallel_for(pool, model->variables, GRAIN, pack, &context);
    const dcrf_levels levels = make_levels(filter, shape);
    dual->pairwise_roundings = 0;
    size_t used = 0;
    for (size_t m = 0; m < plan->kernel_count && filter->alive_count > 0; m++) {
        if (model->kernels[m].weight == 0)
            continue;
        const dcrf_operator *op = plan->kernels[m].op;
        const dcrf_status status =
            filter_kernel(filter, op, shape->epsilon, &levels, context.stride, error);
        if (status < 0)
            return status;
        context.weight = (float)model->kernels[m].weight;
        dcrf_parallel_for(pool, model->variables, GRAIN, unpack, &context);
        context.is_first = false;
        used++;
        const size_t roundings = op->methods->line
                                     ? op->methods->line_roundings(op)
                                     : op->methods->ordered_roundings(op, shape->bins);
        dual->pairwise_roundings = fmax(dual->pairwise_roundings, (double)roundings);
    }
    if (context.is_first)
        memset(dual->pairwise, 0, model->variables * model->stride * sizeof(float));
    /* The weight, the product with it, and the sum over the kernels. */
    dual->pairwise_roundings += 2 + (double)used;
    return DCRF_OK;
}
