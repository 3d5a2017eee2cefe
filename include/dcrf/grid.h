/* Grids, views of the caller's arrays, and blocks.
 *
 * A grid has 1 to 3 axes. Axis 0 (x) varies fastest: variable (x, y, z) of a grid of size {w, h, d}
 * has the index (z * h + y) * w + x. A point set is a grid with one axis.
 *
 * A view describes the caller's array without copying it. Channel c of variable (x, y, z) is at the
 * byte address
 *
 *   data + x * stride[0] + y * stride[1] + z * stride[2] + c * channel_stride
 *
 * which covers height x width x channels, channels x height x width, padded rows and flipped axes.
 *
 * A block is an array with one row of floats per variable: row a starts at a * stride, and its
 * first `channels` floats are used. The stride is a multiple of dcrf_padded(1) and at least
 * dcrf_padded(channels). The padding of inputs must be finite; that of outputs is unspecified.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_GRID_H
#define DCRF_GRID_H

#include <dcrf/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DCRF_MAX_AXES 3

typedef struct dcrf_grid {
    size_t axes;                   /* 1, 2 or 3 */
    size_t size[DCRF_MAX_AXES];    /* variables along each axis; 1 beyond `axes` */
    double spacing[DCRF_MAX_AXES]; /* distance between neighbours, in the unit of the sigmas */
} dcrf_grid;

typedef enum dcrf_type {
    DCRF_U8 = 0,
    DCRF_U16,
    DCRF_I16,
    DCRF_I32,
    DCRF_F32,
    DCRF_F64,
    DCRF_F16, /* IEEE 754 half precision */
    DCRF_BF16 /* bfloat16: the upper half of a float */
} dcrf_type;
/* "u8", "u16", "i16", "i32", "f32", "f64", "f16", "bf16". */
DCRF_API const char *dcrf_type_name(dcrf_type type);
DCRF_API int dcrf_type_from_name(const char *name, dcrf_type *type);

typedef struct dcrf_view {
    const void *data;
    dcrf_type type;
    size_t channels;
    ptrdiff_t stride[DCRF_MAX_AXES]; /* bytes */
    ptrdiff_t channel_stride;        /* bytes */
} dcrf_view;

/* Grids with unit spacing. */
DCRF_API dcrf_grid dcrf_grid_1d(size_t count);
DCRF_API dcrf_grid dcrf_grid_2d(size_t width, size_t height);
DCRF_API dcrf_grid dcrf_grid_3d(size_t width, size_t height, size_t depth);

/* Bytes per element; 0 for an unknown type. */
DCRF_API size_t dcrf_type_bytes(dcrf_type type);

/* Views of contiguous arrays over a grid: channels interleaved (HWC), or one plane per channel
 * (CHW). */
DCRF_API dcrf_view dcrf_view_interleaved(const void *data, dcrf_type type, const dcrf_grid *grid,
                                         size_t channels);
DCRF_API dcrf_view dcrf_view_planar(const void *data, dcrf_type type, const dcrf_grid *grid,
                                    size_t channels);

/* The same for an array that results are written to. */
typedef struct dcrf_output {
    void *data;
    dcrf_type type;
    size_t channels;
    ptrdiff_t stride[DCRF_MAX_AXES]; /* bytes */
    ptrdiff_t channel_stride;        /* bytes */
} dcrf_output;

DCRF_API dcrf_output dcrf_output_interleaved(void *data, dcrf_type type, const dcrf_grid *grid,
                                             size_t channels);
DCRF_API dcrf_output dcrf_output_planar(void *data, dcrf_type type, const dcrf_grid *grid,
                                        size_t channels);

/* ---- blocks --------------------------------------------------------------------------------- */

/* The shortest row for this many channels: what the inner loops read at a time. */
DCRF_API size_t dcrf_padded(size_t channels);

#ifdef __cplusplus
}
#endif
#endif
