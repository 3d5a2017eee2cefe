/* How many inner steps (backend/cpu/lp_majorant.c) a step of the LP gets. */
#ifndef DCRF_LP_LP_INNER_H
#define DCRF_LP_LP_INNER_H

#include <stdbool.h>
#include <stddef.h>

struct dcrf_lp_inner {
    bool is_lifted; /* y started off the corner (lp/lp_lift.c) */
    size_t steps;   /* of the LP, so far */
    size_t count;   /* inner steps of the next step; 0: none until the pause is over */
    size_t pause;   /* steps until the next trial */
    size_t quiet;   /* steps at this width since the bound has risen enough from bound_before */
    double bound_before;
};

/* Where the LP stands: the energy of the best labelling, the bound, the gap between them, and the
 * smoothed objective of the last step. */
struct dcrf_lp_progress {
    double energy, bound, relative_gap, objective;
};

/* A lifted start is far from its optimum in the metric of the Laplacian alone, so inner steps
 * follow every step from the first on, as long as they pay off. */
struct dcrf_lp_inner dcrf_lp_inner_begin(bool is_lifted);

/* The number of inner steps of the next step. */
size_t dcrf_lp_inner_choose(struct dcrf_lp_inner *inner, const struct dcrf_lp_progress *now);

/* Adapt the number of inner steps to how far the majorant had fallen before and after the last but
 * one. `bins` is the number of bins of the step's ordered filter. */
void dcrf_lp_inner_adapt(struct dcrf_lp_inner *inner, size_t count, size_t bins,
                         const double *decrease);

#endif
