/* What a labelling makes of the unary minimum: pixels changed, labels that vanished, and whether
 * that looks like a mistake.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_CHANGES_H
#define DCRF_CHANGES_H

#include <dcrf/strength.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reasons to look twice, as a set. */
typedef enum dcrf_warning {
    /* One label everywhere, though the unaries have several. */
    DCRF_WARNING_CONSTANT = 1,
    /* A label is gone to which the unaries gave DCRF_WARNING_SHARE of the variables or more. */
    DCRF_WARNING_LABEL_GONE = 2,
    /* The strength is more than DCRF_WARNING_STRENGTH_FACTOR times what suits the unaries (not
     * judged where a kernel is not normalized). */
    DCRF_WARNING_TOO_STRONG = 4
} dcrf_warning;

#define DCRF_WARNING_SHARE 0.05
#define DCRF_WARNING_STRENGTH_FACTOR 4

/* One of them in words, for users; NULL for a value that is none. */
DCRF_API const char *dcrf_warning_text(dcrf_warning warning);

typedef struct dcrf_changes {
    size_t changed;         /* variables with another label than their unary minimum */
    size_t labels_before;   /* labels in use in the unary minimum, */
    size_t labels_after;    /* and in the labelling */
    size_t labels_vanished; /* in use before, and not after */
    uint16_t largest_label; /* the one that most variables have, */
    double largest_share;   /* and which part of them */
    unsigned warnings;      /* a set of dcrf_warning */
    unsigned char reserved[64];
} dcrf_changes;

/* Compare a labelling with the unary minimum. `before` and `after` may be NULL, or have room for
 * one number a label: how many variables have it. `measured` may be NULL; then the strength is not
 * judged. */
DCRF_API dcrf_status dcrf_changes_of(const dcrf_model *model, const uint16_t *labels,
                                     const dcrf_measured_strength *measured, size_t *before,
                                     size_t *after, dcrf_changes *changes, dcrf_error *error);

/* The same where the labelling is not in memory: `before` and `after` say how many of `variables`
 * variables have each label of the model, `changed` how many have another one. */
DCRF_API dcrf_status dcrf_changes_of_counts(const dcrf_model *model, size_t variables,
                                            size_t changed, const size_t *before,
                                            const size_t *after,
                                            const dcrf_measured_strength *measured,
                                            dcrf_changes *changes, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
