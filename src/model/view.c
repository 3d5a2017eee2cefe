#include "model/view.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static dcrf_grid unit_grid(size_t axes, size_t width, size_t height, size_t depth) {
    return (dcrf_grid){axes, {width, height, depth}, {1, 1, 1}};
}

dcrf_grid dcrf_grid_1d(size_t count) {
    return unit_grid(1, count, 1, 1);
}

dcrf_grid dcrf_grid_2d(size_t width, size_t height) {
    return unit_grid(2, width, height, 1);
}

dcrf_grid dcrf_grid_3d(size_t width, size_t height, size_t depth) {
    return unit_grid(3, width, height, depth);
}

size_t dcrf_type_bytes(dcrf_type type) {
    switch (type) {
    case DCRF_U8:
        return 1;
    case DCRF_U16:
    case DCRF_I16:
    case DCRF_F16:
    case DCRF_BF16:
        return 2;
    case DCRF_I32:
    case DCRF_F32:
        return 4;
    case DCRF_F64:
        return 8;
    }
    return 0;
}

/* Strides of contiguous variables `step` bytes apart; returns the size of all of them in bytes.
 * Sizes whose product overflows wrap around here and are rejected by dcrf_grid_check. */
static size_t fill_strides(dcrf_view *view, const dcrf_grid *grid, size_t step) {
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        view->stride[axis] = (ptrdiff_t)step;
        step *= grid->size[axis];
    }
    return step;
}

dcrf_view dcrf_view_interleaved(const void *data, dcrf_type type, const dcrf_grid *grid,
                                size_t channels) {
    const size_t bytes = dcrf_type_bytes(type);
    dcrf_view view = {.data = data, .type = type, .channels = channels};
    view.channel_stride = (ptrdiff_t)bytes;
    fill_strides(&view, grid, bytes * channels);
    return view;
}

dcrf_view dcrf_view_planar(const void *data, dcrf_type type, const dcrf_grid *grid,
                           size_t channels) {
    dcrf_view view = {.data = data, .type = type, .channels = channels};
    view.channel_stride = (ptrdiff_t)fill_strides(&view, grid, dcrf_type_bytes(type));
    return view;
}

static dcrf_output output_of(void *data, const dcrf_view *view) {
    dcrf_output output = {data, view->type, view->channels, {0}, view->channel_stride};
    memcpy(output.stride, view->stride, sizeof output.stride);
    return output;
}

dcrf_output dcrf_output_interleaved(void *data, dcrf_type type, const dcrf_grid *grid,
                                    size_t channels) {
    const dcrf_view view = dcrf_view_interleaved(data, type, grid, channels);
    return output_of(data, &view);
}

dcrf_output dcrf_output_planar(void *data, dcrf_type type, const dcrf_grid *grid, size_t channels) {
    const dcrf_view view = dcrf_view_planar(data, type, grid, channels);
    return output_of(data, &view);
}

dcrf_view dcrf_output_view(const dcrf_output *output) {
    dcrf_view view = {output->data, output->type, output->channels, {0}, output->channel_stride};
    memcpy(view.stride, output->stride, sizeof view.stride);
    return view;
}

dcrf_status dcrf_grid_check(const dcrf_grid *grid, size_t *variables, dcrf_error *error) {
    size_t product = 1;
    if (!grid)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "no grid given");
    if (grid->axes < 1 || grid->axes > DCRF_MAX_AXES)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a grid has 1 to 3 axes, not %zu", grid->axes);
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        if (grid->size[axis] == 0)
            return dcrf_fail(error, DCRF_ERROR_SIZE, "the grid is empty: axis %zu has size 0",
                             axis);
        if (axis >= grid->axes && grid->size[axis] != 1)
            return dcrf_fail(error, DCRF_ERROR_SIZE, "axis %zu of a grid of %zu axes has size %zu",
                             axis, grid->axes, grid->size[axis]);
        if (axis < grid->axes && !(grid->spacing[axis] > 0 && isfinite(grid->spacing[axis])))
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the spacing of axis %zu is %g; it must be positive and finite", axis,
                             grid->spacing[axis]);
        /* Variables are numbered with 32 bits inside the operators. */
        if (!dcrf_multiply(product, grid->size[axis], &product) || product > INT32_MAX)
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "a grid of %zu x %zu x %zu has too many variables", grid->size[0],
                             grid->size[1], grid->size[2]);
    }
    *variables = product;
    return DCRF_OK;
}

double dcrf_grid_least_spacing(const dcrf_grid *grid) {
    double least = grid->spacing[0];
    for (size_t axis = 1; axis < grid->axes; axis++)
        least = fmin(least, grid->spacing[axis]);
    return least;
}

void dcrf_grid_position(const dcrf_grid *grid, size_t variable, size_t position[DCRF_MAX_AXES]) {
    uint32_t rest = (uint32_t)variable; /* fits, by dcrf_grid_check; 32-bit divisions are fast */
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++) {
        const uint32_t size = (uint32_t)grid->size[axis];
        position[axis] = rest % size;
        rest /= size;
    }
}

dcrf_status dcrf_view_check(const dcrf_view *view, const char *what, dcrf_error *error) {
    if (!view || !view->data)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s: no data given", what);
    if (dcrf_type_bytes(view->type) == 0)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s: %d is not an element type", what,
                         (int)view->type);
    if (view->channels == 0)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "%s has no channels", what);
    return DCRF_OK;
}

/* 1 bit of sign, 5 of exponent, 10 of mantissa. */
static double from_half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double size = ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 0)
        size = ldexp(mantissa, -24);
    else if (exponent == 31)
        size = mantissa ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -size : size;
}

static double from_upper_half(uint16_t bits) {
    const uint32_t all = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &all, sizeof value);
    return (double)value;
}

/* memcpy: the caller's elements need not be aligned. */
#define READ(type)                                                                                 \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, at, sizeof value);                                                          \
        return (double)value;                                                                      \
    }

static inline double read_element(const char *at, dcrf_type type) {
    switch (type) {
    case DCRF_U8:
        READ(uint8_t)
    case DCRF_U16:
        READ(uint16_t)
    case DCRF_I16:
        READ(int16_t)
    case DCRF_I32:
        READ(int32_t)
    case DCRF_F32:
        READ(float)
    case DCRF_F64:
        READ(double)
    case DCRF_F16:
    case DCRF_BF16: {
        uint16_t bits;
        memcpy(&bits, at, sizeof bits);
        return type == DCRF_F16 ? from_half(bits) : from_upper_half(bits);
    }
    }
    return NAN;
}

static const char *element_at(const dcrf_view *view, const size_t position[DCRF_MAX_AXES]) {
    const char *at = view->data;
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        at += (ptrdiff_t)position[axis] * view->stride[axis];
    return at;
}

double dcrf_view_element(const dcrf_view *view, const size_t position[DCRF_MAX_AXES],
                         size_t channel) {
    return read_element(element_at(view, position) + (ptrdiff_t)channel * view->channel_stride,
                        view->type);
}

static const char *position_text(const dcrf_grid *grid, const size_t position[DCRF_MAX_AXES],
                                 char text[DCRF_PLACE_BYTES]) {
    if (grid->axes == 1)
        snprintf(text, DCRF_PLACE_BYTES, "variable %zu", position[0]);
    else if (grid->axes == 2)
        snprintf(text, DCRF_PLACE_BYTES, "x = %zu, y = %zu", position[0], position[1]);
    else
        snprintf(text, DCRF_PLACE_BYTES, "x = %zu, y = %zu, z = %zu", position[0], position[1],
                 position[2]);
    return text;
}

const char *dcrf_place_text(const dcrf_grid *grid, size_t variable, char text[DCRF_PLACE_BYTES]) {
    size_t position[DCRF_MAX_AXES];
    dcrf_grid_position(grid, variable, position);
    return position_text(grid, position, text);
}

/* `value` is NaN or infinite, or becomes so when it is stored as a scaled float. */
static dcrf_status fail_not_finite(dcrf_error *error, const char *what, double value,
                                   const size_t position[DCRF_MAX_AXES], const dcrf_grid *grid,
                                   size_t channel) {
    char where[DCRF_PLACE_BYTES];
    position_text(grid, position, where);
    if (isfinite(value))
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "%s holds %g at %s, channel %zu: too large for a float when scaled", what,
                         value, where, channel);
    return dcrf_fail(error, DCRF_ERROR_NOT_FINITE, "%s holds %g at %s, channel %zu", what, value,
                     where, channel);
}

#define BLOCK 16 /* rows whose planes are read together */

/* The rows of `count` variables along the first axis, of floats. */
static void copy_floats(const dcrf_view *view, const char *at, size_t count, float *out,
                        size_t stride) {
    const ptrdiff_t step = view->stride[0], channel_step = view->channel_stride;
    if (channel_step == (ptrdiff_t)sizeof *out) {
        for (size_t k = 0; k < count; k++)
            memcpy(out + k * stride, at + (ptrdiff_t)k * step, view->channels * sizeof *out);
        return;
    }
    for (size_t c = 0; c < view->channels; c++)
        for (size_t k = 0; k < count; k++)
            memcpy(out + k * stride + c, at + (ptrdiff_t)c * channel_step + (ptrdiff_t)k * step,
                   sizeof *out);
}

static bool are_finite(const float *values, size_t count) {
    uint32_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        wrong |= (uint32_t)((bits & 0x7f800000u) == 0x7f800000u);
    }
    return wrong == 0;
}

/* Floats unchanged, the usual case for unaries. */
struct float_copy {
    const dcrf_view *view;
    const dcrf_grid *grid;
    float *out;
    size_t stride;
    atomic_bool is_wrong; /* one of them is not finite */
};

/* Lines of the grid per chunk. */
#define LINES_PER_CHUNK 4

static void copy_lines(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct float_copy *copy = context;
    const dcrf_view *view = copy->view;
    const size_t stride = copy->stride, width = copy->grid->size[0];
    bool is_right = true;
    for (size_t line = begin; line < end; line++) {
        float *out = copy->out + line * width * stride;
        size_t position[DCRF_MAX_AXES] = {0, line % copy->grid->size[1],
                                          line / copy->grid->size[1]};
        for (; position[0] < width && is_right; position[0] += BLOCK) {
            const size_t left = width - position[0], count = left < BLOCK ? left : BLOCK;
            for (size_t k = 0; k < count && stride > view->channels; k++)
                memset(out + k * stride + view->channels, 0,
                       (stride - view->channels) * sizeof *out);
            copy_floats(view, element_at(view, position), count, out, stride);
            is_right = are_finite(out, count * stride);
            out += count * stride;
        }
    }
    if (!is_right)
        atomic_store_explicit(&copy->is_wrong, true, memory_order_relaxed);
}

static bool copy_all_floats(const dcrf_view *view, const dcrf_grid *grid, dcrf_pool *pool,
                            float *out, size_t stride) {
    struct float_copy copy = {.view = view, .grid = grid, .out = out, .stride = stride};
    dcrf_parallel_for(pool, grid->size[1] * grid->size[2], LINES_PER_CHUNK, copy_lines, &copy);
    return !atomic_load_explicit(&copy.is_wrong, memory_order_relaxed);
}

bool dcrf_view_are_bytes(const dcrf_view *view, const double *factor) {
    bool fit = view->type == DCRF_U8;
    for (size_t c = 0; fit && c < view->channels; c++)
        fit = isfinite((float)(UINT8_MAX * factor[c]));
    return fit;
}

/* Bytes, the usual case for images. */
static void copy_bytes(const dcrf_view *view, const dcrf_grid *grid, float *out, size_t stride) {
    size_t position[DCRF_MAX_AXES] = {0};
    for (position[2] = 0; position[2] < grid->size[2]; position[2]++)
        for (position[1] = 0; position[1] < grid->size[1]; position[1]++) {
            const uint8_t *at = (const uint8_t *)element_at(view, position);
            for (size_t k = 0; k < grid->size[0]; k++, at += view->stride[0], out += stride) {
                for (size_t c = 0; c < view->channels; c++)
                    out[c] = at[(ptrdiff_t)c * view->channel_stride];
                for (size_t c = view->channels; c < stride; c++)
                    out[c] = 0;
            }
        }
}

/* One of `scaled` and `unscaled` is NULL. */
static dcrf_status copy_rows(const dcrf_view *view, const dcrf_grid *grid, const char *what,
                             const double *factor, float *scaled, double *unscaled, size_t stride,
                             dcrf_pool *pool, dcrf_error *error) {
    TRY(dcrf_view_check(view, what, error));
    if (view->type == DCRF_F32 && scaled && !factor &&
        copy_all_floats(view, grid, pool, scaled, stride))
        return DCRF_OK;
    if (view->type == DCRF_U8 && scaled && !factor) {
        copy_bytes(view, grid, scaled, stride);
        return DCRF_OK;
    }
    size_t position[DCRF_MAX_AXES], row = 0;
    for (position[2] = 0; position[2] < grid->size[2]; position[2]++)
        for (position[1] = 0; position[1] < grid->size[1]; position[1]++)
            for (position[0] = 0; position[0] < grid->size[0]; position[0]++, row += stride) {
                const char *at = element_at(view, position);
                for (size_t c = 0; c < view->channels; c++) {
                    const double value =
                        read_element(at + (ptrdiff_t)c * view->channel_stride, view->type);
                    const float product = (float)(factor ? value * factor[c] : value);
                    if (!isfinite(product))
                        return fail_not_finite(error, what, value, position, grid, c);
                    if (scaled)
                        scaled[row + c] = product;
                    else
                        unscaled[row + c] = value;
                }
                if (scaled)
                    memset(scaled + row + view->channels, 0,
                           (stride - view->channels) * sizeof *scaled);
            }
    return DCRF_OK;
}

dcrf_status dcrf_view_copy(const dcrf_view *view, const dcrf_grid *grid, const char *what,
                           const double *factor, float *out, size_t stride, dcrf_error *error) {
    return copy_rows(view, grid, what, factor, out, NULL, stride, NULL, error);
}

dcrf_status dcrf_view_copy_with(const dcrf_view *view, const dcrf_grid *grid, dcrf_pool *pool,
                                const char *what, float *out, size_t stride, dcrf_error *error) {
    return copy_rows(view, grid, what, NULL, out, NULL, stride, pool, error);
}

dcrf_status dcrf_view_copy_double(const dcrf_view *view, const dcrf_grid *grid, const char *what,
                                  const double *factor, double *out, dcrf_error *error) {
    return copy_rows(view, grid, what, factor, NULL, out, view->channels, NULL, error);
}

dcrf_status dcrf_view_copy_integers(const dcrf_view *view, const dcrf_grid *grid, const char *what,
                                    int32_t *out, dcrf_error *error) {
    TRY(dcrf_view_check(view, what, error));
    if (view->channels != 1)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "%s has %zu channels; it must have one", what,
                         view->channels);
    if (view->type >= DCRF_F32)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s must hold integers", what);
    size_t position[DCRF_MAX_AXES];
    for (position[2] = 0; position[2] < grid->size[2]; position[2]++)
        for (position[1] = 0; position[1] < grid->size[1]; position[1]++)
            for (position[0] = 0; position[0] < grid->size[0]; position[0]++)
                *out++ = (int32_t)read_element(element_at(view, position), view->type);
    return DCRF_OK;
}
