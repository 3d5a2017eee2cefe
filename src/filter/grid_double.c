/* The grid operator in double, for proofs: the same plan and the same matrix as in grid.c, by plain
 * loops. */
#include "core/error.h"
#include "filter/grid.h"

/* Variables a task takes. */
#define GRAIN 1024

struct double_pass {
    const struct dcrf_grid_plan *op;
    size_t axis, inner, length;
    const double *in;
    double *out;
    size_t channels;
};

/* One output variable after the other, along one axis. */
static void convolve_double(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct double_pass *pass = context;
    const size_t radius = pass->op->radius[pass->axis], step = pass->inner * pass->channels;
    const float *taps = pass->op->taps[pass->axis];
    for (size_t a = begin; a < end; a++) {
        const size_t at = a / pass->inner % pass->length;
        const size_t first = at < radius ? 0 : at - radius;
        const size_t last = at + radius < pass->length ? at + radius : pass->length - 1;
        const double *in = pass->in + a * pass->channels - (at - first) * step;
        double *out = pass->out + a * pass->channels;
        for (size_t c = 0; c < pass->channels; c++)
            out[c] = 0;
        for (size_t i = first; i <= last; i++, in += step) {
            const double weight = (double)taps[i < at ? at - i : i - at];
            for (size_t c = 0; c < pass->channels; c++)
                out[c] += weight * in[c];
        }
    }
}

static void scale_double(const struct dcrf_grid_plan *op, const double *in, double *out,
                         size_t channels) {
    for (size_t a = 0; a < op->base.variables; a++)
        for (size_t c = 0; c < channels; c++)
            out[a * channels + c] = in[a * channels + c] * (op->scale ? (double)op->scale[a] : 1.0);
}

dcrf_status dcrf_grid_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                   const double *in, double *out, size_t channels,
                                   dcrf_error *error) {
    const struct dcrf_grid_plan *op = (const struct dcrf_grid_plan *)base;
    double *buffer = dcrf_workspace_slot(workspace, &dcrf_operator_slot, base->variables,
                                         channels * sizeof *buffer);
    if (!buffer)
        return dcrf_fail_memory(error, "a grid convolution");
    scale_double(op, in, out, channels);
    struct double_pass pass = {
        .op = op, .inner = 1, .in = out, .out = buffer, .channels = channels};
    for (size_t axis = 0; axis < op->shape.axes; axis++) {
        pass.axis = axis;
        pass.length = op->shape.size[axis];
        dcrf_parallel_for(dcrf_workspace_pool(workspace), base->variables, GRAIN, convolve_double,
                          &pass);
        pass.inner *= pass.length;
        pass.in = pass.out;
        pass.out = pass.out == buffer ? out : buffer;
    }
    scale_double(op, pass.in, out, channels);
    return DCRF_OK;
}
