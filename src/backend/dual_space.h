/* What all points of the LP's dual have in common, on the CPU or on a device.
 *
 * For every labelling x, every antisymmetric alpha with |alpha_ab:i| <= K_ab, and every v in the
 * set of the clique form,
 *
 *   E(x) >= LB = constant + sum_a min_i ( phi_ai - (A alpha)_ai - v_ai ),
 *   (A alpha)_ai = sum_b alpha_ab:i  with the sign of K_ab sign(y_b - y_a)
 *
 * for Potts; for other compatibilities alpha has columns c in place of labels, and (A alpha)_ai =
 * sum_{c holds i} 2 length_c sum_b alpha_ab:c (energy/columns.h). The sets of v are
 *
 *   DCRF_CLIQUE_MIN     v_ai = C_p pi_ai, pi_i a distribution over the members of p; constant =
 *                       sum_p C_p, because [p not unanimous] >= 1 - sum_i sum_a pi_ai [x_a = i]
 *   DCRF_CLIQUE_SPREAD  sum_{a in p} v_ai = 0 and (1/2) sum_i sum_{a in p} |v_ai| <= C_p; constant
 *                       = 0
 *
 * Only the sums A alpha and v are stored. The set is convex, so mixtures are feasible as well. What
 * is stored differs from a feasible point only by rounding error. A chain of n roundings to float
 * changes a sum of terms t by at most n u / (1 - n u) sum |t| (Higham, "Accuracy and Stability of
 * Numerical Algorithms", section 3.1), u = 2^-24; for A alpha, sum |t| <= sum_b K_ab, the row sum,
 * times the reach of the columns. So with e_ai = n u (1 + DCRF_DUAL_SLACK) (row sum + ...)
 * subtracted from every reduced cost,
 *
 *   E(x) >= constant + sum_a min_i (phi_ai - pairwise_ai - clique_ai) - sum_a e_a
 *
 * holds for all x. Values below the smallest normal float are flushed to zero: DCRF_DUAL_TINY per
 * variable allows for this. The sums themselves are in double, and their own error, below count *
 * 2^-53 of the sum of magnitudes, is subtracted too. */
#ifndef DCRF_BACKEND_DUAL_SPACE_H
#define DCRF_BACKEND_DUAL_SPACE_H

#include <dcrf/experimental.h>
#include <math.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DCRF_DUAL_UNIT 0x1p-24 /* unit roundoff of float */
#define DCRF_DUAL_SLACK 1e-3   /* covers the denominator 1 - n u up to n = 16000 */
#define DCRF_DUAL_TINY 1e-25
#define DCRF_DOUBLE_UNIT 0x1p-53
/* A rounding to double, in units of one to float. */
#define DCRF_DOUBLE_ROUNDING 0x1p-29

struct dcrf_columns;

struct dcrf_dual_space {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    size_t variables;
    size_t labels, stride; /* of rows of points: the model's, except in cpu/lp_blocks.h */
    const float *unary;    /* in rows of this layout; NULL: the model's */
    dcrf_clique_form form;
    double *sums;         /* of the rows: sum_m w_m reach_m (K_m 1)_a, reach_m = 1 for Potts */
    float *row_sums;      /* the same, rounded up */
    double total;         /* of all rows */
    uint8_t *is_open;     /* for a line search: does a variable's slope change along it? */
    float *clique_cost;   /* C_p of the variable's clique, or 0; NULL without cliques */
    float *clique_weight; /* C_p / |p|, or 0; NULL without cliques */
    double clique_total;  /* sum of clique_cost over all variables */
    double *stiffness;    /* per clique: the curvature of its smoothed term, times epsilon */
    size_t largest_clique;
    double constant;
    struct dcrf_columns *columns; /* energy/columns.h */
    bool is_potts;                /* the columns are the labels */
    float *curvature;  /* per variable: sum_m w_m stiffness_m (K_m 1)_a, the row sum for Potts */
    float *group_sums; /* sum_m w_m (K_m 1)_a over the kernels of a group, group by group; NULL for
                          Potts */
    float *distances;  /* of the cuts, labels x labels for each group; NULL for Potts */
};

/* Allocates all memory. Fails with DCRF_ERROR_UNSUPPORTED if a kernel has no cuts. Before any other
 * use, the space must be measured: row sums, and costs and stiffness of the cliques. */
dcrf_status dcrf_dual_space_init(struct dcrf_dual_space *space, const dcrf_plan *plan,
                                 dcrf_workspace *workspace, dcrf_clique_form form,
                                 dcrf_error *error);
dcrf_status dcrf_dual_space_measure(struct dcrf_dual_space *space, dcrf_error *error);
void dcrf_dual_space_clear(struct dcrf_dual_space *space);

/* How differences of y become a dual point. epsilon = 0: sign(y_b - y_a), with y quantized to
 * `bins` bins. Otherwise clip((y_b - y_a) / epsilon), linear between `bins` nodes. Both are uniform
 * on [0, 1]. */
struct dcrf_pair_shape {
    double epsilon;
    size_t bins;
    bool is_precise; /* compute in double: several times the work, with negligible rounding error;
                        epsilon > 0 only */
};

/* What F rises from one node to the next. If epsilon is no wider than their distance, that is 1: F
 * is the sign at the nodes, and a line between them. */
static inline float dcrf_pair_slope(const struct dcrf_pair_shape *shape) {
    return fminf(1, (float)(1 / (shape->epsilon * (double)(shape->bins - 1))));
}

/* A label is dead while none of its entries exceeds this fraction of epsilon: its alpha would be
 * small anyway. */
#define DCRF_DEAD_SHARE 0.0625

/* The nodes and the table (bins x bins) of a shape for the ordered filter; if epsilon is 0, the
 * bins - 1 thresholds between the nodes, and no table. */
static inline void dcrf_pair_fill_levels(const struct dcrf_pair_shape *shape, float *nodes,
                                         float *table) {
    const size_t bins = shape->bins;
    if (shape->epsilon == 0) {
        for (size_t h = 0; h + 1 < bins; h++)
            nodes[h] = ((float)h + 0.5f) / (float)(bins - 1);
        return;
    }
    const float slope = dcrf_pair_slope(shape);
    for (size_t h = 0; h < bins; h++)
        nodes[h] = (float)h / (float)(bins - 1);
    for (size_t h = 0; h < bins; h++)
        for (size_t k = 0; k < bins; k++)
            table[h * bins + k] = fmaxf(-1, fminf(1, ((float)k - (float)h) * slope));
}

/* How far the stored numbers of a point can be from a feasible point: the number of roundings to
 * float (one to double counts as 2^-29) * 2^-24 times the row sum, and times |v| (C_p for the
 * spread form). */
struct dcrf_roundings {
    double pairwise, clique;
};

/* For a point of this shape, and for projections onto the cliques' sets. */
double dcrf_pair_roundings(const struct dcrf_dual_space *space,
                           const struct dcrf_pair_shape *shape);
double dcrf_clique_roundings(const struct dcrf_dual_space *space);

/* For into + weight (from - into), in double. A difference of two values up to r is rounded
 * relative to 2 r, and so is its product with the weight; the sum is rounded relative to r. */
static inline struct dcrf_roundings dcrf_roundings_mix(struct dcrf_roundings into,
                                                       struct dcrf_roundings from, double weight) {
    const double own = 7 * DCRF_DOUBLE_ROUNDING;
    into.pairwise = (1 - weight) * into.pairwise + weight * from.pairwise + own;
    into.clique = (1 - weight) * into.clique + weight * from.clique + own;
    return into;
}

/* How fast the subtracted error bound grows along the line from one point to another. */
static inline double dcrf_dual_error_slope(const struct dcrf_dual_space *space,
                                           struct dcrf_roundings from, struct dcrf_roundings to) {
    return (to.pairwise - from.pairwise) * DCRF_DUAL_UNIT * space->total;
}

/* The bound from sums over the variables, of the lowest reduced costs and of their magnitudes,
 * added in double in any order, after subtracting a bound on the rounding error. Rounding of the
 * row sums is covered by the factor 1 + 4 u; |v| <= C. */
static inline double dcrf_dual_bound_of_sums(const struct dcrf_dual_space *space,
                                             struct dcrf_roundings roundings, double lowest,
                                             double magnitude) {
    const double n = (double)space->variables;
    const double rows = space->total * (1 + 4 * DCRF_DUAL_UNIT);
    const double costs = space->clique_total * (1 + 4 * DCRF_DUAL_UNIT);
    const double unit = DCRF_DUAL_UNIT * (1 + DCRF_DUAL_SLACK);
    const double taken_off =
        roundings.pairwise * unit * rows + roundings.clique * unit * costs + n * DCRF_DUAL_TINY;
    return space->constant + lowest - taken_off -
           (n + 16) * DCRF_DOUBLE_UNIT *
               (magnitude + rows + costs + fabs(space->constant) + fabs(lowest));
}

#ifdef __cplusplus
}
#endif
#endif
