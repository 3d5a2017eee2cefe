/* The inside of the check of a certificate. */
#ifndef DCRF_CERTIFY_CHECK_H
#define DCRF_CERTIFY_CHECK_H

#include "certify/certificate.h"
#include "filter/plan.h"

/* What a sum over kernels is of: sums[a * labels + i] = sum_{b counts} K_ab G_i(a, b) for all a
 * that are wanted. */
enum dcrf_check_sum {
    DCRF_CHECK_LABELS,   /* G = [label of b is i] */
    DCRF_CHECK_POSSIBLE, /* G = [i is possible at b] */
    DCRF_CHECK_GROUP /* members: F between the values; the others: 2 [i possible at b, not x_a] */
};

struct dcrf_check {
    const dcrf_model *model;
    const struct dcrf_certificate_content *content;
    dcrf_workspace *workspace;
    dcrf_plan *plan;   /* of the fast operators; NULL: exact */
    double **features; /* exact: of every kernel, variables x dimension, scaled */
    double **scale;    /* exact: of every kernel, 1 / sqrt(row sum) or 1 */
    double *in, *out;  /* fast: blocks of CHECK_CHANNELS */
    double *row_sums;
    uint8_t *possible;
    uint8_t *is_decided;
    double *cost; /* variables x labels, less what is decided */
    /* The sum in hand. */
    enum dcrf_check_sum kind;
    const uint16_t *labels;
    uint8_t *counts, *wanted, *member;
    double *line; /* F between two values: DCRF_VALUE_MOST + 1 squared */
    double *sums;
};

/* The kernels' own data, and the row sums. */
dcrf_status dcrf_check_kernels_init(struct dcrf_check *check, dcrf_error *error);
void dcrf_check_kernels_clear(struct dcrf_check *check);
dcrf_status dcrf_check_add_up(struct dcrf_check *check, dcrf_error *error);

#endif
