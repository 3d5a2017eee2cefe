/* How a labelling differs from the unary minimum: changed variables, labels that vanished, and
 * whether that looks like a mistake.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_CHANGES_H
#define DCRF_CHANGES_H

#include <dcrf/strength.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reasons to check a result; they can be combined with |. */
typedef enum dcrf_warning {
    /* The labelling has one label, but the unary minimum has several. */
    DCRF_WARNING_CONSTANT = 1,
    /* A label vanished that had at least DCRF_WARNING_SHARE of the variables in the unary
     * minimum. */
    DCRF_WARNING_LABEL_GONE = 2,
    /* The strength is more than DCRF_WARNING_STRENGTH_FACTOR times the recommended one. Not checked
     * if a kernel is not normalized. */
    DCRF_WARNING_TOO_STRONG = 4
} dcrf_warning;

/* "constant", "label gone", "too strong". */
DCRF_API const char *dcrf_warning_name(dcrf_warning warning);
DCRF_API int dcrf_warning_from_name(const char *name, dcrf_warning *warning);

#define DCRF_WARNING_SHARE 0.05
#define DCRF_WARNING_STRENGTH_FACTOR 4

/* A sentence for users that describes one warning; NULL for an unknown value. */
DCRF_API const char *dcrf_warning_text(dcrf_warning warning);

typedef struct dcrf_changes {
    size_t changed;         /* variables whose label differs from their unary minimum */
    size_t labels_before;   /* labels used by the unary minimum */
    size_t labels_after;    /* labels used by the labelling */
    size_t labels_vanished; /* labels used by the first but not the second */
    uint16_t largest_label; /* the most frequent label of the labelling */
    double largest_share;   /* its fraction of the variables */
    unsigned warnings;      /* dcrf_warning values combined with | */
    unsigned char reserved[64];
} dcrf_changes;

/* Compare a labelling with the unary minimum, which is found if `unary_labels` is NULL. `before`
 * and `after` receive the number of variables per label; each holds `count` entries, or is NULL.
 * Fewer entries than labels are an error, and nothing is written. If `measured` is NULL, the
 * strength is not checked. */
DCRF_API dcrf_status dcrf_changes_of(const dcrf_model *model, const uint16_t *unary_labels,
                                     const uint16_t *labels, const dcrf_measured_strength *measured,
                                     size_t *before, size_t *after, size_t count,
                                     dcrf_changes *changes, dcrf_error *error);

/* The same from counts, for labellings that are not in memory. `before` and `after` have one entry
 * per label of the model and count `variables` variables, of which `changed` changed their
 * label. */
DCRF_API dcrf_status dcrf_changes_of_counts(const dcrf_model *model, size_t variables,
                                            size_t changed, const size_t *before,
                                            const size_t *after,
                                            const dcrf_measured_strength *measured,
                                            dcrf_changes *changes, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
