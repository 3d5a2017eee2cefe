/* The compatible mean field: what its files share.
 *
 *   densecrf.c     the object: unary energies, kernels, compatibilities
 *   active.c       which labels are filtered, and their rows
 *   update.c       the update, and the public calls that make updates
 *   divergence.c   the objective */
#ifndef DCRF_COMPAT_DENSECRF_H
#define DCRF_COMPAT_DENSECRF_H

#include "filter/lattice.h"

#include <dcrf/densecrf.h>

/* Scratch memory: what was spread on the lattices. */
extern const struct dcrf_slot dcrf_spread_slot;

/* One kernel: message = sum_j mu(i, j) gain (K Q_j), mu with the signs of dcrf/densecrf.h. */
struct dcrf_densecrf_term {
    dcrf_operator *op; /* a lattice, with its normalization */
    float gain;        /* 1 / (1 + 2^-d) */
    float row_sum; /* largest entry of gain K 1; used where there are more labels than DCRF_LANES */
    dcrf_compatibility compatibility;
    float *mu; /* 1 (all labels alike), labels, or labels x labels values */
};

static inline const struct dcrf_lattice *
dcrf_densecrf_lattice(const struct dcrf_densecrf_term *term) {
    return (const struct dcrf_lattice *)term->op;
}

struct dcrf_densecrf {
    dcrf_grid grid;
    size_t variables;
    size_t labels;
    float *unary; /* planar */
    size_t term_count;
    struct dcrf_densecrf_term *terms;
    double message_error;
};

/* The most kernels. */
#define DCRF_DENSECRF_MOST_TERMS 64

/* Variables a task takes. */
#define DCRF_DENSECRF_GRAIN 512

/* ---- active.c: a distribution on its way through updates
 * --------------------------------------------------
 *
 * Rows hold the active labels only. The others have no message, so their share of a softmax changes
 * with nothing but its denominator: log_rest_a = ln sum_i exp(-unary_ai) over them is all that an
 * update needs of them, and q_ai = scale_a exp(-unary_ai - shift_a) gives them back. */

struct dcrf_field {
    const dcrf_densecrf *crf;
    dcrf_pool *pool;
    float threshold; /* labels that are at or below it everywhere need no filter; negative: all do
                      */
    size_t active;   /* labels in the rows */
    size_t stride;
    size_t *label;    /* of each place in a row */
    size_t *place;    /* of each label, or SIZE_MAX */
    float *unary;     /* rows */
    float *q;         /* rows */
    float *spare;     /* rows: the next q, the last one, or a message */
    float *rest;      /* per variable; used while active < labels */
    float *rest_top;  /* the logarithm of their largest part */
    float *shift;     /* of all labels that are not active */
    float *scale;     /* the same */
    float *old_shift; /* before the last update, as `spare` then holds the old q */
    float *old_scale;
    float *peak;      /* per label: its largest q anywhere, or a bound on it */
    float *peak_part; /* per thread, labels padded: what a loop collects; then one more number */
    size_t peak_stride;
    float rest_peak; /* the largest q of a label that is not active */
};

dcrf_status dcrf_field_new(struct dcrf_field **field, const dcrf_densecrf *crf,
                           dcrf_workspace *workspace, dcrf_error *error);
void dcrf_field_free(struct dcrf_field **field);

/* q = softmax(-unary), or the planes of the caller. */
dcrf_status dcrf_field_start(struct dcrf_field *field, dcrf_error *error);
dcrf_status dcrf_field_load(struct dcrf_field *field, const float *q, dcrf_error *error);

/* Take labels that have faded out of the rows. */
dcrf_status dcrf_field_adapt(struct dcrf_field *field, dcrf_error *error);

/* Exchange this q (and shift and scale) for those before the last update. */
void dcrf_field_swap(struct dcrf_field *field);

/* Did the last update raise a label above the threshold that it did not filter? Then the update is
 * to be made again with that label: dcrf_field_wake goes back to where it began, with such labels
 * in the rows. `planes` is what dcrf_field_load was given, or NULL. */
dcrf_status dcrf_field_wake(struct dcrf_field *field, const float *planes, dcrf_error *error);

/* Write q into planes. */
void dcrf_field_store(const struct dcrf_field *field, float *q);

static inline bool dcrf_field_has_rest(const struct dcrf_field *field) {
    return field->active < field->crf->labels;
}

static inline bool dcrf_field_must_wake(const struct dcrf_field *field) {
    return dcrf_field_has_rest(field) && field->rest_peak > field->threshold;
}

/* Before and after a loop that raises the peaks of its thread, by label or by place in the rows;
 * the last number of a part is that of the rest, which is returned. */
void dcrf_field_clear_peaks(struct dcrf_field *field);
float dcrf_field_collect_peaks(struct dcrf_field *field, bool by_place);

#endif
