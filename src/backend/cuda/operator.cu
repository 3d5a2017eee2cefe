/* Common to all kinds of operators: copies of host arrays around apply_on_device, features, and the
 * method table that libdcrf looks up. */
#include "backend/cuda/arrays.cuh"
#include "backend/cuda/compat.cuh"
#include "backend/cuda/flow.cuh"
#include "backend/cuda/iterate.cuh"
#include "backend/cuda/lp.cuh"
#include "backend/cuda/moves.cuh"

#include <cstdlib>

/* ---- host arrays ---------------------------------------------------------------------------- */

static dcrf_status need_blocks(struct device_operator *op, size_t stride, dcrf_error *error) {
    const size_t floats = op->base.variables * stride;
    if (floats <= op->block_floats)
        return DCRF_OK;
    device_release(op->device, op->in);
    device_release(op->device, op->out);
    op->in = op->out = nullptr;
    op->block_floats = 0;
    TRY(device_array(op->device, &op->in, floats, "the input of a filter", error));
    TRY(device_array(op->device, &op->out, floats, "the output of a filter", error));
    /* No kernel writes the padding of rows, but it is copied to the host: any value will do, as
     * long as it is deterministic. */
    TRY(check(cudaMemsetAsync(op->out, 0, floats * sizeof(float), op->device->stream),
              "the output of a filter", error));
    op->block_floats = floats;
    return DCRF_OK;
}

dcrf_status operator_upload(struct device_operator *op, const float *in, size_t stride,
                            dcrf_error *error) {
    TRY(device_enter(op->device, error));
    TRY(need_blocks(op, stride, error));
    return !in ? DCRF_OK
               : device_upload(op->device, op->in, in, op->base.variables * stride * sizeof(float),
                               error);
}

dcrf_status operator_download(struct device_operator *op, float *out, size_t stride,
                              dcrf_error *error) {
    return device_download(op->device, out, op->out, op->base.variables * stride * sizeof(float),
                           error);
}

dcrf_status operator_apply(const dcrf_operator *base, dcrf_workspace *workspace,
                           const struct dcrf_application *application, dcrf_error *error) {
    (void)workspace;
    struct device_operator *op = (struct device_operator *)base;
    const device_turn turn(op->device);
    struct dcrf_application inner = *application;
    size_t in_index, out_index;
    TRY(array_find(application->in, &in_index, error));
    TRY(array_find(application->out, &out_index, error));
    if (in_index == op->device->index && out_index == in_index) {
        TRY(device_enter(op->device, error));
        return op->apply_on_device(op, application, error);
    }
    if (in_index != SIZE_MAX || out_index != SIZE_MAX)
        return fail(error, DCRF_ERROR_ARGUMENT,
                    "the input and the output of a filter must both be the host's or both be on "
                    "cuda:%zu",
                    op->device->index);
    TRY(operator_upload(op, application->in, application->stride, error));
    if (application->accumulate)
        TRY(device_upload(op->device, op->out, application->out,
                          base->variables * application->stride * sizeof(float), error));
    inner.in = op->in;
    inner.out = op->out;
    TRY(op->apply_on_device(op, &inner, error));
    return operator_download(op, application->out, application->stride, error);
}

dcrf_status operator_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                  const double *in, double *out, size_t channels,
                                  dcrf_error *error) {
    (void)workspace;
    struct device_operator *op = (struct device_operator *)base;
    dcrf_backend_device *device = op->device;
    const device_turn turn(device);
    const size_t numbers = base->variables * channels;
    scratch<double> block(device);
    TRY(device_enter(device, error));
    TRY(block.take(2 * numbers, "an operator in double", error));
    TRY(device_upload(device, block, in, numbers * sizeof *in, error));
    TRY(op->apply_double_on_device(op, block, block + numbers, channels, error));
    return device_download(device, out, block + numbers, numbers * sizeof *out, error);
}

/* Uses the blocks of the first operator. */
static dcrf_status operators_sum(dcrf_operator *const *operators, const float *factors,
                                 size_t count, const float *in, float *out, size_t channels,
                                 size_t stride, dcrf_error *error) {
    struct device_operator *first = reinterpret_cast<struct device_operator *>(operators[0]);
    const device_turn turn(first->device);
    TRY(operator_upload(first, in, stride, error));
    for (size_t k = 0; k < count; k++) {
        struct device_operator *op = reinterpret_cast<struct device_operator *>(operators[k]);
        const struct dcrf_application application = {
            DCRF_SYMMETRIC, first->in, first->out, channels, stride, factors[k], k > 0};
        TRY(op->apply_on_device(op, &application, error));
    }
    return operator_download(first, out, stride, error);
}

void operator_clear(struct device_operator *op) {
    device_release(op->device, op->scales);
    device_release(op->device, op->in);
    device_release(op->device, op->out);
    device_drop(op->device);
}

/* ---- features ------------------------------------------------------------------------------- */

struct feature_layout {
    size_t variables, picture_variables, axes, channels;
    dcrf_grid grid;
    size_t origin[DCRF_MAX_AXES];
    double axis_factor[DCRF_MAX_AXES];
    double channel_factor[DCRF_MAX_FEATURES];
    const dcrf_view *views; /* of the channels, one per picture */
    bool is_single;
    float divisor[DCRF_MAX_FEATURES];
};

/* As dcrf_features_row: multiplied in double, then rounded; or rounded, then divided. */
static __device__ float make_feature(const feature_layout &layout, double value, double factor,
                                     size_t i) {
    return layout.is_single ? __fdiv_rn((float)value, layout.divisor[i]) : (float)(value * factor);
}

static __global__ void make_rows(feature_layout layout, float *rows, unsigned *has_wrong) {
    const size_t a = this_thread();
    if (a >= layout.variables)
        return;
    float *row = rows + a * (layout.axes + layout.channels);
    size_t rest = a % layout.picture_variables;
    for (size_t axis = 0; axis < layout.axes; axis++) {
        const double at = (double)(layout.origin[axis] + rest % layout.grid.size[axis]);
        row[axis] = make_feature(layout, layout.is_single ? at * layout.grid.spacing[axis] : at,
                                 layout.axis_factor[axis], axis);
        rest /= layout.grid.size[axis];
    }
    if (layout.channels == 0)
        return;
    dcrf_view view;
    const char *channel = view_row(layout.views, layout.picture_variables, layout.grid, a, view);
    for (size_t c = 0; c < layout.channels; c++) {
        const double value = view_element(channel + (ptrdiff_t)c * view.channel_stride, view.type);
        const float feature =
            make_feature(layout, value, layout.channel_factor[c], layout.axes + c);
        row[layout.axes + c] = feature;
        if (has_wrong && !isfinite(feature))
            *has_wrong = 1;
    }
}

/* Channels read by libdcrf have been checked already; those given by the caller have not. */
static dcrf_status check_rows(dcrf_backend_device *device, const unsigned *has_wrong,
                              dcrf_error *error) {
    unsigned found = 0;
    TRY(device_download(device, &found, has_wrong, sizeof found, error));
    if (!found)
        return DCRF_OK;
    return fail(error, DCRF_ERROR_NOT_FINITE,
                "the image of a kernel holds a number that is not finite");
}

dcrf_status features_upload(dcrf_backend_device *device, const struct dcrf_features *features,
                            size_t zero_rows, float **rows, dcrf_error *error) {
    const char *what = "features";
    const size_t floats = features->variables * features->dimension,
                 zeros = zero_rows * features->dimension;
    feature_layout layout = {};
    layout.variables = features->variables;
    layout.picture_variables = features->variables / features->pictures;
    layout.axes = features->axes;
    layout.channels = features->channels;
    layout.grid = features->grid;
    layout.is_single = features->is_single;
    for (size_t i = 0; i < features->dimension; i++)
        layout.divisor[i] = features->divisor[i];
    for (size_t axis = 0; axis < features->axes; axis++) {
        layout.origin[axis] = features->origin[axis];
        layout.axis_factor[axis] = features->axis_factor[axis];
    }
    for (size_t c = 0; c < features->channels; c++)
        layout.channel_factor[c] = features->channel_factor[c];
    dcrf_view view = {features->channel, DCRF_F32, features->channels, {}, sizeof(float)};
    if (features->channel_in_double)
        view = {features->channel_in_double, DCRF_F64, features->channels, {}, sizeof(double)};
    ptrdiff_t step = (ptrdiff_t)features->channels * view.channel_stride;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        view.stride[axis] = step;
        step *= (ptrdiff_t)features->grid.size[axis];
    }
    struct views_on_device<dcrf_view> uploaded(device);
    scratch<float> made(device);
    scratch<unsigned> has_wrong(device);
    *rows = nullptr;
    TRY(made.take(floats + zeros, what, error));
    if (zeros > 0)
        TRY(device_clear(device, made + floats, zeros, what, error));
    if (features->channels > 0)
        TRY(views_upload(&uploaded, features->given ? features->given : &view, features->pictures,
                         &features->grid, what, error));
    layout.views = uploaded.views;
    if (features->given)
        TRY(has_wrong.zeros(1, what, error));
    make_rows<<<blocks_for(features->variables), THREADS, 0, device->stream>>>(layout, made,
                                                                               has_wrong);
    TRY(check(cudaGetLastError(), what, error));
    if (features->given)
        TRY(check_rows(device, has_wrong, error));
    *rows = made.keep();
    return DCRF_OK;
}

/* ---- the table ------------------------------------------------------------------------------ */

static dcrf_status operator_new(dcrf_operator **out, dcrf_backend_device *device,
                                const struct dcrf_features *features,
                                dcrf_normalization normalization, dcrf_operator_kind kind,
                                dcrf_error *error) {
    *out = nullptr;
    struct device_operator *op = nullptr;
    TRY(device_enter(device, error));
    switch (kind) {
    case DCRF_OPERATOR_EXACT:
        TRY(exact_new(&op, device, features, normalization, error));
        break;
    case DCRF_OPERATOR_GRID:
        TRY(grid_new(&op, device, features, normalization, error));
        break;
    case DCRF_OPERATOR_LATTICE:
        TRY(lattice_new(&op, device, features, normalization, error));
        break;
    default:
        return fail(error, DCRF_ERROR_ARGUMENT, "%d is not a kind of operator", (int)kind);
    }
    *out = &op->base;
    return DCRF_OK;
}

dcrf_status device_count(size_t *count, dcrf_error *error);
dcrf_status device_describe(size_t index, dcrf_device_info *info, dcrf_error *error);
dcrf_status device_open(dcrf_backend_device **device, size_t index, dcrf_error *error);

static const struct dcrf_operator_source_methods operators = {operator_new, operators_sum,
                                                              operators_disagreements};

extern "C" __attribute__((visibility("default"))) const struct dcrf_backend *
dcrf_backend_cuda(void) {
    static struct dcrf_backend table;
    table.version = DCRF_BACKEND_VERSION;
    table.count = device_count;
    table.describe = device_describe;
    table.open = device_open;
    table.close = device_drop;
    table.operators = &operators;
    table.iterate = &iterate_methods;
    table.lp = &lp_methods;
    table.flow = &flow_methods;
    table.moves = &moves_methods;
    table.arrays = &arrays_methods;
    table.compat = &compat_methods;
    return &table;
}
