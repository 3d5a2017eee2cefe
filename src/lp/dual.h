/* Feasible points of the LP's dual, and the bound that each of them proves.
 *
 * For every labelling x, every antisymmetric alpha with |alpha_ab:i| <= K_ab, and every v in the
 * set of the clique form,
 *
 *   E(x) >= LB = constant + sum_a min_i ( phi_ai - (A alpha)_ai - v_ai ),
 *   (A alpha)_ai = sum_b alpha_ab:i  with the sign of K_ab sign(y_b - y_a),
 *
 *   DCRF_CLIQUE_MIN     v_ai = C_p pi_ai, pi_i a distribution over the members of p; constant =
 *                       sum_p C_p, because [p not unanimous] >= 1 - sum_i sum_a pi_ai [x_a = i]
 *   DCRF_CLIQUE_SPREAD  sum_{a in p} v_ai = 0 and (1/2) sum_i sum_{a in p} |v_ai| <= C_p; constant
 *                       = 0
 *
 * Only the sums A alpha and v are stored. The set is convex, so mixtures are feasible as well. */
#ifndef DCRF_LP_DUAL_H
#define DCRF_LP_DUAL_H

#include "filter/plan.h"

#include <dcrf/energy.h>

/* What all dual points of a model share. */
struct dcrf_dual_space {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    dcrf_clique_form form;
    double *sums;         /* of the rows: sum_m w_m (K_m 1)_a */
    float *row_sums;      /* the same, rounded up */
    double total;         /* of all rows */
    double *scratch;      /* of the measuring */
    uint8_t *is_open;     /* of a line search: does a variable's slope change on the way? */
    float *clique_cost;   /* C_p of the variable's clique, or 0; NULL without cliques */
    float *clique_weight; /* C_p / |p|, or 0; NULL without cliques */
    double clique_total;  /* of clique_cost over all variables */
    double constant;
};

/* A rounding to double, in units of one to float. */
#define DCRF_DOUBLE_ROUNDING 0x1p-29

struct dcrf_dual {
    double *pairwise; /* A alpha: a block with the model's stride */
    double *clique;   /* v; NULL without cliques */
    /* How far the stored numbers can be from those of a feasible point: roundings (to float; those
     * to double are 2^-29 of one) * 2^-24 times the row sum, and times |v| (C_p for the spread
     * form). */
    double pairwise_roundings, clique_roundings;
    /* Where the LP keeps what its points are made of (lp_mixture.h): how much of each part is in
     * this one; else NULL. */
    double *part_weights;
    size_t part_room;
};

/* Takes all memory. Fails with DCRF_ERROR_UNSUPPORTED where a kernel is not Potts. Before anything
 * else is done with it, the space must be measured: row sums and the costs of the cliques. */
dcrf_status dcrf_dual_space_init(struct dcrf_dual_space *space, const dcrf_plan *plan,
                                 dcrf_workspace *workspace, dcrf_clique_form form,
                                 dcrf_error *error);
dcrf_status dcrf_dual_space_measure(struct dcrf_dual_space *space, dcrf_error *error);
void dcrf_dual_space_clear(struct dcrf_dual_space *space);

/* Memory for a point, which is none yet. */
dcrf_status dcrf_dual_init(struct dcrf_dual *dual, const struct dcrf_dual_space *space,
                           dcrf_error *error);
/* The zero point, which is feasible but for the min form: there v is C_p / |p|. */
void dcrf_dual_reset(struct dcrf_dual *dual, const struct dcrf_dual_space *space);
/* Its v alone. */
void dcrf_dual_reset_cliques(struct dcrf_dual *dual, const struct dcrf_dual_space *space);
void dcrf_dual_clear(struct dcrf_dual *dual);

/* The bound, with the errors of all roundings taken off: never above the energy of any labelling.
 */
double dcrf_dual_bound(const struct dcrf_dual_space *space, const struct dcrf_dual *dual);

/* The same from sums over the variables that were made elsewhere: of the lowest reduced costs and
 * of their magnitudes, added up in double in any order. */
double dcrf_dual_bound_of_sums(const struct dcrf_dual_space *space, const struct dcrf_dual *dual,
                               double lowest, double magnitude);

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

/* What is known of a point besides its blocks, which may be elsewhere: that of the zero point, that
 * of a mixture, and how fast the rounding error that is subtracted grows on the way from one point
 * to another. */
void dcrf_dual_forget(struct dcrf_dual *dual);
void dcrf_dual_mix_errors(struct dcrf_dual *into, const struct dcrf_dual *from, double weight);
double dcrf_dual_error_slope(const struct dcrf_dual_space *space, const struct dcrf_dual *from,
                             const struct dcrf_dual *to);

/* Copy `candidate` to `best` where it proves more than *bound, and *bound with it. */
void dcrf_dual_keep(const struct dcrf_dual_space *space, struct dcrf_dual *best,
                    const struct dcrf_dual *candidate, double *bound);

/* Move `best`, whose bound is *bound, to the best mixture with `candidate` (LB is concave along the
 * line), and *bound with it. */
void dcrf_dual_improve(const struct dcrf_dual_space *space, struct dcrf_dual *best,
                       const struct dcrf_dual *candidate, double *bound);

#endif
