/* Feasible points of the LP's dual in host memory, and the lower bound that each of them proves
 * (the mathematics: backend/dual_space.h). */
#ifndef DCRF_BACKEND_DUAL_H
#define DCRF_BACKEND_DUAL_H

#include "backend/dual_space.h"
#include "filter/plan.h"

struct dcrf_dual {
    double *pairwise; /* A alpha: a block with the stride of the space */
    double *clique;   /* v; NULL without cliques */
    /* If rows have other columns than the space's (dcrf_dual_bound, _exclude and _count can read
     * them): the column of each label, and the stride; otherwise NULL. */
    const size_t *column_of;
    size_t column_stride;
    struct dcrf_roundings roundings;
    /* If the LP keeps the parts that its points are mixed from (lp_mixture.h): the weight of each
     * part in this point; otherwise NULL. */
    double *part_weights;
    size_t part_room;
};

/* The unaries, in the row layout of the space's points. */
static inline const float *dcrf_dual_unary(const struct dcrf_dual_space *space) {
    return space->unary ? space->unary : space->plan->model->unary;
}

/* Allocates memory for a point; its values are uninitialized. */
dcrf_status dcrf_dual_init(struct dcrf_dual *dual, const struct dcrf_dual_space *space,
                           dcrf_error *error);
/* The zero point, which is feasible except in the min form: there v is C_p / |p|. */
void dcrf_dual_reset(struct dcrf_dual *dual, const struct dcrf_dual_space *space);
void dcrf_dual_clear(struct dcrf_dual *dual);

/* The lower bound, after subtracting a bound on the rounding error: valid for every labelling. */
double dcrf_dual_bound(const struct dcrf_dual_space *space, const struct dcrf_dual *dual);

/* possible[i] = 0 for every label of the variable whose reduced cost exceeds the smallest by more
 * than `excess`: the energy of any labelling that uses it there exceeds the dual bound by more than
 * that. */
void dcrf_dual_exclude(const struct dcrf_dual_space *space, const struct dcrf_dual *dual,
                       size_t variable, double excess, uint8_t *possible);

/* The number of labels that this leaves, and whether `label` is among them. */
size_t dcrf_dual_count(const struct dcrf_dual_space *space, const struct dcrf_dual *dual,
                       size_t variable, double excess, size_t label, bool *has_label);

/* into += weight * (from - into), 0 <= weight <= 1. */
void dcrf_dual_mix(const struct dcrf_dual_space *space, struct dcrf_dual *into,
                   const struct dcrf_dual *from, double weight);

/* The rest of a point besides its blocks, which may be on a device: for the zero point, and for a
 * mixture. */
void dcrf_dual_forget(struct dcrf_dual *dual, const struct dcrf_dual_space *space);
void dcrf_dual_mix_errors(struct dcrf_dual *into, const struct dcrf_dual *from, double weight);

/* Copy `candidate` to `best` if its bound exceeds *bound, and update *bound. */
void dcrf_dual_keep(const struct dcrf_dual_space *space, struct dcrf_dual *best,
                    const struct dcrf_dual *candidate, double *bound);

/* Move `best`, whose bound is *bound, to the best mixture with `candidate` (LB is concave along the
 * line), and update *bound. Returns the weight of `candidate`. */
double dcrf_dual_improve(const struct dcrf_dual_space *space, struct dcrf_dual *best,
                         const struct dcrf_dual *candidate, double *bound);

#endif
