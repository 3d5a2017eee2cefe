/* Borders of a label map. Variable a lies at the depth
 *
 *   d_l(a) = distance to the nearest other label - s / 2       inside label l,
 *          = s / 2 - distance to l                             outside,
 *
 * where s is the spacing: the border runs between pixels, half a spacing from each. If the true
 * border of l lies t further in, with a normal error of standard deviation sigma, then a belongs to
 * l with the probability
 *
 *   Phi((d_l(a) - t_l) / sigma).
 *
 * This leaves the label open within about sigma of the border and nearly certain beyond three
 * sigma: -ln Phi grows with the square of the distance. The offset t_l is common to all borders of
 * a label, since masks tend to be uniformly generous or tight, grown or eroded. It is the median
 * depth of the border that the image suggests, because a median is robust to local errors. sigma is
 * sqrt(pi / 2) times the mean absolute deviation from it, as for a normal error: it is large for
 * wobbly outlines and tiny for careful ones. (The median deviation would be a multiple of half a
 * pixel.) If the image and the map disagree here and there, the median is a matter of chance: it
 * counts as an offset as far as it exceeds a multiple of sigma, the doubt. A map that was grown or
 * eroded has borders with a small spread around their offset.
 *
 * An object of mean depth m is as thick as a disc of radius 3 m. Errors are assumed to be at most a
 * fraction of that, so small objects have narrower bands. */
#include "scribble/mask_border.h"

#include "model/view.h"
#include "scribble/distance.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define FARTHEST_SIGMAS 8 /* -ln Phi(-8) = 35 nats */

static const double sqrt_half = 0.70710678118654752440, sqrt_half_pi = 1.25331413731550025121;

/* ---- distances ------------------------------------------------------------------------------ */

double dcrf_mask_unit(const dcrf_grid *grid) {
    double extent = 1;
    for (size_t i = 0; i < grid->axes; i++)
        extent *= (double)grid->size[i] * grid->spacing[i];
    return pow(extent, 1 / (double)grid->axes) / DCRF_MASK_EXTENT;
}

static double distance_to_others(const struct dcrf_mask_border *border, size_t a, size_t label) {
    float least = HUGE_VALF;
    for (size_t other = 0; other < border->labels; other++)
        if (other != label)
            least = fminf(least, border->distances[other * border->variables + a]);
    return (double)least;
}

double dcrf_mask_border_depth(const struct dcrf_mask_border *border, size_t a, size_t label) {
    const double half = dcrf_grid_least_spacing(border->grid) / 2;
    return border->map[a] == (int32_t)label
               ? distance_to_others(border, a, label) - half
               : half - (double)border->distances[label * border->variables + a];
}

double dcrf_mask_border_reach(const struct dcrf_mask_border *border, size_t a, size_t label) {
    return border->map[a] < 0 ? border->reach[label]
                              : fmin(border->reach[label], border->reach[border->map[a]]);
}

/* From the centre of a variable to that of the nearest place outside the picture. */
static double distance_to_frame(const dcrf_grid *grid, size_t a) {
    double least = HUGE_VAL;
    for (size_t i = 0, step = 1; i < grid->axes; step *= grid->size[i++]) {
        const size_t before = a / step % grid->size[i], after = grid->size[i] - 1 - before;
        const size_t steps = 1 + (before < after ? before : after);
        least = fmin(least, (double)steps * grid->spacing[i]);
    }
    return least;
}

/* The mean depth inside a label, relative to that of a label thick enough for bands of full width;
 * at most 1. The frame of the picture counts as a border: a strip along it is as thin as one
 * elsewhere. */
static double reach_of(const struct dcrf_mask_border *border, size_t label, double thin) {
    double sum = 0;
    size_t count = 0;
    for (size_t a = 0; a < border->variables; a++)
        if (border->map[a] == (int32_t)label) {
            const double depth =
                fmin(distance_to_others(border, a, label), distance_to_frame(border->grid, a));
            sum += fmin(depth, thin * border->unit);
            count++;
        }
    return count > 0 ? fmin(1, 3 * sum / ((double)count * thin * border->unit)) : 1;
}

int dcrf_mask_border_init(struct dcrf_mask_border *border, const dcrf_grid *grid,
                          const int32_t *map, size_t labels, double thin, dcrf_pool *pool) {
    const size_t variables = grid->size[0] * grid->size[1] * grid->size[2];
    DCRF_AT_END(dcrf_distance_lines_clear) struct dcrf_distance_lines lines = {0};
    *border = (struct dcrf_mask_border){.grid = grid,
                                        .map = map,
                                        .variables = variables,
                                        .labels = labels,
                                        .unit = dcrf_mask_unit(grid)};
    struct dcrf_owned *owned = &border->owned;
    border->distances = dcrf_own(owned, variables, labels * sizeof(float));
    border->reach = dcrf_own_zero(owned, labels, sizeof(double));
    border->offset = dcrf_own_zero(owned, labels, sizeof(double));
    border->spread = dcrf_own_zero(owned, labels, sizeof(double));
    border->gathered = dcrf_own(owned, variables, grid->axes * sizeof(float));
    if (owned->is_short || !dcrf_distance_lines_init(&lines, grid, pool)) {
        dcrf_mask_border_clear(border);
        return false;
    }
    for (size_t label = 0; label < labels; label++)
        dcrf_distances_to(grid, map, (int32_t)label, &lines, pool,
                          border->distances + label * variables);
    for (size_t label = 0; label < labels; label++)
        border->reach[label] = reach_of(border, label, thin);
    return true;
}

void dcrf_mask_border_clear(struct dcrf_mask_border *border) {
    dcrf_disown(&border->owned);
}

/* ---- offsets -------------------------------------------------------------------------------- */

int dcrf_mask_is_at_border(const dcrf_grid *grid, const int32_t *labelling, size_t a) {
    size_t step = 1;
    for (size_t i = 0; i < grid->axes; step *= grid->size[i++]) {
        const size_t position = a / step % grid->size[i];
        if ((position > 0 && labelling[a - step] != labelling[a]) ||
            (position + 1 < grid->size[i] && labelling[a + step] != labelling[a]))
            return true;
    }
    return false;
}

static int compare_floats(const void *a, const void *b) {
    const float first = *(const float *)a, second = *(const float *)b;
    return (first > second) - (first < second);
}

static double median(float *values, size_t count) {
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare_floats);
    return 0.5 * ((double)values[(count - 1) / 2] + (double)values[count / 2]);
}

/* The standard deviation of normally distributed values, from their mean absolute deviation. */
static double deviation(const float *values, size_t count, double middle) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fabs((double)values[i] - middle);
    return count > 0 ? sqrt_half_pi * sum / (double)count : 0;
}

/* The depths of a label's border in a labelling, one per pair of neighbours on either side of it:
 * measured halfway between them, so that the map's own border has depth 0. A border among unknown
 * variables contradicts nothing in the map, so its depth is 0, too. Returns their number. */
static size_t gather_depths(const struct dcrf_mask_border *border, const int32_t *labelling,
                            size_t label, double limit) {
    const dcrf_grid *grid = border->grid;
    size_t step = 1, count = 0;
    for (size_t i = 0; i < grid->axes; step *= grid->size[i++])
        for (size_t a = 0; a + step < border->variables; a++) {
            const size_t b = a + step;
            if (a / step % grid->size[i] + 1 == grid->size[i] ||
                (labelling[a] == (int32_t)label) == (labelling[b] == (int32_t)label))
                continue;
            const bool is_known = border->map[a] >= 0 && border->map[b] >= 0;
            const double depth = is_known ? 0.5 * (dcrf_mask_border_depth(border, a, label) +
                                                   dcrf_mask_border_depth(border, b, label))
                                          : 0;
            if (fabs(depth) < limit * dcrf_mask_border_reach(border, a, label))
                border->gathered[count++] = (float)depth;
        }
    return count;
}

/* How far an offset is believed, from 0 to 1: much if it is large compared with the spread. */
static double belief(double offset, double spread, double doubt) {
    const double of_offset = pow(fabs(offset), 4), of_spread = pow(doubt * spread, 4);
    return of_offset > 0 ? of_offset / (of_offset + of_spread) : 0;
}

void dcrf_mask_border_measure(struct dcrf_mask_border *border, const int32_t *labelling,
                              double factor, double doubt, double limit) {
    for (size_t label = 0; label < border->labels; label++) {
        const size_t count = gather_depths(border, labelling, label, limit);
        const double middle = median(border->gathered, count);
        border->spread[label] = deviation(border->gathered, count, middle);
        border->offset[label] = factor * middle * belief(middle, border->spread[label], doubt);
    }
}

/* ---- energies ------------------------------------------------------------------------------- */

double dcrf_mask_border_energy(const struct dcrf_mask_border *border, size_t a, size_t label,
                               double sigma) {
    const double depth = dcrf_mask_border_depth(border, a, label) - border->offset[label];
    const double sigmas = depth / (sigma * dcrf_mask_border_reach(border, a, label));
    return -log(0.5 * erfc(-fmin(fmax(sigmas, -FARTHEST_SIGMAS), FARTHEST_SIGMAS) * sqrt_half));
}
