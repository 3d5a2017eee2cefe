/* How a labelling differs from the unary minimum. */
#include "core/error.h"
#include "core/owned.h"
#include "energy/energy.h"
#include "energy/labelling.h"

#include <dcrf/changes.h>
#include <string.h>

/* ---- warnings ------------------------------------------------------------------------------- */

static const struct warning {
    dcrf_warning value;
    const char *name, *text;
} warnings[] = {
    {DCRF_WARNING_CONSTANT, "constant",
     "one label wins everywhere: the kernels and cliques drown the unaries; try a smaller "
     "strength"},
    {DCRF_WARNING_LABEL_GONE, "label gone",
     "a label is gone to which the unaries gave 5 % of the image or more; try a smaller strength"},
    {DCRF_WARNING_TOO_STRONG, "too strong",
     "the kernels are more than 4 times as strong as suits these unaries"},
};
#define WARNINGS (sizeof warnings / sizeof warnings[0])

static const struct warning *find_warning(dcrf_warning value) {
    for (size_t k = 0; k < WARNINGS; k++)
        if (warnings[k].value == value)
            return &warnings[k];
    return NULL;
}

const char *dcrf_warning_name(dcrf_warning warning) {
    const struct warning *found = find_warning(warning);
    return found ? found->name : NULL;
}

const char *dcrf_warning_text(dcrf_warning warning) {
    const struct warning *found = find_warning(warning);
    return found ? found->text : NULL;
}

int dcrf_warning_from_name(const char *name, dcrf_warning *warning) {
    for (size_t k = 0; name && warning && k < WARNINGS; k++)
        if (strcmp(warnings[k].name, name) == 0) {
            *warning = warnings[k].value;
            return 1;
        }
    return 0;
}

/* ---- changes -------------------------------------------------------------------------------- */

static int is_normalized(const dcrf_model *model) {
    for (size_t m = 0; m < model->kernel_count; m++)
        if (model->kernels[m].normalization == DCRF_NORMALIZE_NONE)
            return 0;
    return 1;
}

static void compare_counts(const dcrf_model *model, size_t variables, const size_t *before,
                           const size_t *after, const dcrf_measured_strength *measured,
                           dcrf_changes *changes) {
    const double share = DCRF_WARNING_SHARE * (double)variables;
    for (size_t i = 0; i < model->labels; i++) {
        changes->labels_before += before[i] > 0;
        changes->labels_after += after[i] > 0;
        changes->labels_vanished += before[i] > 0 && after[i] == 0;
        if (after[i] == 0 && before[i] > 0 && (double)before[i] >= share)
            changes->warnings |= DCRF_WARNING_LABEL_GONE;
        if (after[i] > after[changes->largest_label])
            changes->largest_label = (uint16_t)i;
    }
    changes->largest_share =
        variables > 0 ? (double)after[changes->largest_label] / (double)variables : 0;
    if (changes->labels_after == 1 && changes->labels_before > 1)
        changes->warnings |= DCRF_WARNING_CONSTANT;
    if (measured && is_normalized(model) &&
        dcrf_model_strength(model) > DCRF_WARNING_STRENGTH_FACTOR * measured->strength)
        changes->warnings |= DCRF_WARNING_TOO_STRONG;
}

dcrf_status dcrf_changes_of(const dcrf_model *model, const uint16_t *unary_labels,
                            const uint16_t *labels, const dcrf_measured_strength *measured,
                            size_t *before, size_t *after, size_t count, dcrf_changes *changes,
                            dcrf_error *error) {
    if (!model || !labels || !changes)
        return dcrf_fail_null(error, "the model, the labelling or the place for its changes");
    if (before || after)
        TRY(dcrf_check_room(before ? before : after, count, model->labels, "the counts", error));
    DCRF_SCOPED size_t *was = dcrf_allocate_zero(model->labels, 2 * sizeof *was);
    DCRF_SCOPED uint16_t *own = unary_labels ? NULL : dcrf_allocate(model->variables, sizeof *own);
    if (!was || (!unary_labels && !own))
        return dcrf_fail_memory(error, "the changes of a labelling");
    size_t *is = was + model->labels;
    dcrf_changes found = {0};
    TRY(dcrf_labels_check(model, labels, error));
    if (own)
        dcrf_unary_minimum(model, NULL, own);
    else
        TRY(dcrf_labels_check(model, unary_labels, error));
    unary_labels = own ? own : unary_labels;
    for (size_t a = 0; a < model->variables; a++) {
        found.changed += labels[a] != unary_labels[a];
        was[unary_labels[a]]++;
        is[labels[a]]++;
    }
    compare_counts(model, model->variables, was, is, measured, &found);
    *changes = found;
    if (before)
        memcpy(before, was, model->labels * sizeof *was);
    if (after)
        memcpy(after, is, model->labels * sizeof *is);
    return DCRF_OK;
}

dcrf_status dcrf_changes_of_counts(const dcrf_model *model, size_t variables, size_t changed,
                                   const size_t *before, const size_t *after,
                                   const dcrf_measured_strength *measured, dcrf_changes *changes,
                                   dcrf_error *error) {
    if (!model || !before || !after || !changes)
        return dcrf_fail_null(error, "the model, the counts or the place for the changes");
    dcrf_changes found = {.changed = changed};
    compare_counts(model, variables, before, after, measured, &found);
    *changes = found;
    return DCRF_OK;
}
