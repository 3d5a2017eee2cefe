/* The inside of the check of a certificate. */
#ifndef DCRF_VERIFY_CHECK_H
#define DCRF_VERIFY_CHECK_H

#include "verify/certificate.h"

#include <dcrf/verify.h>

/* What a sum over kernels is of: sums[a * labels + i] = sum_{b counts} K_ab G_i(a, b) for all a
 * that are wanted. */
enum dcrf_check_sum {
    DCRF_CHECK_LABELS,   /* G = [label of b is i] */
    DCRF_CHECK_POSSIBLE, /* G = [i is possible at b] */
    DCRF_CHECK_GROUP,  /* members: F between the values; the others: 2 [i possible at b, not x_a] */
    DCRF_CHECK_MIXTURE /* sum over the points of weight F */
};

struct dcrf_check {
    const dcrf_model *model;
    const struct dcrf_certificate_content *content;
    dcrf_workspace *workspace;
    dcrf_plan *plan;       /* of the fast operators; NULL: exact */
    double **features;     /* exact: of every kernel, variables x dimension, scaled */
    double **scale;        /* exact: of every kernel, 1 / sqrt(row sum) or 1 */
    double *in, *out;      /* fast: blocks of CHECK_CHANNELS */
    const float *distance; /* labels x labels: the model's; NULL: Potts */
    uint32_t *columns;     /* exact, of a mixture with cuts: points x cuts x variables */
    /* A sum of K_ab times at most 2 for variable a is right to sum_error[a]; with a distance, one
     * of K_ab times any sum of its cuts' lengths, or the distance. */
    double *sum_error;
    uint8_t *possible;
    uint8_t *is_decided;
    double *taken; /* variables x labels: sum_{b decided, x_b = i} K_ab */
    double excess; /* of x over the optimum, at most: the best of all mixtures so far */
    /* The sum in hand. */
    enum dcrf_check_sum kind;
    const uint16_t *labels;
    const struct dcrf_certificate_mixture *mixture;
    uint32_t *place; /* of a variable in the mixture */
    uint8_t *counts, *wanted, *member;
    double *line; /* F between two values: DCRF_VALUE_MOST + 1 squared */
    double *sums;
};

/* A sum of numbers of any size that knows how wrong it can be (Neumaier 1974). */
struct dcrf_check_total {
    double sum, rest, magnitude;
};
void dcrf_check_add(struct dcrf_check_total *total, double value);
/* What the sum is at least and at most. */
double dcrf_check_low(const struct dcrf_check_total *total);
double dcrf_check_high(const struct dcrf_check_total *total);

/* ---- check_sums.c --------------------------------------------------------------------------- */

/* The kernels' own data, and the errors of sums. */
dcrf_status dcrf_check_kernels_init(struct dcrf_check *check, dcrf_error *error);
void dcrf_check_kernels_clear(struct dcrf_check *check);
dcrf_status dcrf_check_add_up(struct dcrf_check *check, dcrf_error *error);

/* ---- check.c -------------------------------------------------------------------------------- */

/* Count and want all that is undecided. */
void dcrf_check_fill_undecided(struct dcrf_check *check);
/* How far a difference between a unary and sums over kernels can be from the truth. It does not
 * depend on other labels, nor on the number of rounds: no number that was rounded before goes in.
 */
double dcrf_check_error(const struct dcrf_check *check, size_t variable, size_t label);
bool dcrf_check_may_agree(const struct dcrf_check *check, size_t clique, size_t label);

/* What a mixture for all variables says before anything else is known: how far x can be above the
 * optimum, and which labels are possible. The certificate says so when it is made. `plan`: of the
 * fast operators, or NULL. */
dcrf_status dcrf_check_first(const struct dcrf_certificate_content *content,
                             const dcrf_model *model, dcrf_plan *plan, dcrf_workspace *workspace,
                             double *excess, uint8_t *possible, dcrf_error *error);

/* ---- check_cuts.c --------------------------------------------------------------------------- */

/* The model has one distance, and the cuts add up to no more than that; for Potts there are none.
 */
dcrf_status dcrf_check_cuts(struct dcrf_check *check, dcrf_error *error);
/* By what errors of sums are larger with a distance. */
double dcrf_check_cuts_scale(const struct dcrf_certificate_content *content, const float *distance,
                             size_t labels);
/* The values of a cut at the variables of the mixture, for one of its points. */
void dcrf_check_fill_column(const struct dcrf_check *check, size_t point, size_t cut,
                            uint32_t *column);
/* sums[i] += value for the labels of a cut, times twice its length. */
void dcrf_check_spread(const struct dcrf_check *check, size_t cut, double value, double *sums);

/* ---- check_bound.c -------------------------------------------------------------------------- */

/* Let a mixture bound the excess, and exclude the labels that it leaves no room for. */
dcrf_status dcrf_check_mixture(struct dcrf_check *check,
                               const struct dcrf_certificate_mixture *mixture, dcrf_error *error);
/* The energy of a labelling, from below and from above, and the sum of its terms' magnitudes. */
dcrf_status dcrf_check_energy(struct dcrf_check *check, const uint16_t *labels, double *low,
                              double *high, double *magnitude, dcrf_error *error);
/* What was found, held against what is claimed. */
dcrf_status dcrf_check_conclude(struct dcrf_check *check, dcrf_verification *made,
                                dcrf_error *error);

#endif
