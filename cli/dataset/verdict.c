/* The verdict: the sentence that a person looks for in a table of scores.
 *
 * The unaries are the baseline, because that is what the user has without any of this. Methods
 * are compared by their mean IoU, to two decimals of a percentage. */
#include "dataset/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_UNITS 1e4 /* two decimals of a percentage */

static double shown_iou(const summary_row *row) {
    return round(SHOWN_UNITS * score_mean_iou(&row->counts)) / SHOWN_UNITS;
}

typedef struct standing {
    const summary_row *unary; /* NULL: none */
    const summary_row *best;  /* of the others; the first of equal ones. NULL: none */
    size_t others;
    size_t below; /* of the others, worse than the unaries */
} standing;

static standing find_standing(const summary *found) {
    standing s = {0};
    for (size_t m = 0; m < found->row_count; m++)
        if (found->rows[m].is_unary && !s.unary)
            s.unary = &found->rows[m];
    for (size_t m = 0; m < found->row_count; m++) {
        const summary_row *row = &found->rows[m];
        if (row->is_unary || isnan(shown_iou(row)))
            continue;
        s.others++;
        s.below += s.unary && shown_iou(row) < shown_iou(s.unary);
        if (!s.best || shown_iou(row) > shown_iou(s.best))
            s.best = row;
    }
    return s;
}

const char *summary_verdict(const summary *found, char text[VERDICT_BYTES]) {
    const standing s = find_standing(found);
    text[0] = '\0';
    if (!found->data->has_truth || !s.unary || !s.best || isnan(shown_iou(s.unary)))
        return text;
    const double unary = 100 * shown_iou(s.unary), best = 100 * shown_iou(s.best);
    if (s.below == s.others)
        snprintf(text, VERDICT_BYTES,
                 "%s worse than the unaries alone, which have a mean IoU of %.2f %%; the best, %s, "
                 "has %.2f %%. The strength does not suit these unaries: 'dcrf tune' finds one "
                 "that does.",
                 s.others == 1 ? "The method is" : "Every method is", unary, s.best->method, best);
    else if (best > unary)
        snprintf(text, VERDICT_BYTES,
                 "%s has the best mean IoU, %.2f %%: %.2f points above the unaries alone "
                 "(%.2f %%).",
                 s.best->method, best, best - unary, unary);
    else
        snprintf(text, VERDICT_BYTES,
                 "No method has a better mean IoU than the unaries alone, %.2f %%.", unary);
    if (s.below > 0 && s.below < s.others) {
        const size_t length = strlen(text);
        snprintf(text + length, VERDICT_BYTES - length, " Worse than the unaries: %zu of %zu.",
                 s.below, s.others);
    }
    return text;
}
