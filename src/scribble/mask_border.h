/* Evidence about labels from the distance to the borders of a label map. */
#ifndef DCRF_SCRIBBLE_MASK_BORDER_H
#define DCRF_SCRIBBLE_MASK_BORDER_H

#include "core/owned.h"
#include "core/threads.h"

#include <dcrf/grid.h>
#include <dcrf/masks.h>
#include <stdint.h>

struct dcrf_mask_border {
    const dcrf_grid *grid;
    const int32_t *map; /* negative: unknown */
    size_t variables, labels;
    double unit;      /* in the unit of the grid's spacing */
    float *distances; /* to each label, label by label; HUGE_VALF if the map lacks it */
    double *reach;    /* of each label, relative to a thick one: at most 1 */
    double *offset;   /* of each label's border, positive inwards */
    double *spread;   /* of each label's border around that offset: a standard deviation */
    float *gathered;  /* scratch memory, one float per pair of neighbours */
    struct dcrf_owned owned;
};

/* Measures the distances. Everything pointed to must outlive the struct. False: out of memory;
 * nothing is left to clear. */
int dcrf_mask_border_init(struct dcrf_mask_border *border, const dcrf_grid *grid,
                          const int32_t *map, size_t labels, double thin, dcrf_pool *pool);
void dcrf_mask_border_clear(struct dcrf_mask_border *border);

/* The unit of a picture's extent, in the unit of the grid's spacing. */
double dcrf_mask_unit(const dcrf_grid *grid);

/* The depth of variable a inside a label of the map, negative outside; and the factor on length
 * scales there: 1, or less at thin objects. */
double dcrf_mask_border_depth(const struct dcrf_mask_border *border, size_t a, size_t label);
double dcrf_mask_border_reach(const struct dcrf_mask_border *border, size_t a, size_t label);

/* Does any neighbour have another label? */
int dcrf_mask_is_at_border(const dcrf_grid *grid, const int32_t *labelling, size_t a);

/* Set the offset of each label's border to `factor` times the median depth of that border in a
 * labelling, ignoring depths of `limit` or more; and the spread to the standard deviation around
 * the median, assuming a normal distribution. A median of `doubt` spreads counts by half, a smaller
 * one by less. */
void dcrf_mask_border_measure(struct dcrf_mask_border *border, const int32_t *labelling,
                              double factor, double doubt, double limit);

/* -ln of the probability that variable a is inside the true border of a label: Phi((depth - offset)
 * / sigma). */
double dcrf_mask_border_energy(const struct dcrf_mask_border *border, size_t a, size_t label,
                               double sigma);

#endif
