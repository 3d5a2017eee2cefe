/* The grid operator in double, for rigorous bounds: the same plan and matrix as in grid.c, with
 * plain loops. */
#include "core/error.h"
#include "filter/grid/grid.h"

/* Variables per task. */
#define USUAL_ROWS 1024

struct double_pass {
    const struct dcrf_grid_plan *op;
    size_t axis, inner, length;
    const double *in;
    double *out;
    size_t channels;
};

/* Channels whose sums are kept in registers. */
#define CHANNELS 8

/* Compute `channels` channels of one output variable, along one axis; `in` is at its position.
 * Returns their number. */
static inline __attribute__((always_inline)) size_t sum_taps(const float *taps, size_t before,
                                                             size_t after, const double *in,
                                                             size_t step, double *out,
                                                             size_t channels) {
    double sum[CHANNELS] = {0};
    in -= before * step;
    for (size_t i = before; i > 0; i--, in += step)
        for (size_t c = 0; c < channels; c++)
            sum[c] += (double)taps[i] * in[c];
    for (size_t i = 0; i <= after; i++, in += step)
        for (size_t c = 0; c < channels; c++)
            sum[c] += (double)taps[i] * in[c];
    for (size_t c = 0; c < channels; c++)
        out[c] = sum[c];
    return channels;
}

/* The same for at most CHANNELS of `left` channels, in constant numbers. */
static size_t sum_some_taps(const float *taps, size_t before, size_t after, const double *in,
                            size_t step, double *out, size_t left) {
    switch (left) {
    case 1:
        return sum_taps(taps, before, after, in, step, out, 1);
    case 2:
        return sum_taps(taps, before, after, in, step, out, 2);
    case 3:
        return sum_taps(taps, before, after, in, step, out, 3);
    case 4:
        return sum_taps(taps, before, after, in, step, out, 4);
    case 5:
        return sum_taps(taps, before, after, in, step, out, 5);
    case 6:
        return sum_taps(taps, before, after, in, step, out, 6);
    case 7:
        return sum_taps(taps, before, after, in, step, out, 7);
    default:
        return sum_taps(taps, before, after, in, step, out, CHANNELS);
    }
}

static void convolve_double(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct double_pass *pass = context;
    const size_t radius = pass->op->radius[pass->axis], step = pass->inner * pass->channels;
    const float *taps = pass->op->taps[pass->axis];
    for (size_t a = begin; a < end; a++) {
        const size_t at = a / pass->inner % pass->length;
        const size_t before = at < radius ? at : radius;
        const size_t after = pass->length - 1 - at < radius ? pass->length - 1 - at : radius;
        const double *in = pass->in + a * pass->channels;
        double *out = pass->out + a * pass->channels;
        for (size_t c = 0; c < pass->channels;)
            c += sum_some_taps(taps, before, after, in + c, step, out + c, pass->channels - c);
    }
}

/* out = scale * in, row by row */
static void scale_double(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct double_pass *pass = context;
    const float *scale = pass->op->scale;
    for (size_t a = begin; a < end; a++)
        for (size_t k = a * pass->channels; k < (a + 1) * pass->channels; k++)
            pass->out[k] = pass->in[k] * (scale ? (double)scale[a] : 1.0);
}

dcrf_status dcrf_grid_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                   const double *in, double *out, size_t channels,
                                   dcrf_error *error) {
    const struct dcrf_grid_plan *op = (const struct dcrf_grid_plan *)base;
    double *buffer = dcrf_workspace_slot(workspace, &dcrf_operator_slot, base->variables,
                                         channels * sizeof *buffer);
    if (!buffer)
        return dcrf_fail_memory(error, "a grid convolution");
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    const size_t grain = dcrf_even_grain(base->variables, USUAL_ROWS);
    struct double_pass pass = {.op = op, .inner = 1, .in = in, .out = out, .channels = channels};
    dcrf_parallel_rows(pool, base->variables, scale_double, &pass);
    pass.in = out;
    pass.out = buffer;
    for (size_t axis = 0; axis < op->shape.axes; axis++) {
        pass.axis = axis;
        pass.length = op->shape.size[axis];
        if (!dcrf_parallel_while(workspace, base->variables, grain, convolve_double, &pass))
            return dcrf_fail_interrupted(workspace, "filtering by a grid", error);
        pass.inner *= pass.length;
        pass.in = pass.out;
        pass.out = pass.out == buffer ? out : buffer;
    }
    pass.out = out;
    dcrf_parallel_rows(pool, base->variables, scale_double, &pass);
    return DCRF_OK;
}
