/* The blocks of the LP on the CPU: a column for each label in use, and one for all others.
 *
 * A label i with y_i = 0 everywhere has alpha_i = 0 and the same v as every other such label. Of
 * their reduced costs phi_ai - v_a only the lowest counts, in the bound as in a step. So these
 * labels share the last column, with the lowest of their unaries. y is 0 there; where a projection
 * makes it positive, a label must get a column of its own. The result is that of all columns. */
#ifndef DCRF_BACKEND_CPU_LP_BLOCKS_H
#define DCRF_BACKEND_CPU_LP_BLOCKS_H

#include "backend/backend.h"
#include "backend/cpu/pair_dual.h"

struct dcrf_lp_blocks {
    const struct dcrf_dual_space *all; /* the caller's, with the model's rows */
    struct dcrf_dual_space space;      /* the same with the rows of the blocks */
    size_t *column_of;                 /* per label */
    uint16_t *label_of;                /* per column of its own */
    bool *is_wanted;                   /* per label, for dcrf_lp_blocks_widen */
    size_t used;                       /* labels with a column of their own */
    float *unary;                      /* of the columns; NULL: the model's, all labels are used */
    struct dcrf_pair_filter pairs;
    struct dcrf_dual dual[DCRF_BACKEND_DUALS];
    float *y;        /* the iterate: rows are distributions */
    float *previous; /* y before the last step */
    float *z;        /* where the gradient is taken */
    float *inner;    /* of dcrf_lp_majorant; NULL until it is needed */
};

dcrf_status dcrf_lp_blocks_init(struct dcrf_lp_blocks *blocks, const struct dcrf_dual_space *space,
                                dcrf_error *error);
void dcrf_lp_blocks_clear(struct dcrf_lp_blocks *blocks);

/* Columns for the labels that are wanted too, and afterwards none is wanted. The first call takes
 * the memory. What was measured of the space since the last one is known from then on. */
dcrf_status dcrf_lp_blocks_widen(struct dcrf_lp_blocks *blocks, dcrf_error *error);

/* Do some labels share a column, blocks->used? */
static inline bool dcrf_lp_blocks_share(const struct dcrf_lp_blocks *blocks) {
    return blocks->unary != NULL;
}

/* After y = P(z + tau (current - phi)): so many more steps of the same kind on the majorant
 * with the curvature of all pairs (lp_majorant.c), and by how much the majorant was lower before
 * and after the last but one. */
dcrf_status dcrf_lp_majorant(struct dcrf_lp_blocks *blocks, const float *metric, double epsilon,
                             size_t steps, double *decrease, dcrf_error *error);

/* From and to a block with the model's rows. */
void dcrf_lp_blocks_read(const struct dcrf_lp_blocks *blocks, const float *from, float *to);
void dcrf_lp_blocks_read_double(const struct dcrf_lp_blocks *blocks, const double *from,
                                double *to);
void dcrf_lp_blocks_write(const struct dcrf_lp_blocks *blocks, const float *from, float *to);

/* From columns to the labels whose own they are, one per variable. */
void dcrf_lp_blocks_name(const struct dcrf_lp_blocks *blocks, uint16_t *labels);

#endif
