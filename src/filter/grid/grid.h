/* The plan of a grid operator: declarations shared by its files.
 *
 *   grid.c          the plan and the operator's methods
 *   grid_tiles.c    its convolution, tile by tile
 *   grid_bins.c     histograms for the ordered filter
 *   grid_double.c   the operator in double */
#ifndef DCRF_FILTER_GRID_GRID_H
#define DCRF_FILTER_GRID_GRID_H

#include "dsp/dsp.h"
#include "filter/grid/grid_taps.h"
#include "filter/operator.h"

/* The part of the grid whose variables are at least a radius away from the border, provided they
 * all have the same scale; otherwise empty. */
struct dcrf_grid_inner {
    float scale;
    size_t begin[DCRF_MAX_AXES], end[DCRF_MAX_AXES];
};

struct dcrf_grid_plan {
    dcrf_operator base;
    dcrf_grid shape;
    size_t radius[DCRF_MAX_AXES];
    float *taps[DCRF_MAX_AXES]; /* radius + 1, from the centre on; a single tap for unused axes */
    const float *scale;         /* that of `base`; NULL: ones */
    struct dcrf_grid_inner inner;
};

/* ---- grid_tiles.c --------------------------------------------------------------------------- */

/* The convolution of `in`, or of the histograms of an ordered channel, whose output is then added
 * to ordered->out. Any number of bins; any padded width, but at most DCRF_DSP_WIDTH on a grid with
 * three axes. */
struct dcrf_grid_filter {
    const struct dcrf_grid_plan *op;
    const float *in;
    float *out;
    size_t stride, width;
    float factor;
    bool accumulate;
    const struct dcrf_ordered *ordered; /* NULL: filter `in` */
};
dcrf_status dcrf_grid_convolve(const struct dcrf_grid_filter *filter, dcrf_workspace *workspace,
                               dcrf_error *error);

/* ---- grid_bins.c ---------------------------------------------------------------------------- */

/* The bins used by the variables of a part of the grid, and the table of an ordered channel
 * restricted to them. The result for these variables is the same. */
struct dcrf_grid_bins {
    size_t count;
    uint8_t number[DCRF_MAX_BINS]; /* of a bin, among those in use */
    const float *table;            /* of these bins: rows of dcrf_bin_row(count); NULL: the sign */
};

/* Find the bins used on `lines` lines of `columns` variables, `pitch` variables apart, or take all
 * bins. `table`: scratch space for a table of all bins. */
void dcrf_grid_bins_find(struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered,
                         size_t first, size_t columns, size_t lines, size_t pitch, float *table);
void dcrf_grid_bins_all(struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered);

/* Fill in the histograms of `count` single variables, for bins first_bin .. first_bin + width - 1
 * of those in use: each variable puts its scale (NULL: 1) in one bin, or divides it between two. */
void dcrf_grid_bins_fill(const struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered,
                         const float *scale, size_t variable, size_t count, size_t first_bin,
                         size_t width, float *rows);

/* Evaluate the convolved histograms of `count` variables and add the results, times their scales,
 * to the filter's output. */
void dcrf_grid_bins_read(const struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered,
                         const float *scale, size_t variable, size_t count, size_t first_bin,
                         size_t width, const float *rows);

/* ---- grid_double.c -------------------------------------------------------------------------- */

/* The operator in double, for rigorous bounds. */
dcrf_status dcrf_grid_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                   const double *in, double *out, size_t channels,
                                   dcrf_error *error);

#endif
