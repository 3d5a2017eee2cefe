/* The grid operator: a spatial kernel is a separable Gaussian convolution.
 *
 *   exp(-|f_a - f_b|^2 / 2) = prod_k g_k(a_k - b_k),   g_k(t) = exp(-(t spacing_k / sigma_k)^2 / 2)
 *
 * Each axis is convolved directly, with g_k cut off as filter/grid_taps.h says: symmetric, with a
 * unit diagonal, and exact but for that, be the input a constant or an impulse. Outside the grid
 * there is nothing, so rows near the border sum to less, as the formula says. */
#include "filter/grid.h"
#include "core/error.h"
#include "core/memory.h"
#include "dsp/dsp.h"

#include <math.h>
#include <string.h>

/* Rows of a task. */
#define GRAIN 2

/* ---- construction --------------------------------------------------------------------------- */

static void free_grid(dcrf_operator *base) {
    struct dcrf_grid_plan *op = (struct dcrf_grid_plan *)base;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        dcrf_release(op->taps[axis]);
    dcrf_release(op->scale);
    dcrf_release(op);
}

/* ---- one axis ------------------------------------------------------------------------------- */

/* A unit of work is a strip of neighbours along x and a stretch along the axis, so that the rows in
 * reach of an output stay in the first-level cache while they are needed. Along x itself a strip is
 * one wide. */
#define STRIP 32
#define STRETCH 64

/* Where the row of channels of (x, y, z) lies: (z * height + y) * pitch + x * stride. */
struct layout {
    size_t stride, pitch;
};

struct pass {
    const struct dcrf_grid_plan *op;
    const struct dcrf_dsp *dsp;
    size_t axis;
    const float *in;
    struct layout in_layout;
    float *out;
    struct layout out_layout;
    size_t width; /* floats in a row of channels */
    float factor;
    bool accumulate;
    /* The ordered filter: the first pass makes its input, the bins first_bin .. first_bin + width -
     * 1 of every variable's own histogram, and the last one reads its output, all that a variable
     * sees by bins. Neither is ever stored. */
    const struct dcrf_ordered *ordered;
    size_t first_bin;
    struct scratch *scratch; /* one a worker */
};

static size_t divide_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

/* Lines along an axis: x-lines are numbered by y and z; the others by x, in strips, and by the
 * third axis. */
static size_t strip_count(const struct pass *pass) {
    return pass->axis == 0 ? 1 : divide_up(pass->op->shape.size[0], STRIP);
}

static size_t outer_count(const struct pass *pass) {
    const size_t *size = pass->op->shape.size;
    return pass->axis == 0 ? size[1] * size[2] : size[3 - pass->axis];
}

static size_t line_start(const struct pass *pass, struct layout layout, size_t outer) {
    return (pass->axis == 1 ? outer * pass->op->shape.size[1] : outer) * layout.pitch;
}

static size_t line_step(const struct pass *pass, struct layout layout) {
    if (pass->axis == 0)
        return layout.stride;
    return pass->axis == 1 ? layout.pitch : pass->op->shape.size[1] * layout.pitch;
}

/* What stands for the rows beyond the border. */
static const float zeros[STRIP * DCRF_DSP_WIDTH];

/* What a worker needs: pointers to input rows, rows that are made rather than given, and outputs on
 * their way into the ordered filter. */
struct scratch {
    const float **rows;
    float *made;
    float *outputs; /* DCRF_CONVOLVE_ROWS x STRIP x DCRF_DSP_WIDTH */
};

static size_t rows_in_reach(size_t radius) {
    return STRETCH + 2 * radius + DCRF_CONVOLVE_ROWS;
}

/* One block of memory for all workers. NULL when it is out. */
static struct scratch *scratch_new(const struct dcrf_grid_plan *op, dcrf_workspace *workspace,
                                   size_t workers) {
    size_t reach = 0;
    for (size_t axis = 0; axis < op->shape.axes; axis++)
        if (rows_in_reach(op->radius[axis]) > reach)
            reach = rows_in_reach(op->radius[axis]);
    const size_t rows_bytes = dcrf_align(reach * sizeof(const float *));
    const size_t made_bytes = dcrf_align(reach * DCRF_DSP_WIDTH * sizeof(float));
    const size_t output_bytes = DCRF_CONVOLVE_ROWS * STRIP * DCRF_DSP_WIDTH * sizeof(float);
    const size_t each = dcrf_align(sizeof(struct scratch)) + rows_bytes + made_bytes + output_bytes;
    char *memory = dcrf_workspace_slot(workspace, &dcrf_operator_slot2, workers, each);
    if (!memory)
        return NULL;
    struct scratch *scratch = (struct scratch *)(void *)memory;
    memory += dcrf_align(workers * sizeof *scratch);
    for (size_t i = 0; i < workers; i++) {
        scratch[i].rows = (const float **)(void *)memory;
        scratch[i].made = (float *)(void *)(memory + rows_bytes);
        scratch[i].outputs = (float *)(void *)(memory + rows_bytes + made_bytes);
        memory += rows_bytes + made_bytes + output_bytes;
    }
    return scratch;
}

/* The histograms of `count` variables, of which each fills one bin, or two that share it. */
static void make_histograms(const struct pass *pass, size_t variable, size_t count, float *rows) {
    const struct dcrf_ordered *ordered = pass->ordered;
    memset(rows, 0, count * pass->width * sizeof *rows);
    for (size_t i = 0; i < count; i++, rows += pass->width) {
        const float whole = pass->op->scale ? pass->op->scale[variable + i] : 1;
        const float upper = ordered->table ? whole * ordered->fraction[variable + i] : 0;
        const size_t bin = ordered->bin[variable + i] - pass->first_bin; /* wraps below */
        if (bin < pass->width)
            rows[bin] = whole - upper;
        if (bin + 1 < pass->width && upper > 0)
            rows[bin + 1] = upper;
    }
}

/* Fill in the pointers to the input rows of a unit. Along x, where the rows in reach follow each
 * other, they may have to be made first. */
static void gather_rows(const struct pass *pass, size_t outer, size_t first_x, size_t first_output,
                        size_t outputs, const struct scratch *scratch) {
    const struct dcrf_grid_plan *op = pass->op;
    const size_t radius = op->radius[pass->axis];
    const size_t length = op->shape.size[pass->axis];
    const size_t begin = first_output < radius ? 0 : first_output - radius;
    const size_t reach = first_output + outputs + radius;
    const size_t end = reach < length ? reach : length;
    const bool first = pass->axis == 0;
    const size_t variable = outer * op->shape.size[0] + begin; /* along x */
    const float *rows = NULL;                                  /* the row at `begin` */
    size_t step = pass->width;
    if (first && pass->ordered) {
        make_histograms(pass, variable, end - begin, scratch->made);
        rows = scratch->made;
    } else {
        step = line_step(pass, pass->in_layout);
        rows = pass->in + line_start(pass, pass->in_layout, outer) +
               first_x * pass->in_layout.stride + begin * step;
        if (first && op->scale) {
            pass->dsp->scale(rows, step, op->scale + variable, scratch->made, pass->width,
                             end - begin);
            rows = scratch->made;
            step = pass->width;
        }
    }
    for (size_t j = 0; j < outputs + 2 * radius + DCRF_CONVOLVE_ROWS; j++) {
        const size_t at = first_output + j - radius; /* wraps before the start: too large */
        scratch->rows[j] = at < end ? rows + (at - begin) * step : zeros;
    }
}

/* Read the outputs of a group into the ordered filter's. */
static void read_outputs(const struct pass *pass, const float *outputs, size_t variable,
                         size_t variable_step, size_t rows, size_t strip) {
    const struct dcrf_ordered *ordered = pass->ordered;
    for (size_t q = 0; q < rows; q++, variable += variable_step) {
        const struct dcrf_view_of_bins view = {.values = outputs + q * STRIP * pass->width,
                                               .width = pass->width,
                                               .first = pass->first_bin,
                                               .table = ordered->table,
                                               .table_row = dcrf_bin_row(ordered->bins)};
        pass->dsp->read(&view, ordered->bin + variable,
                        ordered->table ? ordered->fraction + variable : NULL,
                        ordered->out + variable, strip);
    }
}

static void convolve_unit(const struct pass *pass, size_t outer, size_t first_x,
                          size_t first_output, const struct scratch *scratch) {
    const struct dcrf_grid_plan *op = pass->op;
    const struct layout variables = {1, op->shape.size[0]};
    const size_t length = op->shape.size[pass->axis];
    const size_t outputs = length - first_output < STRETCH ? length - first_output : STRETCH;
    const size_t x_left = pass->axis == 0 ? 1 : op->shape.size[0] - first_x;
    const size_t strip = x_left < STRIP ? x_left : STRIP;
    const size_t variable_step = line_step(pass, variables);
    const bool last = pass->axis + 1 == op->shape.axes;
    const bool read = last && pass->ordered;
    gather_rows(pass, outer, first_x, first_output, outputs, scratch);
    for (size_t i = 0; i < outputs; i += DCRF_CONVOLVE_ROWS) {
        const size_t at = first_output + i;
        const size_t variable = line_start(pass, variables, outer) + first_x + at * variable_step;
        const size_t left = outputs - i;
        const size_t out_step = read ? STRIP * pass->width : line_step(pass, pass->out_layout);
        float *out = read ? scratch->outputs
                          : pass->out + line_start(pass, pass->out_layout, outer) +
                                first_x * pass->out_layout.stride + at * out_step;
        struct dcrf_convolve convolve = {.in = scratch->rows + i,
                                         .tap = op->taps[pass->axis],
                                         .radius = op->radius[pass->axis],
                                         .out = out,
                                         .out_step = out_step,
                                         .scale_step = variable_step,
                                         .width = pass->width,
                                         .factor = pass->factor,
                                         .accumulate = pass->accumulate};
        convolve.rows = left < DCRF_CONVOLVE_ROWS ? left : DCRF_CONVOLVE_ROWS;
        for (size_t x = 0; x < strip; x++) {
            convolve.scale = last && op->scale ? op->scale + variable + x : NULL;
            pass->dsp->convolve(&convolve);
            convolve.in_offset += pass->in_layout.stride;
            convolve.out += read ? pass->width : pass->out_layout.stride;
        }
        if (read)
            read_outputs(pass, out, variable, variable_step, convolve.rows, strip);
    }
}

static void convolve_units(void *context, size_t begin, size_t end, size_t worker) {
    const struct pass *pass = context;
    const size_t strips = strip_count(pass);
    const size_t stretches = divide_up(pass->op->shape.size[pass->axis], STRETCH);
    for (size_t unit = begin; unit < end; unit++)
        convolve_unit(pass, unit / (strips * stretches), unit % strips * STRIP,
                      unit / strips % stretches * STRETCH, &pass->scratch[worker]);
}

/* ---- the methods ---------------------------------------------------------------------------- */

/* The buffers between passes: lines along x are spaced so that the strips of neighbouring lines
 * fall into different places of the first-level cache (64 sets of a line each), whatever the width
 * of the grid. */
static struct layout buffer_layout(const struct dcrf_grid_plan *op, size_t width) {
    const size_t sets = 64, line_floats = DCRF_ALIGNMENT / sizeof(float);
    const size_t lines = divide_up(op->shape.size[0] * width, line_floats);
    const size_t wanted = divide_up(STRIP * width, line_floats) + 1;
    const size_t gap = (wanted + sets - lines % sets) % sets;
    return (struct layout){width, (lines + gap) * line_floats};
}

/* All axes, for up to DCRF_DSP_WIDTH channels or bins. Passes alternate between the buffers, the
 * last one writes the output. */
static void convolve_axes(const struct dcrf_grid_plan *op, dcrf_pool *pool, struct pass pass,
                          float *const buffer[2], const float *in, float *out, size_t stride) {
    const struct layout block = {stride, stride * op->shape.size[0]};
    const struct layout between = buffer_layout(op, pass.width);
    const float factor = pass.factor;
    const bool accumulate = pass.accumulate;
    for (size_t axis = 0; axis < op->shape.axes; axis++) {
        const bool first = axis == 0, last = axis + 1 == op->shape.axes;
        pass.axis = axis;
        pass.in = first ? in : pass.out;
        pass.in_layout = first ? block : between;
        pass.out = last ? out : buffer[axis % 2];
        pass.out_layout = last ? block : between;
        pass.factor = last ? factor : 1;
        pass.accumulate = last && accumulate;
        const size_t units =
            outer_count(&pass) * strip_count(&pass) * divide_up(op->shape.size[axis], STRETCH);
        dcrf_parallel_for(pool, units, GRAIN, convolve_units, &pass);
    }
}

/* Take the scratch memory for rows of `padded` floats, as many at a time as go. */
static dcrf_status prepare(const struct dcrf_grid_plan *op, dcrf_workspace *workspace,
                           size_t padded, float *buffer[2], struct pass *pass, dcrf_error *error) {
    const size_t width = padded < DCRF_DSP_WIDTH ? padded : DCRF_DSP_WIDTH;
    const size_t x_lines = op->shape.size[1] * op->shape.size[2];
    const size_t count = op->shape.axes - 1; /* of the buffers: 0, 1 or 2 */
    const size_t pitch = buffer_layout(op, width).pitch;
    buffer[0] = dcrf_workspace_slot(workspace, &dcrf_operator_slot, x_lines,
                                    count * pitch * sizeof **buffer);
    *pass = (struct pass){.op = op, .dsp = dcrf_dsp(), .factor = 1};
    pass->scratch = scratch_new(op, workspace, dcrf_workspace_threads(workspace));
    if (!buffer[0] || !pass->scratch)
        return dcrf_fail_memory(error, "a grid convolution");
    buffer[1] = buffer[0] + (count > 1 ? x_lines * pitch : 0);
    return DCRF_OK;
}

static dcrf_status apply(const dcrf_operator *base, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error) {
    const struct dcrf_grid_plan *op = (const struct dcrf_grid_plan *)base;
    const size_t padded = dcrf_padded(application->channels);
    struct pass pass;
    float *buffer[2];
    const dcrf_status status = prepare(op, workspace, padded, buffer, &pass, error);
    if (status < 0)
        return status;
    pass.factor = application->factor;
    pass.accumulate = application->accumulate;
    for (size_t channel = 0; channel < padded; channel += pass.width) {
        pass.width = padded - channel < DCRF_DSP_WIDTH ? padded - channel : DCRF_DSP_WIDTH;
        convolve_axes(op, dcrf_workspace_pool(workspace), pass, buffer, application->in + channel,
                      application->out + channel, application->stride);
    }
    return DCRF_OK;
}

/* Every variable's own histogram, convolved: all that it sees, by bins. */
static dcrf_status ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                           const struct dcrf_ordered *channel, dcrf_error *error) {
    const struct dcrf_grid_plan *op = (const struct dcrf_grid_plan *)base;
    const size_t padded = dcrf_bin_row(channel->bins);
    struct pass pass;
    float *buffer[2];
    const dcrf_status status = prepare(op, workspace, padded, buffer, &pass, error);
    if (status < 0)
        return status;
    pass.ordered = channel;
    memset(channel->out, 0, base->variables * sizeof *channel->out);
    for (; pass.first_bin < padded; pass.first_bin += pass.width) {
        const size_t left = padded - pass.first_bin;
        pass.width = left < DCRF_DSP_WIDTH ? left : DCRF_DSP_WIDTH;
        convolve_axes(op, dcrf_workspace_pool(workspace), pass, buffer, NULL, NULL, 0);
    }
    return DCRF_OK;
}

/* 1 - fraction; the scale; a product and its sum along each axis; the scale; F between two nodes
 * (four), and a product and its sum over the bins and their blocks. */
static size_t ordered_roundings(const dcrf_operator *base, size_t bins) {
    const struct dcrf_grid_plan *op = (const struct dcrf_grid_plan *)base;
    size_t roundings = 1 + 1 + 2 + 4 + bins + 2 + bins / DCRF_DSP_WIDTH;
    for (size_t axis = 0; axis < op->shape.axes; axis++)
        roundings += 2 * op->radius[axis] + 2;
    return roundings;
}

/* ---- the rest ------------------------------------------------------------------------------- */

static dcrf_status diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                            dcrf_error *error) {
    (void)workspace;
    (void)error;
    const struct dcrf_grid_plan *op = (const struct dcrf_grid_plan *)base;
    for (size_t a = 0; a < base->variables; a++)
        out[a] = op->scale ? op->scale[a] * op->scale[a] : 1;
    return DCRF_OK;
}

static dcrf_status rescale(dcrf_operator *base, dcrf_workspace *workspace, const float *scale,
                           dcrf_error *error) {
    (void)workspace;
    struct dcrf_grid_plan *op = (struct dcrf_grid_plan *)base;
    op->scale = dcrf_allocate(base->variables, sizeof *op->scale);
    if (!op->scale)
        return dcrf_fail_memory(error, "the normalization of a kernel");
    memcpy(op->scale, scale, base->variables * sizeof *scale);
    base->bytes += base->variables * sizeof *scale;
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
    for (size_t axis = 0; axis < op->shape.axes; axis++) {
        const double factor = features->axis_factor[axis];
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
