/* The plan of a grid operator: what its files share.
 *
 *   grid.c          the plan and the operator's methods
 *   grid_tiles.c    its convolution, tile by tile
 *   grid_bins.c     the ordered filter's part in that
 *   grid_double.c   the operator in double */
#ifndef DCRF_FILTER_GRID_GRID_H
#define DCRF_FILTER_GRID_GRID_H

#include "dsp/dsp.h"
#include "filter/grid/grid_taps.h"
#include "filter/operator.h"

/* The part of the grid from which a kernel does not reach beyond the border, or as much of it as
 * has one scale. */
struct dcrf_grid_inner {
    float scale;
    size_t begin[DCRF_MAX_AXES], end[DCRF_MAX_AXES];
};

struct dcrf_grid_plan {
    dcrf_operator base;
    dcrf_grid shape;
    size_t radius[DCRF_MAX_AXES];
    float *taps[DCRF_MAX_AXES]; /* radius + 1, from the centre on; one tap beyond the axes */
    float *scale;               /* NULL: ones */
    struct dcrf_grid_inner inner;
};

/* ---- grid_tiles.c --------------------------------------------------------------------------- */

/* The convolution of `in`, or of the histograms of an ordered channel, whose output then is added
 * to what the filter has so far. Any number of bins; any width that blocks have, but DCRF_DSP_WIDTH
 * at most along three axes. */
struct dcrf_grid_filter {
    const struct dcrf_grid_plan *op;
    const float *in;
    float *out;
    size_t stride, width;
    float factor;
    bool accumulate;
    const struct dcrf_ordered *ordered; /* NULL: plain */
};
dcrf_status dcrf_grid_convolve(const struct dcrf_grid_filter *filter, dcrf_workspace *workspace,
                               dcrf_error *error);

/* ---- grid_bins.c ---------------------------------------------------------------------------- */

/* The bins that variables of a part of the grid use, and the levels of an ordered channel with
 * those alone: what they see of each other is the same. */
struct dcrf_grid_bins {
    size_t count;
    uint8_t number[DCRF_MAX_BINS]; /* among the bins in use */
    const float *table;            /* of these: rows of dcrf_bin_row(count); NULL: the sign */
};

/* For the variables of `lines` lines that begin `pitch` variables apart. `table`: room for a table
 * of all bins. */
void dcrf_grid_bins_find(struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered,
                         size_t first, size_t columns, size_t lines, size_t pitch, float *table);
void dcrf_grid_bins_all(struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered);

/* The own histograms of `count` variables, bins first_bin .. first_bin + width - 1 of those in use:
 * each fills one bin, or two that share it, with its scale (NULL: 1). */
void dcrf_grid_bins_fill(const struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered,
                         const float *scale, size_t variable, size_t count, size_t first_bin,
                         size_t width, float *rows);

/* Add what `count` variables see of such rows, times their scale, to the filter's output. */
void dcrf_grid_bins_read(const struct dcrf_grid_bins *bins, const struct dcrf_ordered *ordered,
                         const float *scale, size_t variable, size_t count, size_t first_bin,
                         size_t width, const float *rows);

/* ---- grid_double.c -------------------------------------------------------------------------- */

/* The operator in double, for proofs. */
dcrf_status dcrf_grid_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                   const double *in, double *out, size_t channels,
                                   dcrf_error *error);

#endif
