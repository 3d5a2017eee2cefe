/* The grid operator: a spatial kernel is a separable Gaussian convolution.
 *
 *   exp(-|f_a - f_b|^2 / 2) = prod_k g_k(a_k - b_k),   g_k(t) = exp(-(t spacing_k / sigma_k)^2 / 2)
 *
 * Each axis is convolved directly, with g_k cut off where the mass beyond is TRUNCATED_MASS of the
 * whole (over all axes): symmetric, with a unit diagonal, and exact but for that mass. Outside the
 * grid there is nothing, so rows near the border sum to less, as the formula says. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/dsp.h"
#include "filter/operator.h"

#include <math.h>
#include <string.h>

#define TRUNCATED_MASS 8e-5

struct grid {
    dcrf_operator base;
    dcrf_grid shape;
    size_t radius[DCRF_MAX_AXES];
    float *taps[DCRF_MAX_AXES]; /* radius + 1, from the centre on */
    float *scale;               /* NULL: ones */
};

/* Rows of a task. */
#define GRAIN 2

/* ---- construction -----------------------------------------------------------------------------
 */

static double tap(double factor, double offset) {
    return exp(-0.5 * (offset * factor) * (offset * factor));
}

/* The smallest radius that leaves at most `tail` of the mass outside, and no more than the axis is
 * long. */
static size_t find_radius(double factor, size_t size, double tail) {
    double total = 1;
    for (size_t t = 1; t < size && tap(factor, (double)t) > 1e-12; t++)
        total += 2 * tap(factor, (double)t);
    double inside = 1;
    size_t radius = 0;
    while (radius + 1 < size && inside < (1 - tail) * total) {
        radius++;
        inside += 2 * tap(factor, (double)radius);
    }
    return radius;
}

static void free_grid(dcrf_operator *base) {
    struct grid *op = (struct grid *)base;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        dcrf_release(op->taps[axis]);
    dcrf_release(op->scale);
    dcrf_release(op);
}

/* ---- one axis ----------------------------------------------------------------------------------
 */

/* A unit of work is a strip of neighbours along x and a stretch along the axis, so that the rows in
 * reach of an output stay in the first-level cache while they are needed. Along x itself a strip is
 * one wide. */
#define STRIP 8
#define STRETCH 64

/* Where the row of channels of (x, y, z) lies: (z * height + y) * pitch + x * stride. */
struct layout {
    size_t stride, pitch;
};

struct pass {
    const struct grid *op;
    const struct dcrf_dsp *dsp;
    size_t axis;
    const float *in;
    struct layout in_layout;
    float *out;
    struct layout out_layout;
    size_t width; /* floats in a row of channels */
    bool scale_in, scale_out;
    float factor;
    bool accumulate;
    /* Scratch of the workers: pointers to input rows, then scaled copies of them. */
    char *scratch;
    size_t scratch_bytes;
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

static size_t rows_in_reach(size_t radius) {
    return STRETCH + 2 * radius + DCRF_CONVOLVE_ROWS;
}

static size_t scratch_bytes_for(size_t radius) {
    return dcrf_align(rows_in_reach(radius) * sizeof(const float *)) +
           dcrf_align(rows_in_reach(radius) * DCRF_DSP_WIDTH * sizeof(float));
}

static void convolve_unit(const struct pass *pass, size_t outer, size_t first_x,
                          size_t first_output, char *scratch) {
    const struct grid *op = pass->op;
    const struct layout variables = {1, op->shape.size[0]};
    const size_t radius = op->radius[pass->axis];
    const size_t length = op->shape.size[pass->axis];
    const size_t outputs = length - first_output < STRETCH ? length - first_output : STRETCH;
    const size_t x_left = pass->axis == 0 ? 1 : op->shape.size[0] - first_x;
    const size_t strip = x_left < STRIP ? x_left : STRIP;
    const float *in =
        pass->in + line_start(pass, pass->in_layout, outer) + first_x * pass->in_layout.stride;
    const size_t in_step = line_step(pass, pass->in_layout);
    const size_t variable = line_start(pass, variables, outer) + first_x;
    const size_t variable_step = line_step(pass, variables);

    const float **rows = (const float **)(void *)scratch;
    const size_t begin = first_output < radius ? 0 : first_output - radius;
    const size_t reach = first_output + outputs + radius;
    const size_t end = reach < length ? reach : length;
    float *copies =
        (float *)(void *)(scratch + dcrf_align(rows_in_reach(radius) * sizeof(const float *)));
    if (pass->scale_in) /* along x, where the rows in reach follow each other */
        pass->dsp->scale(in + begin * in_step, in_step, op->scale + variable + begin, copies,
                         pass->width, end - begin);
    for (size_t j = 0; j < outputs + 2 * radius + DCRF_CONVOLVE_ROWS; j++) {
        const size_t at = first_output + j - radius; /* wraps before the start: too large */
        if (at >= end)
            rows[j] = zeros;
        else
            rows[j] = pass->scale_in ? copies + (at - begin) * pass->width : in + at * in_step;
    }

    const size_t out_step = line_step(pass, pass->out_layout);
    float *out =
        pass->out + line_start(pass, pass->out_layout, outer) + first_x * pass->out_layout.stride;
    for (size_t i = 0; i < outputs; i += DCRF_CONVOLVE_ROWS) {
        const size_t left = outputs - i;
        const size_t scale_at = variable + (first_output + i) * variable_step;
        struct dcrf_convolve convolve = {.in = rows + i,
                                         .tap = op->taps[pass->axis],
                                         .radius = radius,
                                         .out = out + (first_output + i) * out_step,
                                         .out_step = out_step,
                                         .rows =
                                             left < DCRF_CONVOLVE_ROWS ? left : DCRF_CONVOLVE_ROWS,
                                         .scale_step = variable_step,
                                         .width = pass->width,
                                         .factor = pass->factor,
                                         .accumulate = pass->accumulate};
        for (size_t x = 0; x < strip; x++) {
            convolve.scale = pass->scale_out ? op->scale + scale_at + x : NULL;
            pass->dsp->convolve(&convolve);
            convolve.in_offset += pass->in_layout.stride;
            convolve.out += pass->out_layout.stride;
        }
    }
}

static void convolve_units(void *context, size_t begin, size_t end, size_t worker) {
    const struct pass *pass = context;
    const size_t strips = strip_count(pass);
    const size_t stretches = divide_up(pass->op->shape.size[pass->axis], STRETCH);
    for (size_t unit = begin; unit < end; unit++)
        convolve_unit(pass, unit / (strips * stretches), unit % strips * STRIP,
                      unit / strips % stretches * STRETCH,
                      pass->scratch + worker * pass->scratch_bytes);
}

/* ---- the methods --------------------------------------------------------------------------------
 */

/* The buffers between passes: lines along x are spaced so that the strips of neighbouring lines
 * fall into different places of the first-level cache (64 sets of a line each), whatever the width
 * of the grid. */
static struct layout buffer_layout(const struct grid *op, size_t width) {
    const size_t sets = 64, line_floats = DCRF_ALIGNMENT / sizeof(float);
    const size_t lines = divide_up(op->shape.size[0] * width, line_floats);
    const size_t wanted = divide_up(STRIP * width, line_floats) + 1;
    const size_t gap = (wanted + sets - lines % sets) % sets;
    return (struct layout){width, (lines + gap) * line_floats};
}

/* All axes, for up to DCRF_DSP_WIDTH channels. Passes alternate between the buffers, the last one
 * writes the output. */
static void apply_block(const struct grid *op, dcrf_pool *pool,
                        const struct dcrf_application *application, size_t channel,
                        float *const buffer[2], struct pass pass) {
    const struct layout block = {application->stride, application->stride * op->shape.size[0]};
    const struct layout between = buffer_layout(op, pass.width);
    for (size_t axis = 0; axis < op->shape.axes; axis++) {
        const bool first = axis == 0, last = axis + 1 == op->shape.axes;
        pass.axis = axis;
        pass.in = first ? application->in + channel : pass.out;
        pass.in_layout = first ? block : between;
        pass.out = last ? application->out + channel : buffer[axis % 2];
        pass.out_layout = last ? block : between;
        pass.scale_in = first && op->scale;
        pass.scale_out = last && op->scale;
        pass.factor = last ? application->factor : 1;
        pass.accumulate = last && application->accumulate;
        const size_t units =
            outer_count(&pass) * strip_count(&pass) * divide_up(op->shape.size[axis], STRETCH);
        dcrf_parallel_for(pool, units, GRAIN, convolve_units, &pass);
    }
}

static dcrf_status apply(const dcrf_operator *base, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error) {
    const struct grid *op = (const struct grid *)base;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    const size_t padded = dcrf_padded(application->channels);
    const size_t widest = padded < DCRF_DSP_WIDTH ? padded : DCRF_DSP_WIDTH;
    const size_t x_lines = op->shape.size[1] * op->shape.size[2];
    const size_t buffer_count = op->shape.axes - 1; /* 0, 1 or 2 */
    const size_t pitch = buffer_layout(op, widest).pitch;
    float *buffers = dcrf_workspace_slot(workspace, DCRF_SLOT_OPERATOR, x_lines,
                                         buffer_count * pitch * sizeof *buffers);
    size_t largest_radius = 0;
    for (size_t axis = 0; axis < op->shape.axes; axis++)
        if (op->radius[axis] > largest_radius)
            largest_radius = op->radius[axis];
    struct pass pass = {.op = op, .dsp = dcrf_dsp()};
    pass.scratch_bytes = scratch_bytes_for(largest_radius);
    pass.scratch = dcrf_workspace_slot(workspace, DCRF_SLOT_OPERATOR2, dcrf_pool_threads(pool),
                                       pass.scratch_bytes);
    if (!buffers || !pass.scratch)
        return dcrf_fail_memory(error, "a grid convolution");
    float *const buffer[2] = {buffers, buffers + (buffer_count > 1 ? x_lines * pitch : 0)};
    for (size_t channel = 0; channel < padded; channel += pass.width) {
        pass.width = padded - channel < DCRF_DSP_WIDTH ? padded - channel : DCRF_DSP_WIDTH;
        apply_block(op, pool, application, channel, buffer, pass);
    }
    return DCRF_OK;
}

struct histogram {
    const struct dcrf_ordered *ordered;
    float *values; /* variables x width */
    size_t width;
};

static void fill_histogram(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histogram *h = context;
    memset(h->values + begin * h->width, 0, (end - begin) * h->width * sizeof *h->values);
    for (size_t a = begin; a < end; a++) {
        float *row = h->values + a * h->width + h->ordered->bin[a];
        const float fraction = h->ordered->table ? h->ordered->fraction[a] : 0;
        row[0] = 1 - fraction;
        if (fraction > 0)
            row[1] = fraction;
    }
}

static void read_histogram(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histogram *h = context;
    const struct dcrf_histograms histograms = {h->ordered->bins, h->width, h->ordered->table,
                                               h->values};
    dcrf_dsp()->read(&histograms, h->ordered->bin, h->ordered->fraction, h->ordered->out, begin,
                     end);
}

/* Every variable's own histogram, convolved: all that it sees, by bins. */
static dcrf_status ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                           const struct dcrf_ordered *channel, dcrf_error *error) {
    const size_t n = base->variables;
    const size_t width = dcrf_padded(channel->bins);
    float *in = dcrf_workspace_slot(workspace, DCRF_SLOT_HISTOGRAM, n, 2 * width * sizeof *in);
    if (!in)
        return dcrf_fail_memory(error, "the ordered filter");
    const size_t grain = 1024;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    struct histogram histogram = {channel, in, width};
    dcrf_parallel_for(pool, n, grain, fill_histogram, &histogram);
    const struct dcrf_application application = {
        .in = in, .out = in + n * width, .channels = channel->bins, .stride = width, .factor = 1};
    const dcrf_status status = apply(base, workspace, &application, error);
    if (status < 0)
        return status;
    histogram.values = application.out;
    dcrf_parallel_for(pool, n, grain, read_histogram, &histogram);
    return DCRF_OK;
}

static dcrf_status diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                            dcrf_error *error) {
    (void)workspace;
    (void)error;
    const struct grid *op = (const struct grid *)base;
    for (size_t a = 0; a < base->variables; a++)
        out[a] = op->scale ? op->scale[a] * op->scale[a] : 1;
    return DCRF_OK;
}

static dcrf_status rescale(dcrf_operator *base, dcrf_workspace *workspace, const float *scale,
                           dcrf_error *error) {
    (void)workspace;
    struct grid *op = (struct grid *)base;
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
                                                     .diagonal = diagonal,
                                                     .rescale = rescale,
                                                     .free = free_grid};

dcrf_status dcrf_grid_new(dcrf_operator **out, const struct dcrf_features *features,
                          dcrf_workspace *workspace, dcrf_error *error) {
    (void)workspace;
    *out = NULL;
    struct grid *op = dcrf_allocate_zero(1, sizeof *op);
    if (!op)
        return dcrf_fail_memory(error, "a grid operator");
    op->base.methods = &methods;
    op->base.variables = features->variables;
    op->base.bytes = sizeof *op;
    op->shape = features->grid;
    for (size_t axis = 0; axis < op->shape.axes; axis++) {
        const double factor = features->axis_factor[axis];
        op->radius[axis] =
            find_radius(factor, op->shape.size[axis], TRUNCATED_MASS / (double)op->shape.axes);
        op->taps[axis] = dcrf_allocate(op->radius[axis] + 1, sizeof(float));
        if (!op->taps[axis]) {
            free_grid(&op->base);
            return dcrf_fail_memory(error, "a grid operator");
        }
        for (size_t k = 0; k <= op->radius[axis]; k++)
            op->taps[axis][k] = (float)tap(factor, (double)k);
        op->base.bytes += (op->radius[axis] + 1) * sizeof(float);
    }
    *out = &op->base;
    return DCRF_OK;
}
