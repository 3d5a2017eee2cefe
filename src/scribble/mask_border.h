/* What the distance from the borders of a label map says about its labels. */
#ifndef DCRF_SCRIBBLE_MASK_BORDER_H
#define DCRF_SCRIBBLE_MASK_BORDER_H

#include "core/threads.h"

#include <dcrf/grid.h>
#include <dcrf/masks.h>
#include <stdint.h>

struct dcrf_mask_border {
    const dcrf_grid *grid;
    const int32_t *map; /* negative: not known */
    size_t variables, labels;
    double unit;      /* in the unit of the grid's spacing */
    float *distances; /* to each label, label after label; HUGE_VALF where the map has none */
    double *reach;    /* of each label, relative to a thick one: 1 or less */
    double *offset;   /* of each label's border, inwards above zero */
    double *spread;   /* of each label's border around that offset: a standard deviation */
    float *gathered;  /* scratch memory, one for each pair of neighbours */
};

/* Measures distances. Everything pointed to must outlive it. False: out of memory; nothing is left
 * to clear. */
int dcrf_mask_border_init(struct dcrf_mask_border *border, const dcrf_grid *grid,
                          const int32_t *map, size_t labels, double thin, dcrf_pool *pool);
void dcrf_mask_border_clear(struct dcrf_mask_border *border);

/* How far variable a lies inside a label of the map, below zero where it is outside, and how far
 * scales reach there: 1, or less at thin things. */
double dcrf_mask_border_depth(const struct dcrf_mask_border *border, size_t a, size_t label);
double dcrf_mask_border_reach(const struct dcrf_mask_border *border, size_t a, size_t label);

/* Is there another label beside this one? */
int dcrf_mask_is_at_border(const dcrf_grid *grid, const int32_t *labelling, size_t a);

/* Set the offset of each label's border to `factor` times the median depth at which a
 * labelling has it, where that is less than `limit`; and the spread to their standard deviation
 * from the median, if that is normal. */
void dcrf_mask_border_measure(struct dcrf_mask_border *border, const int32_t *labelling,
                              double factor, double limit);

/* -ln of the probability that the true border of a label has variable a inside: Phi((depth -
 * offset) / sigma). */
double dcrf_mask_border_energy(const struct dcrf_mask_border *border, size_t a, size_t label,
                               double sigma);

#endif
