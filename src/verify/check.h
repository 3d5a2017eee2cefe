/* Internals of checking a certificate. */
#ifndef DCRF_VERIFY_CHECK_H
#define DCRF_VERIFY_CHECK_H

#include "core/owned.h"
#include "verify/certificate.h"

#include <dcrf/verify.h>
#include <math.h>

/* The kinds of sums over kernels: sums[a * labels + i] = sum_{b counts} K_ab G_i(a, b) for all
 * wanted a. */
enum dcrf_check_sum {
    DCRF_CHECK_LABELS,   /* G = [label of b is i] */
    DCRF_CHECK_POSSIBLE, /* G = [i is possible at b] */
    DCRF_CHECK_GROUP,    /* members: F of the values; others: 2 [i possible at b, not x_a] */
    DCRF_CHECK_MIXTURE   /* sum over the points of weight times F */
};

struct dcrf_check {
    const dcrf_model *model;
    const struct dcrf_certificate_content *content;
    dcrf_workspace *workspace;
    const dcrf_plan *plan; /* with fast operators; NULL: exact */
    dcrf_plan *own_plan;   /* the same if it was made for the check; else NULL */
    double **features;     /* exact: per kernel, variables x dimension, scaled */
    double **scale;        /* exact: per kernel, 1 / sqrt(row sum) or 1 */
    double *in, *out;      /* fast: blocks of CHECK_CHANNELS */
    const float *distance; /* labels x labels: the model's; NULL: Potts */
    /* For a mixture with cuts: the values of some cuts, from first_cut on. Exact: points x
     * cuts_at_once x variables; fast: one cut of one point. */
    uint32_t *columns;
    size_t first_cut, cuts_at_once;
    /* Bound on the error of a sum over b of K_ab times at most 2; with a distance, of K_ab times
     * any sum of lengths of its cuts, or times the distance. */
    double *sum_error;
    uint8_t *possible;
    uint8_t *is_decided;
    double *taken; /* variables x labels: sum_{b decided, x_b = i} K_ab */
    double excess; /* bound on the energy of x above the optimum: the best of all mixtures so far */
    /* The current sum. */
    enum dcrf_check_sum kind;
    const uint16_t *labels;
    const struct dcrf_certificate_mixture *mixture;
    uint32_t *place; /* index of a variable in the mixture */
    uint8_t *counts, *wanted, *member;
    double *line; /* F of two values: DCRF_VALUE_MOST + 1 squared */
    double *sums;
    struct dcrf_owned owned; /* all arrays but `columns` */
};

/* A NaN means that nothing is known. It passes no comparison, and in contrast to fmin and fmax
 * these keep it. */
static inline double dcrf_check_least(double one, double other) {
    return one < other || isnan(one) ? one : other;
}
static inline double dcrf_check_most(double one, double other) {
    return one > other || isnan(one) ? one : other;
}

/* The weight of a node in a value. */
static inline double dcrf_check_share(size_t value, size_t node) {
    return dcrf_check_most(0, 1 - fabs((double)value / DCRF_VALUE_STEPS - (double)node));
}

/* A compensated sum with a bound on its error (Neumaier 1974). */
struct dcrf_check_total {
    double sum, rest, magnitude;
};
void dcrf_check_add(struct dcrf_check_total *total, double value);
/* Lower and upper bounds on the exact sum. */
double dcrf_check_low(const struct dcrf_check_total *total);
double dcrf_check_high(const struct dcrf_check_total *total);

/* ---- check_sums.c --------------------------------------------------------------------------- */

/* Set up the data of the kernels and the error bounds of sums. Fails unless all sums are far below
 * the largest double, so that none of them can overflow. */
dcrf_status dcrf_check_kernels_init(struct dcrf_check *check, dcrf_error *error);
void dcrf_check_kernels_clear(struct dcrf_check *check);
dcrf_status dcrf_check_add_up(struct dcrf_check *check, dcrf_error *error);

/* ---- check.c -------------------------------------------------------------------------------- */

/* Let all undecided variables, and only these, be counted and wanted. */
void dcrf_check_fill_undecided(struct dcrf_check *check);
/* Bound on the error of a unary minus sums over kernels. It depends neither on other labels nor on
 * the number of rounds, because no previously rounded number enters. */
double dcrf_check_error(const struct dcrf_check *check, size_t variable, size_t label);
bool dcrf_check_may_agree(const struct dcrf_check *check, size_t clique, size_t label);

/* What a mixture over all variables proves before anything else is known: how far x can be above
 * the optimum, and which labels are possible. Used when a certificate is made, to claim just that.
 * `plan`: of the fast operators, or NULL. */
dcrf_status dcrf_check_first(const struct dcrf_certificate_content *content,
                             const dcrf_model *model, const dcrf_plan *plan,
                             dcrf_workspace *workspace, double *excess, uint8_t *possible,
                             dcrf_error *error);

/* ---- check_cuts.c --------------------------------------------------------------------------- */

/* Fails unless the model has a single distance and the cuts sum to no more than that distance (for
 * Potts: there are no cuts). */
dcrf_status dcrf_check_cuts(struct dcrf_check *check, dcrf_error *error);
/* Factor by which errors of sums are larger with a distance. */
double dcrf_check_cuts_scale(const struct dcrf_certificate_content *content, const float *distance,
                             size_t labels);
/* The values of a cut at the variables of the mixture, for one of its points. */
void dcrf_check_fill_column(const struct dcrf_check *check, size_t point, size_t cut,
                            uint32_t *column);
/* sums[i] += 2 length value for the labels i in the cut. */
void dcrf_check_spread(const struct dcrf_check *check, size_t cut, double value, double *sums);

/* ---- check_bound.c -------------------------------------------------------------------------- */

/* Bound the excess by a mixture, and exclude the labels that the bound rules out. */
dcrf_status dcrf_check_mixture(struct dcrf_check *check,
                               const struct dcrf_certificate_mixture *mixture, dcrf_error *error);
/* Lower and upper bounds on the energy of a labelling, and the sum of its terms' magnitudes. */
dcrf_status dcrf_check_energy(struct dcrf_check *check, const uint16_t *labels, double *low,
                              double *high, double *magnitude, dcrf_error *error);
/* Compare what was found with what is claimed. */
dcrf_status dcrf_check_conclude(struct dcrf_check *check, dcrf_verification *made,
                                dcrf_error *error);

#endif
