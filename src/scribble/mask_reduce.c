/* Reducing a picture under a rough mask.
 *
 * All lengths of the method are in units of the picture's extent, so pixels that are much smaller
 * than a unit cost time and tell nothing new about where a border roughly is. A large picture is
 * therefore reduced to cells: the mean colour, and the label of most of the cell. A pixel belongs
 * to the cell that contains its centre, as in model/unary_guided.c, which enlarges the result. */
#include "scribble/mask_reduce.h"

#include "core/error.h"
#include "model/view.h"

#include <math.h>
#include <stdbool.h>

static const char what[] = "the reduced mask";

dcrf_grid dcrf_mask_reduced_grid(const dcrf_grid *grid, double cell) {
    dcrf_grid cells = *grid;
    for (size_t i = 0; i < grid->axes; i++) {
        const double length = (double)grid->size[i] * grid->spacing[i];
        if (grid->spacing[i] > cell / 2)
            continue;
        cells.size[i] = (size_t)fmax(1, round(length / cell));
        cells.spacing[i] = length / (double)cells.size[i];
    }
    return cells;
}

static size_t cell_of(const dcrf_grid *grid, const dcrf_grid *cells, size_t a) {
    size_t position[DCRF_MAX_AXES], cell[DCRF_MAX_AXES];
    dcrf_grid_position(grid, a, position);
    for (size_t i = 0; i < DCRF_MAX_AXES; i++)
        cell[i] = (2 * position[i] + 1) * cells->size[i] / (2 * grid->size[i]);
    return (cell[2] * cells->size[1] + cell[1]) * cells->size[0] + cell[0];
}

/* ---- colours -------------------------------------------------------------------------------- */

static dcrf_status average_colours(struct dcrf_mask_reduced *r, const dcrf_grid *grid,
                                   size_t variables, const dcrf_view *image, dcrf_error *error) {
    const size_t width = r->channels + 1; /* and the number of pixels */
    DCRF_SCOPED float *colours = dcrf_allocate(variables, r->channels * sizeof *colours);
    DCRF_SCOPED double *sums = dcrf_allocate_zero(r->cells, width * sizeof *sums);
    if (!colours || !sums)
        return dcrf_fail_memory(error, what);
    TRY(dcrf_view_copy(image, grid, "the image", NULL, colours, r->channels, error));
    for (size_t a = 0; a < variables; a++) {
        double *sum = sums + cell_of(grid, &r->grid, a) * width;
        for (size_t c = 0; c < r->channels; c++)
            sum[c] += (double)colours[a * r->channels + c];
        sum[r->channels]++;
    }
    for (size_t k = 0; k < r->cells; k++)
        for (size_t c = 0; c < r->channels; c++)
            r->image[k * r->channels + c] =
                (float)(sums[k * width + c] / sums[k * width + r->channels]);
    return DCRF_OK;
}

/* ---- labels --------------------------------------------------------------------------------- */

static int32_t most_frequent(const uint32_t *counts, size_t labels) {
    size_t best = 0, known = 0;
    for (size_t i = 0; i < labels; i++) {
        known += counts[i];
        if (counts[i] > counts[best])
            best = i;
    }
    return known > 0 && known >= counts[labels] ? (int32_t)best : -1;
}

/* `counts` has room for the labels and the unknown pixels of each cell. */
static void choose_labels(struct dcrf_mask_reduced *r, const dcrf_grid *grid, size_t variables,
                          const int32_t *map, size_t labels, uint32_t *counts) {
    const size_t width = labels + 1;
    for (size_t a = 0; a < variables; a++)
        counts[cell_of(grid, &r->grid, a) * width + (map[a] < 0 ? labels : (size_t)map[a])]++;
    for (size_t k = 0; k < r->cells; k++) {
        r->map[k] = most_frequent(counts + k * width, labels);
        if (r->map[k] >= 0)
            r->shown[r->map[k]] += counts[k * width + (size_t)r->map[k]];
    }
}

static void average_confidence(struct dcrf_mask_reduced *r, const dcrf_grid *grid, size_t variables,
                               const int32_t *map, size_t labels, const float *confidence,
                               const uint32_t *counts, double *sums) {
    for (size_t a = 0; a < variables; a++)
        if (map[a] >= 0)
            sums[cell_of(grid, &r->grid, a)] += (double)confidence[a];
    for (size_t k = 0; k < r->cells; k++) {
        double known = 0;
        for (size_t i = 0; i < labels; i++)
            known += counts[k * (labels + 1) + i];
        r->confidence[k] = known > 0 ? (float)(sums[k] / known) : 0;
    }
}

static dcrf_status reduce_labels(struct dcrf_mask_reduced *r, const dcrf_grid *grid,
                                 size_t variables, const int32_t *map, size_t labels,
                                 const float *confidence, dcrf_error *error) {
    DCRF_SCOPED uint32_t *counts = dcrf_allocate_zero(r->cells, (labels + 1) * sizeof *counts);
    DCRF_SCOPED double *sums = dcrf_allocate_zero(r->cells, sizeof *sums);
    if (!counts || !sums)
        return dcrf_fail_memory(error, what);
    choose_labels(r, grid, variables, map, labels, counts);
    if (confidence)
        average_confidence(r, grid, variables, map, labels, confidence, counts, sums);
    return DCRF_OK;
}

int dcrf_mask_reduced_is_faithful(const struct dcrf_mask_reduced *reduced,
                                  const size_t *label_sizes, size_t labels) {
    bool is_faithful = true;
    for (size_t i = 0; i < labels; i++)
        is_faithful = is_faithful && reduced->shown[i] >= label_sizes[i] / 2;
    return is_faithful;
}

/* ---- both ----------------------------------------------------------------------------------- */

dcrf_status dcrf_mask_reduce(struct dcrf_mask_reduced *reduced, const dcrf_grid *grid,
                             const dcrf_grid *cells, const dcrf_view *image, const int32_t *map,
                             size_t labels, const float *confidence, dcrf_error *error) {
    const size_t variables = grid->size[0] * grid->size[1] * grid->size[2];
    *reduced = (struct dcrf_mask_reduced){.grid = *cells,
                                          .cells = cells->size[0] * cells->size[1] * cells->size[2],
                                          .channels = image->channels};
    struct dcrf_owned *owned = &reduced->owned;
    reduced->image = dcrf_own(owned, reduced->cells, image->channels * sizeof *reduced->image);
    reduced->map = dcrf_own(owned, reduced->cells, sizeof *reduced->map);
    if (confidence)
        reduced->confidence = dcrf_own(owned, reduced->cells, sizeof *reduced->confidence);
    reduced->shown = dcrf_own_zero(owned, labels, sizeof *reduced->shown);
    if (owned->is_short)
        return dcrf_fail_memory(error, what);
    TRY(average_colours(reduced, grid, variables, image, error));
    return reduce_labels(reduced, grid, variables, map, labels, confidence, error);
}

void dcrf_mask_reduced_clear(struct dcrf_mask_reduced *reduced) {
    dcrf_disown(&reduced->owned);
}
