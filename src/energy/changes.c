/* What a labelling makes of the unary minimum. */
#include "core/error.h"
#include "core/memory.h"
#include "model/model.h"

#include <dcrf/changes.h>
#include <dcrf/labelling.h>

const char *dcrf_warning_text(dcrf_warning warning) {
    switch (warning) {
    case DCRF_WARNING_CONSTANT:
        return "one label wins everywhere: the kernels and cliques drown the unaries; try a "
               "smaller "
               "strength";
    case DCRF_WARNING_LABEL_GONE:
        return "a label is gone to which the unaries gave 5 % of the image or more; try a smaller "
               "strength";
    case DCRF_WARNING_TOO_STRONG:
        return "the kernels are more than 4 times as strong as suits these unaries";
    }
    return NULL;
}

static int is_normalized(const dcrf_model *model) {
    for (size_t m = 0; m < model->kernel_count; m++)
        if (model->kernels[m].normalization == DCRF_NORMALIZE_NONE)
            return 0;
    return 1;
}

struct label_count {
    size_t before;
    size_t after;
};

static void judge(const dcrf_model *model, const struct label_count *counts,
                  const dcrf_measured_strength *measured, dcrf_changes *changes) {
    const double share = DCRF_WARNING_SHARE * (double)model->variables;
    for (size_t i = 0; i < model->labels; i++) {
        changes->labels_before += counts[i].before > 0;
        changes->labels_after += counts[i].after > 0;
        changes->labels_vanished += counts[i].before > 0 && counts[i].after == 0;
        if (counts[i].after == 0 && counts[i].before > 0 && (double)counts[i].before >= share)
            changes->warnings |= DCRF_WARNING_LABEL_GONE;
        if (counts[i].after > counts[changes->largest_label].after)
            changes->largest_label = (uint16_t)i;
    }
    changes->largest_share =
        (double)counts[changes->largest_label].after / (double)model->variables;
    if (changes->labels_after == 1 && changes->labels_before > 1)
        changes->warnings |= DCRF_WARNING_CONSTANT;
    if (measured && is_normalized(model) &&
        dcrf_model_strength(model) > DCRF_WARNING_STRENGTH_FACTOR * measured->strength)
        changes->warnings |= DCRF_WARNING_TOO_STRONG;
}

dcrf_status dcrf_changes_of(const dcrf_model *model, const uint16_t *labels,
                            const dcrf_measured_strength *measured, size_t *before, size_t *after,
                            dcrf_changes *changes, dcrf_error *error) {
    if (!model || !labels || !changes)
        return dcrf_fail_null(error, "the model, the labelling or the place for its changes");
    struct label_count *counts = dcrf_allocate_zero(model->labels, sizeof *counts);
    uint16_t *unary_labels = dcrf_allocate(model->variables, sizeof *unary_labels);
    dcrf_status status =
        counts && unary_labels ? DCRF_OK : dcrf_fail_memory(error, "the changes of a labelling");
    dcrf_changes found = {0};
    if (status >= 0)
        dcrf_label_by_unary(model, unary_labels);
    for (size_t a = 0; status >= 0 && a < model->variables; a++) {
        if (labels[a] >= model->labels) {
            status = dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                               "variable %zu has the label %u; the model has %zu labels", a,
                               (unsigned)labels[a], model->labels);
            break;
        }
        found.changed += labels[a] != unary_labels[a];
        counts[unary_labels[a]].before++;
        counts[labels[a]].after++;
    }
    if (status >= 0) {
        judge(model, counts, measured, &found);
        *changes = found;
        for (size_t i = 0; i < model->labels; i++) {
            if (before)
                before[i] = counts[i].before;
            if (after)
                after[i] = counts[i].after;
        }
    }
    dcrf_release(unary_labels);
    dcrf_release(counts);
    return status;
}
