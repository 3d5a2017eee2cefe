/* The grid operator: a spatial kernel is a separable Gaussian convolution.
 *
 *   exp(-|f_a - f_b|^2 / 2) = prod_k g_k(a_k - b_k),   g_k(t) = exp(-(t spacing_k / sigma_k)^2 / 2)
 *
 * Each axis is convolved directly, with g_k truncated (filter/grid/grid_taps.h). The operator is
 * symmetric, has a unit diagonal, and is exact apart from the truncation. The grid is not extended
 * beyond its border, so rows near the border have smaller sums, as in the formula. */
#include "filter/grid/grid.h"
#include "core/error.h"
#include "core/memory.h"

#include <string.h>

/* ---- construction --------------------------------------------------------------------------- */

static void free_grid(dcrf_operator *base) {
    struct dcrf_grid_plan *op = (struct dcrf_grid_plan *)base;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        dcrf_release(op->taps[axis]);
    dcrf_release(op);
}

/* ---- the methods ---------------------------------------------------------------------------- */

/* Maximum number of channels convolved together; with more, tiles would get too narrow. Volumes
 * take fewer, since they need an intermediate pass through memory. */
#define MOST_TOGETHER 192
/* Variables per task. */

static dcrf_status apply(const dcrf_operator *base, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error) {
    const struct dcrf_grid_plan *op = (const struct dcrf_grid_plan *)base;
    const size_t padded = dcrf_padded(application->channels);
    const size_t most = op->shape.axes > 2 ? DCRF_DSP_WIDTH : MOST_TOGETHER;
    struct dcrf_grid_filter filter = {.op = op,
                                      .stride = application->stride,
                                      .factor = application->factor,
                                      .accumulate = application->accumulate};
    dcrf_status status = DCRF_OK;
    for (size_t channel = 0; channel < padded && status == DCRF_OK; channel += filter.width) {
        filter.width = padded - channel < most ? padded - channel : most;
        filter.in = application->in + channel;
        filter.out = application->out + channel;
        status = dcrf_grid_convolve(&filter, workspace, error);
    }
    return status;
}

/* Convolve the histograms of the single variables, then evaluate F bin by bin. */
static dcrf_status ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                           const struct dcrf_ordered *channel, dcrf_error *error) {
    const struct dcrf_grid_filter filter = {.op = (const struct dcrf_grid_plan *)base,
                                            .ordered = channel};
    memset(channel->out, 0, base->variables * sizeof *channel->out);
    return dcrf_grid_convolve(&filter, workspace, error);
}

/* Products and sums over the bins of a block, in four lanes or eight (dsp's `read`). */
#define BLOCK_ROUNDINGS (DCRF_DSP_WIDTH / 4 + 7)

/* 1 - fraction; the scale; along each axis the sums of pairs, their products, the sum and the
 * factor; the scale; interpolating F between two nodes (four); the sum over a block, and over the
 * blocks. */
static size_t ordered_roundings(const dcrf_operator *base, size_t bins, bool is_sign) {
    const struct dcrf_grid_plan *op = (const struct dcrf_grid_plan *)base;
    (void)is_sign;
    size_t roundings = 1 + 1 + 2 + 4 + BLOCK_ROUNDINGS + 2 + bins / DCRF_DSP_WIDTH;
    for (size_t axis = 0; axis < op->shape.axes; axis++)
        roundings += op->radius[axis] + 4;
    return roundings;
}

/* ---- the rest ------------------------------------------------------------------------------- */

struct squares {
    const float *scale; /* NULL: ones */
    float *out;
};

static void fill_squares(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct squares *squares = context;
    for (size_t a = begin; a < end; a++)
        squares->out[a] = squares->scale ? squares->scale[a] * squares->scale[a] : 1;
}

static dcrf_status diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                            dcrf_error *error) {
    (void)error;
    struct squares squares = {((const struct dcrf_grid_plan *)base)->scale, out};
    dcrf_parallel_rows(dcrf_workspace_pool(workspace), base->variables, fill_squares, &squares);
    return DCRF_OK;
}

/* All row sums away from the border are equal, so the scale should be the same there. This is
 * verified: if it is not, the inner part is left empty. */
static void find_inner(struct dcrf_grid_plan *op) {
    struct dcrf_grid_inner *inner = &op->inner;
    const size_t *size = op->shape.size;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        inner->begin[axis] = op->radius[axis];
        inner->end[axis] = size[axis] > op->radius[axis] ? size[axis] - op->radius[axis] : 0;
        if (inner->begin[axis] >= inner->end[axis])
            return;
    }
    const size_t *begin = inner->begin, *end = inner->end;
    inner->scale = op->scale[(begin[2] * size[1] + begin[1]) * size[0] + begin[0]];
    size_t others = 0;
    for (size_t z = begin[2]; z < end[2]; z++)
        for (size_t y = begin[1]; y < end[1]; y++)
            for (size_t x = begin[0]; x < end[0]; x++)
                others += op->scale[(z * size[1] + y) * size[0] + x] != inner->scale;
    if (others > 0)
        inner->end[0] = begin[0];
}

static dcrf_status rescale(dcrf_operator *base, dcrf_workspace *workspace, const float *scale,
                           dcrf_error *error) {
    (void)workspace;
    (void)error;
    struct dcrf_grid_plan *op = (struct dcrf_grid_plan *)base;
    op->scale = scale;
    find_inner(op);
    return DCRF_OK;
}

static const struct dcrf_operator_methods methods = {.kind = DCRF_OPERATOR_GRID,
                                                     .apply = apply,
                                                     .ordered = ordered,
                                                     .apply_double = dcrf_grid_apply_double,
                                                     .ordered_roundings = ordered_roundings,
                                                     .diagonal = diagonal,
                                                     .rescale = rescale,
                                                     .free = free_grid};

dcrf_status dcrf_grid_new(dcrf_operator **out, const struct dcrf_features *features,
                          dcrf_workspace *workspace, dcrf_error *error) {
    (void)workspace;
    *out = NULL;
    struct dcrf_grid_plan *op = dcrf_allocate_zero(1, sizeof *op);
    if (!op)
        return dcrf_fail_memory(error, "a grid operator");
    op->base.methods = &methods;
    op->base.variables = features->variables;
    op->base.bytes = sizeof *op;
    op->shape = features->grid;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        const bool has_axis = axis < op->shape.axes;
        const double factor = has_axis ? features->axis_factor[axis] : 1;
        if (has_axis)
            op->radius[axis] = dcrf_grid_radius(factor, op->shape.size[axis], op->shape.axes);
        op->taps[axis] = dcrf_allocate(op->radius[axis] + 1, sizeof(float));
        if (!op->taps[axis]) {
            free_grid(&op->base);
            return dcrf_fail_memory(error, "a grid operator");
        }
        for (size_t k = 0; k <= op->radius[axis]; k++)
            op->taps[axis][k] = (float)dcrf_grid_tap(factor, (double)k);
        op->base.bytes += (op->radius[axis] + 1) * sizeof(float);
    }
    *out = &op->base;
    return DCRF_OK;
}
