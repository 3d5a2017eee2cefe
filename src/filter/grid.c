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
#include "filter/ordered.h"

#include <math.h>
#include <string.h>

#define TRUNCATED_MASS 8e-5

struct grid {
    dcrf_operator base;
    dcrf_grid shape;
    size_t radius[DCRF_MAX_AXES];
    /* Per axis, the taps for DCRF_CONVOLVE_ROWS neighbouring outputs, see fill_coefficients. */
    float *coefficients[DCRF_MAX_AXES];
    float *scale; /* NULL: ones */
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

/* Output q of a group of DCRF_CONVOLVE_ROWS starting at i sees input i - radius + j through the tap
 * j - q - radius, 0 <= j < taps; zero where that is out of reach. */
static size_t tap_count(size_t radius) {
    return 2 * radius + DCRF_CONVOLVE_ROWS;
}

static void fill_coefficients(float *coefficients, size_t radius, double factor) {
    for (size_t j = 0; j < tap_count(radius); j++)
        for (size_t q = 0; q < DCRF_CONVOLVE_ROWS; q++) {
            const bool reached = j >= q && j - q <= 2 * radius;
            const double offset = (double)j - (double)q - (double)radius;
            coefficients[j * DCRF_CONVOLVE_ROWS + q] = reached ? (float)tap(factor, offset) : 0;
        }
}

static void free_grid(dcrf_operator *base) {
    struct grid *op = (struct grid *)base;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        dcrf_release(op->coefficients[axis]);
    dcrf_release(op->scale);
    dcrf_release(op);
}

/* ---- one axis ----------------------------------------------------------------------------------
 */

/* Seen along one axis the grid is outer x length x inner; a row of channels is `width` floats. */
struct pass {
    const struct grid *op;
    const struct dcrf_dsp *dsp;
    size_t axis, inner, length;
    const float *in;
    size_t in_stride;
    float *out;
    size_t out_stride;
    size_t width;
    bool scale_in, scale_out;
    float factor;
    bool accumulate;
    float *lines; /* scaled copies of input lines, one a worker */
    size_t line_floats;
};

/* The taps of the outputs i .. i + rows - 1 along a line, clipped to the line. */
static void convolve_group(const struct pass *pass, const float *line, size_t step, float *out,
                           const float *scale, size_t i) {
    const size_t radius = pass->op->radius[pass->axis];
    const size_t before = i < radius ? radius - i : 0; /* taps that fall off the start */
    const size_t first = i + before - radius;
    const size_t taps = tap_count(radius) - before;
    const size_t left = pass->length - i;
    const struct dcrf_convolve convolve = {
        .in = line + first * step,
        .in_step = step,
        .coefficient = pass->op->coefficients[pass->axis] + before * DCRF_CONVOLVE_ROWS,
        .taps = first + taps > pass->length ? pass->length - first : taps,
        .out = out + i * pass->inner * pass->out_stride,
        .out_step = pass->inner * pass->out_stride,
        .rows = left < DCRF_CONVOLVE_ROWS ? left : DCRF_CONVOLVE_ROWS,
        .scale = scale ? scale + i * pass->inner : NULL,
        .scale_step = pass->inner,
        .width = pass->width,
        .factor = pass->factor,
        .accumulate = pass->accumulate};
    pass->dsp->convolve(&convolve);
}

/* Along x: a line is contiguous, and one line is a unit of work. */
static void convolve_lines(void *context, size_t begin, size_t end, size_t worker) {
    const struct pass *pass = context;
    const float *scale = pass->op->scale;
    for (size_t line = begin; line < end; line++) {
        const size_t first = line * pass->length;
        const float *in = pass->in + first * pass->in_stride;
        size_t step = pass->in_stride;
        if (pass->scale_in) {
            float *copy = pass->lines + worker * pass->line_floats;
            for (size_t i = 0; i < pass->length; i++) {
                const float s = scale[first + i];
                for (size_t c = 0; c < pass->width; c++)
                    copy[i * pass->width + c] = s * in[i * pass->in_stride + c];
            }
            in = copy;
            step = pass->width;
        }
        for (size_t i = 0; i < pass->length; i += DCRF_CONVOLVE_ROWS)
            convolve_group(pass, in, step, pass->out + first * pass->out_stride,
                           pass->scale_out ? scale + first : NULL, i);
    }
}

/* Along y or z: a group of output rows is a unit of work, so that the input rows it needs are read
 * as streams and stay in the cache for the next group. */
static void convolve_groups(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct pass *pass = context;
    const size_t groups = (pass->length + DCRF_CONVOLVE_ROWS - 1) / DCRF_CONVOLVE_ROWS;
    for (size_t unit = begin; unit < end; unit++) {
        const size_t first = unit / groups * pass->length * pass->inner;
        for (size_t i = 0; i < pass->inner; i++)
            convolve_group(pass, pass->in + (first + i) * pass->in_stride,
                           pass->inner * pass->in_stride,
                           pass->out + (first + i) * pass->out_stride,
                           pass->scale_out ? pass->op->scale + first + i : NULL,
                           unit % groups * DCRF_CONVOLVE_ROWS);
    }
}

static void run_pass(dcrf_pool *pool, struct pass *pass) {
    const size_t outer = pass->op->base.variables / (pass->inner * pass->length);
    if (pass->axis == 0)
        dcrf_parallel_for(pool, outer, GRAIN, convolve_lines, pass);
    else
        dcrf_parallel_for(pool,
                          outer * ((pass->length + DCRF_CONVOLVE_ROWS - 1) / DCRF_CONVOLVE_ROWS),
                          GRAIN, convolve_groups, pass);
}

/* ---- the methods --------------------------------------------------------------------------------
 */

/* All axes, for up to DCRF_DSP_WIDTH channels. Passes alternate between two buffers, the last one
 * writes the output. */
static void apply_block(const struct grid *op, dcrf_pool *pool,
                        const struct dcrf_application *application, size_t channel, size_t width,
                        float *buffers, float *lines) {
    const size_t n = op->base.variables;
    const size_t axes = op->shape.axes;
    struct pass pass = {.op = op,
                        .dsp = dcrf_dsp(),
                        .inner = 1,
                        .in = application->in + channel,
                        .in_stride = application->stride,
                        .width = width,
                        .lines = lines,
                        .line_floats = op->shape.size[0] * DCRF_DSP_WIDTH};
    for (size_t axis = 0; axis < axes; axis++) {
        const bool last = axis + 1 == axes;
        pass.axis = axis;
        pass.length = op->shape.size[axis];
        pass.scale_in = axis == 0 && op->scale;
        pass.scale_out = last && op->scale;
        pass.out = last ? application->out + channel : buffers + axis % 2 * n * width;
        pass.out_stride = last ? application->stride : width;
        pass.factor = last ? application->factor : 1;
        pass.accumulate = last && application->accumulate;
        run_pass(pool, &pass);
        pass.in = pass.out;
        pass.in_stride = pass.out_stride;
        pass.inner *= pass.length;
    }
}

static dcrf_status apply(const dcrf_operator *base, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error) {
    const struct grid *op = (const struct grid *)base;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    const size_t padded = dcrf_padded(application->channels);
    const size_t widest = padded < DCRF_DSP_WIDTH ? padded : DCRF_DSP_WIDTH;
    const size_t buffer_count = op->shape.axes - 1; /* 0, 1 or 2 */
    float *buffers = dcrf_workspace_slot(workspace, DCRF_SLOT_OPERATOR, base->variables,
                                         buffer_count * widest * sizeof *buffers);
    float *lines = dcrf_workspace_slot(workspace, DCRF_SLOT_OPERATOR2, dcrf_pool_threads(pool),
                                       op->shape.size[0] * DCRF_DSP_WIDTH * sizeof *lines);
    if (!buffers || !lines)
        return dcrf_fail_memory(error, "a grid convolution");
    for (size_t channel = 0; channel < padded; channel += DCRF_DSP_WIDTH) {
        const size_t left = padded - channel;
        apply_block(op, pool, application, channel, left < DCRF_DSP_WIDTH ? left : DCRF_DSP_WIDTH,
                    buffers, lines);
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
    float row[DCRF_MAX_BINS];
    for (size_t a = begin; a < end; a++) {
        const float *values = h->values + a * h->width;
        dcrf_ordered_row(h->ordered, a, row);
        float sum = 0;
        for (size_t i = 0; i < h->ordered->bins; i++)
            sum += row[i] * values[i];
        h->ordered->out[a] = sum;
    }
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
        const size_t count = tap_count(op->radius[axis]) * DCRF_CONVOLVE_ROWS;
        op->coefficients[axis] = dcrf_allocate(count, sizeof(float));
        if (!op->coefficients[axis]) {
            free_grid(&op->base);
            return dcrf_fail_memory(error, "a grid operator");
        }
        fill_coefficients(op->coefficients[axis], op->radius[axis], factor);
        op->base.bytes += count * sizeof(float);
    }
    *out = &op->base;
    return DCRF_OK;
}
