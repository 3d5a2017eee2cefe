/* Feasible points of the LP's dual in the host's memory, and the bound that each of them proves
 * (the mathematics: backend/dual_space.h). */
#ifndef DCRF_BACKEND_CPU_DUAL_H
#define DCRF_BACKEND_CPU_DUAL_H

#include "backend/dual_space.h"
#include "filter/plan.h"

struct dcrf_dual {
    double *pairwise; /* A alpha: a block with the stride of the space */
    double *clique;   /* v; NULL without cliques */
    struct dcrf_roundings roundings;
    /* Where the LP keeps what its points are made of (lp_mixture.h): how much of each part is in
     * this one; else NULL. */
    double *part_weights;
    size_t part_room;
};

/* Of the rows that points of the space have. */
static inline const float *dcrf_dual_unary(const struct dcrf_dual_space *space) {
    return space->unary ? space->unary : space->plan->model->unary;
}

/* Memory for a point, which is none yet. */
dcrf_status dcrf_dual_init(struct dcrf_dual *dual, const struct dcrf_dual_space *space,
                           dcrf_error *error);
/* The zero point, which is feasible but for the min form: there v is C_p / |p|. */
void dcrf_dual_reset(struct dcrf_dual *dual, const struct dcrf_dual_space *space);
void dcrf_dual_clear(struct dcrf_dual *dual);

/* The bound after subtracting a bound on the rounding error: never above the energy of any
 * labelling.
 */
double dcrf_dual_bound(const struct dcrf_dual_space *space, const struct dcrf_dual *dual);

/* possible[i] = 0 for every label of the variable whose reduced cost exceeds the smallest one by
 * more than `excess`: a labelling that has it there is more than that above the dual's bound. */
void dcrf_dual_exclude(const struct dcrf_dual_space *space, const struct dcrf_dual *dual,
                       size_t variable, double excess, uint8_t *possible);

/* How many labels that leaves, and whether `label` is among them. */
size_t dcrf_dual_count(const struct dcrf_dual_space *space, const struct dcrf_dual *dual,
                       size_t variable, double excess, size_t label, bool *has_label);

/* into += weight * (from - into), 0 <= weight <= 1. */
void dcrf_dual_mix(const struct dcrf_dual_space *space, struct dcrf_dual *into,
                   const struct dcrf_dual *from, double weight);

/* What is known of a point besides its blocks, which may be elsewhere: that of the zero point, and
 * that of a mixture. */
void dcrf_dual_forget(struct dcrf_dual *dual, const struct dcrf_dual_space *space);
void dcrf_dual_mix_errors(struct dcrf_dual *into, const struct dcrf_dual *from, double weight);

/* Copy `candidate` to `best` where it proves more than *bound, and *bound with it. */
void dcrf_dual_keep(const struct dcrf_dual_space *space, struct dcrf_dual *best,
                    const struct dcrf_dual *candidate, double *bound);

/* Move `best`, whose bound is *bound, to the best mixture with `candidate` (LB is concave along the
 * line), and *bound with it. Returns the weight of `candidate`. */
double dcrf_dual_improve(const struct dcrf_dual_space *space, struct dcrf_dual *best,
                         const struct dcrf_dual *candidate, double *bound);

#endif
