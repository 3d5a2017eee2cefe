/* The blocks of the LP on the CPU: one column for each label in use, and one for all others.
 *
 * A label i with y_i = 0 everywhere has alpha_i = 0 and the same v as every other such label. Of
 * their reduced costs phi_ai - v_a only the lowest matters, both in the bound and in a step. So
 * these labels share the last column, which has the lowest of their unaries. y is 0 there; if a
 * projection makes it positive, a label must get its own column. The result is the same as with a
 * column for every label. */
#ifndef DCRF_BACKEND_CPU_LP_BLOCKS_H
#define DCRF_BACKEND_CPU_LP_BLOCKS_H

#include "backend/backend.h"
#include "backend/cpu/pair_dual.h"

struct dcrf_lp_blocks {
    const struct dcrf_dual_space *all; /* the caller's, with the model's rows */
    struct dcrf_dual_space space;      /* the same, with the row layout of the blocks */
    size_t *column_of;                 /* per label */
    uint16_t *label_of;                /* per column that is not shared */
    bool *is_wanted;                   /* per label, for dcrf_lp_blocks_widen */
    size_t used;                       /* the number of labels with their own column */
    bool is_blank; /* new rows, and a new best point: the same number in all columns of a row */
    float *unary;  /* of the columns; NULL: the model's, all labels are used */
    struct dcrf_pair_filter pairs;
    struct dcrf_dual dual[DCRF_BACKEND_DUALS];
    float *y;        /* the iterate: rows are distributions */
    float *previous; /* y before the last step */
    float *z;        /* where the gradient is taken */
    float *inner;    /* for dcrf_lp_majorant; NULL until it is needed */
};

dcrf_status dcrf_lp_blocks_init(struct dcrf_lp_blocks *blocks, const struct dcrf_dual_space *space,
                                dcrf_error *error);
void dcrf_lp_blocks_clear(struct dcrf_lp_blocks *blocks);

/* Add columns for the wanted labels, and clear is_wanted. The first call allocates the memory. Also
 * copies the caller's space again, with anything measured since the last call. */
dcrf_status dcrf_lp_blocks_widen(struct dcrf_lp_blocks *blocks, dcrf_error *error);

/* Do some labels share a column (at index blocks->used)? */
static inline bool dcrf_lp_blocks_share(const struct dcrf_lp_blocks *blocks) {
    return blocks->unary != NULL;
}

/* After y = P(z + tau (current - phi)): `steps` more steps of the same kind on the majorant with
 * the curvature of all pairs, for the labels that y makes use of (lp_majorant.c). `decrease`: how
 * far the majorant had fallen before and after the last but one. */
dcrf_status dcrf_lp_majorant(struct dcrf_lp_blocks *blocks, const float *metric, double epsilon,
                             size_t steps, double *decrease, dcrf_error *error);

/* Copy to and from blocks with the model's row layout. `bytes`: per element, floats or doubles. */
void dcrf_lp_blocks_read(const struct dcrf_lp_blocks *blocks, const void *from, size_t bytes,
                         void *to);
void dcrf_lp_blocks_write(const struct dcrf_lp_blocks *blocks, const float *from, float *to);

#endif
