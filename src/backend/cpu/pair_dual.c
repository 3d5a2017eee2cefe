/* From marginals to a dual point, through the ordered filter.
 *
 *   (A alpha)_ai = sum_m w_m sum_b k_m(a, b) F(y_ai, y_bi),   F antisymmetric, |F| <= 1,
 *
 * is feasible for every y. With F = sign it is the conditional gradient of the paper; with F =
 * clip((y_b - y_a) / epsilon) minus the gradient of the Huber-smoothed pairwise term. */
#include "backend/cpu/pair_dual.h"

#include "core/error.h"
#include "core/memory.h"
#include "energy/energy.h"

#include <math.h>
#include <string.h>

/* Rows per chunk where each chunk has a result. */
#define USUAL_ROWS 1024

/* The workspace's memory, which others use between two points. */
static bool take_blocks(struct dcrf_pair_filter *filter) {
    const struct dcrf_dual_space *space = filter->space;
    const size_t row = filter->stride * sizeof(float);
    filter->packed =
        dcrf_workspace_slot(space->workspace, &dcrf_energy_slot, space->variables, row);
    filter->filtered =
        dcrf_workspace_slot(space->workspace, &dcrf_filtered_slot, space->variables, row);
    return filter->packed && filter->filtered;
}

dcrf_status dcrf_pair_filter_init(struct dcrf_pair_filter *filter,
                                  const struct dcrf_dual_space *space, dcrf_error *error) {
    const size_t n = space->variables;
    const size_t grain = dcrf_even_grain(n, USUAL_ROWS), chunks = (n + grain - 1) / grain;
    const bool has_cuts = !dcrf_columns_are_labels(space->columns);
    const size_t most = has_cuts ? space->columns->most : space->stride;
    *filter =
        (struct dcrf_pair_filter){.space = space, .stride = dcrf_padded(most), .grain = grain};
    if (has_cuts)
        filter->columns = dcrf_allocate(n, filter->stride * sizeof(float));
    filter->alive = dcrf_allocate(most, sizeof *filter->alive);
    filter->largest = dcrf_allocate(chunks, 2 * most * sizeof(float));
    filter->nodes = dcrf_allocate(DCRF_MAX_BINS, sizeof(float));
    filter->table = dcrf_allocate(DCRF_MAX_BINS, DCRF_MAX_BINS * sizeof(float));
    if (take_blocks(filter) && (filter->columns || !has_cuts) && filter->alive && filter->largest &&
        filter->nodes && filter->table)
        return DCRF_OK;
    dcrf_pair_filter_clear(filter);
    return dcrf_fail_memory(error, "the ordered filter");
}

void dcrf_pair_filter_clear(struct dcrf_pair_filter *filter) {
    dcrf_release(filter->columns);
    dcrf_release(filter->alive);
    dcrf_release(filter->largest);
    dcrf_release(filter->nodes);
    dcrf_release(filter->table);
    dcrf_release(filter->precise);
    *filter = (struct dcrf_pair_filter){0};
}

/* ---- live columns --------------------------------------------------------------------------- */

struct pack_context {
    struct dcrf_pair_filter *filter;
    const struct dcrf_column_group *group; /* being filtered */
    const float *y;                        /* its columns, rows y_stride apart */
    size_t y_stride, columns;
    size_t stride; /* of the packed blocks */
    double weight;
    double *out;
};

struct column_pass {
    const struct dcrf_pair_filter *filter;
    const struct dcrf_cuts *cuts;
    const float *y;
    size_t stride; /* of the columns */
};

static void fill_columns(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct column_pass *pass = context;
    const size_t stride = pass->filter->space->stride;
    for (size_t a = begin; a < end; a++)
        dcrf_cuts_columns(pass->cuts, pass->y + a * stride,
                          pass->filter->columns + a * pass->stride);
}

/* The columns of a group of kernels. */
static void choose_columns(struct pack_context *context, const float *y) {
    const struct dcrf_pair_filter *filter = context->filter;
    context->y = y;
    context->y_stride = filter->space->stride;
    context->columns = filter->space->labels;
    if (!context->group->cuts)
        return;
    context->columns = context->group->count;
    struct column_pass pass = {filter, context->group->cuts, y, dcrf_padded(context->group->count)};
    dcrf_parallel_rows(dcrf_workspace_pool(filter->space->workspace), filter->space->variables,
                       fill_columns, &pass);
    context->y = filter->columns;
    context->y_stride = pass.stride;
}

/* The range of a column's entries; for labels the range includes 0, since they are 0 nearly
 * everywhere. */
static void find_largest(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct pack_context *c = context;
    const size_t columns = c->columns;
    float *largest = c->filter->largest + 2 * (begin / c->filter->grain) * columns;
    float *smallest = largest + columns;
    for (size_t i = 0; i < columns; i++) {
        largest[i] = 0;
        smallest[i] = c->group->cuts ? 1 : 0;
    }
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < columns; i++) {
            const float value = c->y[a * c->y_stride + i];
            largest[i] = value > largest[i] ? value : largest[i];
            smallest[i] = value < smallest[i] ? value : smallest[i];
        }
}

static bool is_alive(const struct pack_context *context, size_t column, double threshold) {
    const size_t n = context->filter->space->plan->model->variables;
    const size_t columns = context->columns;
    float largest = 0, smallest = context->group->cuts ? 1 : 0;
    for (size_t chunk = 0; chunk * context->filter->grain < n; chunk++) {
        const float *range = context->filter->largest + 2 * chunk * columns;
        largest = range[column] > largest ? range[column] : largest;
        smallest = range[columns + column] < smallest ? range[columns + column] : smallest;
    }
    return (double)largest - (double)smallest > threshold;
}

static void find_alive(struct pack_context *context, double threshold) {
    struct dcrf_pair_filter *filter = context->filter;
    dcrf_parallel_for(dcrf_workspace_pool(filter->space->workspace),
                      filter->space->plan->model->variables, filter->grain, find_largest, context);
    filter->alive_count = 0;
    for (size_t i = 0; i < context->columns; i++)
        if (is_alive(context, i, threshold))
            filter->alive[filter->alive_count++] = i;
}

void dcrf_pair_find_live(struct dcrf_pair_filter *filter, const float *y, double threshold) {
    static const struct dcrf_column_group labels = {0};
    struct pack_context context = {.filter = filter, .group = &labels};
    choose_columns(&context, y);
    find_alive(&context, threshold);
    if (!take_blocks(filter)) /* no room to filter any */
        filter->alive_count = 0;
}

static void pack(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct pack_context *c = context;
    for (size_t a = begin; a < end; a++) {
        float *row = c->filter->packed + a * c->stride;
        for (size_t k = 0; k < c->stride; k++)
            row[k] = k < c->filter->alive_count ? c->y[a * c->y_stride + c->filter->alive[k]] : 0;
    }
}

/* Adds numbers to the point: `from` holds those of `count` live columns, starting with live column
 * `first`. */
struct addition {
    const struct pack_context *context;
    size_t first, count;
    const double *from; /* rows of `count`; NULL: the result filtered in floats */
};

static void add_labels(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct addition *addition = context;
    const struct pack_context *c = addition->context;
    const size_t stride = c->filter->space->stride;
    const size_t *alive = c->filter->alive + addition->first;
    for (size_t a = begin; a < end; a++) {
        double *out = c->out + a * stride;
        if (c->filter->is_blank)
            memset(out, 0, stride * sizeof *out);
        if (addition->from)
            for (size_t k = 0; k < addition->count; k++)
                out[alive[k]] += c->weight * addition->from[a * addition->count + k];
        else
            for (size_t k = 0; k < addition->count; k++)
                out[alive[k]] += c->weight * (double)c->filter->filtered[a * c->stride + k];
    }
}

/* Cuts that are not included are zero and add nothing. */
static void add_cuts(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct addition *addition = context;
    const struct pack_context *c = addition->context;
    const size_t stride = c->filter->space->stride;
    const size_t *alive = c->filter->alive + addition->first;
    double values[DCRF_CUTS_MOST];
    memset(values, 0, c->group->count * sizeof *values);
    for (size_t a = begin; a < end; a++) {
        for (size_t k = 0; k < addition->count; k++)
            values[alive[k]] = addition->from ? addition->from[a * addition->count + k]
                                              : (double)c->filter->filtered[a * c->stride + k];
        if (c->filter->is_blank)
            memset(c->out + a * stride, 0, stride * sizeof *c->out);
        dcrf_cuts_add(c->group->cuts, c->weight, values, c->out + a * stride);
    }
}

static void add_columns(struct addition *addition) {
    struct dcrf_pair_filter *filter = addition->context->filter;
    const struct dcrf_dual_space *space = filter->space;
    dcrf_parallel_rows(dcrf_workspace_pool(space->workspace), space->plan->model->variables,
                       addition->context->group->cuts ? add_cuts : add_labels, addition);
    filter->is_blank = false;
}

/* ---- the filter ----------------------------------------------------------------------------- */

static dcrf_levels find_levels(struct dcrf_pair_filter *filter,
                               const struct dcrf_pair_shape *shape) {
    dcrf_pair_fill_levels(shape, filter->nodes, filter->table);
    return (dcrf_levels){shape->bins, filter->nodes, shape->epsilon == 0 ? NULL : filter->table};
}

/* ---- in double ------------------------------------------------------------------------------ */

/* Bins per application of the operator. */
#define PRECISE_CHANNELS 8
/* Two blocks for an application, and what is kept of a label, per variable. */
#define PRECISE_BYTES ((2 * PRECISE_CHANNELS + 2) * sizeof(double) + sizeof(uint8_t))
/* Labels per application: they take the memory of two such blocks. */
#define PRECISE_LABELS (2 * PRECISE_CHANNELS)

/* The label being filtered: with w_a(h) the hat functions of the nodes at y_a, compute K w(h) for
 * some nodes at a time, and from it sum_h F(y_a, node h) (K w(h))_a. Hats that are zero everywhere
 * are left out: most labels have few values but 0 and 1, or nothing near 1. */
struct precise {
    const struct dcrf_pair_filter *filter;
    size_t channel, stride; /* of the packed block */
    const dcrf_levels *levels;
    size_t first, count; /* current nodes, among those in use */
    double *in, *out;    /* variables x count */
    double *sum;         /* per variable */
    double *part;        /* per variable: the weight of the upper node */
    uint8_t *node;       /* per variable: the lower node, then its number among those in use */
    size_t used;
    uint8_t number[DCRF_MAX_BINS]; /* of a node in use */
    uint8_t used_node[DCRF_MAX_BINS];
};

/* The lower node of y, and the weight of the upper one. The weight is computed in floats, as
 * everywhere else. */
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

static void find_nodes(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct precise *p = context;
    for (size_t a = begin; a < end; a++)
        p->node[a] = (uint8_t)find_node(p->filter->packed[a * p->stride + p->channel],
                                        p->levels->count, &p->part[a]);
}

static void number_nodes(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct precise *p = context;
    for (size_t a = begin; a < end; a++)
        p->node[a] = p->number[p->node[a]];
}

static void find_used_nodes(struct precise *p, size_t variables, dcrf_pool *pool) {
    bool is_used[DCRF_MAX_BINS + 1] = {false};
    dcrf_parallel_rows(pool, variables, find_nodes, p);
    for (size_t a = 0; a < variables; a++)
        is_used[p->node[a]] = is_used[(size_t)p->node[a] + (p->part[a] > 0)] = true;
    p->used = 0;
    for (size_t h = 0; h < p->levels->count; h++) {
        p->number[h] = (uint8_t)p->used;
        p->used_node[p->used] = (uint8_t)h;
        p->used += is_used[h];
    }
    dcrf_parallel_rows(pool, variables, number_nodes, p);
}

static void fill_hats(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct precise *p = context;
    for (size_t a = begin; a < end; a++) {
        const size_t low = p->node[a] - p->first, high = low + 1; /* far above if below first */
        double *in = p->in + a * p->count;
        memset(in, 0, p->count * sizeof *in);
        if (low < p->count)
            in[low] = 1 - p->part[a];
        if (high < p->count && p->part[a] > 0)
            in[high] = p->part[a];
    }
}

static void add_flows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct precise *p = context;
    for (size_t a = begin; a < end; a++) {
        const size_t node = p->used_node[p->node[a]];
        const float *low = p->levels->table + node * p->levels->count;
        const float *high = p->part[a] > 0 ? low + p->levels->count : low;
        const double *out = p->out + a * p->count, part = p->part[a];
        double sum = 0;
        for (size_t h = 0; h < p->count; h++) {
            const size_t k = p->used_node[p->first + h];
            sum += ((1 - part) * (double)low[k] + part * (double)high[k]) * out[h];
        }
        p->sum[a] = p->first == 0 ? sum : p->sum[a] + sum;
    }
}

static dcrf_status filter_by_bins(struct precise *p, const dcrf_operator *op, dcrf_error *error) {
    const struct dcrf_dual_space *space = p->filter->space;
    const size_t n = space->plan->model->variables;
    dcrf_pool *pool = dcrf_workspace_pool(space->workspace);
    find_used_nodes(p, n, pool);
    for (p->first = 0; p->first < p->used; p->first += p->count) {
        const size_t left = p->used - p->first;
        p->count = left < PRECISE_CHANNELS ? left : PRECISE_CHANNELS;
        dcrf_parallel_rows(pool, n, fill_hats, p);
        const dcrf_status status =
            op->methods->apply_double(op, space->workspace, p->in, p->out, p->count, error);
        if (status < 0)
            return status;
        dcrf_parallel_rows(pool, n, add_flows, p);
    }
    return DCRF_OK;
}

/* All columns of one kernel: several at a time if the operator has `line_double`, otherwise one by
 * one. */
static dcrf_status filter_precisely(struct dcrf_pair_filter *filter, const dcrf_operator *op,
                                    const struct dcrf_pair_shape *shape, const dcrf_levels *levels,
                                    const struct pack_context *context, dcrf_error *error) {
    const size_t n = filter->space->plan->model->variables;
    dcrf_workspace *workspace = filter->space->workspace;
    const size_t most = op->methods->line_double ? PRECISE_LABELS : 1;
    if (!filter->precise && !(filter->precise = dcrf_allocate(n, PRECISE_BYTES)))
        return dcrf_fail_memory(error, "the ordered filter in double");
    struct precise p = {.filter = filter,
                        .stride = context->stride,
                        .levels = levels,
                        .in = filter->precise,
                        .out = filter->precise + PRECISE_CHANNELS * n,
                        .sum = filter->precise + 2 * PRECISE_CHANNELS * n,
                        .part = filter->precise + (2 * PRECISE_CHANNELS + 1) * n};
    p.node = (uint8_t *)(p.part + n);
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
        add_columns(&addition);
    }
    return DCRF_OK;
}

/* ---- in floats ------------------------------------------------------------------------------ */

/* With the operator's `line` method if it has one, otherwise by bins. */
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
                                       op->variables * stride, filter->alive_count, stride, error);
}

/* The kernels of one group, whose columns are packed. */
static dcrf_status filter_group(struct pack_context *context, const struct dcrf_pair_shape *shape,
                                const dcrf_levels *levels, size_t group, dcrf_error *error) {
    struct dcrf_pair_filter *filter = context->filter;
    const dcrf_plan *plan = filter->space->plan;
    for (size_t m = 0; m < plan->kernel_count && filter->alive_count > 0; m++) {
        const dcrf_operator *op = plan->kernels[m].op;
        if (filter->space->columns->group_of[m] != group)
            continue;
        context->weight = plan->model->kernels[m].weight;
        const dcrf_status status =
            shape->is_precise
                ? filter_precisely(filter, op, shape, levels, context, error)
                : filter_kernel(filter, op, shape->epsilon, levels, context->stride, error);
        if (status != DCRF_OK)
            return status;
        struct addition addition = {context, 0, filter->alive_count, NULL};
        if (!shape->is_precise)
            add_columns(&addition);
    }
    return DCRF_OK;
}

dcrf_status dcrf_pair_dual(struct dcrf_pair_filter *filter, const struct dcrf_pair_shape *shape,
                           const float *y, double threshold, struct dcrf_dual *dual,
                           dcrf_error *error) {
    const struct dcrf_dual_space *space = filter->space;
    dcrf_pool *pool = dcrf_workspace_pool(space->workspace);
    const dcrf_levels levels = find_levels(filter, shape);
    if (!take_blocks(filter))
        return dcrf_fail_memory(error, "the ordered filter");
    filter->is_blank = true;
    dual->roundings.pairwise = dcrf_pair_roundings(space, shape);
    dcrf_status status = DCRF_OK;
    for (size_t g = 0; g < space->columns->group_count && status == DCRF_OK; g++) {
        struct pack_context context = {
            .filter = filter, .group = &space->columns->groups[g], .out = dual->pairwise};
        choose_columns(&context, y);
        find_alive(&context, threshold);
        context.stride = dcrf_padded(filter->alive_count);
        dcrf_parallel_rows(pool, space->variables, pack, &context);
        status = filter_group(&context, shape, &levels, g, error);
    }
    if (filter->is_blank)
        dcrf_parallel_clear(pool, dual->pairwise,
                            space->variables * space->stride * sizeof *dual->pairwise);
    return status;
}
